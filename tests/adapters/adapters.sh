#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The adapters, each with the library of its loop where configure has found it:
# compiled as a user would, in C99 and C++11 without a warning, and run through
# the cases of cases.h.
. "$(dirname "$0")/../lint/common.sh"

hosts=${EVC_HOSTS?}
[ -n "$hosts" ] || skip "no library of another loop"
as_a_user

# compiles COMMAND...
compiles() {
	"$@" >"$tmp/out" 2>&1 && return
	broken "does not compile: $*"
	cat "$tmp/out"
	return 1
}

# try PROGRAM
try() {
	[ -x "$tmp/$1" ] || return
	# Qt's other dispatcher is GLib, which no exception may pass.
	QT_NO_GLIB=1 "$tmp/$1" >"$tmp/out" 2>&1 && return
	broken "$1: status $?"
	cat "$tmp/out"
}

strict="$flags -Wpedantic -D_GNU_SOURCE"
for host in $hosts; do
	of_host $host
	c=tests/adapters/$host.c cc=tests/adapters/$host.cc
	# shellcheck disable=SC2086 # lists of flags
	if [ -e $cc ]; then
		compiles $CXX -std=c++11 -fPIC $strict $host_flags $cc \
			-o "$tmp/$host" $host_libs $libs
	else
		compiles ${CC:-cc} -std=c99 $strict $host_flags $c \
			-o "$tmp/$host" $host_libs $libs
		[ -z "$CXX" ] || compiles $CXX -x c++ -std=c++11 $strict \
			-Wold-style-cast $host_flags -fsyntax-only $c
	fi
	try $host
done
case " $hosts " in
*\ glib\ *uv\ *)
	of_host glib
	two_flags=$host_flags two_libs=$host_libs
	of_host uv
	# shellcheck disable=SC2086
	compiles ${CC:-cc} -std=c99 $strict $two_flags $host_flags \
		tests/adapters/two.c -o "$tmp/two" $two_libs $host_libs $libs
	try two
	;;
esac
verdict
