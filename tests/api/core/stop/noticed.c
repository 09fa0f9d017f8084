/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends that are noticed although nobody joins, and ends that are not lost
 * although they come at an odd moment.
 */
#include "../../../support/api_util.h"

#include <ev.h>

START_TEST(a_watched_raw_exit_stops_though_nobody_joins)
{
	evc_member_opts watched = { .flags = EVC_WATCHED };
	evc_coord *c;
	evc_verdict v;

	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	if (!has_thread_pidfd())
		T_SKIP("this kernel has no pidfd for threads");
	c = new_coord(NULL);
	OK(evc_thread_start(c, "raw", exit_by_syscall, NULL, &watched, NULL));
	ck_assert(evc_wait_for_stop(c, T_LIMIT));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	ck_assert_str_eq(v.error.who, "raw");
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_registered_end_stops_though_nobody_joins)
{
	evc_member_opts stops = { .flags = EVC_END_STOPS };
	struct guest g = { 0 };
	evc_verdict v;
	evc_coord *c;
	pthread_t t;

	if (!has_thread_pidfd())
		T_SKIP("this kernel has no pidfd for threads");
	c = new_coord(NULL);
	OK(pthread_create(&t, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "registered", t, &stops, NULL));
	atomic_store(&g.open, 1);
	ck_assert(evc_wait_for_stop(c, T_LIMIT));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_MEMBER_END);
	ck_assert_str_eq(v.stop.who, "registered");
	ck_assert_int_eq(evc_reason_get(c, 1, NULL), -EVC_NOT_FOUND);
	OK(evc_free(c));
}
END_TEST

static evc_status
fail_at_once(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_fail(c, EVC_INTERNAL, 0, "at once");
}

/* Starting a thread opens a closed round again, before its first step. */
START_TEST(the_first_error_of_a_thread_started_in_a_closed_round_counts)
{
	evc_verdict v;
	int i;

	for (i = 0; i < 200; i++) {
		evc_coord *c = new_coord(NULL);

		OK(evc_join(c, NULL, NULL));
		OK(evc_thread_start(c, "fails", fail_at_once, NULL, NULL,
				    NULL));
		ck_assert_int_eq(evc_join(c, NULL, &v), EVC_INTERNAL);
		ck_assert_uint_eq(v.n_errors, 1);
		ck_assert(evc_should_stop(c));
		OK(evc_free(c));
	}
}
END_TEST

static pthread_key_t slow;

static void
take_time(void *arg)
{
	(void)arg;
	t_sleep(0.01);
}

static evc_status
end_slowly(evc_coord *c, void *arg)
{
	(void)c;
	pthread_setspecific(slow, arg);
	return 0;
}

static struct {
	evc_coord *c;
	evc_id id;
} lingering;

static void
on_look(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)revents;
	if (evc_member_get(lingering.c, lingering.id, NULL) != -EVC_NOT_FOUND)
		return;
	ev_timer_stop(loop, t);
	OK(evc_request_stop(lingering.c, 0, "it is joined"));
}

/* A run that waits for its stop joins who has rung, also one that takes longer
   to be gone than the run blocks for it. */
START_TEST(a_run_joins_a_thread_whose_destructors_take_time)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_verdict v;
	ev_timer t;

	OK(pthread_key_create(&slow, take_time));
	lingering.c = c;
	OK(evc_thread_start(c, "slow", end_slowly, &lingering, NULL,
			    &lingering.id));
	ev_timer_init(&t, on_look, 0.01, 0.01);
	ev_timer_start(loop, &t);
	OK(evc_run(c, NULL, &v));
	ck_assert_str_eq(v.stop.text, "it is joined");
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Late in one join, ended meanwhile: it does not live any more. */
START_TEST(who_has_ended_since_a_late_join_keeps_no_clear_waiting)
{
	evc_join_opts none = { .grace = EVC_NO_GRACE };
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	double until = t_now() + T_LIMIT;
	evc_status st;

	OK(evc_thread_start(c, "late", stay, &g, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &none, NULL), EVC_DEADLINE_EXCEEDED);
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	atomic_store(&g.open, 1);
	do
		st = evc_clear_stop(c);
	while (st < 0 && t_now() < until);
	OK(st);
	OK(evc_free(c));
}
END_TEST

/* The hook of a stop that was cleared must not stop the new round. */
static struct guest hook_gate;

static evc_status
fail_slowly(evc_coord *c, void *arg)
{
	(void)stay(c, arg);
	return EVC_INTERNAL;
}

START_TEST(S5_a_hook_that_outlives_its_round_stops_no_other)
{
	evc_coord *c = new_coord(NULL);
	evc_id id = 0;

	OK(evc_on_stop(c, "slow", fail_slowly, &hook_gate, NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&hook_gate.in) == 1);
	OK(evc_clear_stop(c));
	atomic_store(&hook_gate.open, 1);
	OK(evc_member_remove(c, id)); /* returns when the hook has */
	ck_assert(!evc_should_stop(c));
	OK(evc_raise_requested(c, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_hook_added_to_a_joined_round_is_waited_for)
{
	evc_coord *c = new_coord(NULL);
	atomic_int calls = 0;
	int i;

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	for (i = 1; i <= 50; i++) {
		OK(evc_on_stop(c, "late", count_hook, &calls, NULL, NULL));
		OK(evc_join(c, NULL, NULL));
		ck_assert_int_eq(calls, i);
	}
	OK(evc_free(c));
}
END_TEST

/* Nobody tells a join that a clock of the user's has moved; it looks. */
START_TEST(a_join_notices_that_a_scripted_clock_has_jumped)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct joiner j;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	scripted_advance(119);
	ck_assert(!atomic_load(&j.returned));
	scripted_advance(2);
	UNTIL(atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

static void
freed_by_join(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)v;
	*(evc_status *)arg = evc_request_stop(c, 0, NULL);
}

/* Without a home, and without naming a loop: the one of this thread. */
START_TEST(an_evented_join_finds_the_loop_of_its_thread)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r = NULL;
	evc_status st = 77;

	OK(evc_reactor_attach(c, "mine", loop, &r));
	OK(evc_join_start(c, freed_by_join, &st, NULL));
	ev_run(loop, 0);
	OK(st);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static const evc_task_class late_class = {
	.name = "late",
	.flags = EVC_AFTER_STOP,
};

static struct {
	evc_reactor *r;
	evc_task task;
	ev_timer end;
	int begun;
} afterwards;

static void
on_end(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)t;
	(void)revents;
	evc_task_end(&afterwards.task);
}

/* Runs behind the reactor's own callback, in the same turn of the loop. */
static void
on_check(struct ev_loop *loop, ev_check *w, int revents)
{
	(void)w;
	(void)revents;
	if (!evc_should_stop(evc_reactor_coord(afterwards.r)) ||
	    afterwards.begun++ > 0)
		return;
	OK(evc_task_begin(afterwards.r, &afterwards.task, &late_class));
	ev_timer_start(loop, &afterwards.end);
}

START_TEST(a_task_that_begins_as_a_run_ends_is_waited_for)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(NULL);
	ev_check check;

	OK(evc_reactor_attach(c, "loop", loop, &afterwards.r));
	ev_check_init(&check, on_check);
	ev_set_priority(&check, EV_MINPRI);
	ev_check_start(loop, &check);
	ev_timer_init(&afterwards.end, on_end, 0.02, 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_reactor_run(afterwards.r));
	ck_assert_int_gt(afterwards.begun, 0);
	ck_assert_ptr_null(afterwards.task.reactor_);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("noticed", a_watched_raw_exit_stops_though_nobody_joins,
	 a_registered_end_stops_though_nobody_joins,
	 the_first_error_of_a_thread_started_in_a_closed_round_counts,
	 a_run_joins_a_thread_whose_destructors_take_time,
	 who_has_ended_since_a_late_join_keeps_no_clear_waiting,
	 S5_a_hook_that_outlives_its_round_stops_no_other,
	 a_hook_added_to_a_joined_round_is_waited_for,
	 a_join_notices_that_a_scripted_clock_has_jumped,
	 an_evented_join_finds_the_loop_of_its_thread,
	 a_task_that_begins_as_a_run_ends_is_waited_for)
