#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# plots_redis.sh DATA PICTURE: draw how a cluster over Redis grows with its
# workers, from the rows redis-workers and redis-sleep of a bench run, DATA, as
# PICTURE.svg.

set -eu

die() {
	printf 'bench-plots: %s\n' "$*" >&2
	exit 1
}

[ $# = 2 ] || die "usage: plots_redis.sh DATA PICTURE"
data=$1 picture=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# rows METRIC SUBJECT: N and the median of each METRIC-N.
rows() {
	awk -v prefix="$1-" -v subject="$2" '
		index($1, prefix) == 1 && NF == 7 && $2 == subject {
			print substr($1, length(prefix) + 1), $4
		}' "$data" >"$tmp/$3"
	[ -s "$tmp/$3" ] || die "$data has no rows $1-... of $2"
}

# Of a sleep, how many times the rate of one who does nothing else.
gains() {
	rows "$1" raw/n-that-sleep "$2.bare"
	rows "$1" evcoord "$2.rate"
	awk 'NR == 1 { one = $2 } FNR < NR { print $1, $2 / one }' \
		"$tmp/$2.bare" "$tmp/$2.rate" >"$tmp/$2"
}

rows redis-workers evcoord ours
rows redis-workers raw/six-commands bare
gains redis-sleep-1ms ms1
gains redis-sleep-10ms ms10

gnuplot >"$tmp/svg" <<END
set terminal svg size 900,400 dynamic background "#ffffff" \
	font "DejaVu Sans,Verdana,Arial,sans-serif,13"
set border 3 lc rgb "#52606d"
set tics nomirror
set grid ytics lt 1 lc rgb "#e4e7eb"
set yrange [0:*]
set xtics (1, 2, 4, 8)
set xrange [0.5:8.5]
set xlabel "worker processes of one node, on two cpus"
set offset 0, 0, graph 0.1, 0
set key samplen 1.5
set multiplot layout 1,2 margins 0.06,0.985,0.16,0.88 spacing 0.08,0
set title "functions that do nothing, thousand a second"
set key at graph 0.98, graph 0.35
plot "$tmp/ours" title "evcoord" with linespoints lc rgb "#2a6fb0" pt 7 lw 2, \
	"$tmp/bare" title "hiredis, six commands a task" with linespoints \
		lc rgb "#f5b335" pt 7 lw 2
set title "functions that sleep, times the rate of one sleeper"
set key at graph 0.35, graph 0.95
plot x title "linear" with lines lc rgb "#9aa5b1" dt 2, \
	"$tmp/ms1" title "1 ms" with linespoints lc rgb "#2a6fb0" pt 7 lw 2, \
	"$tmp/ms10" title "10 ms" with linespoints lc rgb "#57ae5b" pt 5 lw 2
END
mv "$tmp/svg" "$picture"
printf 'bench-plots: %s\n' "$picture"
