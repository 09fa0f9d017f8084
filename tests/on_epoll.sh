#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The second form of the tests with a loop: on bare epoll, with hosted reactors
# (tests/support/loops.h).  What is about libev itself stands in
# tests/libev-only, a program or one of its tests, with the reason, and is left
# out.
#
# Run in the build folder; EVC_ON_EPOLL=all: all programs of tests/api and
# tests/seeds, not only those below.

# Hooks, joins, phases, drains, posts, nested turns, tasks, loopers, pools,
# watches, reports, a watchdog: of each one program that is quick.
quick='core/join/drain core/join/drain_hooks core/join/join core/join/join_step
	core/join/phases_nested core/join/scope_home core/join/scope_join
	core/join/scope_rounds core/life/clear core/loop/nested
	core/loop/nested_model core/loop/post core/loop/reactor
	core/member/hooks core/member/members
	core/stop/noticed members/looper_control members/looper_results
	members/runner members/tasks members/tasks_late observe/numbers
	observe/systemd_watchdog pool/pool pool/pool_loops queue/queue_watch'

# Most of them wait more than they compute, so some run at a time.
beside=4

top=${EVC_TOP_SRCDIR:-$(dirname "$0")/..}
list=$top/tests/libev-only

# Used by itself: run one program.
if [ "$1" = one ]; then
	EVC_TEST_NOT=$(awk -v program="$2" '$1 == program { print $2 }' \
		"$list" | tr '\n' ' ')
	case " $EVC_TEST_NOT " in *' - '*) exit 0 ;; esac
	# Without a tool or a library some are not built.
	[ -x "$2" ] || exit 0
	EVC_TEST_LOOP=epoll
	export EVC_TEST_LOOP EVC_TEST_NOT
	said=$("$2" 2>&1) && failed=0 || failed=1
	printf '%s\n' "$said"
	[ $failed = 0 ] || echo "FAILED on epoll: $2"
	exit $failed
fi

if [ "$EVC_ON_EPOLL" = all ]; then
	programs=$(cd "$top" && find tests/api tests/seeds -name '*.c' |
		sed 's/\.c$//' | sort)
else
	programs=$(for name in $quick; do echo "tests/api/$name"; done)
fi

failed=0
# Each line of the list is about something that is there.
while read -r program test reason; do
	case $program in '#'*|'') continue ;; esac
	[ -n "$reason" ] && [ -e "$top/$program.c" ] &&
		{ [ "$test" = - ] ||
			grep -qw "$test" "$top/$program.c"; } && continue
	echo "tests/libev-only: $program $test: no such test, or no reason"
	failed=1
done <"$list"

for program in $programs; do
	echo "$program"
done | EVC_TOP_SRCDIR=$top xargs -P $beside -I '{}' \
	"${CONFIG_SHELL:-/bin/sh}" "$0" one '{}' || failed=1
exit $failed
