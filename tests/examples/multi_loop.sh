#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "multi_loop": each loop is told on its own thread, and one join
# waits for all.
. "$(dirname "$0")/common.sh"

try 0 multi_loop multi_loop 20
try 2 multi_loop-usage multi_loop 0
try 2 multi_loop-usage multi_loop 3x

exit $failed
