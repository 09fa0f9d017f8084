/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool: where a job works and where it is completed, what it is told,
 * what may be done in its done, its memory, its numbers, and who waits for it.
 */
#include "../../support/pool_util.h"

#include <malloc.h>

START_TEST(works_on_a_thread_of_the_pool_and_is_done_on_the_loop)
{
	struct thing t;

	pool_begin_n(2);
	submit_new(&t, work_now);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(atomic_load(&t.begun), 1);
	ck_assert_int_ne(t.worked_on, own_tid());
	ck_assert_int_eq(t.done_on, own_tid());
	ck_assert_int_eq(t.result, 0);
	pool_end();
}
END_TEST

START_TEST(what_work_returns_is_for_done_and_stops_nobody)
{
	static const evc_status codes[] = { 0, EVC_INTERNAL, EVC_CANCELLED,
					    EVC_OUT_OF_RANGE, 200, -5, 4711 };
	struct thing t;
	size_t i;

	pool_begin_n(1);
	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		thing_init(&t, work_now);
		t.gives = codes[i];
		submit(&t);
		TURN_UNTIL(atomic_load(&t.done));
		ck_assert_int_eq(t.result, codes[i]);
	}
	ck_assert(!evc_should_stop(coord));
	ck_assert(!evc_should_stop(evc_pool_scope(pool)));
	pool_end();
}
END_TEST

START_TEST(each_of_many_is_completed_once)
{
	enum { MANY = 20000 };
	struct thing *t = calloc(MANY, sizeof(*t));
	int i;

	ck_assert_ptr_nonnull(t);
	pool_begin_n(4);
	for (i = 0; i < MANY; i++) {
		thing_init(&t[i], work_now);
		t[i].gives = i % 17;
		submit(&t[i]);
	}
	TURN_UNTIL(atomic_load(&n_things_done) == MANY);
	for (i = 0; i < MANY; i++) {
		ck_assert_int_eq(atomic_load(&t[i].begun), 1);
		ck_assert_int_eq(atomic_load(&t[i].done), 1);
		ck_assert_int_eq(t[i].result, i % 17);
		ck_assert_int_eq(t[i].done_on, own_tid());
	}
	ck_assert_uint_eq(pool_info().n_done, MANY);
	pool_end();
	free(t);
}
END_TEST

static int again;

static void
submit_again(struct thing *t)
{
	if (again-- > 0)
		submit(t);
}

START_TEST(a_completion_may_submit_again)
{
	struct thing t;

	pool_begin_n(2);
	again = 1000;
	thing_init(&t, work_now);
	t.then = submit_again;
	submit(&t);
	TURN_UNTIL(atomic_load(&t.done) == 1001);
	ck_assert_int_eq(atomic_load(&t.begun), 1001);
	pool_end();
}
END_TEST

static void
free_it(struct thing *t)
{
	memset(t, 0xaa, sizeof(*t));
	free(t);
}

START_TEST(a_completion_may_free_the_job)
{
	struct thing *t;
	int i;

	pool_begin_n(3);
	for (i = 0; i < 300; i++) {
		t = malloc(sizeof(*t));
		ck_assert_ptr_nonnull(t);
		thing_init(t, work_now);
		t->then = free_it;
		submit(t);
	}
	TURN_UNTIL(atomic_load(&n_things_done) == 300);
	pool_end();
}
END_TEST

static void
free_pool(struct thing *t)
{
	t->gives = evc_pool_free(pool);
}

/* Its threads end while its port is still in use. */
START_TEST(the_last_completion_may_free_the_pool)
{
	struct thing t;

	pool_begin_n(2);
	thing_init(&t, work_now);
	t.then = free_pool;
	submit(&t);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.gives, 0);
	/* The task ends when done has returned. */
	ev_run(loop, EVRUN_NOWAIT);
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(without_done_nothing_is_called)
{
	struct thing t;

	pool_begin_n(1);
	thing_init(&t, work_now);
	t.job.done = NULL;
	submit(&t);
	TURN_UNTIL(pool_info().n_done == 1 && evc_pool_free(pool) == 0);
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_job_allocates_nothing)
{
	struct thing t;
	struct mallinfo2 before, after;

	if (t_under_asan() || t_under_tsan() || t_under_valgrind())
		T_SKIP("it counts what the C library's allocator hands out");
	pool_begin_n(1);
	again = 100;
	thing_init(&t, work_now);
	t.then = submit_again;
	submit(&t);
	TURN_UNTIL(atomic_load(&t.done) == 101);
	before = mallinfo2();
	again = 1000;
	submit(&t);
	TURN_UNTIL(atomic_load(&t.done) == 101 + 1001);
	after = mallinfo2();
	ck_assert_uint_eq(before.uordblks, after.uordblks);
	pool_end();
}
END_TEST

START_TEST(threads_are_started_when_there_is_work)
{
	struct thing a, b;

	pool_begin_n(2);
	ck_assert_uint_eq(pool_info().n_live, 0);
	submit_new(&a, work_stay);
	UNTIL(atomic_load(&a.begun));
	ck_assert_uint_eq(pool_info().n_live, 1);
	submit_new(&b, work_stay);
	UNTIL(atomic_load(&b.begun));
	ck_assert_uint_eq(pool_info().n_live, 2);
	atomic_store(&a.open, 1);
	atomic_store(&b.open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 2);
	pool_end();
}
END_TEST

START_TEST(there_are_n_threads_at_most)
{
	struct thing t[5];
	int i, n = t_count_threads();

	pool_begin_n(3);
	n = t_count_threads();
	for (i = 0; i < 5; i++)
		submit_new(&t[i], work_stay);
	UNTIL(pool_info().n_running == 3);
	t_sleep(0.02);
	ck_assert_uint_eq(pool_info().n_running, 3);
	ck_assert_uint_eq(pool_info().n_live, 3);
	ck_assert_int_eq(t_count_threads(), n + 3);
	for (i = 0; i < 5; i++)
		atomic_store(&t[i].open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 5);
	pool_end();
}
END_TEST

START_TEST(the_numbers_are_right)
{
	struct thing t[4];
	evc_pool_info i;
	int k;

	pool_begin_n(1);
	i = pool_info();
	ck_assert_uint_eq(i.n_threads, 1);
	ck_assert_uint_eq(i.n_submitted + i.n_queued + i.n_running + i.n_done +
				  i.n_cancelled + i.n_live + i.n_idle,
			  0);
	for (k = 0; k < 4; k++)
		submit_new(&t[k], work_stay);
	UNTIL(pool_info().n_running == 1);
	i = pool_info();
	ck_assert_uint_eq(i.n_submitted, 4);
	ck_assert_uint_eq(i.n_queued, 3);
	ck_assert_uint_eq(i.n_live, 1);
	ck_assert_uint_eq(i.n_idle, 0);
	OK(evc_job_cancel(&t[3].job));
	ck_assert_uint_eq(pool_info().n_cancelled, 1);
	ck_assert_uint_eq(pool_info().n_queued, 2);
	for (k = 0; k < 4; k++)
		atomic_store(&t[k].open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 4);
	UNTIL(pool_info().n_idle == 1);
	i = pool_info();
	ck_assert_uint_eq(i.n_done, 3);
	ck_assert_uint_eq(i.n_queued + i.n_running, 0);
	ck_assert_uint_eq(i.n_submitted, 4);
	pool_end();
}
END_TEST

/* However many are over, the loop's other watchers have their turn. */
START_TEST(so_many_are_completed_in_a_turn_at_most)
{
	enum { MANY = 5000 };
	struct thing *t = calloc(MANY, sizeof(*t));
	int i, turns = 0, before;

	ck_assert_ptr_nonnull(t);
	pool_begin_n(2);
	for (i = 0; i < MANY; i++)
		submit_new(&t[i], work_now);
	UNTIL(pool_info().n_done == MANY);
	while (atomic_load(&n_things_done) < MANY) {
		before = atomic_load(&n_things_done);
		ev_run(loop, EVRUN_NOWAIT);
		ck_assert_int_le(atomic_load(&n_things_done) - before, 1024);
		ck_assert_int_lt(turns++, 1000);
	}
	pool_end();
	free(t);
}
END_TEST

/* ---- who waits ---- */

START_TEST(a_pool_without_jobs_keeps_no_join_waiting)
{
	struct thing t;

	pool_begin_n(2);
	submit_new(&t, work_now);
	TURN_UNTIL(atomic_load(&t.done));
	UNTIL(pool_info().n_idle >= 1);
	/* The threads are background members: the join asks for the stop. */
	OK(evc_join(coord, NULL, NULL));
	ck_assert_uint_eq(pool_info().n_live, 0);
	pool_end();
}
END_TEST

static void *
open_later(void *arg)
{
	struct thing *t = arg;

	UNTIL(atomic_load(&t->begun));
	t_sleep(0.05);
	atomic_store(&t->open, 1);
	return NULL;
}

START_TEST(a_join_waits_for_a_job)
{
	struct thing t;
	pthread_t opener;

	pool_begin_n(1);
	submit_new(&t, work_stay);
	OK(pthread_create(&opener, NULL, open_later, &t));
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&t.done), 1);
	ck_assert_int_eq(t.result, 0);
	OK(pthread_join(opener, NULL));
	pool_end();
}
END_TEST

static void *
join_in_vain(void *arg)
{
	evc_join_opts brief = { .grace = 0.05 };

	(void)arg;
	OK(evc_request_stop(coord, 0, "stop"));
	ck_assert_int_eq(evc_join(coord, &brief, NULL), EVC_DEADLINE_EXCEEDED);
	return NULL;
}

/* A loop that does not turn: what is over is not completed. */
START_TEST(a_join_waits_until_done_was_called)
{
	struct thing t;
	pthread_t joiner;

	pool_begin_n(1);
	submit_new(&t, work_now);
	UNTIL(pool_info().n_done == 1);
	OK(pthread_create(&joiner, NULL, join_in_vain, NULL));
	OK(pthread_join(joiner, NULL));
	ck_assert_int_eq(atomic_load(&t.done), 0);
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&t.done), 1);
	pool_end();
}
END_TEST

START_TEST(no_memory_no_thread_and_no_descriptor_is_left)
{
	int fds, threads, round;
	struct thing t[50];
	int i;

	for (round = 0; round < 3; round++) {
		fds = t_count_fds();
		threads = t_count_threads();
		pool_begin_n(4);
		for (i = 0; i < 50; i++)
			submit_new(&t[i], work_now);
		TURN_UNTIL(atomic_load(&n_things_done) == 50);
		pool_end();
		ck_assert_int_eq(t_settle_threads(threads), threads);
		ck_assert_int_eq(t_settle_fds(fds), fds);
	}
}
END_TEST

API_MAIN("pool", works_on_a_thread_of_the_pool_and_is_done_on_the_loop,
	 what_work_returns_is_for_done_and_stops_nobody,
	 each_of_many_is_completed_once, a_completion_may_submit_again,
	 a_completion_may_free_the_job, the_last_completion_may_free_the_pool,
	 without_done_nothing_is_called, a_job_allocates_nothing,
	 threads_are_started_when_there_is_work, there_are_n_threads_at_most,
	 the_numbers_are_right, so_many_are_completed_in_a_turn_at_most,
	 a_pool_without_jobs_keeps_no_join_waiting,
	 a_join_waits_for_a_job, a_join_waits_until_done_was_called,
	 no_memory_no_thread_and_no_descriptor_is_left)
