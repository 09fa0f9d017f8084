#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# plots.sh DATA PICTURE: draw the pool's rows of a bench run, DATA, as
# PICTURE.svg.  What the run has not measured is not drawn.

set -eu

die() {
	printf 'bench-plots: %s\n' "$*" >&2
	exit 1
}

[ $# = 2 ] || die "usage: plots.sh DATA PICTURE"
data=$1 picture=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# rows PREFIX: KEY OURS LIBUV of each metric PREFIX-KEY, in the order of the
# run; "-" for what is not there.
rows() {
	awk -v prefix="$1-" '
		index($1, prefix) == 1 && NF == 7 {
			key = substr($1, length(prefix) + 1)
			if (key ~ /-(p99|syscalls)$/)
				next
			gsub(/-/, " ", key)
			if (!(key in seen))
				keys[++n] = key
			seen[key] = 1
			of[key, $2] = $4
		}
		END {
			for (i = 1; i <= n; i++) {
				key = keys[i]
				ours = of[key, "evcoord"]
				uv = of[key, "libuv"]
				printf "\"%s\" %s %s\n", key,
					ours == "" ? "-" : ours,
					uv == "" ? "-" : uv
			}
		}' "$data"
}

rows pool-jobs >"$tmp/jobs"
rows pool-window >"$tmp/window"
rows pool-trip >"$tmp/trip"
for rows in jobs window trip; do
	[ -s "$tmp/$rows" ] || die "$data has no rows pool-$rows-..."
done

# panel ROWS TITLE BELOW KEY: the bars of one metric.
panel() {
	cat <<-END
	set title "$2"
	set xlabel "$3"
	set key top $4
	plot "$tmp/$1" using 2:xtic(1) title "evcoord" lc rgb "#2a6fb0", \
		"" using 3 title "libuv" lc rgb "#f5b335", \
		"" using (\$0 - 0.17):2:(sprintf("%.1f", \$2)) with labels \
			notitle offset 0,0.6 font ",11", \
		"" using (\$0 + 0.17):3:(sprintf("%.1f", \$3)) with labels \
			notitle offset 0,0.6 font ",11"
	END
}

# Why further threads do not help: the jobs are nothing but work for a cpu.
turns="threads, on $(nproc) cpus with the loop: they take turns"
{
	cat <<-END
	set terminal svg size 1200,400 dynamic background "#ffffff" \
		font "DejaVu Sans,Verdana,Arial,sans-serif,13"
	set datafile missing "-"
	set style data histogram
	set style histogram clustered gap 1
	set style fill solid border rgb "#ffffff"
	set boxwidth 0.95
	set border 3 lc rgb "#52606d"
	set tics nomirror
	set xtics scale 0
	set grid ytics lt 1 lc rgb "#e4e7eb"
	set yrange [0:*]
	set offset 0, 0, graph 0.3, 0
	set key samplen 1.5
	set multiplot layout 1,3 margins 0.04,0.985,0.16,0.88 spacing 0.05,0
	END
	panel jobs "10,000 jobs at a time, million a second" "$turns" right
	panel window "256 jobs in flight, million a second" "$turns" right
	panel trip "one job there and back, microseconds" \
		"loop and thread on" left
} | gnuplot >"$tmp/svg"
mv "$tmp/svg" "$picture"
printf 'bench-plots: %s\n' "$picture"
