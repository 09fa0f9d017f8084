/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of new C libraries, with bodies of our own for the others.
 */
#ifndef EVC_BASE_LIBC_H
#define EVC_BASE_LIBC_H

#include <spawn.h>

/* "No such file or directory", and "TERM"; NULL: not known.  Signal-safe. */
const char *evc__errno_text(int err);
const char *evc__signal_name(int signo);
/* The new process closes all descriptors from `least` on: 0 or an errno value. */
int evc__close_from(posix_spawn_file_actions_t *a, int least);

/* The bodies of our own, for their test. */
const char *evc__own_errno_text(int err);
const char *evc__own_signal_name(int signo);
int evc__own_close_from(posix_spawn_file_actions_t *a, int least);

#endif
