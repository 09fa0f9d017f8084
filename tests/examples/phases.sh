#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "phases": the parts stop one after the other, so that no line of
# the log is lost; one that does not end holds up the others for its limit.
. "$(dirname "$0")/common.sh"

# Nobody is told before those whose phase is earlier; with a limit, those after
# the requests not before it is over.
times_in_order() {
	awk -v limit="$1" '
		/^phase / {
			if ($6 < last + ($3 == "database:" ? limit : 0)) {
				print "too early: " $0
				failed = 1
			}
			last = $6
			n++
		}
		END { exit failed || n != 4 }' "$tmp/raw" || {
		echo "FAIL phases: not in this order:"
		cat "$tmp/raw"
		failed=1
	}
}

try 0 phases phases
times_in_order 0
try 124 phases-stuck phases --stuck
times_in_order 0.999
try 2 phases-usage phases now

exit $failed
