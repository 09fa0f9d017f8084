/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool, stepped: submit against sleep, cancel against take, the last
 * completion against the next job, stop against submit; and what happens when
 * threads and memory cannot be had.
 */
#include "schedules.h"

static evc_coord *coord;
static evc_reactor *r; /* of a loop on a thread of its own */
static evc_pool *pool;

struct thing {
	evc_job job; /* first */
	atomic_int begun, done, open, said;
	evc_status result, status;
};

static evc_status
work_now(evc_job *job)
{
	atomic_fetch_add(&((struct thing *)job)->begun, 1);
	return 0;
}

static evc_status
work_stay(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	atomic_fetch_add(&t->begun, 1);
	while (!atomic_load(&t->open))
		t_sleep(0.0005);
	return evc_job_should_stop(job) ? EVC_ABORTED : 0;
}

static evc_status
work_exit(evc_job *job)
{
	work_stay(job);
	pthread_exit(NULL);
}

static void
note_done(evc_job *job, evc_status result)
{
	struct thing *t = (struct thing *)job;

	t->result = result;
	atomic_fetch_add(&t->done, 1);
}

static void
thing_init(struct thing *t, evc_status (*work)(evc_job *))
{
	memset(t, 0, sizeof(*t));
	t->job.work = work;
	t->job.done = note_done;
	t->result = -77;
}

static evc_status
submit(struct thing *t, evc_status (*work)(evc_job *))
{
	thing_init(t, work);
	return evc_pool_submit(pool, r, &t->job);
}

static void
begin(unsigned n_threads, double idle, unsigned flags)
{
	evc_pool_opts o = { .n_threads = n_threads,
			    .idle = idle,
			    .flags = flags };

	coord = new_coord(NULL);
	OK(evc_reactor_start(coord, "loop", NULL, NULL, NULL, &r));
	OK(evc_pool_new(coord, NULL, &o, &pool));
}

static void
end(void)
{
	seam_reset();
	OK(evc_request_stop(coord, 0, "over"));
	OK(evc_join(coord, NULL, NULL));
	ck_assert_msg(evc_pool_free(pool) == 0, "%s", evc_last_error());
	OK(evc_free(coord));
}

static evc_pool_info
info(void)
{
	evc_pool_info i;

	OK(evc_pool_get(pool, &i));
	return i;
}

/* A pool whose threads all sleep. */
static void
begin_asleep(void)
{
	struct thing t;

	begin(1, 0, 0);
	OK(submit(&t, work_now));
	UNTIL(atomic_load(&t.done) && info().n_idle == 1);
}

static evc_status
do_submit(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	(void)c;
	return evc_pool_submit(pool, r, &t->job);
}

/* On the loop. */
static void
submit_and_say(evc_reactor *here, evc_status why, void *arg)
{
	struct thing *t = arg;

	(void)why;
	t->status = evc_pool_submit(pool, here, &t->job);
	atomic_store(&t->said, 1);
}

static evc_status
do_cancel(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	(void)c;
	return evc_job_cancel(&t->job);
}

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

/* Nobody is called, for nobody sleeps yet.  Fails when a thread does not look
   for work after it has counted itself as idle. */
START_TEST(a_thread_about_to_count_itself_as_idle_finds_the_job)
{
	struct thing first, t;
	int h;

	begin(1, 0, 0);
	h = seam_hold("add", "evc__crowd_sleep", 1);
	OK(submit(&first, work_now));
	HELD(h);
	OK(submit(&t, work_now));
	seam_release(h);
	UNTIL(atomic_load(&t.done));
	end();
}
END_TEST

/* Fails when the word it sleeps on is read after the look for work. */
START_TEST(a_thread_about_to_sleep_hears_the_call)
{
	struct thing first, t;
	int h;

	begin(1, 0, 0);
	h = seam_hold("futex_wait", "evc__crowd_sleep", 1);
	OK(submit(&first, work_now));
	HELD(h);
	OK(submit(&t, work_now));
	seam_release(h);
	UNTIL(atomic_load(&t.done));
	end();
}
END_TEST

/* Fails when the submit looks at the crowd before the job can be seen. */
START_TEST(a_submit_that_comes_late_calls_who_sleeps)
{
	struct thing first, t;
	struct actor a;
	int h, s;

	begin(1, 0, 0);
	s = seam_hold("futex_wait", "evc__crowd_sleep", 1);
	OK(submit(&first, work_now));
	HELD(s);
	h = seam_hold("store", "ring_put", 2);
	thing_init(&t, work_now);
	actor_begin(&a, do_submit, NULL, &t);
	HELD(h);
	seam_release(s);
	UNTIL(info().n_idle == 1);
	t_sleep(0.01);
	seam_release(h);
	OK(actor_end(&a));
	UNTIL(atomic_load(&t.done));
	end();
}
END_TEST

/* Fails when it ends though it was called. */
START_TEST(a_thread_that_has_decided_to_end_takes_the_call)
{
	struct thing first, t;
	int h;

	begin(1, 0.001, 0);
	h = seam_hold("cas", "get_up", 1);
	OK(submit(&first, work_now));
	HELD(h);
	OK(submit(&t, work_now));
	seam_release(h);
	UNTIL(atomic_load(&t.done));
	end();
}
END_TEST

/* Called, and not up yet: the second job relies on that.  Fails when the mark is
   taken away after the look for work. */
START_TEST(a_job_submitted_while_one_is_on_its_way_is_not_lost)
{
	struct thing t, u;
	int h;

	begin_asleep();
	h = seam_hold("cas", "get_up", 1);
	OK(submit(&t, work_stay));
	HELD(h);
	OK(submit(&u, work_now));
	seam_release(h);
	atomic_store(&t.open, 1);
	UNTIL(atomic_load(&t.done) && atomic_load(&u.done));
	end();
}
END_TEST

/* Two rings: the second job relies on the thread that is on its way, and that
   finds the first one and stays in it.  Fails when it calls nobody, for in that
   ring there was nothing more. */
START_TEST(a_thread_that_was_called_calls_the_next_for_another_ring)
{
	struct thing far, own;
	evc_loop *loop;
	int h;

	begin(2, 0, 0);
	loop = evc_loop_of(r);
	h = seam_hold("cas", "evc__crowd_enter", 1);
	OK(submit(&far, work_stay));
	HELD(h);
	thing_init(&own, work_stay);
	OK(evc_post(loop, submit_and_say, &own));
	UNTIL(atomic_load(&own.said));
	seam_release(h);
	UNTIL(atomic_load(&far.begun) && atomic_load(&own.begun));
	atomic_store(&far.open, 1);
	atomic_store(&own.open, 1);
	UNTIL(atomic_load(&far.done) && atomic_load(&own.done));
	evc_loop_release(loop);
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

	begin(1, 0, 0);
	OK(submit(&first, work_stay));
	UNTIL(atomic_load(&first.begun));
	OK(submit(&t, work_stay));
	h = seam_hold("cas", "ring_withdraw", 1);
	actor_begin(&a, do_cancel, NULL, &t);
	HELD(h);
	atomic_store(&first.open, 1);
	UNTIL(atomic_load(&t.begun));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert(evc_job_should_stop(&t.job));
	atomic_store(&t.open, 1);
	UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, EVC_ABORTED);
	end();
	ck_assert_int_eq(atomic_load(&t.done), 1);
}
END_TEST

/* Fails when a thread believes what it has read. */
START_TEST(a_job_that_is_cancelled_while_it_is_taken_does_not_begin)
{
	struct thing first, t;
	int h;

	begin(1, 0, 0);
	h = seam_hold("xchg", "ring_take", 2);
	OK(submit(&first, work_now));
	UNTIL(atomic_load(&first.done));
	OK(submit(&t, work_now));
	HELD(h);
	OK(evc_job_cancel(&t.job));
	UNTIL(atomic_load(&t.done));
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

	begin(1, 0, 0);
	h = seam_hold("xchg", "give_back", 1);
	OK(submit(&t, work_now));
	HELD(h);
	OK(submit(&u, work_now));
	UNTIL(info().n_done == 2 && info().n_idle == 1);
	seam_release(h);
	UNTIL(atomic_load(&u.done));
	end();
}
END_TEST

/* Its job was completed before it could ring.  Fails when it completes twice. */
START_TEST(a_thread_that_rings_too_late_does_no_harm)
{
	struct thing t, u;
	int h;

	begin(2, 0, 0);
	/* The second look: the first job's own. */
	h = seam_hold("load", "evc__port_ring", 1);
	OK(submit(&t, work_now));
	HELD(h);
	OK(submit(&u, work_now));
	UNTIL(atomic_load(&t.done) && atomic_load(&u.done));
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

	begin(1, 0, 0);
	/* The mail that begins the task looks twice. */
	h = seam_hold("load", "evc__port_settle", 5);
	OK(submit(&t, work_now));
	HELD(h);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	OK(submit(&u, work_stay));
	seam_release(h);
	UNTIL(atomic_load(&u.begun));
	/* Its own task, not only its thread. */
	UNTIL(tasks() == 1);
	atomic_store(&u.open, 1);
	UNTIL(atomic_load(&u.done) && tasks() == 0);
	ck_assert_int_eq(u.result, 0);
	end();
}
END_TEST

/* The loop does not turn at all: the job is over, and its join waits for the
   mail that is to begin the task.  Fails when nothing keeps it waiting until
   then. */
START_TEST(a_join_waits_before_the_loop_has_heard_of_the_job)
{
	evc_join_opts brief = { .grace = 0.05 };
	struct thing t;
	int h;

	begin(1, 0, EVC_POOL_FINISH);
	h = seam_hold("xchg", "evc__port_on_wake", 1);
	OK(submit(&t, work_now));
	HELD(h);
	UNTIL(info().n_done == 1);
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

static evc_status
do_submit_wait(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	(void)c;
	return evc_pool_submit_wait(pool, r, &t->job, 1);
}

/* Nobody knew yet whose loop it is; while a thread asks, the loop begins its
   task.  Fails when the thread then takes itself for the loop's. */
START_TEST(a_thread_does_not_take_itself_for_the_loops)
{
	struct thing t, u;
	struct actor a;
	int h, s;

	begin(2, 0, 0);
	h = seam_hold("xchg", "evc__port_on_wake", 1);
	OK(submit(&t, work_stay));
	HELD(h);
	s = seam_hold("load", "evc__port_activate", 1);
	thing_init(&u, work_now);
	actor_begin(&a, do_submit_wait, NULL, &u);
	HELD(s);
	seam_release(h);
	UNTIL(tasks() == 1);
	seam_release(s);
	OK(actor_end(&a));
	UNTIL(atomic_load(&u.done));
	atomic_store(&t.open, 1);
	UNTIL(atomic_load(&t.done) && tasks() == 0);
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

	begin(1, 0, 0);
	OK(evc_pool_free(pool));
	OK(evc_pool_new(coord, NULL, &o, &pool));
	OK(submit(&first, work_stay));
	UNTIL(atomic_load(&first.begun));
	h = seam_hold("xchg", "ring_take", 1);
	for (i = 0; i < 8; i++)
		OK(submit(&t[i], work_now));
	atomic_store(&first.open, 1);
	HELD(h);
	REFUSED(EVC_RESOURCE_EXHAUSTED, submit(&t[8], work_now));
	OK(evc_job_cancel(&t[4].job));
	OK(submit(&t[8], work_now));
	seam_release(h);
	for (i = 0; i < 9; i++) {
		UNTIL(atomic_load(&t[i].done));
		ck_assert_int_eq(t[i].result, i == 4 ? EVC_CANCELLED : 0);
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

	begin(1, 0, 0);
	OK(submit(&first, work_stay));
	UNTIL(atomic_load(&first.begun));
	OK(submit(&t, work_now));
	h = seam_hold("or", "close_pool", 1);
	OK(evc_request_stop(evc_pool_scope(pool), 0, "enough"));
	HELD(h);
	atomic_store(&first.open, 1);
	UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&t.begun), 0);
	seam_release(h);
	end();
}
END_TEST

/* The loop's own path, without a lock.  Fails when it does not look whether the
   pool was closed: then nobody ever completes the job. */
START_TEST(a_submit_that_a_stop_overtakes_is_refused)
{
	evc_loop *loop;
	struct thing first, own, t;
	int h;

	begin(1, 0, 0);
	loop = evc_loop_of(r);
	OK(submit(&first, work_stay));
	UNTIL(atomic_load(&first.begun));
	/* Now the loop has jobs of its own under way. */
	thing_init(&own, work_now);
	OK(evc_post(loop, submit_and_say, &own));
	UNTIL(atomic_load(&own.said));
	OK(own.status);
	h = seam_hold("store", "ring_put", 1);
	thing_init(&t, work_now);
	OK(evc_post(loop, submit_and_say, &t));
	HELD(h);
	OK(evc_request_stop(coord, 0, "enough"));
	/* The sweep has been there. */
	UNTIL(info().n_cancelled == 1);
	t_sleep(0.02);
	seam_release(h);
	UNTIL(atomic_load(&t.said));
	ck_assert_int_eq(t.status, -EVC_CANCELLED);
	atomic_store(&first.open, 1);
	OK(evc_join(coord, NULL, NULL));
	ck_assert_int_eq(atomic_load(&t.begun), 0);
	ck_assert_int_eq(atomic_load(&t.done), 0);
	ck_assert_int_eq(own.result, EVC_CANCELLED);
	evc_loop_release(loop);
	end();
}
END_TEST

/* By another thread, under the lock: the stop waits, and sweeps it. */
START_TEST(a_submit_of_another_thread_that_a_stop_meets_is_cancelled)
{
	struct thing first, t;
	struct actor a;
	int h;

	begin(1, 0, 0);
	OK(submit(&first, work_stay));
	UNTIL(atomic_load(&first.begun));
	h = seam_hold("store", "ring_put", 1);
	thing_init(&t, work_now);
	actor_begin(&a, do_submit, NULL, &t);
	HELD(h);
	/* Of the pool alone, for its loop's stop would be seen. */
	OK(evc_request_stop(evc_pool_scope(pool), 0, "enough"));
	t_sleep(0.02);
	seam_release(h);
	OK(actor_end(&a));
	UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&t.begun), 0);
	atomic_store(&first.open, 1);
	end();
}
END_TEST

/* With FINISH: it was accepted, so it runs. */
START_TEST(a_thread_that_ends_at_a_stop_leaves_nothing_behind)
{
	struct thing t, u;
	struct actor a;
	int h, s;

	begin(1, 0, EVC_POOL_FINISH);
	OK(submit(&t, work_stay));
	UNTIL(atomic_load(&t.begun));
	h = seam_hold("store", "ring_put", 1);
	thing_init(&u, work_now);
	actor_begin(&a, do_submit, NULL, &u);
	HELD(h);
	s = seam_hold("load", "evc__pool_has_work", 1);
	OK(evc_request_stop(coord, 0, "enough"));
	atomic_store(&t.open, 1);
	HELD(s);
	seam_release(h);
	(void)actor_end(&a);
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

	begin(2, 0, 0);
	seam_fail_all("thread_create", "create", 1, EAGAIN);
	for (i = 0; i < 3; i++) {
		REFUSED(EVC_RESOURCE_EXHAUSTED, submit(&t, work_now));
		ck_assert_uint_eq(info().n_live, 0);
		ck_assert_uint_eq(info().n_queued, 0);
	}
	seam_reset();
	/* Nothing is left of them. */
	OK(submit(&t, work_now));
	UNTIL(atomic_load(&t.done) == 1);
	end();
}
END_TEST

START_TEST(without_a_second_thread_it_goes_on_with_one)
{
	struct thing t[20];
	int i, n;

	begin(4, 0, 0);
	seam_fail_all("thread_create", "create", 2, EAGAIN);
	for (i = 0; i < 20; i++)
		OK(submit(&t[i], i == 0 ? work_stay : work_now));
	UNTIL(atomic_load(&t[0].begun));
	ck_assert_uint_eq(info().n_live, 1);
	atomic_store(&t[0].open, 1);
	for (i = n = 0; i < 20; i++) {
		UNTIL(atomic_load(&t[i].done));
		n += t[i].result == 0;
	}
	ck_assert_int_eq(n, 20);
	UNTIL(info().n_idle == 1);
	end();
}
END_TEST

/* The loop, without a lock, relies on a thread that is about to be started; it
   does not come, and the only one there is has gone to sleep.  Fails when nobody
   looks for work then. */
START_TEST(who_relied_on_a_thread_that_does_not_come_is_not_left)
{
	struct thing keeps, first, u, v;
	evc_loop *loop;
	struct actor a;
	int h;

	begin(2, 0, 0);
	loop = evc_loop_of(r);
	/* While it runs the loop has a job of its own. */
	thing_init(&keeps, work_stay);
	OK(evc_post(loop, submit_and_say, &keeps));
	OK(submit(&first, work_stay));
	UNTIL(atomic_load(&keeps.begun) && atomic_load(&first.begun));
	OK(evc_pool_resize(pool, 3));
	seam_fail_all("thread_create", "create", 1, EAGAIN);
	h = seam_hold("and", "start", 1);
	thing_init(&u, work_now);
	actor_begin(&a, do_submit, NULL, &u);
	HELD(h);
	atomic_store(&first.open, 1);
	UNTIL(atomic_load(&u.done) && info().n_idle == 1);
	thing_init(&v, work_now);
	OK(evc_post(loop, submit_and_say, &v));
	UNTIL(atomic_load(&v.said));
	OK(v.status);
	ck_assert_int_eq(atomic_load(&v.begun), 0);
	seam_release(h);
	OK(actor_end(&a));
	UNTIL(atomic_load(&v.done));
	atomic_store(&keeps.open, 1);
	evc_loop_release(loop);
	end();
}
END_TEST

/* The only thread ends in a job, and there is no other: what is queued can never
   begin. */
START_TEST(without_another_thread_what_is_queued_is_cancelled)
{
	struct thing first, t[5];
	int i;

	begin(1, 0, 0);
	OK(submit(&first, work_exit));
	UNTIL(atomic_load(&first.begun));
	for (i = 0; i < 5; i++)
		OK(submit(&t[i], work_now));
	seam_fail_all("thread_create", "create", 1, EAGAIN);
	atomic_store(&first.open, 1);
	for (i = 0; i < 5; i++) {
		UNTIL(atomic_load(&t[i].done));
		ck_assert_int_eq(t[i].result, EVC_CANCELLED);
	}
	UNTIL(atomic_load(&first.done));
	ck_assert_int_eq(first.result, EVC_ABORTED);
	seam_reset();
	OK(submit(&t[0], work_now));
	UNTIL(atomic_load(&t[0].done));
	ck_assert_int_eq(t[0].result, 0);
	end();
}
END_TEST

START_TEST(without_memory_it_is_refused_or_goes_another_way)
{
	evc_pool *none = NULL;
	struct thing t;
	int i;

	begin(1, 0, 0);
	seam_fail("alloc", "evc_pool_new", 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc_pool_new(coord, NULL, NULL, &none));
	/* The port, its two rings, the first seat. */
	for (i = 0; i < 4; i++) {
		static const struct place places[] = {
			{ "alloc", "make", 1 },
			{ "alloc", "evc__ring_init", 1 },
			{ "alloc", "evc__ring_init", 2 },
			{ "alloc", "free_seat", 1 },
		};

		seam_fail(places[i].op, places[i].func, places[i].nth, ENOMEM);
		REFUSED(EVC_RESOURCE_EXHAUSTED, submit(&t, work_now));
	}
	/* No box: by the chain. */
	seam_fail_all("alloc", "box_of", 1, ENOMEM);
	for (i = 0; i < 100; i++) {
		OK(submit(&t, work_now));
		UNTIL(atomic_load(&t.done) == 1);
	}
	end();
}
END_TEST

SCHEDULES_MAIN("pool",
	       a_thread_about_to_count_itself_as_idle_finds_the_job,
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
