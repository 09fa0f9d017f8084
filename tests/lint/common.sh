# SPDX-License-Identifier: BSD-2-Clause
#
# What the lints share; read by them, not run.  A lint prints each line that
# breaks its rule, as FILE:LINE: TEXT, and leaves with 1 if there was one; with
# 77 and a line that begins with SKIP when its tool is missing.  It runs in the
# top folder of the sources.

lint=$(cd "$(dirname "$0")" && pwd)
build=${EVC_TOP_BUILDDIR:-$(pwd)}
cd "${EVC_TOP_SRCDIR:-$lint/../..}" || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM

# by_gcc: is the C compiler gcc?  It alone writes down what it made of a program.
by_gcc() {
	case $(${CC:-cc} --version 2>/dev/null) in
	*Free\ Software\ Foundation*) ;;
	*) return 1 ;;
	esac
}

# broken WHAT...: one more breach.  It is noted in a file, for the end of a
# pipeline runs in a shell of its own.
broken() {
	echo "$*"
	: >"$tmp/failed"
}

# broken_lines RULE: each line of the input is a breach of it.
broken_lines() {
	cat >"$tmp/broken"
	if [ -s "$tmp/broken" ]; then
		echo "-- $1"
		cat "$tmp/broken"
		: >"$tmp/failed"
	fi
}

# verdict: leave with 1 if there was a breach, else with 0.
verdict() {
	[ ! -e "$tmp/failed" ]
	exit
}

skip() {
	echo "SKIP $(basename "$0"): $*"
	exit 77
}

# need FILE...: what a lint reads has to be there, else it would say nothing.
need() {
	for needed in "$@"; do
		[ -e "$needed" ] || { echo "$needed is missing"; exit 99; }
	done
}

# as_a_user: sets flags and libs: a user's compiler gets these, and with them a
# program is built against the library of this build, and finds it.
as_a_user() {
	flags="-Wall -Wextra -Werror -g -pthread -Iinclude $LIBEV_CFLAGS"
	for san in $EVC_SANITIZERS; do
		flags="$flags -fsanitize=$san -fno-sanitize-recover=all"
	done
	libs="${LIBEV_LIBS:--lev} -lm"
	if [ -e "$build/src/.libs/libevcoord.so" ]; then
		libs="-L$build/src/.libs -levcoord $libs"
		LD_LIBRARY_PATH=$build/src/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
		export LD_LIBRARY_PATH
	else
		need "$build/src/.libs/libevcoord.a"
		libs="$build/src/.libs/libevcoord.a $libs"
	fi
}

# code FILE...: lines FILE:LINE:TEXT without comments and without what stands
# in strings.
code() {
	awk -f "$lint/strip.awk" "$@"
}

# comments FILE...: lines FILE:LINE:TEXT of the text in comments alone.
comments() {
	awk -v comments=1 -f "$lint/strip.awk" "$@"
}

# words LIST: a pattern for any of these (alternatives of grep -E) as a whole
# word; callers append what has to follow.
words() {
	echo "(^|[^A-Za-z0-9_])($1)"
}

# The headers that need those of another loop.
adapters="glib uv event sdevent asio qt"

adapter_headers() {
	for host in $adapters; do
		ls include/evcoord/"$host".h*
	done
}

public_headers() {
	adapter_headers >"$tmp/adapters"
	ls include/evcoord.h include/evcoord/*.h include/evcoord/*/*.h |
		grep -vxF -f "$tmp/adapters"
}

# of_host HOST: sets host_flags and host_libs, for programs with that adapter;
# false when the library is not there.  Its headers are not ours to judge.
of_host() {
	case $1 in
	glib) package=glib-2.0 ;;
	uv) package=libuv ;;
	event) package=libevent ;;
	sdevent) package=libsystemd ;;
	qt) package=Qt5Core ;;
	asio)
		host_flags= host_libs=
		# The sanitizer does not know its fences.
		[ "$EVC_SANITIZERS" != thread ] ||
			host_flags=-DASIO_DISABLE_FENCED_BLOCK
		echo '#include <asio/io_context.hpp>' |
			${CXX:-c++} -x c++ -fsyntax-only - 2>/dev/null
		return ;;
	esac
	host_flags=$(${PKG_CONFIG:-pkg-config} --cflags $package 2>/dev/null) &&
		host_libs=$(${PKG_CONFIG:-pkg-config} --libs $package) || return
	host_flags=$(echo "$host_flags" | sed 's/-I/-isystem /g')
}

# headers_of LIBRARY: its public headers.
headers_of() {
	for header in $(public_headers); do
		case $header in
		*/cluster.h|*/engine.h|*/value.h|*/worker.h)
			of=libevcoord-cluster ;;
		*/redis.h)
			of=libevcoord-redis ;;
		*)
			of=libevcoord ;;
		esac
		[ $of != "$1" ] || echo "$header"
	done
}

# api_names HEADER...: the functions that these declare with EVC_API.
api_names() {
	code "$@" |
		sed 's/^[^:]*:[0-9]*://' |
		awk '
		/^[ \t]*#/ { more = /\\$/; next }
		more { more = /\\$/; next }
		{ text = text " " $0 }
		END {
			n = split(text, part, ";")
			for (i = 1; i <= n; i++) {
				s = part[i]
				if (!sub(/.*EVC_API[ \t]/, "", s))
					continue
				sub(/\(.*/, "", s)
				sub(/[ \t]+$/, "", s)
				sub(/.*[ \t*]/, "", s)
				print s
			}
		}' | sort
}
