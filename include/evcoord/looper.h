/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers: functions that run again and again, on a loop or on a thread of
 * their own, until they end or the stop comes.
 *
 * The boundaries of a looper are the times start + k * interval on the
 * monotonic clock, the first at k = 0; they do not drift.  start is the moment
 * at which the looper starts.  evc_member_resume (the next run is at once),
 * evc_looper_set_interval (the next run is an interval later) and
 * EVC_MISSED_DELAY set start anew.  No boundary gets two runs, and no run
 * starts after the stop was seen, except the last run of EVC_FLUSH.
 */
#ifndef EVCOORD_LOOPER_H
#define EVCOORD_LOOPER_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Start a looper: fn(c, arg) runs at each boundary, on opts.reactor's loop
 * (NULL: the home's), or with EVC_OWN_THREAD on a thread of its own; all
 * options mean the same in both places.  interval is in seconds: with 0 the
 * runs are back to back (on a loop: one run in each iteration), with INFINITY
 * there is one run at the start and then one for each trigger.
 *
 * The result of fn: 0 means "again at the next boundary"; a clean code
 * (EVC_OUT_OF_RANGE) ends this looper alone; any other code is an error and
 * requests the stop.  The results of opts.start and opts.stop mean the same.
 * opts.stop is called exactly once at the end, also after an error or when the
 * loop is destroyed, if opts.start had succeeded (without opts.start: if fn had
 * run).  A join waits for a looper unless the looper is flagged EVC_BACKGROUND.
 * With EVC_PAUSED the looper is only created: until its first evc_member_resume
 * no join waits for the looper, and the stop ends it without a call.
 *
 * Thread:    any; opts.reactor may be a loop of another thread.
 * Ownership: name is copied; arg must live until the looper has ended.
 * Returns:   0 and *ret_id, set before fn can run; -EVC_CANCELLED after the
 *            stop unless flagged EVC_AFTER_STOP (the looper then ends without a
 *            run); -EVC_FAILED_PRECONDITION without a loop to run on, or on a
 *            loop that was destroyed; -EVC_INVALID_ARGUMENT for an interval
 *            that is negative or NaN; -EVC_RESOURCE_EXHAUSTED,
 *            -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_looper_start(evc_coord *c, const char *name, double interval, evc_fn *fn,
		 void *arg, const evc_member_opts *opts, evc_id *ret_id);

/*
 * Run a looper now; a call inside the looper's own run causes a run right after
 * that one.  The extra run uses up no boundary; several triggers before one run
 * cause that one run.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND for a stale id or another kind of member;
 *            -EVC_FAILED_PRECONDITION for a looper that is paused;
 *            -EVC_CANCELLED after the stop; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_looper_trigger(evc_coord *c, evc_id id);

/*
 * Change the interval; the next run is one new interval (seconds) from now.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND for a stale id or another kind of member;
 *            -EVC_CANCELLED after the stop; -EVC_INVALID_ARGUMENT for an
 *            interval that is negative or NaN.
 * Since:     0.1
 */
EVC_API evc_status
evc_looper_set_interval(evc_coord *c, evc_id id, double interval);

/*
 * Get facts about the run that the calling thread is in: the id of the looper,
 * the number of boundaries missed since its last run, and the delay of this run
 * (seconds after its boundary; 0 when triggered).
 *
 * Thread:    inside the run of a looper.
 * Ownership: nothing changes hands; each result may be NULL.
 * Returns:   0; -EVC_FAILED_PRECONDITION outside the run of a looper of c;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_looper_tick(const evc_coord *c, evc_id *ret_id, uint64_t *ret_missed,
		double *ret_late);

/*
 * Pause a looper: no run begins until evc_member_resume.  A paused looper
 * counts as alive, and its opts.stop is called at the stop.  A pause of a
 * paused looper changes nothing.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND for a stale id; -EVC_FAILED_PRECONDITION for a
 *            member that is no looper; -EVC_CANCELLED after the stop;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_member_pause(evc_coord *c, evc_id id);

/*
 * Let a paused looper go on, or start a looper that was created with
 * EVC_PAUSED: its next run is at once.  For a looper that is not paused the
 * call changes nothing.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND for a stale id; -EVC_FAILED_PRECONDITION for a
 *            member that is no looper, or when its loop was destroyed;
 *            -EVC_CANCELLED after the stop; -EVC_RESOURCE_EXHAUSTED when the
 *            looper's own thread cannot be made; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_member_resume(evc_coord *c, evc_id id);

EVC_END_DECLS_

#endif
