/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A buffer of a stream: bytes are put at the end and taken from the front.  The
 * room of taken bytes is used again, so a stream without a backlog stays in the
 * same memory.
 */
#ifndef EVC_CLUSTER_FRAMES_BYTES_H
#define EVC_CLUSTER_FRAMES_BYTES_H

#include "base/array.h"
#include "base/sync.h"

struct bytes {
	unsigned char *p;
	size_t from, n, room; /* the bytes are p[from .. from + n) */
};

#define BYTES_FIRST ((size_t)256)
#define BYTES_MOST  ((size_t)PTRDIFF_MAX)
#define BYTES_KEPT ((size_t)64 << 10) /* memory that an empty buffer keeps */

/* NULL + 0 is undefined, and an empty buffer may have no memory. */
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

/* More memory, twice as much at least. */
static inline bool
bytes_grow_(struct bytes *b, size_t more)
{
	size_t room = BYTES_FIRST;
	unsigned char *p;

	if (more > BYTES_MOST - b->n)
		return false;
	if (b->room > 0)
		room = b->room <= BYTES_MOST / 2 ? b->room * 2 : BYTES_MOST;
	if (room < b->n + more)
		room = b->n + more;
	p = sync_alloc_bytes(room);
	if (p == NULL)
		return false;
	if (b->n > 0)
		memcpy(p, b->p + b->from, b->n);
	sync_free(b->p);
	b->p = p;
	b->from = 0;
	b->room = room;
	return true;
}

/* Room for more bytes at the end.  NULL: no memory, and the bytes are as
   before. */
static inline unsigned char *
bytes_room(struct bytes *b, size_t more)
{
	if (more <= b->room - b->from - b->n)
		return b->p + b->from + b->n;
	/* Where the bytes are moved to the front, half of the memory is free
	   behind them then: few bytes are not moved again and again. */
	if (b->n > b->room / 2 || more > b->room / 2 - b->n)
		return bytes_grow_(b, more) ? b->p + b->n : NULL;
	if (b->n > 0)
		memmove(b->p, b->p + b->from, b->n);
	b->from = 0;
	return b->p + b->n;
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

/* Drop the first n bytes, and keep the memory. */
static inline void
bytes_pass(struct bytes *b, size_t n)
{
	b->from += n;
	b->n -= n;
	if (b->n == 0)
		b->from = 0;
}

/* Drop the first n bytes.  An empty buffer keeps little memory. */
static inline void
bytes_take(struct bytes *b, size_t n)
{
	bytes_pass(b, n);
	if (b->n == 0 && b->room > BYTES_KEPT)
		bytes_free(b);
}

#endif
