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

/* glibc before 2.33 counts in ints. */
#ifdef __GLIBC_PREREQ
#if !__GLIBC_PREREQ(2, 33)
#define mallinfo2 mallinfo
#endif
#endif

#endif
