#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Each public header compiles alone: as C99 and as C++11, pedantic and
# without a warning, with and without the inline stop check, optimised or not,
# and next to libevent's headers.  None brings in ev.h.  The version is the
# same in all its forms.  The adapters compile in the same way, where the library
# of their loop is there.  Against the built library a program links whose stop
# check is not inlined.
. "$(dirname "$0")/common.sh"
need include/evcoord.h include/evcoord/types.h

flags="-Iinclude -pedantic -Wall -Wextra -Werror"
have_event=no
echo '#include <event2/event.h>' >"$tmp/t.c"
${CC:-cc} -fsyntax-only "$tmp/t.c" 2>/dev/null && have_event=yes

# compiles COMMAND...: "$tmp/t.c" or .cc, whichever the command names.
compiles() {
	"$@" >"$tmp/out" 2>&1 && return
	broken "does not compile: $*"
	cat "$tmp/out"
	echo "-- the source:"
	cat "$tmp/t.c"
}

# each_language OPTIONS...: with each of these
each_language() {
	for options in "$@"; do
		# shellcheck disable=SC2086
		compiles ${CC:-cc} -std=c99 $options $flags \
			-c "$tmp/t.c" -o "$tmp/t.o"
		[ -z "$CXX" ] || compiles $CXX -x c++ -std=c++11 $options \
			$flags -c "$tmp/t.c" -o "$tmp/t.o"
	done
}

# EVC_HEADERS: these alone, for what compiles all of them again and again.
for header in ${EVC_HEADERS:-$(public_headers)}; do
	name=${header#include/}
	printf '#include <%s>\n#include <%s>\nextern int not_empty;\n' \
		"$name" "$name" >"$tmp/t.c"
	each_language "-O0" "-O2" "-O0 -DEVC_NO_INLINE"
	${CC:-cc} -Iinclude -M "$tmp/t.c" | tr ' ' '\n' |
		grep -E '(^|/)(ev|ev\+\+|event)\.h$' |
		broken_lines "$name brings in an event library"
	if [ $have_event = yes ]; then
		printf '#include <%s>\n#include <%s>\n' event2/event.h "$name" \
			>"$tmp/t.c"
		each_language "-O0"
		printf '#include <%s>\n#include <%s>\n' "$name" event2/event.h \
			>"$tmp/t.c"
		each_language "-O0"
	fi
done

# The adapters, where the library of their loop is there.
for header in $([ -n "$EVC_HEADERS" ] || adapter_headers); do
	host=${header##*/}
	host=${host%.h*}
	language=${header#*.}
	if ! of_host "$host" || { [ -z "$CXX" ] && [ $language = hpp ]; }; then
		echo "not tried: $header"
		continue
	fi
	printf '#include <%s>\n#include <%s>\nextern int not_empty;\n' \
		"${header#include/}" "${header#include/}" >"$tmp/t.c"
	own="-D_GNU_SOURCE -fPIC -fsyntax-only $flags $host_flags"
	# shellcheck disable=SC2086
	[ $language = hpp ] || compiles ${CC:-cc} -std=c99 $own "$tmp/t.c"
	# shellcheck disable=SC2086
	[ -z "$CXX" ] || compiles $CXX -x c++ -std=c++11 -Wold-style-cast $own \
		"$tmp/t.c"
done

# What a user writes with the macros; in C++ too.
cat >"$tmp/t.c" <<'END'
#include <evcoord.h>
#include <string.h>

static evc_status
work(evc_coord *c, void *arg)
{
	(void)arg;
	if (evc_should_stop(c))
		return EVC_CANCELLED;
	return evc_fail(c, EVC_INTERNAL, 0, "no arguments");
}

int
main(void)
{
	static const char version[] = EVC_VERSION_STRING;
	evc_coord *c;
	evc_status st = evc_new(NULL, NULL, &c);

	if (st < 0)
		return 1;
	st = evc_guard(c, "work", work, NULL, NULL);
	evc_request_stop(c, EVC_OK, "enough");
	evc_fail(c, EVC_INTERNAL, 0, "%d of %d", 1, 2);
	return evc_finish(c, st) != 0 || strcmp(evc_version(), version) != 0;
}
END
each_language "-O0" "-O2" "-O0 -DEVC_NO_INLINE"
so=$build/src/.libs/libevcoord.so
if [ -e "$so" ]; then
	# shellcheck disable=SC2086
	compiles ${CC:-cc} -std=c99 -O0 $flags "$tmp/t.c" -o "$tmp/t" \
		-L"$build/src/.libs" -levcoord
	[ -z "$CXX" ] || compiles $CXX -x c++ -std=c++11 -O0 $flags "$tmp/t.c" \
		-o "$tmp/t" -L"$build/src/.libs" -levcoord
	LD_LIBRARY_PATH=$build/src/.libs "$tmp/t" ||
		broken "a program linked with $so fails"
else
	echo "no shared library was built: linking was not tried"
fi

cat >"$tmp/t.c" <<'END'
#include <evcoord/version.h>
#define STR(x) #x
#define DOTS(a, b, c) STR(a) "." STR(b) "." STR(c)
static const char whole[] = EVC_VERSION_STRING;
static const char parts[] =
	DOTS(EVC_VERSION_MAJOR, EVC_VERSION_MINOR, EVC_VERSION_PATCH);
int
main(void)
{
	return __builtin_strcmp(whole, parts) != 0 ||
	       EVC_VERSION_NUMBER != ((EVC_VERSION_MAJOR << 16) |
				      (EVC_VERSION_MINOR << 8) |
				      EVC_VERSION_PATCH);
}
END
compiles ${CC:-cc} -Iinclude "$tmp/t.c" -o "$tmp/t"
"$tmp/t" || broken "include/evcoord/version.h: its numbers and its text differ"

[ ! -e "$tmp/failed" ] || exit 1
[ -n "$CXX" ] || skip "no C++ compiler; the C part passed"
[ $have_event = yes ] || skip "no event2/event.h; all else passed"
exit 0
