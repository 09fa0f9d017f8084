#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The servers on other loops, loop_glib, loop_uv and the others for which
# configure has found the library: a SIGTERM in the middle of an answer leaves
# the answer whole and the status 0; a thread that does not hear the stop is
# named, and the status is 124.
. "$(dirname "$0")/common.sh"

hosts=${EVC_HOSTS?}
[ -n "$hosts" ] || { echo "SKIP loops.sh: no library of another loop"; exit 77; }
ask=${EVC_TOP_BUILDDIR:-.}/tests/examples/ask
i=1
while [ $i -le 20 ]; do
	echo "line $i of 20"
	i=$((i + 1))
done >"$tmp/whole"

# starts NAME PROGRAM OPTION...: sets pid and port when the server listens.
starts() {
	name=$1
	shift
	: >"$tmp/$name.out"
	"$examples/$@" >"$tmp/$name.out" 2>"$tmp/$name.err" &
	pid=$!
	tries=0
	until port=$(sed -n 's/^port //p' "$tmp/$name.out") && [ "$port" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 1000 ] || ! kill -0 $pid; then
			echo "FAIL $*: no port; it said:"
			cat "$tmp/$name.out" "$tmp/$name.err"
			failed=1
			kill -KILL $pid
			return 1
		fi
		sleep 0.02
	done
}

# ends NAME PID STATUS LAST-LINE...: what the server said, but for its port.
ends() {
	name=$1 of=$2 want=$3
	shift 3
	wait "$of"
	status=$?
	sed -n '2,$p' "$tmp/$name.out" | normalise >"$tmp/text"
	# A stop at once leaves the looper no time.
	[ $want = 0 ] || sed -i 's/no run of the looper/the looper ran/' \
		"$tmp/text"
	printf '%s\n' 'SIGTERM from pid N, uid N' "$@" >"$tmp/want"
	if [ $status -ne "$want" ] || ! diff -u "$tmp/want" "$tmp/text"; then
		echo "FAIL $name: status $status, not $want; it said:"
		cat "$tmp/$name.out" "$tmp/$name.err"
		failed=1
	else
		echo "ok $name"
	fi
}

# The ones with a thread that is stuck wait for it side by side.
stuck=
for host in $hosts; do
	starts "$host --stuck" "loop_$host" --stuck || continue
	kill -TERM $pid
	stuck="$stuck $host:$pid"
done
for host in $hosts; do
	starts "$host" "loop_$host" || continue
	if ! "$ask" "$port" $pid >"$tmp/answer" ||
	   ! diff -u "$tmp/whole" "$tmp/answer"; then
		echo "FAIL loop_$host: its answer was cut"
		failed=1
	fi
	ends "$host" $pid 0 '1 answers, the looper ran' 'all have ended'
done
for host in $stuck; do
	ends "${host%:*} --stuck" "${host#*:}" 124 \
		'0 answers, the looper ran' 'still running: worker'
	# The log says what hangs, and where.
	for line in 'the time of the stop is over' 'thread "worker" .*, live' \
		' stack: '; do
		grep -q "$line" "$tmp/${host%:*} --stuck.err" && continue
		echo "FAIL loop_${host%:*} --stuck: no $line in its log:"
		cat "$tmp/${host%:*} --stuck.err"
		failed=1
	done
done
exit $failed
