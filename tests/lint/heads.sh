#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Each .c file of src/ and tools/ begins with a head, a comment on the lines
# after the licence, of 14 lines at most:
#	/*
#	 * What the file is for, for a reader who sees the tree the first time.
#	 * Called by: the files, or the kind of caller.
#	 * Locks: those that its functions take or need, and its atomics; or none.
#	 */
. "$(dirname "$0")/common.sh"
need src/base src/core tools
LC_ALL=C
export LC_ALL

find src tools -name '*.c' | sort >"$tmp/files"

# shellcheck disable=SC2046
awk '
	FNR == 1 {
		inside = 1
		purpose = called = locks = 0
		next
	}
	!inside { next }
	FNR == 2 && $0 != "/*" { inside = 0 }
	FNR == 2 { next }
	FNR > 15 || !/^ \*/ { inside = 0; next }
	/^ \*\// {
		if (purpose && called && locks)
			print FILENAME
		inside = 0
		next
	}
	/^ \* Called by: ./ { called = purpose && !locks; next }
	/^ \* Locks: ./ { locks = called; next }
	/[a-z]/ && !called { purpose = 1 }
	' $(cat "$tmp/files") | sort >"$tmp/full"

comm -23 "$tmp/files" "$tmp/full" |
	broken_lines "no head with \"Called by:\" and \"Locks:\""
verdict
