#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# How much code the stop costs a server.  In examples/server*.c and in
# examples/dnsd*.c it stands between /* stop: */ and /* :stop */; each has at
# most 40 lines of it, blank ones and comments left out, and nothing of evcoord
# is called outside, the timeline excepted: a server that draws none stops as
# well.  doc/tutorial.md shows every line of the first.  In the small servers on
# other loops, examples/loop_*, it has 6 lines at most: the coordinator, its
# attach, signals, run and end; beside them stand the members, which work, and
# the log and the stacks of reports, which end nothing.
. "$(dirname "$0")/common.sh"
need examples/server.c examples/dnsd.c examples/loop_glib.c

# budget NAME MOST BESIDE FILE...: the stop code of one program; its lines are
# noted in $tmp/NAME.marked.  BESIDE: the calls that it does not count.
budget() {
	name=$1 most=$2 beside=$3
	shift 3
	: >"$tmp/$name.marked"
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
		' marked="$tmp/$name.marked" "$@" |
		broken_lines "marks around the stop code"
	[ -s "$tmp/$name.marked" ] || broken "$1: no stop code is marked"

	code "$@" | awk -v marked="$tmp/$name.marked" -v most="$most" \
		-v beside="$beside" -v count="$tmp/count" '
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
				next
			}
			line = $0
			gsub("evc_(" beside ")[ \t]*\\(", "")
			if (/(^|[^A-Za-z0-9_])evc_[a-z_]+[ \t]*\(/)
				print at ":" line
		}
		END {
			print n + 0 >count
			if (n > most) {
				print n " lines of stop code, " most " are allowed:"
				for (i = 1; i <= n; i++)
					print text[i]
			}
		}' | broken_lines "stop code of $name"
	echo "lines of stop code in $name: $(cat "$tmp/count")"
}

timeline='trace_start|trace_stop|trace_write'
budget server 40 "$timeline" examples/server*.[ch]
budget dnsd 40 "$timeline" examples/dnsd*.[ch]
work='task_begin|task_end|thread_start|looper_start|wait_for_stop|last_error'
work="$work|stack_signal"
for file in examples/loop_*.c*; do
	name=${file##*/}
	budget "${name%.c*}" 6 "$work" "$file" examples/loops.h
done

# The tutorial shows them all, indented as it likes.
sed 's/^[[:space:]]*//' doc/tutorial.md >"$tmp/tutorial"
while IFS=: read -r file line; do
	sed -n "${line}s/^[[:space:]]*//p" "$file" >"$tmp/line"
	[ ! -s "$tmp/line" ] || grep -qxFf "$tmp/line" "$tmp/tutorial" ||
		echo "$file:$line: $(cat "$tmp/line")"
done <"$tmp/server.marked" | broken_lines "stop code that doc/tutorial.md does not show"

verdict
