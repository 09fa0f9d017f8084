#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The probes of libevcoord: the notes in the library are those of the table in
# evcoord-why(7), each with as many arguments, and gdb stops at them.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM

build=${EVC_TOP_BUILDDIR:-.}
top=${EVC_TOP_SRCDIR:-$(dirname "$0")/../..}
lib=$build/src/.libs/libevcoord.so
failed=0

fail() {
	echo "FAIL $*"
	failed=1
}

if [ ! -e "$lib" ]; then
	echo "SKIP: no shared library was built"
	exit 77
fi
LC_ALL=C "${READELF:-readelf}" -n "$lib" >"$tmp/notes" || exit 99
if [ "${EVC_PROBES:-yes}" != yes ]; then
	grep -q stapsdt "$tmp/notes" && fail "there are probes, and no sys/sdt.h"
	echo "SKIP: configure found no sys/sdt.h, or was to leave the probes out"
	[ $failed = 1 ] || exit 77
	exit 1
fi

# NAME NUMBER, of all places of a name.
awk '
	$1 == "Provider:" { ours = $2 == "evcoord" }
	ours && $1 == "Name:" { name = $2 }
	ours && $1 == "Arguments:" { print name, NF - 1 }
' "$tmp/notes" | sort -u >"$tmp/built"
# The arguments stand in the first line below each name, between commas.
awk '
	/^\.\\" probes/ { inside = !inside; next }
	inside && /^\.It Fn / { name = $3; getline; print name, gsub(",", "") + 1 }
' "$top/man/evcoord-why.7" | sort -u >"$tmp/said"
diff -u "$tmp/said" "$tmp/built" ||
	fail "the table of evcoord-why(7) and the library's notes differ"
[ "$(wc -l <"$tmp/built")" -eq 7 ] || fail "there are not seven probes"

# ---- gdb ----

gdb=${GDB-gdb}
if [ -n "${EVC_SANITIZERS:-}" ] || [ -z "$gdb" ] ||
	! "$gdb" -nx -batch -ex run --args "$(command -v env)" true \
		2>/dev/null | grep -q 'exited normally'; then
	echo "SKIP: no breakpoint was set: no gdb, one that may not trace, or" \
		"a sanitizer"
	exit $failed
fi
"$build/libtool" --mode=execute "$gdb" -nx -batch \
	-ex 'set debuginfod enabled off' -ex 'set pagination off' -ex start \
	-ex 'info probes stap evcoord' \
	-ex 'break -probe-stap evcoord:stop_requested' \
	-ex 'break -probe-stap evcoord:join_answer' -ex continue \
	-ex 'printf "%s: code %d\n", (char *)$_probe_arg0, (int)$_probe_arg1' \
	-ex continue \
	-ex 'printf "%s: %d %d\n", (char *)$_probe_arg0, (int)$_probe_arg2, (int)$_probe_arg3' \
	-ex kill --args "${EVC_EXAMPLES:-examples}/coord" 0.005 0.02 \
	>"$tmp/gdb" 2>&1
awk '$1 == "stap" && $2 == "evcoord" { print $3 }' "$tmp/gdb" | sort -u \
	>"$tmp/seen"
awk '{ print $1 }' "$tmp/built" | diff - "$tmp/seen" ||
	fail "gdb does not see all of them"
grep -qx 'coord: code 0' "$tmp/gdb" || fail "gdb does not stop at a request"
grep -qx 'coord: 0 0' "$tmp/gdb" || fail "gdb does not stop at an answer"
[ $failed = 0 ] || cat "$tmp/gdb"

exit $failed
