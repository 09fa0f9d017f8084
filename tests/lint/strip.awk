# SPDX-License-Identifier: BSD-2-Clause
#
# Prints C sources as FILE:LINE:TEXT, without comments and without what stands
# between quotes.  The name of an included file is no string: it stays.  With
# -v comments=1 only the text of the comments is printed.

FNR == 1 { inside = 0 }

{
	line = $0
	out = ""
	said = ""
	if (line ~ /^[ \t]*#[ \t]*include[ \t]*"/ && !inside && !comments) {
		sub(/\/\*.*/, "", line)
		print FILENAME ":" FNR ":" line
		next
	}
	while (line != "") {
		if (inside) {
			at = index(line, "*/")
			said = said (at ? substr(line, 1, at - 1) : line) " "
			if (!at)
				break
			line = substr(line, at + 2)
			inside = 0
			out = out " "
			continue
		}
		if (!match(line, /\/\*|\/\/|"|'/)) {
			out = out line
			break
		}
		mark = substr(line, RSTART, RLENGTH)
		out = out substr(line, 1, RSTART - 1)
		line = substr(line, RSTART + RLENGTH)
		if (mark == "//") {
			said = said line
			break
		}
		if (mark == "/*") {
			inside = 1
			continue
		}
		# The rest of a string or character, escapes included.
		pattern = mark == "'" ? "^([^'\\\\]|\\\\.)*'" : \
			"^([^\"\\\\]|\\\\.)*\""
		if (match(line, pattern))
			line = substr(line, RLENGTH + 1)
		else
			line = ""
		out = out mark mark
	}
	if (!comments)
		print FILENAME ":" FNR ":" out
	else if (said ~ /[^ \t]/)
		print FILENAME ":" FNR ":" said
}
