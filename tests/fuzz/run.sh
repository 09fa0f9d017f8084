#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs the fuzz programs of a build for longer than make check does, and with
# inputs that are new each time:
#	tests/fuzz/run.sh [SECONDS [SEED [NAME...]]]
# in the build folder: each program, or those that are named (values ...), for
# SECONDS (EVC_FUZZ_SECONDS, or 60), from SEED (the time).  One that fails
# prints its input; PROGRAM -x INPUT runs that one again.  The status is 0 when
# none failed.

seconds=${1:-${EVC_FUZZ_SECONDS:-60}}
seed=${2:-$(date +%s)}
[ $# -gt 2 ] && shift 2 || set --
top=${EVC_TOP_SRCDIR:-$(dirname "$0")/../..}
build=${EVC_TOP_BUILDDIR:-.}
EVC_TOP_SRCDIR=$top
export EVC_TOP_SRCDIR

if [ $# -eq 0 ]; then
	for source in "$top"/tests/fuzz/*.c; do
		name=${source##*/}
		set -- "$@" "${name%.c}"
	done
fi
status=0
for name; do
	program=$build/tests/fuzz/$name
	if [ ! -x "$program" ]; then
		echo "there is no $program: make check builds it" >&2
		exit 2
	fi
	"$top/tests/run" "$program" "$seconds" "$seed" || status=1
done
exit $status
