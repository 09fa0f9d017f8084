#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# How much code the stop costs a server.  In examples/server*.c it stands
# between /* stop: */ and /* :stop */; there are at most 40 lines of it, blank
# ones and comments left out, and nothing of evcoord is called outside.  README
# shows every line of it.
. "$(dirname "$0")/common.sh"
need examples/server.c

awk '
	FNR == 1 {
		if (open)
			print file ": a \"stop:\" mark is not closed"
		open = 0
		file = FILENAME
	}
	/\/\* stop: \*\// {
		if (open)
			print FILENAME ":" FNR ": \"stop:\" inside \"stop:\""
		open = 1
		next
	}
	/\/\* :stop \*\// {
		if (!open)
			print FILENAME ":" FNR ": \":stop\" without \"stop:\""
		open = 0
		next
	}
	open { print FILENAME ":" FNR >marked }
	END { if (open) print file ": a \"stop:\" mark is not closed" }
	' marked="$tmp/marked" examples/server*.[ch] |
	broken_lines "marks around the stop code"
[ -s "$tmp/marked" ] || broken "examples/server*.c: no stop code is marked"

code examples/server*.[ch] | awk -v marked="$tmp/marked" -v most=40 \
	-v count="$tmp/count" '
	BEGIN { while ((getline line < marked) > 0) inside[line] = 1 }
	{
		at = $0
		sub(/^[^:]*:[0-9]+:/, "")
		at = substr(at, 1, length(at) - length($0) - 1)
		if (at in inside) {
			if ($0 !~ /^[ \t]*$/) {
				n++
				text[n] = at ":" $0
			}
		} else if ($0 ~ /(^|[^A-Za-z0-9_])evc_[a-z_]+[ \t]*\(/)
			print at ":" $0
	}
	END {
		print n + 0 >count
		if (n > most) {
			print n " lines of stop code, " most " are allowed:"
			for (i = 1; i <= n; i++)
				print text[i]
		}
	}' | broken_lines "stop code of the server"
echo "lines of stop code: $(cat "$tmp/count")"

# README shows them all, indented as it likes.
sed 's/^[[:space:]]*//' README >"$tmp/readme"
while IFS=: read -r file line; do
	sed -n "${line}s/^[[:space:]]*//p" "$file" >"$tmp/line"
	[ ! -s "$tmp/line" ] || grep -qxFf "$tmp/line" "$tmp/readme" ||
		echo "$file:$line: $(cat "$tmp/line")"
done <"$tmp/marked" | broken_lines "stop code that README does not show"

verdict
