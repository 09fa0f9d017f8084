/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is the calling thread: its kernel id and name, read once and kept in
 * thread-local storage of the initial-exec kind, so that a signal handler may
 * ask and no allocation can hide behind it.
 */
#ifndef EVC_BASE_SELF_H
#define EVC_BASE_SELF_H

int evc__tid(void);

/* The kernel's name, as it was when first asked for or set here. */
const char *evc__thread_name(void);

/* Name the calling thread; cut to what the kernel takes. */
void evc__thread_rename(const char *name);

/* In a fork child: ask the kernel anew. */
void evc__self_reset(void);

#endif
