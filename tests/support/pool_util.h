/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the job pool share: jobs that note who did what with them
 * and how often, jobs that stay until they are let go, and a coordinator with a
 * loop and a pool.
 */
#ifndef TESTS_SUPPORT_POOL_UTIL_H
#define TESTS_SUPPORT_POOL_UTIL_H

#include "api_util.h"

#include <ev.h>

struct thing {
	evc_job job; /* first: the job is the thing */
	atomic_int begun, done; /* how often */
	evc_status gives;       /* what its work returns */
	evc_status result;      /* what done was told */
	int worked_on, done_on; /* the threads */
	atomic_int open;        /* stays until this is set */
	atomic_int told;        /* it saw should_stop */
	void (*then)(struct thing *); /* in done */
	void *arg;
};

static MAYBE_UNUSED evc_status
work_now(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	t->worked_on = own_tid();
	atomic_fetch_add(&t->begun, 1);
	return t->gives;
}

static MAYBE_UNUSED evc_status
work_stay(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	t->worked_on = own_tid();
	atomic_fetch_add(&t->begun, 1);
	while (!atomic_load(&t->open))
		t_sleep(0.0005);
	return t->gives;
}

/* Until it is told to end. */
static MAYBE_UNUSED evc_status
work_until_told(evc_job *job)
{
	struct thing *t = (struct thing *)job;

	t->worked_on = own_tid();
	atomic_fetch_add(&t->begun, 1);
	while (!evc_job_should_stop(job) && !atomic_load(&t->open))
		t_sleep(0.0005);
	atomic_store(&t->told, evc_job_should_stop(job));
	return t->gives;
}

static atomic_int n_things_done MAYBE_UNUSED;

static MAYBE_UNUSED void
note_done(evc_job *job, evc_status result)
{
	struct thing *t = (struct thing *)job;
	void (*then)(struct thing *) = t->then;

	t->result = result;
	t->done_on = own_tid();
	atomic_fetch_add(&n_things_done, 1);
	/* Without a `then` the test may use the thing again from here on. */
	atomic_fetch_add(&t->done, 1);
	if (then != NULL)
		then(t);
}

static MAYBE_UNUSED void
thing_init(struct thing *t, evc_status (*work)(evc_job *))
{
	memset(t, 0, sizeof(*t));
	t->job.work = work;
	t->job.done = note_done;
	t->result = -77;
}

/* ---- a loop and a pool ---- */

static struct ev_loop *loop MAYBE_UNUSED;
static evc_coord *coord MAYBE_UNUSED;
static evc_pool *pool MAYBE_UNUSED;

static MAYBE_UNUSED void
pool_begin(const evc_pool_opts *o)
{
	atomic_store(&n_things_done, 0);
	loop = ev_loop_new(EVFLAG_AUTO);
	coord = new_coord(loop);
	OK(evc_pool_new(coord, NULL, o, &pool));
	ck_assert_ptr_nonnull(pool);
}

static MAYBE_UNUSED void
pool_end(void)
{
	ck_assert_msg(evc_pool_free(pool) == 0, "%s", evc_last_error());
	ck_assert_msg(evc_free(coord) == 0, "%s", evc_last_error());
	ev_loop_destroy(loop);
}

static MAYBE_UNUSED void
pool_begin_n(unsigned n_threads)
{
	evc_pool_opts o = { .n_threads = n_threads };

	pool_begin(&o);
}

static MAYBE_UNUSED void
submit(struct thing *t)
{
	evc_status st = evc_pool_submit(pool, evc_home(coord), &t->job);

	ck_assert_msg(st == 0, "%d: %s", st, evc_last_error());
}

/* Submit one of a kind. */
static MAYBE_UNUSED void
submit_new(struct thing *t, evc_status (*work)(evc_job *))
{
	thing_init(t, work);
	submit(t);
}

/* Run the loop until a condition is true. */
#define TURN_UNTIL(cond) \
	do { \
		double turn_until_ = t_now() + T_LIMIT; \
		while (!(cond)) { \
			ck_assert_msg(t_now() < turn_until_, \
				      "never came true: %s", #cond); \
			ev_run(loop, EVRUN_NOWAIT); \
			t_sleep(0.0002); \
		} \
	} while (0)

static MAYBE_UNUSED evc_pool_info
pool_info(void)
{
	evc_pool_info i;

	OK(evc_pool_get(pool, &i));
	return i;
}

/* A call of the loop's from elsewhere: evc_pool_submit on a thread. */
struct submitter {
	pthread_t thread;
	evc_reactor *r;
	struct thing *t;
	evc_status status;
	bool waits;
	double timeout;
	atomic_int tid, done;
};

static MAYBE_UNUSED void *
submitter_main(void *arg)
{
	struct submitter *s = arg;

	atomic_store(&s->tid, own_tid());
	s->status = s->waits ? evc_pool_submit_wait(pool, s->r, &s->t->job,
						    s->timeout) :
			       evc_pool_submit(pool, s->r, &s->t->job);
	atomic_store(&s->done, 1);
	return NULL;
}

static MAYBE_UNUSED void
submitter_begin(struct submitter *s, struct thing *t)
{
	s->r = evc_home(coord);
	s->t = t;
	OK(pthread_create(&s->thread, NULL, submitter_main, s));
}

static MAYBE_UNUSED evc_status
submitter_end(struct submitter *s)
{
	OK(pthread_join(s->thread, NULL));
	return s->status;
}

/* From another thread, at once. */
static MAYBE_UNUSED evc_status
submit_from_afar(struct thing *t)
{
	struct submitter s = { .waits = false };

	submitter_begin(&s, t);
	return submitter_end(&s);
}

#endif
