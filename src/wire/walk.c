/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk over a value: the check of all bytes, and a call for each reference.
 * Called by: all rooms that read values from a wire, a file or a program.
 * Locks: none.
 */
#include "wire/walk.h"

#include <evcoord.h>

#include "wire/head.h"

/* The end of a walk. */
enum end {
	WHOLE,    /* the value is over */
	CALLED,   /* `ref` wanted no more */
	CUT,      /* the bytes end inside a head */
	NO_HEAD,
	TOO_LONG, /* a length goes beyond the bytes */
	TOO_DEEP,
	FOREIGN   /* a foreign extension */
};

struct walk {
	const unsigned char *p;
	size_t n;
	unsigned outside; /* arrays and maps around the value */
	bool (*ref)(const struct walk_ref *r, void *arg);
	void *arg;
	size_t at;        /* begin of the value that is being read */
	struct head head; /* head of the value at `at` */
};

void
evc__walk_put_ref(unsigned char *to, bool per_worker, uint32_t serial,
		  uint64_t id)
{
	to[0] = 0xc7;
	to[1] = EXT_SIZE;
	to[2] = per_worker ? EXT_PER_WORKER : EXT_REMOTE;
	head_put_number(to + 3, 4, serial);
	head_put_number(to + 7, 8, id);
}

void
evc__walk_ref(const unsigned char *p, const struct head *h, size_t at,
	      struct walk_ref *ret)
{
	ret->per_worker = h->type == EVC_VALUE_PER_WORKER;
	ret->serial = (uint32_t)head_number(p + h->size, 4);
	ret->id = head_number(p + h->size + 4, 8);
	ret->at = at;
	ret->size = h->size + (size_t)h->n;
}

static bool
tell_ref(const struct walk *w)
{
	struct walk_ref r;

	if (w->ref == NULL || (w->head.type != EVC_VALUE_REMOTE &&
			       w->head.type != EVC_VALUE_PER_WORKER))
		return true;
	evc__walk_ref(w->p + w->at, &w->head, w->at, &r);
	return w->ref(&r, w->arg);
}

/* Read one value, from w->at to its end.  `left` counts down what each array or
   map has to give, so a length costs nothing until its elements are there. */
static enum end
walk_value(struct walk *w)
{
	uint64_t left[EVC_VALUE_DEPTH], items, room;
	struct head *h = &w->head;
	unsigned depth = w->outside;
	enum head_end e;

	for (;;) {
		e = evc__head(w->p + w->at, w->n - w->at, h);
		if (e != HEAD_FINE)
			return e == HEAD_CUT ? CUT : NO_HEAD;
		room = w->n - w->at - h->size;
		if (h->type == EVC_VALUE_ARRAY || h->type == EVC_VALUE_MAP) {
			items = h->type == EVC_VALUE_MAP ? 2 * h->n : h->n;
			if (depth >= EVC_VALUE_DEPTH)
				return TOO_DEEP;
			if (items > room)
				return TOO_LONG; /* each element has at least a
						    byte */
			w->at += h->size;
			if (items > 0) {
				left[depth++] = items;
				continue;
			}
		} else {
			if (h->type == HEAD_FOREIGN)
				return FOREIGN;
			if (h->n > room)
				return TOO_LONG;
			if (!tell_ref(w))
				return CALLED;
			w->at += h->size + (size_t)h->n;
		}
		while (depth > w->outside && --left[depth - 1] == 0)
			depth--;
		if (depth <= w->outside)
			return WHOLE;
	}
}

static evc_status
refuse_end(const struct walk *w, enum end e)
{
	switch (e) {
	case CUT:
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "no value: it is cut off at byte %zu", w->n);
	case NO_HEAD:
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "no value: 0xc1 at byte %zu begins nothing",
				  w->at);
	case TOO_LONG:
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "no value: at byte %zu is %s of %llu, and "
				  "%zu bytes are left", w->at,
				  evc__type_text(w->head.type),
				  (unsigned long long)w->head.n,
				  w->n - w->at - w->head.size);
	case TOO_DEEP:
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "too deep: %s at byte %zu is inside %d "
				  "others", evc__type_text(w->head.type), w->at,
				  EVC_VALUE_DEPTH);
	case FOREIGN:
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "an extension of type %d and %llu bytes at "
				  "byte %zu means nothing here", w->head.ext,
				  (unsigned long long)w->head.n, w->at);
	default:
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "no value: %zu bytes more stand behind its "
				  "end at byte %zu", w->n - w->at, w->at);
	}
}

evc_status
evc__value_walk(const void *bytes, size_t n,
		bool (*ref)(const struct walk_ref *r, void *arg), void *arg)
{
	struct walk w = { .p = bytes, .n = n, .ref = ref, .arg = arg };
	enum end e;

	if (n == 0)
		return 0;
	if (bytes == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "no value: %zu bytes at NULL", n);
	e = walk_value(&w);
	if (e == CALLED || (e == WHOLE && w.at == n))
		return 0;
	return refuse_end(&w, e);
}

bool
evc__walk_is_value(const evc_value *value, unsigned outside)
{
	struct walk w = { .p = value->data,
			  .n = value->size,
			  .outside = outside };

	if (w.n == 0)
		return true;
	return w.p != NULL && walk_value(&w) == WHOLE && w.at == w.n;
}

size_t
evc__walk_size(const unsigned char *p, size_t n)
{
	struct walk w = { .p = p, .n = n };

	return walk_value(&w) == WHOLE ? w.at : 0;
}
