#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "why_stopped": each way to stop, and what the explanation says
# of it.  Line numbers are not compared, files and functions are.
. "$(dirname "$0")/common.sh"

try 0 why_stopped-error why_stopped error
try 0 why_stopped-queue why_stopped queue
try 0 why_stopped-block why_stopped block
try 0 why_stopped-set-up why_stopped set-up
# All of them, one after the other.
cat "$expected/why_stopped-error.txt" "$expected/why_stopped-queue.txt" \
	"$expected/why_stopped-block.txt" "$expected/why_stopped-set-up.txt" \
	>"$tmp/all.txt"
expected=$tmp
try 0 all why_stopped
expected=$(dirname "$0")/expected
try 2 why_stopped-usage why_stopped because

exit $failed
