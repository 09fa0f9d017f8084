/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is told: listeners, and the table they stand in.
 */
#ifndef EVC_CORE_LISTENER_H
#define EVC_CORE_LISTENER_H

#include <evcoord.h>

#include "base/notify_set.h"
#include "base/sync.h"

/*
 * What is told of a request: a reactor, a scope, the helper thread, a looper's
 * own thread, the descriptor of a join in steps.  It stands in the coordinator's
 * table; tell() is called by the requesting thread and must be safe in a signal
 * handler.
 */
struct evc__listener {
	void (*tell)(struct evc__listener *l); /* NULL: a scope */
	evc_coord *scope;
	/* How many joins (or runs) on it want to hear every ring.
	   Atomic: the loop's thread -> whoever rings. */
	_Atomic uint32_t n_joins;
	bool joins; /* joins may be there: else nobody looks at n_joins */
	struct notify_place at; /* lock: where it stands */
};

/* In this order they are told.  Each kind has a table of its own, because a ring
   is for the first one alone, and of the others there may be thousands. */
enum { LISTENS_JOINS, LISTENS_STOP, LISTENS_SCOPE, LISTENER_KINDS };

/* ---- notify.c ---- */

/* Something that can change a join's answer has happened, here or below. */
void evc__ring(evc_coord *c);
/* What joins of the scopes below have to keep to has changed; signal-safe. */
void evc__ring_below(evc_coord *c);
/* Tell everybody of the stop, unless somebody has done it. */
void evc__tell_all(evc_coord *c);
/* Tell everybody of the drain. */
void evc__tell_drain(evc_coord *c);
/* Lock held: stand in the table; false: no memory. */
bool evc__listen(evc_coord *c, struct evc__listener *l);
/* Lock held: leave it; nobody calls tell() afterwards. */
void evc__unlisten(evc_coord *c, struct evc__listener *l);

#endif
