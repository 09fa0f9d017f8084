#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# shake_examples.sh - evc-shake finds nothing wrong with the stop of the whole
# programs among the examples, at EVC_SHAKE_MOMENTS (20) moments each, which
# EVC_SHAKE_SEED (1) chooses.
# shellcheck disable=SC2154 # bin, tmp, status: lib.sh, shake_lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
. "$(dirname -- "$0")/shake_lib.sh"
moments=${EVC_SHAKE_MOMENTS:-20}
common=(-n "$moments" -S "${EVC_SHAKE_SEED:-1}" -g 60)

# told: what the report begins with.
told() {
	sed -n '1,3s/^/    /p' "$tmp/out"
}

# hardly_any_closed MOST TEXT: no run failed, except that MOST of them closed a
# connection at the moment at which its request was sent: no server can know, and
# the client then says TEXT.
hardly_any_closed() {
	grep '"failed":true' "$tmp/runs" >"$tmp/failed"
	[ ! -s "$tmp/err" ] && ! grep -vq '"faults":\["cut"\]' "$tmp/failed" &&
		! grep -vq -e "$2" "$tmp/failed" &&
		[ "$(wc -l <"$tmp/failed")" -le "$1" ] || shown
}

mkdir "$tmp/tree" "$tmp/www" || exit 99
for i in {1..40}; do
	head -c 100000 "$tool" >"$tmp/tree/$i"
	for _ in {1..2000}; do
		echo "these are words of the file $i"
	done >>"$tmp/tree/$i"
done

echo "# checksum"
if [ -x "$bin/checksum" ]; then
	shake "${common[@]}" -t 0.5 -e 0,130 "$bin/checksum" -j 3 "$tmp/tree"
	check "checksum" no_run_failed "$moments"
	told
fi

echo "# wordcount, with worker processes"
shake "${common[@]}" -t 0.5 -e 0,130 "$bin/wordcount" -n 2 "$tmp/tree"
check "wordcount" no_run_failed "$moments"
told

echo "# workers"
shake "${common[@]}" -t 0.5 "$bin/workers"
check "workers" no_run_failed "$moments"
told

echo "# server, with clients"
if [ -x "$bin/server" ]; then
	head -c 100000 "$tool" >"$tmp/www/file"
	words=(-c 8)
	with_client /file "${common[@]}" -t 0.3 -- \
		"$bin/server" -p '{port}' "$tmp/www"
	check "server" hardly_any_closed $((moments / 5)) \
		' 0 cut in the reply'
	told
fi

# asks: a load that asks again and again, over TCP, until nobody is there.  A
# server that was stopped early never was.
cat >"$tmp/asks" <<'END'
up= refused=0
while :; do
	got=$(dig +tcp +tries=1 +timeout=30 +short @127.0.0.1 \
		-p "$EVC_SHAKE_PORT" www.example.test 2>&1)
	case $got in
	*192.0.2.10*) up=1 ;;
	*refused*)
		refused=$((refused + 1))
		[ -z "$up" ] && [ $refused -lt 100 ] || exit 0
		sleep 0.02
		;;
	*) echo "$got" | tr '\n' ' '; exit 1 ;;
	esac
done
END

echo "# dnsd, with clients"
if [ -x "$bin/dnsd" ] && command -v dig >/dev/null; then
	cat >"$tmp/zone" <<'END'
$ORIGIN example.test.
$TTL 300
@	IN SOA ns1 hostmaster ( 7 3600 600 86400 60 )
	IN NS ns1
ns1	IN A 192.0.2.1
www	IN A 192.0.2.10
END
	shake "${common[@]}" -t 0.3 -e 0,signal -l "sh '$tmp/asks'" \
		"$bin/dnsd" -z "$tmp/zone" -p '{port}' -c '{tmp}/control'
	# The kernel resets a connection that is closed with a request unread.
	check "dnsd" hardly_any_closed $((moments / 5)) \
		'end of file\|connection reset'
	told
fi
exit $((failures != 0))
