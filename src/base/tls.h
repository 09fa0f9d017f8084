/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of each new thread's stack the program's thread-local data takes:
 * the C library cuts it out of the room that was asked for.
 */
#ifndef EVC_BASE_TLS_H
#define EVC_BASE_TLS_H

#include <stddef.h>

/* Bytes, in whole pages. */
size_t evc__tls_size(void);

#endif
