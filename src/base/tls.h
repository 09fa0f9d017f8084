/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of each new thread's stack the program's thread-local data takes:
 * the C library cuts it out of the room that was asked for.
 */
#ifndef EVC_BASE_TLS_H
#define EVC_BASE_TLS_H

#include <stddef.h>

/* A stack of this size for the thread's own use, and that beside it. */
size_t evc__stack_with_tls(size_t stack);

#endif
