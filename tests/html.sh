#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# make check-html: the pages that `make html` has made.  Each link and each
# picture leads to something, no page is wider than a telephone, the search
# finds, and pictures of pages at 400 and 1,200 pixels are kept in
# html-pictures/ for people to look at.
#
# Run in the build folder.  CHROMIUM names the browser.

browser=${CHROMIUM:-chromium}
top=$(pwd)
site=$top/html
failures=0
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

broken() {
	echo "html: $*"
	failures=$((failures + 1))
}

# ---- links -------------------------------------------------------------------

cd "$site" || exit 99
find . -name '*.html' | sed 's|^\./||' | sort >"$tmp/pages"
# What is there: each file, and each id in it as FILE#ID.
{
	find . -type f | sed 's|^\./||'
	while read -r page; do
		grep -oE ' id="[^"]*"' "$page" |
			sed "s|^ id=\"|$page#|; s|\"\$||"
	done <"$tmp/pages"
} | sort -u >"$tmp/there"
while read -r page; do
	case $page in */*) folder=${page%/*}/ ;; *) folder= ;; esac
	grep -oE '(href|src)="[^"]*"' "$page" |
		sed -E 's/^[a-z]*="//; s/"$//; s/%7E/~/g' | sort -u |
	while read -r to; do
		case $to in
		*://*) continue ;;
		'#'*) to=$page$to ;;
		*) to=$folder$to ;;
		esac
		echo "$page $(echo "$to" | sed -E 's|[a-z]+/\.\./||')"
	done
done <"$tmp/pages" >"$tmp/links"
awk 'FNR == NR { there[$1] = 1; next }
	!($2 in there)
	' "$tmp/there" "$tmp/links" >"$tmp/dead"
[ -s "$tmp/dead" ] && {
	broken "dead links:"
	cat "$tmp/dead"
}
# A name in <> that was taken for HTML.
xargs grep -l 'raw HTML omitted\|<evcoord' <"$tmp/pages" >"$tmp/raw" &&
	broken "text was left out: $(cat "$tmp/raw")"
echo "html: $(wc -l <"$tmp/pages") pages, $(wc -l <"$tmp/links") links"

# ---- in the browser ----------------------------------------------------------

command -v "$browser" >/dev/null || {
	echo "html: no $browser: neither layout nor search was looked at" >&2
	exit $((failures != 0))
}
browse() {
	timeout -s KILL 120 "$browser" --headless --no-sandbox --disable-gpu \
		--disable-dev-shm-usage --allow-file-access-from-files \
		--user-data-dir="$tmp/profile" "$@" 2>"$tmp/said"
}

# search QUERY LINK: LINK is the first hit.
search() {
	hit=$(browse --virtual-time-budget=3000 --dump-dom \
		"file://$site/index.html?q=$1" |
		sed -n 's|.*<ul id="found"><li><a href="\([^"]*\)".*|\1|p')
	[ "$hit" = "$2" ] || broken "a search for $1 leads to '$hit', not to $2"
}
search evc_fail man/evc_request_stop.3.html#evc_fail
search EVC_STRICT_SETUP man/evc_new.3.html#EVC_STRICT_SETUP
search "read+the+report" doc/when-a-stop-hangs.html#read-the-report

# Each page in a frame as wide as a telephone: what is wider can be moved to
# and fro by itself, and the page has nothing outside of its frame.
cat >"$site/frames.js" <<END
const pages = [
$(sed 's/.*/"&",/' "$tmp/pages")
];
END
cat >>"$site/frames.js" <<'END'
const list = document.body.appendChild(document.createElement("pre"));

async function measure(page) {
	const frame = document.createElement("iframe");

	frame.style.cssText = "width: 400px; height: 800px; border: 0";
	frame.src = page;
	await new Promise(loaded => {
		frame.onload = loaded;
		document.body.append(frame);
	});
	const seen = frame.contentDocument;
	const wide = seen.documentElement.scrollWidth;
	if (wide > 400 || seen.body.innerText.length < 200)
		list.append("\nWIDE " + page + " " + wide);
	frame.remove();
}

(async () => {
	for (const page of pages)
		await measure(page);
	list.append("\nmeasured " + pages.length + "\n");
})();
END
echo '<!DOCTYPE html><meta charset="utf-8"><body>
	<script src="frames.js"></script>' >"$site/frames.html"
browse --virtual-time-budget=60000 --dump-dom "file://$site/frames.html" \
	>"$tmp/frames"
rm "$site/frames.html" "$site/frames.js"
grep -q "^measured $(wc -l <"$tmp/pages")\$" "$tmp/frames" || {
	broken "the pages were not measured:"
	cat "$tmp/frames" "$tmp/said"
}
grep '^WIDE ' "$tmp/frames" >"$tmp/wide" && {
	broken "wider than 400 pixels, or empty:"
	cat "$tmp/wide"
}

mkdir -p "$top/html-pictures"
for page in index doc/tutorial doc/when-a-stop-hangs doc/cluster man/index \
	man/evc_new.3 man/evcoord.7 man/evcoord-threads.7 man/evc-shake.1; do
	for width in 400 1200; do
		picture=$top/html-pictures/$(echo $page | tr / -)-$width.png
		rm -f "$picture"
		# A window cannot be as narrow as a telephone: a frame can.
		echo "<style>body { margin: 0 } iframe { width: ${width}px;
			height: 2400px; border: 0 }</style>
			<iframe src=\"$page.html\"></iframe>" >"$site/frame.html"
		# All of it is drawn before the picture is taken.
		browse --run-all-compositor-stages-before-draw \
			--virtual-time-budget=5000 \
			--hide-scrollbars --screenshot="$picture" \
			--window-size=$((width < 500 ? 500 : width)),2400 \
			"file://$site/frame.html"
		[ -s "$picture" ] || broken "no picture of $page at $width pixels"
	done
done
rm -f "$site/frame.html"
echo "html: pictures are in html-pictures/"
exit $((failures != 0))
