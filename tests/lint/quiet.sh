#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The library prints nothing, never ends the process, and leaves signal
# handlers and the application's ev_run alone.  What is allowed, and where:
#	ev_break		src/core/join/run.c, src/core/join/loop.c: only for
#				the ev_run that they began themselves
#	_exit, sigaction,	src/signals/signals.c: the third signal, switched
#	raise, write,		on by name, and its line, to standard error
#	STDERR_FILENO		unless told otherwise; the handlers that were
#				asked for; a fork child's signal, to the
#				handler before us
#	_exit, abort, write,	src/core/join/watch.c: the end of a process that
#	sigaction,		has asked for it with at_end, and its line;
#	STDERR_FILENO		src/wake/ending.c: its report, without a log hook
#	_exit, sigaction,	src/signals/raise.c: a program's last call
#	raise
#	syslog, STDERR_FILENO	src/observe/log_ready.c: the two log functions
#				that a program may put into its evc_config
#	sigaction, raise	src/signals/dump.c: likewise for the signal that
#				has a report written
#	sigaction		src/base/kick.c, src/base/stack.c: the kick and
#				the stack signal, asked for by name or EVC_KICK
#	sync_pid_signal,	src/base/reap.c: to child processes
#	  sync_pidfd_signal
#	sync_pid_signal,	src/cluster/worker/control.c: a process that was
#	  sync_end_timer	started as a worker ends when the lease is over
#				under which it was told to run: who goes on is
#				not the only one any more that runs its function
#	_exit			src/cluster/open/main.c: likewise, when a function
#				has ended the thread of the worker
. "$(dirname "$0")/common.sh"
need src/core/join/run.c src/signals/signals.c

find src -name '*.[ch]' | sort >"$tmp/files"
code $(cat "$tmp/files") |
	grep -E "$(words 'printf|fprintf|vprintf|vfprintf|dprintf|vdprintf|puts|fputs|fputc|putc|putchar|fwrite|write|writev|pwrite|perror|psignal|psiginfo|syslog|vsyslog|errx?|verrx?|warnx?|vwarnx?|error|abort|exit|_exit|_Exit|quick_exit|SYS_exit_group|assert|raise|kill|ev_break|ev_set_syserr_cb|ev_set_allocator|ev_set_userdata|signal|sigaction|sync_pid_signal|sync_pidfd_signal|sync_end_timer|__builtin_trap|__builtin_abort')[ \t]*\(|$(words 'stdout|stderr|STDOUT_FILENO|STDERR_FILENO|SYS_exit_group')([^A-Za-z0-9_]|\$)" \
	>"$tmp/hits"
awk -F: '
	{
		word = $0
		sub(/^[^:]*:[0-9]+:/, "", word)
	}
	$1 ~ /^src\/core\/join\/(run|loop)\.c$/ && word ~ /ev_break/ { next }
	$1 ~ /^src\/base\/(kick|stack)\.c$/ && word ~ /sigaction[ \t]*\(/ { next }
	$1 == "src/signals/dump.c" && word ~ /(sigaction|raise)[ \t]*\(/ { next }
	$1 == "src/signals/signals.c" && word ~ /(_exit|sigaction|raise|write)[ \t]*\(/ { next }
	$1 == "src/signals/raise.c" && word ~ /(_exit|sigaction|raise)[ \t]*\(/ { next }
	$1 == "src/signals/signals.c" && word ~ /exit_fd = .*STDERR_FILENO/ { next }
	$1 == "src/core/join/watch.c" && word ~ /(_exit|abort|sigaction|write)[ \t]*\(|STDERR_FILENO/ { next }
	$1 == "src/wake/ending.c" && word ~ /STDERR_FILENO/ { next }
	$1 == "src/observe/log_ready.c" && word ~ /syslog[ \t]*\(|STDERR_FILENO/ { next }
	$1 ~ /^src\/base\/sync_(fd|spawn)\.h$/ && word ~ /define sync_/ { next }
	$1 == "src/base/reap.c" && word ~ /sync_pid(fd)?_signal[ \t]*\(/ { next }
	$1 == "src/cluster/open/main.c" && word ~ /_exit[ \t]*\(/ { next }
	$1 == "src/cluster/worker/control.c" && word ~ /sync_(end_timer|pid_signal)[ \t]*\(/ { next }
	# A field or a function pointer of that name is no call of libc.
	word ~ /(->|\.)(error|kill|raise|signal|warn)[ \t]*\(/ { next }
	{ print }' "$tmp/hits" | broken_lines "the library must not"

verdict
