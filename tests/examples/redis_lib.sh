# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# redis_lib.sh - what the scripts over Redis share; sourced behind lib.sh.  The
# tools are in EVC_TOOLS (default: beside the folder of the examples).  What is
# missing ends the script with 77.
# shellcheck disable=SC2154 # bin, others, tmp: lib.sh

tools=${EVC_TOOLS:-$bin/../tools}
build=${EVC_TOP_BUILDDIR:-$bin/..}
# A sanitizer's dlopen does not look where the library that calls it would.
export LD_LIBRARY_PATH=$build/src/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LC_ALL=C

skip() {
	echo "SKIP ${0##*/}: $*"
	exit 77
}

[ -x "$tools/evc-cluster" ] && [ -x "$tools/evc-worker" ] ||
	skip "no evc-cluster and evc-worker in $tools: they are not built without hiredis"
[ -e "$build/src/.libs/libevcoord-redis.so" ] ||
	skip "no shared library was built, and the examples find the engine by dlopen"
redis=''
for program in "${REDIS_SERVER:-}" redis-server valkey-server; do
	[ -n "$redis" ] || redis=$(command -v "${program:-none}")
done
[ -n "$redis" ] || skip "no redis-server (Debian: redis-server)"

# answers PID PORT: it takes connections there, or has ended.
answers() {
	ended "$1" || (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null
}

# on_a_port COMMAND...: run it in the background, with another port until it takes
# connections there; PORT in an argument, or in $tmp/conf, is that.  Sets port.
on_a_port() {
	local pid try

	for try in 1 2 3 4 5 6 7 8 9 10; do
		port=$((10000 + RANDOM % 20000))
		[ ! -e "$tmp/conf" ] ||
			sed "s/PORT/$port/" "$tmp/conf" >"$tmp/conf.$port"
		"${@//PORT/$port}" >"$tmp/log.$port" 2>&1 &
		pid=$!
		others+=("$pid")
		disown "$pid" # its end at the end is no news
		until_true answers "$pid" "$port"
		ended "$pid" || return 0
	done
	cat "$tmp/log.$port"
	echo "FAILED: $1: no port after $try tries"
	exit 1
}

# start_server OPTION...: a Redis server; sets port.
start_server() {
	on_a_port "$redis" --port PORT --bind 127.0.0.1 --save '' \
		--appendonly no --dir "$tmp" "$@"
}
