#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# demo-redis.sh - words counted on two "machines", by a Redis server: what
# `make demo-redis` runs.
#
# Needs the built example `wordcount`, the tool `evc-cluster` and a redis-server
# (or valkey-server); no server that is there already is touched.  The folder of
# the examples is the first argument, else the environment variable EVC_EXAMPLES,
# else build/examples beside the folder of this script; the tools are in
# ../tools beside it, or in EVC_TOOLS.
#
# It starts a server on a free port, with a temporary folder, and two nodes of two
# workers each: so they would run on two machines.  Then the words of some text
# are counted; in the middle of it a worker is killed with kill -9, and a whole
# node.  The sums are compared with those of tr, sort and uniq.
#
# Exit status: 0; 1 if the sums are not the same, or something else went wrong.

set -u

if [ "${1-}" = --help ]; then
	echo "usage: demo-redis.sh [FOLDER]"
	echo "a cluster over a Redis server counts right;"
	echo "FOLDER has the built examples (build/examples);"
	echo "EVC_TOOLS in the environment is the folder of evc-cluster"
	exit
fi

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
bin=${1:-${EVC_EXAMPLES:-$here/../build/examples}}
tools=${EVC_TOOLS:-$bin/../tools}
pids=''
failed=0

for program in "$bin/wordcount" "$tools/evc-cluster"; do
	if [ ! -x "$program" ]; then
		echo "demo-redis: no $program: build it, or name its folder" >&2
		exit 1
	fi
done
server=''
for program in "${REDIS_SERVER:-}" redis-server valkey-server; do
	[ -n "$server" ] || server=$(command -v "${program:-none}")
done
if [ -z "$server" ]; then
	echo "demo-redis: no redis-server (Debian: redis-server): run" \
		"./bootstrap demo-redis" >&2
	exit 1
fi

tmp=$(mktemp -d) || exit 1

# shellcheck disable=SC2317 # called by the trap
cleanup() {
	for pid in $pids; do
		kill -TERM "$pid" 2>/dev/null
	done
	wait
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "demo-redis: FAILED: $*"
	failed=1
}

# until_true COMMAND...: for ten seconds.
until_true() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -le 200 ] || return 1
		sleep 0.05
	done
}

# start_server: on a port that nobody has; one that is taken ends it at once.
start_server() {
	port=$((20000 + $$ % 10000))
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		port=$((port + 7))
		"$server" --port $port --bind 127.0.0.1 --save '' \
			--appendonly no --dir "$tmp" >"$tmp/server" 2>&1 &
		pid=$!
		until_true asked_or_gone $pid
		if kill -0 $pid 2>/dev/null; then
			pids="$pids $pid"
			return
		fi
	done
	cat "$tmp/server" >&2
	exit 1
}

asked_or_gone() {
	! kill -0 "$1" 2>/dev/null || grep -q 'Ready to accept' "$tmp/server"
}

make_text() {
	mkdir "$tmp/text" || return
	if ! cat /usr/share/common-licenses/* >"$tmp/some" 2>/dev/null; then
		awk 'BEGIN {
			for (i = 0; i < 60000; i++)
				printf "%c%c%c%s", 97 + i % 26,
					97 + int(i * i / 7) % 26,
					97 + int(i / 11) % 26,
					i % 9 ? " " : "\n"
		}' >"$tmp/some"
	fi
	copies=$((4000000 / $(wc -c <"$tmp/some") + 1))
	while [ $copies -gt 0 ]; do
		cp "$tmp/some" "$tmp/text/$copies" || return
		copies=$((copies - 1))
	done
}

# status: what evc-cluster says.
status() {
	"$tools/evc-cluster" status "$on"
}

# runs: is there a worker that runs something?
runs() {
	status >"$tmp/status" 2>&1
	grep -q 'pid .* runs ' "$tmp/status"
}

# workers N: are so many there?
workers() {
	status >"$tmp/status" 2>&1
	[ "$(grep -c '^  .*pid ' "$tmp/status")" -ge "$1" ]
}

echo "== a server and two nodes, as on three machines"
start_server
on=redis://127.0.0.1:$port/words
echo "server   $("$server" --version | sed 's/ sha.*//'), port $port, keeps" \
	"nothing"
nodes=''
for n in 1 2; do
	"$bin/wordcount" --worker -n 2 "$on" >"$tmp/node$n" 2>&1 &
	pids="$pids $!"
	nodes="$nodes $!"
	echo "node $n   pid $!, 2 workers: wordcount --worker -n 2 $on"
done

echo
echo "== wordcount -v --nap 0.25 --all $on TEXT"
make_text || fail "there is no text"
du -sh "$tmp/text" | awk '{ print $1 " of text; each chunk of 64 kB" \
	" takes 0.25 s longer than it has to" }'
"$bin/wordcount" -v --nap 0.25 --all "$on" "$tmp/text" \
	>"$tmp/words" 2>"$tmp/said" &
counting=$!
pids="$pids $counting"
until_true workers 4 || fail "the workers do not come"
until_true runs || fail "nothing runs"
sleep 1

echo
echo "== evc-cluster status $on"
status

echo
victim=$(status | sed -n 's/^  .*pid \([0-9]*\) *runs .*/\1/p' | head -n 1)
echo "== kill -9 $victim, a worker"
kill -KILL "${victim:-0}" || fail "there is no worker"
sleep 1
victim=${nodes##* }
echo "== kill -9 $victim, a node with its two workers"
kill -KILL "$victim" || fail "there is no node"
sleep 0.5
status

echo
echo "== what it says"
wait $counting
code=$?
cat "$tmp/said"
cat "$tmp"/text/* | LC_ALL=C tr -cs '[:alpha:]' '[\n*]' |
	LC_ALL=C tr '[:upper:]' '[:lower:]' | grep . | LC_ALL=C sort |
	uniq -c | awk '{ print $1, $2 }' >"$tmp/want"
total='{ n += $1 } END { print n + 0 " words, " NR " different ones" }'
echo "the cluster has counted         $(awk "$total" "$tmp/words")"
echo "tr | sort | uniq -c             $(awk "$total" "$tmp/want")"
[ $code -eq 0 ] || fail "wordcount ends with $code"
if cmp "$tmp/words" "$tmp/want"; then
	echo "the same sum for each word      yes"
else
	fail "the sums are not the same"
fi

echo
echo "== kill -TERM, the other node; evc-cluster clean $on"
victim=${nodes# }
victim=${victim%% *}
kill -TERM "$victim"
wait "$victim"
code=$?
[ $code -eq 0 ] || fail "the node ends with $code"
"$tools/evc-cluster" clean "$on" || fail "there is something left"
[ $failed -eq 0 ] && echo "demo-redis: no word is missing"
exit $failed
