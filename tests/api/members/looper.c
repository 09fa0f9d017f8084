/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of loopers: started, run, stopped and waited for where they live -
 * the same on a loop and on a thread.
 */
#include "../../support/looper_util.h"

#include <signal.h>

START_TEST(it_starts_runs_and_stops_where_it_lives)
{
	struct looper l = { 0 };
	evc_member_info info;
	struct rig r;
	evc_verdict v;
	int i;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, INFINITY, NULL);
	UNTIL_RUNS(&r, &l, 1);
	for (i = 2; i <= 3; i++) {
		OK(evc_looper_trigger(r.c, l.id));
		UNTIL_RUNS(&r, &l, i);
	}
	RIG_UNTIL(&r, evc_member_get(r.c, l.id, &info) == 0 && info.ticks == 3);
	ck_assert_uint_eq(info.id, l.id);
	ck_assert_uint_eq(info.kind, EVC_LOOPER);
	ck_assert_uint_eq(info.state, EVC_LIVE);
	ck_assert_uint_eq(info.round, 1);
	ck_assert_uint_eq(info.missed, 0);
	ck_assert_str_eq(info.name, "ticker");
	ck_assert(!(info.flags & EVC_OWN_THREAD) == (_i != ON_THREAD));
	ck_assert_double_ge(info.age, 0);
	if (_i == AT_HOME)
		ck_assert_int_eq(l.tid, own_tid());
	else
		ck_assert_int_ne(l.tid, own_tid());
	if (_i == FAR_AWAY)
		ck_assert_int_eq(l.tid, r.far.tid);
	RUNS_STAY(&r, &l, 3);
	OK(rig_stop(&r, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_uint_eq(v.n_errors, 0);
	looper_was(&l, "(rrr)");
	ck_assert(is_gone(r.c, l.id));
	rig_end(&r);
}
END_TEST

/* Each of them counts its calls. */
START_TEST(neither_hooks_nor_an_id_are_needed)
{
	atomic_int calls = 0, before;
	evc_member_opts opts;
	struct rig r;
	int i;

	for (i = 0; i < 4; i++) {
		rig_begin(&r, _i, NULL);
		opts = rig_opts(&r, NULL);
		opts.start = i & 1 ? count_hook : NULL;
		opts.stop = i & 2 ? count_hook : NULL;
		atomic_store(&calls, 0);
		OK(evc_looper_start(r.c, NULL, INFINITY, count_hook, &calls,
				    &opts, NULL));
		RIG_UNTIL(&r, atomic_load(&calls) == 1 + (i & 1));
		before = atomic_load(&calls);
		OK(rig_stop(&r, NULL));
		ck_assert_int_eq(calls, before + !!(i & 2));
		rig_end(&r);
	}
}
END_TEST

START_TEST(a_clean_result_ends_it_alone)
{
	struct looper ends = { .last = 3, .result = EVC_OUT_OF_RANGE };
	struct looper other = { 0 };
	struct joiner j;
	struct rig r;
	int n;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &other, 0.001, NULL);
	join_begin(&j, r.c, 0, 0);
	looper_begin(&r, &ends, 0.001, NULL);
	RIG_UNTIL(&r, atomic_load(&ends.stops));
	n = atomic_load(&other.runs);
	UNTIL_RUNS(&r, &other, n + 3);
	RIG_UNTIL(&r, is_gone(r.c, ends.id));
	looper_was(&ends, "(rrr)");
	ck_assert(!evc_should_stop(r.c));
	ck_assert(!atomic_load(&j.returned));
	OK(evc_request_stop(r.c, 0, NULL));
	RIG_UNTIL(&r, atomic_load(&j.returned));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 2);
	ck_assert_uint_eq(j.v.n_errors, 0);
	ck_assert_int_eq(other.stops, 1);
	ck_assert_int_eq(other.wrong, 0);
	rig_end(&r);
}
END_TEST

START_TEST(the_end_of_the_last_one_ends_a_join)
{
	struct looper l = { .last = 3, .result = EVC_OUT_OF_RANGE };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 0.001, NULL);
	OK(evc_join(r.c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, 0);
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert(!evc_should_stop(r.c));
	looper_was(&l, "(rrr)");
	rig_end(&r);
}
END_TEST

START_TEST(a_join_waits_for_it_unless_it_is_in_the_background)
{
	evc_member_opts opts = { .flags = EVC_BACKGROUND };
	struct looper front = { 0 }, back = { 0 };
	struct joiner j;
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &front, 0.001, NULL);
	join_begin(&j, r.c, 0, 0);
	UNTIL_RUNS(&r, &front, 5);
	ck_assert(!atomic_load(&j.returned));
	OK(evc_request_stop(r.c, 0, NULL));
	RIG_UNTIL(&r, atomic_load(&j.returned));
	OK(join_end(&j));
	rig_end(&r);

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &back, 0.001, &opts);
	UNTIL_RUNS(&r, &back, 1);
	OK(evc_join(r.c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_EMPTY);
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_int_eq(back.stops, 1);
	ck_assert_int_eq(back.wrong, 0);
	rig_end(&r);
}
END_TEST

static evc_status
stay_in_run(evc_coord *c, struct looper *l, int n)
{
	return n == 2 ? stay(c, l->more) : 0;
}

START_TEST(after_the_stop_it_is_refused_or_ends_without_a_run)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	struct looper refused = { 0 }, l = { 0 };
	struct guest g = { 0 };
	struct looper keeper = { .body = stay_in_run, .more = &g };
	struct rig r;

	rig_begin(&r, _i, NULL);
	if (_i == FAR_AWAY) { /* else its loop would be gone soon */
		looper_begin(&r, &keeper, 0.001, NULL);
		UNTIL(atomic_load(&g.in));
	}
	OK(evc_request_stop(r.c, 0, NULL));
	REFUSED(EVC_CANCELLED, looper_try(&r, &refused, 0, NULL));
	ck_assert_uint_eq(refused.id, 0);
	OK(looper_try(&r, &l, 0, &late));
	ck_assert_uint_ne(l.id, 0);
	atomic_store(&g.open, 1);
	OK(rig_stop(&r, NULL));
	ck_assert_int_eq(refused.n_calls, 0);
	ck_assert_int_eq(l.runs, 0);
	ck_assert_int_eq(l.stops, l.starts);
	ck_assert_int_eq(l.wrong, 0);
	ck_assert(is_gone(r.c, l.id));
	rig_end(&r);
}
END_TEST

START_TEST(the_next_round_has_its_own)
{
	struct rig r;
	int i;

	rig_begin(&r, _i, NULL);
	for (i = 1; i <= 3; i++) {
		struct looper l = { 0 };
		evc_member_info info;

		if (i > 1 && _i == FAR_AWAY)
			far_begin(&r.far);
		looper_begin(&r, &l, INFINITY, NULL);
		UNTIL_RUNS(&r, &l, 1);
		OK(evc_member_get(r.c, l.id, &info));
		ck_assert_uint_eq(info.round, i);
		OK(rig_stop(&r, NULL));
		looper_was(&l, "(r)");
		if (i == 3)
			break;
		if (_i == FAR_AWAY)
			far_end(&r.far);
		OK(evc_clear_stop(r.c));
	}
	rig_end(&r);
}
END_TEST

/* A start, or a run, that starts another one at the same place. */
static evc_status
start_another(evc_coord *c, struct looper *l)
{
	struct looper *other = l->more;

	(void)c;
	return -looper_try(l->rig, other, 0.001, NULL);
}

static evc_status
start_another_in_run(evc_coord *c, struct looper *l, int n)
{
	return n == 1 ? start_another(c, l) : 0;
}

START_TEST(a_looper_may_start_others)
{
	struct looper c = { 0 };
	struct looper b = { .body = start_another_in_run, .more = &c };
	struct looper a = { .at_start = start_another, .more = &b };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &a, 0.001, NULL);
	UNTIL_RUNS(&r, &a, 3);
	UNTIL_RUNS(&r, &b, 3);
	UNTIL_RUNS(&r, &c, 3);
	OK(rig_stop(&r, &v));
	ck_assert_uint_eq(v.n_ended, 3);
	ck_assert_int_eq(a.stops + b.stops + c.stops, 3);
	ck_assert_int_eq(a.wrong + b.wrong + c.wrong, 0);
	rig_end(&r);
}
END_TEST

START_TEST(one_that_does_not_end_is_named)
{
	evc_join_opts opts = { .grace = 0.05 };
	struct guest g = { 0 };
	struct looper l = { .body = stay_in_run, .more = &g };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 0.001, NULL);
	UNTIL_RUNS(&r, &l, 2);
	OK(evc_request_stop(r.c, 0, NULL));
	ck_assert_int_eq(evc_join(r.c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 1);
	HAS(v.error.text, "ticker");
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(r.c));
	HAS(evc_last_error(), "ticker");
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(r.c));
	HAS(evc_last_error(), "ticker");
	atomic_store(&g.open, 1);
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(rr)");
	rig_end(&r);
}
END_TEST

/* Late when its own grace is over, though the join has two minutes. */
START_TEST(it_may_have_a_grace_of_its_own)
{
	evc_member_opts brief = { .grace = 0.05 };
	struct guest g = { 0 };
	struct looper l = { .body = stay_in_run, .more = &g };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, 0.001, &brief);
	UNTIL_RUNS(&r, &l, 2);
	OK(evc_request_stop(r.c, 0, NULL));
	ck_assert_int_eq(evc_join(r.c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "ticker");
	atomic_store(&g.open, 1);
	OK(rig_stop(&r, NULL));
	looper_was(&l, "(rr)");
	rig_end(&r);
}
END_TEST

/* A plain ev_run goes on for a looper that a join would wait for, due or not,
   and for no other. */
START_TEST(in_the_foreground_it_keeps_ev_run_from_returning)
{
	evc_member_opts back = { .flags = EVC_BACKGROUND };
	evc_member_opts created = { .flags = EVC_PAUSED };
	struct looper l = { .last = 3, .result = EVC_OUT_OF_RANGE };
	struct looper behind = { 0 }, never = { 0 };
	struct rig r;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &behind, 0.001, &back);
	looper_begin(&r, &never, 0.001, &created);
	ev_run(r.home, 0);
	looper_begin(&r, &l, 0.001, NULL);
	ev_run(r.home, 0);
	ck_assert_int_eq(l.runs, 3);
	ck_assert_int_eq(never.n_calls, 0);
	rig_end(&r);
}
END_TEST

/* The loop is destroyed under a looper that has run, and two that have not. */
START_TEST(loopers_of_a_destroyed_loop_have_ended)
{
	evc_member_opts opts = { .flags = EVC_PAUSED };
	struct looper l = { 0 }, fresh = { 0 }, never = { 0 };
	struct rig r;
	evc_verdict v;

	rig_begin(&r, _i, NULL);
	looper_begin(&r, &l, INFINITY, NULL);
	UNTIL_RUNS(&r, &l, 1);
	RUNS_STAY(&r, &l, 1);
	looper_begin(&r, &fresh, 0, NULL);
	looper_begin(&r, &never, 0, &opts);
	ev_loop_destroy(r.home);
	r.home = NULL;
	looper_was(&l, "(r)");
	looper_was(&never, "");
	ck_assert_int_eq(fresh.runs, 0);
	ck_assert_int_eq(fresh.starts, fresh.stops);
	ck_assert_int_lt(evc_looper_trigger(r.c, l.id), 0);
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_resume(r.c, never.id));
	REFUSED(EVC_FAILED_PRECONDITION, looper_try(&r, &fresh, 0, NULL));
	HAS(evc_last_error(), " was detached or destroyed");
	OK(evc_join(r.c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, 0);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert(is_gone(r.c, l.id));
	REFUSED(EVC_NOT_FOUND, evc_member_remove(r.c, l.id));
	rig_end(&r);
	looper_was(&l, "(r)");
	looper_was(&never, "");
}
END_TEST

static evc_status
look_at_signals(evc_coord *c, void *arg)
{
	(void)c;
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return EVC_OUT_OF_RANGE;
}

START_TEST(its_own_thread_is_set_up_like_any)
{
	evc_member_opts opts = { .flags = EVC_OWN_THREAD };
	sigset_t mask;
	struct rig r;

	rig_begin(&r, _i, NULL);
	sigemptyset(&mask);
	OK(evc_looper_start(r.c, "ticker", 1, look_at_signals, &mask, &opts,
			    NULL));
	OK(evc_join(r.c, NULL, NULL));
	ck_assert(sigismember(&mask, SIGTERM));
	ck_assert(sigismember(&mask, SIGINT));
	ck_assert(sigismember(&mask, SIGUSR1));
	ck_assert(!sigismember(&mask, SIGSEGV));
	rig_end(&r);
}
END_TEST

PLACES_MAIN("looper", EACH_PLACE(it_starts_runs_and_stops_where_it_lives),
	    EACH_PLACE(neither_hooks_nor_an_id_are_needed),
	    EACH_PLACE(a_clean_result_ends_it_alone),
	    EACH_PLACE(the_end_of_the_last_one_ends_a_join),
	    EACH_PLACE(a_join_waits_for_it_unless_it_is_in_the_background),
	    EACH_PLACE(after_the_stop_it_is_refused_or_ends_without_a_run),
	    EACH_PLACE(the_next_round_has_its_own),
	    EACH_PLACE(a_looper_may_start_others),
	    ELSEWHERE(one_that_does_not_end_is_named),
	    ELSEWHERE(it_may_have_a_grace_of_its_own),
	    AT_PLACE(in_the_foreground_it_keeps_ev_run_from_returning, AT_HOME),
	    AT_PLACE(loopers_of_a_destroyed_loop_have_ended, AT_HOME),
	    AT_PLACE(its_own_thread_is_set_up_like_any, ON_THREAD))
