#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "base": plain threads, told to stop and joined.
. "$(dirname "$0")/common.sh"

try 0 base base 0.005 0.02
# No time at all is a time, too.
try 0 base base 0 0
try 2 base-usage base 1s
try 2 base-usage base 1 -1

exit $failed
