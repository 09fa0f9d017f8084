#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# help.sh - every example and every tool says with --help how it is used.
#
# shellcheck disable=SC2154 # bin, tmp, failures: lib.sh
[ -n "${BASH_VERSION-}" ] || exec bash "$0" "$@"
set -u
. "$(dirname -- "$0")/lib.sh"

top=${EVC_TOP_SRCDIR:-$here/../..}
tools=${EVC_TOOLS:-$bin/../tools}

# helps PROGRAM: its usage is on standard output, and nothing else is said.
helps() {
	"$1" --help >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	[ $status -eq 0 ] && grep -q "^usage: ${1##*/} " "$tmp/out" &&
		[ ! -s "$tmp/err" ] && return
	echo "status $status"
	cat "$tmp/out" "$tmp/err"
	return 1
}

for program in $(sed -n 's/^examples_\([a-z_]*\)_SOURCES.*/\1/p' \
	"$top/examples/Makemodule.am"); do
	[ ! -x "$bin/$program" ] || check "$program --help" helps "$bin/$program"
done
for program in evc-cluster evc-trace evc-worker; do
	[ ! -x "$tools/$program" ] ||
		check "$program --help" helps "$tools/$program"
done
exit $((failures != 0))
