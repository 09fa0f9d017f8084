/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two users of signals in this room ask each other: is a signal in use?
 */
#ifndef EVC_SIGNALS_SIGNALS_H
#define EVC_SIGNALS_SIGNALS_H

#include <stdbool.h>

/* Does the signal request a stop, or a report?  These functions take no lock:
   each caller holds its own, and the two must not wait for each other. */
bool evc__signals_has(int signo);
bool evc__dump_has(int signo);

#endif
