/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread: its kernel id and name, read once and kept in
 * thread-local storage.  The storage is initial-exec, so the first access
 * allocates nothing and is safe in a signal handler.
 */
#ifndef EVC_BASE_SELF_H
#define EVC_BASE_SELF_H

#include <signal.h>
#include <stdbool.h>

extern __thread int evc__self_tid
	__attribute__((visibility("hidden"), tls_model("initial-exec")));
int evc__tid_first(void);

/* Inline: called at each begin and end of a task. */
static inline int
evc__tid(void)
{
	return evc__self_tid != 0 ? evc__self_tid : evc__tid_first();
}

/* Has the calling thread ever attached a loop?  If not, the thread is inside no
   ev_run of an attached loop.  A variable: queues read it before each wait. */
extern __thread bool evc__self_has_loop
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* The thread's name, as set here, or as the kernel had it at the first call. */
const char *evc__thread_name(void);

/* Name the calling thread; a long name is cut, as the kernel does. */
void evc__thread_rename(const char *name);

/* Block signals in the calling thread before it starts another thread, which
   inherits the mask: signals belong to the program's threads.  Those of faults
   and that of evc__leave_open stay open. */
void evc__block_signals(sigset_t *ret_old);
/* Leave this signal open from now on. */
void evc__leave_open(int signo);

/* In a fork child: ask the kernel again. */
void evc__self_reset(void);

#endif
