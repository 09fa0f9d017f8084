#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "workers": as little as it takes, and two groups with all that
# they may have, up to the exit that stops them.
. "$(dirname "$0")/common.sh"

try 0 workers-basic workers basic

# The loggers' lines go to standard error, one for each call.
for arguments in groups ''; do
	# shellcheck disable=SC2086 # a word, or none
	"$examples/workers" $arguments >"$tmp/out" 2>"$tmp/err"
	status=$?
	cat "$expected/workers-groups.txt" >"$tmp/want"
	[ -n "$arguments" ] ||
		cat "$expected/workers-basic.txt" "$expected/workers-groups.txt" \
			>"$tmp/want"
	if [ $status -ne 0 ] || ! diff -u "$tmp/want" "$tmp/out"; then
		echo "FAIL workers $arguments: status $status"
		cat "$tmp/err"
		failed=1
	else
		echo "ok workers $arguments"
	fi
	number='[0-9]+\.[0-9]+'
	if ! grep -q '^train: ' "$tmp/err" || ! grep -q '^test: ' "$tmp/err" ||
		grep -vqE "^(train|test):( [a-z_]+=$number)+\$" "$tmp/err"; then
		echo "FAIL workers $arguments: not what loggers write:"
		cat "$tmp/err"
		failed=1
	fi
done
try 2 workers-usage workers neither

exit $failed
