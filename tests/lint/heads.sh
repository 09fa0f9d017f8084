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
# tests/lint/heads.todo lists the files that have none yet, and only shrinks: a
# file leaves it with its head, and a file that moves is renamed in it.
. "$(dirname "$0")/common.sh"
todo=tests/lint/heads.todo
need src/base src/core tools $todo
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

sort -c $todo 2>&1 | broken_lines "$todo is not sorted"
comm -23 "$tmp/files" "$tmp/full" | comm -23 - $todo | broken_lines \
	"no head with \"Called by:\" and \"Locks:\", and not in $todo"
comm -12 "$tmp/full" $todo | broken_lines \
	"has its head; take it from $todo"
comm -13 "$tmp/files" $todo | broken_lines \
	"is gone or has moved; change its line in $todo"
echo "files without a head: $(wc -l <$todo)"
verdict
