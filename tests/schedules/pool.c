/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool, stepped: submit against sleep, cancel against take, the last
 * completion against the next job, stop against submit; and what happens when
 * threads and memory cannot be had.
 */
#include "pool_steps.h"

/* Says whether it was told. */
static evc_status
work_obey(evc_job *job)
{
	work_stay(job);
	return evc_job_should_stop(job) ? EVC_ABORTED : 0;
}

static evc_status
work_exit(evc_job *job)
{
	work_stay(job);
	pthread_exit(NULL);
}

/* What is queued at a stop is run. */
static const evc_pool_opts until_empty = {
	.n_threads = 1,
	.flags = EVC_POOL_FINISH,
};

static bool
count_task(const evc_member_info *m, void *arg)
{
	*(uint64_t *)arg += m->kind == EVC_TASK ? m->ticks : 0;
	return true;
}

/* How many keep the loop's run and all joins waiting. */
static uint64_t
tasks(void)
{
	uint64_t n = 0;

	OK(evc_member_each(coord, count_task, &n));
	return n;
}

/* ---- submit against sleep ---- */

/* A thread that has nothing to do stands at the place; a job comes then, and is
   done. */
static void
is_done_by_who_stands_at(const char *op, const char *func, double idle)
{
	struct thing first, t;
	int h;

	begin(1, idle);
	h = put_held(&first, work_now, op, func, 1);
	OK(put(&t, work_now));
	seam_release(h);
	over(&t, 0);
	end();
}

/* Nobody is called, for nobody sleeps yet.  Fails when a thread does not look
   for work after it has counted itself as idle. */
START_TEST(a_thread_about_to_count_itself_as_idle_finds_the_job)
{
	is_done_by_who_stands_at("add", "evc__crowd_sleep", 0);
}
END_TEST

/* It has looked at the rings.  Fails when the word it sleeps on is read after
   the look for work. */
START_TEST(a_thread_that_has_just_looked_hears_the_call)
{
	struct thing first, t;
	int h;

	begin(1, 0);
	put_busy(&first);
	h = seam_hold("load", "has_claimed", 1);
	let_end(&first);
	HELD(h);
	OK(put(&t, work_now));
	seam_release(h);
	over(&t, 0);
	end();
}
END_TEST

/* Fails when the call does not move the word it sleeps on. */
START_TEST(a_thread_about_to_sleep_hears_the_call)
{
	is_done_by_who_stands_at("futex_wait", "evc__crowd_sleep", 0);
}
END_TEST

/* Fails when the submit looks at the crowd before the job can be seen. */
START_TEST(a_submit_that_comes_late_calls_who_sleeps)
{
	struct thing first, t;
	struct actor a;
	int h, s;

	begin(1, 0);
	s = put_held(&first, work_now, "futex_wait", "evc__crowd_sleep", 1);
	h = actor_held(&a, do_submit, NULL, &t, "store", "ring_put", 2);
	seam_release(s);
	UNTIL(pool_info().n_idle == 1);
	t_sleep(0.01);
	OK(actor_go(&a, h));
	over(&t, 0);
	end();
}
END_TEST

/* Fails when it ends though it was called. */
START_TEST(a_thread_that_has_decided_to_end_takes_the_call)
{
	is_done_by_who_stands_at("cas", "get_up", 0.001);
}
END_TEST

/* Called, and not up yet: the second job relies on that.  Fails when the mark is
   taken away after the look for work. */
START_TEST(a_job_submitted_while_one_is_on_its_way_is_not_lost)
{
	struct thing first, t, u;
	int h;

	begin(1, 0);
	OK(put(&first, work_now));
	over(&first, 0);
	UNTIL(pool_info().n_idle == 1);
	h = put_held(&t, work_stay, "cas", "get_up", 1);
	OK(put(&u, work_now));
	seam_release(h);
	let_end(&t);
	over(&t, 0);
	over(&u, 0);
	end();
}
END_TEST

/* Two rings: the second job relies on the thread that is on its way, and that
   finds the first one and stays in it.  Fails when it calls nobody, for in that
   ring there was nothing more. */
START_TEST(a_thread_that_was_called_calls_the_next_for_another_ring)
{
	struct thing far;
	struct own own;
	int h;

	begin(2, 0);
	h = put_held(&far, work_stay, "cas", "evc__crowd_enter", 1);
	own_begin(&own, r, work_stay);
	OK(own_end(&own));
	seam_release(h);
	UNTIL(atomic_load(&far.begun) && atomic_load(&own.t.begun));
	let_end(&far);
	let_end(&own.t);
	over(&far, 0);
	over(&own.t, 0);
	end();
}
END_TEST

/* ---- cancel against take ---- */

/* Fails when a cancel that comes late completes the job as well. */
START_TEST(a_job_that_is_taken_while_it_is_cancelled_is_told)
{
	struct thing first, t;
	struct actor a;
	int h;

	begin(1, 0);
	put_busy(&first);
	OK(put(&t, work_obey));
	h = actor_held(&a, do_cancel, NULL, &t, "cas", "ring_withdraw", 1);
	let_end(&first);
	UNTIL(atomic_load(&t.begun));
	OK(actor_go(&a, h));
	ck_assert(evc_job_should_stop(&t.job));
	let_end(&t);
	over(&t, EVC_ABORTED);
	end();
	ck_assert_int_eq(atomic_load(&t.done), 1);
}
END_TEST

/* Fails when a thread believes what it has read. */
START_TEST(a_job_that_is_cancelled_while_it_is_taken_does_not_begin)
{
	struct thing first, t;
	int h;

	begin(1, 0);
	h = seam_hold("xchg", "ring_take", 2);
	OK(put(&first, work_now));
	over(&first, 0);
	OK(put(&t, work_now));
	HELD(h);
	OK(evc_job_cancel(&t.job));
	over(&t, EVC_CANCELLED);
	seam_release(h);
	end();
	ck_assert_int_eq(atomic_load(&t.begun), 0);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	ck_assert_int_eq(t.result, EVC_CANCELLED);
}
END_TEST

/* ---- the last completion against the next job ---- */

/* The loop has found nothing more and is about to give back the right to
   complete.  Fails when it does not look again then. */
START_TEST(what_is_over_while_the_loop_goes_is_completed)
{
	struct thing t, u;
	int h;

	begin(1, 0);
	h = put_held(&t, work_now, "xchg", "give_back", 1);
	OK(put(&u, work_now));
	UNTIL(pool_info().n_done == 2 && pool_info().n_idle == 1);
	seam_release(h);
	over(&u, 0);
	end();
}
END_TEST

/* Its job was completed before it could ring.  Fails when it completes twice. */
START_TEST(a_thread_that_rings_too_late_does_no_harm)
{
	struct thing t, u;
	int h;

	begin(2, 0);
	/* The second look: the first job's own. */
	h = put_held(&t, work_now, "load", "evc__port_ring", 1);
	OK(put(&u, work_now));
	over(&t, 0);
	over(&u, 0);
	seam_release(h);
	end();
	ck_assert_int_eq(atomic_load(&t.done), 1);
	ck_assert_int_eq(atomic_load(&u.done), 1);
}
END_TEST

/* The loop has seen that no job of another thread is left, and is about to end
   its task.  Fails when the next one relies on that task. */
START_TEST(a_job_that_comes_while_the_task_ends_keeps_joins_waiting)
{
	struct thing t, u;
	int h;

	begin(1, 0);
	/* The message that begins the task looks twice. */
	h = put_held(&t, work_now, "load", "evc__port_settle", 5);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	OK(put(&u, work_stay));
	seam_release(h);
	UNTIL(atomic_load(&u.begun));
	/* Its own task, not only its thread. */
	UNTIL(tasks() == 1);
	let_end(&u);
	over(&u, 0);
	UNTIL(tasks() == 0);
	end();
}
END_TEST

/* The loop does not turn at all: the job is over, and its join waits for the
   message that is to begin the task.  Fails when nothing keeps it waiting until
   then. */
START_TEST(a_join_waits_before_the_loop_has_heard_of_the_job)
{
	evc_join_opts brief = { .grace = 0.05 };
	struct thing t;
	int h;

	begin_with(&until_empty);
	h = put_held(&t, work_now, "xchg", "on_wake", 1);
	UNTIL(pool_info().n_done == 1);
	OK(evc_request_stop(coord, 0, "enough"));
	ck_assert_int_eq(evc_join(coord, &brief, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(atomic_load(&t.done), 0);
	seam_release(h);
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&t.done), 1);
	ck_assert_int_eq(t.result, 0);
	end();
}
END_TEST

/* Nobody knew yet whose loop it is; while a thread asks, the loop begins its
   task.  Fails when the thread then takes itself for the loop's. */
START_TEST(a_thread_does_not_take_itself_for_the_loops)
{
	struct thing t, u;
	struct actor a;
	int h, s;

	begin(2, 0);
	h = put_held(&t, work_stay, "xchg", "on_wake", 1);
	s = actor_held(&a, do_submit_wait, NULL, &u, "load",
		       "evc__port_activate", 1);
	seam_release(h);
	UNTIL(tasks() == 1);
	OK(actor_go(&a, s));
	over(&u, 0);
	let_end(&t);
	over(&t, 0);
	UNTIL(tasks() == 0);
	end();
}
END_TEST

/* ---- claims ---- */

/* All of the ring is claimed, and the thread stands before the first job: one of
   them is cancelled, so there is room for one.  Fails when the producer stops at
   the first slot that is not free. */
START_TEST(what_is_claimed_and_not_begun_is_passed_over)
{
	evc_pool_opts o = { .n_threads = 1, .capacity = 8 };
	struct thing first, t[9];
	int h, i;

	begin_with(&o);
	put_busy(&first);
	h = seam_hold("xchg", "ring_take", 1);
	for (i = 0; i < 8; i++)
		OK(put(&t[i], work_now));
	let_end(&first);
	HELD(h);
	REFUSED(EVC_RESOURCE_EXHAUSTED, put(&t[8], work_now));
	OK(evc_job_cancel(&t[4].job));
	OK(put(&t[8], work_now));
	seam_release(h);
	for (i = 0; i < 9; i++) {
		over(&t[i], i == 4 ? EVC_CANCELLED : 0);
		ck_assert_int_eq(atomic_load(&t[i].begun), i != 4);
	}
	end();
}
END_TEST

/* ---- stop against submit ---- */

/* The stop is asked for, and its sweep has not come yet.  Fails when a thread
   begins a job then. */
START_TEST(a_thread_begins_nothing_from_the_stop_on)
{
	struct thing first, t;
	int h;

	begin(1, 0);
	put_busy(&first);
	OK(put(&t, work_now));
	h = seam_hold("or", "close_pool", 1);
	OK(evc_request_stop(evc_pool_scope(pool), 0, "enough"));
	HELD(h);
	let_end(&first);
	over_unbegun(&t);
	seam_release(h);
	end();
}
END_TEST

/* The loop's own path, without a lock.  Fails when it does not look whether the
   pool was closed: then nobody ever completes the job. */
START_TEST(a_submit_that_a_stop_overtakes_is_refused)
{
	struct thing first;
	struct own own, late;
	int h;

	begin(1, 0);
	put_busy(&first);
	/* Now the loop has jobs of its own under way. */
	own_begin(&own, r, work_now);
	OK(own_end(&own));
	h = seam_hold("store", "ring_put", 1);
	own_begin(&late, r, work_now);
	HELD(h);
	OK(evc_request_stop(coord, 0, "enough"));
	/* The sweep has been there. */
	UNTIL(pool_info().n_cancelled == 1);
	t_sleep(0.02);
	seam_release(h);
	ck_assert_int_eq(own_end(&late), -EVC_CANCELLED);
	let_end(&first);
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&late.t.begun), 0);
	ck_assert_int_eq(atomic_load(&late.t.done), 0);
	ck_assert_int_eq(own.t.result, EVC_CANCELLED);
	end();
}
END_TEST

/* By another thread, under the lock: the stop waits, and sweeps it. */
START_TEST(a_submit_of_another_thread_that_a_stop_meets_is_cancelled)
{
	struct thing first, t;
	struct actor a;
	int h;

	begin(1, 0);
	put_busy(&first);
	h = actor_held(&a, do_submit, NULL, &t, "store", "ring_put", 1);
	/* Of the pool alone, for its loop's stop would be seen. */
	OK(evc_request_stop(evc_pool_scope(pool), 0, "enough"));
	t_sleep(0.02);
	OK(actor_go(&a, h));
	over_unbegun(&t);
	let_end(&first);
	end();
}
END_TEST

/* With FINISH: it was accepted, so it runs. */
START_TEST(a_thread_that_ends_at_a_stop_leaves_nothing_behind)
{
	struct thing t, u;
	struct actor a;
	int h, s;

	begin_with(&until_empty);
	put_busy(&t);
	h = actor_held(&a, do_submit, NULL, &u, "store", "ring_put", 1);
	s = seam_hold("load", "evc__pool_has_work", 1);
	OK(evc_request_stop(coord, 0, "enough"));
	let_end(&t);
	HELD(s);
	(void)actor_go(&a, h);
	seam_release(s);
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&u.begun), atomic_load(&u.done));
	ck_assert_int_eq(atomic_load(&u.done), a.status == 0);
	end();
}
END_TEST

/* ---- what cannot be had ---- */

START_TEST(without_a_first_thread_the_submit_is_refused)
{
	struct thing t;
	int i;

	begin(2, 0);
	seam_fail_all("thread_create", "create_thread", 1, EAGAIN);
	for (i = 0; i < 3; i++) {
		REFUSED(EVC_RESOURCE_EXHAUSTED, put(&t, work_now));
		ck_assert_uint_eq(pool_info().n_live, 0);
		ck_assert_uint_eq(pool_info().n_queued, 0);
	}
	seam_reset();
	/* Nothing is left of them. */
	OK(put(&t, work_now));
	over(&t, 0);
	end();
}
END_TEST

START_TEST(without_a_second_thread_it_goes_on_with_one)
{
	struct thing t[20];
	int i;

	begin(4, 0);
	seam_fail_all("thread_create", "create_thread", 2, EAGAIN);
	for (i = 0; i < 20; i++)
		OK(put(&t[i], i == 0 ? work_stay : work_now));
	UNTIL(atomic_load(&t[0].begun));
	ck_assert_uint_eq(pool_info().n_live, 1);
	let_end(&t[0]);
	for (i = 0; i < 20; i++)
		over(&t[i], 0);
	UNTIL(pool_info().n_idle == 1);
	end();
}
END_TEST

/* The loop, without a lock, relies on a thread that is about to be started; it
   does not come, and the only one there is has gone to sleep.  Fails when nobody
   looks for work then. */
START_TEST(who_relied_on_a_thread_that_does_not_come_is_not_left)
{
	struct thing first, u;
	struct own keeps, v;
	struct actor a;
	int h;

	begin(2, 0);
	/* While it runs the loop has a job of its own. */
	own_begin(&keeps, r, work_stay);
	OK(put(&first, work_stay));
	UNTIL(atomic_load(&keeps.t.begun) && atomic_load(&first.begun));
	OK(evc_pool_resize(pool, 3));
	seam_fail_all("thread_create", "create_thread", 1, EAGAIN);
	h = actor_held(&a, do_submit, NULL, &u, "and", "start_or_delay", 1);
	let_end(&first);
	over(&u, 0);
	UNTIL(pool_info().n_idle == 1);
	own_begin(&v, r, work_now);
	OK(own_end(&v));
	ck_assert_int_eq(atomic_load(&v.t.begun), 0);
	OK(actor_go(&a, h));
	over(&v.t, 0);
	let_end(&keeps.t);
	end();
}
END_TEST

/* The only thread ends in a job, and there is no other: what is queued can never
   begin. */
START_TEST(without_another_thread_what_is_queued_is_cancelled)
{
	struct thing first, t[5];
	int i;

	begin(1, 0);
	OK(put(&first, work_exit));
	UNTIL(atomic_load(&first.begun));
	for (i = 0; i < 5; i++)
		OK(put(&t[i], work_now));
	seam_fail_all("thread_create", "create_thread", 1, EAGAIN);
	let_end(&first);
	for (i = 0; i < 5; i++)
		over(&t[i], EVC_CANCELLED);
	over(&first, EVC_ABORTED);
	seam_reset();
	OK(put(&t[0], work_now));
	over(&t[0], 0);
	end();
}
END_TEST

START_TEST(without_memory_it_is_refused_or_goes_another_way)
{
	evc_pool *none = NULL;
	struct thing t;
	int i;

	begin(1, 0);
	seam_fail("alloc", "make_pool", 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc_pool_new(coord, NULL, NULL, &none));
	/* The port, its two rings, the first seat. */
	for (i = 0; i < 4; i++) {
		static const struct place places[] = {
			{ "alloc", "make_port", 1 },
			{ "alloc", "evc__ring_init", 1 },
			{ "alloc", "evc__ring_init", 2 },
			{ "alloc", "free_seat", 1 },
		};

		seam_fail(places[i].op, places[i].func, places[i].nth, ENOMEM);
		REFUSED(EVC_RESOURCE_EXHAUSTED, put(&t, work_now));
	}
	/* No box: by the chain. */
	seam_fail_all("alloc", "box_of", 1, ENOMEM);
	for (i = 0; i < 100; i++) {
		OK(put(&t, work_now));
		over(&t, 0);
	}
	end();
}
END_TEST

SCHEDULES_MAIN("pool",
	       a_thread_about_to_count_itself_as_idle_finds_the_job,
	       a_thread_that_has_just_looked_hears_the_call,
	       a_thread_about_to_sleep_hears_the_call,
	       a_submit_that_comes_late_calls_who_sleeps,
	       a_thread_that_has_decided_to_end_takes_the_call,
	       a_job_submitted_while_one_is_on_its_way_is_not_lost,
	       a_thread_that_was_called_calls_the_next_for_another_ring,
	       a_job_that_is_taken_while_it_is_cancelled_is_told,
	       a_job_that_is_cancelled_while_it_is_taken_does_not_begin,
	       what_is_over_while_the_loop_goes_is_completed,
	       a_thread_that_rings_too_late_does_no_harm,
	       a_job_that_comes_while_the_task_ends_keeps_joins_waiting,
	       a_join_waits_before_the_loop_has_heard_of_the_job,
	       a_thread_does_not_take_itself_for_the_loops,
	       what_is_claimed_and_not_begun_is_passed_over,
	       a_thread_begins_nothing_from_the_stop_on,
	       a_submit_that_a_stop_overtakes_is_refused,
	       a_submit_of_another_thread_that_a_stop_meets_is_cancelled,
	       a_thread_that_ends_at_a_stop_leaves_nothing_behind,
	       without_a_first_thread_the_submit_is_refused,
	       without_a_second_thread_it_goes_on_with_one,
	       who_relied_on_a_thread_that_does_not_come_is_not_left,
	       without_another_thread_what_is_queued_is_cancelled,
	       without_memory_it_is_refused_or_goes_another_way)
