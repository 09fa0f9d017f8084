/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two users of signals in this room look whether a signal is in use.
 */
#ifndef EVC_SIGNALS_SIGNALS_H
#define EVC_SIGNALS_SIGNALS_H

#include <stdbool.h>

/* Does the signal request a stop?  No lock is taken: each caller holds its own,
   and the two must not wait for each other. */
bool evc__signals_has(int signo);
/* atomic: the handler of a signal that requests a report; NULL until the first
   evc_dump_signal.  A variable, and no call, so that a program without
   evc_dump_signal is linked without the reports. */
extern _Atomic(void (*)(int)) evc__dump_handler;

#endif
