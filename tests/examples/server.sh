#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# server.sh - the example server stops without cutting a request.
# shellcheck disable=SC2154 # bin, tmp, server, port, status: server_lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
# shellcheck source=/dev/null
. "$(dirname -- "$0")/server_lib.sh"

mkdir "$tmp/www" || exit 99
"$bin/client" make "$tmp/www" 0 1000 4096 150000 10000000 30000000 || exit 99

echo "# a half-sent request, an idle connection, a closed port"
start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /1000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
one_of 3
check "before the stop: keep-alive" answer_is 1000 'Connection: keep-alive'
printf 'G' >&4
check "one byte of a request is read" until_true at_least 2 begun
kill -TERM "$server"
# The half-sent request keeps the server alive, so this is during the drain.
check "the idle connection is closed, not reset" all_of 3
check "... without a byte" test ! -s "$tmp/got"
check "the port is closed" until_true refused
check "the server waits for the rest of the request" kill -0 "$server"
printf 'ET /4096.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&4
check "the request is answered, the connection closed" all_of 4
check "... in full, with Connection: close" \
	answer_is 4096 'Connection: close'
exec 3>&- 4>&-
end_clean
check "both answered" test "$(count answered)" = 2
check "it is told who asked: the signal" grep -q SIGTERM "$tmp/out"
check "... and its sender" grep -q "$$" "$tmp/out"

echo "# a service manager"
if manager_starts; then
	export WATCHDOG_USEC=200000
	start_server -l 2 -g 600
	check "it is ready, and lives" until_true manager_told \
		READY=1 WATCHDOG=1 WATCHDOG=1
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	printf 'G' >&3
	check "one byte of a request is read" until_true at_least 1 begun
	kill -TERM "$server"
	check "the stop, who is left, and that it lives" until_true \
		manager_told STOPPING=1 'STATUS=stopping: ' WATCHDOG=1
	exec 3>&-
	end_server
	check "exit status 0" test "$status" -eq 0
	check "the end" until_true manager_told STOPPING=1 STATUS=stopped
	manager_ends
else
	echo "SKIP a service manager: no socat"
fi

echo "# a hash that is asked for during the drain: the hasher still works"
start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /hash/1000.bin HTTP/1.1\r\n' >&3
check "half of the request is read" until_true at_least 1 begun
kill -TERM "$server"
check "the port is closed" until_true refused
check "the hasher and the log wait for the connection" until_true alive \
	'connections (phase 1)/1 task socket on home, hasher (phase 2)/hasher, log (phase 3)/log'
printf 'Host: x\r\n\r\n' >&3
check "the hash is answered" all_of 3
check "... with Connection: close" grep -q '^Connection: close' "$tmp/got"
check "... in full" grep -Eq '^crc32 [0-9a-f]{8} adler32 [0-9a-f]{8} bytes 1000$' "$tmp/got"
exec 3>&-
end_clean

# begin_long_hash: on descriptor 3; of a file that takes half an hour.
begin_long_hash() {
	truncate -s 4T "$tmp/www/long.bin" || exit 99
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	printf 'GET /hash/long.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
	check "a long hash is begun" until_true at_least 1 begun
}

echo "# a hash whose client leaves ends, and the next one is done"
start_server -l 1 -g 600
begin_long_hash
exec 3>&- 4<>"/dev/tcp/127.0.0.1/$port"
check "it was aborted by the client" until_true at_least 1 aborted
printf 'GET /hash/1000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&4
kill -TERM "$server"
check "the next one is answered" all_of 4
check "... in full" grep -q 'bytes 1000$' "$tmp/got"
exec 4>&-
end_server
check "exit status 0" test "$status" -eq 0

echo "# a hash that takes longer than the stop has time is given up"
start_server -l 1 -g 8
begin_long_hash
kill -TERM "$server"
check "it is answered" all_of 3
check "... by 503" grep -q '^HTTP/1.1 503 ' "$tmp/got"
exec 3>&-
end_clean
rm "$tmp/www/long.bin"

echo "# two requests in one piece during the drain: both are begun"
start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'G' >&3
check "a byte is read" until_true at_least 1 begun
kill -TERM "$server"
check "the port is closed" until_true refused
printf '%s' $'ET /1000.bin HTTP/1.1\r\nHost: x\r\n\r\nGET /4096.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
one_of 3
check "the first is answered, the connection kept" \
	answer_is 1000 'Connection: keep-alive'
check "the second is answered, the connection closed" all_of 3
check "... in full, with Connection: close" \
	answer_is 4096 'Connection: close'
exec 3>&-
end_clean
check "both answered" test "$(count answered)" = 2

echo "# an answer that was begun before the stop"
start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port"
# Nobody has room for so much: most of it is still with the server.
printf 'GET /30000000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
check "it begins" head_of 3
check "... and promises more" grep -q '^Connection: keep-alive' "$tmp/got"
kill -TERM "$server"
check "the port is closed" until_true refused
printf 'GET /1000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
check "the rest comes" body_of 3
check "... in full" answer_is 30000000 'Connection: keep-alive'
check "what was asked meanwhile is answered, too" all_of 3
check "... in full, with Connection: close" \
	answer_is 1000 'Connection: close'
exec 3>&-
end_clean
check "both answered" test "$(count answered)" = 2

echo "# a request that meets the end of an answer begun before the stop"
start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /30000000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
check "it begins" head_of 3
kill -TERM "$server"
check "the port is closed" until_true refused
# Read until the server has given all to the kernel and has nothing to do.
while ! at_least 1 answered && [ "$body" -gt 200000 ]; do
	part_of 3 200000
done
# The connection is idle now, but a server that closed it at once would meet
# this with a reset, which overtakes the answer.
printf 'GET /1000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
check "the rest comes" body_of 3
check "... in full" answer_is 30000000 'Connection: keep-alive'
check "the request is answered, too" all_of 3
check "... in full, with Connection: close" \
	answer_is 1000 'Connection: close'
exec 3>&-
end_clean

echo "# a client that goes on talking after Connection: close"
start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /30000000.bin HTTP/1.1\r\nHost: x\r\n' >&3
check "a byte is read" until_true at_least 1 begun
kill -TERM "$server"
check "the port is closed" until_true refused
printf '\r\n' >&3
check "the answer begins" head_of 3
# A server that closes with this unread resets the connection, and the tail
# of the answer is lost.
printf 'and another thing' >&3
check "its end comes without a reset" body_of 3
check "... in full, with Connection: close" \
	answer_is 30000000 'Connection: close'
check "then the connection ends" all_of 3
check "... without a byte" test ! -s "$tmp/got"
exec 3>&-
end_clean
check "what was said is discarded" test "$(count bytes)" = 17

echo "# connections in the backlog"
start_server -l 1 -g 600
check "the server runs" until_true at_least 0 begun
kill -STOP "$server"
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /150000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
kill -TERM "$server"
kill -CONT "$server"
check "one that waits with its request is answered" all_of 3
# Whether it was accepted just before the stop or just after is open.
check "... in full" answer_is 150000 'Connection: '
check "one that waits with nothing is closed" all_of 4
check "... without a byte" test ! -s "$tmp/got"
exec 3>&- 4>&-
end_clean
check "both were accepted" test "$(count accepted)" = 2
check "one answered" test "$(count answered)" = 1

echo "# connections in the backlog, for which there is no descriptor"
descriptors=24 start_server -l 1 -g 600
fds=()
for _ in {1..30}; do
	exec {fd}<>"/dev/tcp/127.0.0.1/$port"
	fds+=("$fd")
done
# The last one has no chance before the stop.
printf 'GET /150000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&"$fd"
kill -TERM "$server"
check "the last one is answered" all_of "$fd"
check "... in full, with Connection: close" \
	answer_is 150000 'Connection: close'
for fd in "${fds[@]}"; do
	exec {fd}>&-
done
end_clean
check "all were accepted" test "$(count accepted)" = 30

echo "# the second signal cuts the grace"
# The hasher and the log are told when nothing is left of it: they may have
# ended, and nobody has joined them, when the server leaves.
TSAN_OPTIONS="${TSAN_OPTIONS-}:report_thread_leaks=0" start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /1000.bin' >&3
check "half of the request is read" until_true at_least 1 begun
kill -TERM "$server"
check "the port is closed" until_true refused
check "the server waits" kill -0 "$server"
kill -TERM "$server"
end_server
exec 3>&-
check "exit status 124: somebody was late" test "$status" -eq 124
check "one cut, and said so" test "$(count cut)" = 1
check "the late one is named, with its phase" \
	grep -q 'connections (phase 1)/1 task socket' "$tmp/out"

# slow GRACE: three clients, one that stands in its request, one in the body of
# it, one in the answer.
slow() {
	start_server -l 1 -g "$1"
	exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port" \
		5<>"/dev/tcp/127.0.0.1/$port"
	printf 'G' >&3
	printf 'GET /0.bin HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab' >&4
	printf 'GET /30000000.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&5
	check "all three are begun" until_true at_least 3 begun
}

slow_end() {
	kill -TERM "$server"
	end_server
	exec 3>&- 4>&- 5>&-
	check "they are counted apart" test "$(count 'too slow')" = 3
	check "none cut" test "$(count cut)" = 0
}

echo "# slow clients before the stop"
slow 4
check "all three are cut" until_true at_least 3 'too slow'
slow_end

echo "# slow clients during the stop"
slow 50
slow_end
check "exit status 0: they are no stragglers" test "$status" -eq 0

# flood BYTES: a client that sends them, and a line's end, again and again, and
# takes whatever it is sent.
flood() {
	exec {fd}<>"/dev/tcp/127.0.0.1/$port"
	printf '%s' "${2-}" >&"$fd"
	cat <&"$fd" >/dev/null 2>&1 &
	others+=($!)
	yes "$1" >&"$fd" 2>/dev/null &
	others+=($!)
	exec {fd}>&-
}

# crowded N: has each of the server's N connections sent 64 KB that are not read?
crowded() {
	[ "$(awk -v port="$(printf ':%04X' "$port")" '
		substr($2, 9) == port && $4 == "01" {
			split($5, queue, ":")
			n += length(queue[2]) == 8 && queue[2] > "0000FFFF"
		}
		END { print n + 0 }' /proc/net/tcp)" -eq "$1" ]
}

echo "# clients that never stop sending"
start_server -l 1 -g 10
get=$'GET /0.bin HTTP/1.1\r\nHost: x\r\n' # 30 bytes; with an empty line 32
# They are begun while it stands still: so what it reads at once never ends
# where a request does, and there is always more.
kill -STOP "$server"
for _ in 1 2 3; do
	flood "$get"$'\r' $'\r\n'
	flood $'\r'
	flood $'1\r\na\r' "$get"$'Transfer-Encoding: chunked\r\n\r\n'
done
check "all have sent more than it reads" until_true crowded 9
kill -CONT "$server"
check "it answers" until_true at_least 300 answered
kill -TERM "$server"
end_server
kill "${others[@]}" 2>/dev/null
wait "${others[@]}" 2>/dev/null
others=()
check "exit status 0: they are no stragglers" test "$status" -eq 0
check "none cut" test "$(count cut)" = 0
check "those that did not end their request are counted apart" \
	test "$(count 'too slow')" = 3

echo "# a file that shrinks while it is sent"
cp "$tmp/www/30000000.bin" "$tmp/www/shrinks.bin"
start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /shrinks.bin HTTP/1.1\r\nHost: x\r\n\r\n' >&3
check "it begins" head_of 3
: >"$tmp/www/shrinks.bin"
check "the connection ends" all_of 3
check "... before the whole file" test "$(wc -c <"$tmp/got")" -lt 30000000
exec 3>&-
kill -TERM "$server"
end_clean
check "it is counted apart" test "$(count 'with a file that shrank')" = 1

echo "# a client that leaves is no cut"
start_server -l 1 -g 600
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /1000.bin' >&3
check "half of the request is read" until_true at_least 1 begun
kill -TERM "$server"
exec 3>&-
end_clean
check "aborted" test "$(count aborted)" = 1

echo "# a timeline that nobody would read"
mkfifo "$tmp/nobody"
start_server -l 1 -g 600 --trace "$tmp/nobody"
kill -TERM "$server"
end_server
check "exit status 0" test "$status" -eq 0
check "it is said" grep -q 'nobody: the timeline is not written' "$tmp/err"

echo "# under load"
start_server -l 2 -g 600 -a "$tmp/log"
rm -f "$tmp/got"
"$bin/client" load -c 8 -s 600 -h "$port" 0 1000 4096 150000 >"$tmp/client" &
client=$!
others=("$client")
by_curl=0
if command -v curl >/dev/null; then
	curl -sS --limit-rate 8M -o "$tmp/got" \
		"http://127.0.0.1:$port/10000000.bin" &
	curl=$!
	others+=("$curl")
	check "curl has begun" until_true test -s "$tmp/got"
else
	curl=''
	echo "SKIP the slow download: no curl"
fi
check "some hundred requests are answered" until_true at_least 300 answered
kill -TERM "$server"
end_server
wait "$client"
check "the client has nothing to complain about" test $? -eq 0
sed 's/^/    /' "$tmp/client"
if [ -n "$curl" ]; then
	wait "$curl"
	check "curl neither" test $? -eq 0
	check "the download is right" \
		cmp "$tmp/got" "$tmp/www/10000000.bin"
	by_curl=1
fi
others=()
by_client=$(sed -n 's/^client: \([0-9]*\) answered.*/\1/p' "$tmp/client")
check "exit status 0" test "$status" -eq 0
check "none cut" test "$(count cut)" = 0
check "none aborted" test "$(count aborted)" = 0
# The strictest of all: the client takes an end without a byte for "not
# begun".  If one of these had been begun, the sums would differ.
check "begun by the server = received whole by the clients" \
	test "$(count begun)" = $((by_client + by_curl))
# The log was told last: nobody has said anything that it did not hear.
check "as many lines in the access log" \
	test "$(wc -l <"$tmp/log")" -eq "$(count answered)"
check "... of nothing but answers" \
	test "$(grep -cvE '^200 /(hash/)?[0-9]+\.bin$' "$tmp/log")" -eq 0

finish
