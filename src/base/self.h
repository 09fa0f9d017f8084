/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is the calling thread: its kernel id and name, read once and kept in
 * thread-local storage of the initial-exec kind, so that a signal handler may
 * ask and no allocation can hide behind it.
 */
#ifndef EVC_BASE_SELF_H
#define EVC_BASE_SELF_H

#include <signal.h>
#include <stdbool.h>

extern __thread int evc__self_tid
	__attribute__((visibility("hidden"), tls_model("initial-exec")));
int evc__tid_first(void);

/* Inline: each begin and end of a task asks. */
static inline int
evc__tid(void)
{
	return evc__self_tid != 0 ? evc__self_tid : evc__tid_first();
}

/* Has the calling thread ever attached a loop?  One that has not is inside no
   ev_run that matters.  Inline: queues ask before each wait. */
extern __thread bool evc__self_has_loop
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* The kernel's name, as it was when first asked for or set here. */
const char *evc__thread_name(void);

/* Name the calling thread; cut to what the kernel takes. */
void evc__thread_rename(const char *name);

/* Block all signals in the calling thread, for a thread it is about to start:
   they are the program's own threads', but for those that a fault in that very
   thread raises, and the one that is left open. */
void evc__block_signals(sigset_t *ret_old);
/* Leave this one open from now on. */
void evc__leave_open(int signo);

/* In a fork child: ask the kernel anew. */
void evc__self_reset(void);

#endif
