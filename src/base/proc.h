/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel says that a thread of this process is doing: /proc, as far as
 * it is there and may be read.
 *
 * It is read with bare descriptors, without memory of its own, by anybody at any
 * time but in a signal handler.  What cannot be read stays empty.
 */
#ifndef EVC_BASE_PROC_H
#define EVC_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>

struct evc__proc {
	bool readable;     /* state and blocked are known */
	char state;        /* 'R', 'S', 'D', 'T', 'Z' ...; 0: not known */
	uint64_t blocked;  /* the signals it blocks: signo is bit signo - 1 */
	uint64_t pending;  /* those that wait for it to unblock them */
	char wchan[64];    /* where in the kernel it waits; "": nowhere, or not
			      known */
	uintptr_t sp;      /* its stack pointer, when it sleeps; 0: not known */
	char syscall[32];  /* the call that it is in: "read", or "syscall 17"
			      for one without a name here; "": in none, or not
			      known */
};

/* Of the thread with this kernel id.  false: nothing is known: no /proc, no
   descriptor, no such thread.  Then all of *p is 0. */
bool evc__proc_read(int tid, struct evc__proc *p);

/* In words: "running", "sleeping", "disk sleep" ...; "" for 0. */
const char *evc__proc_state(char state);

#endif
