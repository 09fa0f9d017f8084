/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is freed all at once and used again: a worker's results until the
 * engine has sent them.
 */
#ifndef EVC_CLUSTER_ARENA_H
#define EVC_CLUSTER_ARENA_H

#include <evcoord/value.h>

#include "base/sync.h"

#define ARENA_CHUNK 4000
#define ARENA_KEPT (64u << 10) /* bytes that an emptied arena keeps */
#define ARENA_ALIGN 16

struct arena_chunk {
	struct arena_chunk *next;
	size_t room, used;
	_Alignas(ARENA_ALIGN) unsigned char bytes[];
};

/* A value of the heap that is freed with the rest. */
struct arena_owned {
	struct arena_owned *next;
	evc_value value;
};

struct arena {
	struct arena_chunk *first, *at; /* at: the chunk that may have room */
	struct arena_owned *owned;
};

static inline void *
arena_more_(struct arena *a, size_t n)
{
	size_t room = n > ARENA_CHUNK ? n : ARENA_CHUNK;
	struct arena_chunk *c = a->at != NULL ? a->at->next : NULL;

	if (c == NULL || c->room < n) {
		if (room > SIZE_MAX - sizeof *c)
			return NULL;
		c = sync_alloc_bytes(sizeof *c + room);
		if (c == NULL)
			return NULL;
		c->next = NULL;
		c->room = room;
		if (a->at != NULL) {
			c->next = a->at->next;
			a->at->next = c;
		} else {
			a->first = c;
		}
	}
	a->at = c;
	c->used = n;
	return c->bytes;
}

/* NULL: no memory.  The bytes are not zeroed. */
static inline void *
arena_take(struct arena *a, size_t n)
{
	struct arena_chunk *c = a->at;
	void *p;

	if (n > SIZE_MAX - ARENA_ALIGN)
		return NULL;
	n = (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (c == NULL || n > c->room - c->used)
		return arena_more_(a, n);
	p = c->bytes + c->used;
	c->used += n;
	return p;
}

static inline void *
arena_copy(struct arena *a, const void *bytes, size_t n)
{
	void *p = arena_take(a, n > 0 ? n : 1);

	if (p != NULL && n > 0)
		memcpy(p, bytes, n);
	return p;
}

/* Take over a value of the heap; false: no memory, and the value stays the
   caller's. */
static inline bool
arena_own(struct arena *a, const evc_value *v)
{
	struct arena_owned *o = arena_take(a, sizeof *o);

	if (o == NULL)
		return false;
	o->value = *v;
	o->next = a->owned;
	a->owned = o;
	return true;
}

/* Give back a value that was taken over: the caller's again.  false: there is no
   such value. */
static inline bool
arena_give(struct arena *a, const evc_value *v)
{
	struct arena_owned **at = &a->owned, *o;

	for (; (o = *at) != NULL; at = &o->next)
		if (o->value.data == v->data) {
			*at = o->next;
			return true;
		}
	return false;
}

/* Free all values; large chunks go back to the heap. */
static inline void
arena_empty(struct arena *a, size_t keep)
{
	struct arena_chunk *c, **at = &a->first;

	for (; a->owned != NULL; a->owned = a->owned->next)
		evc_value_free(&a->owned->value);
	while ((c = *at) != NULL) {
		c->used = 0;
		if (c->room <= keep) {
			keep -= c->room;
			at = &c->next;
		} else {
			*at = c->next;
			sync_free(c);
		}
	}
	a->at = a->first;
}

#endif
