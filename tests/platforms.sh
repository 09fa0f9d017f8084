#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# platforms.sh PART [TEST...]: a part of make soak: another compiler, another C
# library, another machine, or the packages in a bare Debian.  Run in the build
# folder, where soak/PART is its own.  Leaves with 77, and says why, when its
# tools or the network are missing.
#   own     our bodies of functions that the C library has, too
#   clang   the whole suite
#   llhttp  the server on that parser, of Debian's package node-llhttp
#   musl, i686, arm64
#           a build without a warning; libev, libmd and check are built from the
#           sources of Debian.  The tests run, for arm64 under qemu-user, but for those
#           that tests/sanitizer-exclusions names for musl and qemu
#   wrap    a release archive as a subproject of a program that meson builds
#   deb     make deb, lintian, and the tests of the packages in a new Debian
# The environment has MAKE and EVC_TOP_SRCDIR.

part=$1
shift
tests=$*
top=$EVC_TOP_SRCDIR
build=$(pwd)
work=$build/soak/$part

skip() {
	echo "SKIP $part: $*"
	exit 77
}

needs() {
	for tool in "$@"; do
		command -v "$tool" >/dev/null || skip "no $tool"
	done
}

# fresh: an empty folder of its own.
fresh() {
	rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 99
}

# configured ARGUMENT...: a build in $work/b.
configured() {
	mkdir -p "$work/b" && cd "$work/b" &&
		"$top/configure" --enable-werror --disable-static "$@" &&
		$MAKE all || exit 1
}

# apt ARGUMENT...: with sources, and lists of its own.
apt() {
	sed -n 's/^URIs: \(.*debian\)$/\1/p; s/^deb \([^ ]*debian\) .*/\1/p' \
		/etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
		sed -n '1s/.*/deb-src & bookworm main/p' >"$work/list"
	[ -s "$work/list" ] || skip "no sources of Debian"
	mkdir -p "$work/lists/partial"
	apt-get -q -o Dir::Etc::SourceList="$work/list" \
		-o Dir::Etc::SourceParts=- -o APT::Sandbox::User=root \
		-o Dir::State::Lists="$work/lists" "$@"
}

# libraries CC HOST: libev and check in $work, for that compiler.
libraries() {
	apt update || skip "no network"
	apt source libev libmd check ||
		skip "no sources of libev, libmd and check"
	(cd libev-*/ && ./configure --host="$2" CC="$1" --prefix="$work" &&
		$MAKE install) || exit 1
	(cd libmd-*/ && ./configure --host="$2" CC="$1" --prefix="$work" &&
		$MAKE install) || exit 1
	mkdir check && cd check || exit 99
	cmake ../check-*/ -DCMAKE_C_COMPILER="$1" -DCMAKE_SYSTEM_NAME=Linux \
		-DCMAKE_INSTALL_PREFIX="$work" -DCMAKE_INSTALL_LIBDIR=lib \
		-DCHECK_ENABLE_TESTS=OFF -DCHECK_ENABLE_SUBUNIT=OFF \
		-DINSTALL_CHECKMK=OFF && $MAKE install || exit 1
	# Debian calls it so.
	ln -s libcheck.a "$work/lib/libcheck_pic.a"
	PKG_CONFIG_LIBDIR=$work/lib/pkgconfig
	export PKG_CONFIG_LIBDIR
}

# tried TOOL: of the tests, those that can run there.
tried() {
	left=$(awk -v tool="$1" '$1 == tool { print $2 }' \
		"$top/tests/sanitizer-exclusions")
	run=
	for test in $tests; do
		case " $(echo $left) " in
		*" $test "*) ;;
		*) run="$run $test" ;;
		esac
	done
	$MAKE -k check-TESTS TESTS="$run" check_PROGRAMS="$run"
}

case $part in
own)
	fresh
	configured ac_cv_func_strerrordesc_np=no ac_cv_func_sigabbrev_np=no \
		ac_cv_func_pthread_clockjoin_np=no \
		ac_cv_func_posix_spawn_file_actions_addclosefrom_np=no
	$MAKE check-TESTS TESTS="$tests" check_PROGRAMS="$tests"
	;;
clang)
	needs clang
	fresh
	configured CC=clang CXX=clang++
	$MAKE check
	;;
llhttp)
	needs apt-get dpkg-deb
	fresh
	apt-get -q -o APT::Sandbox::User=root download node-llhttp ||
		skip "no network, or no node-llhttp"
	dpkg-deb -x node-llhttp*.deb x || exit 1
	for file in api http llhttp; do
		${CC:-cc} -O2 -fPIC -Ix/usr/share/include/llhttp -c \
			x/usr/share/llhttp/$file.c || exit 1
	done
	ar rcs libllhttp.a ./*.o
	configured CPPFLAGS="-I$work/x/usr/share/include/llhttp" \
		LDFLAGS="-L$work"
	grep -q HAVE_LLHTTP Makefile || exit 1
	$MAKE check-TESTS check_PROGRAMS= check_LIBRARIES= \
		TESTS='tests/examples/server.sh tests/examples/server_http.sh'
	;;
musl)
	needs musl-gcc cmake apt-get dpkg-source
	fresh
	libraries musl-gcc x86_64-linux-musl
	cd "$work" || exit 99
	# Its headers have none of Linux.
	for folder in linux asm asm-generic; do
		at=$(echo "#include <$folder/errno.h>" | ${CC:-cc} -E - |
			sed -n "s|^# 1 \"\(.*/$folder\)/errno.h\".*|\1|p")
		ln -s "$at" include/$folder
	done
	# gcc's unwinder, which was built for glibc, asks for it.
	musl-gcc -O2 -fPIC -c "$top/tests/support/dl_find_object.c" &&
		ar rcs lib/libfind.a dl_find_object.o || exit 1
	configured --host=x86_64-linux-musl CC=musl-gcc LIBS=-lfind \
		CPPFLAGS="-isystem $work/include" \
		LDFLAGS="-L$work/lib -Wl,-rpath,$work/lib -Wl,-u,_dl_find_object,--eh-frame-hdr"
	$MAKE install DESTDIR="$work/installed" >/dev/null || exit 1
	[ ! -e "$work/installed/usr/local/share/man/man7/evcoord-redis.7" ] &&
		[ ! -e "$work/installed/usr/local/share/man/man3/evc_redis_engine.3" ] ||
		{ echo "a page of a library that was not built"; exit 1; }
	tried musl
	;;
i686|arm64)
	case $part in
	i686) host=i686-linux-gnu emulator= loader=ld-linux.so.2 ;;
	arm64) host=aarch64-linux-gnu emulator=qemu-aarch64
		loader=ld-linux-aarch64.so.1 ;;
	esac
	needs $host-gcc cmake apt-get dpkg-source $emulator
	fresh
	# The loader and the C library must be of one version, so neither is this
	# system's own, which may have them for that machine, too.
	libc=/usr/$host/lib
	flags="-Wl,-rpath,$libc,--dynamic-linker,$libc/$loader"
	echo 'int main(void) { return 0; }' >one.c
	$host-gcc one.c -o one $flags || exit 1
	$emulator ./one || skip "no programs of that machine run here"
	libraries $host-gcc $host
	configured --host=$host CC=$host-gcc CPPFLAGS="-isystem $work/include" \
		LDFLAGS="-L$work/lib -Wl,-rpath,$work/lib $flags"
	EVC_TOOL=${emulator:+qemu} EVC_QEMU=$emulator
	export EVC_TOOL EVC_QEMU
	tried "$EVC_TOOL"
	;;
wrap)
	needs meson ninja
	fresh
	(cd "$build" && $MAKE dist) && mkdir subprojects &&
		tar -xf "$build"/evcoord-*.tar.xz -C subprojects &&
		cp "$top/doc/evcoord.wrap" subprojects || exit 1
	cat >use.c <<'END'
#include <evcoord.h>
#include <evcoord/cluster.h>

int
main(void)
{
	evc_coord *c;

	return evc_new(NULL, NULL, &c) < 0 || evc_free(c) < 0 ||
	       evc_unpack(NULL, "") >= 0;
}
END
	cat >meson.build <<'END'
project('use', 'c')
test('use', executable('use', 'use.c', dependencies: [
	dependency('evcoord', version: '>=0.2'), dependency('evcoord-cluster')]))
END
	meson setup --wrap-mode=forcefallback out && meson test -C out
	;;
deb)
	needs dpkg-buildpackage dh lintian mmdebstrap
	fresh
	(cd "$build" && $MAKE deb) || exit 1
	lintian --pedantic --display-info \
		--fail-on error,warning,info,pedantic \
		"$build"/deb/*.changes || exit 1
	[ "$(id -u)" = 0 ] || skip "a bare Debian is made by root; lintian passed"
	mmdebstrap --variant=apt bookworm root ||
		skip "no bare Debian: no network?  lintian passed"
	mkdir root/packages
	cp "$build"/deb/*.deb root/packages
	rm root/packages/*-dbgsym_*
	cp "$top/debian/tests/readme" root/packages
	cp /etc/resolv.conf root/etc/resolv.conf
	# The packages bring what they need; the tests need these.
	chroot root sh -ec 'export DEBIAN_FRONTEND=noninteractive
		apt-get -q update
		apt-get -qy --no-install-recommends install /packages/*.deb
		apt-get -qy --no-install-recommends install gcc libc6-dev \
			make pkgconf cmake meson ninja-build
		for tool in pkg-config cmake meson; do
			sh /packages/readme $tool
		done'
	status=$?
	rm -rf root
	exit $status
	;;
*)
	echo "platforms.sh: there is no part $part" >&2
	exit 99
	;;
esac
