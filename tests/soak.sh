#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# make soak: what is long by nature, and too long for each change.  It belongs
# before a release, and to the end of any work on threads, memory or the
# cluster.
#   - the stress tests, the chaos tests and the fuzzers, for EVC_SOAK_SECONDS
#     (120) each: as built, where chaos takes five times as long, on each engine,
#     and with each sanitizer; the examples under
#     evc-shake, at 200 moments each, and evcoord.hpp with each compiler and
#     language: as built
#   - the pages of make html in a browser, where cmark is installed
#   - all programs of tests/api and tests/seeds on bare epoll, with hosted
#     reactors: as built
#   - all programs under valgrind, where that is installed
#   - each part of tests/platforms.sh: clang, musl, other machines, the packages
# It prints what ran and how long; all that was said is in soak/NAME.log.
#
# EVC_SOAK_STEPS names those that run alone.  Run in the build folder.  The
# environment has MAKE, CMARK and VALGRIND; the arguments are the tests that take
# a time.

parts='own llhttp musl i686 arm64 wrap deb clang'
for name in $EVC_SOAK_STEPS; do
	case " plain epoll asan tsan html valgrind $parts " in
	*" $name "*) ;;
	*) echo "soak: there is no step $name" >&2; exit 99 ;;
	esac
done
seconds=${EVC_SOAK_SECONDS:-120}
mkdir -p soak || exit 99
long=$*
lines=
status=0

# step NAME COMMAND...
step() {
	name=$1
	shift
	case " ${EVC_SOAK_STEPS:-$name} " in
	*" $name "*) ;;
	*) return ;;
	esac
	echo "soak: $name"
	began=$(date +%s)
	"$@" >"soak/$name.log" 2>&1
	case $? in
	0) word=passed ;;
	77) word=skipped ;;
	*) word=FAILED status=1 ;;
	esac
	counts=$(sed -n 's/^# \(PASS\|FAIL\|SKIP\|ERROR\|FLAKY\): */\1 /p' \
		"soak/$name.log" | tr '\n' ' ')
	line=$(printf '%-16s %s in %5d s: %s' "$name" $word \
		$(($(date +%s) - began)) "$counts")
	echo "soak: $line"
	grep -hE '^(FLAKY|FAIL|ERROR): |^SKIP [a-z0-9]*: ' "soak/$name.log"
	lines="$lines$line
"
}

# missing TOOL: the command of a step that needs it.
missing() {
	echo "SKIP $name: $1 is not installed"
	return 77
}

export VERBOSE=1
longer="EVC_STRESS_SECONDS=$seconds EVC_CHAOS_SECONDS=$seconds
	EVC_FUZZ_SECONDS=$seconds EVC_STOPS=50 EVC_SHAKE_MOMENTS=200 EVC_STEPS=20000
	EVC_CXX=all EVC_WHOLE=yes EVC_TEST_LIMIT=$((900 + 6 * seconds))"
# shellcheck disable=SC2086 # a list of words
{
	# Chaos is seven rows long.
	step plain env $longer EVC_CHAOS_SECONDS=$((5 * seconds)) \
		EVC_TEST_LIMIT=$((900 + 30 * seconds)) \
		"$MAKE" check TESTS="$long"
	step epoll env $longer EVC_ON_EPOLL=all "$MAKE" check \
		TESTS=tests/on_epoll.sh
	step asan env $longer "$MAKE" check-asan TESTS="$long"
	step tsan env $longer "$MAKE" check-tsan TESTS="$long"
}
if [ -n "$CMARK" ]; then
	step html "$MAKE" check-html
else
	step html missing cmark
fi
if [ -n "$VALGRIND" ]; then
	step valgrind "$MAKE" check-valgrind
else
	step valgrind missing valgrind
fi
for part in $parts; do
	# shellcheck disable=SC2086
	step $part sh "$EVC_TOP_SRCDIR/tests/platforms.sh" $part \
		$EVC_PLATFORM_TESTS
done
printf '\nsoak: %d seconds each\n%s' "$seconds" "$lines"
[ $status = 0 ] && echo 'soak: all of these passed'
exit $status
