/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep and wake-ups of the threads.  The head of threads.h says how no work is
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

void
evc__threads_wake(struct threads *e, int worker)
{
	struct seat *s = NULL;

	if (sync_load_sc(&e->n_lying) == 0 ||
	    (worker < 0 && sync_load_sc(&e->waking) != 0))
		return;
	sync_lock(&e->lock);
	if (worker >= 0) {
		if ((unsigned)worker < e->n &&
		    sync_load_relaxed(&e->seats[worker]->bed) == BED_LYING)
			s = e->seats[worker];
	} else if (!list_empty(&e->lying) && sync_load_sc(&e->waking) == 0) {
		s = LIST_OF(e->lying.prev, struct seat, link);
		sync_store_sc(&e->waking, 1);
	}
	if (s != NULL)
		take_off(s, worker < 0 ? BED_CALLED : BED_WOKEN);
	sync_unlock(&e->lock);
	/* The seat stays: the engine is closed after this call of an operation,
	   or of a living thread, has returned. */
	if (s != NULL)
		sync_futex_wake_n(&s->bed, 1);
}

void
evc__threads_wake_all(struct threads *e)
{
	unsigned i;

	sync_lock(&e->lock);
	while (!list_empty(&e->lying))
		take_off(LIST_OF(e->lying.next, struct seat, link), BED_WOKEN);
	sync_unlock(&e->lock);
	for (i = 0; i < e->n; i++)
		sync_futex_wake_n(&e->seats[i]->bed, 1);
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
	while (sync_load_sc(&s->bed) == BED_LYING)
		sync_futex_wait(&s->bed, BED_LYING, SYNC_FOREVER);
	evc__seat_get_up(s);
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
