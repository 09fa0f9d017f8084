#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every public function has one row in a table of what calls do in a fork child
# (tests/support/fork_calls.h, fork_cluster_calls.h), and that row calls it.  A row
# that does not says "true" and why, in a comment.
. "$(dirname "$0")/common.sh"
tables="tests/support/fork_calls.h tests/support/fork_cluster_calls.h"
need include/evcoord.h $tables

api_names $(public_headers) >"$tmp/declared"
[ -s "$tmp/declared" ] || broken "no EVC_API declaration was found"

# NAME WHAT of each row: call, reason or nothing.
awk '
function flush() {
	if (name == "")
		return
	body = row
	sub(/^[^,]*,/, "", body)
	what = "nothing"
	if (body ~ "(^|[^A-Za-z0-9_])" name "[)]?[(]")
		what = "call"
	else if (body ~ /^ true[)] [/][*] .* [*][/]/)
		what = "reason"
	print name, what
	name = ""
}
FNR == 1 { flush() }
/^\tX\(/ { flush(); name = $0; sub(/^\tX\(/, "", name); sub(/,.*/, "", name); row = "" }
name != "" { row = row $0 }
!/\\$/ { flush() }
END { flush() }
' $tables | sort >"$tmp/rows"
sed 's/ .*//' "$tmp/rows" >"$tmp/names"

comm -23 "$tmp/declared" "$tmp/names" |
	broken_lines "in no table of calls in a fork child"
comm -13 "$tmp/declared" "$tmp/names" |
	broken_lines "rows of a name that is no public function, or has two"
sed -n 's/ nothing$//p' "$tmp/rows" |
	broken_lines "rows that neither make their call nor say why not"

verdict
