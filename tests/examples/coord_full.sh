#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "coord_full": whatever goes wrong, one join ends it, with all
# threads gone, and says why.
. "$(dirname "$0")/common.sh"

try 0 coord_full coord_full 0.005 0.02
# What goes wrong wakes main early: these would take minutes otherwise.
try 1 coord_full-main coord_full --fail=main 100 100
try 1 coord_full-thread coord_full --fail=thread 0.005 100
try 0 coord_full-signal coord_full --fail=signal 100 100
try 0 coord_full-interrupt coord_full --fail=interrupt 100 100
try 2 coord_full-usage coord_full --fail=badly
try 2 coord_full-usage coord_full 1 2 3

exit $failed
