#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# cxx.sh - the examples in C++: echo_cc answers until its stop, and then all that
# it has got; pipeline_cc counts as wc does, and what it has begun at a stop.
#
# shellcheck disable=SC2154 # bin, tmp, failures, server: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$here/run_lib.sh"

if [ ! -x "$bin/echo_cc" ]; then
	echo "SKIP cxx.sh: no examples in C++: no C++17"
	exit 77
fi

# ---- echo --------------------------------------------------------------------

program=("$bin/echo_cc")

has_port() {
	port=$(sed -n 's/^port //p' "$tmp/out")
	[ -n "$port" ]
}

# connect: one more connection, which has been answered once.
connect() {
	exec {fd}<>"/dev/tcp/127.0.0.1/$port"
	echo hello >&"$fd"
	read -r -t $limit answer <&"$fd"
	[ "$answer" = hello ] && fds+=("$fd")
}

fds=()
: >"$tmp/out" # the port of the last one is in it
start
check 'echo_cc listens' until_true has_port
for i in $(seq 20); do
	connect
done
"$bin/echo_cc" "$port" 2>"$tmp/second"
check 'a port that another one has' grep -q '^cannot listen: Addr' "$tmp/second"
check '20 connections are answered' test ${#fds[@]} = 20
head -c 3000 /dev/zero | tr '\0' x >"$tmp/sent"
# The connections end in the same turn; those that have sent nothing, too.
for fd in "${fds[@]:0:10}"; do
	cat "$tmp/sent" >&"$fd"
done
kill -TERM "$server"
for fd in "${fds[@]}"; do
	timeout $limit cat <&"$fd" >"$tmp/got.$fd"
done
end
for fd in "${fds[@]:0:10}"; do
	cmp "$tmp/sent" "$tmp/got.$fd" || failures=$((failures + 1))
done
check 'the others are ended' test ! -s "$tmp/got.${fds[10]}"
check 'a stop ends it' test "$status" = 0
check 'and it says why' said '^SIGTERM from pid'
for fd in "${fds[@]}"; do
	exec {fd}>&-
done

# Nobody takes what this one is sent.
fds=()
: >"$tmp/out" # the port of the last one is in it
start
until_true has_port
connect
exec {fd}>&-
connect
head -c 100000000 /dev/zero >&"$fd" 2>"$tmp/writer" &
others+=($!)
# full: bytes wait in both directions at the server's end, and for 25 looks no
# byte goes.
before='' looks=0
full() {
	local now

	now=$(awk -v port="$(printf ':%04X' "$port")" '
		$2 ~ port "$" && $4 == "01" && $5 !~ /00000000/ { print $5 }' \
		/proc/net/tcp)
	looks=$((looks + 1))
	[ -n "$now" ] && [ "$now" = "$before" ] || looks=0
	before=$now
	[ $looks -ge 25 ]
}
check 'all buffers are full' until_true full
kill -TERM "$server"
end
check 'a connection that takes nothing is cut' test "$status" = 0
check 'after its grace' said 'after 2[.]'
exec {fd}>&-
run x y
check 'wrong use' test $status = 2

# ---- pipeline ----------------------------------------------------------------

program=("$bin/pipeline_cc")
mkdir "$tmp/files"
for i in $(seq 1000 1059); do
	words "$i" $((i * 7 % 500)) >"$tmp/files/$i"
done
files=("$tmp"/files/*)
# A last line without its end counts, unlike in wc.
for file in "${files[@]}"; do
	awk -v name="$file" 'END { printf "%8d %s\n", NR, name }' "$file"
done | sort >"$tmp/want"

# counted [N]: these lines, and no more: with N, any of them, N in all.
counted() {
	grep -v ' total of ' "$tmp/out" | sort >"$tmp/got"
	sed -n 's/.* total of \([0-9]*\) files$/\1/p' "$tmp/out" >"$tmp/total"
	[ "$(cat "$tmp/total")" = "$(wc -l <"$tmp/got")" ] || return
	if [ $# = 0 ]; then
		cmp "$tmp/want" "$tmp/got"
	else
		sort -u "$tmp/got" | comm -23 - "$tmp/want" | wc -l |
			grep -qx 0
	fi
}

run "${files[@]}"
check 'pipeline_cc counts all' counted
check 'its status' test "$status" = 0
run
check 'no file' grep -qx ' *0 total of 0 files' "$tmp/out"
run "${files[@]}" "$tmp/none" "${files[@]}"
check 'a file that is not there is an error' test "$status" = 1
check 'which is named' said "^count: std::.*: $tmp/none: No such file"
check 'and nothing that was begun is lost' counted some

# All four counters are in a file that does not end, and names wait behind.
fifos=()
for i in 1 2 3 4; do
	mkfifo "$tmp/fifo$i"
	fifos+=("$tmp/fifo$i")
	printf '%8d %s\n' 1 "$tmp/fifo$i" >>"$tmp/want"
done
sort -o "$tmp/want" "$tmp/want"
start "${files[@]:0:20}" "${fifos[@]}" "${files[@]:20}"
exec 5>"$tmp/fifo1" 6>"$tmp/fifo2" 7>"$tmp/fifo3" 8>"$tmp/fifo4"
kill -INT "$server"
taken() {
	grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$server/status"
}
until_true taken
for fd in 5 6 7 8; do
	echo line >&$fd
	exec {fd}>&-
done
end
check 'a stop half way is no error' test "$status" = 0
check 'which it says' said '^stopped$'
check 'it loses nothing that was begun' counted some
# To the thread sanitizer a handler runs when a call returns: perhaps late.
case " ${EVC_SANITIZERS-} " in
*" thread "*) most=64 ;;
*) most=41 ;;
esac
check 'and begins no more than the queue had' \
	test "$(cat "$tmp/total")" -ge 24 -a "$(cat "$tmp/total")" -le $most
exit $((failures != 0))
