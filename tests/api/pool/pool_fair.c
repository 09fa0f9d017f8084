/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool: nobody is left out.  Who waits beside jobs that come back for
 * ever has his turn; the room of a cancelled job is room; and what a loop that
 * is gone leaves to the pool's threads is completed, whatever a done does.
 */
#include "../../support/pool_util.h"

/* ---- room ---- */

/* All slots are taken, and the only thread is busy.  Fails when a free slot is
   sought from the tail on alone: then that of a cancelled job is free only when
   all before it have been claimed. */
START_TEST(the_room_of_a_cancelled_job_is_room)
{
	evc_pool_opts o = { .n_threads = 1, .capacity = 8 };
	struct thing first, t[10];
	int i;

	pool_begin(&o);
	submit_new(&first, work_stay);
	UNTIL(atomic_load(&first.begun));
	for (i = 0; i < 8; i++)
		submit_new(&t[i], work_now);
	for (; i < 10; i++) {
		thing_init(&t[i], work_now);
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc_pool_submit(pool, evc_home(coord), &t[i].job));
	}
	/* One, and the last one. */
	OK(evc_job_cancel(&t[2].job));
	OK(evc_job_cancel(&t[7].job));
	for (i = 8; i < 10; i++)
		submit_new(&t[i], work_now);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_pool_submit(pool, evc_home(coord), &(struct thing){
			.job = { .work = work_now, .done = note_done } }.job));
	atomic_store(&first.open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 11);
	for (i = 0; i < 10; i++) {
		bool cancelled = i == 2 || i == 7;

		ck_assert_int_eq(t[i].result, cancelled ? EVC_CANCELLED : 0);
		ck_assert_int_eq(atomic_load(&t[i].begun), !cancelled);
	}
	pool_end();
}
END_TEST

/* ---- jobs that come back ---- */

enum { MANY = 400 };

static atomic_int enough;

static evc_status
work_a_while(evc_job *job)
{
	work_now(job);
	t_sleep(0.001);
	return 0;
}

static void
come_back(struct thing *t)
{
	if (!atomic_load(&enough))
		submit(t);
}

static bool
all_came_back(struct thing *t)
{
	int i;

	for (i = 0; i < MANY; i++)
		if (atomic_load(&t[i].done) < 2)
			return false;
	return true;
}

/* So many that their ring is never empty, though the loop is late at times. */
static void
begin_coming_back(struct thing *t)
{
	int i;

	pool_begin_n(2);
	for (i = 0; i < MANY; i++) {
		thing_init(&t[i], work_a_while);
		t[i].then = come_back;
		submit(&t[i]);
	}
	TURN_UNTIL(all_came_back(t));
}

static void
end_coming_back(void)
{
	atomic_store(&enough, 1);
	TURN_UNTIL(pool_info().n_queued == 0 && pool_info().n_running == 0 &&
		   evc_pool_free(pool) == 0);
	ck_assert_msg(evc_free(coord) == 0, "%s", evc_last_error());
	ev_loop_destroy(loop);
}

/* Fails when a thread looks at a loop's own jobs first, always. */
START_TEST(a_job_of_another_thread_has_its_turn)
{
	static struct thing t[MANY];
	struct thing far;

	begin_coming_back(t);
	thing_init(&far, work_now);
	OK(submit_from_afar(&far));
	TURN_UNTIL(atomic_load(&far.done));
	ck_assert_int_eq(far.result, 0);
	end_coming_back();
}
END_TEST

/* ---- the order of claims ---- */

#define EACH_WAY 64

static atomic_int n_own_begun, n_far_begun, far_at_last_own;

static evc_status
work_own(evc_job *job)
{
	(void)job;
	if (atomic_fetch_add(&n_own_begun, 1) == EACH_WAY - 1)
		atomic_store(&far_at_last_own, atomic_load(&n_far_begun));
	return 0;
}

static evc_status
work_far(evc_job *job)
{
	(void)job;
	atomic_fetch_add(&n_far_begun, 1);
	return 0;
}

/* As many of the loop's own and of others stand there, and one thread: at least
   three claims of four are of the loop's own, so these are the first to be
   through.  Fails when three of four are of the others. */
START_TEST(a_loops_own_jobs_come_first)
{
	static struct thing own[EACH_WAY], far[EACH_WAY], first;
	int i;

	pool_begin_n(1);
	thing_init(&first, work_stay);
	OK(evc_pool_submit(pool, evc_home(coord), &first.job));
	UNTIL(atomic_load(&first.begun));
	for (i = 0; i < EACH_WAY; i++) {
		thing_init(&own[i], work_own);
		OK(evc_pool_submit(pool, evc_home(coord), &own[i].job));
		thing_init(&far[i], work_far);
		OK(submit_from_afar(&far[i]));
	}
	atomic_store(&first.open, 1);
	TURN_UNTIL(pool_info().n_done == 2 * EACH_WAY + 1);
	ck_assert_int_lt(atomic_load(&far_at_last_own), EACH_WAY);
	TURN_UNTIL(evc_pool_free(pool) == 0);
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}
END_TEST

/* A loop of its own with one job. */
static evc_status
submit_one(evc_reactor *r, void *arg)
{
	struct thing *t = arg;

	return evc_pool_submit(pool, r, &t->job);
}

/* Fails when a thread begins its search where there was work last, always. */
START_TEST(a_job_of_another_loop_has_its_turn)
{
	evc_coord *other = new_coord(NULL);
	static struct thing t[MANY];
	struct thing single;

	begin_coming_back(t);
	thing_init(&single, work_now);
	OK(evc_reactor_start(other, "other", submit_one, &single, NULL, NULL));
	TURN_UNTIL(atomic_load(&single.done));
	ck_assert_int_eq(single.result, 0);
	OK(evc_request_stop(other, 0, "enough"));
	OK(evc_join(other, NULL, NULL));
	end_coming_back();
	OK(evc_free(other));
}
END_TEST

/* ---- a done where there is no loop any more ---- */

/* A job of a loop that is destroyed while it runs: its thread completes it. */
static void
complete_without_loop(struct thing *t, evc_status (*work)(evc_job *),
		      void (*then)(struct thing *))
{
	struct ev_loop *l = ev_loop_new(EVFLAG_AUTO);
	struct thing after;
	evc_reactor *r;

	pool_begin_n(1);
	OK(evc_reactor_attach(coord, "doomed", l, &r));
	thing_init(t, work);
	t->then = then;
	OK(evc_pool_submit(pool, r, &t->job));
	UNTIL(atomic_load(&t->begun));
	ev_loop_destroy(l);
	atomic_store(&t->open, 1);
	UNTIL(atomic_load(&t->done));
	ck_assert_int_eq(t->result, EVC_CANCELLED);
	ck_assert_int_eq(t->done_on, t->worked_on);
	/* The pool goes on. */
	submit_new(&after, work_now);
	TURN_UNTIL(atomic_load(&after.done));
	ck_assert_int_eq(after.result, 0);
	ck_assert_int_eq(atomic_load(&t->done), 1);
	UNTIL(evc_pool_free(pool) == 0);
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}

static void
leave(struct thing *t)
{
	(void)t;
	pthread_exit(NULL);
}

/* Fails when the end of the thread is taken for that of a job's work: there is
   no job then. */
START_TEST(a_done_may_end_its_thread)
{
	struct thing t;

	if (t_under_asan() || t_under_valgrind())
		T_SKIP("what such a thread has in hand is lost");
	complete_without_loop(&t, work_stay, leave);
}
END_TEST

static evc_status
work_cancelled(evc_job *job)
{
	work_stay(job);
	/* Pending from now on: here is no point of cancellation. */
	pthread_cancel(pthread_self());
	return 0;
}

static atomic_int went_on;

static void
pass_a_point(struct thing *t)
{
	(void)t;
	pthread_testcancel();
	atomic_store(&went_on, 1);
}

/* Fails when it acts within the done: the thread would take with it the right
   to complete what else the loop has left. */
START_TEST(a_cancellation_does_not_end_a_done)
{
	struct thing t;

	complete_without_loop(&t, work_cancelled, pass_a_point);
	ck_assert_int_eq(atomic_load(&went_on), 1);
}
END_TEST

API_MAIN("pool_fair",
	 the_room_of_a_cancelled_job_is_room,
	 a_job_of_another_thread_has_its_turn,
	 a_loops_own_jobs_come_first,
	 a_job_of_another_loop_has_its_turn,
	 a_done_may_end_its_thread,
	 a_cancellation_does_not_end_a_done)
