/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inbox of a reactor: posts on their way to its loop.
 *
 * An evc_loop_ref points to the inbox: the inbox outlives the reactor, and its
 * refgate is shut when the reactor goes.
 */
#ifndef EVC_CORE_POST_H
#define EVC_CORE_POST_H

#include <evcoord.h>

#include "base/refgate.h"
#include "base/sync.h"
#include "core/loop/loop_waker.h"

/* evc_message.posted_ of a message by evc__inbox_put; by a post it is 1. */
#define POSTED_UNCOUNTED 2

struct evc_loop_ref {
	/* atomic: handles, the reactor, the loop_waker's list -> the freeing
	   thread */
	_Atomic uint32_t refs;
	/* Around a post: while a thread is inside, r stays. */
	struct refgate gate;
	evc_reactor *r; /* set at creation; read inside the refgate, or under
			   the loop_waker's lock, where r becomes NULL */
	/* atomic chain, the latest first: posting threads -> the loop's
	   thread */
	_Atomic(evc_message *) in;
	/* atomic: accepted and not yet returned: posting threads, the loop's
	   thread -> joins */
	_Atomic uint32_t n;
	/* loop thread, or the thread that takes r down, off the loop_waker:
	   taken out of `in`, in their order */
	evc_message *todo, **todo_end;
	/* written by the thread that puts the inbox into the loop_waker's list,
	   read by the thread that takes the list */
	evc_loop_ref *marked_next;
	/* loop thread: in the loop_waker's inboxes; there because of todo,
	   whichever thread has taken todo */
	evc_loop_ref *next;
	bool queued;
};

/* A new inbox; NULL: no memory. */
evc_loop_ref *evc__inbox_new(evc_reactor *r);
/* The caller holds a reference to l: put m, a message of the library's, into l.
   m counts as alive only while its function runs on the loop, and may come
   after the stop.  false: the loop is gone. */
bool evc__inbox_put(evc_loop_ref *l, evc_message *m);
/* One reference less. */
void evc__inbox_drop(evc_loop_ref *l);
/* Loop thread: call the messages in the inboxes of lw's reactors.  false: lw is
   gone. */
bool evc__inboxes_serve(struct evc__loop_waker *lw,
			const struct evc__loop_waker_frame *f);
/* lw has no reactor: give back the references to the inboxes in its list and
   queue, which are empty. */
void evc__inboxes_drop(struct evc__loop_waker *lw);
/* From now on no post is accepted; may be called again. */
void evc__inbox_shut(evc_loop_ref *l);
/* l is shut, and r lost, or off its loop_waker: messages in l are called with
   EVC_CANCELLED. */
void evc__inbox_empty(evc_loop_ref *l, evc_coord *c);

#endif
