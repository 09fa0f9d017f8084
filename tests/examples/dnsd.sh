#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# dnsd.sh - the example DNS server: what it answers to dig, and how it stops
# with whatever clients and threads do meanwhile.
#
# How long the stops took is printed, and judged with generous limits.
# shellcheck disable=SC2154 # bin, tmp, server, others, limit: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"
soon=25000 # milliseconds: within the budget, on a machine with much else to do

skip() {
	echo "SKIP dnsd.sh: $*"
	exit 77
}

[ -x "$bin/dnsd" ] || skip "no $bin/dnsd: it is not built without libldns"
command -v dig >/dev/null || skip "no dig (Debian: bind9-dnsutils)"

# ---- the server --------------------------------------------------------------

# start OPTION...: sets server and port.  With $descriptors set, it gets no more
# than that many.
start() {
	: >"$tmp/out"
	(
		[ -z "${descriptors-}" ] || ulimit -n "$descriptors" || exit
		# shellcheck disable=SC2086 # EVC_WRAP is a list of words
		exec ${EVC_WRAP-} "$bin/dnsd" -z "$tmp/zone" \
			-c "$tmp/control" "$@"
	) >"$tmp/out" 2>"$tmp/err" &
	server=$!
	if ! until_true grep -q 'ready on' "$tmp/out"; then
		echo "FAILED: dnsd does not start"
		cat "$tmp/out" "$tmp/err"
		exit 1
	fi
	port=$(sed -n 's/.*ready on 127\.0\.0\.1:\([0-9]*\),.*/\1/p' \
		"$tmp/out")
}

# Ask for the stop by SIGTERM.
stop() {
	began=${EPOCHREALTIME/[.,]/}
	kill -TERM "$server"
}

# Waits for the server's end; sets status and ms, milliseconds since stop().
end() {
	if ! until_true ended "$server"; then
		echo "FAILED: dnsd does not end"
		cat "$tmp/out" "$tmp/err"
		exit 1
	fi
	ms=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
	wait "$server"
	status=$?
	server=''
	sed -n 's/^dnsd: stop took/    &/p' "$tmp/out"
	echo "    $ms ms from the signal to the end of the process"
	sed 's/^/    /' "$tmp/err"
}

# refuses OPTION...: dnsd that should not start; what it says is in $tmp/got.
refuses() {
	timeout "$limit" "$bin/dnsd" "$@" >"$tmp/got" 2>&1
}

control() {
	"$bin/dnsd" -c "$tmp/control" -x "$1"
}

# told COMMAND TEXT: does the control socket's answer to it have that text?
told() {
	control "$1" >"$tmp/told" 2>/dev/null && grep -qF -e "$2" "$tmp/told"
}

# connected N: are so many others at the control socket?
connected() {
	[ "$(grep -cF "$tmp/control" /proc/net/unix)" -gt "$1" ]
}

# waits_for_folder PID...: does each of them have the folder of the control socket
# open, which it has to lock?
waits_for_folder() {
	local pid

	for pid; do
		find -L "/proc/$pid/fd" -samefile "$tmp" 2>/dev/null |
			grep -q . || return
	done
}

# clients N: are so many clients connected by TCP?
clients() {
	[ "$(control why | grep -oE '[0-9]+ tasks? client' |
		awk '{ n += $1 } END { print n + 0 }')" = "$1" ]
}

# Does the server notice that somebody writes to the zone while it reads it?
writes_to() {
	echo >>"$tmp/zone"
	kill -HUP "$server"
	grep -q 'not reloaded: .*it changed while it was read' "$tmp/err"
}

# Does the server have a thread that reads the zone again?
reading() {
	grep -qsx reload "/proc/$server/task/"*/comm
}

# full N: has the server N descriptors, all that it may have?
full() {
	[ "$(find "/proc/$server/fd" -type l | wc -l)" -ge "$1" ]
}

# Has the server a handler for SIGTERM, signal 15?  Not the shell, which becomes
# the server.
catches_term() {
	local all caught

	all=$(cat "/proc/$server/status")
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' <<<"$all")
	[[ $all == $'Name:\tdnsd\n'* ]] && [ $((0x${caught: -8} >> 14 & 1)) = 1 ]
}

# Does nobody accept at the port any more?
refused() {
	! (exec 9<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}

# left_behind OPTION...: start, and somebody will be alive when it leaves by
# _exit(2).  A thread of the library that has ended just then is joined by
# nobody any more, which is no leak.
left_behind() {
	TSAN_OPTIONS="${TSAN_OPTIONS-}:report_thread_leaks=0" start "$@"
}

# ---- queries -----------------------------------------------------------------

# dig lets the kernel choose its port and shares it, as the server shares its
# own: on the server's address it could get that port, and its own query.
ask() {
	dig @127.0.0.1 -b 127.0.0.2 -p "$port" +tries=3 +timeout=10 "$@"
}

# answers "NAME TYPE OPTION..." LINE...: exactly these records, over UDP and
# TCP.
answers() {
	local query=$1 how

	shift
	printf '%s\n' "$@" | sort >"$tmp/want"
	for how in +notcp +tcp; do
		# shellcheck disable=SC2086 # a list of words
		ask $how +noall +answer $query | grep -v '^;' |
			tr -s '\t ' '  ' | sort >"$tmp/got"
		diff "$tmp/want" "$tmp/got" || return 1
	done
}

# says "NAME TYPE OPTION..." TEXT: what dig prints has that text, either way.
says() {
	local how

	for how in +notcp +tcp; do
		# shellcheck disable=SC2086
		ask $how $1 >"$tmp/got" 2>&1
		grep -qE -e "$2" "$tmp/got" || { cat "$tmp/got"; return 1; }
	done
}

# query ID NAME TYPE: the bytes of a query, as printf takes them.
query() {
	local label

	printf '\\x%02x\\x%02x' $(($1 >> 8)) $(($1 & 255))
	printf '\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00'
	for label in ${2//./ }; do
		printf '\\x%02x%s' ${#label} "$label"
	done
	printf '\\x00\\x00\\x%02x\\x00\\x01' "$3"
}

# framed ID NAME TYPE: the same for TCP, with its length before it.
framed() {
	printf '\\x00\\x%02x' $((12 + ${#2} + 2 + 4))
	query "$@"
}

# send FD BYTES
send() {
	# shellcheck disable=SC2059 # they are one
	printf "$2" >&"$1"
}

# all_of FD: what comes until the connection's end, into $tmp/got; false after
# a reset, or when there is no end.
all_of() {
	timeout "$limit" cat <&"$1" >"$tmp/got" 2>"$tmp/got.err"
}

# answer_of FD: one answer with its length, into $tmp/got.
answer_of() {
	local len

	timeout "$limit" head -c 2 <&"$1" >"$tmp/got" || return 1
	len=$(od -An -tu1 "$tmp/got" | { read -r a b && echo $((a * 256 + b)); })
	timeout "$limit" head -c "$len" <&"$1" >>"$tmp/got"
}

# times N FILE: that file N times.
times() {
	local i

	for ((i = 0; i < $1; i++)); do
		cat "$2"
	done
}

# Has the server's kernel all that clients have sent to it by TCP?  (Theirs
# keeps back what is small while an acknowledgement is missing.)
delivered() {
	awk -v port="$(printf ':%04X' "$port")" '
		substr($3, 9) == port && substr($5, 1, 8) != "00000000" {
			left = 1
		}
		END { exit left }' /proc/net/tcp
}

# open_one: a connection; sets fd.
open_one() {
	exec {fd}<>"/dev/tcp/127.0.0.1/$port"
}

# open_many N: so many connections; sets fds.
open_many() {
	fds=()
	while [ ${#fds[@]} -lt "$1" ]; do
		open_one
		fds+=("$fd")
	done
}

close_many() {
	for fd in "${fds[@]}"; do
		exec {fd}>&-
	done
}

# stalled: a connection with half of a query behind a whole one; sets fd.
stalled() {
	open_one
	send "$fd" "$www${www:0:4}"
	check "what is whole is answered" answer_of "$fd"
}

# greedy: a connection that asks four times for $many, and takes one answer; sets
# fd.
greedy() {
	open_one
	for _ in 1 2 3 4; do
		send "$fd" "$many" 2>/dev/null
	done
	check "400 queries, one of them is answered" answer_of "$fd"
}

zone() {
	cat <<'END'
$ORIGIN example.test.
$TTL 300
@	IN SOA ns1 hostmaster ( SERIAL 3600 600 86400 60 )
	IN NS ns1
	IN NS ns2
	IN MX 10 www
ns1	IN A 192.0.2.1
ns2	IN AAAA 2001:db8::2
www	60 IN A 192.0.2.10
	60 IN A 192.0.2.11
	IN AAAA 2001:db8::10
txt	IN TXT "hello" "world; and more"
alias	IN CNAME www
two	IN CNAME alias
away	IN CNAME www.example.org.
nowhere IN CNAME nothing
circle	IN CNAME square
square	IN CNAME circle
a.b.deep IN A 192.0.2.20
*.wild	IN A 192.0.2.30
sub	IN NS ns.sub
ns.sub	IN A 192.0.2.40
END
	for i in {1..60}; do
		printf 'big\tIN TXT "%040d"\n' "$i"
	done
	for i in {1..1000}; do
		printf 'huge\tIN TXT "%040d"\n' "$i"
	done
}
zone | sed 's/SERIAL/7/' >"$tmp/zone"

echo "# what it answers, over UDP and over TCP"
start -u 2 -t 2 -b 30
check "it says where and what" grep -q \
	'zone example.test. serial 7, 2 UDP threads, 2 TCP loops' "$tmp/out"
both=('www.example.test. 60 IN A 192.0.2.10' 'www.example.test. 60 IN A 192.0.2.11')
alias='alias.example.test. 300 IN CNAME www.example.test.'
check "A" answers "www.example.test A" "${both[@]}"
check "AAAA" answers "www.example.test AAAA" \
	'www.example.test. 300 IN AAAA 2001:db8::10'
check "TXT" answers "txt.example.test TXT" \
	'txt.example.test. 300 IN TXT "hello" "world; and more"'
check "NS" answers "example.test NS" \
	'example.test. 300 IN NS ns1.example.test.' \
	'example.test. 300 IN NS ns2.example.test.'
check "SOA" answers "example.test SOA" \
	'example.test. 300 IN SOA ns1.example.test. hostmaster.example.test. 7 3600 600 86400 60'
check "MX" answers "example.test MX" \
	'example.test. 300 IN MX 10 www.example.test.'
check "CNAME" answers "alias.example.test CNAME" "$alias"
check "a CNAME is followed" answers "alias.example.test A" "$alias" "${both[@]}"
check "... and two" answers "two.example.test A" \
	'two.example.test. 300 IN CNAME alias.example.test.' "$alias" "${both[@]}"
check "... not out of the zone" answers "away.example.test A" \
	'away.example.test. 300 IN CNAME www.example.org.'
check "... not in a circle" answers "circle.example.test A" \
	'circle.example.test. 300 IN CNAME square.example.test.' \
	'square.example.test. 300 IN CNAME circle.example.test.'
check "a wildcard" answers "x.y.wild.example.test A" \
	'x.y.wild.example.test. 300 IN A 192.0.2.30'
check "upper case" says "WWW.Example.TEST A" 'ANSWER: 2,'
check "NXDOMAIN" says "none.example.test A" 'status: NXDOMAIN'
check "... with the SOA, for its minimum" says "none.example.test A" \
	'^example\.test\.[[:space:]]+60[[:space:]]+IN[[:space:]]+SOA'
check "... at the end of a CNAME" says "nowhere.example.test A" \
	'status: NXDOMAIN'
check "NODATA" says "www.example.test MX" 'status: NOERROR'
check "... with no answer and the SOA" says "www.example.test MX" \
	'ANSWER: 0, AUTHORITY: 1'
check "NODATA between names" says "b.deep.example.test A" 'status: NOERROR'
check "a referral" says "h.sub.example.test A" \
	'ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 2'
check "... is not authoritative" says "h.sub.example.test A" 'flags: qr rd;'
check "... an answer is" says "www.example.test A" 'flags: qr aa rd;'
check "another zone is refused" says "example.org A" 'status: REFUSED'
check "another class, too" says "-c CH version.bind TXT" 'status: REFUSED'
check "NOTIMP" says "+opcode=notify example.test SOA" 'status: NOTIMP'
check "BADVERS" says "+edns=5 +noednsneg example.test SOA" 'status: BADVERS'
check "too long for UDP: cut, and said so" \
	grep -qE 'flags: qr aa tc rd; QUERY: 1, ANSWER: 0' \
	<(ask +notcp +ignore big.example.test TXT)
check "... without EDNS, too" grep -qE 'flags: qr aa tc rd; QUERY: 1, ANSWER: 0' \
	<(ask +notcp +ignore +noedns big.example.test TXT)
check "... then dig comes by TCP" grep -q 'ANSWER: 60,' \
	<(ask +notcp big.example.test TXT)

exec 3<>"/dev/udp/127.0.0.1/$port"
send 3 '\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05abc'
timeout "$limit" dd bs=512 count=1 <&3 >"$tmp/got" 2>/dev/null
exec 3>&-
check "FORMERR over UDP" test "$(od -An -tx1 "$tmp/got")" = \
	' 12 34 81 01 00 00 00 00 00 00 00 00'
exec 3<>"/dev/tcp/127.0.0.1/$port"
send 3 '\x00\x10\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05abc'
check "one comes over TCP" answer_of 3
check "... FORMERR" test "$(od -An -tx1 "$tmp/got")" = \
	' 00 0c 12 34 81 01 00 00 00 00 00 00 00 00'
send 3 '\x00\x00'
check "a query of no bytes ends the connection" all_of 3
exec 3>&-

echo "# many on one connection"
check "dig keeps one open" test "$(ask +tcp +keepopen +noall +answer \
	www.example.test A +noall +answer ns1.example.test A \
	+noall +answer txt.example.test TXT | grep -c IN)" = 4
www=$(framed 4660 www.example.test 1)
open_one
send "$fd" "$www"
check "one is answered" answer_of "$fd"
cp "$tmp/got" "$tmp/www"
check "... with both addresses" grep -qaF $'\xc0\x00\x02\x0b' "$tmp/www"
send "$fd" "$www$www$www"
check "three in one piece: the first" answer_of "$fd"
check "... the second" answer_of "$fd"
check "... the third" answer_of "$fd"
check "... is right" cmp "$tmp/got" "$tmp/www"
send "$fd" "${www:0:20}"
sleep 0.1 # so that it comes in two pieces, most of the time
send "$fd" "${www:20}"
check "one in two pieces" answer_of "$fd"
check "... is right" cmp "$tmp/got" "$tmp/www"
exec {fd}>&-
for i in {1..40}; do
	echo "www.example.test A +noall +answer"
done >"$tmp/batch"
check "a batch of 40" test "$(ask +tcp -f "$tmp/batch" | grep -c 192.0.2.10)" = 40
check "... over UDP" test "$(ask +notcp -f "$tmp/batch" | grep -c 192.0.2.10)" = 40

echo "# reload"
zone | sed 's/SERIAL/8/; s/192\.0\.2\.20/192.0.2.21/' >"$tmp/zone"
check "by the control socket" told reload 'read again'
check "... it is read" until_true grep -q 'reloaded, serial 8' "$tmp/out"
check "... and served" answers "a.b.deep.example.test A" \
	'a.b.deep.example.test. 300 IN A 192.0.2.21'
zone | sed 's/SERIAL/9/' >"$tmp/zone"
kill -HUP "$server"
check "by SIGHUP" until_true grep -q 'reloaded, serial 9' "$tmp/out"
check "... and served" answers "a.b.deep.example.test A" \
	'a.b.deep.example.test. 300 IN A 192.0.2.20'
echo 'www IN A not-an-address' >>"$tmp/zone"
kill -HUP "$server"
check "what cannot be read" until_true grep -q 'not reloaded: ' "$tmp/err"
check "... changes nothing" says "example.test SOA" ' 9 3600 600 86400 60'
zone | sed 's/SERIAL/10/' >"$tmp/zone"

echo "# the control socket"
check "why" told why 'no stop was requested'
check "report: the threads" told report udp-2
check "... the loops" grep -q tcp-2 "$tmp/told"
check "dump json" told 'dump json' '"udp-1"'
check "... is an object" test "$(head -c 1 "$tmp/told")" = '{'
check "dump metrics" told 'dump metrics' '# TYPE'
check "nonsense" told nonsense 'commands: '
check "what is too long" told "$(printf '%0300d' 1)" 'too long'
check "... for one message, too" told "$(printf '%04000d' 1)" 'too long'
control "$(printf '%05000d' 1)" >"$tmp/got" 2>&1
check "... for the one that asks" grep -q 'too long' "$tmp/got"
if command -v socat >/dev/null; then
	printf 'why\0x\n' | socat -t "$limit" - "UNIX-CONNECT:$tmp/control" \
		>"$tmp/got"
	check "with a 0 byte in it a command is none" \
		grep -q 'commands: ' "$tmp/got"
fi
check "it is for this user alone" test "$(stat -c %a "$tmp/control")" = 600
if command -v socat >/dev/null; then
	others=()
	for _ in {1..16}; do
		socat -u "UNIX-CONNECT:$tmp/control" STDOUT >"$tmp/silent" &
		others+=($!)
	done
	check "16 silent clients are there" until_true connected 16
	check "one more is answered" told why 'no stop was requested'
	kill "${others[@]}" 2>/dev/null
	wait "${others[@]}"
	others=()
else
	echo "SKIP silent clients: no socat"
fi
refuses -z "$tmp/zone" -c "$tmp/control"
check "a second server does not get it: status 1" test $? -eq 1
check "... and why" grep -q 'control: somebody answers there' "$tmp/got"
check "... the first one has it still" told why 'no stop was requested'

echo "# SIGTERM, idle"
stop
end
check "it has left by the signal" test "$status" -eq 143
check "at once" test "$ms" -lt $soon
check "no straggler" grep -q 'stop took .*: OK' "$tmp/out"
check "the control socket is gone" test ! -e "$tmp/control"

echo "# SIGTERM, not allowed for a time"
start -b 30
check "it is held" told hold 'no signal stops it'
stop
check "the signal does nothing" until_true grep -q \
	'warning: .*SIGTERM from pid' "$tmp/err"
check "... there is no stop" told why 'no stop was requested'
check "it is not held any more" told unhold 'signals stop it'
stop
end
check "it has left by the signal" test "$status" -eq 143
check "... cleanly" grep -q 'stop took .*: OK' "$tmp/out"

echo "# a service manager"
if manager_starts; then
	export WATCHDOG_USEC=200000
	start -b 30
	check "it is ready, and lives" until_true manager_told \
		READY=1 WATCHDOG=1 WATCHDOG=1
	check "a reload" told reload 'read again'
	check "... is told with its time, and when it is done" until_true \
		manager_told READY=1 RELOADING=1 MONOTONIC_USEC= READY=1
	open_one
	send "$fd" "${www:0:20}"
	check "a client begins a query" until_true clients 1
	stop
	check "the stop, and who is left" until_true manager_told STOPPING=1 \
		'STATUS=stopping: '
	exec {fd}>&-
	end
	check "it has left by the signal" test "$status" -eq 143
	check "the end" until_true manager_told STOPPING=1 STATUS=stopped
	manager_ends
else
	echo "SKIP a service manager: no socat"
fi

echo "# stopped by the control socket, where another one was killed"
start -b 30
kill -KILL "$server"
wait "$server" 2>/dev/null
check "the one that was killed left it" test -S "$tmp/control"
start -b 30
began=${EPOCHREALTIME/[.,]/}
check "it is asked" told 'stop because of the moon' 'it stops'
end
check "exit status 0" test "$status" -eq 0
check "the reason is known" grep -q 'because of the moon' "$tmp/err"

echo "# two at once, where another one was killed"
start -b 30
kill -KILL "$server"
wait "$server" 2>/dev/null
exec 9<"$tmp"
flock 9
for i in 1 2; do
	"$bin/dnsd" -z "$tmp/zone" -c "$tmp/control" >"$tmp/out.$i" \
		2>"$tmp/err.$i" 9<&- &
	others+=($!)
done
check "each waits for the folder" until_true waits_for_folder "${others[@]}"
exec 9<&-
check "one gets the socket" until_true \
	grep -q 'ready on' "$tmp/out.1" "$tmp/out.2"
check "the other one does not" until_true \
	grep -q 'control: somebody answers there' "$tmp/err.1" "$tmp/err.2"
check "... the first one has it still" told stop 'it stops'
wait "${others[@]}"
others=()
check "the control socket is gone" test ! -e "$tmp/control"

echo "# somebody else has the folder locked"
exec 9<"$tmp"
flock 9
refuses -z "$tmp/zone" -c "$tmp/control"
check "a server does not wait for ever: status 1" test $? -eq 1
check "... and why" grep -q 'control: its folder is locked' "$tmp/got"
exec 9<&-

echo "# somebody else's file in the place of the control socket"
start -b 30
rm "$tmp/control"
echo mine >"$tmp/control"
stop
end
check "it has left by the signal" test "$status" -eq 143
check "the file is there" grep -q mine "$tmp/control"
refuses -z "$tmp/zone" -c "$tmp/control"
check "no server starts on it: status 1" test $? -eq 1
check "... and why" grep -q 'control: it is there, and is no socket' "$tmp/got"
check "the file is there still" grep -q mine "$tmp/control"
rm "$tmp/control"

echo "# a stop while the zone is read again"
start -b 30
mv "$tmp/zone" "$tmp/zone.kept"
mkfifo "$tmp/zone"
kill -HUP "$server"
check "a FIFO is not waited for" until_true grep -q \
	'not reloaded: .*it is no regular file' "$tmp/err"
stop
end
check "it has left by the signal" test "$status" -eq 143
rm "$tmp/zone"
cp "$tmp/zone.kept" "$tmp/zone"
start -b 30
{
	cat "$tmp/zone.kept"
	awk -v n="$(many 300000 60000)" \
		'BEGIN { while (i++ < n) print "many" i " IN A 192.0.2.1" }'
} >"$tmp/zone"
kill -HUP "$server"
check "it is reading" until_true reading
check "what somebody writes to meanwhile is not taken" until_true writes_to
kill -HUP "$server"
check "it is read again" until_true reading
check "... once more, when that is asked for meanwhile" told reload 'read again'
stop
end
mv "$tmp/zone.kept" "$tmp/zone"
check "it has left by the signal" test "$status" -eq 143
check "at once" test "$ms" -lt $soon
check "the stop leaves it behind" grep -q 'info: dnsd: left behind: reload' \
	"$tmp/err"
check "... which is no error" grep -q 'stop took .*: OK' "$tmp/out"

echo "# a signal during the set-up"
cp "$tmp/zone" "$tmp/zone.kept"
awk 'BEGIN { while (i++ < 100000) print "many" i " IN A 192.0.2.1" }' \
	>>"$tmp/zone"
# The signal is kept for half of the budget.
"$bin/dnsd" -b 600 -z "$tmp/zone" -c "$tmp/control" >"$tmp/out" 2>"$tmp/err" &
server=$!
check "it catches SIGTERM" until_true catches_term
stop
end
mv "$tmp/zone.kept" "$tmp/zone"
check "it has left by the signal" test "$status" -eq 143
check "... when all was set up" grep -q 'ready on' "$tmp/out"
check "... and then in its order" grep -q 'stop took .*: OK' "$tmp/out"

echo "# 100 TCP clients that say nothing"
start -b 30
open_many 100
check "they are there" until_true clients 100
stop
cut=0
for fd in "${fds[@]}"; do
	all_of "$fd" && [ ! -s "$tmp/got" ] && cut=$((cut + 1))
	exec {fd}>&-
done
end
check "each is closed without a byte, and not reset" test $cut -eq 100
check "it has left by the signal" test "$status" -eq 143
check "at once" test "$ms" -lt $soon

echo "# half of a query"
start -b 60
open_one
send "$fd" "$www${www:0:40}"
check "what is whole is answered" answer_of "$fd"
stop
check "the port is closed" until_true refused
check "dnsd waits for the rest" kill -0 "$server"
check "... and says so" until_true told why '1 task client on tcp-'
check "... and which client" until_true told why '(127.0.0.1:'
send "$fd" "${www:40}$www"
check "it comes, and is answered" answer_of "$fd"
check "... right" cmp "$tmp/got" "$tmp/www"
# What was sent with it came after the stop: it is not answered.
timeout "$limit" cat <&"$fd" >"$tmp/got" 2>/dev/null
check "then the connection ends" test ! -s "$tmp/got"
exec {fd}>&-
end
check "it has left by the signal" test "$status" -eq 143

echo "# queries that were sent before the stop"
start -b 50 -t 3
open_many 20
answered=0
for fd in "${fds[@]}"; do
	send "$fd" "$www"
done
for fd in "${fds[@]}"; do
	answer_of "$fd" && cmp -s "$tmp/got" "$tmp/www" &&
		answered=$((answered + 1))
done
check "20 connections are in use" test $answered -eq 20
kill -STOP "$server"
for _ in {1..40}; do
	open_one # nobody accepts them before the stop
	fds+=("$fd")
done
for fd in "${fds[@]}"; do
	send "$fd" "$www$www$www"
done
check "all have arrived" until_true delivered
stop
kill -CONT "$server"
times 3 "$tmp/www" >"$tmp/want"
answered=0
for fd in "${fds[@]}"; do
	all_of "$fd" && cmp -s "$tmp/got" "$tmp/want" &&
		answered=$((answered + 1))
	exec {fd}>&-
done
end
check "three on each of 60 connections: all are answered" test $answered -eq 60
check "it has left by the signal" test "$status" -eq 143
check "none is missing" grep -q ' 200 by TCP' "$tmp/out"

echo "# ... for which there is no descriptor"
descriptors=32 start -b 50 -u 1 -t 1
open_many 40
# The last ones have no chance before the stop.
send "$fd" "$www"
check "it has arrived" until_true delivered
stop
check "the last one is answered" all_of "$fd"
check "... right" cmp "$tmp/got" "$tmp/www"
close_many
end
check "it has left by the signal" test "$status" -eq 143

echo "# the control socket, where TCP clients have all descriptors"
descriptors=32 start -b 50 -u 1 -t 1
open_many 40
check "there is none left" until_true full 32
# Idle ones are sent away after 30 s: it must not need that.
for again in '' ' again' ' and again'; do
	check "it answers all the same$again" timeout 15 \
		"$bin/dnsd" -c "$tmp/control" -x why
done
stop
end
close_many
check "it has left by the signal" test "$status" -eq 143

echo "# queries that come while it stops"
start -b 50
many=''
for _ in {1..100}; do
	many+=$www
done
times 100 "$tmp/www" >"$tmp/want"
others=()
for i in 1 2 3 4; do
	(
		open_one
		send "$fd" "$many"
		: >"$tmp/sent.$i"
		timeout "$limit" cat <&"$fd" >"$tmp/load.$i"
	) &
	others+=($!)
done
for i in 1 2 3 4; do
	until_true test -e "$tmp/sent.$i"
done
check "all have arrived" until_true delivered
stop
wait "${others[@]}"
others=()
end
answered=0
for i in 1 2 3 4; do
	cmp -s "$tmp/load.$i" "$tmp/want" && answered=$((answered + 1))
done
check "100 on each of 4 connections: all are answered" test $answered -eq 4
check "it has left by the signal" test "$status" -eq 143

echo "# an answer that is half sent"
start -b 60
huge=$(framed 22136 huge.example.test 16)
open_one
send "$fd" "$huge"
check "one is answered" answer_of "$fd"
cp "$tmp/got" "$tmp/huge"
# 20 MB, more than the kernel takes: the rest waits in the server, with the
# queries behind it.
many=''
for _ in {1..100}; do
	many+=$huge
done
for _ in 1 2 3 4; do
	send "$fd" "$many"
done
check "all queries have arrived" until_true delivered
stop
check "the port is closed" until_true refused
check "dnsd waits for its client" kill -0 "$server"
times 400 "$tmp/huge" >"$tmp/want"
check "who takes it now" all_of "$fd"
check "... gets all of it" cmp "$tmp/got" "$tmp/want"
exec {fd}>&-
end
check "it has left by the signal" test "$status" -eq 143

echo "# clients that are too slow, before the stop"
start -b 2
stalled
check "half of a query whose end never comes: the client is cut" all_of "$fd"
exec {fd}>&-
greedy
check "who takes no more is cut" until_true clients 0
stop
end
exec {fd}>&-
check "it has left by the signal" test "$status" -eq 143
check "both are counted" grep -q 'cut: 2 TCP clients' "$tmp/out"

echo "# ... and after it"
start -b 10
stalled
half=$fd
greedy
stop
end
exec {fd}>&- {half}>&-
check "it has left by the signal" test "$status" -eq 143
check "both are counted" grep -q 'cut: 2 TCP clients' "$tmp/out"

echo "# a thread that is stuck"
left_behind -b 4 -u 2 --trace "$tmp/stuck.json"
check "it is asked to" told stick 'will be stuck'
check "it is" until_true told report 'stuck on purpose'
stop
check "while it stops it can be asked who is late" until_true told report \
	stuck_on_purpose
check "... and where, down to the thread's function" grep -q 'udp_thread' \
	"$tmp/told"
end
check "exit status 124: somebody was late" test "$status" -eq 124
check "not before the budget is over" test "$ms" -ge 4000
check "soon after it" test "$ms" -lt $soon
check "one thread is named" grep -qE \
	'still running: udp-[12] \(stuck on purpose\)$' "$tmp/out"
late=$(sed -n 's/.*still running: \(udp-[12]\) (stuck on purpose)$/\1/p' \
	"$tmp/out")
check "... in the report, too" grep -qF "$late" "$tmp/err"
check "... with where it said it is" grep -q 'stuck on purpose' "$tmp/err"
check "... and with its stack" grep -q 'stuck_on_purpose' "$tmp/err"
check "... down to the thread's function" grep -q 'udp_thread' "$tmp/err"

echo "# one that does not even hear signals"
left_behind -b 2 -u 2
check "it is asked to" told 'stick deaf' 'will be stuck'
check "it is" until_true told report 'stuck on purpose'
stop
end
check "exit status 124: somebody was late" test "$status" -eq 124
check "soon after the budget is over" test "$ms" -lt $soon
check "it is named" grep -qE \
	'still running: udp-[12] \(stuck on purpose\)$' "$tmp/out"
check "... with where it said it is" grep -q 'stuck on purpose' "$tmp/err"
check "its stack cannot be had, and the report says so" \
	grep -q 'not available' "$tmp/err"

echo "# the timeline"
check "it was written" test -s "$tmp/stuck.json"
check "... to its end" test "$(tail -n 1 "$tmp/stuck.json")" = ']}'
for name in udp-1 udp-2 tcp-1 tcp-2; do
	check "... with $name" grep -q "\"label\":\"$name\"" "$tmp/stuck.json"
done
tool=${EVC_TOOLS:-$bin/../tools}/evc-trace
if [ -x "$tool" ]; then
	check "... evc-trace draws it" "$tool" -o "$tmp/stuck.svg" \
		"$tmp/stuck.json"
	check "... as one picture" \
		test "$(grep -c '<svg' "$tmp/stuck.svg")" = 1
	check "... to its end" test "$(tail -c 7 "$tmp/stuck.svg")" = '</svg>'
	for name in udp-1 udp-2 tcp-1 tcp-2; do
		check "... with $name" grep -q "$name" "$tmp/stuck.svg"
	done
	if command -v rsvg-convert >/dev/null; then
		check "... that can be rendered" rsvg-convert \
			-o "$tmp/stuck.png" "$tmp/stuck.svg"
	else
		echo "SKIP rendering the timeline: no rsvg-convert"
	fi
else
	echo "SKIP drawing the timeline: no $tool: it is not built without" \
		"jansson"
fi

echo "# what it refuses"
start -b 30 --trace "$tmp/nowhere/trace.json"
"$bin/dnsd" -z "$tmp/zone" -p "$port" >"$tmp/got" 2>&1
check "a port that is taken: status 1" test $? -eq 1
check "... and why" grep -q "port $port: Address already in use" "$tmp/got"
stop
end
check "a timeline that cannot be written is no error" test "$status" -eq 143
check "... but it is said" grep -q 'nowhere/trace.json: ' "$tmp/err"
mkfifo "$tmp/nobody"
start -b 30 --trace "$tmp/nobody"
stop
end
check "nor is one that nobody would read" test "$status" -eq 143
check "... but it is said" grep -q 'nobody: ' "$tmp/err"
"$bin/dnsd" -z "$tmp/nothing" >"$tmp/got" 2>&1
check "a zone that is not there: status 1" test $? -eq 1
check "... and why" grep -q 'nothing: No such file' "$tmp/got"
refuses -z "$tmp"
check "a zone that is a folder: status 1" test $? -eq 1
check "... and why" grep -q 'it is no regular file' "$tmp/got"
grep -v SOA "$tmp/zone" >"$tmp/bad"
"$bin/dnsd" -z "$tmp/bad" >"$tmp/got" 2>&1
check "a zone without SOA: status 1" test $? -eq 1
check "... and why" grep -q 'no SOA record' "$tmp/got"
{ cat "$tmp/zone"; echo 'other.test. 60 IN A 192.0.2.1'; } >"$tmp/bad"
"$bin/dnsd" -z "$tmp/bad" >"$tmp/got" 2>&1
check "a zone with a name of another: status 1" test $? -eq 1
check "... and which" grep -q 'other.test. is not in this zone' "$tmp/got"
"$bin/dnsd" -z "$tmp/zone" -u 0 >"$tmp/got" 2>&1
check "no threads: status 2" test $? -eq 2
check "... and the usage" grep -q '^usage: dnsd ' "$tmp/got"
"$bin/dnsd" -c "$tmp/control" -x why >"$tmp/got" 2>&1
check "a command to nobody: status 1" test $? -eq 1

if [ $failures -ne 0 ]; then
	echo "$failures failures"
	exit 1
fi
