/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Points of time from seconds, and the time left until them; see deadline.h.
 * Called by: all rooms, before each wait with a limit.
 * Locks: none; evc__await_change releases the caller's lock while it sleeps.
 */
#include "base/deadline.h"

#include <math.h>

/* Seconds between two looks of a wait, before the stop and after it. */
#define LOOK_BEFORE 0.5
#define LOOK_AFTER  0.1

#define SECOND UINT64_C(1000000000)

uint64_t
evc__ns(double seconds)
{
	if (!(seconds > 0))
		return 0;
	if (seconds >= 9e9)
		return SYNC_FOREVER;
	/* To the nearest: the product may be a little below what was meant. */
	return (uint64_t)(seconds * 1e9 + 0.5);
}

uint64_t
evc__after(uint64_t t, uint64_t ns)
{
	return ns >= SYNC_FOREVER - t ? SYNC_FOREVER : t + ns;
}

uint64_t
evc__deadline_in_ns(uint64_t ns)
{
	return ns == SYNC_FOREVER ? ns : evc__after(sync_mono(), ns);
}

uint64_t
evc__deadline_in(double seconds)
{
	return evc__deadline_in_ns(evc__ns(seconds));
}

uint64_t
evc__deadline_left_ns(uint64_t until)
{
	uint64_t now;

	if (until == SYNC_FOREVER)
		return until;
	now = sync_mono();
	return until > now ? until - now : 0;
}

double
evc__deadline_left(uint64_t until)
{
	uint64_t ns = evc__deadline_left_ns(until);

	return ns == SYNC_FOREVER ? INFINITY : (double)ns / 1e9;
}

uint64_t
evc__deadline_look(uint64_t until, double stop_left)
{
	double most = isinf(stop_left) ? LOOK_BEFORE : LOOK_AFTER;
	uint64_t look = evc__deadline_in(stop_left < most ? stop_left : most);

	return look < until ? look : until;
}

uint64_t
evc__grace_within(uint64_t grace, double stop)
{
	uint64_t most = evc__ns(stop * 0.9);

	return grace < most ? grace : most;
}

uint64_t
evc__grace_last(uint64_t grace)
{
	return grace / 4 < SECOND ? grace / 4 : SECOND;
}

bool
evc__await_change(pthread_mutex_t *lock, _Atomic uint32_t *word, uint64_t until)
{
	/* The word does not change before the unlock for a reason that the
	   caller has not seen, so relaxed is enough; after the unlock the
	   kernel compares. */
	uint32_t seen = sync_load_relaxed(word);
	uint64_t left = evc__deadline_left_ns(until);

	if (left == 0)
		return false;
	sync_unlock(lock);
	sync_futex_wait(word, seen, left);
	sync_lock(lock);
	return true;
}

void
evc__nap(uint64_t ns)
{
	_Atomic uint32_t never = 0;

	sync_futex_wait(&never, 0, ns);
}
