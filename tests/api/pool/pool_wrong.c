/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool used wrongly: clear answers, and nothing changes.
 */
#include "../../support/pool_util.h"

#include <sys/wait.h>

START_TEST(options_that_make_no_sense)
{
	static const evc_pool_opts wrong[] = {
		{ .n_threads = 1025 },
		{ .capacity = (1u << 24) + 1 },
		{ .idle = -1 },
		{ .idle = NAN },
		{ .flags = 2 },
		{ .stack = 1 },
		{ .thread_flags = EVC_AFTER_STOP },
		{ .thread_flags = EVC_KICK | EVC_BACKGROUND },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } },
	};
	evc_coord *c = new_coord(NULL);
	evc_pool *p = NULL;
	char name[49];
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_pool_new(c, NULL, &wrong[i], &p));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_new(NULL, NULL, NULL, &p));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_new(c, NULL, NULL, NULL));
	memset(name, 'n', 48);
	name[48] = '\0';
	ck_assert_ptr_null(p);
	OK(evc_pool_new(c, name, NULL, &p)); /* the name is cut */
	OK(evc_pool_free(p));
	OK(evc_pool_free(NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(by_default_there_is_a_thread_for_each_cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	pool_begin(NULL);
	ck_assert_int_eq((int)pool_info().n_threads, CPU_COUNT(&set));
	pool_end();
}
END_TEST

START_TEST(the_name_is_that_of_the_scope_and_of_the_threads)
{
	static const char long_name[] =
		"a name of forty-seven bytes, which is the most,";
	char said[128];
	struct thing t;
	evc_pool *p;

	pool_begin_n(1);
	ck_assert_ptr_eq(evc_scope_parent(evc_pool_scope(pool)), coord);
	ck_assert_ptr_null(evc_pool_scope(NULL));
	ck_assert_uint_eq(strlen(long_name), 47);
	OK(evc_pool_new(coord, long_name, NULL, &p));
	thing_init(&t, work_now);
	OK(evc_pool_submit(p, evc_home(coord), &t.job));
	TURN_UNTIL(atomic_load(&t.done));
	task_line(t.worked_on, "Name:", said, sizeof(said));
	HAS(said, "a name of forty");
	OK(evc_pool_free(p));
	submit_new(&t, work_now);
	TURN_UNTIL(atomic_load(&t.done));
	task_line(t.worked_on, "Name:", said, sizeof(said));
	HAS(said, "pool/0");
	pool_end();
}
END_TEST

START_TEST(a_submit_that_makes_no_sense)
{
	struct thing t;

	pool_begin_n(1);
	thing_init(&t, work_now);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_pool_submit(NULL, evc_home(coord), &t.job));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_submit(pool, NULL, &t.job));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_pool_submit(pool, evc_home(coord), NULL));
	t.job.work = NULL;
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_pool_submit(pool, evc_home(coord), &t.job));
	thing_init(&t, work_now);
	ck_assert(!evc_job_should_stop(NULL));
	ck_assert(!evc_job_should_stop(&t.job));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_get(NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_get(pool, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_resize(pool, 0));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_resize(pool, 1025));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_resize(NULL, 1));
	ck_assert_uint_eq(pool_info().n_threads, 1);
	/* And then it is as if nothing had been. */
	submit(&t);
	TURN_UNTIL(atomic_load(&t.done));
	pool_end();
}
END_TEST

START_TEST(the_same_job_twice)
{
	struct thing first, t, u;

	pool_begin_n(1);
	submit_new(&first, work_stay);
	UNTIL(atomic_load(&first.begun));
	submit_new(&t, work_now);
	thing_init(&u, work_now);
	OK(submit_from_afar(&u));
	/* Queued, running, over: by the loop, by others. */
	REFUSED(EVC_ALREADY_EXISTS,
		evc_pool_submit(pool, evc_home(coord), &t.job));
	REFUSED(EVC_ALREADY_EXISTS,
		evc_pool_submit(pool, evc_home(coord), &u.job));
	REFUSED(EVC_ALREADY_EXISTS,
		evc_pool_submit(pool, evc_home(coord), &first.job));
	ck_assert_int_eq(submit_from_afar(&t), -EVC_ALREADY_EXISTS);
	ck_assert_int_eq(submit_from_afar(&u), -EVC_ALREADY_EXISTS);
	ck_assert_int_eq(submit_from_afar(&first), -EVC_ALREADY_EXISTS);
	atomic_store(&first.open, 1);
	UNTIL(pool_info().n_done == 3);
	REFUSED(EVC_ALREADY_EXISTS,
		evc_pool_submit(pool, evc_home(coord), &t.job));
	TURN_UNTIL(atomic_load(&n_things_done) == 3);
	ck_assert_int_eq(atomic_load(&t.begun), 1);
	ck_assert_int_eq(atomic_load(&u.begun), 1);
	pool_end();
}
END_TEST

static evc_status
free_in_work(evc_job *job)
{
	(void)job;
	return -evc_pool_free(pool);
}

START_TEST(free_while_there_are_jobs)
{
	struct thing t, u;

	pool_begin_n(1);
	submit_new(&t, work_stay);
	UNTIL(atomic_load(&t.begun));
	REFUSED(EVC_FAILED_PRECONDITION, evc_pool_free(pool));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(coord));
	atomic_store(&t.open, 1);
	UNTIL(pool_info().n_done == 1);
	/* Over, but not completed. */
	REFUSED(EVC_FAILED_PRECONDITION, evc_pool_free(pool));
	TURN_UNTIL(atomic_load(&t.done));
	submit_new(&u, free_in_work);
	TURN_UNTIL(atomic_load(&u.done));
	ck_assert_int_eq(u.result, EVC_FAILED_PRECONDITION);
	/* Nothing has changed. */
	submit_new(&t, work_now);
	TURN_UNTIL(atomic_load(&t.done));
	/* A coordinator with a pool is not freed. */
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(coord));
	pool_end();
}
END_TEST

START_TEST(in_a_fork_child)
{
	struct thing t, u;
	evc_pool_info i;
	int status;
	pid_t pid;

	pool_begin_n(1);
	submit_new(&t, work_stay);
	UNTIL(atomic_load(&t.begun));
	submit_new(&u, work_now);
	pid = fork();
	if (pid == 0) {
		struct thing v;

		thing_init(&v, work_now);
		CHILD_REFUSED(evc_pool_submit(pool, evc_home(coord), &v.job));
		CHILD_REFUSED(evc_pool_submit_wait(pool, evc_home(coord),
						   &v.job, 1));
		CHILD_REFUSED(evc_job_cancel(&u.job));
		CHILD_REFUSED(evc_pool_resize(pool, 2));
		CHILD_REFUSED(evc_pool_get(pool, &i));
		CHILD_REFUSED(evc_pool_free(pool));
		CHILD(!evc_job_should_stop(&t.job));
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	atomic_store(&t.open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 2);
	ck_assert_int_eq(u.result, 0);
	pool_end();
}
END_TEST

API_MAIN("pool_wrong", options_that_make_no_sense,
	 by_default_there_is_a_thread_for_each_cpu,
	 the_name_is_that_of_the_scope_and_of_the_threads,
	 a_submit_that_makes_no_sense, the_same_job_twice,
	 free_while_there_are_jobs, in_a_fork_child)
