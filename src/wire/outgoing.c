/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waits to be sent: bytes of a buffer and lent values, in turns.
 * Called by: cluster/processes and cluster/worker.
 * Locks: none.
 */
#include "wire/outgoing.h"

bool
evc__outgoing_reserve(struct outgoing *o, size_t n)
{
	if (o->first_lent > 0) {
		o->n_lent -= o->first_lent;
		memmove(o->lent, o->lent + o->first_lent,
			o->n_lent * sizeof *o->lent);
		o->first_lent = 0;
	}
	return ARRAY_RESERVE(o->lent, o->n_lent, o->lent_room, n);
}

unsigned
evc__outgoing_pieces(const struct outgoing *o,
		     struct iovec pieces[static PIECES_MOST])
{
	size_t i = o->first_lent, at = 0, to;
	unsigned n = 0;

	while (n < PIECES_MOST) {
		to = i < o->n_lent ? (size_t)(o->lent[i].at - o->taken) :
				     o->own.n;
		if (to > at)
			pieces[n++] = (struct iovec){ bytes_behind(&o->own, at),
						      to - at };
		at = to;
		if (i == o->n_lent || n == PIECES_MOST)
			break;
		pieces[n++] = (struct iovec){ (void *)o->lent[i].p,
					      o->lent[i].n };
		i++;
	}
	return n;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

void
evc__outgoing_take(struct outgoing *o, size_t n)
{
	struct lent *l;
	size_t k;

	while (n > 0) {
		l = o->first_lent < o->n_lent ? &o->lent[o->first_lent] : NULL;
		k = least(n, l != NULL ? (size_t)(l->at - o->taken) : o->own.n);
		if (k > 0) {
			bytes_take(&o->own, k);
			o->taken += k;
		} else {
			k = least(n, l->n);
			l->p += k;
			l->n -= k;
			o->n_lent_bytes -= k;
			o->first_lent += l->n == 0;
		}
		n -= k;
	}
	if (o->first_lent == o->n_lent)
		o->first_lent = o->n_lent = 0;
}

bool
evc__outgoing_own(struct outgoing *o)
{
	uint64_t size = outgoing_size(o);
	struct bytes all = { 0 };
	size_t i, at = 0, to;

	if (o->first_lent == o->n_lent)
		return true;
	if (size > SIZE_MAX || bytes_room(&all, (size_t)size) == NULL)
		return false;
	for (i = o->first_lent; i <= o->n_lent; i++) {
		to = i < o->n_lent ? (size_t)(o->lent[i].at - o->taken) :
				     o->own.n;
		bytes_put(&all, bytes_behind(&o->own, at), to - at);
		at = to;
		if (i < o->n_lent)
			bytes_put(&all, o->lent[i].p, o->lent[i].n);
	}
	bytes_free(&o->own);
	o->own = all;
	o->first_lent = o->n_lent = 0;
	o->n_lent_bytes = 0;
	return true;
}

void
evc__outgoing_free(struct outgoing *o)
{
	bytes_free(&o->own);
	sync_free(o->lent);
	*o = (struct outgoing){ 0 };
}
