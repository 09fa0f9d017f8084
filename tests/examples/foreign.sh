#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "foreign_loop": a program without libev that stops by two
# descriptors, whether the program asks for it or a signal does.
. "$(dirname "$0")/common.sh"

# by_signal EXPECTED PROGRAM ARGUMENT...: like try, but SIGTERM ends it, and its
# input does not end.
by_signal() {
	name=$1
	shift
	rm -f "$tmp/in"
	mkfifo "$tmp/in" || exit 99
	program=$1
	shift
	"$examples/$program" "$@" <>"$tmp/in" >"$tmp/raw" 2>&1 &
	pid=$!
	tries=0
	until hears $pid; do
		tries=$((tries + 1))
		if [ $tries -gt 1000 ]; then
			echo "FAIL $program: no handler"
			kill -KILL $pid
			failed=1
			return
		fi
		sleep 0.02
	done
	kill -TERM $pid
	wait $pid
	status=$?
	normalise <"$tmp/raw" >"$tmp/text"
	if [ $status -ne 0 ] || ! diff -u "$expected/$name.txt" "$tmp/text"; then
		echo "FAIL $program $* with SIGTERM: status $status; it was:"
		cat "$tmp/raw"
		failed=1
	else
		echo "ok $program $* with SIGTERM"
	fi
}

printf 'some\ninput\n' >"$tmp/input"
try 0 foreign_loop foreign_loop <"$tmp/input"
by_signal foreign_loop-signal foreign_loop

# It is there to show how little it takes.
n=$(awk -f "$(dirname "$0")/../lint/strip.awk" \
	"$(dirname "$0")/../../examples/foreign_loop.c" |
	sed 's/^[^:]*:[0-9]*://' | grep -c '[^[:space:]]')
if [ "$n" -gt 0 ] && [ "$n" -le 50 ]; then
	echo "ok foreign_loop.c has $n lines"
else
	echo "FAIL foreign_loop.c has $n lines of code, 50 are allowed"
	failed=1
fi

exit $failed
