/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kick signal: a signal whose handler does nothing, so that the system call
 * of the thread that gets it ends with EINTR.
 *
 * Process-wide, because a signal's handler is: it is installed when the program
 * asks for kicks, by name or by the first EVC_KICK, and stays.
 */
#ifndef EVC_BASE_KICK_H
#define EVC_BASE_KICK_H

#include <signal.h>
#include <stdbool.h>

/* The number of a signal that nobody uses: wanted, or for 0 the highest such
   real-time signal (SIGRTMAX, which belongs to valgrind, aside); -1: it is not
   free, or cannot be had. */
int evc__signal_free(int wanted);
/* Set its handler, unless it has one. */
bool evc__signal_take(int signo, const struct sigaction *sa);
/* Can it be caught, and is it none that every thread needs? */
bool evc__signal_usable(int signo);

/* Have a kick signal: signo, or any for 0.  0: there is one now; -1: signo is
   taken, or another one was chosen, or none is left. */
int evc__kick_install(int signo);
/* Its number; 0: there is none. */
int evc__kick_signo(void);
/* Why it would interrupt no call now, or end the process: what the program has
   made of the signal since; NULL: it works.  restore: the handler is set
   again first, where the program has put none in its place. */
const char *evc__kick_lost(bool restore);
/* Let the calling thread get it. */
void evc__kick_unblock(sigset_t *ret_old);

#endif
