/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process is this: a number that moves in the child of each fork().
 *
 * The fork is made with all signals blocked, so that no handler can run in a
 * child that does not know yet that it is one.
 */
#ifndef EVC_BASE_FORK_H
#define EVC_BASE_FORK_H

#include "base/sync.h"

extern _Atomic unsigned evc__fork_generation;

/* Is this a fork child of the process in which it was that? */
static inline bool
evc__forked_since(unsigned generation)
{
	return sync_load_relaxed(&evc__fork_generation) != generation;
}

/* Install the fork hooks, once in a process; false: no memory. */
bool evc__fork_watch(void);

/* What else a child must begin anew; the same function may be given again. */
void evc__fork_also(void (*reset)(void));

#endif
