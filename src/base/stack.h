/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack of a thread, which the thread notes itself in a signal handler.
 *
 * The handler belongs to the process and to no coordinator; once installed, the
 * handler stays.
 */
#ifndef EVC_BASE_STACK_H
#define EVC_BASE_STACK_H

#include <stddef.h>
#include <stdint.h>

/* Frames of a stack, at most; outer frames beyond are cut. */
#define EVC__STACK_MOST 48

/* The time to wait for an answer, by default. */
#define EVC__STACK_NS UINT64_C(100000000)

/* Install the handler for signo, or for 0 choose a signal.  0: installed, now
   or before; else an errno value: EINVAL, no such signal, or it cannot be
   caught; EEXIST, the signal has a handler, or another signal was chosen
   before, or none is left; ENOMEM; ENOSYS, no backtrace(3) that a handler may
   call. */
int evc__stack_install(int signo);

/* The number of the signal; 0: none is installed. */
int evc__stack_signal(void);

/*
 * Take the stack of a thread of this process, innermost frame first, within
 * about ns nanoseconds.  The first address is the current instruction, each
 * other address lies in a call, as addr2line wants.
 *
 * tid: of a thread that has not been joined, for the number may be used again
 * afterwards.  Askers wait for each other, so the caller holds no lock that the
 * asked thread could want in a signal handler, and better no lock at all.
 *
 * Returns the number of frames; 0: no stack, and *ret_why (not NULL) says why,
 * as the end of a sentence: "it blocks the signal".
 */
unsigned evc__stack_take(int tid, void **frames, unsigned most, uint64_t ns,
			 const char **ret_why);

/*
 * A frame as text: "function+0x12 (module+0x1234)" or "module+0x1234", for
 * addr2line -e module 0x1234; a bare number outside of all modules.  Takes no
 * lock: a thread may hang in dlopen for ever.  n > 0; a long text is cut.
 */
void evc__stack_name(const void *frame, char *buf, size_t n);

#endif
