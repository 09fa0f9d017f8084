/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes on their way into a stream or out of one: put at the end, taken from the
 * front.  What was taken leaves its room to what comes, so that a stream that
 * is kept up with stays in the same memory.
 */
#ifndef EVC_CLUSTER_FRAMES_BYTES_H
#define EVC_CLUSTER_FRAMES_BYTES_H

#include "base/sync.h"

struct bytes {
	unsigned char *p;
	size_t from, n, room; /* p[from .. from + n) are there */
};

#define BYTES_KEPT ((size_t)64 << 10) /* memory that one that is empty keeps */

/* NULL + 0 is undefined, and of no bytes there may be no memory. */
static inline unsigned char *
bytes_behind(const struct bytes *b, size_t at)
{
	return b->p != NULL ? b->p + b->from + at : NULL;
}

static inline unsigned char *
bytes_at(const struct bytes *b)
{
	return bytes_behind(b, 0);
}

static inline void
bytes_free(struct bytes *b)
{
	sync_free(b->p);
	*b = (struct bytes){ 0 };
}

/* So many are to be put behind the others: where?  NULL: no memory, and nothing
   has changed. */
static inline unsigned char *
bytes_room(struct bytes *b, size_t more)
{
	size_t room = b->room != 0 ? b->room : 512;
	unsigned char *p;

	if (more <= b->room - b->from - b->n)
		return b->p + b->from + b->n;
	if (more > SIZE_MAX / 4 || b->n > SIZE_MAX / 4)
		return NULL;
	/* Half of it at least is free then: else few bytes would be moved
	   again and again. */
	if (b->p != NULL && b->n + more <= b->room / 2) {
		memmove(b->p, b->p + b->from, b->n);
		b->from = 0;
		return b->p + b->n;
	}
	while (room < b->n + more)
		room *= 2;
	p = sync_alloc(1, room);
	if (p == NULL)
		return NULL;
	if (b->n > 0)
		memcpy(p, b->p + b->from, b->n);
	sync_free(b->p);
	b->p = p;
	b->from = 0;
	b->room = room;
	return p + b->n;
}

/* false: no memory. */
static inline bool
bytes_put(struct bytes *b, const void *from, size_t n)
{
	unsigned char *to = n > 0 ? bytes_room(b, n) : NULL;

	if (n > 0 && to == NULL)
		return false;
	if (n > 0)
		memcpy(to, from, n);
	b->n += n;
	return true;
}

/* The first n are done with. */
static inline void
bytes_take(struct bytes *b, size_t n)
{
	b->from += n;
	b->n -= n;
	if (b->n > 0)
		return;
	b->from = 0;
	if (b->room > BYTES_KEPT)
		bytes_free(b);
}

#endif
