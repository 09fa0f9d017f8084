#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What a service tells its manager, seen by somebody else's program: socat
# listens, at a path and at an abstract name, and writes down what comes.  Where
# systemd-notify(1) is there, it says the same as the service does, and what
# arrives is compared.
#
# systemd itself is not asked: it does not run in a build.
. "$(dirname "$0")/../lint/common.sh"

command -v socat >/dev/null || skip "no socat to listen with"

as_a_user
limited=${EVC_TIMEOUT:+$EVC_TIMEOUT -s KILL 60}

# A service with one member that gets on while it stops.
cat >"$tmp/service.c" <<'END'
#include <evcoord.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>

static evc_status
finish_slowly(evc_coord *c, void *arg)
{
	struct timespec nap = { 0, 100000000 };
	int i;

	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	for (i = 0; i < 10; i++) {
		evc_progress("finishing");
		nanosleep(&nap, NULL);
	}
	return 0;
}

int
main(void)
{
	struct timespec nap = { 0, 300000000 };
	evc_systemd_opts o = { .status_every = 0.05 };
	evc_status st;
	evc_coord *c;

	if (evc_new(NULL, NULL, &c) < 0 || evc_signals_start(c, NULL) < 0 ||
	    evc_systemd_start(c, &o) < 0 ||
	    evc_thread_start(c, "slow", finish_slowly, NULL, NULL, NULL) < 0 ||
	    evc_systemd_ready(c, "serving") < 0) {
		fprintf(stderr, "%s\n", evc_last_error());
		return 2;
	}
	nanosleep(&nap, NULL);
	raise(SIGTERM);
	st = evc_join(c, NULL, NULL);
	return evc_finish(c, st);
}
END
# shellcheck disable=SC2086 # lists of flags
${CC:-cc} $flags "$tmp/service.c" -o "$tmp/service" $libs >"$tmp/said" 2>&1 || {
	cat "$tmp/said"
	broken "the service does not compile"
	verdict
}

# listen ADDRESS: socat writes what comes to $tmp/heard; $listener is its pid.
listen() {
	: >"$tmp/heard"
	$limited socat -u "$1" "OPEN:$tmp/heard,append" 2>"$tmp/socat" &
	listener=$!
}

# until_true COMMAND...: wait for it, 20 seconds at most.
until_true() {
	tenths=0
	until "$@" >/dev/null 2>&1; do
		[ $tenths -lt 200 ] || return 1
		sleep 0.1
		tenths=$((tenths + 1))
	done
}

# in_order PATTERN...: lines of $tmp/heard that match, one after the other.
in_order() {
	from=1
	for pattern; do
		at=$(tail -n +$from "$tmp/heard" | grep -n -m 1 -E "$pattern" |
			cut -d: -f1)
		if [ -z "$at" ]; then
			broken "$place: no \"$pattern\" after line $from; heard:"
			cat "$tmp/heard"
			return
		fi
		from=$((from + at))
	done
	echo "ok $place: all was heard, in order"
}

for place in path abstract; do
	if [ $place = path ]; then
		NOTIFY_SOCKET=$tmp/notify
		listen "UNIX-RECV:$NOTIFY_SOCKET"
		until_true test -S "$NOTIFY_SOCKET"
	else
		NOTIFY_SOCKET=@evcoord-systemd-sh-$$
		listen "ABSTRACT-RECV:${NOTIFY_SOCKET#@}"
		until_true grep -q "$NOTIFY_SOCKET" /proc/net/unix
	fi || { broken "$place: socat does not listen"; cat "$tmp/socat"; }
	export NOTIFY_SOCKET
	env -u WATCHDOG_PID WATCHDOG_USEC=100000 $limited "$tmp/service" \
		>"$tmp/said" 2>&1 ||
		{ broken "$place: the service: status $?"; cat "$tmp/said"; }
	until_true grep -q '^STATUS=stopped$' "$tmp/heard"
	in_order '^READY=1$' '^STATUS=serving$' '^WATCHDOG=1$' \
		'^STOPPING=1$' '^STATUS=stopping$' \
		'^STATUS=stopping: [12] members? left: slow.*; requested by .*: SIGTERM from pid [0-9]+' \
		'^EXTEND_TIMEOUT_USEC=5000000$' '^EXTEND_TIMEOUT_USEC=5000000$' \
		'^STATUS=stopped$'
	# What another sender's word looks like at the same place.
	if systemd-notify --help 2>/dev/null | grep -q -e --no-block; then
		cp "$tmp/heard" "$tmp/ours"
		: >"$tmp/heard"
		# It waits for an answer that only systemd gives.
		systemd-notify --no-block --ready --status=serving \
			2>"$tmp/said" || {
			broken "$place: systemd-notify: status $?"
			cat "$tmp/said"
		}
		until_true grep -q STATUS=serving "$tmp/heard"
		for line in READY=1 STATUS=serving; do
			grep -qx "$line" "$tmp/heard" &&
				grep -qx "$line" "$tmp/ours" &&
				echo "ok $place: $line, as systemd-notify says it" ||
				broken "$place: systemd-notify says it otherwise: $line"
		done
	else
		echo "SKIP $place: no systemd-notify --no-block to compare with"
	fi
	kill "$listener"
	wait "$listener" 2>/dev/null
done

verdict
