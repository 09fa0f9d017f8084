/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of a pool: its own claim, then the rings, then jobs that other
 * threads have claimed and not begun; then sleep.  While the rings have work,
 * the thread looks now and then at another seat's claim: a claim that has not
 * moved since the last look belongs to a thread blocked in a job, and comes
 * before new work.
 * Called by: pool_crowd.c starts the threads.
 * Locks: the pool's, to give up the seat; seat.ring, at, end and the counts are
 * atomic.
 */
#include "pool/pool.h"

#include <math.h>

#include "base/cpus.h"

static __thread struct pool_seat *sitting;

evc_pool *
evc__pool_self(void)
{
	return sitting != NULL ? sitting->pool : NULL;
}

/* A job of the thread's own claim. */
static evc_job *
from_claim(struct pool_seat *s)
{
	struct pool_ring *r = sync_load_relaxed(&s->ring);
	uint64_t at = sync_load_relaxed(&s->at);
	uint64_t end = sync_load_relaxed(&s->end);
	evc_job *job = NULL;

	for (; job == NULL && at < end; at++) {
		/* Only a guess: the job may be taken, or freed. */
		__builtin_prefetch(sync_load_relaxed(
			&r->slot[(at + 2) & r->mask]));
		job = ring_take(r, at);
		sync_store_relaxed(&s->at, at + 1);
	}
	return job;
}

/* How many of n to claim: a part that leaves jobs for other threads, but not
   too small, as small claims collide. */
static uint64_t
claim_share(const evc_pool *pool, uint64_t n)
{
	uint64_t part = n / (2 * (uint64_t)sync_load_relaxed(&pool->limit));

	if (part > POOL_BATCH)
		return POOL_BATCH;
	if (part >= POOL_BATCH_LEAST)
		return part;
	return n < POOL_BATCH_LEAST ? n : POOL_BATCH_LEAST;
}

static evc_job *
claim_jobs(struct pool_seat *s, struct pool_ring *r)
{
	uint64_t h = sync_load_sc(&r->head), t, n;
	evc_job *job = NULL;

	while (job == NULL) {
		t = sync_load_sc(&r->tail);
		if (h >= t)
			return NULL;
		n = claim_share(s->pool, t - h);
		/* Published before the claim, so every thread that sees the
		   claim sees these values.  If the claim fails, the values name
		   another thread's claim, which does no harm. */
		/* Release: a thread that reads this pointer sees the ring
		   complete. */
		sync_store(&s->ring, r);
		sync_store_relaxed(&s->end, h);
		sync_store_relaxed(&s->at, h);
		sync_store_relaxed(&s->end, h + n);
		if (!sync_cas(&r->head, &h, h + n))
			continue;
		s->claims++;
		s->streak++;
		s->ahead = n == t - h && n < POOL_BATCH_LEAST;
		h += n;
		job = from_claim(s);
	}
	return job;
}

/* So many claims in a row may be of the same ring while other rings have work:
   no ring waits for ever. */
#define FAIR 4

static evc_job *
from_port(struct pool_seat *s, struct pool_port *p)
{
	bool foreign = sync_load_sc(&p->foreign.tail) != 0;
	bool first = foreign && s->claims % FAIR == FAIR - 1;
	evc_job *job = claim_jobs(s, first ? &p->foreign : &p->own);

	if (job == NULL && foreign)
		job = claim_jobs(s, first ? &p->own : &p->foreign);
	return job;
}

static evc_job *
from_ports(struct pool_seat *s)
{
	struct pool_port *p, *begin = s->hint;
	evc_job *job = NULL;

	/* From the last port with work to the end, then from the start. */
	if (begin != NULL && s->claims % FAIR == 0)
		begin = sync_load_sc(&begin->next);
	for (p = begin; job == NULL && p != NULL; p = sync_load_sc(&p->next)) {
		s->hint = p;
		job = from_port(s, p);
	}
	if (job != NULL)
		return job;
	for (p = sync_load_sc(&s->pool->ports); job == NULL && p != begin;
	     p = sync_load_sc(&p->next)) {
		s->hint = p;
		job = from_port(s, p);
	}
	return job;
}

static evc_job *
steal_from(const struct pool_seat *o)
{
	struct pool_ring *r = sync_load(&o->ring);
	uint64_t at = sync_load(&o->at), end = sync_load(&o->end);
	evc_job *job = NULL;

	if (r == NULL || end - at > POOL_BATCH)
		return NULL;
	while (job == NULL && at < end)
		job = ring_take(r, at++);
	return job;
}

static evc_job *
steal_job(struct pool_seat *s)
{
	uint32_t i, n = sync_load_sc(&s->pool->n_seats);
	evc_job *job = NULL;

	for (i = 1; job == NULL && i < n; i++)
		job = steal_from(
			sync_load(&s->pool->seat[(s->index + i) % n]));
	return job;
}

/* Has the claim of the watched seat not moved? */
static evc_job *
from_stuck(struct pool_seat *s)
{
	uint64_t now = sync_mono_coarse(), at;
	struct pool_seat *o;
	evc_job *job = NULL;

	if (now == s->looked_ns)
		return NULL;
	o = sync_load(&s->pool->seat[s->watched]);
	at = sync_load(&o->at);
	if (o != s && at == s->watched_at)
		job = steal_from(o);
	/* After such a job the next may follow at once. */
	if (job != NULL)
		return job;
	s->looked_ns = now;
	if (o == s || at == s->watched_at || at >= sync_load(&o->end)) {
		s->watched = (s->watched + 1) %
			     sync_load(&s->pool->n_seats);
		o = sync_load(&s->pool->seat[s->watched]);
		at = sync_load(&o->at);
	}
	s->watched_at = at;
	return NULL;
}

static void
count_one(_Atomic uint64_t *n)
{
	/* One thread alone writes the count. */
	sync_store_relaxed(n, sync_load_relaxed(n) + 1);
}

static void
run_job(struct pool_seat *s, evc_job *job)
{
	struct pool_port *p = job->port_;
	const char *name = job->name;
	evc_status result = EVC_CANCELLED;

	if ((sync_load(&p->ending) | evc_should_stop(s->pool->scope)) != 0 &&
	    (!p->finish || (sync_load(&p->ending) & PORT_GONE))) {
		count_one(&s->n_cancelled);
	} else {
		count_one(&s->n_begun);
		s->job = job;
		if (name != NULL)
			evc_progress(name);
		result = job->work(job);
		if (evc__port_inherited(p))
			return;
		/* work may have left a text of its own. */
		if (name != NULL)
			evc_progress(NULL);
		s->job = NULL;
		count_one(&s->n_done);
	}
	evc__port_finish(p, s, job, result);
}

#define BREATHS 16

/* A thread as fast as the jobs come would take each job, and every cache line
   of the ring, right out of the loop's hands.  So the thread lets a few jobs
   come together, for less than a microsecond; not directly after a sleep, so
   single jobs, and a loop that needs the same cpu, do not wait. */
static void
let_come(struct pool_seat *s)
{
	if (s->ahead && s->streak > 1)
		evc__breathe(BREATHS);
	s->ahead = false;
}

/* The called thread has found a job, and the job may take long.  Submitters
   meanwhile have relied on this thread: if any ring or claim has more, the
   thread calls the next. */
static void
pass_on(struct pool_seat *s)
{
	s->called = false;
	if (evc__pool_has_work(s->pool))
		evc__crowd_call(s->pool, false);
}

static void
serve_jobs(struct pool_seat *s)
{
	evc_pool *pool = s->pool;
	evc_job *job;

	for (;;) {
		if (sync_load_relaxed(&pool->shrink) != 0 &&
		    evc__crowd_shrink(pool))
			return;
		job = from_stuck(s);
		if (job == NULL)
			job = from_claim(s);
		if (job == NULL) {
			let_come(s);
			job = from_ports(s);
		}
		if (job == NULL)
			job = steal_job(s);
		if (job != NULL) {
			if (s->called)
				pass_on(s);
			run_job(s, job);
			if (evc__pool_inherited(pool))
				return;
		} else if (evc__crowd_sleep(pool)) {
			s->called = true;
			s->streak = 0;
		} else
			return;
	}
}

/* No thread may be left: if no thread can be had, no queued job can begin. */
static void
pool_deserted(evc_pool *pool)
{
	struct pool_port *p;
	evc_status st = 0;

	sync_lock(&pool->lock);
	if (evc__pool_has_work(pool))
		st = evc__crowd_first(pool);
	for (p = sync_load(&pool->ports); st < 0 && p != NULL;
	     p = sync_load(&p->next))
		evc__port_sweep(p);
	sync_unlock(&pool->lock);
	evc__ports_ring(pool);
}

static void
give_up_seat(struct pool_seat *s)
{
	evc_pool *pool = s->pool;

	sitting = NULL;
	sync_lock(&pool->lock);
	s->taken = false;
	sync_unlock(&pool->lock);
	/* Jobs that the thread has claimed and not begun; also, a submitter
	   that relied on this thread may have found no other. */
	if (N_LIVE(sync_load_sc(&pool->crowd)) == 0)
		pool_deserted(pool);
	else if (evc__pool_has_work(pool))
		evc__crowd_call(pool, false);
}

/* The work of a job has ended the thread.  A return now would be an error that
   stops the pool; so the rest of the thread stays until the stop. */
static void
thread_lost(void *seat)
{
	struct pool_seat *s = seat;
	evc_pool *pool = s->pool;
	evc_job *job = s->job;

	sync_unwound();
	if (evc__pool_inherited(pool))
		return;
	s->job = NULL;
	evc_progress(NULL);
	/* NULL: a done of a loop that is gone has ended the thread. */
	if (job != NULL) {
		count_one(&s->n_done);
		evc__port_finish(job->port_, s, job, EVC_ABORTED);
	}
	sync_sub(&pool->crowd, CROWD_LIVE);
	give_up_seat(s);
	pool_deserted(pool);
	evc_wait_for_stop(pool->scope, INFINITY);
}

evc_status
evc__pool_thread(evc_coord *c, void *seat)
{
	struct pool_seat *s = seat;

	(void)c;
	sitting = s;
	s->called = true;
	s->streak = 0;
	evc__crowd_enter(s->pool);
	pthread_cleanup_push(thread_lost, s);
	serve_jobs(s);
	pthread_cleanup_pop(0);
	if (!evc__pool_inherited(s->pool))
		give_up_seat(s);
	return 0;
}
