/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is rarely done with the job pool's rings.
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
			/* Perhaps there are more. */
			if (holes)
				sync_store_sc(&r->holes, 1);
			return slot;
		}
		/* From here on every position is one that nobody has claimed:
		   all are taken, but for what was cancelled. */
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
	/* One wake for all who wait, and none more before one waits again. */
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

	/* Each slot and not what lies between head and tail: claimed ones may
	   hold jobs still. */
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
