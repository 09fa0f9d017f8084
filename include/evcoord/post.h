/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts: run a function on a loop's thread, from anywhere.
 *
 * An evc_reactor is gone when its loop is detached, and only those that know
 * when that is may use it.  An evc_loop_ref is a handle that outlives it: whoever
 * holds one may post for ever, and hears when there is no loop any more.
 *
 * Each accepted post is called exactly once, in the order of the posts of one
 * thread: on the loop, or, with a reason, as not run when the loop is detached
 * or destroyed first.  Until then it counts as alive, like a task: joins and
 * evc_reactor_run wait for it.
 */
#ifndef EVCOORD_POST_H
#define EVCOORD_POST_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

typedef struct evc_loop_ref evc_loop_ref;
typedef struct evc_message evc_message;

/*
 * A post in memory of the caller, which allocates nothing.  Zeroed before its
 * first use; from an accepted post until fn is called it stays where it is.
 */
struct evc_message {
	/* Called once, on the loop's thread: why is 0; or, the loop is gone or
	   going, EVC_CANCELLED: do not use it.  In it the mail may be freed or
	   posted again. */
	void (*fn)(evc_message *m, evc_status why);
	unsigned flags; /* EVC_AFTER_STOP: also after the stop */
	/* the library's */
	uint32_t posted_;
	evc_message *next_;
	uint64_t reserved_[2];
};

/* A post of evc_post: r is the loop's reactor, or NULL when it is not run; why
   as for evc_message.fn. */
typedef void evc_post_fn(evc_reactor *r, evc_status why, void *arg);

/*
 * A handle of a reactor's loop, one more each time.
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
 * Ownership: loop is gone for the caller; what it has posted is still called.
 *            NULL is fine.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_loop_release(evc_loop_ref *loop);

/*
 * The reactor of a handle's loop, as long as it is there.
 *
 * Thread:    the loop's: on another one it could be gone the next moment.
 * Ownership: the coordinator's.
 * Returns:   the reactor; NULL when the loop was detached or destroyed, and for
 *            NULL.
 * Since:     0.1
 */
EVC_API evc_reactor *
evc_loop_reactor(const evc_loop_ref *loop);

/*
 * The same for any other thread: the reactor, which stays until evc_loop_leave.
 * Between the two its loop cannot go, and whoever takes it down waits: so do
 * little there, and nothing that may wait for the loop's thread.
 *
 * Thread:    any; not a signal handler.
 * Ownership: the coordinator's; the caller owes one evc_loop_leave.
 * Returns:   the reactor; NULL when the loop was detached or destroyed, for NULL
 *            and in a fork child: then nothing is owed.
 * Since:     0.1
 */
EVC_API evc_reactor *
evc_loop_enter(evc_loop_ref *loop);

/*
 * Let it go again.
 *
 * Thread:    the one that has entered.
 * Ownership: the reactor may be gone from here on.
 * Returns:   nothing; NULL is nobody.
 * Since:     0.1
 */
EVC_API void
evc_loop_leave(evc_loop_ref *loop);

/*
 * Run fn(r, 0, arg) on the loop's thread, in its next turn.
 *
 * Thread:    any; not a signal handler.
 * Ownership: arg must live until fn was called.  After a refusal fn is not
 *            called.
 * Returns:   0; -EVC_CANCELLED after the stop; -EVC_NOT_FOUND when the loop is
 *            gone; -EVC_RESOURCE_EXHAUSTED, -EVC_INVALID_ARGUMENT,
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_post(evc_loop_ref *loop, evc_post_fn *fn, void *arg);

/*
 * The same with memory of the caller.
 *
 * Thread:    any, and any signal handler.
 * Ownership: m is the loop's until its fn is called; after a refusal it is the
 *            caller's.
 * Returns:   0; -EVC_ALREADY_EXISTS while it is posted; else as evc_post.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_post_message(evc_loop_ref *loop, evc_message *m);

EVC_END_DECLS_

#endif
