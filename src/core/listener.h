/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is told: listeners, and the table they stand in.
 */
#ifndef EVC_CORE_LISTENER_H
#define EVC_CORE_LISTENER_H

#include <evcoord.h>

#include "base/sync.h"

/*
 * What is told of a request: a reactor, the helper thread.  It stands in the
 * coordinator's table; tell() is called by the requesting thread and must be
 * safe in a signal handler.
 */
struct evc__listener {
	void (*tell)(struct evc__listener *l);
	/* How many joins (or runs) on it want to hear every ring.
	   Atomic: the loop's thread -> whoever rings. */
	_Atomic uint32_t n_joins;
};

/* Slots for listeners come in chunks that are only ever added. */
#define CHUNK_SLOTS 14
struct evc__chunk {
	_Atomic(struct evc__listener *) slot[CHUNK_SLOTS];
	_Atomic(struct evc__chunk *) next;
};

/* ---- notify.c ---- */

/* Something that can change a join's answer has happened. */
void evc__ring(evc_coord *c);
/* Tell everybody of the stop, unless somebody has done it. */
void evc__tell_all(evc_coord *c);
/* Lock held: stand in the table; false: no memory. */
bool evc__listen(evc_coord *c, struct evc__listener *l);
/* Lock held: leave it; nobody calls tell() afterwards. */
void evc__unlisten(evc_coord *c, struct evc__listener *l);

#endif
