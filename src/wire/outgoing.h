/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes on their way into a stream: a buffer of frames, and large values that
 * stay where they are until they were sent.  Such a value is lent: its frame in
 * the buffer lacks its bytes.  The lender keeps them until then, or has them
 * copied by evc__outgoing_own.
 */
#ifndef EVC_CLUSTER_OUTGOING_H
#define EVC_CLUSTER_OUTGOING_H

#include "wire/frames_bytes.h"

#define LEND_LEAST ((size_t)32 << 10) /* bytes of a value that is lent */
#define PIECES_MOST 16                /* of one call that sends */

struct lent {
	uint64_t at; /* place: so many bytes of the buffer come before, counted
			from the begin of the stream */
	const unsigned char *p;
	size_t n;
};

/* Zeroed before the first use. */
struct outgoing {
	struct bytes own;
	uint64_t taken;         /* bytes of `own` that were sent */
	struct lent *lent;      /* lent[first_lent .. n_lent) wait */
	size_t first_lent, n_lent, lent_room;
	uint64_t n_lent_bytes;
};

/* Number of bytes that wait. */
static inline uint64_t
outgoing_size(const struct outgoing *o)
{
	return o->own.n + o->n_lent_bytes;
}

/* Room for n lent values more.  false: no memory. */
bool evc__outgoing_reserve(struct outgoing *o, size_t n);
/* The next bytes, in PIECES_MOST pieces at most: their number. */
unsigned evc__outgoing_pieces(const struct outgoing *o,
			      struct iovec pieces[static PIECES_MOST]);
/* The first n bytes were sent. */
void evc__outgoing_take(struct outgoing *o, size_t n);
/* Copy all that is lent.  false: no memory, and nothing has changed. */
bool evc__outgoing_own(struct outgoing *o);
void evc__outgoing_free(struct outgoing *o);

#endif
