/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a thread stands: its stack, which it notes itself when it gets a signal.
 *
 * All of it is process-wide, because a signal's handler is, and belongs to no
 * coordinator: installed once, by name, it stays.
 */
#ifndef EVC_BASE_STACK_H
#define EVC_BASE_STACK_H

#include <stddef.h>
#include <stdint.h>

/* Frames of a stack, at most; what is further out is cut. */
#define EVC__STACK_MOST 48

/* How long somebody who asks may wait for the answer, by default. */
#define EVC__STACK_NS UINT64_C(100000000)

/* Have a signal for it: signo, or for 0 any that is free.  0: it is there, now
   or since an earlier call; else an errno value: EINVAL, no such signal, or one
   that cannot be caught; EEXIST, it has a handler, or another one was chosen
   (or none is left); ENOMEM; ENOSYS, there is no backtrace(3) that a signal
   handler may call. */
int evc__stack_install(int signo);

/* Its number; 0: there is none. */
int evc__stack_signal(void);

/*
 * The stack of a thread of this process, innermost frame first, within about ns
 * nanoseconds.  The first address is where it stands, each other one lies in the
 * call that it is in: for addr2line as it is.
 *
 * tid: of a thread that has not been joined; its number may be another's
 * otherwise.  The calling thread's is taken at once.  One asks at a time, others
 * wait for their turn: so with no lock held that the asked thread could want in
 * a signal handler, and better with none at all.
 *
 * Returns how many frames; 0: it is not available, and *ret_why (not NULL) says
 * why, as the end of a sentence: "it blocks the signal".
 */
unsigned evc__stack_take(int tid, void **frames, unsigned most, uint64_t ns,
			 const char **ret_why);

/*
 * A frame as text: "function+0x12 (module+0x1234)" or "module+0x1234", where
 * module+0x1234 is what addr2line -e module 0x1234 reads; a bare number when it
 * is in no module.  Takes no lock: a thread may hang in dlopen for ever.  n > 0;
 * cut to fit.
 */
void evc__stack_name(const void *frame, char *buf, size_t n);

#endif
