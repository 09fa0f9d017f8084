# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# server_lib.sh - what the tests of the example server share.
# shellcheck disable=SC2154 # bin, tmp, server, port: lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

for program in server client; do
	if [ ! -x "$bin/$program" ]; then
		echo "no $bin/$program"
		exit 99
	fi
done

# start_server OPTION...: sets server and port; serves $tmp/www.  With
# $descriptors set, it gets no more than that many.
start_server() {
	: >"$tmp/out" # before anybody looks: the last server's text is in it
	(
		[ -z "${descriptors-}" ] || ulimit -n "$descriptors" || exit
		# shellcheck disable=SC2086 # EVC_WRAP is a list of words
		exec ${EVC_WRAP-} "$bin/server" "$@" "$tmp/www"
	) >"$tmp/out" 2>"$tmp/err" &
	server=$!
	if ! until_true grep -q 'listening on' "$tmp/out"; then
		echo "FAILED: the server does not start"
		cat "$tmp/err"
		exit 1
	fi
	port=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\)$/\1/p' \
		"$tmp/out")
}

# Waits for the server's end; sets status.
end_server() {
	if ! until_true ended "$server"; then
		echo "FAILED: the server does not end"
		cat "$tmp/out" "$tmp/err"
		exit 1
	fi
	wait "$server"
	# shellcheck disable=SC2034 # for the tests
	status=$?
	server=''
	# What went wrong is told by the server itself.
	sed -n '/stop took/,$p' "$tmp/out" | sed 's/^/    /'
	sed 's/^/    /' "$tmp/err"
}

# Waits for the server's end: it has to be a clean one.
end_clean() {
	end_server
	check "exit status 0" test "$status" -eq 0
	check "none cut" test "$(count cut)" = 0
}

# count WHAT: a number of the server's last report, such as "begun".
count() {
	sed -n "s/.*[ (]\\([0-9][0-9]*\\) $1.*/\\1/p" "$tmp/out" | tail -n 1
}

# at_least N WHAT: asks the server for a report.  It answers later: so this is
# for until_true.
at_least() {
	local n

	kill -USR1 "$server"
	n=$(count "$2")
	[ "${n:-0}" -ge "$1" ]
}

# alive TEXT: asks the server for a report, likewise; is this what is alive?
alive() {
	kill -USR1 "$server"
	tail -n 1 "$tmp/out" | grep -qF "Alive (" &&
		tail -n 1 "$tmp/out" | sed 's/ ([0-9.]* s)//g' |
		grep -qF ": $1."
}

# Does nobody accept at the port any more?
refused() {
	! (exec 9<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}

# all_of FD: what comes until the connection's end, into $tmp/got; false after
# a reset, or when there is no end.
all_of() {
	timeout "$limit" cat <&"$1" >"$tmp/got" 2>"$tmp/got.err"
}

# head_of FD: the head of an answer, into $tmp/got; sets body to its length.
head_of() {
	local line

	body=0
	: >"$tmp/got"
	while IFS= read -r -t "$limit" -u "$1" line; do
		printf '%s\n' "$line" >>"$tmp/got"
		case $line in
		Content-Length:*) body=${line#*: } body=${body%$'\r'} ;;
		$'\r') return 0 ;;
		esac
	done
	return 1
}

# body_of FD: the rest of it, appended to $tmp/got.
body_of() {
	timeout "$limit" head -c "$body" <&"$1" >>"$tmp/got"
}

# part_of FD N: the next N bytes of it.
part_of() {
	timeout "$limit" head -c "$2" <&"$1" >>"$tmp/got"
	body=$((body - $2))
}

one_of() {
	head_of "$1" && body_of "$1"
}

# Is $tmp/got one answer with the right file of $1 bytes, and header $2?
answer_is() {
	local head

	head=$(sed '/^\r$/q' "$tmp/got")
	[[ $head == 'HTTP/1.1 200 OK'* && $head == *"$2"* ]] &&
		tail -c "$1" "$tmp/got" | cmp -s - "$tmp/www/$1.bin" &&
		[ "$(wc -c <"$tmp/got")" -eq \
			$((${#head} + 1 + $1)) ]
}

finish() {
	if [ $failures -ne 0 ]; then
		echo "$failures failures"
		exit 1
	fi
	exit 0
}
