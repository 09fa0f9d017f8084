#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# site.sh FOLDER - the manual pages and the texts as web pages: `make html`.
#
# Everything in FOLDER is static and needs no network: pages, one style sheet,
# the pictures, and for the search a list of words, search-index.js, with the
# few lines of site.js.  README becomes index.html.  mandoc makes the pages of
# man/, cmark those of README, HACKING, NEWS and doc/*.md; here stands what
# neither can know: which links lead where, and what the search finds.
#
# Run in the source tree; MANDOC and CMARK name the programs.

set -eu
LC_ALL=C
export LC_ALL

out=$1
mandoc=${MANDOC:-mandoc}
cmark=${CMARK:-cmark}
for tool in "$mandoc" "$cmark"; do
	command -v "$tool" >/dev/null || {
		echo "make html needs $tool: run ./bootstrap html" >&2
		exit 1
	}
done
rm -rf "$out"
mkdir -p "$out/man" "$out/doc" "$out/examples"
cp doc/site.css doc/site.js "$out"
cp examples/*.svg "$out/examples"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# What leads where: NAME.SECTION, then the page; for a call, its place there.
for page in man/*.[1-9]; do
	"$mandoc" -T html -O 'fragment,toc,man=%N.%S.html' "$page" \
		>"$tmp/${page##*/}"
	echo "${page##*/} ${page##*/}.html"
done >"$tmp/pages"
{
	cat "$tmp/pages"
	awk '!/^#/ && NF { print $1, $2 "." ($3 ? $3 : 3) }' man/stubs |
	while read -r name page; do
		place=
		! grep -q " id=\"$name\"" "$tmp/$page" || place="#$name"
		echo "$name.3 $page.html$place"
	done
} >"$tmp/leads"

# head_of ROOT TITLE, foot_of
head_of() {
	cat <<-END
	<!DOCTYPE html>
	<html lang="en">
	<head>
	<meta charset="utf-8">
	<meta name="viewport" content="width=device-width, initial-scale=1">
	<title>$2</title>
	<link rel="stylesheet" href="$1site.css">
	<script src="$1search-index.js" defer></script>
	<script src="$1site.js" data-root="$1" defer></script>
	</head>
	<body>
	<nav>
	<a href="$1index.html"><b>evcoord</b></a>
	<a href="$1doc/tutorial.html">Tutorial</a>
	<a href="$1doc/when-a-stop-hangs.html">When a stop hangs</a>
	<a href="$1doc/cluster.html">Cluster</a>
	<a href="$1man/index.html">Manual</a>
	<input id="search" type="search" placeholder="search" aria-label="search">
	</nav>
	<ul id="found" hidden></ul>
	<main>
	END
}

foot_of() {
	printf '</main>\n</body>\n</html>\n'
}

# The body of a page on standard input, with the links of this site.  In pages
# of mandoc (kind "man") a link to a page that is not here becomes plain text;
# in texts a name such as evc_new(3) becomes a link.
link_pages() {
	awk -v kind="$1" -v man="$2" '
	FNR == NR { leads[$1] = $2; next }
	function relink(line,	done, at, name, target) {
		while (match(line, /<a class="Xr" href="[^"]*">[^<]*<\/a>/)) {
			at = substr(line, RSTART, RLENGTH)
			done = done substr(line, 1, RSTART - 1)
			line = substr(line, RSTART + RLENGTH)
			name = target = at
			sub(/^.*href="/, "", name)
			sub(/\.html".*/, "", name)
			if (name in leads)
				sub(/href="[^"]*"/, "href=\"" leads[name] "\"", at)
			else
				gsub(/<[^>]*>/, "", at)
			done = done at
		}
		return done line
	}
	function name_pages(line,	done, at, name) {
		while (match(line, /evc[a-z_-]*\([1-9]\)/)) {
			at = name = substr(line, RSTART, RLENGTH)
			done = done substr(line, 1, RSTART - 1)
			line = substr(line, RSTART + RLENGTH)
			sub(/\(/, ".", name)
			sub(/\)/, "", name)
			if (name in leads)
				at = "<a href=\"" man leads[name] "\">" at "</a>"
			done = done at
		}
		return done line
	}
	# A table that is wider than the window moves by itself.
	/<table class="tbl"/ { sub(/<table/, "<div class=\"tbl\">&"); table = 1 }
	table && /<\/table>/ { sub(/<\/table>/, "&</div>"); table = 0 }
	kind == "man" { print relink($0); next }
	/<h[1-4]>/ {
		id = $0
		gsub(/<[^>]*>|&[a-z]*;/, "", id)
		gsub(/[^A-Za-z0-9]+/, "-", id)
		sub(/-$/, "", id)
		sub(/<h[1-4]/, "& id=\"" tolower(id) "\"")
	}
	{
		sub(/<p><img/, "<p class=\"picture\"><img")
		while (match($0, /href="[^":#]*\.md/))
			$0 = substr($0, 1, RSTART + RLENGTH - 4) ".html" \
				substr($0, RSTART + RLENGTH)
		gsub(/href="(HACKING|NEWS)/, "&.html")
		sub(/source, HACKING,/,
			"source, <a href=\"HACKING.html\">HACKING</a>,")
		print name_pages($0)
	}' "$tmp/leads" -
}

title_of() {
	awk '/^\.Nd / { sub(/^\.Nd /, ""); gsub(/\\/, ""); print; exit }' "$1"
}

# ---- the manual --------------------------------------------------------------

while read -r page html; do
	name=${page%.*}
	{
		head_of ../ "$name(${page##*.})"
		link_pages man '' <"$tmp/$page"
		foot_of
	} >"$out/man/$html"
done <"$tmp/pages"

{
	head_of ../ "evcoord: manual"
	echo '<h1>Manual</h1>'
	for section in '7 What it is about' '3 Calls' '1 Tools'; do
		echo "<h2>${section#* }</h2>"
		echo '<dl>'
		grep "\.${section%% *} " "$tmp/pages" |
			sed 's/^evcoord\.7/ &/' | sort | while read -r page html; do
			printf '<dt><a href="%s">%s(%s)</a></dt><dd>%s</dd>\n' \
				"$html" "${page%.*}" "${page##*.}" \
				"$(title_of "man/$page")"
		done
		echo '</dl>'
	done
	echo '<h2>Each call</h2>'
	echo '<p class="names">'
	awk '$1 ~ /^evc_/ {
		name = $1
		sub(/\.[1-9]$/, "", name)
		print "<a href=\"" $2 "\">" name "</a>"
	}' "$tmp/leads" | sort -u
	echo '</p>'
	foot_of
} >"$out/man/index.html"

# ---- the texts ---------------------------------------------------------------

# text_page SOURCE HTML ROOT
text_page() {
	{
		head_of "$3" "$(sed -n '/./{p;q;}' "$1")"
		"$cmark" "$1" | link_pages text "$3man/"
		foot_of
	} >"$out/$2"
	echo "$2" >>"$tmp/texts"
}

text_page README index.html ''
text_page HACKING HACKING.html ''
text_page NEWS NEWS.html ''
for text in doc/*.md; do
	text_page "$text" "${text%.md}.html" ../
done

# ---- what the search finds ---------------------------------------------------

# Places, as [text, where it stands, link], and the words of each page.
(
	cd "$out"
	printf 'const places = [\n'
	awk '{
		name = $1
		sub(/\.[1-9]$/, "", name)
		where = $2
		sub(/\.html.*/, "", where)
		sub(/\.[1-9]$/, "(" substr(where, length(where)) ")", where)
		print "[\"" name "\",\"" where "\",\"man/" $2 "\"],"
	}' "$tmp/leads"
	for html in man/*.[1-9].html index.html HACKING.html doc/*.html; do
		case $html in
		man/*)
			where=${html#man/} where=${where%.html}
			where="${where%.*}(${where##*.})" ;;
		index.html) where=README ;;
		*) where=${html%.html} ;;
		esac
		grep -oE '<[a-z1-4]+[^>]* id="[^"]*"[^>]*>[^<]*(<a[^>]*>[^<]*)?' \
			"$html" | awk -v where="$where" -v html="$html" '
		{
			id = text = $0
			sub(/^.* id="/, "", id)
			sub(/".*/, "", id)
			if (id ~ /^evc_/)
				next		# has been named
			if (id ~ /^EVC_[A-Z_]+$/)
				text = ">" id
			sub(/^[^>]*>/, "", text)
			gsub(/<[^>]*>/, "", text)
			gsub(/"|\\/, "", text)
			if (text ~ /^(NAME|SYNOPSIS|DESCRIPTION|THREADS|OWNERSHIP|RETURN VALUES|EXAMPLES|SEE ALSO|HISTORY)?$/)
				next
			if (!seen[text]++)
				printf "[\"%s\",\"%s\",\"%s#%s\"],\n", text, where,
					html, id
		}'
	done
	printf '];\nconst words = {\n'
	for html in man/*.[1-9].html index.html HACKING.html NEWS.html \
		doc/*.html; do
		printf '"%s":"' "$html"
		sed '1,/<main>/d; s/<[^>]*>/ /g; s/&[a-z]*;/ /g' "$html" |
			tr 'A-Z' 'a-z' | grep -oE '[a-z_][a-z0-9_]{2,}' |
			sort -u | tr '\n' ' '
		echo '",'
	done
	echo '};'
) >"$tmp/index"
mv "$tmp/index" "$out/search-index.js"
