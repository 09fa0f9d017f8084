# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# shake_lib.sh - what the tests of evc-shake share; sourced behind lib.sh.
# shellcheck disable=SC2154 # bin, tmp: lib.sh
tool=${EVC_TOOLS:-$bin/../tools}/evc-shake
client=$tool-client
if [ ! -x "$tool" ] || [ ! -x "$client" ]; then
	echo "no $tool"
	exit 99
fi
TMPDIR=$tmp
export TMPDIR

"$tool" -n 1 -t 0.01 true >"$tmp/out" 2>"$tmp/err"
if [ $? -eq 3 ]; then
	echo "SKIP ${0##*/}: $(cat "$tmp/err")"
	exit 77
fi

# shake OPTION... PROGRAM ARGUMENT...: sets status; the report is in out, a line
# for each run in runs.
shake() {
	rm -f "$tmp/runs"
	"$tool" -j "$tmp/runs" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
}

# with_client OPTION... -- PROGRAM ARGUMENT...: likewise, with our client beside
# it, whose further words are in the array words.
words=(-c 2)
with_client() {
	local path=$1

	shift
	shake -l "'$client' ${words[*]} http://127.0.0.1:\$EVC_SHAKE_PORT$path" \
		"$@"
}

# shown: the report, when it is not what was wanted.
shown() {
	sed 's/^/    /' "$tmp/out" "$tmp/err"
	return 1
}

# no_run_failed MOST: none has, and the moments came: all but MOST of them.
no_run_failed() {
	[ $status -eq 0 ] && [ ! -s "$tmp/err" ] &&
		[ "$(grep -c '"reached":false' "$tmp/runs")" -le "$1" ] ||
		shown
}

# fault_found NAME [TEXT]: a run had this fault, and TEXT is in its line.
fault_found() {
	[ $status -eq 1 ] && grep "\"faults\":\[[^]]*\"$1\"" "$tmp/runs" \
		>"$tmp/found" && grep -q -e "${2-}" "$tmp/found" || shown
}
