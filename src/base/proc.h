/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a thread of this process, as /proc shows it.
 *
 * Any thread may ask at any time, except in a signal handler; nothing is
 * allocated.  A field that cannot be read stays empty.
 */
#ifndef EVC_BASE_PROC_H
#define EVC_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>

struct evc__proc {
	bool readable;     /* state and blocked are known */
	char state;        /* 'R', 'S', 'D', 'T', 'Z' ...; 0: not known */
	uint64_t blocked;  /* blocked signals: signo is bit signo - 1 */
	uint64_t pending;  /* signals that wait until they are unblocked */
	char wchan[64];    /* the kernel function of the wait; "": none, or
			      not known */
	uintptr_t sp;      /* stack pointer of a sleeper; 0: not known */
	char syscall[32];  /* the system call: "read", or "syscall 17" without
			      a known name; "": none, or not known */
};

/* Read the state of the thread with this kernel id.  false, and all of *p is 0:
   no /proc, no descriptor, or no such thread. */
bool evc__proc_read(int tid, struct evc__proc *p);

/* A state in words: "running", "sleeping", "disk sleep" ...; "" for 0. */
const char *evc__proc_state(char state);

#endif
