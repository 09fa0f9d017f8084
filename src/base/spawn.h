/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands around the creation of each of our threads: a stack that has room
 * for thread-local data as well, and signals that are not its affair.
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

/* What is created until the end has a stack of so many bytes (0: the system's
   default) and blocks signals, as evc__block_signals says. */
void evc__spawn_begin(struct evc__spawn *s, size_t stack, bool detached);
void evc__spawn_end(struct evc__spawn *s);

#endif
