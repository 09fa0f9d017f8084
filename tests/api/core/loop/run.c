/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins on loops: evc_run, evc_join on the thread of a loop, evc_join_start;
 * what ev_break means in each; and that the library neither breaks nor keeps
 * an ev_run that is the application's own.
 */
#include "../../../support/api_util.h"

#include <ev.h>

static evc_coord *coord; /* for libev's callbacks */
static evc_id hold_id;

#define ON_TIMER(name) \
	static void name(struct ev_loop *loop MAYBE_UNUSED, \
			 ev_timer *w MAYBE_UNUSED, int revents MAYBE_UNUSED)

/* A timer of the application. */
static void
after(struct ev_loop *loop, ev_timer *w, double seconds,
      void (*cb)(struct ev_loop *, ev_timer *, int))
{
	ev_timer_init(w, cb, seconds, 0);
	ev_timer_start(loop, w);
}

ON_TIMER(on_request)
{
	evc_request_stop(coord, 0, "by the timer");
}

ON_TIMER(on_break)
{
	ev_break(loop, EVBREAK_ALL);
}

ON_TIMER(on_hold_end)
{
	evc_hold_end(coord, hold_id);
}

static struct ev_loop *
setup(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

	coord = new_coord(loop);
	return loop;
}

static void
teardown(struct ev_loop *loop)
{
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}

START_TEST(run_goes_on_until_a_stop_though_nothing_is_registered)
{
	struct ev_loop *loop = setup();
	ev_timer t;
	evc_verdict v;

	after(loop, &t, 0.1, on_request);
	OK(evc_run(coord, NULL, &v));
	ck_assert(evc_should_stop(coord));
	ck_assert_str_eq(v.stop.text, "by the timer");
	ck_assert_int_eq(ev_is_active(&t), 0);
	ck_assert(evc_joined(coord));
	teardown(loop);
}
END_TEST

START_TEST(run_is_woken_by_another_thread_and_joins_inside)
{
	struct ev_loop *loop = setup();
	evc_verdict v;
	ev_timer t;
	evc_status fails = EVC_DATA_LOSS;

	OK(evc_hold_begin(coord, "hold", NULL, &hold_id));
	OK(evc_thread_start(coord, "obeys", obey, NULL, NULL, NULL));
	OK(evc_thread_start(coord, "fails", return_at_once, &fails, NULL,
			    NULL));
	/* fires only if the loop runs on while the join waits */
	after(loop, &t, 0.1, on_hold_end);
	ck_assert_int_eq(evc_run(coord, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_ended, 3);
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_str_eq(v.error.who, "fails");
	teardown(loop);
}
END_TEST

START_TEST(run_after_a_stop_joins_at_once_and_keeps_the_grace)
{
	struct ev_loop *loop = setup();
	evc_join_opts opts = { .grace = 0.1 };
	double start = t_now();
	evc_verdict v;

	OK(evc_hold_begin(coord, "late", NULL, &hold_id));
	OK(evc_request_stop(coord, 0, "before"));
	ck_assert_int_eq(evc_run(coord, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(t_now() - start, 0.1);
	HAS(v.error.text, "late");
	OK(evc_hold_end(coord, hold_id));
	OK(evc_run(coord, NULL, &v)); /* again: now all are gone */
	teardown(loop);
}
END_TEST

START_TEST(run_with_STOP_FIRST_asks_itself)
{
	struct ev_loop *loop = setup();
	evc_join_opts opts = { .flags = EVC_JOIN_STOP_FIRST };

	OK(evc_thread_start(coord, "obeys", obey, NULL, NULL, NULL));
	OK(evc_run(coord, &opts, NULL));
	ck_assert(evc_should_stop(coord));
	teardown(loop);
}
END_TEST

START_TEST(ev_break_inside_run_is_a_request_and_the_join_goes_on)
{
	struct ev_loop *loop = setup();
	ev_timer t, u;
	evc_verdict v;

	OK(evc_hold_begin(coord, "hold", NULL, &hold_id));
	after(loop, &t, 0.02, on_break);
	after(loop, &u, 0.1, on_hold_end);
	OK(evc_run(coord, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_LOOP_BROKEN);
	ck_assert_int_eq(v.stop.code, 0);
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_uint_eq(v.n_errors, 0);
	teardown(loop);
}
END_TEST

static int late_fired, nested_returned;

ON_TIMER(on_late)
{
	late_fired++;
	ev_break(loop, EVBREAK_ONE);
}

ON_TIMER(on_nest)
{
	ev_timer t, u;

	after(loop, &t, 0.02, on_request);
	after(loop, &u, 0.2, on_late);
	ev_run(loop, 0); /* ended by on_late alone */
	nested_returned = late_fired;
	ev_timer_stop(loop, &t);
	ev_timer_stop(loop, &u);
}

START_TEST(a_stop_does_not_break_an_ev_run_nested_in_run)
{
	struct ev_loop *loop = setup();
	evc_verdict v;
	ev_timer t;

	late_fired = nested_returned = 0;
	after(loop, &t, 0, on_nest);
	OK(evc_run(coord, NULL, &v));
	ck_assert_int_eq(nested_returned, 1);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_REQUEST);
	teardown(loop);
}
END_TEST

ON_TIMER(on_break_nested)
{
	ev_timer u;

	after(loop, &u, 0, on_late);
	ev_run(loop, 0);
	nested_returned = late_fired;
}

START_TEST(breaking_a_nested_ev_run_asks_for_nothing)
{
	struct ev_loop *loop = setup();
	evc_verdict v;
	ev_timer t, u;

	late_fired = nested_returned = 0;
	after(loop, &t, 0, on_break_nested);
	after(loop, &u, 0.1, on_request);
	OK(evc_run(coord, NULL, &v));
	ck_assert_int_eq(nested_returned, 1);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_REQUEST);
	ck_assert_str_eq(v.stop.text, "by the timer");
	teardown(loop);
}
END_TEST

static evc_status answers[3];

ON_TIMER(on_try_joins)
{
	evc_verdict v = { .code = 77 };

	answers[0] = evc_join(coord, NULL, &v);
	answers[1] = evc_run(coord, NULL, &v);
	answers[2] = v.code;
	evc_request_stop(coord, 0,
			 strstr(evc_last_error(), "deadlock")
				 ? "said so"
				 : evc_last_error());
}

START_TEST(J5_a_join_inside_a_loop_would_deadlock)
{
	struct ev_loop *loop = setup();
	ev_timer t;
	evc_verdict v;

	after(loop, &t, 0, on_try_joins);
	OK(evc_run(coord, NULL, &v));
	ck_assert_int_eq(answers[0], -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(answers[1], -EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(answers[2], 77);
	ck_assert_str_eq(v.stop.text, "said so");
	teardown(loop);
}
END_TEST

static void *
run_elsewhere(void *arg)
{
	evc_status *st = arg;

	*st = evc_run(coord, NULL, NULL);
	return NULL;
}

START_TEST(run_is_refused_elsewhere_and_without_a_home)
{
	struct ev_loop *loop = setup();
	evc_coord *homeless = new_coord(NULL);
	evc_status st = 77;
	pthread_t t;

	REFUSED(EVC_FAILED_PRECONDITION, evc_run(homeless, NULL, NULL));
	OK(pthread_create(&t, NULL, run_elsewhere, &st));
	OK(pthread_join(t, NULL));
	ck_assert_int_eq(st, -EVC_FAILED_PRECONDITION);
	ck_assert(!evc_should_stop(coord));
	OK(evc_free(homeless));
	teardown(loop);
}
END_TEST

START_TEST(a_join_on_the_thread_of_a_loop_runs_that_loop)
{
	struct ev_loop *loop = setup();
	ev_timer t;
	evc_verdict v;

	OK(evc_hold_begin(coord, "hold", NULL, &hold_id));
	after(loop, &t, 0.05, on_hold_end);
	OK(evc_join(coord, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert(!evc_should_stop(coord));
	OK(evc_join(coord, NULL, &v)); /* nothing lives: no loop is run */
	teardown(loop);
}
END_TEST

struct answer {
	int called;
	bool too_early, begun;
	evc_verdict v;
	double at;
};

static void
take(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct answer *a = arg;

	ck_assert_ptr_eq(c, coord);
	a->called++;
	a->too_early = !a->begun;
	a->v = *v;
	a->at = t_now();
}

static evc_status
start_join(struct answer *a, double grace)
{
	evc_join_opts opts = { .grace = grace };
	evc_status st;

	memset(a, 0, sizeof(*a));
	st = evc_join_start(coord, take, a, &opts);
	a->begun = true;
	return st;
}

START_TEST(J5_several_evented_joins_each_with_its_own_grace)
{
	struct ev_loop *loop = setup();
	struct answer nothing, brief, longer, endless;
	double start;
	ev_timer t;

	OK(start_join(&nothing, 0));
	ck_assert_int_eq(nothing.called, 0); /* never before it returned */
	ev_run(loop, 0);
	ck_assert_int_eq(nothing.called, 1);
	ck_assert_int_eq(nothing.v.code, 0);
	OK(evc_clear_stop(coord));

	OK(evc_hold_begin(coord, "hold", NULL, &hold_id));
	OK(evc_request_stop(coord, 0, NULL));
	start = t_now();
	OK(start_join(&brief, 0.05));
	OK(start_join(&longer, 0.2));
	OK(start_join(&endless, INFINITY));
	after(loop, &t, 0.4, on_hold_end);
	ev_run(loop, 0);
	ck_assert_int_eq(brief.called, 1);
	ck_assert_int_eq(brief.v.code, EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(brief.at - start, 0.05);
	ck_assert_int_eq(longer.called, 1);
	ck_assert_int_eq(longer.v.code, EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(longer.at - start, 0.2);
	ck_assert_int_eq(endless.called, 1);
	ck_assert_int_eq(endless.v.code, 0);
	ck_assert_uint_eq(endless.v.n_ended, 1);
	ck_assert(!brief.too_early && !longer.too_early && !endless.too_early);
	teardown(loop);
}
END_TEST

ON_TIMER(on_later)
{
	late_fired++;
}

START_TEST(an_evented_join_never_breaks_the_applications_loop)
{
	struct ev_loop *loop = setup();
	struct answer a;
	ev_timer t, u;

	late_fired = 0;
	OK(evc_thread_start(coord, "obeys", obey, NULL, NULL, NULL));
	OK(start_join(&a, 0));
	after(loop, &t, 0.01, on_request);
	after(loop, &u, 0.3, on_later);
	ev_run(loop, 0);
	ck_assert_int_eq(a.called, 1);
	ck_assert_int_eq(late_fired, 1); /* it went on until then */
	teardown(loop);
}
END_TEST

static void *
start_elsewhere(void *arg)
{
	static struct answer a;

	*(evc_status *)arg = start_join(&a, 0);
	return NULL;
}

START_TEST(join_start_is_refused_without_a_loop_and_elsewhere)
{
	struct ev_loop *loop = setup();
	evc_coord *home = coord;
	struct answer a;
	pthread_t t;
	evc_status st = 77;

	REFUSED(EVC_INVALID_ARGUMENT, evc_join_start(home, NULL, NULL, NULL));
	coord = new_coord(NULL);
	REFUSED(EVC_FAILED_PRECONDITION, start_join(&a, 0));
	OK(evc_free(coord));
	coord = home;
	OK(pthread_create(&t, NULL, start_elsewhere, &st));
	OK(pthread_join(t, NULL));
	ck_assert_int_eq(st, -EVC_FAILED_PRECONDITION);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(a.called, 0);
	teardown(loop);
}
END_TEST

START_TEST(L3_a_loop_with_only_our_watchers_does_not_run_on)
{
	struct ev_loop *loop = setup();
	struct answer a;
	ev_timer t;

	ev_run(loop, 0);
	OK(evc_on_stop(coord, "hook", return_at_once, NULL, NULL, NULL));
	OK(evc_thread_start(coord, "obeys", obey, NULL, NULL, NULL));
	ev_run(loop, 0);
	OK(evc_request_stop(coord, 0, NULL));
	ev_run(loop, 0);
	OK(evc_run(coord, NULL, NULL));
	ev_run(loop, 0);
	OK(start_join(&a, 0));
	ev_run(loop, 0);
	ck_assert_int_eq(a.called, 1);
	OK(evc_clear_stop(coord));
	after(loop, &t, 0.01, on_request);
	OK(evc_run(coord, NULL, NULL));
	ev_run(loop, 0);
	OK(evc_free(coord));
	ev_run(loop, 0);

	/* and no reference too few: what is the application's is waited for */
	late_fired = 0;
	after(loop, &t, 0.05, on_late);
	ev_run(loop, 0);
	ck_assert_int_eq(late_fired, 1);
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("run", run_goes_on_until_a_stop_though_nothing_is_registered,
	 run_is_woken_by_another_thread_and_joins_inside,
	 run_after_a_stop_joins_at_once_and_keeps_the_grace,
	 run_with_STOP_FIRST_asks_itself,
	 ev_break_inside_run_is_a_request_and_the_join_goes_on,
	 a_stop_does_not_break_an_ev_run_nested_in_run,
	 breaking_a_nested_ev_run_asks_for_nothing,
	 J5_a_join_inside_a_loop_would_deadlock,
	 run_is_refused_elsewhere_and_without_a_home,
	 a_join_on_the_thread_of_a_loop_runs_that_loop,
	 J5_several_evented_joins_each_with_its_own_grace,
	 an_evented_join_never_breaks_the_applications_loop,
	 join_start_is_refused_without_a_loop_and_elsewhere,
	 L3_a_loop_with_only_our_watchers_does_not_run_on)
