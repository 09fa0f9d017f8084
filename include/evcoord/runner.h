/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners: members that the program describes, and two that are ready-made - a
 * child process, and another library's loop or pool.
 */
#ifndef EVCOORD_RUNNER_H
#define EVCOORD_RUNNER_H

#include <evcoord/types.h>

#include <sys/types.h>

EVC_BEGIN_DECLS_

/*
 * Add a runner.  The runner counts as alive until is_running returns false, or
 * evc_runner_done is called, and its join has returned.  The result of join is
 * the runner's result and means the same as a thread's: 0 or a clean code ends
 * the runner alone (EVC_END_STOPS: requests the stop), any other code is an
 * error.  The call works after the stop, too: ops->stop is then called at once.
 *
 * Thread:    any; opts.reactor may be a loop of another thread.
 * Ownership: name and *ops are copied; arg must live until the runner has ended
 *            or was removed.
 * Returns:   0 and *ret_id; -EVC_INVALID_ARGUMENT, also without is_running;
 *            -EVC_FAILED_PRECONDITION for a reactor whose loop was destroyed;
 *            -EVC_RESOURCE_EXHAUSTED, -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_runner_add(evc_coord *c, const char *name, const evc_runner_ops *ops,
	       void *arg, const evc_member_opts *opts, evc_id *ret_id);

/*
 * Say that a runner has ended, so that no join has to ask is_running: joins
 * wake up, and the runner's join is called.  result means the same as a
 * thread's, and counts beside the result of join.  A second call for the same
 * runner is refused.
 *
 * Thread:    any; not a signal handler.
 * Ownership: the id is stale once the runner was joined; c may be freed by
 *            another thread the moment the last member has ended.
 * Returns:   0; > 0: result, handed back because the round was closed;
 *            -EVC_NOT_FOUND for a stale id or another kind of member;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_runner_done(evc_coord *c, evc_id id, evc_status result);

/*
 * Has everything stopped: is no member alive, in c and in the scopes below?
 * The call asks all runners, except those of another thread's loop, and joins
 * no member.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   true when no member is alive; false for NULL.
 * Since:     0.1
 */
EVC_API bool
evc_all_stopped(const evc_coord *c);

/*
 * Add a child process as a runner.  The library notices the child's end by a
 * pidfd and reaps this child alone.  At the stop, in the request itself, the
 * child gets SIGTERM (and SIGCONT, in case it is suspended); when the grace of
 * a join, or the child's own opts.grace, is over, that join sends SIGKILL.  The
 * child's end is its result: exit status 0 is 0; another status, or a signal,
 * is EVC_ABORTED with a text that names it.  After the stop, here or of a
 * coordinator above, an end by SIGTERM is 0, and so is one by SIGINT, which
 * a terminal sends to all (exit statuses 143 and 130 mean the same; such an
 * end waits up to 50 ms for the stop); the SIGKILL at the end of the grace is
 * EVC_DEADLINE_EXCEEDED.  When other code has reaped the child and its status
 * is lost, the result is EVC_UNKNOWN before the stop, and 0 after it.  (libev's
 * default loop reaps all children of the process: before Linux 6.15 the status
 * is lost, unless the loop is attached to a coordinator.)  With EVC_MAY_FAIL no
 * end is an error: the log hook gets a line instead.
 *
 * Thread:    any; opts.reactor may be a loop of another thread.
 * Ownership: the library reaps the child; no other code should.
 * Returns:   0 and *ret_id; -EVC_NOT_FOUND when pid is no child of this
 *            process; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION,
 *            -EVC_RESOURCE_EXHAUSTED, -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_child_add(evc_coord *c, const char *name, pid_t pid,
	      const evc_member_opts *opts, evc_id *ret_id);

/*
 * Add another library's loop, server or pool that has a stop call of its own.
 * A thread of evcoord waits for the stop, calls stop(arg), then wait(arg),
 * which blocks until that library's own threads have ended; the result of wait
 * is the member's result.  The member is in the background: it keeps no join
 * waiting before a stop.
 *
 * Thread:    any; stop and wait are called on a thread of evcoord.
 * Ownership: name is copied; arg must live until wait has returned.
 * Returns:   0 and *ret_id; -EVC_CANCELLED after the stop unless flagged
 *            EVC_AFTER_STOP; -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_foreign_add(evc_coord *c, const char *name, void (*stop)(void *arg),
		evc_status (*wait)(void *arg), void *arg,
		const evc_member_opts *opts, evc_id *ret_id);

EVC_END_DECLS_

#endif
