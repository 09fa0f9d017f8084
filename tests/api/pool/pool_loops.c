/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool and its loops: several of them, other threads that submit, loops
 * of other coordinators, loops that go away; room, and the wait for it; wrong
 * use.
 */
#include "../../support/pool_util.h"

/* ---- several ---- */

enum { LOOPS = 3, EACH = 2000 };

struct looped {
	struct thing t[EACH];
	evc_reactor *r;
	int tid, n_done, n_wrong, left;
};

static void
looped_done(struct thing *t)
{
	struct looped *l = t->arg;

	l->n_wrong += t->done_on != l->tid;
	l->n_done++;
	if (l->left-- > 0 &&
	    evc_pool_submit(pool, l->r, &t->job) < 0)
		l->n_wrong++;
}

static evc_status
looped_setup(evc_reactor *r, void *arg)
{
	struct looped *l = arg;
	int i;

	l->r = r;
	l->tid = own_tid();
	l->left = 3 * EACH;
	for (i = 0; i < EACH; i++) {
		thing_init(&l->t[i], work_now);
		l->t[i].then = looped_done;
		l->t[i].arg = l;
		if (evc_pool_submit(pool, r, &l->t[i].job) < 0)
			return EVC_INTERNAL;
	}
	return 0;
}

START_TEST(each_job_is_completed_on_its_own_loop)
{
	evc_pool_opts o = { .n_threads = 3, .flags = EVC_POOL_FINISH };
	struct looped *l = calloc(LOOPS, sizeof(*l));
	int i;

	ck_assert_ptr_nonnull(l);
	pool_begin(&o);
	for (i = 0; i < LOOPS; i++)
		OK(evc_reactor_start(coord, "loop", looped_setup, &l[i], NULL,
				     NULL));
	UNTIL(atomic_load(&n_things_done) == LOOPS * EACH * 4);
	OK(evc_request_stop(coord, 0, "enough"));
	OK(evc_join(coord, NULL, NULL));
	for (i = 0; i < LOOPS; i++) {
		ck_assert_int_eq(l[i].n_wrong, 0);
		ck_assert_int_eq(l[i].n_done, 4 * EACH);
	}
	pool_end();
	free(l);
}
END_TEST

START_TEST(a_thread_may_submit_for_a_loop)
{
	struct thing t[100];
	int i;

	pool_begin_n(2);
	for (i = 0; i < 100; i++) {
		thing_init(&t[i], work_now);
		OK(submit_from_afar(&t[i]));
	}
	TURN_UNTIL(atomic_load(&n_things_done) == 100);
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(t[i].done_on, own_tid());
	pool_end();
}
END_TEST

static evc_status
submit_from_work(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	return evc_pool_submit(pool, evc_home(coord), t->arg);
}

START_TEST(work_may_submit)
{
	struct thing a, b;

	pool_begin_n(1);
	thing_init(&b, work_now);
	thing_init(&a, submit_from_work);
	a.arg = &b.job;
	submit(&a);
	TURN_UNTIL(atomic_load(&n_things_done) == 2);
	ck_assert_int_eq(a.result, 0);
	ck_assert_int_eq(b.done_on, own_tid());
	pool_end();
}
END_TEST

/* The promise: a submit has returned, so a join that begins now waits. */
START_TEST(a_join_waits_for_a_job_of_another_thread)
{
	struct thing t;
	int i;

	pool_begin_n(1);
	for (i = 0; i < 50; i++) {
		thing_init(&t, work_now);
		OK(submit_from_afar(&t));
		OK(evc_join(coord, NULL, NULL));
		ck_assert_int_eq(atomic_load(&t.done), 1);
		OK(evc_clear_stop(coord));
	}
	pool_end();
}
END_TEST

START_TEST(evc_last_error_is_left_as_it_is)
{
	struct thing t;
	char before[256];

	pool_begin_n(1);
	REFUSED(EVC_INVALID_ARGUMENT, evc_job_cancel(NULL));
	snprintf(before, sizeof(before), "%s", evc_last_error());
	submit_new(&t, work_now);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_str_eq(evc_last_error(), before);
	pool_end();
}
END_TEST

static evc_status far_status;

static evc_status
far_submit(evc_coord *c, void *arg)
{
	struct thing *t = arg;
	char before[256];

	(void)c;
	(void)evc_job_cancel(NULL);
	snprintf(before, sizeof(before), "%s", evc_last_error());
	far_status = evc_pool_submit(pool, evc_home(coord), &t->job);
	return strcmp(before, evc_last_error()) == 0 ? 0 : EVC_INTERNAL;
}

START_TEST(also_on_a_thread_that_is_not_the_loops)
{
	struct thing t;
	evc_verdict v;

	pool_begin_n(1);
	thing_init(&t, work_now);
	OK(evc_thread_start(coord, "far", far_submit, &t, NULL, NULL));
	OK(evc_join(coord, NULL, &v));
	ck_assert_int_eq(far_status, 0);
	ck_assert_int_eq(atomic_load(&t.done), 1);
	pool_end();
}
END_TEST

/* ---- other coordinators ---- */

START_TEST(a_scopes_loop_may_be_used)
{
	evc_coord *scope;
	struct thing t;

	pool_begin_n(1);
	OK(evc_scope_new(coord, "scope", NULL, &scope));
	OK(evc_scope_ready(scope));
	thing_init(&t, work_stay);
	OK(evc_pool_submit(pool, evc_home(scope), &t.job));
	UNTIL(atomic_load(&t.begun));
	/* Its stop tells the job, but does not stop the pool. */
	OK(evc_request_stop(scope, 0, "enough"));
	TURN_UNTIL(evc_job_should_stop(&t.job));
	atomic_store(&t.open, 1);
	TURN_UNTIL(atomic_load(&t.done));
	thing_init(&t, work_now);
	REFUSED(EVC_CANCELLED, evc_pool_submit(pool, evc_home(scope), &t.job));
	OK(evc_join(scope, NULL, NULL));
	OK(evc_free(scope));
	submit_new(&t, work_now);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, 0);
	pool_end();
}
END_TEST

/* A pool in another tree: its own coordinator's join waits, too. */
START_TEST(a_stranger_s_loop_may_be_used)
{
	evc_coord *other = new_coord(NULL);
	evc_join_opts brief = { .grace = 0.05 };
	evc_pool *theirs;
	struct thing t, q;

	pool_begin_n(1);
	OK(evc_pool_new(other, "theirs", NULL, &theirs));
	OK(evc_pool_resize(theirs, 1));
	thing_init(&t, work_stay);
	thing_init(&q, work_now);
	OK(evc_pool_submit(theirs, evc_home(coord), &t.job));
	OK(evc_pool_submit(theirs, evc_home(coord), &q.job));
	UNTIL(atomic_load(&t.begun));
	ck_assert(!evc_all_stopped(other));
	/* The stop of the loop's coordinator: what has not begun is cancelled,
	   what has is told, and the pool goes on. */
	OK(evc_request_stop(coord, 0, "enough"));
	TURN_UNTIL(atomic_load(&q.done));
	ck_assert(evc_job_should_stop(&t.job));
	ck_assert_int_eq(atomic_load(&t.done), 0);
	atomic_store(&t.open, 1);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(q.result, EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&q.begun), 0);
	ck_assert(!evc_should_stop(evc_pool_scope(theirs)));
	OK(evc_join(coord, NULL, NULL));
	OK(evc_clear_stop(coord));
	/* The stop of the pool's coordinator. */
	thing_init(&t, work_stay);
	OK(evc_pool_submit(theirs, evc_home(coord), &t.job));
	UNTIL(atomic_load(&t.begun));
	OK(evc_request_stop(other, 0, "enough"));
	ck_assert_int_eq(evc_join(other, &brief, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert(evc_job_should_stop(&t.job));
	atomic_store(&t.open, 1);
	TURN_UNTIL(atomic_load(&t.done));
	OK(evc_join(other, NULL, NULL));
	OK(evc_pool_free(theirs));
	OK(evc_free(other));
	pool_end();
}
END_TEST

/* A join of the pool's own coordinator, while the loop is somebody else's. */
START_TEST(a_join_waits_for_jobs_of_a_stranger_s_loop)
{
	evc_coord *other = new_coord(NULL);
	evc_pool *theirs;
	struct joiner j;
	struct thing t;

	pool_begin_n(1);
	OK(evc_pool_new(other, "theirs", NULL, &theirs));
	thing_init(&t, work_stay);
	OK(evc_pool_submit(theirs, evc_home(coord), &t.job));
	UNTIL(atomic_load(&t.begun));
	join_begin(&j, other, 0, 0);
	t_sleep(0.05);
	ck_assert(!evc_should_stop(other));
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&t.open, 1);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, 0);
	OK(join_end(&j));
	OK(evc_pool_free(theirs));
	OK(evc_free(other));
	pool_end();
}
END_TEST

/* ---- loops that go ---- */

/* One after the other, at the same address or another one. */
START_TEST(loops_may_come_and_go)
{
	struct ev_loop *l;
	evc_reactor *r;
	struct thing t;
	int i;

	pool_begin_n(2);
	for (i = 0; i < 50; i++) {
		l = ev_loop_new(EVFLAG_AUTO);
		OK(evc_reactor_attach(coord, "passing", l, &r));
		thing_init(&t, work_now);
		OK(evc_pool_submit(pool, r, &t.job));
		REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_detach(r));
		while (!atomic_load(&t.done))
			ev_run(l, EVRUN_NOWAIT);
		ev_run(l, EVRUN_NOWAIT);
		OK(evc_reactor_detach(r));
		ev_loop_destroy(l);
	}
	pool_end();
}
END_TEST

/* Destroyed under its jobs: each is completed all the same. */
START_TEST(a_loop_that_is_destroyed)
{
	struct thing running, over, queued[10], late;
	struct ev_loop *l = ev_loop_new(EVFLAG_AUTO);
	evc_reactor *r;
	int i;

	pool_begin_n(1);
	OK(evc_reactor_attach(coord, "doomed", l, &r));
	thing_init(&over, work_now);
	OK(evc_pool_submit(pool, r, &over.job));
	UNTIL(pool_info().n_done == 1);
	thing_init(&running, work_stay);
	OK(evc_pool_submit(pool, r, &running.job));
	UNTIL(atomic_load(&running.begun));
	for (i = 0; i < 10; i++) {
		thing_init(&queued[i], work_now);
		OK(evc_pool_submit(pool, r, &queued[i].job));
	}
	ev_loop_destroy(l);
	/* All but the one that runs. */
	ck_assert_int_eq(atomic_load(&n_things_done), 11);
	thing_init(&late, work_now);
	REFUSED(EVC_NOT_FOUND, evc_pool_submit(pool, r, &late.job));
	REFUSED(EVC_FAILED_PRECONDITION, evc_pool_free(pool));
	ck_assert(evc_job_should_stop(&running.job));
	atomic_store(&running.open, 1);
	UNTIL(atomic_load(&n_things_done) == 12);
	ck_assert_int_eq(over.result, EVC_CANCELLED);
	ck_assert_int_eq(running.result, EVC_CANCELLED);
	for (i = 0; i < 10; i++) {
		ck_assert_int_eq(queued[i].result, EVC_CANCELLED);
		ck_assert_int_eq(atomic_load(&queued[i].begun), 0);
	}
	/* The others go on. */
	submit_new(&late, work_now);
	TURN_UNTIL(atomic_load(&late.done));
	ck_assert_int_eq(late.result, 0);
	UNTIL(evc_pool_free(pool) == 0);
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}
END_TEST

/* Nothing is over when it goes, so that the pool's thread finds out. */
START_TEST(a_loop_that_is_destroyed_while_all_of_its_jobs_run)
{
	struct ev_loop *l = ev_loop_new(EVFLAG_AUTO);
	struct thing t[2];
	evc_reactor *r;
	int i;

	pool_begin_n(2);
	OK(evc_reactor_attach(coord, "doomed", l, &r));
	for (i = 0; i < 2; i++) {
		thing_init(&t[i], work_stay);
		OK(evc_pool_submit(pool, r, &t[i].job));
	}
	UNTIL(pool_info().n_running == 2);
	ev_loop_destroy(l);
	for (i = 0; i < 2; i++)
		atomic_store(&t[i].open, 1);
	UNTIL(atomic_load(&n_things_done) == 2);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(t[i].result, EVC_CANCELLED);
		ck_assert_int_ne(t[i].done_on, own_tid());
	}
	UNTIL(evc_pool_free(pool) == 0);
	OK(evc_free(coord));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- room ---- */

START_TEST(as_many_as_may_be_are_queued)
{
	evc_pool_opts o = { .n_threads = 1, .capacity = 5 }; /* 8 */
	struct thing first, t[9], far[9];
	int i;

	pool_begin(&o);
	submit_new(&first, work_stay);
	UNTIL(atomic_load(&first.begun));
	for (i = 0; i < 9; i++) {
		thing_init(&t[i], work_now);
		thing_init(&far[i], work_now);
	}
	for (i = 0; i < 8; i++) {
		submit(&t[i]);
		OK(submit_from_afar(&far[i]));
	}
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_pool_submit(pool, evc_home(coord), &t[8].job));
	ck_assert_int_eq(submit_from_afar(&far[8]), -EVC_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(pool_info().n_queued, 16);
	/* One less, one more. */
	OK(evc_job_cancel(&t[3].job));
	ev_run(loop, EVRUN_NOWAIT);
	atomic_store(&first.open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 17);
	submit(&t[8]);
	OK(submit_from_afar(&far[8]));
	TURN_UNTIL(atomic_load(&n_things_done) == 19);
	pool_end();
}
END_TEST

/* The job that fills the ring, and those that wait for room. */
static struct thing filler[3];

static void
fill(unsigned flags)
{
	evc_pool_opts o = { .n_threads = 1, .capacity = 2, .flags = flags };
	int i;

	pool_begin(&o);
	submit_new(&filler[0], work_stay);
	UNTIL(atomic_load(&filler[0].begun));
	for (i = 1; i < 3; i++) {
		thing_init(&filler[i], work_now);
		OK(submit_from_afar(&filler[i]));
	}
}

static void
wait_begin(struct submitter *s, struct thing *t, double timeout)
{
	memset(s, 0, sizeof(*s));
	s->waits = true;
	s->timeout = timeout;
	thing_init(t, work_now);
	submitter_begin(s, t);
}

START_TEST(submit_wait_waits_for_room)
{
	struct submitter s[3];
	struct thing t[3];
	int i;

	fill(0);
	for (i = 0; i < 3; i++)
		wait_begin(&s[i], &t[i], INFINITY);
	for (i = 0; i < 3; i++) {
		UNTIL(atomic_load(&s[i].tid) != 0);
		until_asleep(atomic_load(&s[i].tid));
		ck_assert(!atomic_load(&s[i].done));
	}
	atomic_store(&filler[0].open, 1);
	for (i = 0; i < 3; i++)
		OK(submitter_end(&s[i]));
	TURN_UNTIL(atomic_load(&n_things_done) == 6);
	pool_end();
}
END_TEST

START_TEST(submit_wait_waits_so_long_at_most)
{
	struct submitter s;
	struct thing t;

	fill(0);
	wait_begin(&s, &t, 0.02);
	ck_assert_int_eq(submitter_end(&s), -EVC_DEADLINE_EXCEEDED);
	wait_begin(&s, &t, 0);
	ck_assert_int_eq(submitter_end(&s), -EVC_DEADLINE_EXCEEDED);
	wait_begin(&s, &t, NAN);
	ck_assert_int_eq(submitter_end(&s), -EVC_INVALID_ARGUMENT);
	atomic_store(&filler[0].open, 1);
	TURN_UNTIL(atomic_load(&n_things_done) == 3);
	pool_end();
}
END_TEST

START_TEST(submit_wait_hears_the_stop)
{
	struct submitter s;
	struct thing t;
	int i;

	for (i = 0; i < 4; i++) {
		fill(i & 2 ? EVC_POOL_FINISH : 0);
		wait_begin(&s, &t, INFINITY);
		UNTIL(atomic_load(&s.tid) != 0);
		until_asleep(atomic_load(&s.tid));
		OK(evc_request_stop(i & 1 ? coord : evc_pool_scope(pool), 0,
				    "enough"));
		UNTIL(atomic_load(&s.done));
		ck_assert_int_eq(submitter_end(&s), -EVC_CANCELLED);
		atomic_store(&filler[0].open, 1);
		TURN_UNTIL(atomic_load(&n_things_done) == 3);
		OK(evc_join(coord, NULL, NULL));
		pool_end();
	}
}
END_TEST

static evc_status
wait_in_work(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	return -evc_pool_submit_wait(pool, evc_home(coord), t->arg, 1);
}

START_TEST(submit_wait_is_not_for_loops_and_not_for_the_pool)
{
	struct thing t, u;

	pool_begin_n(1);
	thing_init(&u, work_now);
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_pool_submit_wait(pool, evc_home(coord), &u.job, 1));
	HAS(evc_last_error(), "evc_pool_submit_wait: a loop cannot wait");
	REFUSED(EVC_INVALID_ARGUMENT, evc_pool_submit_to(pool, NULL, &u.job, 1));
	HAS(evc_last_error(), "evc_pool_submit_to: no loop");
	thing_init(&t, wait_in_work);
	t.arg = &u.job;
	submit(&t);
	TURN_UNTIL(atomic_load(&t.done));
	ck_assert_int_eq(t.result, EVC_FAILED_PRECONDITION);
	ck_assert_int_eq(atomic_load(&u.begun), 0);
	pool_end();
}
END_TEST

API_MAIN("pool_loops", each_job_is_completed_on_its_own_loop,
	 a_thread_may_submit_for_a_loop, work_may_submit,
	 a_join_waits_for_a_job_of_another_thread,
	 evc_last_error_is_left_as_it_is,
	 also_on_a_thread_that_is_not_the_loops, a_scopes_loop_may_be_used,
	 a_stranger_s_loop_may_be_used,
	 a_join_waits_for_jobs_of_a_stranger_s_loop, loops_may_come_and_go,
	 a_loop_that_is_destroyed,
	 a_loop_that_is_destroyed_while_all_of_its_jobs_run,
	 as_many_as_may_be_are_queued, submit_wait_waits_for_room,
	 submit_wait_waits_so_long_at_most, submit_wait_hears_the_stop,
	 submit_wait_is_not_for_loops_and_not_for_the_pool)
