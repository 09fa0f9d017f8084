/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kick signal: its handler does nothing, so the system call of the thread
 * that gets the signal ends with EINTR.
 *
 * The signal belongs to the process, as handlers do: the first request for
 * kicks (by number, or by EVC_KICK) installs the handler, which stays.
 */
#ifndef EVC_BASE_KICK_H
#define EVC_BASE_KICK_H

#include <signal.h>
#include <stdbool.h>

/* The number of a signal without a handler: wanted, or for 0 the highest such
   real-time signal below SIGRTMAX, which belongs to valgrind.  -1: wanted has a
   handler or cannot be caught, or no signal is left. */
int evc__signal_free(int wanted);
/* Set the handler of a signal that has none. */
bool evc__signal_take(int signo, const struct sigaction *sa);
/* Can the signal be caught?  Not those of faults. */
bool evc__signal_usable(int signo);

/* Install the handler for signo, or for 0 choose a signal.  0: installed, now
   or before; -1: signo is in use, another signal was chosen, or none is
   left. */
int evc__kick_install(int signo);
/* The number of the kick signal; 0: none is installed. */
int evc__kick_signo(void);
/* Why a kick would interrupt no call, or end the process: the program has
   changed the handler since.  NULL: kicks work.  restore: set the handler
   again, unless the program has set its own. */
const char *evc__kick_lost(bool restore);
/* Unblock the kick signal in the calling thread. */
void evc__kick_unblock(sigset_t *ret_old);

#endif
