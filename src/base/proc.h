/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc: a thread of this process, this program, this machine, and processes.
 *
 * Any thread may ask at any time, except in a signal handler; nothing is
 * allocated but by evc__proc_path.  A field that cannot be read stays empty.
 */
#ifndef EVC_BASE_PROC_H
#define EVC_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Read a file into buf, room - 1 bytes at most, with a 0 byte at the end.
   Returns the number of bytes; 0: the file is empty or cannot be read. */
size_t evc__proc_file(const char *path, char *buf, size_t room);
/* The path of this program, with " (deleted)" behind the path of a file that is
   gone.  false: not known, and path is "". */
bool evc__proc_program(char *path, size_t room);
/* The path from the root, because the working folder may change later; for
   sync_free.  NULL: no memory. */
char *evc__proc_path(const char *path);
/* The number of this start of the machine; "": not known. */
void evc__proc_boot_id(char *buf, size_t room);
/* The pid namespace of this process; 0: not known. */
uint64_t evc__proc_pid_namespace(void);
/* The parent and the start time of a process; pid 0: of this process.  false:
   the process does not exist, or is not shown. */
/* The state of a process, as in struct evc__proc; 0: not known. */
char evc__proc_process_state(pid_t pid);
bool evc__proc_process(pid_t pid, pid_t *ret_parent, uint64_t *ret_start);

#endif
