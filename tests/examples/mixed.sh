#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "mixed": the report shows the tree, everything in it ends at one
# stop, and the child process is gone.
. "$(dirname "$0")/common.sh"

# report N: the tree of the Nth report, a line each: the indent, and the name.
report() {
	awk -v n="$1" '
		/^coordinator / { seen++ }
		/members have ended/ { exit }
		seen == n' "$tmp/raw"
}

tree() {
	report "$1" | sed -n 's/^\( *\)[#a-z0-9 ]*"\([^"]*\)".*/\1\2/p'
}

fail() {
	echo "FAIL mixed: $*; it was:"
	cat "$tmp/raw"
	failed=1
}

"$examples/mixed" 0.05 >"$tmp/raw" 2>&1
status=$?
[ $status -eq 0 ] || fail "status $status"

cat >"$tmp/want" <<'END'
mixed
  heartbeat
  loops
    loop-2
    pulse
  threads
    sleeper
    reader
    veteran
    tell veteran
  processes
    child
END
tree 1 >"$tmp/tree"
diff -u "$tmp/want" "$tmp/tree" || fail "not this tree before the stop"
report 1 | grep -q stopping && fail "it is stopping already"

# Hooks stay, for another round.
cat >"$tmp/want" <<'END'
mixed
  loops
  threads
    tell veteran
  processes
END
tree 2 >"$tmp/tree"
diff -u "$tmp/want" "$tmp/tree" || fail "not this tree after the stop"
for part in '"mixed", .*joined, 1' '"loops", .*stopping, 2' \
	'"threads", .*stopping, 3' '"processes", .*stopping, 1'; do
	report 2 | grep -q "$part ended" || fail "not $part ended"
done
grep -qx '7 members have ended, 0 are late: it has run long enough' \
	"$tmp/raw" || fail "not all have ended"
[ "$(report 2 | grep -c ' parent OK (0) by "mixed"')" = 3 ] ||
	fail "the scopes were not told by their parent"

child=$(report 1 | sed -n 's/.*"child" pid \([0-9]*\),.*/\1/p')
if [ -z "$child" ]; then
	fail "no pid of a child"
elif grep -qs sleep "/proc/$child/comm"; then
	fail "the child $child runs"
fi
# A signal at whatever moment, in the set-up or after it, leaves no process.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	for delay in 0 0.00$((i % 10)) 0.0$i; do
		EVC_MIXED_TEST=$$ "$examples/mixed" 1 >/dev/null 2>&1 &
		sleep $delay
		kill -TERM $! 2>/dev/null
		wait $! 2>/dev/null
	done
done
for child in $(grep -lsz "^EVC_MIXED_TEST=$$\$" /proc/[0-9]*/environ |
	tr -dc '0-9\n'); do
	fail "the process $child is left by a signal"
	kill -KILL "$child"
done
[ $failed -ne 0 ] || echo "ok mixed"
try 2 mixed-usage mixed -1
try 2 mixed-usage mixed 1 2

exit $failed
