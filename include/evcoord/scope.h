/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes, coordinators that are members of another coordinator; and the drain.
 *
 * A scope is a coordinator: it is stopped, joined, cleared, used again and
 * freed alone.  In addition
 *   - the parent's stop reaches the scope in the same request, or at its phase;
 *   - a join of the parent accounts for all members below the parent;
 *   - the scope's own stop does not reach the parent; the scope's errors reach
 *     the parent as on_error says.
 *
 * Phases: scopes with phase 0 are told at once.  Scopes with a later phase are
 * told when the parent's own members and all scopes of earlier phases have
 * ended and their stop hooks have returned, or the limits (config.grace) of
 * those phases are over.  A join in progress, on the parent or a coordinator
 * above, drives that order (evc_run always is one).  A request without such a
 * join tells all phases at once, and the last join that returns tells all
 * phases that were not told yet.
 */
#ifndef EVCOORD_SCOPE_H
#define EVCOORD_SCOPE_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Make a scope of parent.  Until evc_scope_ready the new scope counts as alive
 * ("set-up not finished"), so that no join misses the members that its maker is
 * about to start.  The scope's home is a reactor of its own, which shares the
 * watchers of the reactor it is made on: a scope costs no watcher and no
 * descriptor.  A scope made after the parent's stop is stopped from the
 * beginning, if its phase was told.
 *
 * Thread:    any.
 * Ownership: the caller owns *ret_scope and gives it back by evc_free, on any
 *            thread, once no member lives in the scope (evc_free is refused
 *            while `ended` is due on another thread's loop).  The parent cannot
 *            be freed before its scopes.  name and opts are copied;
 *            opts->config as for evc_new.
 * Returns:   0; -EVC_OUT_OF_RANGE when the scope would be deeper than 32;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED;
 *            -EVC_FAILED_PRECONDITION for a home whose loop was destroyed.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_scope_new(evc_coord *parent, const char *name, const evc_scope_opts *opts,
	      evc_coord **ret_scope);

/*
 * The scope's set-up is finished: from now on the scope counts as alive only
 * while a member lives in it.  A stop of the scope from before this call has no
 * line in the log.
 *
 * Thread:    any.
 * Ownership: nothing changes hands; when no member lives in the scope, another
 *            thread may free it from the moment of this call.
 * Returns:   0; -EVC_FAILED_PRECONDITION the second time, and for a
 *            coordinator without a parent; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_scope_ready(evc_coord *scope);

/*
 * Get the coordinator that a scope is a member of.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   the parent; NULL for a coordinator without one, and for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_scope_parent(const evc_coord *scope);

/*
 * Request a drain: the program is to take no new work and to finish its old
 * work.  The drain reaches all loops and all scopes below; hooks flagged
 * EVC_ON_DRAIN are called, no task is told, no wait for the stop ends.  Once
 * only background members are left, or limit seconds are over (<= 0: at once;
 * INFINITY: never), the drain becomes a stop with a clean code, and the phases
 * begin at that stop.  Like the stop, the drain stays until evc_clear_stop.  A
 * second drain can only bring the limit nearer; a drain after the stop changes
 * nothing.
 *
 * Thread:    any; not a signal handler.
 * Ownership: text is copied.
 * Returns:   0; -EVC_INVALID_ARGUMENT for a limit that is NaN;
 *            -EVC_RESOURCE_EXHAUSTED when there is no thread to keep the limit;
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_request_drain(evc_coord *c, double limit, const char *text);

/*
 * Was a drain or a stop requested?  The call is as cheap as evc_should_stop.
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
	return __atomic_load_n(EVC_CAST_(const uint64_t *,
					 EVC_CAST_(const void *, c)),
			       __ATOMIC_ACQUIRE) & 3;
}
#endif

EVC_END_DECLS_

#endif
