/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The creation of a thread of the library: a stack with extra room for
 * thread-local data, and blocked signals.
 */
#ifndef EVC_BASE_SPAWN_H
#define EVC_BASE_SPAWN_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct evc__spawn {
	pthread_attr_t attr; /* for sync_thread_create */
	sigset_t before;
};

/* A thread created before evc__spawn_end has a stack of so many bytes (0: the
   system's default) and blocks the signals of evc__block_signals. */
void evc__spawn_begin(struct evc__spawn *s, size_t stack, bool detached);
void evc__spawn_end(struct evc__spawn *s);

/* The size to request for a stack with so many usable bytes: the C library cuts
   thread-local data from the requested size. */
size_t evc__stack_with_tls(size_t stack);

#endif
