#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# evcoord.hpp: the programs wrapped.cc and thrown.cc run case by case, and compile
# without a warning in each language and with each compiler, also without
# exceptions; a stop check has the instructions that it has in C.  The public
# headers and their macros are free of what C++ compilers warn of, and a cast to
# void silences a result that is to be used.
#
# EVC_CXX=all runs the programs of all compilers and languages.
. "$(dirname "$0")/../lint/common.sh"
need tests/cxx/wrapped.cc tests/cxx/thrown.cc include/evcoord.hpp

[ -n "$CXX" ] || skip "no C++ compiler"
printf '#include <optional>\nint main() {}\n' >"$tmp/t.cc"
$CXX -std=c++17 -fsyntax-only "$tmp/t.cc" 2>"$tmp/said" ||
	skip "$CXX has no C++17"

as_a_user
strict="-Iinclude $LIBEV_CFLAGS -pthread -Wall -Wextra -Wpedantic -Wold-style-cast
	-Wzero-as-null-pointer-constant -Wconversion -Werror"
# shellcheck disable=SC2046
compilers=$(for compiler in g++ clang++; do
	command -v $compiler >"$tmp/said" && echo $compiler
done)
[ -z "$EVC_SANITIZERS" ] || compiler=$CXX compilers=

# says STATUS COMMAND...: the compiler's answer; 0: without a word.
says() {
	want=$1
	shift
	status=0
	"$@" >"$tmp/said" 2>&1 || status=1
	[ $status = "$want" ] && return
	broken "status $status, not $want: $*"
	cat "$tmp/said"
	return 1
}

# speaks COMPILER LANGUAGE
speaks() {
	echo 'int main() {}' | $1 -std=$2 -fsyntax-only -x c++ - 2>"$tmp/said"
}

# run PROGRAM COMPILER OPTIONS...: each case of the program.
run() {
	program=$1
	shift
	# shellcheck disable=SC2086
	says 0 "$@" $flags tests/cxx/$program.cc -o "$tmp/$program" $libs ||
		return
	for case in $("$tmp/$program"); do
		${EVC_TIMEOUT:+$EVC_TIMEOUT -s KILL 120} "$tmp/$program" \
			"$case" >"$tmp/said" 2>&1 && continue
		broken "$program $case ($*): status $?"
		cat "$tmp/said"
	done
}

# ---- what the compilers say

for compiler in $compilers; do
	for language in c++17 c++20; do
		speaks $compiler $language || continue
		# g++ 12 warns of a zero of its own in each coroutine.
		own=
		[ "$compiler $language" != "g++ c++20" ] ||
			own=-Wno-zero-as-null-pointer-constant
		for without in "" "-fno-exceptions -fno-rtti"; do
			# shellcheck disable=SC2086
			says 0 $compiler -std=$language $without $strict $own \
				-fsyntax-only tests/cxx/wrapped.cc
		done
	done
	# shellcheck disable=SC2086
	says 0 $compiler -std=c++17 $strict -fsyntax-only tests/cxx/thrown.cc
	{
		for header in $(public_headers); do
			echo "#include <${header#include/}>"
		done
		echo 'unsigned missed(int n) { return EVC_MISSED_AT_MOST(n); }'
		echo 'void drop(evc_coord *c) { (void)evc_join(c, 0, 0); }' |
			sed 's/\<0\>/nullptr/g'
	} >"$tmp/t.cc"
	for language in c++11 c++17 c++20; do
		# shellcheck disable=SC2086
		says 0 $compiler -std=$language $strict -fsyntax-only "$tmp/t.cc"
	done
	cat >"$tmp/t.cc" <<-'END'
		#include <evcoord.hpp>
		void f(evcoord::coord_ref c)
		{
		#ifdef CAST
			(void)c.join();
			(void)evc_join(c.get(), nullptr, nullptr);
		#elif defined C
			evc_join(c.get(), nullptr, nullptr);
		#else
			c.join();
		#endif
		}
	END
	# shellcheck disable=SC2086
	says 0 $compiler -std=c++17 $strict -DCAST -fsyntax-only "$tmp/t.cc"
	# shellcheck disable=SC2086
	says 1 $compiler -std=c++17 $strict -DC -fsyntax-only "$tmp/t.cc"
	# shellcheck disable=SC2086
	says 1 $compiler -std=c++17 $strict -fsyntax-only "$tmp/t.cc"
done

# The cast in C.
cat >"$tmp/t.c" <<'END'
#include <evcoord.h>
void f(evc_coord *c);
void f(evc_coord *c)
{
#ifdef CAST
	(void)
#endif
	evc_join(c, NULL, NULL);
}
END
for compiler in gcc clang; do
	[ -n "$compilers" ] && command -v $compiler >"$tmp/said" || continue
	for language in c99 gnu11 c2x; do
		says 0 $compiler -std=$language -Wall -Wextra -pedantic \
			-Werror -Iinclude -DCAST -fsyntax-only "$tmp/t.c"
		says 1 $compiler -std=$language -Wall -Wextra -pedantic \
			-Werror -Iinclude -fsyntax-only "$tmp/t.c"
	done
done

# ---- the stop check

cat >"$tmp/t.cc" <<'END'
#include <evcoord.hpp>
#ifdef WRAPPED
using coord = evcoord::coord_ref;
#define SHOULD_STOP(c) (c).should_stop()
#else
using coord = evc_coord *;
#define SHOULD_STOP(c) evc_should_stop(c)
#endif
extern "C" bool check(coord c);
bool check(coord c) { return SHOULD_STOP(c); }
extern "C" void work(coord c, void (*f)());
void work(coord c, void (*f)()) { while (!SHOULD_STOP(c)) f(); }
END
for compiler in $compilers; do
	for form in WRAPPED PLAIN; do
		# shellcheck disable=SC2086
		says 0 $compiler -std=c++17 -O2 $strict -D$form -S \
			-fno-asynchronous-unwind-tables "$tmp/t.cc" \
			-o "$tmp/$form.s"
		grep -v "[[:space:]]\.cfi_" "$tmp/$form.s" |
			sed -n "/^check:/,/\.size/p; /^work:/,/\.size/p" >"$tmp/$form"
	done
	[ -s "$tmp/PLAIN" ] || broken "$compiler: no function was found"
	diff "$tmp/WRAPPED" "$tmp/PLAIN" |
		broken_lines "$compiler: a stop check that is not that of C"
done

# ---- the programs

language=c++20
speaks "$CXX" $language || language=c++17
if [ "$EVC_CXX" = all ] && [ -n "$compilers" ]; then
	for compiler in $compilers; do
		for language in c++17 c++20; do
			speaks $compiler $language || continue
			for level in -O0 -O2; do
				run wrapped $compiler -std=$language $level
				run thrown $compiler -std=$language $level
			done
			run wrapped $compiler -std=$language -fno-exceptions \
				-fno-rtti
		done
	done
else
	run wrapped "$CXX" -std=$language
	run thrown "$CXX" -std=$language
	case $compilers in
	*clang++*)
		run wrapped clang++ -std=c++17
		run thrown clang++ -std=c++17 -O1 ;;
	esac
fi
verdict
