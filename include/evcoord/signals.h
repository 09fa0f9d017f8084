/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals that request the stop.
 */
#ifndef EVCOORD_SIGNALS_H
#define EVCOORD_SIGNALS_H

#include <evcoord/types.h>

EVC_BEGIN_DECLS_

/*
 * Let signals request the stop: SIGINT and SIGTERM unless opts names others.
 * The first signal requests the stop, with the signal and its sender as the
 * reason, code 0, evc_reason.signo.  The second signal, kept as a reason too,
 * cuts the grace of every join of the round to short_grace.  The third signal,
 * only with EVC_SIGNALS_THIRD_EXITS, writes a line to exit_fd and leaves by
 * _exit(128 + n).  Signals work with a stuck loop and without a loop.  When no
 * grace and no budget (evcoord/escalation.h) was configured, a stop begun by a
 * signal has 8 s, because service managers kill at 10 or 90 s.  One coordinator
 * of a process may have the signals at a time.
 *
 * With opts->allow the program decides in the handler whether the first signal
 * may stop it now; a refused signal is counted and does nothing else, and the
 * log hook gets a line with its sender.  A signal that is ignored at the start,
 * as nohup(1) and shells set it for a job in the background, stays ignored
 * without EVC_SIGNALS_IGNORED_TOO.
 *
 * With EVC_SIGNALS_AT_JOIN a signal that finds neither a stop nor a join of c
 * in progress is kept: the next evc_run, evc_join, evc_join_start or
 * evc_join_step requests the stop as it begins, so that phases go in their
 * order although the signal came during the set-up.  A second signal meanwhile
 * is kept, too, and cuts the grace; a third one exits as above.  The log hook
 * gets a line about each signal that is kept, and about a second one.  Such a
 * program must come to a join: evc_wait_for_stop alone does not hear a signal
 * that is kept.  After half of the time of a stop (half of the budget, else of
 * the grace, else 4 s) a signal that is still kept requests the stop.  It turns
 * the loops of c, so that a set-up that runs one can ask after each turn.
 *
 * Thread:    any; the handlers run wherever the kernel delivers.
 * Ownership: evc_signals_stop or evc_free restores the handlers that the
 *            signals had before.
 * Returns:   0; -EVC_ALREADY_EXISTS when a coordinator has the signals, or one
 *            of them is evc_dump_signal's; -EVC_FAILED_PRECONDITION for a
 *            scope; -EVC_INVALID_ARGUMENT; with EVC_SIGNALS_AT_JOIN, or with
 *            allow and a log hook: -EVC_RESOURCE_EXHAUSTED.
 * Since:     0.1
 */
EVC_API evc_status
evc_signals_start(evc_coord *c, const evc_signals_opts *opts);

/*
 * The signal that EVC_SIGNALS_AT_JOIN keeps for the next join of c: a set-up
 * may end early, and evc_signals_raise leave by it.
 *
 * Thread:    any, and any signal handler.
 * Ownership: nothing changes hands.
 * Returns:   the number of the signal, the first if there are two; 0 when c
 *            keeps none.
 * Since:     0.2
 */
EVC_API int
evc_signals_pending(const evc_coord *c);

/*
 * Leave the process by a signal, as a shell or a service manager expects of a
 * program that a signal has stopped: called last, after evc_finish, with
 * v.stop.signo of the verdict v.  The call sets the signal's default action,
 * unblocks the signal and raises it.  Where this does not end the process, as
 * in process 1 of a container, the call ends it by _exit(128 + signo).  Nothing
 * is flushed: call fflush(3) before.
 *
 * Thread:    any.
 * Ownership: nothing changes hands.
 * Returns:   only for a signo that is no signal, such as 0.
 * Since:     0.2
 */
EVC_API void
evc_signals_raise(int signo);

/*
 * Restore the handlers that the signals had before.  After the return no
 * handler of the library runs for c.  A signal that is kept for a join requests
 * the stop now.
 *
 * Thread:    any; not a signal handler.
 * Ownership: nothing changes hands.
 * Returns:   0; -EVC_NOT_FOUND when c has no signals; -EVC_INVALID_ARGUMENT.
 * Since:     0.1
 */
EVC_API evc_status
evc_signals_stop(evc_coord *c);

EVC_END_DECLS_

#endif
