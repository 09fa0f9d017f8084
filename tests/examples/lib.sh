# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# lib.sh - what the tests of the example servers share.
#
# Sourced by bash, whose /dev/tcp gives raw connections.  The folder of the
# built examples comes by EVC_EXAMPLES (default: build/examples at the top);
# EVC_WRAP, if set, is a command that the server is run under, such as
# `libtool --mode=execute valgrind`.  Nothing here waits for a time, all for
# conditions, $limit seconds at most.

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 99
. "$here/hears.sh"
# shellcheck disable=SC2034 # for the tests
bin=${EVC_EXAMPLES:-$here/../../build/examples}
limit=60
server=''
others=()
failures=0

tmp=$(mktemp -d) || exit 99

cleanup() {
	local pid

	for pid in $server "${others[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 99' HUP INT TERM
trap '' PIPE # a connection that the server closed is a result, no accident

# many N FEW: N; with a sanitizer, which makes everything slow, FEW.
many() {
	[ -z "${EVC_SANITIZERS-}" ] || [ -n "${EVC_WHOLE-}" ] || shift
	echo "$1"
}

# check TEXT COMMAND...: one result.
check() {
	local text=$1

	shift
	if "$@"; then
		echo "ok: $text"
	else
		echo "FAILED: $text: $*"
		failures=$((failures + 1))
	fi
}

# until_true COMMAND...: wait for it; false when the time is over.
until_true() {
	local end=$((SECONDS + limit))

	until "$@"; do
		[ $SECONDS -gt $end ] && return 1
		sleep 0.02
	done
}

# manager_starts: a service manager listens, and NOTIFY_SOCKET says where; what
# it is told is in $tmp/manager.  False: there is no socat.
manager_starts() {
	command -v socat >/dev/null || return
	rm -f "$tmp/notify"
	: >"$tmp/manager"
	socat -u "UNIX-RECV:$tmp/notify" STDOUT >>"$tmp/manager" &
	others+=($!)
	until_true test -S "$tmp/notify"
	export NOTIFY_SOCKET=$tmp/notify
}

manager_ends() {
	unset NOTIFY_SOCKET WATCHDOG_USEC
	kill "${others[@]}" 2>/dev/null
	wait "${others[@]}" 2>/dev/null
	others=()
}

# manager_told LINE...: these, in this order.
manager_told() {
	local line at=0 next

	for line; do
		next=$(awk -v line="$line" -v at="$at" \
			'NR > at && index($0, line) == 1 { print NR; exit }' \
			"$tmp/manager")
		[ -n "$next" ] || return
		at=$next
	done
}

# Has it ended?  A zombie has: nobody has waited for it yet.
ended() {
	! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"
}
