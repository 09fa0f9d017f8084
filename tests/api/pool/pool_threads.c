/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of a job pool: nobody is stuck behind a blocked one, idle ones
 * cost nothing and end, resize, a job that ends its thread, no thread to be had.
 */
#include "../../support/pool_util.h"

/* Many are queued behind one that blocks: the other thread has to take what the
   first one has claimed. */
START_TEST(no_job_is_stuck_behind_a_blocked_one)
{
	enum { MANY = 500 };
	struct thing *t = calloc(MANY, sizeof(*t)), gate;
	int i, blocked = 0;

	ck_assert_ptr_nonnull(t);
	pool_begin_n(2);
	/* Both threads wait, and then find all of it at once. */
	submit_new(&gate, work_stay);
	UNTIL(atomic_load(&gate.begun));
	for (i = 0; i < MANY; i++) {
		thing_init(&t[i], i == 0 ? work_stay : work_now);
		submit(&t[i]);
	}
	atomic_store(&gate.open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == MANY);
	for (i = 0; i < MANY; i++)
		blocked += atomic_load(&t[i].done) == 0;
	ck_assert_int_eq(blocked, 1);
	atomic_store(&t[0].open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == MANY + 1);
	pool_end();
	free(t);
}
END_TEST

static atomic_int flood;

static void
flood_on(struct thing *t)
{
	if (atomic_load(&flood))
		submit(t);
}

static evc_status
work_a_little(evc_job *job)
{
	double until = t_now() + 0.00002;

	while (t_now() < until)
		;
	return work_now(job);
}

/* The same while the other thread never runs out of new work: what is stuck comes
   first, and not when the ring has gone round. */
START_TEST(nor_while_the_others_have_no_end_of_work)
{
	enum { MANY = 200, FLOOD = 2000, MOST = 30000 };
	struct thing *t = calloc(MANY, sizeof(*t));
	struct thing *f = calloc(FLOOD, sizeof(*f)), gate[2];
	int i, n;

	ck_assert_ptr_nonnull(t);
	ck_assert_ptr_nonnull(f);
	pool_begin_n(2);
	for (i = 0; i < 2; i++)
		submit_new(&gate[i], work_stay);
	UNTIL(atomic_load(&gate[0].begun) && atomic_load(&gate[1].begun));
	for (i = 0; i < MANY; i++) {
		thing_init(&t[i], i == 0 ? work_stay : work_now);
		submit(&t[i]);
	}
	atomic_store(&flood, 1);
	for (i = 0; i < FLOOD; i++) {
		thing_init(&f[i], work_a_little);
		f[i].then = flood_on;
		submit(&f[i]);
	}
	/* One thread claims a part of them and blocks in the first; the other
	   one comes later. */
	atomic_store(&gate[0].open, 1);
	UNTIL(atomic_load(&t[0].begun));
	atomic_store(&gate[1].open, 1);
	do {
		ev_run(loop, EVRUN_NOWAIT);
		for (i = n = 0; i < MANY; i++)
			n += atomic_load(&t[i].done);
		ck_assert_int_lt(atomic_load(&n_things_done), MOST);
	} while (n < MANY - 1);
	atomic_store(&flood, 0);
	atomic_store(&t[0].open, 1);
	TURN_UNTIL(evc_pool_free(pool) == 0);
	ck_assert_int_eq(atomic_load(&t[0].done), 1);
	OK(evc_free(coord));
	ev_loop_destroy(loop);
	free(t);
	free(f);
}
END_TEST

static int
pool_tid(void)
{
	struct thing t;

	submit_new(&t, work_now);
	TURN_UNTIL(atomic_load(&t.done));
	return t.worked_on;
}

START_TEST(an_idle_thread_wakes_up_for_nothing)
{
	long before;
	int tid;

	if (t_under_tsan())
		T_SKIP("its own thread wakes up, too");
	pool_begin_n(1);
	tid = pool_tid();
	UNTIL(pool_info().n_idle == 1);
	until_asleep(tid);
	before = task_sleeps(tid);
	t_sleep(0.5);
	ck_assert_int_eq(task_sleeps(tid), before);
	pool_end();
}
END_TEST

START_TEST(an_idle_thread_ends_after_its_time)
{
	evc_pool_opts o = { .n_threads = 3, .idle = 0.05 };
	struct thing t[3];
	int i, round;

	pool_begin(&o);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3; i++)
			submit_new(&t[i], work_stay);
		UNTIL(pool_info().n_running == 3);
		for (i = 0; i < 3; i++)
			atomic_store(&t[i].open, 1);
		TURN_UNTIL(atomic_load(&n_things_done) == 3 * (round + 1));
		UNTIL(pool_info().n_live == 0);
	}
	pool_end();
}
END_TEST

/* Ends and submits again and again at the same time. */
START_TEST(a_thread_that_ends_loses_no_job)
{
	evc_pool_opts o = { .n_threads = 2, .idle = 0.0002 };
	struct thing t;
	int i;

	pool_begin(&o);
	for (i = 0; i < 500; i++) {
		submit_new(&t, work_now);
		TURN_UNTIL(atomic_load(&t.done));
		t_sleep(0.00002 * (i % 20));
	}
	pool_end();
}
END_TEST

START_TEST(resize_up_starts_more_when_there_is_work)
{
	struct thing t[4];
	int i;

	pool_begin_n(1);
	for (i = 0; i < 4; i++)
		submit_new(&t[i], work_stay);
	UNTIL(pool_info().n_running == 1);
	OK(evc_pool_resize(pool, 3));
	ck_assert_uint_eq(pool_info().n_threads, 3);
	UNTIL(pool_info().n_running == 3);
	ck_assert_uint_eq(pool_info().n_queued, 1);
	for (i = 0; i < 4; i++)
		atomic_store(&t[i].open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 4);
	pool_end();
}
END_TEST

START_TEST(resize_down_ends_those_that_sleep)
{
	struct thing t[4];
	int i;

	pool_begin_n(4);
	for (i = 0; i < 4; i++)
		submit_new(&t[i], work_stay);
	UNTIL(pool_info().n_running == 4);
	for (i = 0; i < 4; i++)
		atomic_store(&t[i].open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 4);
	UNTIL(pool_info().n_idle == 4);
	OK(evc_pool_resize(pool, 1));
	UNTIL(pool_info().n_live == 1);
	submit_new(&t[0], work_now);
	TURN_UNTIL(atomic_load(&t[0].done));
	t_sleep(0.02);
	ck_assert_uint_eq(pool_info().n_live, 1);
	pool_end();
}
END_TEST

/* And what it has claimed goes to the others. */
START_TEST(resize_down_ends_a_busy_one_after_its_job)
{
	struct thing t[2], more[100];
	int i;

	pool_begin_n(2);
	for (i = 0; i < 2; i++)
		submit_new(&t[i], work_stay);
	UNTIL(pool_info().n_running == 2);
	for (i = 0; i < 100; i++)
		submit_new(&more[i], work_now);
	OK(evc_pool_resize(pool, 1));
	t_sleep(0.02);
	ck_assert_uint_eq(pool_info().n_live, 2);
	/* Though there is more to do. */
	atomic_store(&t[0].open, 1);
	UNTIL(pool_info().n_live == 1);
	ck_assert_uint_eq(pool_info().n_queued, 100);
	atomic_store(&t[1].open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 102);
	UNTIL(pool_info().n_live == 1);
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(atomic_load(&more[i].done), 1);
	pool_end();
}
END_TEST

/* ---- a job that ends its thread ---- */

static evc_status
leave_by_exit(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	atomic_fetch_add(&t->begun, 1);
	pthread_exit(NULL);
}

static evc_status
leave_by_cancel(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	atomic_fetch_add(&t->begun, 1);
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return 0;
}

START_TEST(a_job_that_ends_its_thread_is_aborted_and_another_takes_over)
{
	struct thing t[20];
	int i;

	pool_begin_n(1);
	for (i = 0; i < 20; i++)
		submit_new(&t[i], i % 4 == 1 ? leave_by_exit :
				  i % 4 == 3 ? leave_by_cancel :
					       work_now);
	TURN_UNTIL(atomic_load(&n_things_done) == 20);
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(t[i].result, i % 2 ? EVC_ABORTED : 0);
		ck_assert_int_eq(atomic_load(&t[i].begun), 1);
		ck_assert_int_eq(atomic_load(&t[i].done), 1);
	}
	/* It stops nobody. */
	ck_assert(!evc_should_stop(coord));
	ck_assert(!evc_should_stop(evc_pool_scope(pool)));
	ck_assert_uint_le(pool_info().n_live, 1);
	ck_assert_uint_eq(pool_info().n_running, 0);
	OK(evc_join(coord, NULL, NULL));
	pool_end();
}
END_TEST

START_TEST(a_job_may_end_its_thread_at_a_stop)
{
	struct thing t;

	pool_begin_n(1);
	submit_new(&t, leave_by_exit);
	OK(evc_request_stop(coord, 0, "enough"));
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&t.done), 1);
	pool_end();
}
END_TEST

API_MAIN("pool_threads", no_job_is_stuck_behind_a_blocked_one,
	 nor_while_the_others_have_no_end_of_work,
	 an_idle_thread_wakes_up_for_nothing,
	 an_idle_thread_ends_after_its_time, a_thread_that_ends_loses_no_job,
	 resize_up_starts_more_when_there_is_work,
	 resize_down_ends_those_that_sleep,
	 resize_down_ends_a_busy_one_after_its_job,
	 a_job_that_ends_its_thread_is_aborted_and_another_takes_over,
	 a_job_may_end_its_thread_at_a_stop)
