/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes: coordinators that are members of another; and the drain.
 *
 * Everything that is said of a coordinator holds for a scope: it is stopped,
 * joined, cleared, used again and freed alone.  Beyond that
 *   - the parent's stop reaches it in the same request, or at its phase;
 *   - a join of the parent accounts for all that lives below it;
 *   - its own stop stays its own; its errors go up as on_error says.
 *
 * Phases: scopes with phase 0 are told at once; those with a later phase when
 * the parent's own members and all scopes of the phases before have ended, or
 * their limits (config.grace) are over.  A join in progress on the parent, or
 * on one above it, drives that order (evc_run always is one); a request while
 * there is none tells all phases at once, and the last join that leaves tells
 * what was not told yet.
 */
#ifndef EVCOORD_SCOPE_H
#define EVCOORD_SCOPE_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Make a scope of parent.  It is born held: until evc_scope_ready it counts as
 * alive ("set-up not finished"), so that a join cannot miss what its maker is
 * about to start.  Its home is a reactor of its own, which shares the watchers
 * of the reactor it is made on: a scope costs no watcher and no descriptor.
 * Made after the parent's stop it is born stopped, if its phase was told.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_scope and gives it back by evc_free, on any
 *            thread once nothing lives in it (and `ended` is not due on another
 *            thread's loop: then it is refused).  The parent cannot be freed
 *            before.  name and opts are copied; what stands for evc_config
 *            holds.
 * Returns:   0; -EVC_OUT_OF_RANGE when it would be deeper than 32;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED;
 *            -EVC_FAILED_PRECONDITION for a home whose loop was destroyed.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_scope_new(evc_coord *parent, const char *name, const evc_scope_opts *opts,
	      evc_coord **ret_scope);

/*
 * The scope's set-up is finished: from now on it counts as alive only while
 * something lives in it.
 *
 * Thread:    any.
 * Ownership: nothing changes hands; when nothing lives in it, another thread
 *            may free it the moment this was called.
 * Returns:   0; -EVC_FAILED_PRECONDITION the second time, and for a
 *            coordinator without a parent; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_scope_ready(evc_coord *scope);

/*
 * The coordinator that a scope is a member of.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   the parent; NULL for a coordinator without one, and for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_scope_parent(const evc_coord *scope);

/*
 * Ask for a drain: take nothing new, finish what you have.  It reaches all
 * loops and all scopes below; hooks flagged EVC_ON_DRAIN are called, no task is
 * told, no wait for the stop ends.  Once only background members are left, or
 * limit seconds are over (<= 0: at once; INFINITY: never), it becomes a stop
 * with a clean code, and the phases begin at that stop.  Like the stop it
 * stays until evc_clear_stop.  A second drain can only bring the limit nearer;
 * after the stop it changes nothing.
 *
 * Thread:    any; not a signal handler.
 * Ownership: text is copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT for a limit that is NaN;
 *            -EVC_RESOURCE_EXHAUSTED when nobody can be had to keep the limit;
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_request_drain(evc_coord *c, double limit, const char *text);

/*
 * Was a drain or a stop asked for?  As cheap as evc_should_stop.
 *
 * Thread:    any, and any signal handler.  c must not be NULL.
 * Ownership: nothing changes hands.
 * Returns:   true from the request on.
 * Since:     0.1
 */
EVC_API bool
evc_should_drain(const evc_coord *c);

#ifndef EVC_NO_INLINE
extern inline __attribute__((gnu_inline)) bool
evc_should_drain(const evc_coord *c)
{
	return __atomic_load_n((const uint64_t *)(const void *)c,
			       __ATOMIC_ACQUIRE) & 3;
}
#endif

EVC_END_DECLS_

#endif
