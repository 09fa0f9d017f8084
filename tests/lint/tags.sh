#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# A tag of a struct, union or enum is defined once in each library, in separate
# .c files too: one name, one meaning.  A library's sources are its rooms, base
# and the public headers; wire and engine belong to cluster and to redis.  The
# name of a static function says what the function does without its file's name:
# so few files take the same name.
names_most=6
. "$(dirname "$0")/common.sh"
need src/base src/core src/cluster src/redis include/evcoord.h

# tags FILE...: FILE:LINE TAG for each definition.
tags() {
	code "$@" | awk '
	match($0, /^[^:]*:[0-9]*:/) {
		place = substr($0, 1, RLENGTH - 1)
		line = open substr($0, RLENGTH + 1)
	}
	{
		open = ""
		while (match(line, /(struct|union|enum)[ \t]+[A-Za-z_][A-Za-z0-9_]*[ \t]*([{]|$)/)) {
			found = substr(line, RSTART, RLENGTH)
			before = substr(line, RSTART - 1, RSTART > 1)
			line = substr(line, RSTART + RLENGTH)
			if (before ~ /[A-Za-z0-9_]/)
				continue
			# A brace may stand on the next line.
			if (found !~ /[{]$/) {
				open = found " "
				continue
			}
			sub(/^[a-z]+[ \t]+/, "", found)
			sub(/[ \t]*[{]$/, "", found)
			print place, found
		}
	}'
}

# library NAME FOLDER...
library() {
	name=$1
	shift
	find "$@" src/base include -name '*.[ch]' | sort >"$tmp/$name"
	# shellcheck disable=SC2046
	tags $(cat "$tmp/$name") | awk '
		$2 in first {
			print $1 ": " $2 " is defined in " first[$2] ", too"
			next
		}
		{ first[$2] = $1 }' | broken_lines "a tag twice in $name"
}

rooms= shared=
for room in src/*/; do
	case $room in
	src/base/|src/cluster/|src/redis/) ;;
	src/wire/|src/engine/) shared="$shared $room" ;;
	*) rooms="$rooms $room" ;;
	esac
done
# shellcheck disable=SC2086
library libevcoord $rooms
library libevcoord-cluster src/cluster $shared
library libevcoord-redis src/redis $shared

find src tools -name '*.c' | sort | xargs awk '
	FNR == 1 { before = "" }
	before ~ /^static/ && match($0, /^[a-z_][a-z0-9_]*\(/) {
		name = substr($0, 1, RLENGTH - 1)
		if (!((FILENAME, name) in seen))
			files[name] = files[name] " " FILENAME
		seen[FILENAME, name]
	}
	{ before = $0 }
	END {
		for (name in files)
			print split(files[name], file, " "), name files[name]
	}' | awk -v most="$names_most" '$1 > most' | sort -rn |
	broken_lines "names of static functions that too many files take"
verdict
