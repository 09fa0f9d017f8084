#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# evcoord.hpp: the programs wrapped.cc and thrown.cc run case by case, and
# compile without a warning, as the examples do, in each language and with each
# compiler, also without exceptions; a stop check has the instructions that it
# has in C.  What is to be used may not be dropped, and a function that returns
# a number is refused.  The public headers and their macros are free of what C++
# compilers warn of, and a cast to void silences a result that is to be used.
#
# Each compiler and language has its turn, but not with each program and option:
# EVC_CXX=all runs the programs of all.
. "$(dirname "$0")/../lint/common.sh"
need tests/cxx/wrapped.cc tests/cxx/thrown.cc include/evcoord.hpp \
	examples/echo.cc examples/pipeline.cc

[ -n "$CXX" ] || skip "no C++ compiler"
printf '#include <optional>\nint main() {}\n' >"$tmp/t.cc"
$CXX -std=c++17 -fsyntax-only "$tmp/t.cc" 2>"$tmp/said" ||
	skip "$CXX has no C++17"

as_a_user
# With a sanitizer its reports name lines.
[ -n "$EVC_SANITIZERS" ] && no_g=-g1 || no_g=-g0
strict="-Iinclude $LIBEV_CFLAGS -pthread -Wall -Wextra -Wpedantic -Wold-style-cast
	-Wzero-as-null-pointer-constant -Wconversion -Wsign-conversion -Wshadow
	-Werror"
# shellcheck disable=SC2046
compilers=$(for compiler in g++ clang++; do
	command -v $compiler >"$tmp/said" && echo $compiler
done)
[ -z "$EVC_SANITIZERS" ] || compilers=
[ "$EVC_CXX" = all ] && all=1 || all=
# g++ 12 warns of a zero of its own in each coroutine.
own=-Wno-zero-as-null-pointer-constant

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
	says 0 "$@" $flags $no_g tests/cxx/$program.cc -o "$tmp/$program" $libs ||
		return
	for case in $("$tmp/$program"); do
		${EVC_TIMEOUT:+$EVC_TIMEOUT -s KILL 120} "$tmp/$program" \
			"$case" >"$tmp/said" 2>&1 && continue
		broken "$program $case ($*): status $?"
		cat "$tmp/said"
	done
}

# ---- what the compilers say

# What a compiler has to complain of, line by line, is marked with "no".
cat >"$tmp/misuse.cc" <<'END'
#include <evcoord.hpp>

using namespace evcoord;

void drops(coord_ref c)
{
	(void)c.join();
	(void)evc_join(c.get(), nullptr, nullptr);
	c.thread("t", [] {});
	looper(c, "l", 1, [] {}).detach();

	c.join(); // no
	c.home().post([] {}); // no
	evc_join(c.get(), nullptr, nullptr); // no
	looper(c, "l", 1, [] {}); // no
	hook(c, "h", [] {}); // no
	hold(c, "h"); // no
	unblock(c, [] {}); // no
	condition{ c }; // no
	stop_and_join{ c }; // no
	scope(c, "s"); // no
	coordinator(); // no
	loop_ref{ c.home() }; // no
	pool(c, "p"); // no
	queue<int>(c, "q"); // no
}

struct conn : task<conn> {
	int on_stop() { return 1; }
};

void returns(coord_ref c, pool &p, queue<int> &q, conn &t)
{
	c.thread("t", [] { return code::ok; });
	c.thread("t", [](coord_ref me) { return me.sleep(1); });
	c.thread("t", [](coord_ref me) { return me.fail(code::aborted, ""); });
	c.thread("t", [c] { return status(evc_sleep(c.get(), 1)); });

	c.thread("t", [] { return 1; }); // no
	c.thread("t", [] { return false; }); // no
	c.thread("t", [c] { return evc_sleep(c.get(), 1); }); // no
	looper l(c, "l", 1, [] { return 1; }); // no
	hook h(c, "h", [] { return 1; }); // no
	(void)c.guard("g", [] { return 1; }); // no
	(void)c.home().post([] { return 1; }); // no
	(void)c.home().post([](reactor_ref, status) { return 1; }); // no
	(void)p.submit(c.home(), "", [] { return 1; }, [] {}); // no
	(void)p.submit(c.home(), "", [] {}, [] { return 1; }); // no
	(void)q.watch(c.home(), [](int) { return 1; }); // no
	(void)c.join_start([](coord_ref, const verdict &) { return 1; }); // no
	unblock u(c, [] { return 1; }); // no
	(void)t.begin(c.home()); // no
}

#ifdef __cpp_lib_jthread
void drops(coord_ref c, std::stop_token s)
{
	stop_source_of{ c }; // no
	stop_on_token(c, s); // no
}
#endif

#ifdef EVCOORD_COROUTINES
void refers(pool &p, reactor_ref r, int &i)
{
	(void)run_in(p, r, "w", [&]() -> int & { return i; }); // no: coroutine
	(void)sizeof(co<int &>); // no: coroutine
}

co<int> number();
co<> loses(reactor_ref r);

co<> loses(reactor_ref r)
{
	sleep(r, 1); // no: coroutine
	(void)co_await sleep(r, 1);
	(void)spawn(r, "co", number()); // no: coroutine
	readable(r, 0); // no: coroutine
}
#endif
END

# complains COMPILER: of these lines, and of no other.
complains() {
	not="no: coroutine"
	[ "$1" = clang++ ] && limit=-ferror-limit=0 || limit=
	# shellcheck disable=SC2086
	$1 -std=c++20 $strict -dM -E "$tmp/misuse.cc" |
		grep -q EVCOORD_COROUTINES && not="no: nothing"
	grep -n '// no' "$tmp/misuse.cc" | grep -v "$not" | cut -d : -f 1 \
		>"$tmp/marked"
	# shellcheck disable=SC2086
	says 1 $1 -std=c++20 $strict $own $limit \
		-fsyntax-only "$tmp/misuse.cc"
	sed -n 's,.*/misuse\.cc:\([0-9]*\):[0-9].*,\1,p' "$tmp/said" | sort -nu |
		diff "$tmp/marked" - |
		broken_lines "$1: < no complaint, > one of the wrong line"
	grep -q 'a function given to evcoord returns void' "$tmp/said" ||
		broken "$1: does not say what a function returns"
}

# Both examples at once.
for each in echo pipeline; do
	echo "#define main main_of_$each"
	echo "#include \"$PWD/examples/$each.cc\""
	echo '#undef main'
done >"$tmp/examples.cc"
{
	for header in $(public_headers); do
		echo "#include <${header#include/}>"
	done
	echo 'unsigned missed(int n) { return EVC_MISSED_AT_MOST(n); }'
	echo 'void drop(evc_coord *c) { (void)evc_join(c, 0, 0); }' |
		sed 's/\<0\>/nullptr/g'
} >"$tmp/headers.cc"

# warns_not LANGUAGE OPTIONS... FILE
warns_not() {
	as=$1
	shift
	# shellcheck disable=SC2086
	says 0 $compiler -std=$as $strict $own -fsyntax-only "$@"
}

first=1
for compiler in $compilers; do
	speaks $compiler c++17 || continue
	language=c++20
	speaks $compiler $language || language=c++17
	warns_not c++11 "$tmp/headers.cc"
	warns_not $language "$tmp/headers.cc"
	warns_not $language "$tmp/examples.cc"
	[ $language = c++17 ] || complains $compiler
	if [ $first ] || [ "$all" ]; then
		warns_not c++17 -fno-exceptions -fno-rtti tests/cxx/wrapped.cc
		warns_not c++17 tests/cxx/thrown.cc
	fi
	first=
	[ "$all" ] || continue
	warns_not c++17 "$tmp/headers.cc"
	warns_not c++17 "$tmp/examples.cc"
	warns_not c++17 -Wzero-as-null-pointer-constant tests/cxx/wrapped.cc
	warns_not $language tests/cxx/wrapped.cc
	warns_not $language -fno-exceptions -fno-rtti tests/cxx/wrapped.cc
	warns_not $language tests/cxx/thrown.cc
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
#ifdef WRAPPED
#include <evcoord.hpp>
using coord = evcoord::coord_ref;
#define SHOULD_STOP(c) (c).should_stop()
#else
#include <evcoord.h>
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
		grep -Ev "[[:space:]]\.cfi_|^\.LF" "$tmp/$form.s" |
			sed -n "/^check:/,/\.size/p; /^work:/,/\.size/p" >"$tmp/$form"
	done
	[ -s "$tmp/PLAIN" ] || broken "$compiler: no function was found"
	diff "$tmp/WRAPPED" "$tmp/PLAIN" |
		broken_lines "$compiler: a stop check that is not that of C"
done

# ---- the programs

language=c++20
speaks "$CXX" $language || language=c++17
if [ "$all" ] && [ -n "$compilers" ]; then
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
		speaks clang++ c++20 && language=c++20 || language=c++17
		run wrapped clang++ -std=$language
		run thrown clang++ -std=$language -O1 ;;
	esac
fi
verdict
