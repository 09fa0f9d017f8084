/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of a pool as a crowd: how many sleep, are on their way, exist;
 * all in one word.  No call is lost:
 * - a submitter shows its work, then looks at the word; a thread about to sleep
 *   counts itself as idle, then looks for work;
 * - a submitter that finds CROWD_WAKING leaves its work to the thread on its
 *   way, which takes the mark away, then looks for work;
 * - one sleeper takes the mark for sleepers, and while the mark stands no
 *   sleeper leaves by another way.
 * Called by: all other files of src/pool.
 * Locks: the pool's lock to start a thread; crowd and bell are atomic.
 */
#include "pool/pool.h"

#include "base/text.h"
#include "base/deadline.h"

/* After a failed start of a thread the next try waits so long, unless the pool
   has no thread at all. */
#define FAILED_NS UINT64_C(100000000)

/* A sleeper is called, and is not up yet. */
#define CALLED(w) (((w) & (CROWD_WAKING | CROWD_STARTING)) == CROWD_WAKING)

static bool
failed_lately(evc_pool *pool)
{
	uint64_t at = sync_load_relaxed(&pool->failed_at);

	return at != 0 && sync_mono_coarse() - at < FAILED_NS;
}

/* Lock held. */
static struct pool_seat *
free_seat(evc_pool *pool)
{
	uint32_t i, n = sync_load_relaxed(&pool->n_seats);
	struct pool_seat *s;

	for (i = 0; i < n; i++) {
		s = sync_load_relaxed(&pool->seat[i]);
		if (!s->taken)
			return s;
	}
	if (n == POOL_SEATS)
		return NULL;
	s = sync_alloc_aligned(POOL_LINE, sizeof *s);
	if (s == NULL)
		return NULL;
	s->pool = pool;
	s->index = n;
	sync_store(&pool->seat[n], s);
	sync_store(&pool->n_seats, n + 1);
	return s;
}

/* Lock held. */
static evc_status
start_thread(evc_pool *pool)
{
	struct pool_seat *s = free_seat(pool);
	evc_member_opts o = {
		.stack = pool->stack,
		/* With EVC_POOL_FINISH queued jobs still need threads after a
		   stop. */
		.flags = EVC_BACKGROUND | pool->thread_flags |
			 (pool->finish ? EVC_AFTER_STOP : 0),
	};
	char name[48];
	struct text t = evc__text_in(name, sizeof name - 5);
	evc_status st;

	if (s == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "the pool has no memory for a thread");
	evc__text_add(&t, pool->name);
	t = evc__text_in(name + strlen(name), 6);
	evc__text_fmt(&t, "/%u", s->index);
	s->taken = true;
	st = evc_thread_start(pool->scope, name, pool->body, s, &o, NULL);
	if (st < 0)
		s->taken = false;
	return st;
}

/* Lock held, and CROWD_WAKING and CROWD_STARTING are set. */
static evc_status
start_or_delay(evc_pool *pool)
{
	evc_status st = start_thread(pool);
	uint64_t now;

	if (st == 0)
		return 0;
	now = sync_mono_coarse();
	/* A refusal at a stop is no lack of threads. */
	if (st != -EVC_CANCELLED)
		sync_store_relaxed(&pool->failed_at, now != 0 ? now : 1);
	sync_and(&pool->crowd, ~(CROWD_WAKING | CROWD_STARTING));
	/* A submitter may have relied on the thread that does not come, while
	   another thread went to sleep. */
	if (N_LIVE(sync_load_sc(&pool->crowd)) > 0 && evc__pool_has_work(pool))
		evc__crowd_call(pool, true);
	return st;
}

static bool
may_start(evc_pool *pool, uint64_t w)
{
	/* At a stop a new thread would be refused, also before the pool is
	   closed. */
	if (!pool->finish &&
	    ((w & CROWD_CLOSED) || evc_should_stop(pool->scope)))
		return false;
	return N_LIVE(w) < sync_load_relaxed(&pool->limit) &&
	       !failed_lately(pool);
}

void
evc__crowd_call(evc_pool *pool, bool locked)
{
	uint64_t w = sync_load_sc(&pool->crowd), next;

	do {
		if (w & CROWD_WAKING)
			return;
		if (N_IDLE(w) > 0)
			next = (w - CROWD_IDLE) | CROWD_WAKING;
		else if (may_start(pool, w))
			next = w | CROWD_WAKING | CROWD_STARTING;
		else
			return;
	} while (!sync_cas(&pool->crowd, &w, next));
	if (!(next & CROWD_STARTING)) {
		sync_add(&pool->bell, 1);
		sync_futex_wake_n(&pool->bell, 1);
		return;
	}
	if (!locked)
		sync_lock(&pool->lock);
	(void)start_or_delay(pool);
	if (!locked)
		sync_unlock(&pool->lock);
}

evc_status
evc__crowd_first(evc_pool *pool)
{
	uint64_t w = sync_load_sc(&pool->crowd);

	/* The start is under the lock, so a thread with CROWD_STARTING will
	   come. */
	do
		if (N_LIVE(w) > 0 || (w & CROWD_STARTING))
			return 0;
	while (!sync_cas(&pool->crowd, &w, w | CROWD_WAKING | CROWD_STARTING));
	return start_or_delay(pool);
}

void
evc__crowd_wake_all(evc_pool *pool)
{
	sync_add(&pool->bell, 1);
	sync_futex_wake(&pool->bell);
}

void
evc__crowd_enter(evc_pool *pool)
{
	uint64_t w = sync_load_sc(&pool->crowd);

	while (!sync_cas(&pool->crowd, &w,
			 (w + CROWD_LIVE) & ~(CROWD_WAKING | CROWD_STARTING)))
		;
	/* A resize has lowered the limit while this thread was on its way. */
	if (N_LIVE(w) + 1 > sync_load_sc(&pool->limit))
		sync_store_sc(&pool->shrink, 1);
}

bool
evc__crowd_shrink(evc_pool *pool)
{
	uint64_t w = sync_load_sc(&pool->crowd);

	do
		if (N_LIVE(w) <= sync_load_sc(&pool->limit)) {
			/* The mark first, then the look: a resize sets the
			   limit first, then the mark. */
			sync_store_sc(&pool->shrink, 0);
			w = sync_load_sc(&pool->crowd);
			if (N_LIVE(w) <= sync_load_sc(&pool->limit))
				return false;
			sync_store_sc(&pool->shrink, 1);
		}
	while (!sync_cas(&pool->crowd, &w, w - CROWD_LIVE));
	return true;
}

static bool
has_claimed(const struct pool_seat *s)
{
	struct pool_ring *r = sync_load(&s->ring);
	uint64_t at = sync_load(&s->at), end = sync_load(&s->end);

	/* The three values may be of two claims.  Then their thread is awake,
	   and the jobs of the second claim were in the ring when we looked at
	   the ring, or came later with a call of their own. */
	if (r == NULL || end - at > POOL_BATCH)
		return false;
	for (; at < end; at++)
		if (sync_load_sc(&r->slot[at & r->mask]) != NULL)
			return true;
	return false;
}

static bool
has_queued(struct pool_ring *r)
{
	return sync_load_sc(&r->head) < sync_load_sc(&r->tail);
}

bool
evc__pool_has_work(evc_pool *pool)
{
	struct pool_port *p;
	uint32_t i, n;

	for (p = sync_load_sc(&pool->ports); p != NULL;
	     p = sync_load_sc(&p->next))
		if (has_queued(&p->own) || has_queued(&p->foreign))
			return true;
	n = sync_load_sc(&pool->n_seats);
	for (i = 0; i < n; i++)
		if (has_claimed(sync_load(&pool->seat[i])))
			return true;
	return false;
}

/* An idle thread goes to work, or ends.  false: the word has changed. */
static bool
get_up(evc_pool *pool, uint64_t w, bool end)
{
	/* A called thread does not count as idle any more. */
	uint64_t next = CALLED(w) ? w & ~CROWD_WAKING : w - CROWD_IDLE;

	return sync_cas(&pool->crowd, &w, end ? next - CROWD_LIVE : next);
}

static bool
too_many(evc_pool *pool, uint64_t w)
{
	return sync_load_sc(&pool->shrink) != 0 &&
	       N_LIVE(w) > sync_load_sc(&pool->limit);
}

bool
evc__crowd_sleep(evc_pool *pool)
{
	uint64_t left = SYNC_FOREVER, until, w;
	uint32_t seen;
	bool work;

	sync_add(&pool->crowd, CROWD_IDLE);
	until = evc__deadline_in_ns(pool->idle_ns);
	for (;;) {
		/* Read before the looks: a call after the looks moves the
		   value. */
		seen = sync_load_sc(&pool->bell);
		w = sync_load_sc(&pool->crowd);
		work = CALLED(w) || evc__pool_has_work(pool);
		if (work || left == 0 || (w & CROWD_CLOSED) ||
		    too_many(pool, w)) {
			if (get_up(pool, w, !work))
				return work;
			continue;
		}
		left = evc__deadline_left_ns(until);
		if (left > 0)
			sync_futex_wait(&pool->bell, seen, left);
	}
}
