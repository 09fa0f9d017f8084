/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors: libev loops as a coordinator knows them, from attach to detach.
 */
#ifndef EVCOORD_REACTOR_H
#define EVCOORD_REACTOR_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * The home reactor: the loop given to evc_new.
 *
 * Thread:    any.
 * Ownership: c owns it.
 * Returns:   the reactor, or NULL without a home.
 * Since:     0.1
 */
EVC_API evc_reactor *
evc_home(const evc_coord *c);

/*
 * Attach a loop: from now on it is told of every stop, at the highest
 * priority, also of one that came before.  The loop must outlive the reactor;
 * should it be destroyed first, its tasks have ended without a call, its
 * loopers with their opts.stop, its runners are called by whoever joins, and an
 * evented join there ends with EVC_CANCELLED.  Accepted after the stop too.
 *
 * Thread:    the thread that runs that loop.
 * Ownership: c owns *ret_reactor, until evc_reactor_detach, the end of
 *            evc_reactor_run, or evc_free.  name is copied.
 * Returns:   0; -EVC_ALREADY_EXISTS if c knows that loop;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		   evc_reactor **ret_reactor);

/*
 * Run the reactor's loop until the stop and until its own tasks, loopers,
 * runners, hooks and evented joins have ended, and those of scopes whose home
 * is on it, then detach it (the home stays attached): the one call that a loop
 * thread needs.  Runners that cannot ring are asked by joins alone: with one
 * of those, somebody has to join meanwhile.  Scopes that stay have no loop
 * from then on, and their `ended` is not called any more.  An ev_break by the
 * application is a request for the stop (EVC_BY_LOOP_BROKEN), and the loop
 * goes on.
 *
 * Thread:    that loop's thread, outside ev_run; cancellation is disabled
 *            meanwhile.
 * Ownership: r is gone after 0, unless it is the home.
 * Returns:   0 after a stop; -EVC_FAILED_PRECONDITION inside ev_run or on
 *            another thread; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API EVC_MUST_USE evc_status
evc_reactor_run(evc_reactor *r);

/*
 * A loop on a thread of its own, in one call: starts a thread as
 * evc_thread_start does, which makes a loop, attaches it, calls setup(r, arg)
 * there (NULL: nothing to set up), runs it as evc_reactor_run does and destroys
 * it.  Returns when setup has returned.  The thread is the member with the
 * name; what setup returned, if it is not 0, is its result, and the loop is not
 * run.
 *
 * Thread:    any but one of the loop's own callbacks.
 * Ownership: *ret_reactor is c's, and gone when its loop has ended after the
 *            stop: give it to calls that begin something, and do not keep it.
 *            It is set to NULL when it has gone before this returned; may be
 *            NULL itself.
 * Returns:   0 and *ret_reactor; -EVC_CANCELLED after the stop unless flagged
 *            EVC_AFTER_STOP, or with the negative code of what setup returned;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_reactor_start(evc_coord *c, const char *name, evc_reactor_fn *setup,
		  void *arg, const evc_member_opts *opts,
		  evc_reactor **ret_reactor);

/*
 * Detach a loop.  Its stop hooks are dropped; no callback of it runs
 * afterwards, and the loop may be destroyed.
 *
 * Thread:    that loop's thread.
 * Ownership: r is gone after 0.
 * Returns:   0; -EVC_FAILED_PRECONDITION with live tasks or loopers, an
 *            evented join, or scopes whose home is on it, for the home, from
 *            another thread, or inside one of the reactor's own callbacks;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_reactor_detach(evc_reactor *r);

/*
 * The loop of a reactor.
 *
 * Thread:    any, but not while the loop is being destroyed.
 * Ownership: the loop stays the application's.
 * Returns:   the loop; NULL for NULL, or when the loop was destroyed.
 * Since:     0.1
 */
EVC_API struct ev_loop *
evc_reactor_loop(const evc_reactor *r);

/*
 * Is the caller the thread that the loop belongs to, the one that attached it?
 *
 * Thread:    any, but not while the reactor is being detached.
 * Ownership: nothing changes hands.
 * Returns:   true on that thread; false elsewhere, and for NULL.
 * Since:     0.1
 */
EVC_API bool
evc_reactor_is_here(const evc_reactor *r);

/*
 * The coordinator of a reactor.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   the coordinator; NULL for NULL.
 * Since:     0.1
 */
EVC_API evc_coord *
evc_reactor_coord(const evc_reactor *r);

EVC_END_DECLS_

#endif
