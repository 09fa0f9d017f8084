/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep, wake-ups and ends of the threads.  The head of threads.h says how no work is
 * missed.
 * Called by: serve.c, batch_watch.c and threads.c.
 * Locks: threads.lock, below the cluster's; the beds and counters are atomic.
 */
#include "cluster/threads/threads.h"

/* Lock held: the seat, which is LYING, gets up or is to be woken. */
static void
take_off(struct seat *s, uint32_t bed)
{
	list_remove(&s->link);
	sync_sub(&s->e->n_lying, 1);
	sync_store_sc(&s->bed, bed);
}

/* Lock held: the latest seat for any function; NULL: none. */
static struct seat *
lying_for_any(const struct threads *e)
{
	const struct list *n;

	for (n = e->lying.prev; n != &e->lying; n = n->prev) {
		struct seat *s = LIST_OF(n, struct seat, link);

		if (!seat_is_extra(s))
			return s;
	}
	return NULL;
}

/* Lock held: is the seat asleep?  Then the caller wakes the thread. */
static bool
rouse(struct seat *s)
{
	uint32_t bed = sync_load_relaxed(&s->bed);

	if (bed == BED_LYING)
		take_off(s, BED_WOKEN);
	else if (bed == BED_LOST)
		sync_store_sc(&s->bed, BED_WOKEN);
	return bed == BED_LYING || bed == BED_LOST;
}

static void
wake_one(struct threads *e, unsigned worker)
{
	struct seat *s = worker < sync_load(&e->n) ? e->seats[worker] : NULL;
	bool slept;

	if (s == NULL || sync_load_sc(&s->bed) == BED_UP)
		return;
	sync_lock(&e->lock);
	slept = rouse(s);
	sync_unlock(&e->lock);
	if (slept)
		sync_futex_wake_n(&s->bed, 1);
}

void
evc__threads_wake(struct threads *e, int worker)
{
	struct seat *s = NULL;

	if (worker >= 0) {
		wake_one(e, (unsigned)worker);
		return;
	}
	if (sync_load_sc(&e->n_lying) == 0 || sync_load_sc(&e->waking) != 0)
		return;
	sync_lock(&e->lock);
	if (sync_load_sc(&e->waking) == 0)
		s = lying_for_any(e);
	if (s != NULL) {
		sync_store_sc(&e->waking, 1);
		take_off(s, BED_CALLED);
	}
	sync_unlock(&e->lock);
	/* The seat stays: the engine is closed after this call of an operation,
	   or of a living thread, has returned. */
	if (s != NULL)
		sync_futex_wake_n(&s->bed, 1);
}

void
evc__threads_wake_from(struct threads *e, unsigned first)
{
	unsigned i, n = sync_load(&e->n);

	sync_lock(&e->lock);
	for (i = first; i < n; i++)
		if (rouse(e->seats[i]))
			sync_futex_wake_n(&e->seats[i]->bed, 1);
	sync_unlock(&e->lock);
}

void
evc__seat_lie_down(struct seat *s)
{
	struct threads *e = s->e;

	sync_lock(&e->lock);
	sync_store_relaxed(&s->bed, BED_LYING);
	list_append(&e->lying, &s->link);
	sync_add(&e->n_lying, 1);
	sync_unlock(&e->lock);
}

void
evc__seat_get_up(struct seat *s)
{
	struct threads *e = s->e;

	if (sync_load_relaxed(&s->bed) == BED_UP)
		return;
	sync_lock(&e->lock);
	if (sync_load_relaxed(&s->bed) == BED_LYING)
		take_off(s, BED_UP);
	if (sync_load_relaxed(&s->bed) == BED_CALLED) {
		s->called = true;
		sync_store_sc(&e->waking, 0);
	}
	sync_store_relaxed(&s->bed, BED_UP);
	sync_unlock(&e->lock);
}

void
evc__seat_sleep(struct seat *s)
{
	uint32_t bed;

	while ((bed = sync_load_sc(&s->bed)) == BED_LYING || bed == BED_LOST)
		sync_futex_wait(&s->bed, bed, SYNC_FOREVER);
	evc__seat_get_up(s);
}

void
evc__seat_lie_lost(struct seat *s)
{
	sync_lock(&s->e->lock);
	sync_store_sc(&s->bed, BED_LOST);
	sync_unlock(&s->e->lock);
}

/* ---- the batch watch ---- */

void
evc__batch_watch_ring(struct threads *e)
{
	sync_add(&e->watch_bell, 1);
	sync_futex_wake(&e->watch_bell);
}

void
evc__batch_watch_mark(struct seat *s)
{
	/* The mark comes first, then the look for a sleeping batch watch.  The
	   batch watch says that it sleeps, then looks for marks.  So at least one
	   side sees the other. */
	sync_store_sc(&s->holds, 1);
	if (sync_load_sc(&s->e->watch_sleeps) != 0)
		evc__batch_watch_ring(s->e);
}

void
evc__seat_empty(struct seat *s)
{
	struct threads *e = s->e;

	sync_store(&s->tid, 0);
	sync_store_sc(&s->taken, 0);
	/* The batch watch looks whether there has to be a thread. */
	sync_store_sc(&e->to_start, 1);
	evc__batch_watch_ring(e);
}
