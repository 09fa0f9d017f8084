/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A notify set: a table of items that can be marked.
 *
 * Items are added and removed under the owner's lock, and read without a lock:
 * chunks are only added, so a reader never meets freed memory.  Marking an item
 * is one atomic step, signal-safe, with nothing half done in between: a pass
 * that begins after this step finds the item, even if other threads that mark
 * the same item are frozen.
 */
#ifndef EVC_BASE_NOTIFY_SET_H
#define EVC_BASE_NOTIFY_SET_H

#include "base/sync.h"

struct notify_chunk {
	_Atomic(struct notify_chunk *) next;
	/* atomic: evc__notify_mark -> evc__notify_set_next; a bit for each
	   slot */
	_Atomic uint64_t marked;
	unsigned n;
	_Atomic(void *) slot[];
};

struct notify_set {
	_Atomic(struct notify_chunk *) first;
	struct notify_chunk *open; /* the first chunk with a free slot */
};

/* The slot of an item. */
struct notify_place {
	struct notify_chunk *k;
	unsigned i;
};

/* Owner's lock: make room for another item.  false: no memory. */
bool evc__notify_set_reserve(struct notify_set *set);
/* Owner's lock; false: no memory. */
bool evc__notify_set_add(struct notify_set *set, void *item,
			 struct notify_place *ret);
/* Owner's lock. */
void evc__notify_set_remove(struct notify_set *set, struct notify_place *p);
/* No other thread can reach the set. */
void evc__notify_set_free(struct notify_set *set);

/* Any thread, signal-safe; the item is in the set. */
static inline void
evc__notify_mark(const struct notify_place *p)
{
	sync_or(&p->k->marked, UINT64_C(1) << p->i);
}

/* A pass over the marked items; start with {0}.  An item that is marked
   meanwhile may wait for the next pass.  A mark is cleared when the pass comes
   to its item: a second pass that begins before then finds the item, too. */
struct notify_cursor {
	struct notify_chunk *k;
	uint64_t ahead; /* the bits of k that are still to be visited */
};

/* Clear the mark of the next marked item and return the item, or NULL.  Owner's
   lock, which may be released between two calls. */
void *evc__notify_set_next(struct notify_set *set, struct notify_cursor *at);

#endif
