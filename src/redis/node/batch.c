/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parcels: what there is to tell, in its order, until send.c has sent it.
 */
#include "redis/node/node.h"

#define PARCEL_MOST ((size_t)1 << 20) /* bytes, roughly */

struct parcel *
evc__node_parcel_add(struct life *l, enum parcel_kind kind)
{
	struct parcel *p = sync_alloc(1, sizeof *p);

	if (p == NULL) {
		evc__node_life_no_memory(l);
		return NULL;
	}
	p->l = l;
	p->kind = kind;
	p->at = NOWHERE;
	if (l->last != NULL)
		l->last->next = p;
	else
		l->first = p;
	l->last = p;
	if (l->next == NULL)
		l->next = p;
	return p;
}

bool
evc__node_tell_slot(struct bytes *b, unsigned slot, uint32_t number)
{
	return evc__frame_put_number(b, FRAME_SLOT,
				     (uint64_t)slot << 32 | number) == 0;
}

struct bytes *
evc__node_tell(struct life *l, const struct slot *s)
{
	struct parcel *p = l->last;
	uint64_t at;

	if (p == NULL || p->kind != PARCEL_PLAIN || p->seq != 0 ||
	    p->frames.n >= PARCEL_MOST)
		p = evc__node_parcel_add(l, PARCEL_PLAIN);
	if (p == NULL || s == NULL)
		return p != NULL ? &p->frames : NULL;
	at = (uint64_t)s->index << 32 | s->number;
	if (p->at != at &&
	    !evc__node_tell_slot(&p->frames, s->index, s->number)) {
		evc__node_life_no_memory(l);
		return NULL;
	}
	p->at = at;
	return &p->frames;
}

void
evc__node_tell_value(struct life *l, uint64_t id, const evc_value *value)
{
	struct parcel *p = evc__node_parcel_add(l, PARCEL_VALUE);

	if (p == NULL)
		return;
	p->id = id;
	if (evc_value_copy(&p->value, value) < 0) {
		evc__node_life_no_memory(l);
		return;
	}
	evc__node_value_keep(l, id, value);
}
