#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# machines.sh - wordcount over Redis on four machines, as far as one can play them:
# network namespaces with a bridge between them, one for the server, one for the
# coordinator, and two for nodes, which have processes and a host name of their own
# as well, so that nobody can see the death of one but by its lease.  A worker of
# one is killed, the network of the other one fails; the sums are exact.
#
# For root alone, and with ip(8) and unshare(1); else it says so and ends with 77.
# shellcheck disable=SC2154 # bin, tmp, failures, others, redis, tools: lib.sh, redis_lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$here/redis_lib.sh"

[ "$(id -u)" = 0 ] || skip 'it needs root, for network namespaces'
command -v ip >/dev/null || skip 'no ip (Debian: iproute2)'
command -v unshare >/dev/null || skip 'no unshare (Debian: util-linux)'

# ---- the machines ----------------------------------------------------------------

name=em$(($$ % 60000))
net=10.$((60 + $$ / 250 % 40)).$(($$ % 250))

take_down() {
	local machine

	cleanup
	for machine in s c a b; do
		ip netns pids $name$machine | xargs -r kill -KILL
		ip netns del $name$machine
	done >/dev/null 2>&1
	ip link del $name >/dev/null 2>&1
}
trap take_down EXIT

# machine LETTER NUMBER: with that address.
machine() {
	ip netns add $name"$1" &&
		ip link add $name"$1" type veth peer name eth0 \
			netns $name"$1" &&
		ip link set $name"$1" master $name up &&
		ip -n $name"$1" addr add $net."$2"/24 dev eth0 &&
		ip -n $name"$1" link set lo up &&
		ip -n $name"$1" link set eth0 up
}

{
	ip link add $name type bridge && ip addr add $net.254/24 dev $name &&
		ip link set $name up && machine s 1 && machine c 2 &&
		machine a 3 && machine b 4
} >"$tmp/ip" 2>&1 || skip "no network namespaces here: $(head -n 1 "$tmp/ip")"

# on LETTER COMMAND...
on() {
	exec ip netns exec $name"$1" "${@:2}"
}

on s "$redis" --port 6400 --bind 0.0.0.0 --protected-mode no --save '' \
	--appendonly no --dir "$tmp" >"$tmp/redis" 2>&1 &
others+=("$!")
at=redis://$net.1:6400/words

# node LETTER
node() {
	on "$1" unshare --pid --fork --kill-child --mount-proc --uts \
		sh -c 'hostname "$1"; shift; exec "$@"' sh "machine-$1" \
		"$bin/wordcount" --worker -n 2 "$at" >"$tmp/node$1" 2>&1 &
	others+=("$!")
}

# below PID: all processes that come from it.
below() {
	local child

	for child in $(sed -n 's/^\([0-9]*\) (.*) [A-Z] '"$1"' .*/\1/p' \
		/proc/[0-9]*/stat 2>/dev/null); do
		echo "$child"
		below "$child"
	done
}

# ---- words -----------------------------------------------------------------------

tree=$tmp/tree
mkdir -p "$tree" || exit 99
for n in 1 2 3 4; do
	awk -v seed=$n 'BEGIN {
		srand(seed)
		for (i = 0; i < 200000; i++)
			printf "w%c%c%s", 97 + int(rand() * 26),
				97 + int(rand() * rand() * 26),
				rand() < 0.1 ? "\n" : " "
	}' >"$tree/$n"
done
cat "$tree"/* | tr -cs '[:alpha:]' '[\n*]' | grep . | sort | uniq -c |
	awk '{ print $1, $2 }' >"$tmp/want"

# status_has PATTERN: evc-cluster says so.
status_has() {
	"$tools/evc-cluster" status "$at" >"$tmp/status" 2>&1
	grep -qE -e "$1" "$tmp/status"
}

# Do both nodes run something?
both_run() {
	status_has 'pid [0-9]+ on machine-a, live' &&
		grep -q 'pid [0-9]* on machine-b, live' "$tmp/status" &&
		[ "$(grep -c 'pid [0-9]* *runs ' "$tmp/status")" -ge 3 ]
}

node a
killed=${others[-1]}
node b
{
	(on c "$bin/wordcount" -v --nap 1 --all "$at" "$tree") \
		>"$tmp/words" 2>"$tmp/said"
	echo $? >"$tmp/code"
} &
check 'nodes of two machines run functions' until_true both_run

# The last one is a worker: its node has come before it.
victim=$(below "$killed" | tail -n 1)
check 'kill -9 of a worker' kill -KILL "${victim:-none}"
check 'that is told' until_true grep -q 'killed by signal 9' "$tmp/said"
check 'another worker is there' until_true both_run
check 'the network of the other machine fails' ip link set ${name}b down

check 'the words are counted' until_true test -s "$tmp/code"
cat "$tmp/said"
check 'with status 0' grep -qx 0 "$tmp/code"
check 'each as often as it is there' cmp "$tmp/want" "$tmp/words"
check 'that node was fenced by its lease' \
	grep -q 'is fenced: its lease is over' "$tmp/said"

# connected_twice: says the node that was cut off.
connected_twice() {
	[ "$(grep -c 'connected to' "$tmp/nodeb")" -ge 2 ]
}

ip link set ${name}b up
check 'it comes back' until_true connected_twice
check 'and all can be cleaned' "$tools/evc-cluster" clean "$at"

exit $((failures != 0))
