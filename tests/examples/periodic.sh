#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "periodic": every boundary has its run or is counted as missed,
# the failing looper stops the others, and its error is the verdict.
. "$(dirname "$0")/common.sh"

# Each run says for which boundary it is.  For one looper they go up by one and
# what was missed; the counts at its end are the sums.
counts_agree() {
	awk '
	function bad(why) { print FILENAME ":" FNR ": " why ": " $0; failed = 1 }
	/: run / {
		name = $1; sub(/:/, "", name)
		if ($3 != runs[name] + 1)
			bad("the runs are not in order")
		if ($6 + 0 != next_one[name] + $7)
			bad("a boundary twice, or none for it")
		if ($11 < 0)
			bad("before its boundary")
		runs[name] = $3
		missed[name] += $7
		next_one[name] = $6 + 1
	}
	/ has ended: / {
		if (!($1 in runs) || $4 != runs[$1] || $6 != missed[$1])
			bad("not the sums of its runs")
		ended++
	}
	END {
		if (ended != 2)
			bad("not two counts")
		if (missed["steady"] != 0)
			bad("steady has missed a run")
		# More than two are missed after its third run at the latest.
		if (missed["slow"] < 3)
			bad("slow has missed none")
		exit failed
	}' "$tmp/raw"
}

"$examples/periodic" 0.02 >"$tmp/raw" 2>&1
status=$?
normalise <"$tmp/raw" | sed -n '/loopers have ended/,$s/missed [0-9]* runs/missed N runs/p' \
	>"$tmp/why"
sed -n '/loopers have ended/,$p' "$tmp/raw" >"$tmp/end"
if [ $status -ne 1 ]; then
	echo "FAIL periodic: status $status, not 1"
	failed=1
elif ! counts_agree ||
	! grep -qx '3 loopers have ended, 0 are late' "$tmp/end" ||
	! grep -q 'by member "watch" .* UNAVAILABLE (14): slow has missed N runs \[run_watch() at periodic.c:LINE\].*the verdict is UNAVAILABLE' "$tmp/why"; then
	echo "FAIL periodic: it was:"
	cat "$tmp/raw"
	failed=1
else
	echo "ok periodic"
fi
try 2 periodic-usage periodic 0
try 2 periodic-usage periodic 1 2

exit $failed
