/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers: functions that are run again and again, on a loop or on a thread of
 * their own, until they end or the stop comes.
 *
 * The boundaries of a looper are start + k * interval on the monotonic clock,
 * the first at k = 0; they do not drift.  start is set when the looper starts,
 * and anew by evc_member_resume (the next run is at once), by
 * evc_looper_set_interval (the next run is an interval later), and by
 * EVC_MISSED_DELAY.  No boundary is run twice, and no run starts after the stop
 * was seen, but for the last one of EVC_FLUSH.
 */
#ifndef EVCOORD_LOOPER_H
#define EVCOORD_LOOPER_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Start a looper: fn(c, arg) is run at each boundary, on opts.reactor's loop
 * (NULL: the home's), or with EVC_OWN_THREAD on a thread of its own; the same
 * options do the same on both.  interval is in seconds: 0 is back to back (on
 * a loop: one run in each iteration), INFINITY runs once at the start and then
 * when it is triggered.
 *
 * Its run returns 0 for "again at the next boundary"; a clean code
 * (EVC_OUT_OF_RANGE) ends this looper alone; any other code is an error and
 * asks for the stop.  opts.start and opts.stop mean the same by what they
 * return; opts.stop is called exactly once at the end when opts.start had
 * succeeded (without one: when it had run), also after an error, or when its
 * loop is destroyed.  A looper is in the foreground unless flagged
 * EVC_BACKGROUND: a join waits for it.  With EVC_PAUSED it is created only:
 * until it is resumed for the first time it holds up nobody, and the stop ends
 * it without a call.
 *
 * Thread:    any; opts.reactor may be a loop of another thread.
 * Ownership: name is copied; arg must live until the looper has ended.
 * Returns:   0 and *ret_id, set before fn can run; -EVC_CANCELLED after the
 *            stop unless flagged EVC_AFTER_STOP (it then ends without a run);
 *            -EVC_FAILED_PRECONDITION without a loop to run on, or on one that
 *            was destroyed; -EVC_INVALID_ARGUMENT for an interval that is
 *            negative or NaN; -EVC_RESOURCE_EXHAUSTED, -EVC_UNIMPLEMENTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_looper_start(evc_coord *c, const char *name, double interval, evc_fn *fn,
		 void *arg, const evc_member_opts *opts, evc_id *ret_id);

/*
 * Run a looper now, or, inside its own run, right after it.  The run uses up
 * no boundary; several triggers before it are one.
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
 * What the run is about that the calling thread is in: which looper's, how
 * many boundaries were given up since its last run, and how late it is
 * (seconds after the boundary that it runs for; 0 when triggered).
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
 * Pause a looper: no run begins until evc_member_resume.  It counts as alive
 * meanwhile, and its opts.stop is called at the stop.  Pausing what is paused
 * changes nothing.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND for a stale id; -EVC_FAILED_PRECONDITION for
 *            what is no looper; -EVC_CANCELLED after the stop;
 *            -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_member_pause(evc_coord *c, evc_id id);

/*
 * Let a paused looper go on, or start one that was created with EVC_PAUSED:
 * its next run is at once.  Resuming what runs changes nothing.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND for a stale id; -EVC_FAILED_PRECONDITION for
 *            what is no looper, or when its loop was destroyed; -EVC_CANCELLED
 *            after the stop; -EVC_RESOURCE_EXHAUSTED when the thread of its
 *            own cannot be had; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_member_resume(evc_coord *c, evc_id id);

EVC_END_DECLS_

#endif
