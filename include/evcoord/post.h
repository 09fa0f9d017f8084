/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts: run a function on a loop's thread, from anywhere.
 *
 * An evc_reactor is gone when its loop is detached, so only a thread that knows
 * when this happens may use the reactor.  An evc_loop_ref is a handle that
 * outlives the reactor: its owner may post at any time, and a post fails when
 * there is no loop any more.
 *
 * The function of each accepted post is called exactly once, in the order of
 * the posts of one thread: on the loop, or, when the loop is detached or
 * destroyed first, with EVC_CANCELLED.  Until then the post counts as alive,
 * like a task: joins and evc_reactor_run wait for it.
 */
#ifndef EVCOORD_POST_H
#define EVCOORD_POST_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

typedef struct evc_loop_ref evc_loop_ref;
typedef struct evc_message evc_message;

/*
 * A post in memory of the caller, which allocates nothing.  The struct is
 * zeroed before its first use, and stays where it is from an accepted post
 * until fn is called.
 */
struct evc_message {
	/* Called once.  On the loop's thread why is 0; when the loop is gone or
	   going, why is EVC_CANCELLED, and fn must not use the loop.  fn may
	   free the message or post it again. */
	void (*fn)(evc_message *m, evc_status why);
	unsigned flags; /* EVC_AFTER_STOP: accepted after the stop, too */
	/* the library's */
	uint32_t posted_;
	evc_message *next_;
	uint64_t reserved_[2];
};

/* The function of evc_post: r is the loop's reactor, or NULL when the loop is
   gone; why as for evc_message.fn. */
typedef void evc_post_fn(evc_reactor *r, evc_status why, void *arg);

/*
 * Make a handle of a reactor's loop; each call makes another one.
 *
 * Thread:    any that may use r.
 * Ownership: the caller owns the result and gives it back by
 *            evc_loop_release, at any time, before or after r is gone.
 * Returns:   the handle; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_loop_ref *
evc_loop_of(evc_reactor *r);

/*
 * Give a handle back.
 *
 * Thread:    any; not a signal handler.
 * Ownership: loop is gone for the caller; posts by this handle are still
 *            called.  NULL is fine.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_loop_release(evc_loop_ref *loop);

/*
 * Get the reactor of a handle's loop, as long as the loop is attached.
 *
 * Thread:    the loop's: on another thread the reactor could be gone the next
 *            moment.
 * Ownership: the coordinator's.
 * Returns:   the reactor; NULL when the loop was detached or destroyed, and for
 *            NULL.
 * Since:     0.1
 */
EVC_API evc_reactor *
evc_loop_reactor(const evc_loop_ref *loop);

/*
 * Get the reactor of a handle's loop on any other thread.  The reactor stays
 * until evc_loop_leave: a thread that detaches or destroys the loop waits for
 * that.  So do little between the two calls, and nothing that may wait for the
 * loop's thread.
 *
 * Thread:    any; not a signal handler.
 * Ownership: the coordinator's; the caller owes one evc_loop_leave.
 * Returns:   the reactor; NULL when the loop was detached or destroyed, for
 *            NULL and in a fork child: then no evc_loop_leave is owed.
 * Since:     0.1
 */
EVC_API evc_reactor *
evc_loop_enter(evc_loop_ref *loop);

/*
 * Let the reactor go that evc_loop_enter gave.
 *
 * Thread:    the thread that has entered.
 * Ownership: the reactor may be gone from here on.
 * Returns:   nothing; with NULL nothing happens.
 * Since:     0.1
 */
EVC_API void
evc_loop_leave(evc_loop_ref *loop);

/*
 * Run fn(r, 0, arg) on the loop's thread, in the loop's next turn.
 *
 * Thread:    any; not a signal handler.
 * Ownership: arg must live until fn was called.  After a refusal fn is not
 *            called.
 * Returns:   0; -EVC_CANCELLED after the stop; -EVC_NOT_FOUND when the loop is
 *            gone; -EVC_RESOURCE_EXHAUSTED, -EVC_INVALID_ARGUMENT,
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_post(evc_loop_ref *loop, evc_post_fn *fn, void *arg);

/*
 * Post a message, a post in memory of the caller.
 *
 * Thread:    any, and any signal handler.
 * Ownership: m is the loop's until its fn is called; after a refusal it is the
 *            caller's.
 * Returns:   0; -EVC_ALREADY_EXISTS while m is posted; else as evc_post.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_post_message(evc_loop_ref *loop, evc_message *m);

EVC_END_DECLS_

#endif
