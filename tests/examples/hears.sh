# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of the examples share; read by common.sh and lib.sh.

# hears PID: has the program a handler for SIGTERM?  Until then the signal ends
# it by the default action.  Before its exec the process is this shell, which
# has one.
hears() {
	[ "$(readlink "/proc/$1/exe")" != "$(readlink "/proc/$$/exe")" ] ||
		return 1
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
	[ $((0x${caught:-0} & 0x4000)) -ne 0 ]
}
