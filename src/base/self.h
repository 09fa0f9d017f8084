/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread: its kernel id and name, read once, and the last error
 * code that it has reported, in thread-local storage.  The storage is
 * initial-exec, so the first access allocates nothing and is safe in a signal
 * handler.
 */
#ifndef EVC_BASE_SELF_H
#define EVC_BASE_SELF_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/*
 * The last error code that a thread has reported, and its coordinator.  A
 * member's function that returns this code says nothing new: the report has the
 * text and the place already.  No other file decides this.
 *
 * The flag heard_stop says that a queue has told the thread of the stop of the
 * queue's coordinator.  A worker of a group may then return EVC_CANCELLED
 * without an error, also when the group has another coordinator.
 */
struct evc__reported {
	const void *to; /* the coordinator; NULL: nothing was reported */
	uint32_t stops; /* stops of the coordinator before the report */
	int code;
	bool handed_back; /* the report came after the round was closed */
	bool heard_stop;  /* a group worker clears it before each run */
};

extern __thread struct evc__reported evc__reported
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Called before a member's function, for which reports of earlier functions on
   this thread do not count. */
static inline void
evc__reported_forget(void)
{
	evc__reported.to = NULL;
}

/* Has the calling thread just reported this code to that coordinator?  Called
   while a member of the round is alive, so that the round lasts. */
static inline bool
evc__just_reported(const void *to, int code)
{
	return code != 0 && evc__reported.to == to &&
	       evc__reported.code == code;
}

#endif
