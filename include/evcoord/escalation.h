/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One budget for the whole stop, and the escalation inside it.
 *
 * From the request on, a stop has a budget of time.  For members that do not
 * leave by themselves the stop takes these steps, each at its fraction of the
 * budget:
 *     told         at once: futex, descriptor, the loops' ev_async
 *     hooks        cancel hooks and unblock (evcoord/wake.h)
 *     kicks        a signal to the threads flagged EVC_KICK
 *     ending       0.9 of the budget: the log names the members still running
 *     abandoned    the budget is over: joins answer and name the stragglers
 * evc_report says which steps were reached, and when.
 */
#ifndef EVCOORD_ESCALATION_H
#define EVCOORD_ESCALATION_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * evc_escalation_opts.at_end: what ends the process when the time of a stop is
 * over (the budget, else the grace, else 8 s after a signal and 120 s after
 * another request), and no join of c has returned 50 ms later: a loop or a
 * thread hangs, or the program calls no join.  A thread of the library that
 * never calls the program ends the process, after a line on standard error with
 * the names of the members that still run.
 * 0.1 s are left for the report: the log hook gets it, without a log hook
 * standard error.  Children (evc_child_*) live on when the process is ended so:
 * only a join kills them.  The return of the last join of c that is in
 * progress, evc_clear_stop and evc_free turn it off for that stop, evc_abandon
 * for good. A join that is answered has 2 s to return, which it does not inside
 * a nested run of its loop, or while a release function hangs.
 */
enum {
	/* _exit(1) after an error, else _exit(124). */
	EVC_AT_END_EXIT = 1,
	/* SIGABRT, so a core file for the debugger where the system writes
	   one. */
	EVC_AT_END_ABORT = 2
};

/*
 * Options of an escalation; {0} means the same as no evc_escalation_set.
 */
typedef struct evc_escalation_opts {
	double budget;      /* seconds from the request to the end of each join
			       of c and of the scopes below; a join's own grace
			       may end earlier, and without a grace the join
			       lasts as long as the budget; 0 = the grace alone
			       counts */
	double hooks;       /* the time of this step, as a fraction, 0..1, of
			       the budget or, without one, of config.grace; 0 =
			       at once, 1 = never */
	double kicks;       /* the time of this step, as a fraction like hooks;
			       at the earliest 1 ms after the hooks */
	double step;        /* seconds that a member gets from each progress
			       (evc_progress) on, up to the hard end; 0 =
			       progress extends nothing */
	double hard_end;    /* seconds from the request: neither progress nor
			       evc_extend_stop moves the end of the stop beyond;
			       0 = nothing moves it */
	unsigned at_end;    /* EVC_AT_END_..., for a stop that is not over in
			       its time; not for scopes; 0 = nothing */
	uint64_t reserved_[8];
} evc_escalation_opts;

/*
 * Set the escalation of c, and of the scopes below that have no escalation of
 * their own.  The call makes the helper thread, which writes the log line of
 * the step "ending".
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
 * Say where this member is.  Reports show the text and its age.  During a stop
 * the call counts as progress, also when the member has ended since then, but
 * not in the stop's first milliseconds, which are the grain of the clock.  The
 * call costs a store and a look at a coarse clock, so it may stand in a loop.
 *
 * Thread:    any.  In a looper's run, a stop hook or a task's on_stop the text
 *            is about that callback's loop; in a thread that is no member the
 *            call does nothing.
 * Ownership: text is static: the library keeps the pointer for as long as the
 *            program runs.  NULL takes the text away.
 * Returns:   nothing.
 * Since:     0.1
 */
EVC_API void
evc_progress(const char *text);

/*
 * Get the last progress text of a member that has a thread of its own.
 *
 * Thread:    any; not a signal handler.
 * Ownership: *ret_text is the pointer that evc_progress got; *ret_age its age
 *            in seconds.
 * Returns:   0; -EVC_NOT_FOUND when there is no such member, or the member has
 *            no text; -EVC_INVALID_ARGUMENT, -EVC_FAILED_PRECONDITION in a fork
 *            child.
 * Since:     0.1
 */
EVC_API evc_status
evc_progress_get(const evc_coord *c, evc_id id, const char **ret_text,
		   double *ret_age);

/*
 * Extend a stop; each member may do so once in a stop.  The end of the stop
 * moves by seconds, at most to the escalation's hard end; when the end is over
 * already, it moves to seconds from now.  A second signal overrules all
 * extensions.
 *
 * Thread:    any.
 * Ownership: reason is copied, cut to fit; reports and the log show the reason.
 *            *ret_granted is the time that was granted, in seconds.
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
 * The time that the stop of c has left: the seconds until the last join of c
 * gives up, or, without a join, until the grace of c is over; the coordinators
 * above can only make the time shorter.  For waits of the program that are to
 * end with the stop.  A second signal, evc_extend_stop and progress move the
 * end, so a long wait asks again.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   seconds; INFINITY while neither c nor a coordinator above is
 *            stopped; 0 when the time is over, for NULL, and in a fork child.
 * Since:     0.2
 */
EVC_API double
evc_stop_left(const evc_coord *c);

/*
 * Leave c to members that are still running.  Their calls on c work on, and the
 * last of them to end frees c, all scopes below and everything that belongs to
 * c.  Objects that the program has to free itself keep c alive, too, until they
 * are freed: a pool, a worker group, a queue, a condition, a scope with
 * EVC_NO_HOME; so does a cancel hook of a thread that is no member.  The
 * calling thread's loops are detached and may be destroyed; members on these
 * loops end without a call, but for runners, which the helper thread asks from
 * then on.  Signal handlers that belong to c are restored at once.  A stop hook
 * or another function that hangs on the helper thread is left behind, too,
 * after 0.1 s, and its return counts as an end.  When no member is alive, and
 * no function hangs there, the call does the same as evc_free.
 *
 * Thread:    any; with a home, that loop's thread, outside ev_run.
 * Ownership: c, its reactors and its scopes are not the caller's any more,
 *            except scopes with EVC_NO_HOME.  The caller's memory that the
 *            stragglers use (arg, static tasks) must live on.
 *            NULL is fine.
 * Returns:   0; -EVC_FAILED_PRECONDITION without a stop, for a scope, while a
 *            join or a wait of another thread is under way, or inside a
 *            callback; -EVC_RESOURCE_EXHAUSTED (no thread to wait for the
 *            stragglers), and c is unchanged.
 * Since:     0.1
 */
EVC_API evc_status
evc_abandon(evc_coord *c);

EVC_END_DECLS_

#endif
