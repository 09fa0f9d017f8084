#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every public function has, right above its declaration, a comment that says
# Thread:, Ownership:, Returns: and Since:; and a manual page names it in its
# NAME section.  A name is either a page's own or stands in man/stubs, from
# which an installation makes the pages that lead to it.
#
# README stays short and says the words that people search for; what it and the
# chapters in doc/ point to is there.
. "$(dirname "$0")/common.sh"
need include/evcoord.h man/stubs man/evcoord.7

for header in $(public_headers); do
	awk '
	/^\/\*/ { comment = ""; open = 1 }
	open { comment = comment "\n" $0 }
	/\*\/[ \t]*$/ && open { open = 0; ends = FNR }
	/^EVC_API/ {
		n = split("Thread: Ownership: Returns: Since:", want, " ")
		for (i = 1; i <= n; i++)
			if (ends != FNR - 1 ||
			    !index(comment, "\n * " want[i]))
				print FILENAME ":" FNR ": no comment says " want[i]
	}' "$header"
done | broken_lines "comments of public functions"

api_names $(public_headers) >"$tmp/declared"
[ -s "$tmp/declared" ] || broken "no EVC_API declaration was found"

# PAGE NAME, for each name in a NAME section.
for page in man/*.[37]; do
	name=${page##*/}
	awk -v page="${name%.[37]}" '
	/^\.Sh / { inside = $2 == "NAME" }
	# Pages about something else, of section 7 or called evcoord-, name
	# themselves.
	inside && /^\.Nm / && $2 != page { print page, $2 }
	inside && /^\.Nm / && $2 == page && FILENAME ~ /3$/ &&
		page !~ /^evcoord-/ { print page, $2 }
	' "$page"
done | sort >"$tmp/named"
sed 's/^[^ ]* //' "$tmp/named" | sort >"$tmp/names"
uniq -d "$tmp/names" | broken_lines "in the NAME of two pages"
sort -u "$tmp/names" | comm -13 - "$tmp/declared" |
	broken_lines "in the NAME of no page"
sort -u "$tmp/names" | comm -23 - "$tmp/declared" |
	broken_lines "in the NAME of a page, but no public function"

# The calls of the first library.
api_names $(public_headers | grep -vE \
	'/(cluster|engine|redis|value|worker)\.h$') |
	while read -r name; do
		grep -q "^$name	" man/evcoord-threads.7 || echo "$name"
	done | broken_lines "without a row in the table of evcoord-threads(7)"

# What man finds: pages and stubs, each name once, leading to where it stands.
{
	awk '$1 == $2' "$tmp/named"
	awk '!/^#/ { print $2, $1 }' man/stubs
} | sort >"$tmp/found"
sort "$tmp/named" | comm -23 - "$tmp/found" |
	broken_lines "PAGE NAME: neither the name of the file nor in man/stubs"
sort "$tmp/named" | comm -13 - "$tmp/found" |
	broken_lines "PAGE NAME: in man/stubs, but not in that page's NAME"

[ "$(wc -l <README)" -le 150 ] || broken "README: more than 150 lines"
grep -qi 'graceful shutdown' README ||
	broken "README does not say: graceful shutdown"
grep -q '^\.Nd.*graceful shutdown' man/evcoord.7 ||
	broken "man/evcoord.7: its .Nd does not say: graceful shutdown"
for text in README doc/*.md; do
	case $text in doc/*) from=doc/ ;; *) from= ;; esac
	tr '\n' ' ' <"$text" | grep -o ']([^)#]*' | sed 's/^](//' |
	while read -r to; do
		case $to in *:*) continue ;; esac
		[ -e "$from$to" ] || echo "$text: $to"
	done
	[ $text = README ] || grep -qF "($text)" README || echo "README: $text"
done | broken_lines "points to what is not there, or not to a chapter"

verdict
