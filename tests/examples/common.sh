# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of the examples share; read by them, not run.
#
# The built programs are in $EVC_EXAMPLES (default: "examples" below the
# current directory).  Each is run with short times; its status and its text
# are compared with what is expected, in which the parts that differ from run
# to run stand as capital words.

. "$(dirname "$0")/hears.sh"

examples=${EVC_EXAMPLES:-examples}
expected=$(dirname "$0")/expected
failed=0
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM

# File and function names stay; ids, times and lines do not.
normalise() {
	sed -E \
		-e 's/(thread|tid|pid|uid) [0-9]+/\1 N/g' \
		-e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/TIME/g' \
		-e 's/[0-9]+\.[0-9]+ s/SECONDS s/g' \
		-e 's/[^ (]*\/([a-z_]+\.c):[0-9]+/\1:LINE/g' \
		-e 's/([ (])([a-z_]+\.c):[0-9]+/\1\2:LINE/g'
}

# try STATUS EXPECTED PROGRAM ARGUMENT...
# Run it; its text, both streams together, has to be the file EXPECTED.txt, its
# status STATUS.
try() {
	want=$1 name=$2
	shift 2
	program=$1
	shift
	"$examples/$program" "$@" >"$tmp/raw" 2>&1
	status=$?
	normalise <"$tmp/raw" >"$tmp/text"
	if [ "$status" -ne "$want" ]; then
		echo "FAIL $program $*: status $status, not $want"
		failed=1
	elif ! diff -u "$expected/$name.txt" "$tmp/text"; then
		echo "FAIL $program $*: not the text of $name.txt; it was:"
		cat "$tmp/raw"
		failed=1
	else
		echo "ok $program $*"
	fi
}
