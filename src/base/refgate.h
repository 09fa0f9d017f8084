/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ways to know that nobody is inside any more.
 *
 * A gate lets threads in until it is closed once; closing waits until all have
 * left.  Walkers are never shut out: somebody may wait until there was a moment
 * without any.  Both are one word: +2 for each inside; bit 0 is "closed" for a
 * gate and "somebody waits" for walkers.  Entering and leaving take no lock and
 * are safe in signal handlers.
 */
#ifndef EVC_BASE_REFGATE_H
#define EVC_BASE_REFGATE_H

#include "base/sync.h"

struct refgate {
	_Atomic uint32_t n;
};

/* false: the gate is closed, and the caller is not inside. */
bool evc__refgate_enter(struct refgate *g);

/* The guarded object may be freed as soon as the last thread has left. */
void evc__refgate_leave(struct refgate *g);

/* From now on no thread enters. */
void evc__refgate_shut(struct refgate *g);
bool evc__refgate_is_shut(struct refgate *g);

/* Shut the gate and wait until no thread is inside.  Once. */
void evc__refgate_close(struct refgate *g);

struct readers {
	_Atomic uint32_t n;
};

void evc__readers_enter(struct readers *w);
void evc__readers_leave(struct readers *w);

/* Return when there was a moment without walkers since the call.  One waiter
   at a time: the caller holds a lock. */
void evc__readers_quiet(struct readers *w);

#endif
