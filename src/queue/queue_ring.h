/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of a queue: its places, and how an item goes in and out without a
 * lock.
 *
 * A position is a lap and an index.  A place has a turn, 2 * lap while it is
 * free for the push of that lap and 2 * lap + 1 while it is full for the pop of
 * that lap.  A thread that finds the place's turn to be its own takes the
 * position, by moving tail (a push) or head (a pop) on with one
 * compare-and-swap; then the place is its alone, and the thread hands it on by
 * moving the turn.  So every capacity is exact, also 1, and memory of zeroes is
 * an empty ring.
 *
 * Between the two steps a place is taken but not handed on.  A push is then
 * counted in tail already, and nothing that ends the input can overlook it: the
 * end is a flag in the word of tail, so every push is either counted in the
 * word on which the flag was set, or finds the flag.
 */
#ifndef EVC_QUEUE_QUEUE_RING_H
#define EVC_QUEUE_QUEUE_RING_H

#include "queue/queue.h"

#define RING_POS UINT64_C(0x1fffffffffffffff)
/* tail alone: the end of input */
#define RING_CLOSED (UINT64_C(1) << 63)
/* tail and head */
#define RING_CANCELLED (UINT64_C(1) << 62)
/* tail alone: at a stop a pop has found the ring empty, and no push may follow;
   see evc__queue_pop_once */
#define RING_SEALED (UINT64_C(1) << 61)

/* Answers of a look, beside a status. */
enum {
	RING_FULL = 1, /* full, or the oldest pop has not handed its place on */
	RING_EMPTY = 2, /* every position that a push has taken was popped */
	RING_BUSY = 3,  /* the oldest push has not handed its item over */
	RING_END = 4    /* the item is behind the end of this ear's input */
};

#define RARE(x) __builtin_expect(!!(x), 0)

static inline struct evc__place *
ring_place(const evc_queue *q, uint64_t pos)
{
	return &q->place[pos & q->mask];
}

/* The turn of the push at a position; the flags are shifted out. */
static inline uint64_t
ring_turn(const evc_queue *q, uint64_t pos)
{
	return (pos & RING_POS) >> q->shift << 1;
}

/* The next position; the flags stay. */
static inline uint64_t
ring_next(const evc_queue *q, uint64_t pos)
{
	return (pos & q->mask) + 1 < q->capacity ? pos + 1 :
						   (pos | q->mask) + 1;
}

/* The number of positions before this position. */
static inline uint64_t
ring_count(const evc_queue *q, uint64_t pos)
{
	return ((pos & RING_POS) >> q->shift) * q->capacity + (pos & q->mask);
}

/* Head first: head only grows and never passes tail, so equal values mean an
   empty ring at the second load. */
static inline bool
ring_is_empty(evc_queue *q)
{
	uint64_t h = sync_load_sc(&q->head), t = sync_load_sc(&q->tail);

	return (h & RING_POS) == (t & RING_POS);
}

/* Would a push, or a pop, find its place ready now?  For hints alone. */
static inline bool
ring_is_ready(evc_queue *q, unsigned side)
{
	uint64_t pos = sync_load_sc(side == ROOM ? &q->tail : &q->head);

	return sync_load_sc(&ring_place(q, pos)->turn) ==
	       ring_turn(q, pos) + (side == ITEMS);
}

/*
 * 0: the item is in; RING_FULL; or why the item may not go in.
 *
 * The stop is looked at after tail was read: once a pop has sealed tail for a
 * stop, a swap of the earlier value fails, and the next look finds the stop.
 */
static inline int
ring_push(evc_queue *q, void *item)
{
	uint64_t pos = sync_load(&q->tail), turn, mine;
	struct evc__place *p;
	int st;

	for (;;) {
		if (RARE((pos & ~RING_POS) != 0 || evc_should_stop(q->c))) {
			st = evc__queue_barred(q, &pos);
			if (st < 0)
				return st;
			continue;
		}
		p = ring_place(q, pos);
		mine = ring_turn(q, pos);
		/* Partner: the store at the end of ring_pop.  Sequentially
		   consistent for a waiter that was counted before it looks
		   again. */
		turn = sync_load_sc(&p->turn);
		if (turn == mine) {
			if (sync_cas(&q->tail, &pos, ring_next(q, pos)))
				break;
			continue;
		}
		/* While a place is not free for a lap, tail cannot pass it. */
		if ((int64_t)(turn - mine) < 0)
			return RING_FULL;
		pos = sync_load(&q->tail);
	}
	p->item = item;
	/* Sequentially consistent: this store, then the look at the count of
	   waiters; a waiter counts itself, then looks at the turn. */
	sync_store_sc(&p->turn, mine + 1);
	return 0;
}

/* Does this ear's input end before the position?  Asked after the look at the
   place: a push of the next round is in the place only when the ear has heard
   of the end of this round. */
static inline bool
ring_is_end(const struct evc__ear *ear, uint64_t pos)
{
	return ear != NULL && (pos & RING_POS) >= sync_load(&ear->end);
}

/*
 * 0 and *ret_item; RING_EMPTY and the tail as read, RING_BUSY, RING_END; or,
 * unless `whatever`, why nothing is popped.
 */
static inline int
ring_pop(evc_queue *q, void **ret_item, bool whatever, uint64_t *ret_tail,
	 const struct evc__ear *ear)
{
	uint64_t pos = sync_load(&q->head), turn, mine;
	struct evc__place *p;

	for (;;) {
		if (RARE((pos & RING_CANCELLED) != 0 ||
			 (!(q->flags & EVC_QUEUE_DRAIN) &&
			  evc_should_stop(q->c))) &&
		    !whatever)
			return -EVC_CANCELLED;
		p = ring_place(q, pos);
		mine = ring_turn(q, pos) + 1;
		/* Partner: the store at the end of ring_push. */
		turn = sync_load_sc(&p->turn);
		if (turn == mine) {
			if (ring_is_end(ear, pos))
				return RING_END;
			if (sync_cas(&q->head, &pos, ring_next(q, pos)))
				break;
			continue;
		}
		if ((int64_t)(turn - mine) < 0) {
			if (ring_is_end(ear, pos))
				return RING_END;
			/* While a place is not full for a lap, head cannot pass
			   it, so pos is head still.  If tail has the same
			   position, every push that took a position was popped.
			   A flag in this very value of tail bars all later
			   pushes. */
			*ret_tail = sync_load_sc(&q->tail);
			return ((*ret_tail ^ pos) & RING_POS) == 0 ?
				       RING_EMPTY :
				       RING_BUSY;
		}
		pos = sync_load(&q->head);
	}
	*ret_item = p->item;
	sync_store_sc(&p->turn, mine + 1);
	return 0;
}

#endif
