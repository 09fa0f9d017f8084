/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A notify set: a growing table of items that any thread may mark, and whose
 * marked items a reader visits.
 * Called by: core.  Loops, joins and the helper thread find waiting work there.
 * Locks: the owner's lock for each call, but none to mark an item: chunks are
 * only added, and each has its marks in one atomic word.
 */
#include "base/notify_set.h"

/* Most sets have few items, some have thousands. */
#define FIRST_SLOTS 6
#define MORE_SLOTS  62

static struct notify_chunk *
chunk_new(unsigned n)
{
	struct notify_chunk *k =
		sync_alloc(1, sizeof *k + n * sizeof k->slot[0]);

	if (k != NULL)
		k->n = n;
	return k;
}

/* Find a free slot, or make one.  false: no memory. */
static bool
find_free(struct notify_set *set, struct notify_place *ret)
{
	struct notify_chunk *k = set->open, *next;
	unsigned i;

	if (k == NULL) {
		k = chunk_new(FIRST_SLOTS);
		if (k == NULL)
			return false;
		set->open = k;
		sync_store_sc(&set->first, k);
	}
	for (;; k = set->open = next) {
		for (i = 0; i < k->n; i++)
			if (sync_load(&k->slot[i]) == NULL) {
				ret->k = k;
				ret->i = i;
				return true;
			}
		next = sync_load(&k->next);
		if (next != NULL)
			continue;
		next = chunk_new(MORE_SLOTS);
		if (next == NULL)
			return false;
		sync_store_sc(&k->next, next);
	}
}

bool
evc__notify_set_reserve(struct notify_set *set)
{
	struct notify_place p;

	return find_free(set, &p);
}

bool
evc__notify_set_add(struct notify_set *set, void *item,
		    struct notify_place *ret)
{
	if (!find_free(set, ret))
		return false;
	sync_store_sc(&ret->k->slot[ret->i], item);
	return true;
}

void
evc__notify_set_remove(struct notify_set *set, struct notify_place *p)
{
	struct notify_chunk *k;

	sync_store_sc(&p->k->slot[p->i], NULL);
	sync_and(&p->k->marked, ~(UINT64_C(1) << p->i));
	/* `open` must be the first chunk with a free slot. */
	for (k = sync_load(&set->first); k != set->open;
	     k = sync_load(&k->next))
		if (k == p->k) {
			set->open = k;
			break;
		}
	p->k = NULL;
}

void
evc__notify_set_free(struct notify_set *set)
{
	struct notify_chunk *k = sync_load(&set->first), *next;

	for (; k != NULL; k = next) {
		next = sync_load(&k->next);
		sync_free(k);
	}
}

void *
evc__notify_set_next(struct notify_set *set, struct notify_cursor *at)
{
	uint64_t marked, bit;
	unsigned i;
	void *item;

	for (;;) {
		marked = at->k != NULL
				 ? sync_load_sc(&at->k->marked) & at->ahead
				 : 0;
		if (marked == 0) {
			at->k = at->k == NULL ? sync_load_sc(&set->first)
					      : sync_load_sc(&at->k->next);
			if (at->k == NULL)
				return NULL;
			at->ahead = UINT64_MAX;
			continue;
		}
		i = (unsigned)__builtin_ctzll(marked);
		bit = UINT64_C(1) << i;
		at->ahead = ~(bit | (bit - 1));
		/* The mark is cleared before the item is read: a later mark is
		   for the next pass. */
		if (!(sync_and(&at->k->marked, ~bit) & bit))
			continue;
		item = sync_load(&at->k->slot[i]);
		if (item != NULL)
			return item;
	}
}
