/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A board: a table of items that can be lit.
 *
 * Items are added and removed under the owner's lock, and read without a lock:
 * chunks are only added, so a reader never meets freed memory.  Lighting an
 * item is one atomic step, signal-safe, with nothing half done in between: a
 * pass that begins after this step finds the item, even if other threads that
 * light the same item are frozen.
 */
#ifndef EVC_BASE_BOARD_H
#define EVC_BASE_BOARD_H

#include "base/sync.h"

struct board_chunk {
	_Atomic(struct board_chunk *) next;
	/* atomic: evc__board_light -> evc__board_next; a bit for each slot */
	_Atomic uint64_t lit;
	unsigned n;
	_Atomic(void *) slot[];
};

struct board {
	_Atomic(struct board_chunk *) first;
	struct board_chunk *open; /* the first chunk with a free slot */
};

/* The slot of an item. */
struct board_place {
	struct board_chunk *k;
	unsigned i;
};

/* Owner's lock: make room for another item.  false: no memory. */
bool evc__board_room(struct board *b);
/* Owner's lock; false: no memory. */
bool evc__board_add(struct board *b, void *item, struct board_place *ret);
/* Owner's lock. */
void evc__board_remove(struct board *b, struct board_place *p);
/* No other thread can reach the board. */
void evc__board_free(struct board *b);

/* Any thread, signal-safe; the item is on the board. */
static inline void
evc__board_light(const struct board_place *p)
{
	sync_or(&p->k->lit, UINT64_C(1) << p->i);
}

/* A pass over the lit items; start with {0}.  An item that is lit meanwhile may
   wait for the next pass.  A light goes out when the pass comes to its item: a
   second pass that begins before then finds the item, too. */
struct board_cursor {
	struct board_chunk *k;
	uint64_t ahead; /* the bits of k that are still to be visited */
};

/* Put out the next lit item and return the item, or NULL.  Owner's lock, which
   may be released between two calls. */
void *evc__board_next(struct board *b, struct board_cursor *at);

#endif
