/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who sleeps of the threads, and who wakes whom.
 *
 * No work is missed:
 *   - who queues a function does so under the cluster's lock, and looks for
 *     sleepers after that; who goes to sleep counts itself as lying, and then
 *     looks for work (take), under the cluster's lock again.  If that look came
 *     before the function was queued, the lock has carried the count over to
 *     whoever queued it; else the look finds it.
 *   - who finds one on its way (waking) leaves it to that one.  That one takes
 *     the mark away and looks for work then: were the look before the function
 *     was queued, the lock would have carried over that there is no mark.
 *   - one that was woken so and finds as much as it could take wakes the next,
 *     because others have relied on it; and so it does when it is about to build
 *     something, or when it had found its work before it saw that it was woken.
 * So a burst of functions costs one system call, not one each, and none when
 * nobody sleeps.
 */
#include "cluster/threads/threads.h"

/* Lock held.  It is to be woken. */
static void
take_off(struct seat *s)
{
	struct threads *e = s->e;

	list_remove(&s->link);
	s->lying = false;
	sync_sub(&e->n_lying, 1);
	sync_add(&s->bell, 1);
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
		if ((unsigned)worker < e->n && e->seats[worker]->lying)
			s = e->seats[worker];
	} else if (!list_empty(&e->lying) && sync_load_sc(&e->waking) == 0) {
		s = LIST_OF(e->lying.prev, struct seat, link);
		s->picked = true;
		sync_store_sc(&e->waking, 1);
	}
	if (s != NULL)
		take_off(s);
	sync_unlock(&e->lock);
	/* A seat stays until the engine is closed, which is not before this
	   call of an op, or of a thread that is not gone, has returned. */
	if (s != NULL)
		sync_futex_wake_n(&s->bell, 1);
}

void
evc__threads_wake_all(struct threads *e)
{
	unsigned i;

	sync_lock(&e->lock);
	while (!list_empty(&e->lying))
		take_off(LIST_OF(e->lying.next, struct seat, link));
	sync_unlock(&e->lock);
	for (i = 0; i < e->n; i++)
		sync_futex_wake_n(&e->seats[i]->bell, 1);
}

void
evc__seat_lie_down(struct seat *s)
{
	struct threads *e = s->e;

	s->down = true;
	sync_lock(&e->lock);
	s->seen = sync_load_relaxed(&s->bell);
	s->lying = true;
	list_append(&e->lying, &s->link);
	sync_add(&e->n_lying, 1);
	sync_unlock(&e->lock);
}

void
evc__seat_get_up(struct seat *s)
{
	struct threads *e = s->e;

	s->down = false;
	sync_lock(&e->lock);
	if (s->lying)
		take_off(s);
	if (s->picked) {
		s->picked = false;
		s->called = true;
		sync_store_sc(&e->waking, 0);
	}
	sync_unlock(&e->lock);
}

void
evc__seat_sleep(struct seat *s)
{
	while (sync_load_sc(&s->bell) == s->seen)
		sync_futex_wait(&s->bell, s->seen, SYNC_FOREVER);
	evc__seat_get_up(s);
}

/* ---- the keeper ---- */

void
evc__keeper_ring(struct threads *e)
{
	sync_add(&e->keeper_bell, 1);
	sync_futex_wake(&e->keeper_bell);
}

void
evc__keeper_watch(struct seat *s)
{
	/* First this, then the look; the keeper says that it sleeps, then looks
	   at this: one of the two sees the other. */
	sync_store_sc(&s->holds, 1);
	if (sync_load_sc(&s->e->keeper_sleeps) != 0)
		evc__keeper_ring(s->e);
}
