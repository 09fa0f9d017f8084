/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One budget for the whole stop, and the escalation inside it.
 *
 * From the request on a stop has a budget of time.  Whoever does not leave by
 * itself meets the steps, each at its fraction of the budget:
 *     told         at once: futex, descriptor, the loops' ev_async
 *     hooks        cancel hooks and unblock (evcoord/wake.h)
 *     kicks        a signal to the threads flagged EVC_KICK
 *     ending       0.9 of the budget: the log names who is alive
 *     abandoned    the budget is over: joins answer and name who is left
 * evc_report says which steps were reached, and when.
 */
#ifndef EVCOORD_ESCALATION_H
#define EVCOORD_ESCALATION_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * How a stop climbs; {0} is what holds without evc_escalation_set.
 */
typedef struct evc_escalation_opts {
	double budget;      /* seconds from the request: no join of c, and of
			       scopes below it, lasts longer, whatever its own
			       grace, and joins last as long where no grace
			       was given; 0 = the grace alone counts.  The
			       fractions are of the budget, or of the config's
			       grace */
	double hooks;       /* fraction, 0..1; 0 = at once, 1 = never */
	double kicks;       /* likewise; at the earliest 1 ms after the hooks */
	double step;        /* a member that makes progress (evc_progress)
			       gets so many seconds from then on, up to the
			       hard end; 0 = progress extends nothing */
	double hard_end;    /* seconds from the request: neither progress nor
			       evc_extend_stop moves the end of the stop beyond;
			       0 = nothing moves it */
	uint64_t reserved_[8];
} evc_escalation_opts;

/*
 * Set the escalation of c, and of the scopes below it that have none of their own.
 * The helper thread, which writes the line of the step "ending" to the log, is
 * made now.
 *
 * Thread:    any, before a stop.
 * Ownership: opts is copied (NULL: the defaults).
 * Returns:   0; -EVC_FAILED_PRECONDITION while a stop stands;
 *            -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_escalation_set(evc_coord *c, const evc_escalation_opts *opts);

/*
 * Say where this member is.  Reports show the text and its age; during a stop
 * it is progress (not in its first milliseconds, the grain of the clock), also
 * when the member has ended since then.  Costs a store and a coarse clock, so it
 * may stand in a loop.
 *
 * Thread:    any.  In a looper's run, a stop hook or a task's on_stop it speaks
 *            for that callback's loop; in a thread that is no member it does
 *            nothing.
 * Ownership: text is static: it is kept by pointer for as long as the program
 *            runs.  NULL: nothing to say any more.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_progress(const char *text);

/*
 * What a member's thread has said last, of one that has a thread of its own.
 *
 * Thread:    any; not a signal handler.
 * Ownership: *ret_text is what evc_progress got, static; *ret_age how many
 *            seconds ago.
 * Returns:   0; -EVC_NOT_FOUND when there is no such member, or it has said
 *            nothing; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION in a
 *            fork child.
 * Since:     0.1
 */
EVC_API evc_status
evc_progress_get(const evc_coord *c, evc_id id, const char **ret_text,
		   double *ret_age);

/*
 * Ask for more time, once in a stop for each member: the end of the stop, or now
 * when that is over, moves so many seconds, up to the escalation's hard end.  A
 * second signal overrules all of that.
 *
 * Thread:    any.
 * Ownership: reason is copied, cut to fit; reports and the log show it.
 *            *ret_granted, in seconds, is what was to be had.
 * Returns:   0; -EVC_NOT_FOUND (no such member; id 0: the calling thread is
 *            none); -EVC_ALREADY_EXISTS the second time;
 *            -EVC_FAILED_PRECONDITION without a stop or with nothing to
 *            extend; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_extend_stop(evc_coord *c, evc_id id, double seconds, const char *reason,
		double *ret_granted);

/*
 * Leave with stragglers alive.  From now on c belongs to them: what they do
 * with it works on, and the last of them to end frees it, all scopes below and
 * all that belongs to it.  What the program has to free itself keeps it as well,
 * until that is freed: a pool, a worker group, a queue, a condition, a scope with
 * EVC_NO_HOME; and so does a cancel hook of a thread that is no member.  The
 * calling thread's loops are let go: what lives on them ends without a call
 * (runners are asked by the helper thread from then on), and they may be
 * destroyed.  Signal handlers that belong to c are restored at once.  When nobody
 * is alive this is evc_free.
 *
 * Thread:    any; with a home, that loop's thread, outside ev_run.
 * Ownership: c, its reactors and its scopes, but for those with EVC_NO_HOME, are
 *            not the caller's any more.
 *            What the stragglers use of the caller's - arg, static tasks -
 *            must live on.
 * Returns:   0; -EVC_FAILED_PRECONDITION without a stop, for a scope, while a
 *            join or a wait of another thread is under way, or inside a
 *            callback; -EVC_RESOURCE_EXHAUSTED (no thread to wait for them): c
 *            is as it was.
 * Since:     0.1
 */
EVC_API evc_status
evc_abandon(evc_coord *c);

EVC_END_DECLS_

#endif
