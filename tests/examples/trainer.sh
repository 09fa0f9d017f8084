#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# trainer.sh - the example "trainer": a cluster learns what one thread learns, on
# threads and on processes, also when those are killed; it is stopped, and goes on
# from its checkpoint.  On Redis it is in redis.sh.
# shellcheck disable=SC2154 # bin, tmp, failures, status: lib.sh, run_lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$here/run_lib.sh"

program=("$bin/trainer")

# told TEXT: the last run has written a line like that to standard output.
told() {
	grep -qE -e "$1" "$tmp/out" && return
	cat "$tmp/out" "$tmp/err"
	return 1
}

# learns TEXT: the last run has learnt what one thread has, with each batch once.
learns() {
	check "$1: the loss is that of one thread" test $status -eq 0
	check "$1: each batch counts once" told \
		'^batches +[1-9][0-9]*, of which 0 do not count exactly once$'
	check "$1: nothing is in conflict" told '^conflicts +0$'
}

quick=$(many --quick --samples=6000) total=$(many 400000 24000)

for address in threads://4 processes://4 processes://1; do
	run "$quick" $address
	learns $address
	check "$address: nobody dies" told \
		'^kill -9 +0 times; 0 workers died$'
done
run "$quick" --kill --plot "$tmp/plot.svg"
learns 'workers are killed'
check 'and they were' told '^kill -9 +[1-9].* [1-9][0-9]* workers died$'
check 'a plot has two curves' \
	test "$(grep -c '^<polyline' "$tmp/plot.svg")" -eq 2
check 'and an end' test "$(tail -n 1 "$tmp/plot.svg")" = '</svg>'
run --samples 3000 --batch 7 --seed 5 --plot "$tmp/none/plot.svg" threads://2
check 'a plot that cannot be written is an error' test $status -eq 1
check 'which is said' said "^trainer: $tmp/none/plot.svg: No such file"
check 'of a run with batches of 7' told '^batches +428, of which 0 '

# ---- the stop, and the checkpoint ------------------------------------------------

go_on=(--samples "$total" --checkpoint "$tmp/model")
: >"$tmp/out"
start --kill "${go_on[@]}"
check 'it trains' until_true grep -qE "^ +$((total / 20)) " "$tmp/out"
kill -INT "$server"
end
check 'SIGINT stops it' test $status -eq 130
check 'which is said' said '^trainer: SIGINT from pid .*to go on: the same once'
run --seed 2 "${go_on[@]}"
check 'the checkpoint is not one of another seed' test $status -eq 1
check 'which is said, too' said '^trainer: .*/model is of another training$'
run "${go_on[@]}"
learns 'it goes on from the checkpoint'
check 'not from the beginning' told \
	"^[1-9][0-9]* of $((total / 100)) batches are done by the checkpoint\$"
run "${go_on[@]}" threads://2
learns 'all is done'
check 'by the checkpoint' told \
	"^$((total / 100)) of $((total / 100)) batches are done by the checkpoint\$"

# ---- wrong use -------------------------------------------------------------------

run --kill threads://4
check 'threads are not killed' test $status -eq 2
check 'which is said' said '^trainer: threads cannot be killed;'
for arguments in '--samples 0' '--samples 100' '--batch 0' '--batch x' \
	'--batch 1.5' '--batch 100000' '--seed -1' '-n 2' '--worker' '--none' \
	'threads://1 threads://2'; do
	# shellcheck disable=SC2086 # lists of words
	run $arguments
	check "'$arguments' is wrong use" test $status -eq 2
done
run nowhere://4
check 'an address that nobody serves' test $status -eq 1
check 'is named' said '^trainer: .*nowhere'
run --worker threads://4
check 'no worker comes to threads' test $status -eq 1

exit $((failures != 0))
