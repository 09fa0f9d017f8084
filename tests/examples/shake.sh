#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# shake.sh - evc-shake finds what is wrong with the stop of a program, whose
# faults are planted (shaken.c), and finds nothing when nothing is wrong; its
# client counts what becomes of requests.
# shellcheck disable=SC2154 # tmp, status: lib.sh, shake_lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$(dirname -- "$0")/shake_lib.sh"
shaken=${EVC_TOP_BUILDDIR:-$bin/..}/tests/examples/shaken
seed=${EVC_SHAKE_SEED:-1}
short=(-S "$seed" -n 12 -k 2 -t 0.1)

echo "# a good program"
with_client / "${short[@]}" -g 30 -- "$shaken" good '{port}'
check "no request is cut at any moment" no_run_failed 10
check "... and there were requests" grep -q '"reached":true' "$tmp/runs"
check "... a line for each run" test "$(grep -c '"moment":' "$tmp/runs")" -eq 12
check "... the report says so" grep -q "12 moments, seed $seed: 0 failed, 12 good" \
	"$tmp/out"

echo "# planted faults"
shake "${short[@]}" -n 10 -c socket,bind,listen,poll -g 0.3 \
	"$shaken" hang '{port}'
check "a hang after a stop during the set-up" fault_found hangs '@1"'
moment=$(sed -n 's/^FAILED  \(.*@1\): .*/\1/p' "$tmp/out" | head -n 1)
check "... before a call of the set-up: $moment" grep -qE \
	'"moment":"(socket|bind|listen)#1@1".*"hangs"' \
	"$tmp/runs"
check "... which the report names, with its thread" grep -qE \
	'^	before [a-z0-9]+ #[0-9]+ of thread 1 \(shaken\)' "$tmp/out"
check "... and how often it came again" grep -q \
	'repeated 2 times: the same moment 2, failed 2' "$tmp/out"
shake -k 3 -t 0.1 -g 0.3 -r "${moment:-none}" "$shaken" hang '{port}'
check "... by hand, too" fault_found hangs
check "... three times" grep -q \
	'repeated 3 times: the same moment 3, failed 3' "$tmp/out"
shake -t 0.1 -k 1 -g 0.3 -c poll -n 4 "$shaken" sleep '{port}'
check "a signal between the question and the sleep" fault_found hangs \
	'"moment":"poll#1@1"'
check "... with what it hangs in" fault_found hangs 'thread 1 (shaken): poll'
shake "${short[@]}" -g 0.2 -n 3 -k 1 "$shaken" never '{port}'
check "a signal that is ignored" fault_found hangs '"action":"ignored"'
with_client / "${short[@]}" -g 30 -- "$shaken" lose '{port}'
check "a request that is lost" fault_found cut
with_client / -t 0.1 -g 30 -r sendto#2@1 -k 1 -- "$shaken" lose '{port}'
check "... cut in the reply, before its body" fault_found cut \
	'[1-9][0-9]* cut in the reply'
with_client / -t 0.1 -g 30 -r 90ms -k 1 -- "$shaken" close '{port}'
check "replies that never come" fault_found cut \
	' 0 whole, .* [1-9][0-9]* closed before a reply'
words+=(-a)
with_client / -t 0.1 -g 30 -r 90ms -k 1 -- "$shaken" close '{port}'
check "... which the client forgives by -a" no_run_failed 0
shake "${short[@]}" -n 10 -c read,poll -g 30 "$shaken" leave '{port}'
check "a child that is left" fault_found left-process \
	'process [0-9]* (shaken) is left'
pid=$(sed -n 's/.*process \([0-9]*\) (shaken) is left.*/\1/p' "$tmp/runs" |
	head -n 1)
check "... and killed" ended "${pid:-self}"
shake "${short[@]}" -g 30 -n 5 "$shaken" zombie '{port}'
check "a child that nobody waits for" fault_found zombie
shake "${short[@]}" -g 30 -n 5 "$shaken" files '{port}'
check "a file that is left" fault_found left-file 'left in TMPDIR: shaken'
shake "${short[@]}" -c brk,pipe,pipe2,poll -g 30 "$shaken" crash '{port}'
check "a crash" fault_found crashed 'Segmentation fault'
shake "${short[@]}" -g 30 -n 5 "$shaken" status '{port}'
check "a status that is not allowed" fault_found status 'exit status 3'
shake "${short[@]}" -g 30 -n 5 -e 0,3 "$shaken" status '{port}'
check "... and is by --status" no_run_failed 5

echo "# programs that know nothing of signals"
shake -t 0.05 -n 10 sleep 60
check "a death by default is good" no_run_failed 5
check "... and is counted" grep -q 'before a handler was there' "$tmp/out"
shake -n 5 sh -c 'exit 4'
check "a program that ends by itself, with an error" fault_found status \
	'exit status 4'
# shellcheck disable=SC2016 # for that shell
shake -t 2 -n 3 -k 1 sh -c 'trap "trap - TERM; kill \$\$" TERM
	sleep 60 & wait; sleep 60 & wait'
check "a death by the signal with a handler is a fault" fault_found status \
	'killed by Terminated'

# shellcheck disable=SC2016 # likewise
early=(-t 2 -n 4 -k 1 sh -c 'echo >"$TMPDIR/file"; exec sleep 60')
shake "${early[@]}"
check "a file that the default action leaves" fault_found left-file
shake -i "${early[@]}"
check "... is forgiven by -i" no_run_failed 4

echo "# seeds"
# calls SEED: the calls before which the signal came.
calls() {
	shake -t 30 -n 10 -S "$1" true
	grep -o '"moment":"[^"]*#[^"]*"' "$tmp/runs"
}
calls 3 >"$tmp/three"
calls 3 >"$tmp/again"
calls 4 >"$tmp/four"
check "a seed means the same calls" cmp "$tmp/three" "$tmp/again"
check "... there were some" test -s "$tmp/three"
check "... and another one other calls" test "$(cat "$tmp/three")" != \
	"$(cat "$tmp/four")"

echo "# an end before its time"
"$tool" -t 60 -l 'echo $$ >"$TMPDIR/load.pid"; exec sleep 61' sleep 62 \
	>"$tmp/out" 2>"$tmp/err" &
server=$!
check "a run begins" until_true test -s "$tmp/load.pid"
kill -TERM $server
wait $server
check "SIGTERM ends the tool: status 143" test $? -eq 143
server=''
check "... and the load" ended "$(cat "$tmp/load.pid")"

echo "# how it is called"
for words in '' '-x' '-r nothing true' '-r nocall#1@1 true' '-n 0 true' \
	'-c nocall true' '-e 256 true' '-s NOTHING true'; do
	# shellcheck disable=SC2086 # a list of words
	"$tool" $words >"$tmp/out" 2>"$tmp/err"
	check "'$words': status 2" test $? -eq 2
	check "... and why" test -s "$tmp/err"
done
shake "$tmp/nothing"
check "no program: status 3" test $status -eq 3
check "... and why" grep -q 'nothing: No such file' "$tmp/err"
check "--version says it" grep -q '^evc-shake [0-9]' <("$tool" --version)
"$client" ftp://x >"$tmp/out" 2>"$tmp/err"
check "the client, with no such address: status 2" test $? -eq 2
check "nothing is left in TMPDIR" test -z \
	"$(find "$tmp" -name 'evc-shake.*')"
exit $((failures != 0))
