#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "coord": the same with a coordinator.  It says what base says.
. "$(dirname "$0")/common.sh"

try 0 base coord 0.005 0.02
try 0 base coord 0 0
try 2 coord-usage coord 1s

exit $failed
