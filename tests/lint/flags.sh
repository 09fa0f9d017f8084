#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# No two flags of the public headers are the same bit, whatever they are for; so
# one that is given to the wrong struct or call is refused.  The bits of
# evcoord/unstable are compared with each other alone: an engine says by them
# what it can do, and no call of a program takes them.
. "$(dirname "$0")/common.sh"
need include/evcoord/types.h

code $(public_headers) |
	sed -n 's/^\([^:]*:[0-9]*\):.*[^A-Z_a-z]\(EVC_[A-Z_]*\) = 1u* << \([0-9]*\).*/\1 \2 \3/p' \
		>"$tmp/flags"
[ -s "$tmp/flags" ] || broken "no flag was found"
awk '
	{ bit = ($1 ~ /\/unstable\// ? "unstable " : "") $3 }
	bit in name { print $1 ": " $2 " is the bit of " name[bit] }
	{ name[bit] = $2 }
	' "$tmp/flags" | broken_lines "two flags with one bit"

# Another way to write one would not be seen.
code $(public_headers) |
	grep -E 'EVC_[A-Z_]+ *=.*(<<|0x)' |
	grep -vE 'EVC_[A-Z_]+ = 1u? << [0-9]+[,]?[[:space:]]*$' |
	broken_lines "a flag is written as NAME = 1 << N, on a line of its own"

verdict
