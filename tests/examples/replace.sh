#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The example "replace": one thread is stopped and replaced three times, while
# another library's thread goes on until the stop of all.
. "$(dirname "$0")/common.sh"

try 0 replace replace 0.05
try 2 replace-usage replace 0
try 2 replace-usage replace 1 2
exit $failed
