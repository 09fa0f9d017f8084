/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests use and the headers of older kernels and C libraries do not have.
 */
#ifndef TESTS_SUPPORT_OLDER_H
#define TESTS_SUPPORT_OLDER_H

#include <features.h>
#include <sys/syscall.h>

/* All machines have these numbers. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* For waitid; P_PIDFD is no macro, so nobody can ask for it. */
#define T_P_PIDFD 3

#ifdef __GLIBC_PREREQ
/* Before that it counts in ints. */
#if !__GLIBC_PREREQ(2, 33)
#define mallinfo2 mallinfo
#endif
#if __GLIBC_PREREQ(2, 35)
#define HAS_BACKTRACE 1
#endif
#endif

/* A test of stacks is left where there is no backtrace that a handler may call:
   with glibc before 2.35, and with musl. */
#ifndef HAS_BACKTRACE
#define HAS_BACKTRACE 0
#endif
#define NEEDS_BACKTRACE() \
	do { \
		if (!HAS_BACKTRACE) \
			T_SKIP("there is no backtrace"); \
	} while (0)

#endif
