/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool, stepped: what comes late.  A resize that meets a thread which
 * comes or looks, a cancel that meets the end of its job or of its pool, a job
 * whose thread has just ended, a job whose loop is stopped, a wait for a thread
 * that cannot be had.
 */
#include "pool_steps.h"

/* ---- fewer threads ---- */

/* A thread has seen that there are not too many, and is about to say so; then
   there are.  Fails when it takes the mark away and does not look once more:
   the resize is forgotten. */
START_TEST(a_resize_is_heard_by_who_has_just_looked)
{
	struct thing t, u;
	int h;

	begin(2, 0);
	OK(put(&t, work_stay));
	OK(put(&u, work_stay));
	UNTIL(atomic_load(&t.begun) && atomic_load(&u.begun));
	/* This sets the mark, and two are not too many. */
	OK(evc_pool_resize(pool, 3));
	h = seam_hold("store", "evc__crowd_shrink", 1);
	let_end(&t);
	HELD(h);
	OK(evc_pool_resize(pool, 1));
	seam_release(h);
	let_end(&u);
	UNTIL(atomic_load(&t.done) && atomic_load(&u.done));
	UNTIL(pool_info().n_live == 1);
	end();
}
END_TEST

/* It was started, and is not counted yet: so the other one finds that one is
   not too many, and takes the mark away.  Fails when the second one does not
   look how many there may be after it has counted itself. */
START_TEST(a_resize_is_heard_by_who_is_on_its_way)
{
	struct thing t, u;
	int h, in;

	begin(2, 0);
	put_busy(&t);
	h = put_held(&u, work_stay, "load", "evc__crowd_enter", 1);
	OK(evc_pool_resize(pool, 1));
	let_end(&t);
	/* By the first thread, which has looked at the mark before. */
	UNTIL(atomic_load(&u.begun));
	in = seam_hold("load", "serve_jobs", 1);
	seam_release(h);
	HELD(in);
	ck_assert_uint_eq(pool_info().n_live, 2);
	seam_release(in);
	let_end(&u);
	UNTIL(atomic_load(&t.done) && atomic_load(&u.done));
	UNTIL(pool_info().n_live == 1);
	end();
}
END_TEST

/* ---- a cancel ---- */

/* The job runs when it is cancelled, and is completed before it is told.
   Fails when it is told all the same: the word of a job that is in no pool is
   not zero then, and it can never be submitted again. */
START_TEST(a_cancel_leaves_a_job_alone_that_is_over_meanwhile)
{
	struct actor a;
	struct thing t;
	int h;

	begin(1, 0);
	put_busy(&t);
	h = actor_held(&a, do_cancel, NULL, &t, "cas", "evc_job_cancel", 1);
	let_end(&t);
	UNTIL(atomic_load(&t.done) == 1);
	ck_assert_int_eq(actor_go(&a, h), -EVC_NOT_FOUND);
	OK(evc_pool_submit(pool, r, &t.job));
	UNTIL(atomic_load(&t.done) == 2);
	ck_assert_int_eq(t.result, 0);
	end();
}
END_TEST

static atomic_int freed;

static void
free_pool(struct thing *t)
{
	(void)t;
	atomic_store(&freed, evc_pool_free(pool) == 0 ? 1 : -1);
}

/* Who cancels has put the job where the loop finds it, and is about to ring the
   loop; another job rings it first, and the done of the cancelled one, the
   last, frees the pool.  Fails (by a crash, or under a checker of memory) when
   who cancels has no reference of his own while he rings. */
START_TEST(a_pool_may_be_freed_while_a_cancel_is_on_its_way)
{
	struct thing t, u;
	struct actor a;
	int h;

	begin(1, 0);
	put_busy(&t);
	OK(put(&u, work_now));
	u.then = free_pool;
	h = actor_held(&a, do_cancel, NULL, &u, "xchg", "evc__port_ring", 1);
	let_end(&t);
	UNTIL(atomic_load(&freed) != 0);
	ck_assert_int_eq(atomic_load(&freed), 1);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	ck_assert_int_eq(u.result, EVC_CANCELLED);
	OK(actor_go(&a, h));
	end_loop();
	OK(evc_free(coord));
}
END_TEST

/* The loop is the test's own.  A thread has put its job where the loop finds it
   and is about to ring; another one rings, the loop completes both.  Fails when
   who comes late posts a message: no job is left that it could be for, and the
   coordinator cannot be freed. */
START_TEST(who_rings_too_late_leaves_no_post_behind)
{
	struct thing t, u;
	int h;

	pool_begin_n(2);
	h = seam_hold("load", "evc__port_ring", 1);
	submit_new(&t, work_now);
	HELD(h);
	submit_new(&u, work_now);
	TURN_UNTIL(atomic_load(&t.done) && atomic_load(&u.done));
	seam_release(h);
	pool_end();
}
END_TEST

/* ---- no thread ---- */

/* The only thread has been idle for long enough and ends; the job came after
   its last look, and no other thread can be had, as the one that ends finds out
   before the submitter looks at the crowd.  Fails when who ends last does not
   look what it leaves behind: the job would stay in its ring for ever. */
START_TEST(a_job_that_its_only_thread_has_not_seen_is_completed)
{
	struct thing first, t;
	struct actor a;
	int h, s;

	begin(1, 0.001);
	h = put_held(&first, work_now, "cas", "get_up", 1);
	UNTIL(atomic_load(&first.done));
	seam_fail_all("thread_create", "create_thread", 1, EAGAIN);
	s = actor_held(&a, do_submit, NULL, &t, "load", "evc__crowd_call", 1);
	seam_release(h);
	UNTIL(pool_info().n_live == 0 && pool_info().n_queued == 0);
	OK(actor_go(&a, s));
	over_unbegun(&t);
	/* As soon as there are threads again it goes on. */
	seam_reset();
	OK(put(&t, work_now));
	over(&t, 0);
	end();
}
END_TEST

/* Fails when a refusal for want of a thread is taken for want of room: there is
   room, so that nothing is worth waiting for, and it would turn for ever. */
START_TEST(a_wait_for_room_is_no_wait_for_a_thread)
{
	struct actor a;
	struct thing t;

	begin(1, 0);
	seam_fail_all("thread_create", "create_thread", 1, EAGAIN);
	actor_begin(&a, do_submit_wait, NULL, &t);
	ck_assert_int_eq(actor_end(&a), -EVC_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(pool_info().n_queued, 0);
	ck_assert_int_eq(atomic_load(&t.done), 0);
	seam_reset();
	OK(evc_pool_submit(pool, r, &t.job));
	over(&t, 0);
	end();
}
END_TEST

/* ---- a stop ---- */

/* The loop of another coordinator submits its first job; it has seen that there
   is no stop, and then there is one, of which a task that begins now is not
   told.  Fails when nobody looks after the task has begun: the job is accepted,
   and never told to end. */
START_TEST(a_first_job_that_a_stop_of_its_loop_overtakes_is_refused)
{
	evc_coord *other = new_coord(NULL);
	evc_reactor *there;
	struct own o;
	int h;

	begin(1, 0);
	OK(evc_reactor_start(other, "there", NULL, NULL, NULL, &there));
	h = seam_hold("lock", "submit_job", 1);
	own_begin(&o, there, work_until_told);
	HELD(h);
	OK(evc_request_stop(other, 0, "enough"));
	ck_assert(evc_should_stop(other));
	seam_release(h);
	ck_assert_int_eq(own_end(&o), -EVC_CANCELLED);
	OK(evc_join(other, NULL, NULL));
	ck_assert_int_eq(atomic_load(&o.t.begun), 0);
	ck_assert_int_eq(atomic_load(&o.t.done), 0);
	end();
	OK(evc_free(other));
}
END_TEST

/* ---- what is claimed ---- */

/* One thread has claimed several jobs and stays in the first; another one is
   about to sleep, and looks whether somebody has claimed what is not begun.  It
   is so from the first job on to the last.  Fails when it is so for the first
   ones alone. */
START_TEST(who_is_about_to_sleep_finds_what_is_claimed)
{
	static struct thing many[100], t[8], two[2];
	int h, i;

	begin(2, 0);
	for (i = 0; i < 2; i++)
		put_busy(&two[i]);
	for (i = 0; i < 100; i++)
		OK(put(&many[i], work_now));
	/* The first of them that comes so far. */
	h = seam_hold("add", "evc__crowd_sleep", 1);
	let_end(&two[0]);
	HELD(h);
	thing_init(&t[0], work_stay);
	OK(evc_pool_submit(pool, r, &t[0].job));
	for (i = 1; i < 8; i++)
		OK(put(&t[i], work_now));
	let_end(&two[1]);
	UNTIL(atomic_load(&t[0].begun));
	seam_release(h);
	for (i = 1; i < 8; i++)
		over(&t[i], 0);
	let_end(&t[0]);
	over(&t[0], 0);
	for (i = 0; i < 100; i++)
		over(&many[i], 0);
	end();
}
END_TEST

/* ---- by a handle ---- */

/* A loop of a coordinator of its own, on a thread of its own; and who takes both
   down. */
static struct {
	evc_coord *c;
	evc_loop_ref *loop;
	evc_queue *q;
} there;

static void
there_begin(void)
{
	evc_reactor *at;

	there.c = new_coord(NULL);
	OK(evc_reactor_start(there.c, "there", NULL, NULL, NULL, &at));
	there.loop = evc_loop_of(at);
}

static evc_status
there_goes(evc_coord *c, void *arg)
{
	evc_status st;

	(void)arg;
	(void)evc_request_stop(c, 0, "it goes");
	st = evc_join(c, NULL, NULL);
	return st == 0 ? evc_free(c) : st;
}

static evc_status
submit_there(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	(void)c;
	return evc_pool_submit_to(pool, there.loop, &t->job, 0);
}

/* Who submits for a loop has seen that there is no stop; and the loop goes, with
   its reactor and its coordinator.  They stay until it has left.  Fails, with
   the address sanitizer, when they do not. */
START_TEST(a_submit_by_a_handle_keeps_the_loop)
{
	struct actor a, goes;
	struct thing t;
	evc_status st;
	int h;

	begin(1, 0);
	there_begin();
	thing_init(&t, work_now);
	h = actor_held(&a, submit_there, there.c, &t, "lock", "submit_job", 1);
	actor_begin(&goes, there_goes, there.c, NULL);
	UNTIL(atomic_load(&goes.tid) != 0);
	until_asleep(atomic_load(&goes.tid));
	ck_assert(!atomic_load(&goes.done));
	st = actor_go(&a, h);
	ck_assert_int_eq(st, -EVC_NOT_FOUND);
	OK(actor_end(&goes));
	/* There is nothing behind the handle any more. */
	REFUSED(EVC_NOT_FOUND, evc_pool_submit_to(pool, there.loop, &t.job,
						  0));
	REFUSED(EVC_NOT_FOUND, evc_pool_submit_to(pool, there.loop, &t.job,
						  1));
	ck_assert_ptr_null(evc_loop_enter(there.loop));
	evc_loop_release(there.loop);
	end();
}
END_TEST

static void
count_ends(evc_queue *q, void *item, evc_status why, void *arg)
{
	(void)q;
	(void)why;
	if (item == NULL)
		atomic_fetch_add((atomic_int *)arg, 1);
}

static atomic_int n_ends;

static evc_status
watch_there(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return evc_queue_watch_on(there.q, there.loop, count_ends, &n_ends, 0,
				  NULL);
}

START_TEST(a_watch_by_a_handle_keeps_the_loop)
{
	struct actor a, goes;
	evc_status st;
	int h;

	there_begin();
	OK(evc_queue_new(there.c, NULL, 1, NULL, &there.q));
	h = actor_held(&a, watch_there, there.c, NULL, "alloc", "make_watch",
		       1);
	actor_begin(&goes, there_goes, there.c, NULL);
	UNTIL(atomic_load(&goes.tid) != 0);
	until_asleep(atomic_load(&goes.tid));
	ck_assert(!atomic_load(&goes.done));
	st = actor_go(&a, h);
	ck_assert_int_eq(st, -EVC_NOT_FOUND);
	/* Its queue is still there, and so c is. */
	ck_assert_int_eq(actor_end(&goes), -EVC_FAILED_PRECONDITION);
	REFUSED(EVC_NOT_FOUND,
		evc_queue_watch_on(there.q, there.loop, count_ends, &n_ends, 0,
				   NULL));
	OK(evc_queue_free(there.q));
	OK(evc_free(there.c));
	evc_loop_release(there.loop);
}
END_TEST

SCHEDULES_MAIN("pool_late",
	       a_resize_is_heard_by_who_has_just_looked,
	       a_resize_is_heard_by_who_is_on_its_way,
	       a_cancel_leaves_a_job_alone_that_is_over_meanwhile,
	       a_pool_may_be_freed_while_a_cancel_is_on_its_way,
	       who_rings_too_late_leaves_no_post_behind,
	       a_job_that_its_only_thread_has_not_seen_is_completed,
	       a_wait_for_room_is_no_wait_for_a_thread,
	       a_first_job_that_a_stop_of_its_loop_overtakes_is_refused,
	       who_is_about_to_sleep_finds_what_is_claimed,
	       a_submit_by_a_handle_keeps_the_loop,
	       a_watch_by_a_handle_keeps_the_loop)
