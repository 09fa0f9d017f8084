/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inbox of a reactor: posts on their way to its loop.
 *
 * The box is what an evc_loop_ref points to: it outlives the reactor, and its gate
 * is shut when that goes.
 */
#ifndef EVC_CORE_POST_H
#define EVC_CORE_POST_H

#include <evcoord.h>

#include "base/refgate.h"
#include "base/sync.h"
#include "core/loop/loop_waker.h"

struct evc_loop_ref {
	/* atomic: handles, the reactor, the bell's list -> who frees it */
	_Atomic uint32_t refs;
	/* Around a post: while somebody is inside r is there. */
	struct refgate gate;
	evc_reactor *r; /* set at creation; read inside the gate, or under the
			   bell's lock, where it becomes NULL */
	/* atomic chain, the latest first: who posts -> the loop's thread */
	_Atomic(evc_message *) in;
	/* atomic: accepted and not yet returned: who posts, the loop's thread
	   -> joins */
	_Atomic uint32_t n;
	/* loop thread, or who takes r down, off the bell: taken out of in, in
	   their order */
	evc_message *todo, **todo_end;
	/* written by who puts it in the bell's list, read by who takes that */
	evc_loop_ref *marked_next;
	/* loop thread: among the bell's inboxes; there because of todo, whoever
	   has taken that */
	evc_loop_ref *next;
	bool queued;
};

/* NULL: no memory. */
evc_loop_ref *evc__inbox_new(evc_reactor *r);
/* One reference less. */
void evc__inbox_drop(evc_loop_ref *l);
/* Loop thread: call what is in the inboxes of b's reactors.  false: b is gone. */
bool evc__inboxes_serve(struct evc__loop_waker *b, const struct evc__loop_waker_frame *f);
/* No reactor is on b: let go of those that are left, which are empty. */
void evc__inboxes_drop(struct evc__loop_waker *b);
/* From now on nothing is posted; as often as one likes. */
void evc__inbox_shut(evc_loop_ref *l);
/* It is shut, and r lost, or off its bell: what is in it is called with
   EVC_CANCELLED. */
void evc__inbox_empty(evc_loop_ref *l, evc_coord *c);

#endif
