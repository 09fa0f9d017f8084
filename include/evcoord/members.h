/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members: threads, tasks and other parts that must end before the program may.
 */
#ifndef EVCOORD_MEMBERS_H
#define EVCOORD_MEMBERS_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Start a thread that runs fn(c, arg).  name becomes its kernel name (cut to 15
 * bytes), and the thread blocks all signals but SIGSEGV, SIGBUS, SIGFPE and
 * SIGILL.  The result of fn: 0 or a clean code ends this thread alone
 * (EVC_END_STOPS: requests the stop); EVC_CANCELLED after the stop says that
 * the thread obeyed; any other code is an error and requests the stop.  A
 * thread that ends without a result before the stop (pthread_exit,
 * cancellation, SYS_exit) is the error EVC_ABORTED; SYS_exit is seen at once
 * with EVC_WATCHED, else after the stop.  The call needs no descriptor.
 *
 * EVC_OWN_SCOPE: fn gets a scope of its own below c, without a home, and
 * evc_member_stop stops this thread alone.  Errors of the thread are the
 * scope's, and so reach c; opts.unblock and EVC_KICK work at the scope's stop.
 * The library frees the scope when the thread has ended; members and others
 * that are left in the scope are asked to stop, and keep the scope until they
 * are gone.
 *
 * Thread:    any.
 * Ownership: name is copied; arg must live until fn returns.  The library joins
 *            the thread; no other code may.  Each start joins threads that have
 *            ended, so a server may start one for each connection.
 * Returns:   0 and *ret_id, set before fn can run; -EVC_CANCELLED after the
 *            stop unless flagged EVC_AFTER_STOP; -EVC_INVALID_ARGUMENT,
 *            -EVC_RESOURCE_EXHAUSTED, -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_thread_start(evc_coord *c, const char *name, evc_fn *fn, void *arg,
		 const evc_member_opts *opts, evc_id *ret_id);

/*
 * Register a thread of the program's own; a thread may register itself or
 * another.  From now on the coordinator alone joins the thread.  A second call
 * for the same thread gives the same id.  Of the thread's value only
 * PTHREAD_CANCELED is read: before the stop it is the error EVC_ABORTED.  A
 * pidfd notices the thread's end; without one (Linux before 6.9, no descriptor
 * left) the library tries to join on a back-off of 1 ms doubling to 25 ms.  The
 * call works after the stop, too.  Two wrong uses cannot be noticed and are
 * undefined: a pthread_t that was already joined, and a thread registered with
 * two coordinators.
 *
 * EVC_NOT_JOINED: the calling thread (t is pthread_self()) becomes a member,
 * and somebody else joins or detaches the thread, as the owner of a std::thread
 * does.  The library does not use t any more.  The thread has ended for the
 * library in the last round but one of its thread-specific destructors, or,
 * with a pidfd, at a bare SYS_exit; without one, SYS_exit is seen after the
 * stop.  How the thread ended is not known: no end is an error.  Such a thread
 * may be a member of several coordinators.
 *
 * Thread:    any; with EVC_NOT_JOINED, t alone.
 * Ownership: name is copied (NULL: its kernel name is shown).  The library
 *            joins the thread; no other code may join or detach the thread.
 *            With EVC_NOT_JOINED the thread stays its owner's.
 * Returns:   0 and *ret_id; -EVC_INVALID_ARGUMENT, also for a detached
 *            thread (without EVC_NOT_JOINED) and for EVC_NOT_JOINED on another
 *            thread; -EVC_ALREADY_EXISTS for a member that is not registered in
 *            the same of the two ways; -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_register_thread(evc_coord *c, const char *name, pthread_t t,
		    const evc_member_opts *opts, evc_id *ret_id);

/*
 * A guard, which is no member, so no join waits for it: run fn(c, arg) in the
 * calling thread, and request the stop when the result of fn is not 0
 * (stop_on_exception in TensorFlow's Coordinator).  A clean code stops without
 * being an error; with EVC_END_STOPS a result of 0 stops, too.  The guard
 * records the result and does not return it.  Guards nest.  An exception of C++
 * that leaves fn ends in the guard, as the result EVC_ABORTED; see EXCEPTIONS
 * in evcoord-threads(7).
 *
 * Thread:    any; fn runs on the caller's thread.
 * Ownership: name (NULL: the thread's) is copied.
 * Returns:   0 whenever fn ran and its result was recorded; > 0: the result,
 *            handed back because the round was closed; -EVC_INVALID_ARGUMENT,
 *            -EVC_UNIMPLEMENTED: fn did not run.
 * Since:     0.1
 */
EVC_API evc_status
evc_guard(evc_coord *c, const char *name, evc_fn *fn, void *arg,
	  const evc_member_opts *opts);

/*
 * Begin a hold: a counted member without a thread or a loop, alive until
 * evc_hold_end.
 *
 * Thread:    any; another thread may end the hold.
 * Ownership: name is copied.
 * Returns:   0 and *ret_id; -EVC_CANCELLED after the stop unless flagged
 *            EVC_AFTER_STOP; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_hold_begin(evc_coord *c, const char *name, const evc_member_opts *opts,
	       evc_id *ret_id);

/*
 * End a hold.
 *
 * Thread:    any.
 * Ownership: the id is stale afterwards; c may be freed by another thread the
 *            moment the last hold has ended.
 * Returns:   0; -EVC_NOT_FOUND for a stale id or another kind of member;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_hold_end(evc_coord *c, evc_id id);

/*
 * Begin a task on a loop.  The call allocates nothing, makes no system call and
 * never calls back.  (With the first task of a class that has on_late, libev
 * may enlarge the loop's table of timers.)
 *
 * Thread:    that loop's.
 * Ownership: t is the caller's, zeroed before its first use, and must stay
 *            where it is until evc_task_end.  cls is static.
 * Returns:   0; -EVC_CANCELLED after the stop unless the class is flagged
 *            EVC_AFTER_STOP or EVC_TELL_AFTER_STOP; -EVC_ALREADY_EXISTS if the
 *            task has begun;
 *            -EVC_FAILED_PRECONDITION for r == NULL (no home), on another
 *            thread, or when the loop was destroyed; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_task_begin(evc_reactor *r, evc_task *t, const evc_task_class *cls);

/*
 * End a task.  For a zeroed task, or one that has ended, the call does nothing.
 *
 * Thread:    its loop's; on another thread the call does nothing, and
 *            evc_last_error() says so.
 * Ownership: t's memory is the caller's again.
 * Returns:   nothing: a task has no status, because its owner handles its
 *            errors.
 * Since:     0.1
 */
EVC_API void
evc_task_end(evc_task *t);

/*
 * Get the reactor of a task in flight.
 *
 * Thread:    its loop's.
 * Ownership: the reactor stays its coordinator's.
 * Returns:   the reactor; NULL for NULL, for a zeroed task and for one that has
 *            ended.
 * Since:     0.2
 */
EVC_API evc_reactor *
evc_task_reactor(const evc_task *t);

/*
 * Get the coordinator of a task in flight: that of its reactor.
 *
 * Thread:    its loop's.
 * Ownership: nothing changes hands.
 * Returns:   the coordinator; NULL as evc_task_reactor.
 * Since:     0.2
 */
EVC_API evc_coord *
evc_task_coord(const evc_task *t);

/*
 * End a looper, or take a stop hook or a runner out of the register.  After the
 * return no callback of the member runs; when the member removes itself inside
 * its own callback, that callback is the last one.  A looper's opts.stop, if it
 * is due, is called before evc_member_remove returns, also when the looper
 * removes itself inside its own run; inside its own opts.start none is due, for
 * start has not succeeded yet.  A runner is given up without stop and join.
 *
 * Thread:    any; the call waits while a callback of the member runs on another
 *            thread, and for that thread when opts.stop is due there.
 * Ownership: the member's arg is the caller's again.
 * Returns:   0; -EVC_NOT_FOUND for a stale id; -EVC_FAILED_PRECONDITION for a
 *            member that is not removed but ends (threads, holds);
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_member_remove(evc_coord *c, evc_id id);

/*
 * Stop one member: request the stop of the own scope of a thread
 * (EVC_OWN_SCOPE), as evc_request_stop does, or remove a looper, as
 * evc_member_remove does (code and text are not used then).  All else goes on.
 * The call does not wait for the end of the thread; evc_member_wait does.
 *
 * Thread:    any; for a looper, as evc_member_remove.
 * Ownership: text is copied.
 * Returns:   as evc_request_stop_at, or, for a looper, as evc_member_remove;
 *            -EVC_NOT_FOUND for a stale id; -EVC_FAILED_PRECONDITION for
 *            another kind of member, or a thread without EVC_OWN_SCOPE;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.2
 */
EVC_API evc_status
evc_member_stop(evc_coord *c, evc_id id, evc_status code, const char *text);

/*
 * Wait until a started thread (also that of evc_reactor_start and
 * evc_foreign_add), a runner or a child process has ended and was joined, and
 * get its result: what its function returned, as a code of 0..255, or
 * EVC_ABORTED for a thread that ended without a result.  The wait is that of a
 * join: the calling thread, if it is a member, counts as one that waits; after
 * the stop the wait ends with the time that is left for the stop.  The wait
 * that came first gets the result.  A result for which no thread waits is kept
 * until evc_clear_stop, 16384 results at most; the oldest goes first.
 *
 * Thread:    any.  With timeout > 0: not inside ev_run of a loop of c, not on
 *            the thread of the loop of the runner, and not in a callback on the
 *            helper thread; never the member's own thread, or a function of the
 *            runner.
 * Ownership: *ret_result (NULL: not wanted) is the caller's.
 * Returns:   0 and *ret_result; -EVC_DEADLINE_EXCEEDED after timeout seconds
 *            (<= 0: at once), or at the end of the stop;
 *            -EVC_NOT_FOUND for an id that was never given, for a result that
 *            another wait has got or evc_clear_stop has dropped, and for a
 *            runner that was removed; -EVC_FAILED_PRECONDITION for another kind
 *            of member, and on a thread where the wait would not end;
 *            -EVC_INVALID_ARGUMENT, also for NaN.
 * Since:     0.2
 */
EVC_API evc_status
evc_member_wait(evc_coord *c, evc_id id, double timeout,
		evc_status *ret_result);

/*
 * Get a copy of one member's data.
 *
 * Thread:    any; not a signal handler.
 * Ownership: *ret_info (may be NULL) is the caller's, filled by copy.
 * Returns:   0; -EVC_NOT_FOUND for a stale id: the member has ended and was
 *            accounted for; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_member_get(const evc_coord *c, evc_id id, evc_member_info *ret_info);

/*
 * Call fn for all members that are alive, in the order of their ids, then for
 * the tasks: on the thread of their own loop for each task, elsewhere for lines
 * of tasks of a loop and a class, with the number of tasks in ticks.  In a stop
 * some lines are a single task, with its age and its describe text.
 *
 * Thread:    any; not a signal handler.  fn is called without a lock, on a copy
 *            made at the call, and may call any function.
 * Ownership: the argument of fn is valid during its call.
 * Returns:   0; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_member_each(const evc_coord *c, evc_each_fn *fn, void *arg);

EVC_END_DECLS_

#endif
