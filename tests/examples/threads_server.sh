#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# threads_server.sh - the example "threads_server": at SIGTERM the requests that
# have begun are answered, also one in the queue of the socket, and idle
# connections are closed.  A connection for which there is no thread or no
# descriptor stops nothing.
#
# shellcheck disable=SC2154 # bin, tmp, failures, limit: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"

starts() {
	: >"$tmp/out"
	# shellcheck disable=SC2086 # EVC_WRAP is a list of words
	${EVC_WRAP-} "$bin/threads_server" >"$tmp/out" 2>"$tmp/err" &
	server=$!
	until_true grep -q '^port ' "$tmp/out"
	port=$(sed -n 's/^port //p' "$tmp/out")
}

# ends PATTERN: the server ends with status 0, and its last line is like that.
ends() {
	wait "$server"
	status=$?
	server=''
	[ $status -eq 0 ] && tail -n 1 "$tmp/err" | grep -q "$1" && return
	echo "status $status:"
	cat "$tmp/err"
	return 1
}

# gets FD TEXT: the next line from the server.
gets() {
	local line=''

	read -r -t $limit -u "$1" line
	[ "$line" = "$2" ]
}

# closed FD: nothing more comes.
closed() {
	read -r -t $limit -u "$1"
	[ $? -eq 1 ] # more than 128: the time is over
}


starts
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"
echo 0 >&3
check 'an answer' gets 3 'done 0'

# No descriptor for the third connection, until one is closed.
highest=$(find "/proc/$server/fd" -mindepth 1 -printf '%f\n' | sort -n | tail -n 1)
prlimit --pid "$server" --nofile=$((highest + 1)):
exec 5<>"/dev/tcp/127.0.0.1/$port"
echo 0 >&5
exec 3>&-
check 'a connection that waits for a descriptor' gets 5 'done 0'
prlimit --pid "$server" --nofile=64:

printf '0.3\n0.01\n' >&4
kill -STOP "$server"
exec 6<>"/dev/tcp/127.0.0.1/$port"
echo 0.02 >&6
kill -TERM "$server"
kill -CONT "$server"
check 'a request that has begun' gets 4 'done 0.3'
check 'and the one behind it' gets 4 'done 0.01'
check 'a request in the queue of the socket' gets 6 'done 0.02'
check 'an idle connection' closed 5
check 'the end' ends '^threads_server: SIGTERM from .*; 0 late, '
exec 4>&- 5>&- 6>&-

# With the memory that the server has no thread can be made.
if [ -z "${EVC_SANITIZERS-}${EVC_WRAP-}" ]; then
	starts
	has=$(sed -n 's/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$server/status")
	prlimit --pid "$server" --as=$((has * 1024)):
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	check 'a connection without a thread' closed 3
	prlimit --pid "$server" --as=unlimited:
	exec 4<>"/dev/tcp/127.0.0.1/$port"
	echo 0 >&4
	check 'the next one' gets 4 'done 0'
	kill -TERM "$server"
	check 'it was no error' ends '^threads_server: SIGTERM from .*; 0 late, '
	check 'the server says why' \
		grep -q '^threads_server: evc_thread_start: ' "$tmp/err"
fi
exit $((failures != 0))
