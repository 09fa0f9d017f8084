/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large blocks of memory that are used again.  The C library gives such blocks
 * back to the kernel, and new pages cost more than the bytes written there.
 */
#ifndef EVC_CLUSTER_SPARE_H
#define EVC_CLUSTER_SPARE_H

#include "base/sync.h"

#define SPARE_LEAST ((size_t)64 << 10) /* bytes of a block that is kept */
#define SPARES 2 /* one value is made while another is still in use */

/* Zeroed before the first use.  The owner gives the blocks back when they have
   been unused for a while. */
struct spare {
	struct spare_block {
		void *p; /* NULL: none */
		size_t n;
	} all[SPARES];
};

/* A block of n bytes or more, but not of many more.  NULL: there is none. */
static inline void *
spare_take(struct spare *s, size_t n)
{
	struct spare_block *b;
	void *p;

	for (b = s->all; b < s->all + SPARES; b++)
		if (b->p != NULL && b->n >= n && b->n / 2 <= n) {
			p = b->p;
			b->p = NULL;
			return p;
		}
	return NULL;
}

/* A block of sync_alloc_bytes, n bytes at least, is free. */
static inline void
spare_put(struct spare *s, void *p, size_t n)
{
	struct spare_block *b, *to = s->all;

	if (n < SPARE_LEAST) {
		sync_free(p);
		return;
	}
	/* In place of none, or of the smallest. */
	for (b = s->all; b < s->all + SPARES; b++)
		if (to->p != NULL && (b->p == NULL || b->n < to->n))
			to = b;
	sync_free(to->p);
	*to = (struct spare_block){ p, n };
}

static inline bool
spare_is_empty(const struct spare *s)
{
	unsigned i;

	for (i = 0; i < SPARES; i++)
		if (s->all[i].p != NULL)
			return false;
	return true;
}

static inline void
spare_drop(struct spare *s)
{
	unsigned i;

	for (i = 0; i < SPARES; i++)
		sync_free(s->all[i].p);
	*s = (struct spare){ 0 };
}

#endif
