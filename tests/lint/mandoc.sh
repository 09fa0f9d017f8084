#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# mandoc has nothing to say about the manual pages.
. "$(dirname "$0")/common.sh"
need man/evcoord.7 man/evc_new.3

[ -n "${MANDOC-mandoc}" ] && command -v "${MANDOC:-mandoc}" >/dev/null ||
	skip "no mandoc"
"${MANDOC:-mandoc}" -T lint -W warning man/*.[1-9] |
	broken_lines "mandoc -T lint -W warning"

# Tables, of which nothing is wrapped: the pages without their text.
for page in man/*.[1-9]; do
	awk '/^\.TS/ { open = 1 } open || /^\./; /^\.TE/ { open = 0 }' "$page" |
		"${MANDOC:-mandoc}" -T ascii -O width=80 | sed 's/.\x08//g' |
		awk -v page="$page" 'length > 80 { print page ": " $0 }'
done | broken_lines "a table wider than 80 columns"

# Each section that a page refers to stands in the page.
for page in man/*.[1-9]; do
	sed -n 's/^\.S[hs] //p' "$page" >"$tmp/sections"
	sed -n 's/^\.Sx \(.*[^ .,;:)]\).*/\1/p' "$page" | sort -u |
		grep -vxFf "$tmp/sections" | sed "s|^|$page: |"
done | broken_lines "a section that the page has not"

# Each page that a page refers to as one of ours is there.
sed -n 's/^\.Xr \(evc[a-z_-]*\) \([37]\).*/\1 \2/p' man/*.[1-9] | sort -u |
while read -r name section; do
	[ -e "man/$name.$section" ] || grep -q "^${name}[[:space:]]" man/stubs ||
		echo "$name($section)"
done | broken_lines "referred to, but no page and not in man/stubs"

verdict
