/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a child process, asked of the kernel.
 *
 * A pidfd names the child for good, so signals go through it and never to a
 * stranger who got the number; where there is none (Linux before 5.3, valgrind)
 * the number has to do, while the kernel says that it is a child of ours.
 *
 * Somebody else may reap it first: libev's default loop reaps whatever it can
 * get.  Newer kernels keep the status with the pidfd; else it is lost.
 */
#ifndef EVC_BASE_REAP_H
#define EVC_BASE_REAP_H

#include <signal.h>
#include <sys/types.h>

enum reap {
	REAP_RUNS,
	REAP_ENDED, /* si_code and si_status are filled in */
	REAP_LOST   /* it is no child of ours (any more), and its status is gone */
};

/* Never blocks; pidfd may be -1. */
enum reap evc__reap_look(int pidfd, pid_t pid, siginfo_t *ret);
/* The same, and if it has ended it is reaped.  Where somebody else has done that,
   this may take two milliseconds. */
enum reap evc__reap(int pidfd, pid_t pid, siginfo_t *ret);
/* Signal-safe. */
void evc__reap_signal(int pidfd, pid_t pid, int sig);

#endif
