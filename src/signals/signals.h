/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the users of signals in here know of each other: whose a signal is.
 */
#ifndef EVC_SIGNALS_SIGNALS_H
#define EVC_SIGNALS_SIGNALS_H

#include <stdbool.h>

/* Does it ask for a stop; does it ask for a dump?  No lock: who asks holds one
   of his own, and the two must not wait for each other. */
bool evc__signals_has(int signo);
bool evc__dump_has(int signo);

#endif
