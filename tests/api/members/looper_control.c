/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers told what to do while they live: triggered, given another interval,
 * paused and resumed, created before they are started; and the last run at
 * the stop.
 */
#include "../../support/looper_util.h"

static evc_status
trigger_thrice(evc_coord *c, struct looper *l, int n)
{
	int i;

	for (i = 0; n == 2 && i < 3; i++)
		if (evc_looper_trigger(c, l->id) != 0)
			atomic_fetch_add(&l->wrong, 1);
	return 0;
}

START_TEST(p1_triggers_are_one_run_that_uses_no_boundary)
{
	struct looper l = { .body = trigger_thrice };
	evc_member_info info;
	struct rig r;
	int i;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, NULL);
	UNTIL_RUNS(&r, &l, 1);
	clock_to(1);
	UNTIL_RUNS(&r, &l, 3); /* the boundary, and right after it */
	RUNS_STAY(&r, &l, 3);
	clock_to(1.5);
	OK(evc_looper_trigger(r.c, l.id));
	UNTIL_RUNS(&r, &l, 4);
	RUNS_STAY(&r, &l, 4);
	clock_to(2);
	UNTIL_RUNS(&r, &l, 5);
	RUNS_STAY(&r, &l, 5);
	OK(evc_member_get(r.c, l.id, &info));
	ck_assert_uint_eq(info.ticks, 5);
	ck_assert_uint_eq(info.missed, 0);
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(rrrrr)");
	for (i = 1; i <= 5; i++)
		run_saw(&l, i, 0, 0);
	rig_end(&r);
}
END_TEST

/* Both are due when it looks: neither takes the other's place. */
static evc_status
trigger_at_boundary(evc_coord *c, struct looper *l, int n)
{
	if (n == 1) {
		clock_to(1);
		if (evc_looper_trigger(c, l->id) != 0)
			atomic_fetch_add(&l->wrong, 1);
	}
	return 0;
}

START_TEST(p1_a_trigger_takes_no_boundarys_place)
{
	struct looper l = { .body = trigger_at_boundary };
	struct rig r;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, NULL);
	UNTIL_RUNS(&r, &l, 3);
	RUNS_STAY(&r, &l, 3);
	run_saw(&l, 2, 0, 0);
	run_saw(&l, 3, 0, 0);
	rig_end(&r);
}
END_TEST

START_TEST(a_new_interval_counts_from_now)
{
	struct looper l = { 0 };
	struct rig r;
	int i;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, NULL);
	UNTIL_RUNS(&r, &l, 1);
	clock_to(0.5); /* longer: the next at 2.5, then 4.5 */
	OK(evc_looper_set_interval(r.c, l.id, 2 * INTERVAL));
	clock_to(2.4);
	RUNS_STAY(&r, &l, 1);
	clock_to(2.5);
	UNTIL_RUNS(&r, &l, 2);
	clock_to(4.4);
	RUNS_STAY(&r, &l, 2);
	clock_to(4.5);
	UNTIL_RUNS(&r, &l, 3);
	/* shorter: the next at 5 */
	OK(evc_looper_set_interval(r.c, l.id, INTERVAL / 2));
	RUNS_STAY(&r, &l, 3);
	clock_to(5);
	UNTIL_RUNS(&r, &l, 4);
	/* none at all, but what is triggered */
	OK(evc_looper_set_interval(r.c, l.id, INFINITY));
	clock_to(1000);
	RUNS_STAY(&r, &l, 4);
	OK(evc_looper_trigger(r.c, l.id));
	UNTIL_RUNS(&r, &l, 5);
	RUNS_STAY(&r, &l, 5);
	/* and one again: it sleeps without limit, and hears of it */
	OK(evc_looper_set_interval(r.c, l.id, INTERVAL));
	clock_to(1000.9);
	RUNS_STAY(&r, &l, 5);
	clock_to(1001);
	UNTIL_RUNS(&r, &l, 6);
	for (i = 1; i <= 6; i++)
		run_saw(&l, i, 0, 0);
	OK(evc_looper_set_interval(r.c, l.id, 0));
	UNTIL_RUNS(&r, &l, 50);
	OK(evc_looper_set_interval(r.c, l.id, 3600));
	rig_moment(&r);
	RUNS_STAY(&r, &l, atomic_load(&l.runs));
	OK(rig_stop(&r, NULL));
	ck_assert_int_eq(l.stops, 1);
	ck_assert_int_eq(l.wrong, 0);
	rig_end(&r);
}
END_TEST

static evc_status
set_in_run(evc_coord *c, struct looper *l, int n)
{
	if (n != 2)
		return 0;
	if (evc_looper_set_interval(c, l->id, 3 * INTERVAL) != 0)
		atomic_fetch_add(&l->wrong, 1);
	atomic_store((atomic_bool *)l->more, true);
	return 0;
}

START_TEST(a_run_may_change_its_interval)
{
	atomic_bool set = false;
	struct looper l = { .body = set_in_run, .more = &set };
	struct rig r;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, NULL);
	UNTIL_RUNS(&r, &l, 1);
	clock_to(1);
	RIG_UNTIL(&r, atomic_load(&set)); /* at 1: the next is at 4 */
	clock_to(3.9);
	RUNS_STAY(&r, &l, 2);
	clock_to(4);
	UNTIL_RUNS(&r, &l, 3);
	run_saw(&l, 3, 0, 0);
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(rrr)");
	rig_end(&r);
}
END_TEST

START_TEST(paused_it_does_not_run_until_it_is_resumed)
{
	struct looper l = { 0 };
	evc_member_info info;
	struct rig r;
	int i;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, NULL);
	UNTIL_RUNS(&r, &l, 1);
	OK(evc_member_resume(r.c, l.id)); /* it runs: nothing changes */
	RUNS_STAY(&r, &l, 1);
	clock_to(0.5);
	OK(evc_member_pause(r.c, l.id));
	clock_to(3.25);
	RUNS_STAY(&r, &l, 1);
	OK(evc_member_pause(r.c, l.id));
	REFUSED(EVC_FAILED_PRECONDITION, evc_looper_trigger(r.c, l.id));
	RUNS_STAY(&r, &l, 1);
	/* at once, and from now on */
	OK(evc_member_resume(r.c, l.id));
	UNTIL_RUNS(&r, &l, 2);
	clock_to(4);
	RUNS_STAY(&r, &l, 2);
	OK(evc_member_resume(r.c, l.id)); /* moves no boundary */
	clock_to(4.25);
	UNTIL_RUNS(&r, &l, 3);
	/* with an interval that was changed meanwhile */
	OK(evc_member_pause(r.c, l.id));
	OK(evc_looper_set_interval(r.c, l.id, 2 * INTERVAL));
	clock_to(10);
	RUNS_STAY(&r, &l, 3);
	OK(evc_member_resume(r.c, l.id));
	UNTIL_RUNS(&r, &l, 4);
	clock_to(11.9);
	RUNS_STAY(&r, &l, 4);
	clock_to(12);
	UNTIL_RUNS(&r, &l, 5);
	RIG_UNTIL(&r, evc_member_get(r.c, l.id, &info) == 0 && info.ticks == 5);
	ck_assert_uint_eq(info.missed, 0); /* what is paused misses nothing */
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(rrrrr)");
	for (i = 1; i <= 5; i++)
		run_saw(&l, i, 0, 0);
	rig_end(&r);
}
END_TEST

static evc_status
pause_in_run(evc_coord *c, struct looper *l, int n)
{
	if (n == 1 &&
	    (evc_looper_trigger(c, l->id) != 0 ||
	     evc_member_pause(c, l->id) != 0 ||
	     evc_looper_trigger(c, l->id) != -EVC_FAILED_PRECONDITION))
		atomic_fetch_add(&l->wrong, 1);
	atomic_store((atomic_bool *)l->more, true);
	return 0;
}

/* The run at its resume is all that was asked for. */
START_TEST(a_run_may_pause_its_looper)
{
	atomic_bool paused = false;
	struct looper l = { .body = pause_in_run, .more = &paused };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, INFINITY, NULL);
	RIG_UNTIL(&r, atomic_load(&paused));
	RUNS_STAY(&r, &l, 1);
	OK(evc_member_resume(r.c, l.id));
	UNTIL_RUNS(&r, &l, 2);
	RUNS_STAY(&r, &l, 2);
	rig_end(&r);
	looper_was(&l, "(rr)");
}
END_TEST

/* Paused later it counts as alive, and its stop hook is called, but there is no
   last run. */
START_TEST(a_paused_one_is_waited_for_and_ends_at_the_stop)
{
	evc_member_opts opts = { .flags = EVC_FLUSH };
	struct looper l = { 0 };
	struct joiner j;
	struct rig r;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, &opts);
	UNTIL_RUNS(&r, &l, 1);
	OK(evc_member_pause(r.c, l.id));
	rig_moment(&r);
	join_begin(&j, r.c, T_LIMIT, 0);
	ck_assert(!atomic_load(&j.returned));
	if (_i != AT_HOME)
		until_asleep(l.tid); /* it does not wait for a time */
	OK(evc_request_stop(r.c, 0, NULL));
	RIG_UNTIL(&r, atomic_load(&j.returned));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 1);
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	looper_was(&l, "(r)");
	rig_end(&r);
}
END_TEST

static const evc_member_opts created_only = { .flags = EVC_PAUSED };

START_TEST(never_started_it_holds_up_no_join_and_can_be_started_after_it)
{
	struct looper l = { .last = 2, .result = EVC_OUT_OF_RANGE };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 0.001, &created_only);
	RUNS_STAY(&r, &l, 0);
	REFUSED(EVC_FAILED_PRECONDITION, evc_looper_trigger(r.c, l.id));
	OK(evc_member_pause(r.c, l.id)); /* it is */
	OK(evc_join(r.c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, 0);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_ended, 0);
	ck_assert(!evc_should_stop(r.c));
	ck_assert(!is_gone(r.c, l.id));
	ck_assert_int_eq(l.n_calls, 0);
	/* it begins to count when it begins to run */
	OK(evc_member_resume(r.c, l.id));
	OK(evc_join(r.c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	looper_was(&l, "(rr)");
	rig_end(&r);
}
END_TEST

START_TEST(never_started_it_ends_at_the_stop_without_a_call)
{
	evc_member_opts opts = { .flags = EVC_PAUSED | EVC_FLUSH };
	struct looper l = { 0 }, other = { 0 };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 0, &opts);
	looper_begin(&r, &other, INTERVAL, NULL);
	UNTIL_RUNS(&r, &other, 1);
	OK(rig_stop(&r, NULL));
	looper_was(&l, "");
	ck_assert(is_gone(r.c, l.id));
	rig_end(&r);
	looper_was(&l, "");
}
END_TEST

START_TEST(never_started_it_can_be_freed_with_the_coordinator)
{
	struct looper l = { 0 };
	evc_member_opts opts;
	struct rig r;

	rig_begin(&r, _i, NULL);
	opts = rig_opts(&r, &created_only);
	OK(evc_looper_start(r.c, "ticker", 0, looper_run, &l, &opts, NULL));
	OK(evc_free(r.c));
	r.c = new_coord(NULL);
	rig_moment(&r);
	looper_was(&l, "");
	rig_end(&r);
}
END_TEST

START_TEST(started_later_it_begins_like_any_other)
{
	struct looper l = { 0 };
	struct rig r;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, &created_only);
	OK(evc_looper_set_interval(r.c, l.id, 2 * INTERVAL));
	clock_to(7);
	RUNS_STAY(&r, &l, 0);
	OK(evc_member_resume(r.c, l.id));
	OK(evc_member_resume(r.c, l.id));
	UNTIL_RUNS(&r, &l, 1);
	clock_to(8.9);
	RUNS_STAY(&r, &l, 1);
	clock_to(9);
	UNTIL_RUNS(&r, &l, 2);
	run_saw(&l, 1, 0, 0);
	run_saw(&l, 2, 0, 0);
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(rr)");
	rig_end(&r);
}
END_TEST

/* One last run, whatever else is due, and then the end. */
START_TEST(p1_flush_is_one_last_run_at_the_stop)
{
	evc_member_opts opts = { .flags = EVC_FLUSH,
				 .missed = EVC_MISSED_BURST };
	struct looper l = { 0 };
	struct rig r;
	evc_verdict v;
	int i;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, 3600, &opts);
	UNTIL_RUNS(&r, &l, 1);
	RUNS_STAY(&r, &l, 1);
	OK(rig_stop(&r, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	looper_was(&l, "(rr)");
	for (i = 0; i < 2; i++)
		ck_assert(l.seen[i].stopped == (i == 1));
	rig_end(&r);
}
END_TEST

static evc_status
stop_with_much_due(evc_coord *c, struct looper *l, int n)
{
	if (n == 2) {
		clock_to(20);
		if (evc_looper_trigger(c, l->id) != 0 ||
		    evc_request_stop(c, 0, NULL) != 0)
			atomic_fetch_add(&l->wrong, 1);
	}
	return n == 3 ? EVC_DATA_LOSS : 0;
}

START_TEST(p1_flush_is_one_run_also_with_more_due_and_may_fail)
{
	evc_member_opts opts = { .flags = EVC_FLUSH,
				 .missed = EVC_MISSED_BURST };
	struct looper l = { .body = stop_with_much_due };
	struct rig r;
	evc_verdict v;

	rig_scripted(&r, _i);
	looper_begin(&r, &l, INTERVAL, &opts);
	UNTIL_RUNS(&r, &l, 1);
	clock_to(1);
	ck_assert_int_eq(evc_join(r.c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.who, "ticker");
	looper_was(&l, "(rrr)");
	ck_assert(l.seen[2].stopped);
	rig_end(&r);
}
END_TEST

/* The stop finds it ended already: by its own result, or by an error. */
START_TEST(what_has_ended_is_not_flushed)
{
	static const evc_status results[] = { EVC_OUT_OF_RANGE, EVC_DATA_LOSS };
	evc_member_opts opts = { .flags = EVC_FLUSH | EVC_END_STOPS };
	struct rig r;
	int i;

	for (i = 0; i < 4; i++) {
		struct looper l = { .last = 2,
				    .result = results[i % 2],
				    .start_result =
					    i < 2 ? 0 : results[i % 2] };

		rig_begin(&r, _i, NULL);
		looper_begin(&r, &l, 0.001, &opts);
		ck_assert_int_eq(evc_join(r.c, NULL, NULL),
				 i % 2 ? EVC_DATA_LOSS : 0);
		looper_was(&l, i < 2 ? "(rr)" : "(");
		rig_end(&r);
	}
}
END_TEST

PLACES_MAIN(
	"looper_control",
	EACH_PLACE(p1_triggers_are_one_run_that_uses_no_boundary),
	EACH_PLACE(p1_a_trigger_takes_no_boundarys_place),
	EACH_PLACE(a_new_interval_counts_from_now),
	EACH_PLACE(a_run_may_change_its_interval),
	EACH_PLACE(paused_it_does_not_run_until_it_is_resumed),
	EACH_PLACE(a_run_may_pause_its_looper),
	EACH_PLACE(a_paused_one_is_waited_for_and_ends_at_the_stop),
	EACH_PLACE(
		never_started_it_holds_up_no_join_and_can_be_started_after_it),
	EACH_PLACE(never_started_it_ends_at_the_stop_without_a_call),
	AT_PLACE(never_started_it_can_be_freed_with_the_coordinator, AT_HOME),
	AT_PLACE(never_started_it_can_be_freed_with_the_coordinator, ON_THREAD),
	EACH_PLACE(started_later_it_begins_like_any_other),
	EACH_PLACE(p1_flush_is_one_last_run_at_the_stop),
	EACH_PLACE(p1_flush_is_one_run_also_with_more_due_and_may_fail),
	EACH_PLACE(what_has_ended_is_not_flushed))
