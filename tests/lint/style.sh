#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A file of src/ holds one idea, so it has 450 lines at most.  Each source
# file says under which licence it stands.  A public header and NEWS have lines
# of 80 characters at most, and NEWS says nothing twice: a merge of two changes
# can leave both forms of a sentence.  Requests of the library's own name no
# place: the macros would put the path of its build into the program's log.
. "$(dirname "$0")/common.sh"
need src/core/life/coord.c Makefile.am

find src -name '*.[ch]' -exec wc -l {} + |
	awk '$2 != "total" && $1 > 450 { print $2 ": " $1 " lines" }' |
	broken_lines "more than 450 lines: two ideas?"

grep -En '(^|[^_a-z(])evc_(request_stop|fail)\(' -r src --include='*.c' |
	grep -v ':evc_' | broken_lines "(evc_request_stop)(...) names no place"

find include -name '*.h' -o -name '*.hpp' | sort | while read -r file; do
	expand "$file" | awk -v file="$file" 'length > 80 { print file ":" FNR }'
done | broken_lines "a public header with more than 80 columns"

find src include tools tests examples bench -name '*.[ch]' | sort |
while read -r file; do
	[ "$(head -n 1 "$file")" = '/* SPDX-License-Identifier: BSD-2-Clause */' ] ||
		echo "$file"
done | broken_lines "its first line is not /* SPDX-License-Identifier: BSD-2-Clause */"

{
	ls bootstrap .ci/run configure.ac Makefile.am ./*/Makemodule.am \
		m4/evc_*.m4 src/libevcoord.map tests/run
	find man -name '*.[1-9]'
	find tests examples bench -name '*.sh' -o -name '*.awk'
} | sort | while read -r file; do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' ||
		echo "$file"
done | broken_lines "no SPDX-License-Identifier: BSD-2-Clause in the first three lines"

awk 'length > 80 { print "NEWS:" NR ": more than 80 characters" }
	/^(- |  [^ ]).*[A-Za-z]<[A-Za-z]/ {
		print "NEWS:" NR ": a word in <> is no text for make html"
	}
	{ for (i = 1; i <= NF; i++) { word[++n] = $i; line[n] = NR } }
	END {
		for (i = 6; i <= n; i++) {
			six = ""
			for (j = i - 5; j <= i; j++)
				six = six " " word[j]
			if (seen[six]++)
				print "NEWS:" line[i] ": twice:" six
		}
	}' NEWS | broken_lines "a sentence that a merge has left in two forms?"

verdict
