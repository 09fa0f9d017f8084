#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What each room may include:
#	base                    base; never ev.h, never evcoord/
#	core                    base, core, the public headers, ev.h
#	members, wake,          base, core, their own room, the public headers,
#	  signals, observe        ev.h; never each other
#	wire, engine            base, wire, their own room, the public headers,
#				  ev.h: both are linked into cluster and redis
#	queue, pool, group      base, their own room, the public headers, ev.h; and
#				  what is named below
#	cluster, redis          likewise, and wire and engine
#	include/evcoord         public headers alone, never ev.h; those in unstable
#				  by each other only; the adapters, with the
#				  headers of their loop, by nothing
#	examples, bench,        public headers alone, and files of their own
#	  tests/api, tests/seeds  or of tests/support, seam.h aside
# Private headers are always named with their room: "room/file.h", or
# "room/part/file.h" where a room has parts.
. "$(dirname "$0")/common.sh"
need src/base src/core include/evcoord.h tests/api examples

includes() {
	code "$@" | sed -n 's/^\([^:]*\):\([0-9]*\):[ \t]*#[ \t]*include[ \t]*\(["<][^">]*\).*/\1 \2 \3/p'
}

find src -name '*.[ch]' >"$tmp/src"
includes $(cat "$tmp/src") | awk '
	function bad(why) { print $1 ":" $2 ": " substr($3, 2) ": " why }
	BEGIN {
		may["base"] = " base "
		may["core"] = " base core "
		may["members"] = " base core members "
		may["wake"] = " base core wake "
		may["signals"] = " base core signals "
		may["observe"] = " base core observe "
		may["queue"] = " base queue "
		may["pool"] = " base pool "
		may["group"] = " base group "
		may["wire"] = " base wire "
		may["engine"] = " base wire engine "
		may["cluster"] = " base wire engine cluster "
		may["redis"] = " base wire engine redis "
		also["pool"] = " queue/nested.h "
	}
	{
		split($1, path, "/")
		room = path[2]
		file = substr($3, 2)
		if (!(room in may)) {
			bad("src/" room " stands in no line of the table")
			next
		}
		if (file ~ /^evcoord(\.h|\/)/) {
			if (room == "base")
				bad("base knows no coordinator")
			else if ($3 !~ /^</)
				bad("public headers stand in <>")
			next
		}
		if (file ~ /(^|\/)ev(\+\+)?\.h$/) {
			if (room == "base")
				bad("base knows no libev")
			next
		}
		if ($3 ~ /^</)
			next
		if (index(also[room], " " file " "))
			next
		if (file !~ /^[a-z]+(\/[a-z]+)?\/[a-z0-9_]+\.h$/) {
			bad("a private header is named as \"room/file.h\"")
			next
		}
		sub(/\/.*/, "", file)
		if (!index(may[room], " " file " "))
			bad("src/" room " may not include src/" file)
	}' | broken_lines "layers of src/"

includes $(public_headers) | awk '
	$3 ~ /^"/ { print $1 ":" $2 ": " $3 "\": public headers stand in <>" }
	$3 ~ /ev(\+\+)?\.h$/ || $3 ~ /event/ {
		print $1 ":" $2 ": " substr($3, 2) ": no event library here"
	}
	$3 ~ /\/unstable\// && $1 !~ /\/unstable\// {
		print $1 ":" $2 ": " substr($3, 2) ": not in a stable header"
	}' | broken_lines "public headers"

# Each adapter stands on adapter.h, and on no other header of ours.
includes $(adapter_headers) | awk '
	$3 ~ /^"/ || ($3 ~ /^<evcoord/ && $3 != "<evcoord/adapter.h") {
		print $1 ":" $2 ": " substr($3, 2) ": adapter.h alone"
	}' | broken_lines "adapters"
# shellcheck disable=SC2046
includes $(find src tools -name '*.[ch]') $(public_headers) | awk '
	$3 ~ /^.evcoord\/(adapter|glib|uv|event|sdevent|asio|qt)\./ {
		print $1 ":" $2 ": " substr($3, 2) ": an adapter"
	}' | broken_lines "adapters are for programs alone"

find examples bench tests/api tests/seeds tests/stress -name '*.[ch]' \
	>"$tmp/outside"
includes $(cat "$tmp/outside") | awk '
	{
		file = substr($3, 2)
		if (file ~ /(^|\/)seam\.h$/ || file ~ /(^|\/)src\// ||
		    file ~ /(^|\/)(base|core|members|wake|signals|observe|queue|pool|group|wire|engine|cluster|redis)\//)
			print $1 ":" $2 ": " file ": only public headers here"
	}' | broken_lines "users of the public headers"

# What each room and part of a room may call, by the symbols of the objects: each
# line calls the lines above it, and none below it; rooms on one line call each
# other by public calls alone.  From queue on, rooms call only what is public of
# core to observe.
cat >"$tmp/order" <<'END'
base
core/status
core/stop
core/helper
core/wake
core/member
core/log
core/loop
core/join
core/life
members wake signals observe
queue pool group
wire
engine
cluster/variables
cluster/snapshot
cluster/worker
cluster/threads cluster/processes
cluster/core
cluster/calls
cluster/open
redis/client
redis/engine
redis/node
redis
END

# Headers follow the same table: no file includes a header of a line below its
# own.  FILE HEADER: the exceptions.
cat >"$tmp/upward" <<'END'
src/core/member/member.c core/join/join.h
END
# shellcheck disable=SC2046
includes $(find src -name '*.[ch]' | sort) | awk '
	function room(file) { sub(/\/[^\/]*$/, "", file); return file }
	FILENAME == ARGV[1] {
		for (i = 1; i <= NF; i++)
			rank[$i] = NR
		next
	}
	FILENAME == ARGV[2] { may[$1, $2]; next }
	$3 ~ /^"/ {
		file = $1
		sub(/^src\//, "", file)
		header = substr($3, 2)
		from = room(file)
		to = room(header)
		if ((from in rank) && (to in rank) && rank[to] > rank[from] &&
		    !(($1, header) in may))
			print $1 ":" $2 ": " header ": a header of a line below"
	}' "$tmp/order" "$tmp/upward" - | broken_lines "includes the wrong way"

# The files of a room that call each other in a circle, at most.
cat >"$tmp/cycles" <<'END'
base 1
core 6
members 4
wake 1
observe 2
signals 1
queue 1
pool 1
group 1
wire 1
engine 1
cluster 1
redis 1
END

find src -name '*.c' | sort | while read -r file; do
	dir=${file%/*}
	name=${file##*/}
	for object in "$build/$dir"/.libs/lib*_la-"${name%.c}".o \
	    "$build/$dir"/lib*_la-"${name%.c}".o; do
		[ -e "$object" ] || continue
		echo "${file%.c} $object"
		break
	done
done >"$tmp/objects"
if [ -s "$tmp/objects" ]; then
	# shellcheck disable=SC2046
	${NM:-nm} -A $(sed 's/^[^ ]* //' "$tmp/objects") >"$tmp/symbols" ||
		exit 99
	awk '
	FILENAME == ARGV[1] { of[$2] = substr($1, 5); next }
	{
		object = $1
		sub(/:.*/, "", object)
		file = of[object]
		if ($(NF - 1) == "U")
			uses[++n] = file " " $NF
		else if ($(NF - 1) ~ /[TDBRVWC]/)
			at[$NF] = file
	}
	END {
		for (i = 1; i <= n; i++) {
			split(uses[i], u, " ")
			if ((u[2] in at) && at[u[2]] != u[1])
				print u[1], at[u[2]], u[2]
		}
	}' "$tmp/objects" "$tmp/symbols" | sort -u >"$tmp/calls"

	awk '
	function room(file) { sub(/\/[^\/]*$/, "", file); return file }
	FILENAME == ARGV[1] {
		for (i = 1; i <= NF; i++)
			rank[$i] = NR
		if ($1 == "queue")
			public = NR
		if ($1 == "core/status")
			inner = NR
		next
	}
	{
		from = room($1)
		to = room($2)
		if (!(from in rank) || !(to in rank))
			print $0 ": a room that stands in no line of the table"
		else if (from == to)
			next
		else if (rank[to] > rank[from] ||
			 (rank[to] == rank[from] && $3 ~ /^evc__/))
			print
		else if (rank[from] >= public && rank[to] < public &&
			 rank[to] >= inner && $3 ~ /^evc__/)
			print
	}' "$tmp/order" "$tmp/calls" | broken_lines "calls the wrong way"

	awk '
	function room(file) { sub(/\/.*/, "", file); return file }
	FILENAME == ARGV[1] { most[$1] = $2; next }
	room($1) == room($2) {
		next_of[$1] = next_of[$1] " " $2
		files[$1]; files[$2]
	}
	# Which files are reached from this one: in reach.
	function follow(from,    queue, i, n, m, k, to) {
		n = split(next_of[from], queue, " ")
		for (i = 1; i <= n; i++)
			reach[from, queue[i]]
		for (i = 1; i <= n; i++) {
			m = split(next_of[queue[i]], to, " ")
			for (k = 1; k <= m; k++)
				if (!((from, to[k]) in reach)) {
					reach[from, to[k]]
					queue[++n] = to[k]
				}
		}
	}
	END {
		for (f in files)
			follow(f)
		for (f in files) {
			r = room(f)
			n = 0
			with = ""
			for (g in files)
				if ((f, g) in reach && (g, f) in reach) {
					n++
					with = with " " g
				}
			if (n > largest[r] + 0) {
				largest[r] = n
				circle[r] = with
			}
			if (!(r in most))
				print r ": stands in no line of the table"
		}
		for (r in most)
			if (largest[r] + 0 > most[r])
				print r ": " largest[r] " files call each" \
					" other in a circle, and " most[r] \
					" may:" circle[r]
	}' "$tmp/cycles" "$tmp/calls" | sort -u | broken_lines "circles"
fi

verdict
