/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the schedules of the job pool share: a pool beside a loop on a thread of
 * its own, and jobs that are submitted by the test, by an actor, by the loop.
 */
#ifndef TESTS_SCHEDULES_POOL_STEPS_H
#define TESTS_SCHEDULES_POOL_STEPS_H

#include "schedules.h"

#include "../support/pool_util.h"

static evc_reactor *r MAYBE_UNUSED; /* of a loop on a thread of its own */

static MAYBE_UNUSED void
begin_with(const evc_pool_opts *o)
{
	coord = new_coord(NULL);
	OK(evc_reactor_start(coord, "loop", NULL, NULL, NULL, &r));
	OK(evc_pool_new(coord, NULL, o, &pool));
}

static MAYBE_UNUSED void
begin(unsigned n_threads, double idle)
{
	begin_with(&(evc_pool_opts){ .n_threads = n_threads, .idle = idle });
}

static MAYBE_UNUSED void
end_loop(void)
{
	seam_reset();
	OK(evc_request_stop(coord, 0, "over"));
	OK(evc_join(coord, NULL, NULL));
}

static MAYBE_UNUSED void
end(void)
{
	end_loop();
	ck_assert_msg(evc_pool_free(pool) == 0, "%s", evc_last_error());
	OK(evc_free(coord));
}

/* ---- a job of the test's ---- */

static MAYBE_UNUSED evc_status
put(struct thing *t, evc_status (*work)(evc_job *))
{
	thing_init(t, work);
	return evc_pool_submit(pool, r, &t->job);
}

/* A thread is in it, and stays. */
static MAYBE_UNUSED void
put_busy(struct thing *t)
{
	OK(put(t, work_stay));
	UNTIL(atomic_load(&t->begun));
}

/* Somebody else comes to a place for it, and stands there.  Returns the
   hold. */
static MAYBE_UNUSED int
put_held(struct thing *t, evc_status (*work)(evc_job *), const char *op,
	 const char *func, int nth)
{
	int h = seam_hold(op, func, nth);

	OK(put(t, work));
	held_at(h, op, func);
	return h;
}

/* ---- by others ---- */

static MAYBE_UNUSED evc_status
do_submit(evc_coord *c, void *arg)
{
	(void)c;
	return put(arg, work_now);
}

/* With far more patience than the test has. */
static MAYBE_UNUSED evc_status
do_submit_wait(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	(void)c;
	thing_init(t, work_now);
	return evc_pool_submit_wait(pool, r, &t->job, 60);
}

static MAYBE_UNUSED evc_status
do_cancel(evc_coord *c, void *arg)
{
	struct thing *t = arg;

	(void)c;
	return evc_job_cancel(&t->job);
}

/* A job that a loop submits itself, without a lock if it can. */
struct own {
	struct thing t; /* first */
	evc_status status;
	atomic_int said;
};

static MAYBE_UNUSED void
submit_and_say(evc_reactor *here, evc_status why, void *arg)
{
	struct own *o = arg;

	(void)why;
	o->status = evc_pool_submit(pool, here, &o->t.job);
	atomic_store(&o->said, 1);
}

/* It will, soon. */
static MAYBE_UNUSED void
own_begin(struct own *o, evc_reactor *there, evc_status (*work)(evc_job *))
{
	evc_loop_ref *l = evc_loop_of(there);

	memset(o, 0, sizeof(*o));
	thing_init(&o->t, work);
	OK(evc_post(l, submit_and_say, o));
	evc_loop_release(l);
}

/* It has: what it was told. */
static MAYBE_UNUSED evc_status
own_end(struct own *o)
{
	UNTIL(atomic_load(&o->said));
	return o->status;
}

/* ---- what becomes of it ---- */

static MAYBE_UNUSED void
let_end(struct thing *t)
{
	atomic_store(&t->open, 1);
}

/* It is completed, once, with that result. */
static MAYBE_UNUSED void
over(struct thing *t, evc_status result)
{
	UNTIL(atomic_load(&t->done));
	ck_assert_int_eq(atomic_load(&t->done), 1);
	ck_assert_int_eq(t->result, result);
}

/* It is completed, and was never begun. */
static MAYBE_UNUSED void
over_unbegun(struct thing *t)
{
	over(t, EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&t->begun), 0);
}

#endif
