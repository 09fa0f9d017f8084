/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors: loops that are attached to a coordinator.  A loop is libev's, or
 * any other loop that can watch a descriptor: a hosted reactor.
 */
#ifndef EVCOORD_REACTOR_H
#define EVCOORD_REACTOR_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Get the home reactor: that of the loop given to evc_new, or the first hosted
 * reactor.
 *
 * Thread:    any.
 * Ownership: c owns it.
 * Returns:   the reactor, or NULL without a home.
 * Since:     0.1
 */
EVC_API evc_reactor *
evc_home(const evc_coord *c);

/*
 * Attach a loop: from now on the loop is told of every stop, at the highest
 * priority, also of a stop that came before.  The loop must outlive the
 * reactor.  When the loop is destroyed first, its tasks end without a call, its
 * loopers end with a call of their opts.stop, the threads that join call its
 * runners, and an evented join there ends with EVC_CANCELLED.  The call works
 * after the stop, too.
 *
 * Thread:    the thread that runs that loop.
 * Ownership: c owns *ret_reactor, until evc_reactor_detach, the end of
 *            evc_reactor_run, or evc_free.  name is copied.
 * Returns:   0; -EVC_ALREADY_EXISTS if c knows that loop;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		   evc_reactor **ret_reactor);

/*
 * Attach a loop that is not libev's, the host: the host watches *ret_fd for
 * reading, and calls evc_reactor_turn when the descriptor is readable.  That
 * makes a hosted reactor, on which tasks, posts, hooks, loopers, completions of
 * pools, watches of queues, evented joins, runners and scopes work as on a
 * libev loop.  evc_reactor_loop is NULL for the reactor; evc_run,
 * evc_reactor_run and a blocking evc_join are refused on its thread, because
 * the library cannot run the host.  Clusters refuse a hosted reactor.  When c
 * has no home, and is no scope with EVC_NO_HOME, the reactor becomes the home
 * of c; hooks and members that c already has keep their thread.  The call works
 * after the stop, too.
 *
 * *ret_fd is readable while a turn has something to do, and has no other use.
 * The host may watch the descriptor level-triggered or edge-triggered.
 *
 * Thread:    the thread that runs the host.
 * Ownership: c owns *ret_reactor and *ret_fd, until evc_reactor_detach,
 *            evc_abandon or evc_free; the host stops watching *ret_fd before.
 *            The descriptor is close-on-exec, and stays the same.  name is
 *            copied (NULL: "loop").
 * Returns:   0, *ret_fd and *ret_reactor; -EVC_INVALID_ARGUMENT;
 *            -EVC_RESOURCE_EXHAUSTED without memory, or without the three
 *            descriptors that the reactor needs.
 * Since:     0.2
 */
EVC_MUST_USE EVC_API evc_status
evc_reactor_foreign(evc_coord *c, const char *name, int *ret_fd,
		    evc_reactor **ret_reactor);

/*
 * Do all that is due on a hosted reactor, and return without a wait: the one
 * call that the host makes, whenever the reactor's descriptor is readable.  A
 * call at another time is allowed, and cheap.  A function that is called in the
 * turn may run the host; the turns inside then do what is left of the outer
 * turn.  The function may also free the coordinator, after which the host must
 * not watch the descriptor any more.
 *
 * Thread:    the thread that called evc_reactor_foreign.
 * Ownership: nothing changes hands; r may be gone after the call, when a
 *            function that was called has freed the coordinator.
 * Returns:   0; -EVC_FAILED_PRECONDITION when r is no hosted reactor of the
 *            calling thread (another thread's, one of libev, or gone), and in a
 *            fork child; -EVC_INVALID_ARGUMENT for NULL.
 * Since:     0.2
 */
EVC_API evc_status
evc_reactor_turn(evc_reactor *r);

/*
 * Tell that the host runs until the stop is over: `runs` is true before the
 * program runs the host, and false when that run has returned.  A stop then
 * counts as answered only when the run has returned, as with evc_run; until
 * then at_end of evc_escalation_set may end the process.  And a join with
 * EVC_JOIN_UNTIL_STOP that is answered makes *ret_fd readable again, 1 ms later
 * and then after twice as long each time, up to 250 ms, so that the program can
 * end its run once more when a run inside has ended in place of it.  The
 * adapters make both calls.
 *
 * Thread:    the thread that called evc_reactor_foreign.
 * Ownership: nothing changes hands.  The end of the reactor is the end of the
 *            run.
 * Returns:   0; -EVC_FAILED_PRECONDITION, -EVC_INVALID_ARGUMENT as
 *            evc_reactor_turn.
 * Since:     0.2
 */
EVC_API evc_status
evc_reactor_host_runs(evc_reactor *r, bool runs);

/*
 * Run the reactor's loop: the one call that a loop thread needs.  The call
 * waits for the stop, then until the reactor's tasks, loopers, runners, posts,
 * hooks and evented joins have ended, and those of scopes whose home is on this
 * loop.  Then it detaches the reactor (the home stays attached).  Only joins
 * ask runners that do not call evc_runner_done: with such a runner, another
 * thread has to join meanwhile.  Scopes that remain have no loop from then on,
 * and their `ended` is not called any more.  An ev_break by the application is
 * a request for the stop (EVC_BY_LOOP_BROKEN), and the loop goes on.
 *
 * Thread:    that loop's thread, outside ev_run; cancellation is disabled
 *            meanwhile.
 * Ownership: r is gone after 0, unless it is the home.
 * Returns:   0 after a stop; -EVC_FAILED_PRECONDITION inside ev_run, on another
 *            thread, or for a hosted reactor; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_reactor_run(evc_reactor *r);

/*
 * Start a loop on a thread of its own.  The call starts a thread as
 * evc_thread_start does; that thread makes a loop, attaches it, calls setup(r,
 * arg) (NULL: nothing to set up), runs the loop as evc_reactor_run does and
 * destroys it.  The call returns when setup has returned.  The thread is the
 * member with the name.  When setup does not return 0, its result is the
 * member's result, and the loop does not run.  When it has returned 0,
 * opts.stop(c, arg) is the teardown: called once on the loop's thread when the
 * members on the loop are gone and the reactor is detached, before the loop is
 * destroyed.  Its result is the member's result.
 *
 * Thread:    any but one of the loop's own callbacks.
 * Ownership: arg must live until the teardown has returned.
 *            *ret_reactor is c's, and gone when its loop has ended after the
 *            stop: give the reactor to calls that begin something, and do not
 *            keep it.  *ret_reactor is NULL when the reactor was gone before
 *            the return; ret_reactor may be NULL.
 * Returns:   0 and *ret_reactor; -EVC_CANCELLED after the stop unless flagged
 *            EVC_AFTER_STOP; the negative of the code that setup returned;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_reactor_start(evc_coord *c, const char *name, evc_reactor_fn *setup,
		  void *arg, const evc_member_opts *opts,
		  evc_reactor **ret_reactor);

/*
 * Detach a loop.  Its stop hooks are dropped; after the return the library
 * calls nothing on the loop, and the loop may be destroyed.  A hosted home may
 * be detached, too, because its host may go before evc_free: then c has no home
 * until the next evc_reactor_foreign.
 *
 * Thread:    that loop's thread.
 * Ownership: r is gone after 0; NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION with live tasks or loopers, an evented
 *            join, or scopes whose home is on the loop, for a home on libev,
 *            from another thread, or inside one of the reactor's own callbacks.
 * Since:     0.1
 */
EVC_API evc_status
evc_reactor_detach(evc_reactor *r);

/*
 * Get the loop of a reactor.
 *
 * Thread:    any, but not while the loop is being destroyed.
 * Ownership: the loop stays the application's.
 * Returns:   the loop; NULL for NULL, for a hosted reactor, or when the loop
 *            was destroyed.
 * Since:     0.1
 */
EVC_API struct ev_loop *
evc_reactor_loop(const evc_reactor *r);

/*
 * Is the calling thread the one that attached the loop?
 *
 * Thread:    any, but not while the reactor is being detached.
 * Ownership: nothing changes hands.
 * Returns:   true on that thread; false elsewhere, and for NULL.
 * Since:     0.1
 */
EVC_API bool
evc_reactor_is_here(const evc_reactor *r);

/*
 * Get the coordinator of a reactor.
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
