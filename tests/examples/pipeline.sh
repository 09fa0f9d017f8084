#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# pipeline.sh - the example "pipeline" beside cksum: all lines in order; the
# first ones, and the right number of them, after an error and after a stop; its
# bar, on a terminal alone.
#
# EVC_STOPS is how often it is stopped at a random moment (10).
# shellcheck disable=SC2154 # bin, tmp, failures, server: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$here/run_lib.sh"

program=("$bin/pipeline")

# first STATUS TEXT: it printed the first lines of the wanted ones, and says how
# many, and that text.
first() {
	local n

	n=$(wc -l <"$tmp/out")
	head -n "$n" "$tmp/want" >"$tmp/first"
	same "$1" "$tmp/first" && grep -q "$2" "$tmp/err" &&
		grep -qE ": the first $n of [0-9]+ files are done\$" "$tmp/err" &&
		return
	cat "$tmp/err"
	return 1
}

mkdir "$tmp/files"
for i in $(seq 1000 1099); do
	head -c $((i * 7 % 5000 * 20)) /dev/urandom >"$tmp/files/$i"
done
: >"$tmp/files/1000"
head -c 3000000 /dev/urandom >"$tmp/files/1001"
files=("$tmp"/files/*)
cksum "${files[@]}" >"$tmp/want"

run "${files[@]}"
check 'the sums are those of cksum, in order' same 0 "$tmp/want"
check 'on a pipe there is nothing else' test ! -s "$tmp/err"
run -j 1 "${files[@]}"
check 'it is the same with one thread' same 0 "$tmp/want"
run -j 100 "${files[@]}"
check 'and with more than there are files for' same 0 "$tmp/want"
cksum "${files[0]}" >"$tmp/want1"
run "${files[0]}"
check 'one file will do' same 0 "$tmp/want1"
for arguments in '' '-j 0 x' '-j x x' '-x x'; do
	# shellcheck disable=SC2086 # lists of words
	run $arguments
	check "'$arguments' is wrong use" test $status -eq 2
done

# ---- an error half way -------------------------------------------------------

run "${files[@]:0:50}" "$tmp/none" "${files[@]:50}"
check 'a file that is missing ends it: what it printed are the first files' \
	first 1 "cannot read $tmp/none: No such file or directory"
run "${files[@]:0:50}" "$tmp" "${files[@]:50}"
check 'so does a directory' first 1 "cannot read $tmp: Is a directory"
if [ -w /dev/full ]; then
	"$bin/pipeline" "${files[@]}" >/dev/full 2>"$tmp/err"
	status=$?
	check 'so does an output that is full' test $status -eq 1
	check 'of which nothing is done' grep -q \
		'cannot write: No space left on device: the first 0 of 100' \
		"$tmp/err"
else
	echo "SKIP pipeline.sh: an output that is full: no /dev/full"
fi

# ---- a stop half way ---------------------------------------------------------

has_lines() {
	[ "$(wc -l <"$tmp/out")" -ge "$1" ]
}

# The reader waits there for somebody who writes, and all others for him.
while_all_wait() {
	mkfifo "$tmp/fifo"
	start "${files[@]:0:50}" "$tmp/fifo" "${files[@]:50}"
	check 'what comes before a file that blocks is printed' until_true has_lines 50
	kill -INT "$server"
	end
	check 'a stop ends that' first 130 'SIGINT from pid'
	check 'and these are 50' test "$(wc -l <"$tmp/out")" = 50
	# The same, but it blocks in a read.
	start "${files[@]:0:50}" "$tmp/fifo" "${files[@]:50}"
	exec 9>"$tmp/fifo" # opened when the other side is
	printf x >&9
	until_true has_lines 50
	kill -TERM "$server"
	end
	exec 9>&-
	check 'so does one in the middle of a file' first 130 'SIGTERM from pid'
}

case " ${EVC_SANITIZERS-} " in
*" thread "*)
	echo "SKIP pipeline.sh: a stop while all wait: to the thread sanitizer" \
		"a handler runs when a call returns" ;;
*)
	while_all_wait ;;
esac

# reads NAME: does it read that file?
reads() {
	[ -n "$(find "/proc/$server/fd" -lname "$1" 2>/dev/null)" ]
}

start "${files[@]:0:50}" /dev/urandom
check 'a file that has no end is read' until_true reads /dev/urandom
kill -INT "$server"
end
check 'a stop ends that' first 130 'SIGINT from pid'

# Before it is the program it is a copy of the shell, which a SIGINT ends.
begun() {
	case $(readlink "/proc/$1/exe") in
	*/pipeline) true ;;
	*) ended "$1" ;;
	esac
}

stops=0
all_right=true
rounds=0
while [ $stops -lt "${EVC_STOPS:-10}" ] && [ $rounds -lt 200 ]; do
	start "${files[@]}"
	until_true begun "$server"
	sleep "0.$(printf '%03d' $((RANDOM % 60)))"
	kill -INT "$server" 2>/dev/null
	end
	rounds=$((rounds + 1))
	if [ $status -eq 0 ]; then
		same 0 "$tmp/want" || all_right=false
	elif [ -s "$tmp/err" ]; then
		first 130 'SIGINT from pid' || all_right=false
		stops=$((stops + 1))
	else # before it has asked for signals, or at its very end
		[ $status -eq 130 ] || all_right=false
	fi
done
check "$stops stops at random moments of $rounds runs: the first files, once" \
	$all_right

# ---- the bar -----------------------------------------------------------------

if ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	echo "SKIP pipeline.sh: the bar: no script(1) (Debian: bsdutils), or no" \
		"pseudoterminal"
	exit $((failures != 0))
fi
script -qec "'$bin/pipeline' $(printf "'%s' " "${files[@]}") >'$tmp/out'" \
	/dev/null </dev/null >"$tmp/bar" 2>&1
status=$?
check 'on a terminal there is a bar' \
	grep -qE '\[#+ *\] +[0-9]+%  [0-9]+ of 100 files' "$tmp/bar"
check 'which comes to its end' grep -q '100%  100 of 100 files' "$tmp/bar"
check 'and the list is the same' same 0 "$tmp/want"

exit $((failures != 0))
