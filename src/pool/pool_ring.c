/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rare work on the job pool's rings: creation, a search for a free slot,
 * the wake for room, the sweep.
 * Called by: pool_ring.h, pool_port.c, pool_done.c.
 * Locks: none; slots, head, tail, holes, waiting and room are atomic.
 */
#include "pool/pool_ring.h"

bool
evc__ring_init(struct pool_ring *r, uint64_t size)
{
	r->slot = sync_alloc(size, sizeof *r->slot);
	r->mask = size - 1;
	return r->slot != NULL;
}

void
evc__ring_fini(struct pool_ring *r)
{
	sync_free((void *)r->slot);
}

_Atomic(evc_job *) *
evc__ring_find(struct pool_ring *r, uint64_t *at)
{
	uint64_t first = *at;
	bool holes = false;

	do {
		_Atomic(evc_job *) *slot = &r->slot[*at & r->mask];

		if (sync_load_sc(slot) == NULL) {
			/* More slots may be free. */
			if (holes)
				sync_store_sc(&r->holes, 1);
			return slot;
		}
		/* From here on no thread has claimed the positions: all slots
		   are taken, but for slots of cancelled jobs. */
		if (!holes && *at - sync_load_sc(&r->head) > r->mask) {
			if (sync_xchg(&r->holes, 0) == 0)
				return NULL;
			holes = true;
		}
		++*at;
	} while (*at - first <= r->mask);
	return NULL;
}

void
evc__ring_room(struct pool_ring *r)
{
	/* One wake for all waiters, and no more wakes before a new waiter
	   comes. */
	if (sync_xchg(&r->waiting, 0) == 0)
		return;
	sync_add(&r->room, 1);
	sync_futex_wake(&r->room);
}

evc_job *
evc__ring_sweep(struct pool_ring *r, uint64_t *ret_n)
{
	evc_job *chain = NULL, *job;
	uint64_t i;

	/* Each slot, not only the slots between head and tail: claimed slots
	   may still hold jobs. */
	*ret_n = 0;
	for (i = 0; i <= r->mask && sync_load_sc(&r->tail) > i; i++) {
		job = ring_take(r, i);
		if (job == NULL)
			continue;
		job->next_ = chain;
		chain = job;
		++*ret_n;
	}
	return chain;
}
