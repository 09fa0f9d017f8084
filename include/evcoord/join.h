/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins: wait until every member has ended, and name those that have not.
 *
 * A join waits without limit for a stop or for the end of all members.  From
 * the later of the stop and its own start on, the join waits at most its grace.
 * A join that finds no member alive closes the round: its verdict goes to every
 * join that waits, and to every later one at once, until evc_clear_stop.  A
 * join whose grace ends first answers for itself alone.
 *
 * Verdict: the first error of the round; else EVC_DEADLINE_EXCEEDED when
 * members are alive at the end of the grace (0 with EVC_JOIN_IGNORE_LIVE); else
 * 0.  n_stragglers counts the members alive, beside an error too.
 */
#ifndef EVCOORD_JOIN_H
#define EVCOORD_JOIN_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Run the home loop until a stop is requested, then join inside the loop.  The
 * call never returns without a stop, even when there are no members.  An
 * ev_break by the application is a request for the stop (EVC_BY_LOOP_BROKEN),
 * and the join goes on inside the loop.
 *
 * Thread:    the home loop's, outside ev_run.
 * Ownership: *ret_verdict is the caller's, filled when the result is >= 0.
 * Returns:   the verdict's code; -EVC_FAILED_PRECONDITION without a home,
 *            inside ev_run or on another thread; -EVC_INVALID_ARGUMENT,
 *            -EVC_RESOURCE_EXHAUSTED (for a list of threads).
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_run(evc_coord *c, const evc_join_opts *opts, evc_verdict *ret_verdict);

/*
 * Wait for the members, without requesting a stop.  On the thread of an
 * attached loop the join runs that loop meanwhile; on any other thread the join
 * blocks and never touches libev.  The join of a member does not wait for that
 * member, nor for members that wait in a join of the same coordinator, and
 * answers for itself alone.
 *
 * Thread:    any, with cancellation disabled; inside ev_run of an attached loop
 *            a join would deadlock and is refused.
 * Ownership: *ret_verdict is the caller's, filled when the result is >= 0.
 *            Listed threads become registered ones.
 * Returns:   the verdict's code; -EVC_FAILED_PRECONDITION, also in a function
 *            of a cluster on threads; -EVC_INVALID_ARGUMENT, also for a list
 *            with a detached thread, and then no thread of the list was
 *            registered; -EVC_RESOURCE_EXHAUSTED (for a list of threads).
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_join(evc_coord *c, const evc_join_opts *opts, evc_verdict *ret_verdict);

/*
 * Begin a join inside a running loop: fn is called once, on that loop, with the
 * verdict, and never before evc_join_start has returned.  Until fn was called
 * the join keeps the loop running.  Several joins may be under way.
 *
 * Thread:    the thread of opts.reactor; without one, the thread of any
 *            attached loop, and the join then runs in that loop.
 * Ownership: arg must live until fn was called.  fn may free c as its last
 *            touch, when no other join waits.
 * Returns:   0; -EVC_FAILED_PRECONDITION without a loop or on another thread;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_join_start(evc_coord *c, evc_join_fn *fn, void *arg,
	       const evc_join_opts *opts);

/*
 * A join in steps, for programs whose main loop is not libev's.  Each step
 * looks once and never blocks.  The first step begins the join; the join goes
 * on until a step gives the verdict.  Its grace counts from the stop.  There is
 * one such join at a time; later steps take their opts from the first.  A stop
 * hook that is due on a loop of the calling thread keeps the join waiting: turn
 * that loop between the steps.
 *
 * Thread:    any, one at a time.
 * Ownership: *ret_verdict is the caller's, filled when the result is >= 0;
 *            *ret_wait is set with EVC_PENDING: call again when evc_join_fd is
 *            readable, or when *ret_wait seconds are over (INFINITY: only the
 *            descriptor counts).
 * Returns:   EVC_PENDING; the verdict's code; -EVC_FAILED_PRECONDITION,
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_MUST_USE EVC_API evc_status
evc_join_step(evc_coord *c, const evc_join_opts *opts, double *ret_wait,
	      evc_verdict *ret_verdict);

/*
 * A descriptor that becomes readable when evc_join_step has something to
 * decide; the step makes the descriptor unreadable again.  Never read the
 * descriptor, never close it.  A program that does not use it is never told to
 * wait longer than 25 ms.
 *
 * Thread:    any.
 * Ownership: c owns it, until evc_free.
 * Returns:   the descriptor; -EVC_RESOURCE_EXHAUSTED, -EVC_INVALID_ARGUMENT,
 *            -EVC_FAILED_PRECONDITION in a fork child.
 * Since:     0.1
 */
EVC_API int
evc_join_fd(evc_coord *c);

/*
 * Has some join of this round returned?
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   true from the first return on, until evc_clear_stop.
 * Since:     0.1
 */
EVC_API bool
evc_joined(const evc_coord *c);

EVC_END_DECLS_

#endif
