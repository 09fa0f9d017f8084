#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# redis.sh - the examples over a Redis server, and the tools of that engine:
# cluster, trainer and wordcount with workers that come by themselves and are
# killed; evc-worker with shared objects; evc-cluster; the five lines of
# doc/cluster.md; the demo.
#
# The tools are in EVC_TOOLS (default: beside the folder of the examples).
# shellcheck disable=SC2154 # bin, tmp, failures, server, redis, tools: lib.sh, redis_lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$here/redis_lib.sh"
. "$here/run_lib.sh"

top=${EVC_TOP_SRCDIR:-$here/../..}
expected=$here/expected

# ---- what works with a server ----------------------------------------------------

start_server
at=redis://127.0.0.1:$port
nodes=()

# node COMMAND...: start one.
node() {
	"$@" >>"$tmp/node" 2>&1 &
	nodes+=("$!")
	others+=("$!")
}

# end_nodes: all that were started, by SIGTERM; each has to end with 0.
end_nodes() {
	local pid

	for pid in "${nodes[@]}"; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in "${nodes[@]}"; do
		check "node $pid ends by itself" until_true ended "$pid"
		wait "$pid"
		node_status=$?
		[ $node_status -eq 0 ] || cat "$tmp/node"
		check 'with status 0' test $node_status -eq 0
	done
	nodes=()
}

# told TEXT: the last run has written a line like that to standard output.
told() {
	grep -qE -e "$1" "$tmp/out" && return
	cat "$tmp/out" "$tmp/err"
	return 1
}

# status_of NAMESPACE PATTERN: evc-cluster says so.
status_of() {
	"$tools/evc-cluster" status "$at/$1" >"$tmp/status" 2>&1
	grep -qE -e "$2" "$tmp/status"
}

# ---- cluster ---------------------------------------------------------------------

sed 1d "$expected/cluster-threads.txt" >"$tmp/want"
node "$bin/cluster" --worker "$at/cluster" 2
for n in 1 2; do
	run "$bin/cluster" "$at/cluster"
	sed -i 1d "$tmp/out"
	check "cluster on workers that come, $n" same 0 "$tmp/want"
done
end_nodes

# ---- trainer ---------------------------------------------------------------------

samples=$(many 10000 3000)
node "$bin/trainer" --worker -n 4 "$at/trainer"
for kill in '' --kill; do
	# shellcheck disable=SC2086 # a word, or none
	run "$bin/trainer" --samples $samples $kill "$at/trainer"
	check "trainer $kill: the loss is that of one thread" test $status -eq 0
	check 'each batch counts once' told \
		"^batches +$((samples / 100)), of which 0 do not count exactly once\$"
done
check 'workers were killed' told '^kill -9 +[1-9].* [1-9][0-9]* workers died$'
end_nodes

# ---- wordcount -------------------------------------------------------------------

tree=$tmp/tree
mkdir -p "$tree" || exit 99
for n in 1 2 3 4; do
	words $n 90000 3000 >"$tree/$n"
done
cat "$tree"/* | tr -cs '[:alpha:]' '[\n*]' | tr A-Z a-z | grep . | sort |
	uniq -c | awk '{ print $1, $2 }' >"$tmp/want"

node "$bin/wordcount" --worker -n 2 "$at/words"
run "$bin/wordcount" --all "$at/words" "$tree"
check 'wordcount: the sums are those of uniq -c' same 0 "$tmp/want"
run "$bin/wordcount" --all "$at/words" "$tree"
check 'the same once more, in a namespace that was used' same 0 "$tmp/want"
# One, because a chunk that is lost while it waits behind another kills none.
for time in first second third; do
	run "$bin/wordcount" --all -v --nap 0.02 --kill 1 "$at/words" "$tree"
	check "a worker is killed, for the $time time" same 0 "$tmp/want"
	check 'and was lost' said '; 1 workers were lost'
done

# A node that comes while it counts, and one that is killed.
node "$bin/wordcount" --worker -n 2 "$at/words"
victim=${nodes[1]}
"$bin/wordcount" --all -v --nap 0.5 "$at/words" "$tree" >"$tmp/out" \
	2>"$tmp/err" &
server=$!
check 'both nodes are in it' until_true status_of words \
	"pid $victim on .*, live,"
kill -KILL "$victim"
unset 'nodes[1]'
node "$bin/wordcount" --worker -n 1 "$at/words"
check 'a node is killed, another one comes: it ends' until_true ended "$server"
wait "$server"
status=$?
server=''
check 'with the same sums' same 0 "$tmp/want"

# saved_since STATE: there is a checkpoint, and another one than STATE.
state_of_file() {
	stat -c '%i %z' "$tmp/file" 2>/dev/null
}
saved_since() {
	local now
	now=$(state_of_file) && [ "$now" != "$1" ]
}

# The coordinator dies, and begins again from its checkpoint.
"$bin/wordcount" --all --checkpoint "$tmp/file" --every 0.1 --nap 0.5 \
	"$at/words" "$tree" >"$tmp/out" 2>"$tmp/err" &
server=$!
check 'it works' until_true status_of words ' [1-9][0-9]* done'
check 'and saves that' until_true saved_since "$(state_of_file)"
kill -KILL "$server"
wait "$server" 2>/dev/null
server=''
run "$bin/wordcount" --all -v --checkpoint "$tmp/file" "$at/words" "$tree"
check 'kill -9 of the coordinator: the next one goes on' same 0 "$tmp/want"
check 'not from the beginning' said ', [1-9][0-9]* of them before;'
run "$bin/wordcount" --worker "$at/words" "$tree"
check 'a worker counts nothing by itself' test $status -eq 2
run "$bin/wordcount" -n 2 "$at/words" "$tree"
check 'nor does a coordinator bring workers' test $status -eq 2

# The stop.
env --default-signal=INT "$bin/wordcount" --nap 2 "$at/words" "$tree" \
	>"$tmp/out" 2>"$tmp/err" &
server=$!
check 'it works' until_true status_of words "^coordinator +[^ ]*-$server-"
check 'and hears signals' until_true hears "$server"
kill -INT "$server"
check 'SIGINT ends it' until_true ended "$server"
wait "$server"
status=$?
server=''
check 'with nothing counted' same 130 /dev/null
check 'says who' said '^wordcount: SIGINT from pid'
check 'and leaves no coordinator' until_true status_of words '^coordinator +none$'

# ---- evc-cluster -----------------------------------------------------------------

run "$tools/evc-cluster" status "$at/words"
check 'status: there is no coordinator' test $status -eq 3
check 'which is said' told '^coordinator +none$'
"$bin/wordcount" --nap 2 "$at/words" "$tree" >/dev/null 2>"$tmp/counting" &
server=$!
check 'status: how many functions wait' until_true status_of words \
	'^functions +[1-9][0-9]* queued, [1-9][0-9]* running'
check 'status: what workers run' until_true status_of words \
	'^  0 +pid [0-9]+ +runs +count for '
run "$tools/evc-cluster" status "$at/words"
check 'status: all is well' test $status -eq 0
check 'status: the coordinator' told \
	"^coordinator +[^ ]*-$server-[^ ]*, generation [0-9]+, lease [0-9.]+ s of 5.0 s"
run "$tools/evc-cluster" status --json "$at/words"
check 'status: as JSON' told \
	'^\{"namespace":"words",.*"queued":[0-9]+,.*"function":"count"'
if command -v python3 >/dev/null; then
	check 'which is JSON' python3 -m json.tool "$tmp/out" "$tmp/json"
fi
run "$tools/evc-cluster" clean "$at/words"
check 'clean: refused while there is one' test $status -eq 1
check 'by its name' said 'the namespace words is in use by '
check 'it ends' until_true ended "$server"
wait "$server"
check 'as if nobody had looked' test $? -eq 0
server=''
end_nodes
run "$tools/evc-cluster" clean "$at/words"
check 'clean' test $status -eq 0
check 'says how much' told '^[1-9][0-9]* keys of the namespace words are deleted$'
run "$tools/evc-cluster" clean "$at/words"
check 'and leaves nothing' told '^0 keys'
for arguments in '' "status" "state $at/words" "status --force $at/words" \
	"clean --json $at/words" "status threads://2" "status $at" \
	"status $at/words?lease=3"; do
	# shellcheck disable=SC2086 # lists of words
	run "$tools/evc-cluster" $arguments
	check "evc-cluster $arguments: wrong use" test $status -eq 2
done
exec 3<>"/dev/tcp/127.0.0.1/$port"
run "$tools/evc-cluster" status "$at/words"
check 'status: nothing about a server that keeps all' \
	test -z "$(grep '^server ' "$tmp/out")"
printf 'CONFIG SET maxmemory-policy allkeys-lru\r\n' >&3
read -r _ <&3
run "$tools/evc-cluster" status "$at/words"
check 'status: a policy that evicts' told \
	'^server +its maxmemory-policy is allkeys-lru: '
run "$tools/evc-cluster" status --json "$at/words"
check 'and as JSON' told '"maxmemory_policy":"allkeys-lru"'
printf 'CONFIG SET maxmemory-policy noeviction\r\n' >&3
read -r _ <&3
printf 'CONFIG SET maxmemory 1000\r\n' >&3
read -r _ <&3
run "$tools/evc-cluster" status "$at/words"
check 'status: no memory' told \
	'^server +it has no memory left: [0-9]+ bytes are used, .* is 1000$'
run "$tools/evc-cluster" status --json "$at/words"
check 'and as JSON' told '"memory_used":[0-9]+,"memory_limit":1000,'
printf 'CONFIG SET maxmemory 0\r\n' >&3
read -r _ <&3
printf 'CONFIG SET min-replicas-to-write 1\r\n' >&3
read -r _ <&3
run "$tools/evc-cluster" status "$at/words"
check 'status: no writes' told '^server +it refuses writes: NOREPLICAS '
run "$tools/evc-cluster" status --json "$at/words"
check 'and as JSON' told '"refusal":"NOREPLICAS '
printf 'CONFIG SET min-replicas-to-write 0\r\n' >&3
read -r _ <&3
printf 'SET {later}:ver 99\r\n' >&3
read -r _ <&3
run "$tools/evc-cluster" status "$at/later"
check 'status: another protocol' told \
	'^coordinator +not known: this evc-cluster is for protocol [0-9]+$'
printf 'REPLICAOF 127.0.0.1 1\r\n' >&3
read -r _ <&3
run "$tools/evc-cluster" status "$at/words"
check 'status: a replica' told '^server +it is a replica'
printf 'REPLICAOF NO ONE\r\n' >&3
read -r _ <&3
# Keys in which there is something else.
for key in ver coord gen var count 7:state 7:runs; do
	printf 'LPUSH {junk}:%s x\r\n' $key >&3
	read -r _ <&3
done
# Numbers that are none, in what the last coordinator has left.
printf 'SET {forged}:gen 7\r\n' >&3
read -r _ <&3
printf 'SET {forged}:7:state "%s"\r\n' 'lease nan\nqueued -5\nrunning 1\ndone 2\nnodes -1\nnode x 1 host 2 3 4 5 -6 live\nnode y -1 host 2 3 4 5 6 live\nnode z 1 host 2 3 4 5 6 live\n' >&3
read -r _ <&3
printf 'HSET {forged}:7:runs z "%s"\r\n' '0 1 runs f 99999999999999999999 1\n1 -1 runs f 1 1\n2 3 runs f 1 1\n' >&3
read -r _ <&3
# And one with a 0 byte in its name.
printf '*3\r\n$5\r\nLPUSH\r\n$9\r\n{junk}:\0a\r\n$1\r\nx\r\n' >&3
read -r _ <&3
exec 3>&-
run "$tools/evc-cluster" status "$at/junk"
check 'garbage is no coordinator' test $status -eq 3
check 'and is told' told '^coordinator +not known: its key is no string'
check 'nor are variables' told '^variables *not known: their key is no hash'
run "$tools/evc-cluster" status "$at/forged"
check 'what was left is no news' told '^coordinator +none; the last one has left'
check 'a number that is none' test -z "$(grep -E '^functions|nan| x,| y,' "$tmp/out")"
check 'the others' test "$(grep -Ec '^nodes +1 with 1 |^z, |^  2 ' "$tmp/out")" -eq 3
run "$tools/evc-cluster" status --json "$at/forged"
check 'and as JSON' told '"queued":null,"running":1,"done":2,'
run "$tools/evc-cluster" clean "$at/junk"
check 'but clean takes care' test $status -eq 1
run "$tools/evc-cluster" clean --force "$at/junk"
check 'unless it is forced' told '^8 keys'
run "$tools/evc-cluster" status redis://127.0.0.1:1/words
check 'no server' test $status -eq 1
check 'is said' said 'Connection refused'
run "$tools/evc-cluster" status "$at/words?user=nobody"
check 'a user that is not there' test $status -eq 1
check 'is not another one' said \
	'WRONGPASS .* \(see user=, password-file= and password-env= in evcoord-red'
# A user that may not read: nothing is said to be there, or not to be.
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'ACL SETUSER blind on nopass ~* +@all -get\r\n' >&3
read -r _ <&3
exec 3>&-
run "$tools/evc-cluster" status "$at/words?user=blind"
check 'a user that may not read' test $status -eq 1
check 'is told so' said "NOPERM.*'get'"
run "$tools/evc-cluster" status "$at/words?master=main"
check 'no Sentinel' said 'this is no Sentinel, and the address has master='
run "$tools/evc-cluster" status "$at/words?fresh=1"
check 'nothing is fresh that is not opened' said 'option fresh removes '
run "$bin/wordcount" --worker "$at/words?fresh=1"
check 'nor has a node' said 'option fresh is for a coordinator'
echo secret >"$tmp/password"
chmod 644 "$tmp/password"
run "$tools/evc-cluster" status "$at/words?password-file=$tmp/password"
check 'a password that others can read' said \
	'password-file has the mode [0-7]*, and not 600'

# Nothing takes what it prints.
for arguments in "status $at/words" "status --json $at/words" \
	"clean $at/nothing" --help --version; do
	for place in '>&-' '>/dev/full'; do
		eval "'$tools/evc-cluster' $arguments $place" 2>"$tmp/err"
		check "evc-cluster $arguments $place" test $? -eq 1
		check 'is said' said '^evc-cluster: cannot write: '
	done
done

# A server that hangs, and what is none.
kill -STOP "${others[0]}"
for arguments in "status $at/words" "clean --force $at/words"; do
	# shellcheck disable=SC2086 # lists of words
	run "$tools/evc-cluster" $arguments
	check "evc-cluster $arguments: a server hangs" test $status -eq 1
	check 'is said' said \
		"^evc-cluster: 127.0.0.1:$port: did not answer for 5 s\$"
done
kill -CONT "${others[0]}"
first=$port
if command -v socat >/dev/null; then
	echo "printf '\$1000\r\n'; while sleep 0.5; do printf 1; done" \
		>"$tmp/dribble"
	socat -d -d TCP-LISTEN:0,bind=127.0.0.1,fork "EXEC:sh $tmp/dribble" \
		2>"$tmp/socat" &
	others+=("$!")
	check 'a server that sends a byte now and then' \
		until_true grep -q ' listening on ' "$tmp/socat"
	port=$(sed -n 's/.* listening on .*://p' "$tmp/socat")
	run timeout "$limit" "$tools/evc-cluster" status \
		"redis://127.0.0.1:$port/words"
	check 'is not waited for' same 1 /dev/null
	check 'which is said' said \
		"^evc-cluster: 127.0.0.1:$port: did not answer for 5 s\$"
	port=$first
else
	echo "SKIP redis.sh: a server that sends a byte now and then: no socat"
fi
# no_redis PORT WHY: at that port is none, which is said.
no_redis() {
	run "$tools/evc-cluster" status "redis://127.0.0.1:$1/words"
	check 'no Redis server' same 1 /dev/null
	check 'is said' said \
		"^evc-cluster: 127.0.0.1:$1: this is no Redis server: $2"
}
start_server --rename-command INFO '' --rename-command ECHO INFO
no_redis "$port" 'INFO has no redis_version$'
port=$first
if [ -x "$bin/server" ]; then
	"$bin/server" "$tree" >"$tmp/http" 2>&1 &
	others+=("$!")
	check 'a server of HTTP' until_true grep -q 'listening on' "$tmp/http"
	no_redis "$(sed -n 's/.*listening on .*://p' "$tmp/http")" 'Protocol error'
else
	echo "SKIP redis.sh: no $bin/server, so none that talks HTTP"
fi

# Nobody is there, and whoever runs it is told so.
"$bin/wordcount" "$at/words" "$tree" >"$tmp/out" 2>"$tmp/err" &
server=$!
check 'status: no node' until_true status_of words '^nodes +none: evc-worker\(1\)'
check 'which wordcount says, too' until_true grep -q \
	'^wordcount: .*no node is registered: start evc-worker(1)' "$tmp/err"
kill -TERM "$server"
check 'and ends' until_true ended "$server"
wait "$server"
server=''
run "$tools/evc-cluster" clean "$at/words"

# ---- evc-worker ------------------------------------------------------------------

# The object of its manual page, and one more.
flags="-Wall -Wextra -Werror -I$top/include ${LIBEV_CFLAGS:-}"
for san in ${EVC_SANITIZERS:-}; do
	flags="$flags -fsanitize=$san -fno-sanitize-recover=all"
done
awk '/^#include <evcoord\/worker.h>/ { open = 1 }
	/^\.Ed/ { open = 0 }
	open { gsub(/\\e/, "\\"); print }' "$top/man/evc-worker.1" >"$tmp/add.c"
# This one says when it is started and stopped.
cat >"$tmp/notes" <<'END'
#include <stdio.h>
#include <stdlib.h>
static void
note(const char *what)
{
	FILE *f = fopen(getenv("EVC_REDIS_TEST"), "a");

	if (f) {
		fprintf(f, "%s\n", what);
		fclose(f);
	}
}
static evc_status
begin(evc_coord *c, void *arg)
{
	(void)c;
	note(arg);
	return 0;
}
static void
end(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	note("stop");
}
END
sed -e 's/"add"/"sub"/; s/a + b/a - b/' \
	-e 's/\.n_functions = 1,/& .start = begin, .stop = end, .arg = "start",/' \
	-e "/^#include/r $tmp/notes" "$tmp/add.c" >"$tmp/sub.c"
export EVC_REDIS_TEST=$tmp/started
echo 'int nothing;' >"$tmp/none.c"
cat >"$tmp/sums.c" <<'END'
#include <evcoord.h>
#include <evcoord/cluster.h>
#include <math.h>
#include <stdio.h>

int
main(int argc, char **argv)
{
	evc_remote *r[2] = { NULL, NULL };
	evc_cluster *cluster;
	evc_coord *c;
	evc_value v;
	int i, n;

	if (argc != 2 || evc_new(NULL, NULL, &c) < 0 ||
	    evc_cluster_open(c, argv[1], NULL, &cluster) < 0 ||
	    evc_schedule_pack(cluster, "add", NULL, &r[0], "[ii]", 4, 2) ||
	    evc_schedule_pack(cluster, "sub", NULL, &r[1], "[ii]", 4, 2)) {
		puts(evc_last_error());
		return 1;
	}
	for (i = 0; i < 2; i++) {
		if (evc_remote_fetch(r[i], INFINITY, &v) != 0 ||
		    evc_unpack(&v, "i", &n) != 0)
			return 1;
		printf("%d\n", n);
		evc_remote_free(r[i]);
	}
	evc_cluster_close(cluster);
	return evc_finish(c, evc_join(c, NULL, NULL));
}
END
cat >"$tmp/odd.c" <<'END'
#include <evcoord/worker.h>
#include <stdlib.h>
#include <unistd.h>

static evc_status
wait_for_file(evc_exec *x, void *arg)
{
	(void)arg;
	while (access(getenv("EVC_REDIS_GO"), F_OK) != 0)
		if (evc_exec_wait_for_stop(x, 0.01))
			break;
	return 0;
}

static const evc_function functions[] = {
	{ .name = "two words\n\033[31m", .fn = wait_for_file },
};

const evc_worker_object evc_worker_exports = {
	.abi = EVC_WORKER_ABI,
	.functions = functions,
	.n_functions = 1,
};
END
export EVC_REDIS_GO=$tmp/go
sed 's/"add"/"add5678901234567890123456789012345678901234567890"/' "$tmp/add.c" \
	>"$tmp/long.c"
cat >"$tmp/one.c" <<'END'
#include <evcoord.h>
#include <evcoord/cluster.h>
#include <math.h>
#include <stdio.h>

int
main(int argc, char **argv)
{
	evc_cluster *cluster;
	evc_coord *c;
	evc_status st;

	if (argc != 3 || evc_new(NULL, NULL, &c) < 0 ||
	    evc_cluster_open(c, argv[1], NULL, &cluster) < 0 ||
	    evc_schedule(cluster, argv[2], NULL, NULL, NULL, NULL) != 0) {
		puts(evc_last_error());
		return 1;
	}
	st = evc_cluster_join(cluster, INFINITY);
	evc_cluster_close(cluster);
	if (evc_join(c, NULL, NULL) != 0)
		return 1;
	return evc_finish(c, st);
}
END
libs="-L$build/src/.libs -levcoord-cluster -levcoord ${LIBEV_LIBS:--lev} -lm"
# shellcheck disable=SC2086 # lists of flags
for object in add sub none odd long; do
	check "$object.so is made" ${CC:-cc} $flags -shared -fPIC \
		"$tmp/$object.c" -o "$tmp/$object.so" $libs
done
# shellcheck disable=SC2086
check 'so is a coordinator' ${CC:-cc} $flags "$tmp/sums.c" \
	-o "$tmp/sums" $libs
# shellcheck disable=SC2086
check 'and one that schedules one function' ${CC:-cc} $flags \
	"$tmp/one.c" -o "$tmp/one" $libs
cp "$tmp/add.so" "$tmp/more.so"
cd "$tmp" || exit 99
node "$tools/evc-worker" -n 2 -g 1 --once "$at/sums" add.so ./sub.so
printf '6\n2\n' >"$tmp/want"
run "$tmp/sums" "$at/sums"
check 'evc-worker runs functions of two objects' same 0 "$tmp/want"
check 'and ends with the cluster' until_true ended "${nodes[0]}"
wait "${nodes[0]}"
check 'with status 0' test $? -eq 0
nodes=()
check 'a worker was started' grep -qx start "$tmp/started"
check 'and stopped' grep -qx stop "$tmp/started"
run "$tools/evc-worker" "$at/sums" add.so none.so
check 'an object without functions is refused' test $status -eq 1
check 'by name' said 'none.so: it does not export evc_worker_exports'
run "$tools/evc-worker" "$at/sums" add.so more.so
check 'so are two functions of one name' test $status -eq 1
check 'by names' said 'more.so: function "add" is in add.so as well'
run "$tools/evc-worker" "$at/sums" ./nothing.so
check 'and an object that is not there' test $status -eq 1
check 'by its name' said 'nothing.so'
run "$tools/evc-worker" "$at/sums" add.so ./add.so
check 'one that is given twice' said '^evc-worker: ./add.so is given twice$'
echo 'no object' >text.so
run "$tools/evc-worker" "$at/sums" ./text.so
check 'a file that is none' test $status -eq 1
check 'is named' said '^evc-worker: ./text.so: '
run "$tools/evc-worker" "$at/sums" ./long.so
check 'a name that is too long' test $status -eq 1
check 'is said' said 'longer than 47 bytes'

# A name with whatever is in it is one word of one line in the status.
node "$tools/evc-worker" -n 1 --once "$at/odd" odd.so
"$tmp/one" "$at/odd" "$(printf 'two words\n\033[31m')" >"$tmp/out" 2>&1 &
server=$!
check 'a name with a space, a newline and an escape' until_true status_of \
	odd '  runs +two\\x20words\\x0a\\x1b\[31m for [0-9.]+ s$'
run "$tools/evc-cluster" status --json "$at/odd"
check 'which is itself in JSON' told \
	'"function":"two words\\u000a\\u001b\[31m"'
: >"$tmp/go"
check 'its coordinator ends' until_true ended "$server"
wait "$server"
check 'with status 0' test $? -eq 0
server=''
# With it, and not by our signal while it does so.
check 'and so does the node' until_true ended "${nodes[0]}"
end_nodes
run "$tools/evc-worker" redis://127.0.0.1 add.so
check 'and an address without a namespace' test $status -eq 1
check 'which is said' said 'namespace|NAMESPACE'
cd "$top" || exit 99
for arguments in '' "$at/sums" "-n 0 $at/sums x.so" "-n 1.5 $at/sums x.so" \
	"-g x $at/sums x.so" "-n" "--none $at/sums x.so"; do
	# shellcheck disable=SC2086 # lists of words
	run "$tools/evc-worker" $arguments
	check "evc-worker $arguments: wrong use" test $status -eq 2
done

for tool in evc-worker evc-cluster; do
	run "$tools/$tool" --version
	check "$tool --version" told "^$tool [0-9]+\\.[0-9]+\\.[0-9]+\$"
done

# ---- evcoord-redis(7) ------------------------------------------------------------

# The rights that it names are those that were measured.
words_of() {
	tr -s ' \t' '\n' | grep '^+' | sort
}
page=$top/man/evcoord-redis.7
measured=$top/tests/redis/acl.list
sed -n '/^ACL SETUSER/,/^\.Ed/p' "$page" | words_of >"$tmp/page"
grep '^coordinator' "$measured" | words_of >"$tmp/measured"
check 'evcoord-redis(7): the rights of a coordinator' \
	diff "$tmp/measured" "$tmp/page"
{
	cat "$tmp/page"
	sed -n '/^A node needs the same/{n;p;}' "$page" | words_of
} | sort | uniq -u >"$tmp/node.page"
grep '^node' "$measured" | words_of >"$tmp/measured"
check 'and of a node' diff "$tmp/measured" "$tmp/node.page"

# ---- doc/cluster.md, and the demo ------------------------------------------------

# Its five lines, with a port and folders of this test's: the first starts a
# server, which is here already.
awk '/^    redis-server --port/ { open = 1; next }
	/^$/ { open = 0 }
	open { sub(/^    /, ""); print }' "$top/doc/cluster.md" |
	sed "s|redis://127.0.0.1:6400|$at|; s|^wordcount|$bin/&|
		s|^evc-|$tools/&|; s|/usr/include|$tree|" >"$tmp/lines"
echo 'wait' >>"$tmp/lines"
check 'doc/cluster.md has them' test "$(wc -l <"$tmp/lines")" -eq 5
run sh -e "$tmp/lines"
check 'the lines of doc/cluster.md work' test $status -eq 0
check 'they count, and clean' told 'keys of the namespace words are deleted'
check 'workers were killed' said 'kill -9 [0-9]+, which is worker'

EVC_EXAMPLES=$bin EVC_TOOLS=$tools run sh "$top/examples/demo-redis.sh"
check 'the demo' test $status -eq 0
check 'counts right' told '^demo-redis: no word is missing$'

exit $((failures != 0))
