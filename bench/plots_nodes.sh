#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# plots_nodes.sh DATA PICTURE: draw what nodes that have nothing to do take of the
# server and of the coordinator, from the rows redis-nodes of a bench run, DATA, as
# PICTURE.svg.  Of several runs in DATA the medians are drawn.  Both axes are
# logarithmic.

set -eu

die() {
	printf 'bench-plots: %s\n' "$*" >&2
	exit 1
}

[ $# = 2 ] || die "usage: plots_nodes.sh DATA PICTURE"
data=$1 picture=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# rows METRIC: "METRIC N MEDIAN" for each number of nodes.
rows() {
	awk -v prefix="redis-nodes-$1-" '
		index($1, prefix) == 1 && NF == 7 &&
		substr($1, length(prefix) + 1) ~ /^[0-9]+$/ {
			print substr($1, length(prefix) + 1), $4
		}' "$data" | sort -k1,1n -k2,2n | awk -v what="$1" '
		function tell() { if (n) print what, at, of[int((n + 1) / 2)] }
		$1 != at { tell(); n = 0; at = $1 }
		{ of[++n] = $2 }
		END { tell() }'
}

{ rows server; rows coordinator; } >"$tmp/rows"
[ -s "$tmp/rows" ] || die "$data has no rows redis-nodes-..."

awk '
	function log10(v) { return log(v) / log(10) }
	function x(n) { return 80 + (log10(n) - 1) * 230 }
	function y(p) { return 300 - (log10(p) + 1) * 90 }
	function text(px, py, s, more) {
		printf "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", px, py, more, s
	}
	BEGIN {
		colour["server"] = "#2a6fb0"
		colour["coordinator"] = "#57ae5b"
		print "<svg xmlns=\"http://www.w3.org/2000/svg\"" \
			" viewBox=\"0 0 900 370\" font-size=\"13\"" \
			" font-family=\"DejaVu Sans,Verdana,Arial,sans-serif\">"
		print "<rect width=\"900\" height=\"370\" fill=\"#ffffff\"/>"
		text(80, 22, "nodes of ten workers that have nothing to do: % of a cpu")
		for (p = 0.1; p < 101; p *= 10) {
			printf "<path d=\"M80 %.1fH780\" stroke=\"#e4e7eb\"/>\n", y(p)
			text(72, y(p) + 4, p, " text-anchor=\"end\"")
		}
		for (n = 10; n < 10001; n *= 10)
			text(x(n), 322, n, " text-anchor=\"middle\"")
		text(430, 350, "nodes", " text-anchor=\"middle\"")
	}
	{
		line[$1] = line[$1] sprintf("%s%.1f %.1f",
			line[$1] == "" ? "M" : "L", x($2), y($3))
		printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n",
			x($2), y($3), colour[$1]
		text(x($2) + 8, y($3) + 16, sprintf("%.2g", $3), "")
		end_x[$1] = x($2); end_y[$1] = y($3)
	}
	END {
		for (w in line) {
			printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\"" \
				" stroke-width=\"2\"/>\n", line[w], colour[w]
			text(end_x[w] + 14, end_y[w] - 4, w,
				" fill=\"" colour[w] "\"")
		}
		print "</svg>"
	}' "$tmp/rows" >"$tmp/svg"
mv "$tmp/svg" "$picture"
printf 'bench-plots: %s\n' "$picture"
