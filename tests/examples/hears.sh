# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests of the examples share; read by common.sh and lib.sh.

# hears PID: has the process a handler for SIGTERM?  Until then the signal ends
# it by the default action.
hears() {
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
	[ $((0x${caught:-0} & 0x4000)) -ne 0 ]
}
