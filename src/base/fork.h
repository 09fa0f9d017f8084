/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A generation number of the process, raised in the child of each fork().
 *
 * All signals are blocked during the fork, so no handler can run in a child
 * before its number is raised.
 */
#ifndef EVC_BASE_FORK_H
#define EVC_BASE_FORK_H

#include "base/sync.h"

extern _Atomic unsigned evc__fork_generation;

/* Has a fork made this process since the generation was read? */
static inline bool
evc__forked_since(unsigned generation)
{
	return sync_load_relaxed(&evc__fork_generation) != generation;
}

/* Install the hooks for fork(), once in a process.  false: no memory. */
bool evc__fork_watch(void);

/* Call reset in each child from now on; a second call with it does nothing. */
void evc__fork_also(void (*reset)(void));

#endif
