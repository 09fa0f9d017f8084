#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The sources of the libraries compile for musl, and for a machine of 32 bits
# where there is a compiler for one, without a warning.  The headers of libev,
# hiredis and Linux are this machine's.
# EVC_PLATFORMS: other compilers, one for each platform.
. "$(dirname "$0")/common.sh"
need src/base/libc.c

# folder FOLDER HEADER: link what this machine has of it into the folder.
folder() {
	at=$(echo "#include <$2>" | ${CC:-cc} -E -x c - $LIBEV_CFLAGS \
		2>/dev/null | sed -n "s|^# [0-9]* \"\(.*/$2\)\".*|\1|p" |
		head -n 1)
	case $2 in */*) at=${at%/*} ;; esac
	[ -z "$at" ] || ln -s "$at" "$1/${2%%/*}"
}

mkdir "$tmp/all" "$tmp/linux"
folder "$tmp/all" ev.h
folder "$tmp/all" sha1.h
folder "$tmp/all" hiredis/hiredis.h
folder "$tmp/linux" linux/futex.h
folder "$tmp/linux" asm/unistd.h
folder "$tmp/linux" asm-generic/errno.h
[ -e "$tmp/all/ev.h" ] || broken "ev.h was not found"
# EVC_SEAM_IN: as in seam.sh.
find "${EVC_SEAM_IN:-src}" -name '*.c' >"$tmp/sources"
[ -e "$tmp/all/hiredis" ] || sed -i '/redis/d' "$tmp/sources"

tried=
for cc in ${EVC_PLATFORMS:-musl-gcc i686-linux-gnu-gcc}; do
	command -v "$cc" >/dev/null || continue
	tried="$tried $cc"
	more=
	case $cc in *musl*) more="-isystem $tmp/linux" ;; esac
	# shellcheck disable=SC2046,SC2086
	$cc -std=gnu11 -D_GNU_SOURCE -fsyntax-only -Wall \
		-Wextra -Wshadow -Wformat=2 -Wno-psabi -Werror -pthread -Iinclude -Isrc \
		-isystem "$tmp/all" $more $(cat "$tmp/sources") 2>"$tmp/said" ||
		broken "$cc does not compile the sources"
	broken_lines "$cc says" <"$tmp/said"
done
[ -n "$tried" ] || skip "no compiler for another platform (Debian: musl-tools)"
verdict
