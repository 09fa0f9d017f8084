#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# An installation of this build, below a temporary folder, is whole: what
# make installcheck asks, and the program of README is built with pkg-config,
# with CMake and with meson.  The version is the same everywhere.
#
# Begins alone.  While libtool links a library anew for the installation, the
# build has none for a moment, and a program with this library cannot start.
. "$(dirname "$0")/common.sh"
need debian/tests/readme tests/installed.sh README

version=$(sed -n 's/^#define EVC_VERSION_STRING "\(.*\)"$/\1/p' \
	include/evcoord/version.h | tail -n 1)
sed -n '/^[0-9][0-9.]*$/p' NEWS | head -n 1 | grep -vxF "$version" |
	broken_lines "the first version in NEWS is not $version"
sed -n '1s/^evcoord (\(.*\)) .*/\1/p' debian/changelog |
	grep -vxF "$version" |
	broken_lines "the first version in debian/changelog is not $version"

[ -e "$build/Makefile" ] || verdict
tree=$tmp/tree
${MAKE:-make} -C "$build" install DESTDIR="$tree" >"$tmp/said" 2>&1 || {
	cat "$tmp/said"
	exit 1
}
flock -s 8 2>/dev/null # others may run now: tests/driver

# where NAME: a folder of the installation.
where() {
	sed -n "s|^$1 = ||p" "$build/Makefile" | head -n 1
}
prefix=$(where prefix)
libdir=$tree$(where EVC_LIBDIR)
mandir=$tree$prefix/share/man
docdir=$tree$prefix/share/doc/evcoord
PKG_CONFIG_PATH=$libdir/pkgconfig
PKG_CONFIG_SYSROOT_DIR=$tree
EVC_RPATH=$libdir
EVC_README=$docdir/README
CMAKE_PREFIX_PATH=$tree$prefix
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR EVC_RPATH EVC_README \
	CMAKE_PREFIX_PATH

LD_LIBRARY_PATH=$libdir libdir=$libdir includedir=$tree$prefix/include mandir=$mandir \
	docdir=$docdir datadir=$tree$prefix/share version=$version sh tests/installed.sh ||
	broken "tests/installed.sh fails"
for tool in pkg-config cmake meson; do
	command -v $tool >/dev/null || { missing="$missing $tool"; continue; }
	sh debian/tests/readme $tool >"$tmp/said" 2>&1 || {
		broken "the program of README with $tool"
		cat "$tmp/said"
	}
done

# Examples and the pictures that README shows stand beside README.
ls examples/*.[ch] examples/*.svg examples/Makefile | while read -r file; do
	[ -e "$docdir/$file" ] || echo "$file"
done | broken_lines "not installed"
# Their Makefile knows each of them, and builds with the installation.
{
	sed -n 's/^examples_\([a-z_]*\)_SOURCES.*/\1/p' examples/Makemodule.am
	grep -o 'examples/[a-z]*_\(cc\|asio\|qt\):' examples/Makemodule.am |
		sed 's/.*\///; s/://'
} | while read -r name; do
	sed -n '/^plain = /,/^all:/p; /^clean:/,$p' examples/Makefile | grep -qw "$name" || echo "$name"
done | broken_lines "not in examples/Makefile"
if command -v pkg-config >/dev/null; then
	cp -r "$docdir/examples" "$tmp/examples"
	if ${MAKE:-make} -C "$tmp/examples" CC="${CC:-cc}" CFLAGS=-Wall \
		LDFLAGS="-Wl,-rpath,$libdir" base pipeline threads_server \
		>"$tmp/said" 2>&1
	then
		"$tmp/examples/threads_server" --help >/dev/null ||
			broken "an example of the installation does not run"
	else
		broken "the examples with the Makefile beside them"
		cat "$tmp/said"
	fi
fi
grep -o '(examples/[a-z-]*\.svg)' README | tr -d '()' | while read -r file; do
	[ -e "$docdir/$file" ] || echo "$file"
done | broken_lines "a picture in README that is not installed"

# Debian's packages have each file, but for the static libraries.
sed 's|^usr/||; s|-doc$||; s|\.|\\.|g; s|/\*/|/([^/]*/)?|; s|\*|[^/]*|g
	s|.*|^&(/\|$)|' debian/*.install >"$tmp/packed"
(cd "$tree$prefix" && find * -type d -o -print) | grep -vE '\.l?a$' |
	grep -vEf "$tmp/packed" | broken_lines "in no debian/*.install"

[ ! -e "$tmp/failed" ] || exit 1
[ -z "$missing" ] || skip "no$missing (Debian: cmake meson); all else passed"
exit 0
