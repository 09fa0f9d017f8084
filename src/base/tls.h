/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes that thread-local data takes from each new thread's stack: the C
 * library cuts them from the requested size.
 */
#ifndef EVC_BASE_TLS_H
#define EVC_BASE_TLS_H

#include <stddef.h>

/* The size to request for a stack with so many usable bytes. */
size_t evc__stack_with_tls(size_t stack);

#endif
