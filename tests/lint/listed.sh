#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every file of the tree stands in a Makefile fragment by name, so that each
# test runs and each source is built and distributed; and every test that
# skips itself under a tool stands in tests/sanitizer-exclusions, and nothing
# stands there that is gone.
. "$(dirname "$0")/common.sh"
need Makefile.am src/Makemodule.am tests/Makemodule.am

cat Makefile.am ./*/Makemodule.am | sed 's/#.*//' | tr -s ' \t\\=()' '\n' |
	sort -u >"$tmp/listed"

find src include tools tests examples bench man doc abi debian -type f \
	! -name Makemodule.am ! -path '*/.*' \
	! -name '*.o' ! -name '*.lo' ! -name '*.l?a' ! -name '*.a' \
	! -name '*.log' ! -name '*.trs' ! -name '*~' | sort |
while read -r file; do
	case $file in
	tests/support/*) other= ;;
	tests/*.c) other=${file%.c} ;;
	*) other= ;;
	esac
	grep -qxF -e "$file" ${other:+-e "$other"} "$tmp/listed" || echo "$file"
done | broken_lines "in no Makemodule.am"

for script in $(find tests/adapters tests/cxx tests/examples tests/lint -name '*.sh'); do
	head -n 1 "$script" | grep -q '^#!' || continue
	[ -x "$script" ] || echo "$script"
done | broken_lines "a script that is not executable"

# TOOL PROGRAM:FUNCTION of each test that looks for a tool.
find tests -name '*.c' ! -path 'tests/support/*' | sort >"$tmp/tests"
awk '
	/^[A-Za-z_]+\(.*[^;]$/ { name = $0; sub(/\(.*/, "", name) }
	/^START_TEST\(/ { name = $0; sub(/^START_TEST\(/, "", name); sub(/\).*/, "", name) }
	/t_under_[a-z]+\(\)/ {
		file = FILENAME
		sub(/\.c$/, "", file)
		if (/t_under_asan/)
			print "address", file ":" name
		if (/t_under_tsan/)
			print "thread", file ":" name
		if (/t_under_valgrind/)
			print "valgrind", file ":" name
		if (/t_under_qemu/)
			print "qemu", file ":" name
	}' $(cat "$tmp/tests") </dev/null | sort -u >"$tmp/skips"
awk '!/^#/ && NF { print $1, $2 }' tests/sanitizer-exclusions | sort -u \
	>"$tmp/excluded"
comm -23 "$tmp/skips" "$tmp/excluded" |
	broken_lines "skips itself under a tool, but is not in tests/sanitizer-exclusions"
grep : "$tmp/excluded" | comm -13 "$tmp/skips" - |
	broken_lines "in tests/sanitizer-exclusions, but does not skip itself"
awk '
	/^#/ || !NF { next }
	NF < 3 || $1 !~ /^(address|undefined|thread|valgrind|valgrind-leaks|musl|qemu)$/ {
		print FILENAME ":" FNR ": not TOOL NAME REASON"
	}' tests/sanitizer-exclusions | broken_lines "tests/sanitizer-exclusions"
grep -v : "$tmp/excluded" | while read -r tool name; do
	[ -e "$name" ] || [ -e "$name.c" ] || echo "$name"
done | broken_lines "in tests/sanitizer-exclusions, but no test"

verdict
