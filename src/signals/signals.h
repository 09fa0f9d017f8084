/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals from the inside.  The two users of signals in this room look whether
 * a signal is in use.
 */
#ifndef EVC_SIGNALS_SIGNALS_H
#define EVC_SIGNALS_SIGNALS_H

#include <evcoord.h>
#include <signal.h>

#include "base/text.h"

/* Does the signal request a stop?  No lock is taken: each caller holds its own,
   and the two must not wait for each other. */
bool evc__signals_has(int signo);
/* atomic: the handler of a signal that requests a report; NULL until the first
   evc_dump_signal.  A variable, and no call, so that a program without
   evc_dump_signal is linked without the reports. */
extern _Atomic(void (*)(int)) evc__dump_handler;

/* ---- sender.c; signal-safe ---- */

/* The signal and its sender in one word, never 0. */
uint64_t evc__sender(int signo, const siginfo_t *info);
int evc__sender_signo(uint64_t sender);
/* "SIGTERM" */
void evc__text_signal(struct text *t, int signo);
/* "SIGTERM from pid 123, uid 0" */
void evc__text_sender(struct text *t, uint64_t sender);
/* Request the stop for the signal.  cuts: the signal cuts the grace; stop: as
   in struct evc__request. */
void evc__signal_request(evc_coord *c, uint64_t sender, bool cuts,
			 uint32_t stop);

/* ---- kept.c: signals that wait for a join; signal-safe but for the log ---- */

/* Keep the signal if c has neither a stop nor a join in progress. */
bool evc__signal_keep(evc_coord *c, uint64_t sender);
/* Request the stop for the signals kept, if there are any. */
void evc__signals_kept_request(evc_coord *c);
/* Helper: request the stop when the signals were kept long enough.  Returns how
   long until then, in real nanoseconds. */
uint64_t evc__signals_kept_due(evc_coord *c);
/* No lock: write a line about each signal kept that has none. */
void evc__signals_kept_log(evc_coord *c);
/* In a fork child: no thread writes such lines. */
void evc__signals_kept_inherited(void);
/* The first signal kept, or 0. */
int evc__signals_kept(void);
/* No handler runs: forget the signals kept. */
void evc__signals_kept_forget(void);

/* ---- refused.c ---- */

/* Signal handler: keep a refused signal for the log. */
void evc__signal_refused(evc_coord *c, uint64_t sender);
/* No lock: write a line about each signal kept. */
void evc__signals_refused_log(evc_coord *c);
/* No handler runs: nothing was refused so far. */
void evc__signals_refused_forget(void);

#endif
