/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submit and cancel.  A loop with jobs under way submits without a lock: the
 * thread remembers its last port, and a port with this thread in `active`
 * cannot be taken away.  All other submits take the pool's lock.  A submitter
 * puts the job into its ring, then reads the word of the crowd, which says
 * whether to call a thread and whether the pool was closed meanwhile.  A close
 * marks the word, then sweeps the rings.
 * Called by: the program (evc_pool_submit, _submit_wait, _submit_to,
 * evc_job_cancel, evc_job_should_stop).
 * Locks: the pool's, taken but for the short way; the rings, crowd, ending and
 * each job's state are atomic.
 */
#include "pool/pool.h"

#include <math.h>
#include <stdio.h>

#include "base/self.h"
#include "base/deadline.h"

/* The port of the thread's last submit; pool: a number that is never used
   twice. */
static __thread struct {
	uint64_t pool;
	struct pool_port *port;
} last;

evc_status
evc__pool_check(const evc_pool *pool, const char *func)
{
	if (pool == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no pool", func);
	if (evc__pool_inherited(pool))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: this is a fork child, the pool is its "
				  "parent's",
				  func);
	return 0;
}

/* A call that submits a job. */
struct submission {
	const char *func;
	bool waits;             /* for room */
	struct pool_port *full; /* set where there was no room */
};

static evc_status
refuse_job(const char *func, evc_status st, const char *why)
{
	return evc_refuse(st, "%s: %s", func, why);
}

/* ---- the two rings ---- */

static void
prepare_job(struct pool_port *p, evc_job *job, uint32_t state)
{
	job->port_ = p;
	sync_store_relaxed(JOB_STATE(job), state);
}

/* Is a thread to be called, or the job to be taken back? */
static inline bool
needs_call(const evc_pool *pool, const struct pool_port *p, uint64_t w)
{
	if (w & CROWD_CLOSED || N_LIVE(w) == 0 || sync_load_sc(&p->ending) != 0)
		return true;
	return !(w & CROWD_WAKING) &&
	       (N_IDLE(w) > 0 || N_LIVE(w) < sync_load_relaxed(&pool->limit));
}

/* Lock held, the job stands in its ring: call a thread; < 0: the caller has to
   take the job back. */
static evc_status
call_thread(evc_pool *pool, struct pool_port *p, const char *func)
{
	uint64_t w = sync_load_sc(&pool->crowd);

	/* A new round has begun. */
	if ((w & CROWD_CLOSED) && !evc_should_stop(pool->scope))
		w = sync_and(&pool->crowd, ~CROWD_CLOSED) & ~CROWD_CLOSED;
	if ((w & CROWD_CLOSED) || sync_load_sc(&p->ending) != 0)
		return refuse_job(func, -EVC_CANCELLED, "a stop was requested");
	/* A thread that comes up after the look finds the job by itself. */
	if (N_LIVE(w) == 0)
		return evc__crowd_first(pool);
	evc__crowd_call(pool, true);
	return 0;
}

/* false: another thread has the job, so the job was accepted.  No other job
   comes into the slot meanwhile. */
static bool
take_back_job(struct pool_ring *r, uint64_t slot, evc_job *job)
{
	if (!ring_withdraw(r, slot, job))
		return false;
	sync_store_relaxed(JOB_STATE(job), 0);
	return true;
}

static evc_status
put_own(evc_pool *pool, struct pool_port *p, evc_job *job, bool locked,
	const char *func)
{
	evc_status st = 0;
	uint64_t slot;

	if (__builtin_expect(sync_load_relaxed(JOB_STATE(job)) != 0, 0))
		return refuse_job(func, -EVC_ALREADY_EXISTS,
				  "the job is not completed");
	prepare_job(p, job, JOB_QUEUED);
	/* Counted before any thread can complete the job. */
	sync_store_relaxed(&p->n_own, sync_load_relaxed(&p->n_own) + 1);
	slot = ring_put(&p->own, job);
	if (__builtin_expect(slot == 0, 0)) {
		sync_store_relaxed(JOB_STATE(job), 0);
		st = refuse_job(func, -EVC_RESOURCE_EXHAUSTED, "there is no room");
	} else if (needs_call(pool, p, sync_load_sc(&pool->crowd))) {
		if (!locked)
			sync_lock(&pool->lock);
		st = call_thread(pool, p, func);
		if (!locked)
			sync_unlock(&pool->lock);
		if (st < 0 && !take_back_job(&p->own, slot, job))
			st = 0;
	}
	if (st < 0)
		sync_store(&p->n_own, sync_load_relaxed(&p->n_own) - 1);
	else
		sync_store_relaxed(&p->n_own_submitted,
				   sync_load_relaxed(&p->n_own_submitted) + 1);
	return st;
}

/* Lock held, by a thread other than the loop's. */
static evc_status
put_foreign(evc_pool *pool, struct pool_port *p, evc_job *job,
	    struct submission *by)
{
	uint32_t none = 0;
	uint64_t slot;
	evc_status st;

	if (!sync_cas(JOB_STATE(job), &none, JOB_QUEUED | JOB_FOREIGN))
		return refuse_job(by->func, -EVC_ALREADY_EXISTS,
				  "the job is not completed");
	st = evc__port_expect(p);
	if (st < 0) {
		sync_store_relaxed(JOB_STATE(job), 0);
		return st;
	}
	job->port_ = p;
	slot = ring_put(&p->foreign, job);
	if (slot == 0) {
		sync_store_relaxed(JOB_STATE(job), 0);
		st = refuse_job(by->func, -EVC_RESOURCE_EXHAUSTED, "there is no room");
		by->full = p;
	} else {
		st = call_thread(pool, p, by->func);
		if (st < 0 && !take_back_job(&p->foreign, slot, job))
			st = 0;
	}
	if (st < 0)
		evc__port_unexpect(p);
	else
		sync_add(&p->n_foreign_submitted, 1);
	return st;
}

/* ---- which one ---- */

/* Lock held: does the calling thread run the loop of p?  Then the task is
   on. */
static evc_status
own_loop(struct pool_port *p, bool *ret_own, const char *func)
{
	int tid = sync_load_relaxed(&p->tid);
	char said[256];
	evc_status st;

	*ret_own = tid == evc__tid();
	if (tid != 0 && !*ret_own)
		return 0;
	/* On the first try a refusal is an answer, not an error. */
	snprintf(said, sizeof said, "%s", evc_last_error());
	st = evc__port_activate(p);
	if (st == 0)
		*ret_own = true;
	else if (*ret_own && st == -EVC_FAILED_PRECONDITION)
		return refuse_job(func, -EVC_NOT_FOUND, "the loop is gone");
	else if (st != -EVC_FAILED_PRECONDITION)
		return st;
	else
		evc_refuse(0, "%s", said);
	return 0;
}

/* Lock held. */
static evc_status
submit_locked(evc_pool *pool, evc_reactor *r, evc_job *job,
	      struct submission *by)
{
	struct pool_port *p;
	evc_status st;
	bool own;

	p = evc__port_of(pool, r, by->func, &st);
	if (p == NULL)
		return st;
	st = own_loop(p, &own, by->func);
	if (st < 0)
		return st;
	if (!own)
		return put_foreign(pool, p, job, by);
	st = by->waits ? refuse_job(by->func, -EVC_FAILED_PRECONDITION,
				    "a loop cannot wait") :
			 put_own(pool, p, job, true, by->func);
	last.pool = pool->number;
	last.port = p;
	evc__port_settle(p);
	return st;
}

static evc_status
check_job(const evc_pool *pool, const evc_reactor *r, const evc_job *job,
	  const char *func)
{
	evc_status st = evc__pool_check(pool, func);

	if (st < 0)
		return st;
	if (r == NULL || job == NULL || job->work == NULL)
		return refuse_job(func, -EVC_INVALID_ARGUMENT,
				  "no loop, no job, or one without work");
	return 0;
}

static evc_status
submit_job(evc_pool *pool, evc_reactor *r, evc_job *job,
	   struct submission *by)
{
	evc_status st = check_job(pool, r, job, by->func);

	if (st < 0)
		return st;
	if (evc_should_stop(pool->scope) ||
	    evc_should_stop(evc_reactor_coord(r)))
		return refuse_job(by->func, -EVC_CANCELLED, "a stop was requested");
	sync_lock(&pool->lock);
	st = submit_locked(pool, r, job, by);
	sync_unlock(&pool->lock);
	return st;
}

/* Not inlined: the short way would save registers for its sake. */
static __attribute__((noinline)) evc_status
submit_slowly(evc_pool *pool, evc_reactor *r, evc_job *job, const char *func)
{
	struct submission by = { .func = func };

	return submit_job(pool, r, job, &by);
}

evc_status
evc_pool_submit(evc_pool *pool, evc_reactor *r, evc_job *job)
{
	struct pool_port *p = last.port;

	if (__builtin_expect(pool == NULL || last.pool != pool->number ||
				     sync_load_relaxed(&p->active) !=
					     evc__tid() ||
				     p->r != r || p->task.reactor_ == NULL ||
				     job == NULL || job->work == NULL ||
				     evc__pool_inherited(pool) ||
				     evc_should_stop(pool->scope) ||
				     evc_should_stop(p->c),
			     0))
		return submit_slowly(pool, r, job, __func__);
	return put_own(pool, p, job, false, __func__);
}

/* ---- with patience ---- */

/* false: the time is over. */
static bool
wait_for_room(struct pool_port *p, uint64_t until)
{
	struct pool_ring *ring = &p->foreign;
	uint32_t seen = sync_load_sc(&ring->room);
	uint64_t at, left;

	/* The word first, then the look: a thread that empties a slot looks at
	   the word afterwards. */
	sync_store_sc(&ring->waiting, 1);
	at = sync_load_sc(&ring->tail);
	if (sync_load_sc(&ring->holes) != 0 ||
	    ring_free_slot(ring, &at) != NULL ||
	    sync_load_sc(&p->ending) != 0)
		return true;
	/* A stop rings, unless the helper thread hangs: the caller looks again,
	   and is refused. */
	left = evc__deadline_left_ns(evc__deadline_look(until, INFINITY));
	if (left > 0)
		sync_futex_wait(&ring->room, seen, left);
	return left > 0;
}

/* May the calling thread wait for room?  The pool's coordinator is the parent
   of its scope. */
static evc_status
may_wait(const evc_pool *pool, double timeout, const char *func)
{
	evc_status st = evc__pool_check(pool, func);

	if (st < 0 || !(timeout > 0))
		return st;
	if (evc__pool_self() == pool)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: a thread of the pool would wait for "
				  "itself",
				  func);
	return evc_may_wait(evc_scope_parent(pool->scope), func);
}

/* The loop is r's or the handle's.  With a handle the loop is entered for each
   try, not for the wait: the end of a loop waits for threads inside the loop's
   refgate, and room may come only after this end. */
static evc_status
submit_until_room(evc_pool *pool, evc_reactor *r, evc_loop_ref *loop,
		  evc_job *job, double timeout, const char *func)
{
	struct submission by = { .func = func, .waits = timeout > 0 };
	uint64_t until;
	evc_status st;

	if (isnan(timeout))
		return refuse_job(func, -EVC_INVALID_ARGUMENT,
				  "the time is no number");
	st = may_wait(pool, timeout, func);
	if (st == 0 && r == NULL && loop == NULL)
		st = refuse_job(func, -EVC_INVALID_ARGUMENT, "no loop");
	if (st < 0)
		return st;
	until = evc__deadline_in(timeout);
	for (;;) {
		by.full = NULL;
		if (loop != NULL)
			r = evc_loop_enter(loop);
		if (r == NULL)
			return refuse_job(func, -EVC_NOT_FOUND, "the loop is gone");
		st = submit_job(pool, r, job, &by);
		if (loop != NULL)
			evc_loop_leave(loop);
		if (by.full == NULL || (loop != NULL && !by.waits))
			return st;
		if (!wait_for_room(by.full, until))
			return refuse_job(func, -EVC_DEADLINE_EXCEEDED,
					  "there was no room in time");
	}
}

evc_status
evc_pool_submit_wait(evc_pool *pool, evc_reactor *r, evc_job *job,
		     double timeout)
{
	return submit_until_room(pool, r, NULL, job, timeout, __func__);
}

evc_status
evc_pool_submit_to(evc_pool *pool, evc_loop_ref *loop, evc_job *job,
		   double timeout)
{
	return submit_until_room(pool, NULL, loop, job, timeout, __func__);
}

/* ---- what is under way ---- */

evc_status
evc_job_cancel(evc_job *job)
{
	struct pool_port *p;
	uint32_t s;

	if (job == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_job_cancel: no job");
	s = sync_load(JOB_STATE(job));
	if (!(s & JOB_QUEUED))
		return evc_refuse(-EVC_NOT_FOUND,
				  "evc_job_cancel: it is in no pool, or over");
	p = job->port_;
	if (evc__pool_inherited(p->pool))
		return evc__pool_check(p->pool, "evc_job_cancel");
	if (ring_withdraw(s & JOB_FOREIGN ? &p->foreign : &p->own, job->slot_,
			  job)) {
		/* The loop may complete the job, and done may free the pool,
		   before we are through with the port. */
		sync_add(&p->refs, 1);
		sync_add(&p->n_cancelled, 1);
		evc__port_finish(p, NULL, job, EVC_CANCELLED);
		evc__port_drop(p);
		return 0;
	}
	/* A job that was completed meanwhile may be in a new submit: the swap
	   leaves such a job alone. */
	while (s & JOB_QUEUED)
		if (sync_cas(JOB_STATE(job), &s, s | JOB_CANCELLED))
			return 0;
	return evc_refuse(-EVC_NOT_FOUND, "evc_job_cancel: it is over");
}

bool
evc_job_should_stop(const evc_job *job)
{
	const struct pool_port *p;
	uint32_t s;

	if (job == NULL)
		return false;
	s = sync_load((_Atomic uint32_t *)(void *)(uintptr_t)&job->state_);
	if (!(s & JOB_QUEUED))
		return false;
	p = job->port_;
	return (s & JOB_CANCELLED) || (sync_load(&p->ending) & PORT_GONE) ||
	       (!p->finish && (sync_load(&p->ending) != 0 ||
			       evc_should_stop(p->pool->scope)));
}
