/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two counters of the threads inside some code: a refgate, which is shut once
 * and for good, and readers: a thread can wait for a moment without readers.
 * See refgate.h.
 * Called by: core, members, wake, signals, observe and cluster, around the use
 * of objects that another thread may free.
 * Locks: none; each counter is one atomic word, on which its waiter sleeps.
 */
#include "base/refgate.h"

bool
evc__refgate_enter(struct refgate *g)
{
	if (!(sync_add(&g->n, 2) & 1))
		return true;
	evc__refgate_leave(g);
	return false;
}

void
evc__refgate_leave(struct refgate *g)
{
	/* The memory of the refgate may be freed by now.  Then the wake can
	   only reach another thread that sleeps on this address, and this
	   thread reads its own word again. */
	if (sync_sub(&g->n, 2) == 3)
		sync_futex_wake(&g->n);
}

void
evc__refgate_shut(struct refgate *g)
{
	sync_or(&g->n, 1);
}

bool
evc__refgate_is_shut(struct refgate *g)
{
	return sync_load_sc(&g->n) & 1;
}

void
evc__refgate_close(struct refgate *g)
{
	uint32_t n = sync_or(&g->n, 1) | 1;

	while (n != 1) {
		sync_futex_wait(&g->n, n, SYNC_FOREVER);
		n = sync_load_sc(&g->n);
	}
}

void
evc__readers_enter(struct readers *w)
{
	sync_add(&w->n, 2);
}

void
evc__readers_leave(struct readers *w)
{
	uint32_t n = sync_load_relaxed(&w->n), next;

	/* The last reader clears the waiter's bit.  So the waiter can see the
	   moment without readers later, even when other readers have entered
	   since. */
	do
		next = n == 3 ? 0 : n - 2;
	while (!sync_cas(&w->n, &n, next));
	if (n == 3)
		sync_futex_wake(&w->n);
}

void
evc__readers_quiet(struct readers *w)
{
	uint32_t n = sync_or(&w->n, 1) | 1;

	if (n == 1) {
		sync_and(&w->n, ~1u);
		return;
	}
	while (n & 1) {
		sync_futex_wait(&w->n, n, SYNC_FOREVER);
		n = sync_load_sc(&w->n);
	}
}
