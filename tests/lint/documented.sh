#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every public function has, right above its declaration, a comment that says
# Thread:, Ownership:, Returns: and Since:; and a manual page names it in its
# NAME section.  A name is either a page's own or stands in man/stubs, from
# which an installation makes the pages that lead to it.
#
# RETURN VALUES of that page has an entry for each call that returns something,
# with the statuses, and the calls that do the same, which Returns: names.
#
# Each public flag and struct is named in a page, and each field of a struct in
# one that names its struct.
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
	/^(EVC_MUST_USE )?EVC_API/ {
		n = split("Thread: Ownership: Returns: Since:", want, " ")
		for (i = 1; i <= n; i++)
			if (ends != FNR - 1 ||
			    !index(comment, "\n * " want[i]))
				print FILENAME ":" FNR ": no comment says " want[i]
	}' "$header"
done | broken_lines "comments of public functions"

# The three calls of each adapter, which are inline.
for header in $(adapter_headers); do
	awk '
	/^ \*\/$/ { ends = FNR }
	/^ \* (Thread|Ownership|Returns|Since):/ { said++ }
	/^evc_[a-z]+_(attach|detach|run|exec)\(/ {
		if (ends != FNR - 2 || said != 4)
			print FILENAME ":" FNR ": its comment says not all"
		calls++
		said = 0
	}
	END { if (calls != 3) print FILENAME ": " calls " calls, not 3" }
	' "$header"
done | broken_lines "comments of adapters"

{
	api_names $(public_headers)
	sed -n 's/^\(evc_[a-z]*_\(attach\|detach\|run\|exec\)\)(.*/\1/p' \
		$(adapter_headers)
} | sort >"$tmp/declared"
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

# NAME STATUS or NAME CALL, for each status that a text names, and each call
# whose answers are the same.
named_in='
function note(name, text,	word, same) {
	print name, "-"
	while (match(text, /evc_[a-z_]+|EVC_[A-Z_]+/)) {
		word = substr(text, RSTART, RLENGTH)
		same = text ~ ("(^|[^a-z])as " word)
		if (word in statuses || same)
			print name, word
		text = substr(text, RSTART + RLENGTH)
		if (same)		# as evc_a and evc_b
			sub(/^ *,? *and /, "as ", text)
	}
}'
sed -n 's/^	\(EVC_[A-Z_]*\) = [0-9]*,.*/\1/p; s/^#define \(EVC_PENDING\) .*/\1/p' \
	include/evcoord/types.h >"$tmp/statuses"
for header in $(public_headers); do
	awk "$named_in"'
	FNR == NR { statuses[$1]; next }
	/^ \* [A-Z][a-z]*:/ { inside = $2 == "Returns:" }
	/^\/\*/ { text = ""; inside = 0 }
	inside { text = text " " substr($0, 4) }
	/^EVC_API/ { open = 1; type = $0 }
	open && match($0, /evc_[a-z_]+\(/) {
		open = 0
		if (type !~ / void$/)
			note(substr($0, RSTART, RLENGTH - 1), text)
	}' "$tmp/statuses" "$header"
done | sort -u >"$tmp/returned"
for page in man/*.[37]; do
	awk "$named_in"'
	function end() {
		for (i = 1; i <= n; i++)	# they share an entry
			text = text " as " names[i]
		for (i = 1; i <= n; i++)
			note(names[i], text)
		n = 0
	}
	FNR == NR { statuses[$1]; next }
	/^\.S[hs] / { end(); inside = tolower($2 $3) == "returnvalues"; next }
	!inside { next }
	/^\.El/ && --depth == 0 { end() }
	/^\.Bl/ { depth++ }
	/^\.It Fn / && depth == 1 {
		end()
		text = ""
		for (i = 2; i <= NF; i++)
			if ($i ~ /^evc_/)
				names[++n] = $i
		next
	}
	{ text = text " " (/^\.(Fn|Xr) / ? $2 " " : $0) }
	' "$tmp/statuses" "$page"
done | sort -u >"$tmp/explained"
comm -23 "$tmp/returned" "$tmp/explained" | broken_lines \
	"Returns: names it, the entry of the call in RETURN VALUES does not"

# STRUCT FIELD, and - FLAG, of all headers.
for header in $(public_headers); do
	code "$header" | sed 's/^[^:]*:[0-9]*://' | awk '
	/^typedef struct evc_[a-z_]+ \{/ { struct = $3; print struct, $3; next }
	/^\}/ { struct = "" }
	struct {
		text = text " " $0
		if (!/;/)
			next
		gsub(/\[[^]]*\]/, "", text)
		# A pointer to a function has its name in front.
		if (match(text, /\(\*[a-z_]+\)/))
			text = substr(text, RSTART + 2, RLENGTH - 3)
		sub(/;.*/, "", text)
		n = split(text, fields, ",")
		for (i = 1; i <= n; i++)
			if (match(fields[i], /[a-z_0-9]+ *$/) &&
			    fields[i] !~ /_ *$/)
				print struct, substr(fields[i], RSTART)
		text = ""
	}
	/^\t+EVC_[A-Z_0-9]+/ || /^#define EVC_[A-Z_0-9]+ / {
		match($0, /EVC_[A-Z_0-9]+/)
		print "-", substr($0, RSTART, RLENGTH)
	}'
done | grep -vE '_$| EVC_(API|MUST_USE)$' | sort -u >"$tmp/parts"
for page in man/*.[1-9]; do
	sed 's/\\[-&]//g' "$page" | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u |
		awk -v page="$page" '{ print page, $0 }'
done | awk '
	FNR == NR { part[NR] = $1; word[NR] = $2; n = NR; next }
	{ in_page[$1, $2]; pages[$1]; in_some[$2] }
	END {
		for (i = 1; i <= n; i++) {
			if (part[i] == "-") {
				if (!(word[i] in in_some))
					print word[i]
				continue
			}
			ok = 0
			for (page in pages)
				ok = ok || ((page, part[i]) in in_page &&
					(page, word[i]) in in_page)
			if (!ok)
				print part[i], word[i]
		}
	}' "$tmp/parts" - | sort | broken_lines "named in no page"

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
for words in 'clean shutdown' 'shut down' 'stop threads' 'join threads' \
	'thread pool' 'signal handler' SIGTERM hang deadlock timeout; do
	grep -q "^\.Nd.*$words" man/*.[1-9] || echo "$words"
done | broken_lines "man -k finds no page for this"
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
