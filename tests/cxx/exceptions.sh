#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs in C++ that throw, compiled as a user would and run case by case:
# exceptions that may leave a call of ours (leaves.cc), in a fork child, too
# (forks.cc), and those of functions that we call, which end the program where they
# are thrown (ends.cc).  And a std::thread that is a member (joined.cc).
. "$(dirname "$0")/../lint/common.sh"

[ -n "$CXX" ] || skip "no C++ compiler"
echo | $CXX -dM -E -x c++ - | grep -E '__(x86_64|aarch64)__ 1' >/dev/null ||
	skip "neither amd64 nor arm64"

as_a_user
lib=$build/src/.libs

# try PROGRAM ARGUMENT...
try() {
	of=$1
	shift
	${EVC_TIMEOUT:+$EVC_TIMEOUT -s KILL 120} "$tmp/$of" "$@" ||
		broken "$of $*: status $?"
}

# build PROGRAM NAME LIBRARY...
build() {
	need "tests/cxx/$1.cc"
	from=$1 to=$2
	shift 2
	# shellcheck disable=SC2086
	$CXX -std=c++11 $flags "tests/cxx/$from.cc" -o "$tmp/$to" "$@" || exit 1
}

programs="leaves forks ends joined"
for program in $programs; do
	# shellcheck disable=SC2086
	build $program $program $libs
done
# A program without shared libraries, where the machine has the others.
if [ -z "$EVC_SANITIZERS" ] && [ -e "$lib/libevcoord.a" ] &&
	echo 'int main() {}' | $CXX -static -x c++ - -o "$tmp/none" \
		${LIBEV_LIBS:--lev} -lm 2>/dev/null; then
	# shellcheck disable=SC2086
	build leaves static_leaves -static "$lib/libevcoord.a" \
		${LIBEV_LIBS:--lev} -lm
	programs="$programs static_leaves"
fi
for program in $programs; do
	for case in $("$tmp/$program"); do
		try $program "$case"
		[ $program != ends ] || try $program "$case" fork
	done
done
verdict
