#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "cluster": the same on threads and on processes, however many.
. "$(dirname "$0")/common.sh"

try 0 cluster-threads cluster
try 0 cluster-threads cluster threads
try 0 cluster-processes cluster processes 2

# But for the first line it is always the same.
sed 1d "$expected/cluster-threads.txt" >"$tmp/want"
for engine in threads processes; do
	for n in 1 7; do
		"$examples/cluster" $engine $n >"$tmp/out" 2>&1
		status=$?
		sed 1d "$tmp/out" >"$tmp/text"
		if [ $status -ne 0 ] || ! diff -u "$tmp/want" "$tmp/text" ||
			[ "$(head -n 1 "$tmp/out")" != "$engine://$n" ]; then
			echo "FAIL cluster $engine $n: status $status"
			failed=1
		else
			echo "ok cluster $engine $n"
		fi
	done
done

try 2 cluster-usage cluster redis
try 2 cluster-usage cluster threads 0
try 2 cluster-usage cluster threads 2 3

exit $failed
