#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# In src/, a function that has an array of NAME places, and walks it by an index
# that is no constant, says NAME (or sizeof the array) where it bounds the index,
# too.  A bound that stands somewhere else alone, with another name, is one day
# another one: then a caller's number, or a peer's, walks beyond the end.
. "$(dirname "$0")/common.sh"
need src/wire/walk.c

code $(find src -name '*.[ch]' | sort) | awk '
# Does s say the word w?
function says(s, w) {
	return s ~ ("(^|[^A-Za-z0-9_])" w "([^A-Za-z0-9_]|$)")
}

function finish(   a) {
	for (a in size)
		if (walked[a] && !says(rest, size[a]) &&
		    rest !~ ("sizeof[ (]*" a "([^A-Za-z0-9_]|$)"))
			print at[a] ": " a "[" size[a] "] is walked, and " \
				size[a] " bounds nothing here"
	split("", size)
	split("", at)
	split("", walked)
	rest = ""
}

{
	match($0, /^[^:]*:[0-9]*:/)
	place = substr($0, 1, RLENGTH - 1)
	line = substr($0, RLENGTH + 1)
}

line ~ /^{/ { inside = 1 }

line ~ /^}/ {
	finish()
	inside = 0
}

inside {
	kept = line
	# A declaration: a type, and names.
	if (line ~ /^\t+[a-z_][a-z_0-9 ]*[ *]+[A-Za-z_]/ &&
	    line !~ /^\t+(return|else|case|goto)[ \t]/)
		while (match(line, /[ *,(][a-z_][a-z_0-9]*\[[A-Z][A-Z_0-9]*/)) {
			found = substr(line, RSTART + 1, RLENGTH - 1)
			name = found
			sub(/\[.*/, "", name)
			sub(/.*\[/, "", found)
			if (!(name in size)) {
				size[name] = found
				at[name] = place
				# What follows may be another bound.
				sub("[ *,(]" name "\\[" found, " ", kept)
			}
			line = substr(line, RSTART + RLENGTH)
		}
	rest = rest "\n" kept
	for (a in size)
		if (kept ~ ("(^|[^A-Za-z0-9_.>])" a "\\[[^]0-9A-Z]"))
			walked[a] = 1
}' | broken_lines "a bound that stands somewhere else alone"

verdict
