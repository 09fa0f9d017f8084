/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two rings of the job pool.
 *
 * A ring carries jobs from one producer to the threads.  The threads claim
 * stretches of the ring by moving the head, but the exchange of its slot with
 * NULL hands a job over, to the first to come: the thread that claimed the
 * slot, another thread without work, a cancel or a stop.  So a claim only
 * divides the labour, and no job is stuck behind a blocked job.
 *
 * A slot is free when its value is NULL, wherever the head is.  A slot with a
 * claimed job that has not begun is passed over, and the thread that claims
 * this position finds the old job there.  After a cancel a job may stand in a
 * slot for which an earlier position was not claimed yet; then the job is taken
 * a little early.  No job is taken late: the slot of each position below the
 * tail is looked at after its job was put there.
 *
 * A box carries finished jobs from one thread to the loop.
 */
#ifndef EVC_POOL_POOL_RING_H
#define EVC_POOL_POOL_RING_H

#include <evcoord.h>

#include "base/sync.h"

#define POOL_LINE 64

struct pool_ring {
	/* atomic: producer -> threads */
	_Alignas(POOL_LINE) _Atomic uint64_t tail;
	/* atomic: between the threads */
	_Alignas(POOL_LINE) _Atomic uint64_t head;
	/* set at creation */
	_Alignas(POOL_LINE) _Atomic(evc_job *) *slot;
	uint64_t mask;
	/* atomic: submitters that sleep until there is room -> threads that
	   empty a slot; room is the futex word */
	_Atomic uint32_t waiting, room;
	/* atomic: cancels -> producer: below the tail there may be free slots
	   at positions that no thread has claimed */
	_Atomic uint32_t holes;
};

#define POOL_BOX 256

struct pool_box {
	/* atomic: thread -> loop */
	_Alignas(POOL_LINE) _Atomic uint64_t tail;
	uint64_t head_seen; /* the thread's; an earlier value of head */
	/* atomic: loop -> thread */
	_Alignas(POOL_LINE) _Atomic uint64_t head;
	_Alignas(POOL_LINE) evc_job *slot[POOL_BOX];
};

bool evc__ring_init(struct pool_ring *r, uint64_t size);
void evc__ring_fini(struct pool_ring *r);

/* Waiters for room look again. */
void evc__ring_room(struct pool_ring *r);

/* Take every job out of the ring: a chain, and the number of jobs. */
evc_job *evc__ring_sweep(struct pool_ring *r, uint64_t *ret_n);

/* A slot was emptied.  The look comes after the exchange, so a waiter that sets
   `waiting` and then finds the slot full is seen here. */
static inline void
ring_freed(struct pool_ring *r)
{
	if (sync_load_sc(&r->waiting) != 0)
		evc__ring_room(r);
}

/* For ring_free_slot, when the first slot is not free. */
_Atomic(evc_job *) *evc__ring_find(struct pool_ring *r, uint64_t *at);

/* The first free slot from *at on; NULL: the ring is full. */
static inline _Atomic(evc_job *) *
ring_free_slot(struct pool_ring *r, uint64_t *at)
{
	_Atomic(evc_job *) *slot = &r->slot[*at & r->mask];

	if (__builtin_expect(sync_load_sc(slot) == NULL, 1))
		return slot;
	return evc__ring_find(r, at);
}

/* One producer at a time.  Returns the slot, or 0: the ring is full.  Once in
   the slot, the job may be another thread's at any moment. */
static inline uint64_t
ring_put(struct pool_ring *r, evc_job *job)
{
	uint64_t at = sync_load_relaxed(&r->tail);
	_Atomic(evc_job *) *slot = ring_free_slot(r, &at);

	if (slot == NULL)
		return 0;
	job->slot_ = (uint64_t)(uintptr_t)slot;
	/* Release: a thread that scans an old claim may find the job before the
	   tail has moved. */
	sync_store(slot, job);
	/* Before the look for sleepers: a thread about to sleep counts itself,
	   then looks at the tail. */
	sync_store_sc(&r->tail, at + 1);
	return (uint64_t)(uintptr_t)slot;
}

/* Take the job at a position; NULL: no job, or another thread has it. */
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

/* Take this very job, if no thread has taken it; *job is not looked at. */
static inline bool
ring_withdraw(struct pool_ring *r, uint64_t slot_, evc_job *job)
{
	_Atomic(evc_job *) *slot = (_Atomic(evc_job *) *)(uintptr_t)slot_;

	if (!sync_cas(slot, &job, NULL))
		return false;
	/* After the exchange: a producer takes the mark away, then looks at the
	   slots. */
	sync_store_sc(&r->holes, 1);
	ring_freed(r);
	return true;
}

/* false: the box is full. */
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
	/* Before the look at `called`: the loop gives `called` back, then looks at
	   the tail. */
	sync_store_sc(&b->tail, t + 1);
	return true;
}

#endif
