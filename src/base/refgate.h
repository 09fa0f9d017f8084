/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two counters of the threads that are inside some code.
 *
 * A refgate lets threads in until the refgate is shut, once and for good.  To
 * close a refgate means: shut the refgate, and wait until no thread is inside.
 * Readers are never shut out, but a thread can wait until there was a moment
 * without readers.  Each counter is an atomic word: 2 for each thread inside,
 * and bit 0, which means "shut" for a refgate and "a thread waits" for readers.
 * To enter and to leave takes no lock and is safe in signal handlers.
 */
#ifndef EVC_BASE_REFGATE_H
#define EVC_BASE_REFGATE_H

#include "base/sync.h"

struct refgate {
	_Atomic uint32_t n;
};

/* false: the refgate is shut, and the caller is not inside. */
bool evc__refgate_enter(struct refgate *g);

/* The guarded object may be freed as soon as the last thread has left. */
void evc__refgate_leave(struct refgate *g);

/* From now on no thread enters. */
void evc__refgate_shut(struct refgate *g);
bool evc__refgate_is_shut(struct refgate *g);

/* Was no thread inside at this moment? */
static inline bool
evc__refgate_is_empty(struct refgate *g)
{
	return sync_load_sc(&g->n) < 2;
}

/* Shut the refgate and wait until no thread is inside.  To be called once. */
void evc__refgate_close(struct refgate *g);

struct readers {
	_Atomic uint32_t n;
};

void evc__readers_enter(struct readers *w);
void evc__readers_leave(struct readers *w);

/* Return when there was a moment without readers since the call.  Two threads
   must not wait at the same time, so the caller holds a lock. */
void evc__readers_quiet(struct readers *w);

#endif
