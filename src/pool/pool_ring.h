/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two rings of the job pool.
 *
 * A ring carries jobs from one producer to the threads.  The threads claim
 * stretches of it by moving the head, but what hands a job over is the exchange
 * of its slot with NULL, by whoever comes first: the thread that claimed it,
 * another one that has nothing else to do, a cancel or a stop.  So a claim is
 * only a division of labour, and no job is stuck behind a blocked one.
 *
 * A slot is free when it is NULL, however far the head is.  One that is not,
 * because its job was claimed and not begun, is passed over, and whoever claims
 * that position finds the old job there.  After a cancel a job may stand in a
 * slot whose position was not claimed yet on behalf of an earlier one; it is then
 * taken a little early.  None is taken late: the slot of each position below the
 * tail is looked at after its job was put there.
 *
 * A box carries jobs that are over from one thread to the loop.
 */
#ifndef EVC_POOL_POOL_RING_H
#define EVC_POOL_POOL_RING_H

#include <evcoord.h>

#include "base/sync.h"

#define POOL_LINE 64

struct pool_ring {
	/* atomic: producer -> threads */
	_Alignas(POOL_LINE) _Atomic uint64_t tail;
	/* atomic: the threads among themselves */
	_Alignas(POOL_LINE) _Atomic uint64_t head;
	/* set at creation */
	_Alignas(POOL_LINE) _Atomic(evc_job *) *slot;
	uint64_t mask;
	/* atomic: submitters that sleep until there is room -> who empties a
	   slot; room is their futex word */
	_Atomic uint32_t waiting, room;
	/* atomic: who cancels -> producer: below the tail there may be free
	   slots whose positions nobody has claimed */
	_Atomic uint32_t holes;
};

#define POOL_BOX 256

struct pool_box {
	/* atomic: thread -> loop */
	_Alignas(POOL_LINE) _Atomic uint64_t tail;
	uint64_t head_seen; /* the thread's: head, as it was at some time */
	/* atomic: loop -> thread */
	_Alignas(POOL_LINE) _Atomic uint64_t head;
	_Alignas(POOL_LINE) evc_job *slot[POOL_BOX];
};

bool evc__ring_init(struct pool_ring *r, uint64_t size);
void evc__ring_fini(struct pool_ring *r);

/* Let those who wait for room look again. */
void evc__ring_room(struct pool_ring *r);

/* Take every job out of it: a chain, and how many. */
evc_job *evc__ring_sweep(struct pool_ring *r, uint64_t *ret_n);

/* A slot was emptied: after the exchange, so that one who says that it waits and
   then finds the slot full is seen here. */
static inline void
ring_freed(struct pool_ring *r)
{
	if (sync_load_sc(&r->waiting) != 0)
		evc__ring_room(r);
}

/* What ring_free_slot does when the first one is not free. */
_Atomic(evc_job *) *evc__ring_find(struct pool_ring *r, uint64_t *at);

/* The first free slot from *at on; NULL: it is full. */
static inline _Atomic(evc_job *) *
ring_free_slot(struct pool_ring *r, uint64_t *at)
{
	_Atomic(evc_job *) *slot = &r->slot[*at & r->mask];

	if (__builtin_expect(sync_load_sc(slot) == NULL, 1))
		return slot;
	return evc__ring_find(r, at);
}

/* One producer at a time.  Returns the slot, or 0: it is full.  The job may be
   somebody else's the moment it stands there. */
static inline uint64_t
ring_put(struct pool_ring *r, evc_job *job)
{
	uint64_t at = sync_load_relaxed(&r->tail);
	_Atomic(evc_job *) *slot = ring_free_slot(r, &at);

	if (slot == NULL)
		return 0;
	job->slot_ = (uint64_t)(uintptr_t)slot;
	/* Release: a thread that scans an old claim may find it before the
	   tail has moved. */
	sync_store(slot, job);
	/* Before the look whether somebody sleeps: who goes to sleep says so
	   and then looks here. */
	sync_store_sc(&r->tail, at + 1);
	return (uint64_t)(uintptr_t)slot;
}

/* What stands at a position, if it can be had. */
static inline evc_job *
ring_take(struct pool_ring *r, uint64_t at)
{
	_Atomic(evc_job *) *slot = &r->slot[at & r->mask];
	evc_job *job;

	if (sync_load_relaxed(slot) == NULL)
		return NULL;
	job = sync_xchg(slot, NULL);
	if (job != NULL)
		ring_freed(r);
	return job;
}

/* That very job, if nobody has taken it; what it points to is not looked at. */
static inline bool
ring_withdraw(struct pool_ring *r, uint64_t slot_, evc_job *job)
{
	_Atomic(evc_job *) *slot = (_Atomic(evc_job *) *)(uintptr_t)slot_;

	if (!sync_cas(slot, &job, NULL))
		return false;
	/* After the exchange: who takes the mark away looks then. */
	sync_store_sc(&r->holes, 1);
	ring_freed(r);
	return true;
}

/* false: it is full. */
static inline bool
box_put(struct pool_box *b, evc_job *job)
{
	uint64_t t = sync_load_relaxed(&b->tail);

	if (t - b->head_seen == POOL_BOX) {
		b->head_seen = sync_load(&b->head);
		if (t - b->head_seen == POOL_BOX)
			return false;
	}
	b->slot[t % POOL_BOX] = job;
	/* Before the look whether the loop was step: it says that it goes and
	   then looks here. */
	sync_store_sc(&b->tail, t + 1);
	return true;
}

#endif
