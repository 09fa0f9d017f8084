/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines: the seconds of a caller become a point of time, from which each
 * sleep computes the time left.
 *
 * All times are nanoseconds of the monotonic clock, unless the caller passes
 * another clock's.  SYNC_FOREVER means "never" as a point of time and "for
 * ever" as a length, as for sync_futex_wait: an endless wait needs no extra
 * case.
 */
#ifndef EVC_BASE_DEADLINE_H
#define EVC_BASE_DEADLINE_H

#include "base/sync.h"

/* Seconds to nanoseconds: negative is 0, too much is SYNC_FOREVER. */
uint64_t evc__ns(double seconds);
/* t + ns; SYNC_FOREVER on overflow. */
uint64_t evc__after(uint64_t t, uint64_t ns);

/* The point of time so far from now. */
uint64_t evc__deadline_in_ns(uint64_t ns);
uint64_t evc__deadline_in(double seconds);
/* The time left; 0: over. */
uint64_t evc__deadline_left_ns(uint64_t until);
double evc__deadline_left(uint64_t until);

/* The next look of a wait that ends at `until` and also when a stop ends, which
   has so many seconds left (INFINITY: there is no stop).  The look comes before
   either end, because a stop may come, and the end of a stop may move. */
uint64_t evc__deadline_look(uint64_t until, double stop_left);

/* A grace inside a stop that has so many seconds in all: a tenth of them stays
   for the steps after the grace. */
uint64_t evc__grace_within(uint64_t grace, double stop);
/* The last part of a grace: whoever has not ended is asked then where it
   stands, before it is killed. */
uint64_t evc__grace_last(uint64_t grace);

/* Sleep until *word has changed, or the time is over.  The lock is held, and
   released during the sleep; the word changes under the lock, or later than a
   change under the lock for which the caller waits.  false: the time was over
   before any sleep. */
bool evc__await_change(pthread_mutex_t *lock, _Atomic uint32_t *word,
		       uint64_t until);
/* Sleep; no other thread wakes the caller. */
void evc__nap(uint64_t ns);

#endif
