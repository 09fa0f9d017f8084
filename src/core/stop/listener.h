/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners: the objects that are told of a stop, and the table of a
 * coordinator with its listeners.
 */
#ifndef EVC_CORE_LISTENER_H
#define EVC_CORE_LISTENER_H

#include <evcoord.h>

#include "base/notify_set.h"
#include "base/sync.h"

/*
 * An object that is told of a request: a reactor, a scope, the helper thread, a
 * looper's own thread, the descriptor of a join in steps.  The requesting
 * thread calls tell(), which has to be safe in a signal handler.
 */
struct evc__listener {
	void (*tell)(struct evc__listener *l); /* NULL: a scope */
	evc_coord *scope;
	/* How many joins (or runs) of this listener want to hear every ring.
	   Atomic: the loop's thread -> the ringing thread. */
	_Atomic uint32_t n_joins;
	bool joins; /* false: n_joins is never read */
	struct notify_place at; /* lock: its place in the table */
};

/* The kinds of listeners, in the order in which a walk tells them.  Each kind
   has a table of its own: a ring needs only the first kind, and there may be
   thousands of the others. */
enum { LISTENS_JOINS, LISTENS_STOP, LISTENS_SCOPE, LISTENER_KINDS };

/* ---- notify.c ---- */

/* An event that can change a join's answer has happened, in c or below. */
void evc__ring(evc_coord *c);
/* A limit that joins of the scopes below keep has changed; signal-safe. */
void evc__ring_below(evc_coord *c);
/* Turn all loops of c and of the scopes below; signal-safe. */
void evc__ring_all(evc_coord *c);
/* Tell all listeners of the stop, unless another thread has told them. */
void evc__tell_all(evc_coord *c);
/* Tell all listeners of the drain. */
void evc__tell_drain(evc_coord *c);
/* Lock held: add l to the table; false: no memory. */
bool evc__listen(evc_coord *c, struct evc__listener *l);
/* Lock held: take l out; tell() is not called afterwards. */
void evc__unlisten(evc_coord *c, struct evc__listener *l);

#endif
