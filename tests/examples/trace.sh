#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# trace.sh - evc-trace draws what is a timeline, and says of everything else
# why it does not.  What the picture of a real timeline shows is for
# tests/api/trace_svg to say.
#
# shellcheck disable=SC2154 # bin, tmp, failures: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
shopt -s lastpipe # what a check at the end of a pipe counts is counted here
. "$(dirname -- "$0")/lib.sh"

tool=${EVC_TOOLS:-$bin/../tools}/evc-trace
if [ ! -x "$tool" ]; then
	echo "SKIP trace.sh: no $tool: it is not built without jansson"
	exit 77
fi

# ---- timelines ---------------------------------------------------------------

# timeline MEMBERS [NAME [EXTRA]]: one with a stop in which they end one after
# the other; NAME, a JSON string without its quotes, is the name of all.  EXTRA
# stands behind the last event.
timeline() {
	NAME=${2-one} EXTRA=${3-} awk -v n="$1" 'BEGIN {
		name = ENVIRON["NAME"]
		printf "{\"otherData\":{\"writer\":\"evcoord 0.2.0\","
		printf "\"zero_ns\":1000000,\"written_ns\":90000000,"
		printf "\"zero_real_ns\":1700000000000000000,\"lost\":0},\n"
		printf "\"traceEvents\":[\n"
		printf lane("coordinator"), 1, name, 0, 1
		printf event("i"), 1, "stop", "request", 2000000,
			",\"who\":\"" name "\",\"text\":\"" name \
				"\",\"code\":2,\"status\":\"" name "\""
		printf event("X"), 1, "stopping", "stop", 2000000,
			",\"to_ns\":90000000"
		for (i = 2; i <= n + 1; i++) {
			end = 2000000 + 8000 * (n + 2 - i)
			printf lane("thread"), i, name, 1, i
			printf event("X"), i, name, "member", 1500000,
				",\"to_ns\":" end ",\"end_ns\":" end \
				",\"state\":\"ended\",\"progress\":\"" \
				name "\""
			printf event("X"), i, "after the stop", "state",
				2000000, ",\"to_ns\":" end
		}
		printf "{\"ph\":\"M\",\"tid\":%d,\"name\":\"end\",\"args\":{}}",
			n + 1
		printf "%s\n]}\n", ENVIRON["EXTRA"]
	}
	function lane(kind) {
		return "{\"ph\":\"M\",\"tid\":%d,\"name\":\"thread_name\"," \
			"\"args\":{\"kind\":\"" kind "\",\"label\":\"%s\"," \
			"\"of\":%d,\"id\":%d}},\n"
	}
	function event(ph) {
		return "{\"ph\":\"" ph "\",\"tid\":%d,\"name\":\"%s\"," \
			"\"cat\":\"%s\",\"args\":{\"ns\":%d%s}},\n"
	}'
}

# ---- what is drawn -----------------------------------------------------------

# xml FILE: a picture, and XML where somebody can tell.
xml() {
	grep -q '^<svg ' "$1" && [ "$(tail -n 1 "$1")" = '</svg>' ] || return
	command -v "${XMLLINT:-xmllint}" >/dev/null || return 0
	"${XMLLINT:-xmllint}" --nonet --noout "$1"
}

# draws FILE: so it is.
draws() {
	"$tool" "$1" >"$tmp/svg" 2>"$tmp/err" && [ ! -s "$tmp/err" ] &&
		xml "$tmp/svg" && return
	cat "$tmp/err"
	return 1
}

# lanes NUMBER HIDDEN: are there so many in the picture?
lanes() {
	[ "$(grep -c 'class="lane"' "$tmp/svg")" = "$1" ] &&
		grep -q "data-hidden=\"$2\"" "$tmp/svg"
}

echo "# what is drawn"
timeline 3 >"$tmp/good"
check "a timeline of three threads" draws "$tmp/good"
check "... has three lanes" lanes 3 0
cp "$tmp/svg" "$tmp/want"
"$tool" <"$tmp/good" >"$tmp/got"
check "from standard input it is the same" cmp "$tmp/got" "$tmp/want"
"$tool" -o "$tmp/file" "$tmp/good" >"$tmp/got"
check "with -o it is the same" cmp "$tmp/file" "$tmp/want"
check "... and nothing on standard output" test ! -s "$tmp/got"
cp "$tmp/good" "$tmp/file"
"$tool" -o "$tmp/file" "$tmp/file"
check "in the place of the timeline, too" cmp "$tmp/file" "$tmp/want"
timeline 0 >"$tmp/in"
check "nobody at all" draws "$tmp/in"
check "... has no lane" lanes 0 0
timeline 10000 >"$tmp/in"
check "10,000 members" draws "$tmp/in"
check "... the latest are shown" lanes 200 9800
check "... which come first in it" grep -q 'data-id="201"' "$tmp/svg"
check "... no others" test "$(grep -c 'data-id="202"' "$tmp/svg")" = 0
timeline 2 '<svg onload=\"x\"> & '"'"' ]]> \u0001\u001b[31m\u007f\u0085\ufffe\n' \
	>"$tmp/in"
check "markup and control characters in names" draws "$tmp/in"
check "... end nothing" test "$(grep -c '<svg' "$tmp/svg")" = 1
check "... and are no control characters" \
	test "$(tr -d '\n' <"$tmp/svg" | tr -dc '\001-\037\177' | wc -c)" = 0
timeline 2 "$(printf 'ä🐢%.0s' {1..500})" >"$tmp/in"
check "long names" draws "$tmp/in"
timeline 2 '' >"$tmp/in"
check "empty names" draws "$tmp/in"
timeline 3 one ',
{"ph":"X","tid":4,"name":7,"cat":[],"args":{"ns":5,"to_ns":{},"tid":"x"}},
{"ph":"X","tid":4,"name":"late","cat":"state","args":{"ns":9,"to_ns":3}},
{"ph":"?","tid":4,"args":{"ns":4611686018427387903}},
{"ph":"X","tid":4,"name":"","cat":"member",
 "args":{"ns":4611686018427387903,"end_ns":1,"state":"alive"}}' >"$tmp/in"
check "events that no library would write" draws "$tmp/in"
timeline 2 one ',
{"ph":"i","tid":3,"name":"step: told","cat":"stop","args":{"ns":2000000}},
{"ph":"i","tid":3,"name":"step: kicks","cat":"stop","args":{"ns":2005000}},
{"ph":"i","tid":3,"name":"phase 1","cat":"stop","args":{"ns":2006000}}' >"$tmp/in"
check "steps and phases of the stop" draws "$tmp/in"
check "... a step by its name alone" \
	grep -q 'class="mark step"[^>]*><title>kicks, ' "$tmp/svg"
check "... the first one is the stop itself" \
	test "$(grep -c 'class="mark step"' "$tmp/svg")" = 1
check "... a phase" \
	grep -q 'class="mark phase"[^>]*><title>phase 1, ' "$tmp/svg"

# A thread that is kicked at 2.005 ms, 2.04 ms and 2.06 ms and stays, and a join
# that gives it up.
timeline 1 stuck ',
{"ph":"i","tid":2,"name":"kick","cat":"event","args":{"ns":2005000}},
{"ph":"i","tid":2,"name":"kick","cat":"event","args":{"ns":2040000}},
{"ph":"i","tid":2,"name":"kick","cat":"event","args":{"ns":2060000}},
{"ph":"M","tid":3,"name":"thread_name","args":{"kind":"join","label":"join",
 "of":1,"id":3}},
{"ph":"X","tid":3,"name":"join","cat":"member","args":{"ns":1500000,
 "to_ns":2200000,"end_ns":2200000,"state":"ended"}},
{"ph":"X","tid":3,"name":"join","cat":"state","args":{"ns":1500000,
 "to_ns":2200000}},
{"ph":"i","tid":3,"name":"verdict","cat":"event","args":{"ns":2200000,
 "code":"LATE","stragglers":1}}' |
	sed 's/written_ns":[0-9]*/written_ns":2200000/
	s/"state":"ended","progress"/"state":"alive","progress"/
	s/2008000/2200000/g' >"$tmp/in"
check "a thread that is stuck" draws "$tmp/in"
check "... is what the join waited for" \
	grep -q '>LATE, waited for stuck</text>' "$tmp/svg"
# Where the text in the bar begins and about ends, and all strokes and lines.
inside=$(sed -n 's/.*class="inside" x="\([0-9]*\).*/\1/p' "$tmp/svg")
check "... says something in its bar" test "${inside:-0}" -gt 0
sed -n 's/.*class="mark.* d="M\([0-9]*\).*/\1/p' "$tmp/svg" >"$tmp/strokes"
grep -o 'class="kick" data-ns="[0-9]*" d="M[0-9]*' "$tmp/svg" |
	sed 's/.*M//' >>"$tmp/strokes"
check "... with three strokes, and lines" test "$(wc -l <"$tmp/strokes")" -ge 5
check "... none of them through the text" \
	awk -v at="${inside:-0}" '$1 >= at && $1 <= at + 6 * length("stuck") {
		exit 1 }' "$tmp/strokes"
check "... which stands over everything" \
	awk '/class="mark/ { line = NR } /class="inside"/ { text = NR }
		END { exit text < line }' "$tmp/svg"
# Two scopes, of which the second is told when the first has ended.
timeline 0 all ',
{"ph":"M","tid":2,"name":"thread_name","args":{"kind":"scope","label":"first",
 "of":1,"id":2}},
{"ph":"i","tid":2,"name":"stop","cat":"request","args":{"ns":2000000}},
{"ph":"X","tid":2,"name":"stopping","cat":"stop","args":{"ns":2000000,
 "to_ns":2900000}},
{"ph":"M","tid":3,"name":"thread_name","args":{"kind":"thread","label":"a",
 "of":2,"id":3}},
{"ph":"X","tid":3,"name":"a","cat":"member","args":{"ns":1500000,
 "to_ns":2800000,"end_ns":2800000,"state":"ended"}},
{"ph":"X","tid":3,"name":"after the stop","cat":"state","args":{"ns":2000000,
 "to_ns":2800000}},
{"ph":"M","tid":4,"name":"thread_name","args":{"kind":"scope","label":"second",
 "of":1,"id":4}},
{"ph":"i","tid":4,"name":"stop","cat":"request","args":{"ns":2800000}},
{"ph":"X","tid":4,"name":"stopping","cat":"stop","args":{"ns":2800000,
 "to_ns":2900000}},
{"ph":"M","tid":5,"name":"thread_name","args":{"kind":"thread","label":"b",
 "of":4,"id":5}},
{"ph":"X","tid":5,"name":"b","cat":"member","args":{"ns":1500000,
 "to_ns":2900000,"end_ns":2900000,"state":"ended"}}' |
	sed 's/written_ns":[0-9]*/written_ns":2900000/' >"$tmp/in"
check "two phases" draws "$tmp/in"
check "... the second says what it came after" \
	grep -q '>told +800.0 .*s, after first</text>' "$tmp/svg"
check "... and so does its thread" \
	grep -q 'class="inside"[^>]*>is told after first</text>' "$tmp/svg"
timeline 3 | sed 's/written_ns":[0-9]*/written_ns":4611686018427387903/;
	s/zero_ns":[0-9]*/zero_ns":4611686018427387902/;
	s/real_ns":[0-9]*/real_ns":4611686018427387903/' >"$tmp/in"
check "the largest times" draws "$tmp/in"
timeline 3 | sed 's/"[a-z_]*ns":[0-9]*/"ns":1/' >"$tmp/in"
check "hardly any times" draws "$tmp/in"

# ---- what is refused ---------------------------------------------------------

# refuses WHAT FILE PATTERN: with status 1, and with one line that says why; a
# file that would have got the picture stays.
refuses() {
	echo mine >"$tmp/file"
	"$tool" -o "$tmp/file" "$2" >"$tmp/out" 2>"$tmp/err"
	status=$?
	check "$1: status 1" test $status -eq 1
	check "... one line says why" test "$(wc -l <"$tmp/err")" = 1
	check "... namely: $(cat "$tmp/err")" grep -q "^evc-trace: .*$3" \
		"$tmp/err"
	check "... and nothing is written" \
		test "$(cat "$tmp/out" "$tmp/file")" = mine
}

# wrong WHAT PATTERN: what standard input has, likewise.
wrong() {
	cat >"$tmp/in"
	refuses "$1" "$tmp/in" "$2"
}

# nested TEXT N: so many of them.
nested() {
	awk -v s="$1" -v n="$2" 'BEGIN { while (n-- > 0) printf "%s", s }'
}

echo "# what is refused"
refuses "a file that is not there" "$tmp/nothing" 'nothing: No such file'
refuses "a folder" "$tmp" 'cannot be read: Is a directory'
wrong "nothing" 'line 1: ' </dev/null
echo hello | wrong "no JSON" 'line 1: '
wrong "a program" 'line 1: ' <"$tool"
for part in 1 100 300 700 "$(($(wc -c <"$tmp/good") - 3))"; do
	head -c "$part" "$tmp/good" | wrong "$part bytes of a timeline" 'line '
done
{ cat "$tmp/good"; echo '{}'; } | wrong "two of them" 'end of file expected'
nested '[' 1000000 | wrong "a million brackets" 'depth'
nested '{"a":' 1000000 | wrong "a million braces" 'depth'
timeline 1 one ',{"args":1e999}' | wrong "a number too large" 'overflow'
timeline 1 one ',99999999999999999999' | wrong "an integer too large" 'integer'
timeline 1 one ',{"a":1,"a":2}' | wrong "a key twice" 'duplicate'
timeline 1 '\u0000' | wrong "a name with a NUL" 'u0000'
timeline 1 '\ud800' | wrong "half a character" 'Unicode'
timeline 1 "$(printf '\377')" | LC_ALL=C wrong "no UTF-8" 'decode'
printf '{"a":\033[31m' | wrong "a terminal's sequence" 'line 1'
check "... is not repeated" test "$(tr -dc '\033' <"$tmp/err" | wc -c)" = 0
no='no timeline of evc_trace_write'
echo '{}' | wrong "an object" "$no"
echo '[[], {}, 1, null]' | wrong "an array" "$no"
echo '{"traceEvents":[]}' | wrong "another program's timeline" "$no"
echo '{"traceEvents":{},"otherData":{"writer":"evcoord 1"}}' |
	wrong "no array" "$no"
echo '{"traceEvents":[],"otherData":"evcoord 1"}' | wrong "no object" "$no"
echo '{"traceEvents":[],"otherData":{"writer":"evcoord 1"}}' |
	wrong "no event" 'without a coordinator'
none='event 8: it is none of evc_trace_write'
timeline 1 one ',7' | wrong "an event that is a number" "$none"
timeline 1 one ',{}' | wrong "an empty event" "$none"
timeline 1 one ',{"ph":"i","tid":2,"args":[]}' | wrong "no args" "$none"
timeline 1 one ',{"ph":"i","tid":1,"args":{"ns":5}}' |
	wrong "an event of the lane before" "$none"
timeline 1 one ',{"ph":"i","tid":3,"args":{"ns":5}}' |
	wrong "an event of a lane to come" "$none"
timeline 1 one ',{"ph":"i","tid":9223372036854775807,"args":{"ns":5}}' |
	wrong "a lane with the largest number" "$none"
for ns in 0 -5 1.5 '"5"' null 4611686018427387904 9223372036854775807; do
	timeline 1 one ',{"ph":"i","tid":2,"args":{"ns":'"$ns"'}}' |
		wrong "the time $ns" 'event 8: it has no time'
done
for of in 0 2 3 -1 '"1"' 9223372036854775807; do
	timeline 1 one ',{"ph":"M","tid":3,"name":"thread_name","args":{
		"kind":"thread","of":'"$of"'}}' |
		wrong "a thread of lane $of" 'event 8: its lane belongs to none'
done
timeline 1 one ',{"ph":"M","tid":3,"name":"thread_name","args":{
	"kind":"scope","of":2}}' |
	wrong "a scope in a thread" 'event 8: its lane belongs to none'
timeline 1 | sed 's/"coordinator"/"thread"/' |
	wrong "no coordinator" 'event 1: its lane belongs to none'
awk 'BEGIN {
	printf "{\"otherData\":{\"writer\":\"evcoord 1\"},\"traceEvents\":["
	for (i = 1; i <= 100000; i++)
		printf "%s{\"ph\":\"M\",\"tid\":%d,\"name\":\"thread_name\"," \
			"\"args\":{\"kind\":\"%s\",\"of\":%d}}",
			(i > 1 ? "," : ""), i,
			(i > 1 ? "scope" : "coordinator"), i - 1
	print "]}" }' | wrong "scopes without end" 'too many'

echo "# how it is called"
for words in '-x' '--nothing' '-o' "$tmp/good $tmp/good"; do
	# shellcheck disable=SC2086 # a list of words
	"$tool" $words >"$tmp/out" 2>"$tmp/err"
	status=$?
	check "$words: status 2" test $status -eq 2
	check "... and how it is used" grep -q '^usage: evc-trace ' "$tmp/err"
	check "... on standard error" test ! -s "$tmp/out"
done
"$tool" --version >"$tmp/out"
check "--version says it" grep -q '^evc-trace [0-9]' "$tmp/out"
"$tool" -o "$tmp/nowhere/file" "$tmp/good" 2>"$tmp/err"
status=$?
check "a file that cannot be made: status 1" test $status -eq 1
check "... and why" grep -q 'nowhere/file: No such file' "$tmp/err"
if [ -e /dev/full ]; then
	"$tool" "$tmp/good" >/dev/full 2>"$tmp/err"
	status=$?
	check "a full device: status 1" test $status -eq 1
	check "... and why" grep -q 'cannot be written: No space' "$tmp/err"
fi
"$tool" "$tmp/good" >&- 2>"$tmp/err"
status=$?
check "no standard output: status 1" test $status -eq 1
check "... and why" grep -q 'standard output: cannot be written' "$tmp/err"
exit $((failures != 0))
