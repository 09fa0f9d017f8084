#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# All thread-local data of the libraries is initial-exec.  With any other model
# the first touch may allocate, and a stop is asked for in signal handlers.
. "$(dirname "$0")/common.sh"

readelf=${READELF:-readelf}

# looks LIBRARY
looks() {
	so=$build/src/.libs/$1.so
	"$readelf" -rW "$so" >"$tmp/relocations" || exit 99
	grep -E 'DTPMOD|DTPOFF|DTPREL|TLSDESC|TLS_DESC' "$tmp/relocations" |
		broken_lines "relocations of $1 of another model than initial-exec"
	"$readelf" -sW "$so" | grep -E '__tls_get_addr' |
		broken_lines "$1 calls"

	# The library has such data, or this would show nothing.
	"$readelf" -lW "$so" | grep -q '^ *TLS ' ||
		broken "$so has no thread-local data: is this the right file?"
	"$readelf" -dW "$so" | grep -q STATIC_TLS ||
		broken "$so is not marked STATIC_TLS"
}

[ -e "$build/src/.libs/libevcoord.so" ] || skip "no shared library was built"
looks libevcoord
[ ! -e "$build/src/.libs/libevcoord-cluster.so" ] || looks libevcoord-cluster
[ ! -e "$build/src/.libs/libevcoord-redis.so" ] || looks libevcoord-redis

verdict
