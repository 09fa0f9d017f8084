/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of things that can be lit: a bell board.
 *
 * Items are put in and taken out under the owner's lock, and read without it:
 * chunks are only ever added, so a reader never meets memory that went away.
 * Lighting an item is one atomic step, signal-safe, with nothing half done in
 * between: when it has returned, whoever takes what is lit afterwards finds the
 * item, whatever happens to other threads that light it too.
 */
#ifndef EVC_BASE_BOARD_H
#define EVC_BASE_BOARD_H

#include "base/sync.h"

struct board_chunk {
	_Atomic(struct board_chunk *) next;
	/* atomic: who lights -> who takes; a bit for each slot */
	_Atomic uint64_t lit;
	unsigned n;
	_Atomic(void *) slot[];
};

struct board {
	_Atomic(struct board_chunk *) first;
	struct board_chunk *open; /* none before it has a free slot */
};

/* Where an item stands. */
struct board_place {
	struct board_chunk *k;
	unsigned i;
};

/* Owner's lock: have room for one more; false: no memory. */
bool evc__board_room(struct board *b);
/* Owner's lock; false: no memory. */
bool evc__board_add(struct board *b, void *item, struct board_place *ret);
/* Owner's lock. */
void evc__board_remove(struct board *b, struct board_place *p);
/* Nobody else can reach it. */
void evc__board_free(struct board *b);

/* Any thread, signal-safe; the item is in. */
static inline void
evc__board_light(const struct board_place *p)
{
	sync_or(&p->k->lit, UINT64_C(1) << p->i);
}

/* A pass over what is lit; start with {0}.  What is lit meanwhile may wait for
   the next pass.  It takes one light at a time: what it has not come to yet is
   lit for everybody, also for a pass that begins in the middle of this one. */
struct board_cursor {
	struct board_chunk *k;
	uint64_t ahead; /* the bits of k that it has not come to */
};

/* Owner's lock, which may be given up between two calls: the next lit item, no
   longer lit, or NULL. */
void *evc__board_next(struct board *b, struct board_cursor *at);

#endif
