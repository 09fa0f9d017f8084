# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# redis_lib.sh - what the scripts over Redis share; sourced behind lib.sh.  The
# tools are in EVC_TOOLS (default: beside the folder of the examples).  What is
# missing ends the script with 77.
# shellcheck disable=SC2154 # bin: lib.sh

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
