#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Nothing that a program was compiled with has changed since the baseline in
# abi/, except for what abi/accepted has: no function is gone, no struct has
# another size, no member another place.  Functions may be added, and members
# may take a part of reserved_.
# EVC_ABI_RENEW: make the baseline, and the symbols of the packages, anew.
. "$(dirname "$0")/common.sh"
need abi/private abi/accepted

case $(${CC:-cc} -dumpmachine) in
x86_64-*linux-gnu) ;;
*) skip "the baseline is of x86_64-linux-gnu" ;;
esac
command -v abidiff >/dev/null || skip "no abidiff (Debian: abigail-tools)"

# interface LIBRARY FILE
interface() {
	abidw --suppressions abi/private --exported-interfaces-only \
		--no-corpus-path --no-comp-dir-path --no-show-locs \
		--no-elf-needed --no-parameter-names --no-write-default-sizes \
		--type-id-style hash --out-file "$2" "$build/src/.libs/$1.so"
}

compare() {
	abidiff --no-added-syms --suppressions abi/accepted "$@" \
		"$tmp/old.abi" "$tmp/new.abi"
}

# grown: of the leaf changes, each struct that has only taken members out of its
# reserved room, as an entry of a file of suppressions.
grown() {
	awk -v q="'" '
	function done() {
		if (name != "" && same && taken && !other)
			print "[suppress_type]\n  name = " name
		name = ""
	}
	$1 == q "struct" && /changed:$/ {
		done()
		name = $2
		gsub(q, "", name)
		same = taken = other = 0
	}
	/^  type size hasn.t changed$/ { same = 1 }
	/^    type .* of .* changed:$/ {
		if (index($0, "::reserved_" q " changed:"))
			taken = 1
		else
			other = 1
	}
	/^    .* offset changed/ && $1 != "and" { other = 1 }
	/ deletion/ { other = 1 }
	END { done() }'
}

# symbols LIBRARY: what dpkg-shlibdeps reads.
symbols() {
	package=${1}1
	mkdir -p "$tmp/$1/DEBIAN" "$tmp/$1/usr/lib"
	cp "$build/src/.libs/$1.so" "$tmp/$1/usr/lib/$1.so.1"
	version=$(sed -n 's/^#define EVC_VERSION_STRING "\(.*\)"$/\1/p' \
		include/evcoord/version.h)
	dpkg-gensymbols -p"$package" -v"$version" -P"$tmp/$1" -c0 \
		-Odebian/"$package".symbols >/dev/null
}

tried=
for library in libevcoord libevcoord-cluster libevcoord-redis; do
	so=$build/src/.libs/$library.so
	[ -e "$so" ] || continue
	"${READELF:-readelf}" -S "$so" | grep -q '\.debug_info' ||
		skip "$library.so has no debugging information"
	tried="$tried $library"
	interface $library "$tmp/new.abi" || broken "abidw fails on $library"
	if [ -n "${EVC_ABI_RENEW:-}" ]; then
		xz -9e <"$tmp/new.abi" >abi/$library.abi.xz && symbols $library
		continue
	fi
	need abi/$library.abi.xz
	xz -dc abi/$library.abi.xz >"$tmp/old.abi"
	compare --leaf-changes-only | grown >"$tmp/grown"
	compare --suppressions "$tmp/grown" >"$tmp/said" 2>&1 || {
		broken "$library: programs of the baseline cannot run with it"
		cat "$tmp/said"
	}
done
[ -n "$tried" ] || skip "no shared library was built"
verdict
