/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a child process, as the kernel tells.
 *
 * A pidfd names the child for good, so a signal through a pidfd never reaches a
 * later process with the same pid.  Without a pidfd (Linux before 5.3,
 * valgrind) the pid is used, as long as the kernel still knows this child.
 *
 * Other code may reap the child first: libev's default loop reaps every child.
 * Newer kernels keep the status with the pidfd; else the status is lost.
 */
#ifndef EVC_BASE_REAP_H
#define EVC_BASE_REAP_H

#include <signal.h>
#include <sys/types.h>

enum reap {
	REAP_RUNS,
	REAP_ENDED, /* si_code and si_status are filled in */
	REAP_LOST   /* no child of this process, and the status is gone */
};

/* Never blocks; pidfd may be -1. */
enum reap evc__reap_look(int pidfd, pid_t pid, siginfo_t *ret);
/* The same, and a child that has ended is reaped.  May take two milliseconds if
   other code has reaped the child. */
enum reap evc__reap(int pidfd, pid_t pid, siginfo_t *ret);
/* What wait(2) says of a child that has ended, as si_code and si_status. */
void evc__reap_status(int status, siginfo_t *ret);
/* 0: sent, or the child has ended; or an errno value.  Signal-safe. */
int evc__reap_signal(int pidfd, pid_t pid, int sig);

#endif
