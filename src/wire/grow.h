/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that become a value.  The first bytes stand on the stack, so a small
 * value is one allocation of its own size.
 */
#ifndef EVC_CLUSTER_GROW_H
#define EVC_CLUSTER_GROW_H

#include <evcoord/value.h>

#include "base/sync.h"
#include "wire/spare.h"

struct grow {
	unsigned char *p;
	size_t n, room;
	struct spare *spare; /* NULL: none */
	bool failed; /* no memory: bytes added later are dropped */
	unsigned char first[512];
};

static inline void
grow_init(struct grow *g)
{
	g->p = g->first;
	g->n = 0;
	g->room = sizeof(g->first);
	g->spare = NULL;
	g->failed = false;
}

static inline void
grow_drop(struct grow *g)
{
	if (g->p != g->first)
		sync_free(g->p);
	grow_init(g);
}

static inline bool
grow_room_(struct grow *g, size_t n)
{
	size_t room = g->room * 2;
	unsigned char *p;

	if (room < g->room || room - g->n < n)
		room = g->n + n;
	p = room >= n && g->spare != NULL ? spare_take(g->spare, room) : NULL;
	if (p == NULL && room >= n)
		p = sync_alloc_bytes(room);
	if (p == NULL) {
		g->failed = true;
		return false;
	}
	memcpy(p, g->p, g->n);
	if (g->p != g->first && g->spare != NULL)
		spare_put(g->spare, g->p, g->room);
	else if (g->p != g->first)
		sync_free(g->p);
	g->p = p;
	g->room = room;
	return true;
}

static inline void
grow_add(struct grow *g, const void *bytes, size_t n)
{
	if (n == 0 || g->failed || (n > g->room - g->n && !grow_room_(g, n)))
		return;
	memcpy(g->p + g->n, bytes, n);
	g->n += n;
}

/* The bytes as a value; false: no memory, and nothing is kept. */
static inline bool
grow_take(struct grow *g, evc_value *ret)
{
	void *p = g->p;

	if (!g->failed && g->n > 0 && g->p == g->first) {
		p = sync_alloc_bytes(g->n);
		if (p != NULL)
			memcpy(p, g->first, g->n);
	}
	if (g->failed || p == NULL) {
		grow_drop(g);
		return false;
	}
	ret->data = g->n > 0 ? p : NULL;
	ret->size = g->n;
	return true;
}

#endif
