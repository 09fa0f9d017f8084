#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# server_http.sh - the example server as a server: what it answers, and that
# one broken or hostile request does no harm to the next.
# shellcheck disable=SC2154 # bin, tmp, server, port, status: server_lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
# shellcheck source=/dev/null
. "$(dirname -- "$0")/server_lib.sh"

mkdir "$tmp/www" "$tmp/www/inside" || exit 99
"$bin/client" make "$tmp/www" 0 1000 200000 || exit 99
echo secret >"$tmp/secret"
cp "$tmp/www/1000.bin" "$tmp/www/a b%.bin"
ln -s ../secret "$tmp/www/link.bin"
mkfifo "$tmp/www/fifo.bin"
start_server -l 1 -g 600

# say TEXT: one connection that says this and nothing more, to $tmp/got.
say() {
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	# shellcheck disable=SC2059 # it is one
	printf "$1" >&3
	all_of 3
	exec 3>&-
}

# first TEXT: the first line of the answer.
first() {
	[ "$(head -n 1 "$tmp/got")" = "$1"$'\r' ]
}

end='Host: x\r\nConnection: close\r\n\r\n'
ok='HTTP/1.1 200 OK' none='HTTP/1.1 404 Not Found'

check "GET" say "GET /1000.bin HTTP/1.1\r\n$end"
check "... the file" answer_is 1000 'Connection: close'
check "GET with a query" say "GET /1000.bin?a=/b HTTP/1.1\r\n$end"
check "... the file" answer_is 1000 'Connection: close'
check "GET with a whole URL" say "GET http://x/1000.bin HTTP/1.1\r\n$end"
check "... the file" answer_is 1000 'Connection: close'
check "GET after blank lines" say "\r\n\r\nGET /1000.bin HTTP/1.1\r\n$end"
check "... the file" answer_is 1000 'Connection: close'
check "an empty file" say "GET /0.bin HTTP/1.1\r\n$end"
check "... 200" first "$ok"
check "... of no bytes" grep -q '^Content-Length: 0.$' "$tmp/got"
check "HEAD" say "HEAD /200000.bin HTTP/1.1\r\n$end"
check "... 200" first "$ok"
check "... the size" grep -q '^Content-Length: 200000.$' "$tmp/got"
check "... and nothing else" test "$(tail -c 4 "$tmp/got" | od -An -tx1)" = \
	" 0d 0a 0d 0a"
check "HTTP/1.0 ends the connection" say "GET /1000.bin HTTP/1.0\r\n\r\n"
check "... the file" answer_is 1000 'Connection: close'
check "a hash" say "GET /hash/200000.bin HTTP/1.1\r\n$end"
check "... with the size" grep -q ' bytes 200000$' "$tmp/got"
check "two in one piece" say "GET /0.bin HTTP/1.1\r\nHost: x\r\n\r\nGET /0.bin HTTP/1.1\r\n$end"
check "... two answers" test "$(grep -c '^HTTP/1.1 200 OK' "$tmp/got")" = 2

for path in / /no.bin /inside /inside/ /../secret /%2e%2e/secret /link.bin \
	/fifo.bin /.hidden //1000.bin /hash/ /hash/no.bin /hash/../secret \
	/hash/fifo.bin /%2E%2e%2Fsecret /..%2fsecret /%2ehidden /%2f1000.bin \
	/hash%2f1000.bin /hash/..%2fsecret /1000.bin%00 /%00 /%2500 /%252e%252e \
	/%6cink.bin; do
	# As %s: the path has signs of its own.
	check "$path" say "GET ${path//%/%%} HTTP/1.1\r\n$end"
	check "... is not there" first "$none"
done
check "a name with escapes" say "GET /a%%20b%%25.b%%69%%6E HTTP/1.1\r\n$end"
check "... the file" answer_is 1000 'Connection: close'
check "a hash of one" say "GET /hash/a%%20b%%25.bin HTTP/1.1\r\n$end"
check "... with the size" grep -q ' bytes 1000$' "$tmp/got"
check "a body that waits for leave" say \
	"GET /1000.bin HTTP/1.1\r\nHost: x\r\nEXPECT: 100-continue\r\nContent-Length: 9\r\n\r\n"
check "... is not needed" answer_is 1000 'Connection: close'
get='GET /1000.bin HTTP/1.1\r\n'
for head in "${get}Host : x\r\n" "${get}Host: x\r\nA : b\r\n" \
	"${get}Host: x\r\nA\t: b\r\n" "$get" "${get}Hostess: x\r\n" \
	"${get}Host: x\r\nhost: y\r\n" \
	'GET /1000.bin HTTP/1.0\r\nHost: x\r\nHost: x\r\n' \
	'GET /1000.bin HTTP/x.1\r\nHost: x\r\n' \
	'GET 1000.bin HTTP/1.1\r\nHost: x\r\n' \
	'GET * HTTP/1.1\r\nHost: x\r\n' \
	'GET http:/1000.bin HTTP/1.1\r\nHost: x\r\n' \
	'GET ftp://x/1000.bin HTTP/1.1\r\nHost: x\r\n' \
	'GET /1000.bin%% HTTP/1.1\r\nHost: x\r\n' \
	'GET /%%4 HTTP/1.1\r\nHost: x\r\n' \
	'GET /hash/%%g0 HTTP/1.1\r\nHost: x\r\n' \
	'GET /%%-1 HTTP/1.1\r\nHost: x\r\n'; do
	check "$head" say "${head}Connection: close\r\n\r\n"
	check "... is refused" first 'HTTP/1.1 400 Bad Request'
done
for version in 0.9 1.2 2.0; do
	check "HTTP/$version" say "GET /1000.bin HTTP/$version\r\n$end"
	check "... is refused" first 'HTTP/1.1 505 HTTP Version Not Supported'
done
check "POST" say "POST /1000.bin HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
check "... is refused" first 'HTTP/1.1 405 Method Not Allowed'
check "nonsense" say 'nonsense\r\n\r\n'
check "... is refused" first 'HTTP/1.1 400 Bad Request'
check "a path without end" say "GET /$(printf '%01000d' 0) HTTP/1.1\r\n\r\n"
check "... is refused" first 'HTTP/1.1 414 URI Too Long'
check "a header without end" \
	say "GET / HTTP/1.1\r\nA: $(printf '%0100000d' 0)\r\n\r\n"
check "... is refused" first 'HTTP/1.1 431 Request Header Fields Too Large'
check "GET after all that" say "GET /1000.bin HTTP/1.1\r\n$end"
check "... the file" answer_is 1000 'Connection: close'

kill -TERM "$server"
end_server
check "exit status 0" test "$status" -eq 0
check "none cut" test "$(count cut)" = 0
check "none aborted" test "$(count aborted)" = 0
finish
