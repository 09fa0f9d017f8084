#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Who may include what:
#	base                    base; never ev.h, never evcoord/
#	core                    base, core, the public headers, ev.h
#	members, wake,          base, core, their own room, the public headers,
#	  signals, observe        ev.h; never each other
#	wire, engine            base, wire, their own room, the public headers,
#				  ev.h: both are linked into cluster and redis
#	workers                 base, its own room, the public headers, ev.h
#	cluster, redis          likewise, and wire and engine
#	include/evcoord         public headers alone, never ev.h
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
		may["workers"] = " base workers "
		may["wire"] = " base wire "
		may["engine"] = " base wire engine "
		may["cluster"] = " base wire engine cluster "
		may["redis"] = " base wire engine redis "
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
		if (file !~ /^[a-z]+(\/[a-z]+)?\/[a-z0-9_]+\.h$/) {
			bad("a private header is named as \"room/file.h\"")
			next
		}
		sub(/\/.*/, "", file)
		if (!index(may[room], " " file " "))
			bad("src/" room " may not include src/" file)
	}' | broken_lines "layers of src/"

includes include/evcoord.h include/evcoord/*.h | awk '
	$3 ~ /^"/ { print $1 ":" $2 ": " $3 "\": public headers stand in <>" }
	$3 ~ /ev(\+\+)?\.h$/ || $3 ~ /event/ {
		print $1 ":" $2 ": " substr($3, 2) ": no event library here"
	}' | broken_lines "public headers"

find examples bench tests/api tests/seeds tests/stress -name '*.[ch]' \
	>"$tmp/outside"
includes $(cat "$tmp/outside") | awk '
	{
		file = substr($3, 2)
		if (file ~ /(^|\/)seam\.h$/ || file ~ /(^|\/)src\// ||
		    file ~ /(^|\/)(base|core|members|wake|signals|observe|workers|wire|engine|cluster|redis)\//)
			print $1 ":" $2 ": " file ": only public headers here"
	}' | broken_lines "users of the public headers"

verdict
