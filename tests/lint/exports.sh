#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What leaves each library: exactly the functions that its public headers declare
# with EVC_API, each with a symbol version; never an evc__ name.  And every
# function that a public header declares is marked EVC_API.
. "$(dirname "$0")/common.sh"
need include/evcoord.h src/libevcoord.map src/libevcoord-cluster.map \
	src/libevcoord-redis.map

# exports LIBRARY VERSION: what it exports is what its headers declare.
exports() {
	so=$build/src/.libs/$1.so
	${NM:-nm} -D --defined-only "$so" |
		awk '$(NF - 1) != "A" { print $(NF - 1), $NF }' >"$tmp/nm"
	[ -s "$tmp/nm" ] || broken "$so: nothing is exported"

	awk -v version="$2" '
		$1 != "T" { print $2 ": is no function (" $1 ")" }
		$2 !~ /^evc_[a-z][a-z0-9_]*(@|$)/ {
			print $2 ": no public name"
		}
		$2 !~ "@@?" version "_[0-9]+[.][0-9]+$" {
			print $2 ": has no version"
		}' "$tmp/nm" | broken_lines "names of $so"

	sed 's/^[^ ]* //; s/@.*//' "$tmp/nm" | sort >"$tmp/exported"
	# shellcheck disable=SC2046
	api_names $(headers_of "$1") >"$tmp/declared"
	[ -s "$tmp/declared" ] || broken "no EVC_API declaration was found"
	uniq -d "$tmp/declared" | broken_lines "declared more than once"
	comm -13 "$tmp/exported" "$tmp/declared" |
		broken_lines "declared with EVC_API but not exported"
	comm -23 "$tmp/exported" "$tmp/declared" |
		broken_lines "exported but not declared with EVC_API"
}

[ -e "$build/src/.libs/libevcoord.so" ] || skip "no shared library was built"
exports libevcoord EVCOORD
[ ! -e "$build/src/.libs/libevcoord-cluster.so" ] ||
	exports libevcoord-cluster EVCOORD_CLUSTER
[ ! -e "$build/src/.libs/libevcoord-redis.so" ] ||
	exports libevcoord-redis EVCOORD_REDIS

# A declaration begins in the first column, so a name with a parenthesis there,
# or on a line whose return type stands alone before it, is one.
code $(public_headers) | awk '
	{
		file = $0
		sub(/:[0-9]+:.*/, "", file)
		text = $0
		sub(/^[^:]*:[0-9]+:/, "", text)
	}
	text ~ /^[a-z].*[ \t*]evc_[a-z_]+\(/ && text !~ /^typedef/ {
		print $0
	}
	text ~ /^evc_[a-z_]+\(/ && before !~ /EVC_API|inline/ { print $0 }
	text !~ /^[ \t]*$/ { before = text }' |
	broken_lines "declared without EVC_API"

verdict
