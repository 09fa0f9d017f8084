#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# stunnel.sh - a cluster over Redis and TLS where hiredis has none: with stunnel on
# both sides, as evcoord-redis(7) shows it.  Certificate and both configurations are
# the page's own; ports and paths are the test's.
# shellcheck disable=SC2154 # bin, tmp, failures, others, redis, tools: lib.sh, redis_lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$here/redis_lib.sh"
. "$here/run_lib.sh"

top=${EVC_TOP_SRCDIR:-$here/../..}
page=$top/man/evcoord-redis.7
stunnel=$(command -v stunnel4 || command -v stunnel) ||
	skip "no stunnel (Debian: stunnel4)"
command -v openssl >/dev/null || skip "no openssl (Debian: openssl)"

# ---- what the page says ----------------------------------------------------------

# block NAME: the lines of the display behind that mark.
block() {
	awk -v mark="stunnel $1" '
		$0 == ".\\\" " mark { here = 1 }
		here && /^\.Ed/ { exit }
		here > 1 { gsub(/\\e/, "\\"); print }
		here && /^\.Bd/ { here = 2 }' "$page"
}

# certificate FOLDER: make one there.
certificate() {
	mkdir "$1" && (cd "$1" && eval "$(block certificate)") \
		>"$1/said" 2>&1 && [ -s "$1/redis.crt" ] &&
		[ -s "$1/redis.key" ] && return
	cat "$1/said"
	return 1
}

# ---- servers and tunnels ---------------------------------------------------------

# tunnel SIDE FOLDER TO: that configuration, with the files of FOLDER, to port TO.
tunnel() {
	{
		printf 'foreground = yes\npid =\n'
		block "$1" | sed -e "s,/etc/stunnel,$2," \
			-e "s/^accept = .*/accept = 127.0.0.1:PORT/" \
			-e "s/^connect = .*/connect = 127.0.0.1:$3/"
	} >"$tmp/conf"
	on_a_port "$stunnel" "$tmp/conf.PORT"
}

check 'a certificate' certificate "$tmp/ours"
check 'and one of somebody else' certificate "$tmp/others"
start_server
plain=$port
tunnel server "$tmp/ours" "$plain"
secret=$port
tunnel client "$tmp/ours" "$secret"
workers=$port
tunnel client "$tmp/ours" "$secret"
coordinator=$port

# ---- a cluster over them ---------------------------------------------------------

mkdir "$tmp/tree"
for n in 1 2 3; do
	awk -v n=$n 'BEGIN {
		for (i = 0; i < 40000; i++)
			printf "%c%c%s", 97 + i * n % 26, 97 + i % 7, \
				i % 9 ? " " : "\n"
	}' >"$tmp/tree/$n"
done
cat "$tmp"/tree/* | tr -cs '[:alpha:]' '[\n*]' | grep . | sort | uniq -c |
	awk '{ print $1, $2 }' >"$tmp/want"

"$bin/wordcount" --worker -n 2 "redis://127.0.0.1:$workers/words" \
	>"$tmp/node" 2>&1 &
node=$!
others+=("$node")
run "$bin/wordcount" --all "redis://127.0.0.1:$coordinator/words" "$tmp/tree"
check 'wordcount by both tunnels: the sums are those of uniq -c' \
	same 0 "$tmp/want"
kill -TERM $node
check 'the node ends by itself' until_true ended $node
wait $node
check 'with status 0' test $? -eq 0

# ---- who gets in, and who does not -----------------------------------------------

# ping PORT: what is answered there to somebody without TLS.
ping() {
	local said=''

	{
		printf 'PING\r\n' >&3
		read -r -t $limit said <&3
	} 3<>"/dev/tcp/127.0.0.1/$1" 2>/dev/null
	printf '%s' "${said%$'\r'}"
}

check 'the server itself answers without TLS' test "$(ping "$plain")" = +PONG
check 'behind the client tunnel' test "$(ping "$workers")" = +PONG
check 'and not what other machines see' test "$(ping "$secret")" != +PONG
run "$tools/evc-cluster" status "redis://127.0.0.1:$workers/words"
check 'a tunnel to the server: there is no coordinator' test $status -eq 3
tunnel server "$tmp/others" "$plain"
tunnel client "$tmp/ours" "$port"
run "$tools/evc-cluster" status "redis://127.0.0.1:$port/words"
check 'a server with another certificate is none' test $status -eq 1
check 'which is said by stunnel' grep -q 'self-signed\|self signed' \
	"$tmp/log.$port"

# A server that has TLS itself needs the other side alone.
if "$redis" --port 0 --tls-port -1 2>&1 | grep -q 'Bad directive'; then
	echo "left out: a tls-port, which this server does not have"
else
		on_a_port "$redis" --port 0 --tls-port PORT --bind 127.0.0.1 --save '' \
		--appendonly no --dir "$tmp" --tls-auth-clients no \
		--tls-cert-file "$tmp/ours/redis.crt" \
		--tls-key-file "$tmp/ours/redis.key" \
		--tls-ca-cert-file "$tmp/ours/redis.crt"
	tunnel client "$tmp/ours" "$port"
	run "$tools/evc-cluster" status "redis://127.0.0.1:$port/words"
	check 'a tls-port of the server' test $status -eq 3
fi

exit $((failures != 0))
