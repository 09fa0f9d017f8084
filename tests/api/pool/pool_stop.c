/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool: cancel, stop with and without EVC_POOL_FINISH, rounds.
 */
#include "../../support/pool_util.h"

/* ---- cancel ---- */

START_TEST(one_that_has_not_begun_does_not_begin)
{
	struct thing first, t;
	int n;

	pool_begin_n(1);
	submit_new(&first, work_stay);
	UNTIL(atomic_load(&first.begun));
	submit_new(&t, work_now);
	OK(evc_job_cancel(&t.job));
	/* Not in the call, but in the loop's next turn. */
	ck_assert_int_eq(atomic_load(&t.done), 0);
	for (n = 0; n < 3 && !atomic_load(&t.done); n++)
		ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	ck_assert_int_eq(t.result, EVC_CANCELLED);
	ck_assert_int_eq(t.done_on, own_tid());
	REFUSED(EVC_NOT_FOUND, evc_job_cancel(&t.job));
	atomic_store(&first.open, 1);
	TURN_UNTIL(atomic_load(&first.done));
	ck_assert_int_eq(atomic_load(&t.begun), 0);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	pool_end();
}
END_TEST

/* Until it is told to end, and then until it is let go. */
static evc_status
be_told_and_stay(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	(void)work_until_told(job);
	while (!atomic_load(&t->open))
		t_sleep(0.0005);
	return t->gives;
}

START_TEST(one_that_has_begun_is_told)
{
	struct thing t;

	pool_begin_n(1);
	thing_init(&t, be_told_and_stay);
	t.gives = EVC_DATA_LOSS;
	submit(&t);
	UNTIL(atomic_load(&t.begun));
	ck_assert(!evc_job_should_stop(&t.job));
	OK(evc_job_cancel(&t.job));
	OK(evc_job_cancel(&t.job));
	/* Also when it has heard of it. */
	UNTIL(atomic_load(&t.told));
	OK(evc_job_cancel(&t.job));
	atomic_store(&t.open, 1);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert(atomic_load(&t.told));
	ck_assert_int_eq(t.result, EVC_DATA_LOSS);
	/* And not the next time. */
	t.job.work = work_stay;
	atomic_store(&t.begun, 0);
	atomic_store(&t.open, 0);
	submit(&t);
	UNTIL(atomic_load(&t.begun));
	ck_assert(!evc_job_should_stop(&t.job));
	atomic_store(&t.open, 1);
	TURN_UNTIL(atomic_load(&t.done) == 2);
	pool_end();
}
END_TEST

START_TEST(one_that_is_over_is_not_found)
{
	struct thing t;

	pool_begin_n(1);
	thing_init(&t, work_now);
	REFUSED(EVC_NOT_FOUND, evc_job_cancel(&t.job));
	REFUSED(EVC_INVALID_ARGUMENT, evc_job_cancel(NULL));
	submit(&t);
	UNTIL(pool_info().n_done == 1);
	/* Over, but not yet completed: a moment passes in between. */
	UNTIL(evc_job_cancel(&t.job) == -EVC_NOT_FOUND);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, 0);
	REFUSED(EVC_NOT_FOUND, evc_job_cancel(&t.job));
	pool_end();
}
END_TEST

static void *
cancel_it(void *arg)
{
	struct thing *t = arg;

	t->gives = evc_job_cancel(&t->job);
	return NULL;
}

START_TEST(cancelled_by_another_thread_it_is_done_on_the_loop)
{
	struct thing first, t;
	pthread_t other;

	pool_begin_n(1);
	submit_new(&first, work_stay);
	UNTIL(atomic_load(&first.begun));
	thing_init(&t, work_now);
	OK(submit_from_afar(&t));
	OK(pthread_create(&other, NULL, cancel_it, &t));
	OK(pthread_join(other, NULL));
	ck_assert_int_eq(t.gives, 0);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, EVC_CANCELLED);
	ck_assert_int_eq(t.done_on, own_tid());
	atomic_store(&first.open, 1);
	TURN_UNTIL(atomic_load(&first.done));
	pool_end();
}
END_TEST

/* ---- stop ---- */

static void
stop_with_some_queued(evc_coord *whose)
{
	struct thing running, t[100];
	int i;

	submit_new(&running, work_until_told);
	UNTIL(atomic_load(&running.begun));
	for (i = 0; i < 100; i++) {
		thing_init(&t[i], work_now);
		if (i % 2)
			submit(&t[i]);
		else
			OK(submit_from_afar(&t[i]));
	}
	OK(evc_request_stop(whose, 0, "enough"));
	TURN_UNTIL(atomic_load(&n_things_done) == 101);
	ck_assert_int_eq(running.result, 0);
	ck_assert(atomic_load(&running.told));
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(t[i].result, EVC_CANCELLED);
		ck_assert_int_eq(atomic_load(&t[i].begun), 0);
		ck_assert_int_eq(atomic_load(&t[i].done), 1);
	}
	ck_assert_uint_eq(pool_info().n_cancelled, 100);
}

START_TEST(at_a_stop_what_has_not_begun_is_cancelled)
{
	pool_begin_n(1);
	stop_with_some_queued(coord);
	OK(evc_join(coord, NULL, NULL));
	pool_end();
}
END_TEST

START_TEST(a_stop_of_the_pool_alone_does_the_same)
{
	pool_begin_n(1);
	stop_with_some_queued(evc_pool_scope(pool));
	ck_assert(!evc_should_stop(coord));
	pool_end();
}
END_TEST

/* The thread is blocked, so nobody else completes them. */
START_TEST(at_a_stop_nothing_waits_for_a_blocked_thread)
{
	struct thing blocked, t;

	pool_begin_n(1);
	submit_new(&blocked, work_stay);
	UNTIL(atomic_load(&blocked.begun));
	submit_new(&t, work_now);
	OK(evc_request_stop(coord, 0, "enough"));
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&blocked.done), 0);
	ck_assert(evc_job_should_stop(&blocked.job));
	atomic_store(&blocked.open, 1);
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(blocked.result, 0);
	pool_end();
}
END_TEST

START_TEST(with_FINISH_what_is_queued_runs_to_its_end)
{
	evc_pool_opts o = { .n_threads = 1, .flags = EVC_POOL_FINISH };
	struct thing first, t[200];
	atomic_int heard = 0;
	int i;

	pool_begin(&o);
	OK(evc_on_stop(evc_pool_scope(pool), "after the pool's own",
		       count_hook, &heard, NULL, NULL));
	submit_new(&first, work_stay);
	UNTIL(atomic_load(&first.begun));
	for (i = 0; i < 200; i++) {
		thing_init(&t[i], work_now);
		if (i % 2)
			submit(&t[i]);
		else
			OK(submit_from_afar(&t[i]));
	}
	OK(evc_request_stop(coord, 0, "enough"));
	UNTIL(atomic_load(&heard) == 1);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert(!evc_job_should_stop(&first.job));
	atomic_store(&first.open, 1);
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&n_things_done), 201);
	for (i = 0; i < 200; i++) {
		ck_assert_int_eq(t[i].result, 0);
		ck_assert_int_eq(atomic_load(&t[i].begun), 1);
	}
	pool_end();
}
END_TEST

START_TEST(after_the_stop_nothing_is_accepted)
{
	evc_pool_opts o = { .n_threads = 1 };
	struct thing t;
	int i;

	for (i = 0; i < 4; i++) {
		o.flags = i & 1 ? EVC_POOL_FINISH : 0;
		pool_begin(&o);
		OK(evc_request_stop(i & 2 ? coord : evc_pool_scope(pool), 0,
				    "enough"));
		thing_init(&t, work_now);
		REFUSED(EVC_CANCELLED, evc_pool_submit(pool, evc_home(coord),
						       &t.job));
		ck_assert_int_eq(submit_from_afar(&t), -EVC_CANCELLED);
		OK(evc_join(coord, NULL, NULL));
		ck_assert_int_eq(atomic_load(&t.begun), 0);
		ck_assert_int_eq(atomic_load(&t.done), 0);
		pool_end();
	}
}
END_TEST

START_TEST(a_pool_cannot_be_made_after_the_stop)
{
	evc_coord *c = new_coord(NULL);
	evc_pool *none = NULL;

	OK(evc_request_stop(c, 0, "enough"));
	REFUSED(EVC_CANCELLED, evc_pool_new(c, NULL, NULL, &none));
	ck_assert_ptr_null(none);
	OK(evc_free(c));
}
END_TEST

static void
try_again(struct thing *t)
{
	t->gives = evc_pool_submit(pool, evc_home(coord), &t->job);
}

START_TEST(a_completion_that_submits_again_at_a_stop_is_refused)
{
	evc_pool_opts o = { .n_threads = 1, .flags = EVC_POOL_FINISH };
	struct thing t;

	pool_begin(&o);
	thing_init(&t, work_stay);
	t.then = try_again;
	submit(&t);
	UNTIL(atomic_load(&t.begun));
	OK(evc_request_stop(coord, 0, "enough"));
	atomic_store(&t.open, 1);
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(t.gives, -EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	pool_end();
}
END_TEST

/* The whole of it, again and again. */
START_TEST(after_clear_stop_it_can_be_used_again)
{
	struct thing t;
	int round;

	pool_begin_n(2);
	for (round = 0; round < 20; round++) {
		submit_new(&t, work_now);
		TURN_UNTIL(atomic_load(&t.done));
		ck_assert_int_eq(t.result, 0);
		OK(evc_request_stop(coord, 0, "enough"));
		OK(evc_join(coord, NULL, NULL));
		thing_init(&t, work_now);
		REFUSED(EVC_CANCELLED, evc_pool_submit(pool, evc_home(coord),
						       &t.job));
		OK(evc_clear_stop(coord));
	}
	pool_end();
}
END_TEST

START_TEST(after_its_own_stop_was_cleared_it_can_be_used_again)
{
	evc_coord *scope;
	struct thing t;
	int round;

	pool_begin_n(2);
	scope = evc_pool_scope(pool);
	for (round = 0; round < 20; round++) {
		submit_new(&t, work_now);
		OK(evc_request_stop(scope, 0, "enough"));
		TURN_UNTIL(atomic_load(&t.done));
		OK(evc_join(scope, NULL, NULL));
		OK(evc_clear_stop(scope));
	}
	submit_new(&t, work_now);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, 0);
	pool_end();
}
END_TEST

static evc_status
sleep_in_vain(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	atomic_store(&t->begun, 1);
	while (!evc_job_should_stop(job))
		sleep(3 * (unsigned)T_LIMIT);
	return 0;
}

START_TEST(with_EVC_KICK_what_a_job_sleeps_in_is_interrupted)
{
	evc_pool_opts o = { .n_threads = 1, .thread_flags = EVC_KICK };
	struct thing t;
	double start;

	pool_begin(&o);
	submit_new(&t, sleep_in_vain);
	UNTIL(atomic_load(&t.begun));
	start = t_now();
	OK(evc_request_stop(coord, 0, "enough"));
	OK(evc_join(coord, NULL, NULL));
	ck_assert(t_now() - start < T_LIMIT);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	pool_end();
}
END_TEST

/* A thread that does not come back is named, with its job. */
START_TEST(a_late_thread_is_named)
{
	evc_join_opts brief = { .grace = 0.1 };
	struct thing t;
	evc_verdict v;

	pool_begin_n(1);
	submit_new(&t, work_stay);
	UNTIL(atomic_load(&t.begun));
	OK(evc_request_stop(coord, 0, "enough"));
	ck_assert_int_eq(evc_join(coord, &brief, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, "pool/0");
	HAS(v.error.text, "jobs of a pool");
	atomic_store(&t.open, 1);
	OK(evc_join(coord, NULL, NULL));
	pool_end();
}
END_TEST

static evc_status
stay_until_open(evc_coord *c, void *open)
{
	(void)c;
	while (!atomic_load((atomic_int *)open))
		t_sleep(0.0005);
	return 0;
}

START_TEST(a_free_ends_with_the_stop)
{
	evc_escalation_opts o = { .budget = 0.2 };
	atomic_int open = 0;

	pool_begin_n(1);
	OK(evc_escalation_set(coord, &o));
	OK(evc_thread_start(evc_pool_scope(pool), "stays", stay_until_open,
			    &open, NULL, NULL));
	OK(evc_request_stop(coord, 0, "enough"));
	REFUSED(EVC_DEADLINE_EXCEEDED, evc_pool_free(pool));
	HAS(evc_last_error(), "still running: ");
	HAS(evc_last_error(), "stays");
	atomic_store(&open, 1);
	UNTIL(evc_all_stopped(coord));
	pool_end();
}
END_TEST

API_MAIN("pool_stop", one_that_has_not_begun_does_not_begin,
	 one_that_has_begun_is_told, one_that_is_over_is_not_found,
	 cancelled_by_another_thread_it_is_done_on_the_loop,
	 at_a_stop_what_has_not_begun_is_cancelled,
	 a_stop_of_the_pool_alone_does_the_same,
	 at_a_stop_nothing_waits_for_a_blocked_thread,
	 with_FINISH_what_is_queued_runs_to_its_end,
	 after_the_stop_nothing_is_accepted,
	 a_pool_cannot_be_made_after_the_stop,
	 a_completion_that_submits_again_at_a_stop_is_refused,
	 after_clear_stop_it_can_be_used_again,
	 after_its_own_stop_was_cleared_it_can_be_used_again,
	 with_EVC_KICK_what_a_job_sleeps_in_is_interrupted,
	 a_late_thread_is_named, a_free_ends_with_the_stop)
