/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The back-off; see backoff.h.
 * Called by: joins, wakers, restarts of workers and processes, retries of
 * functions, connections.
 * Locks: none.
 */
#include "base/backoff.h"

#include "base/deadline.h"

#define FIRST 0.1
#define MOST 30.
/* Longer than any clock runs; with a jitter of 1 still a number. */
#define AGES (UINT64_MAX / 4)

uint64_t
evc__backoff_next(uint64_t last, uint64_t first, uint64_t most)
{
	uint64_t next = last == 0 ? first : last * 2;

	return last <= most / 2 && next < most ? next : most;
}

bool
evc__backoff_is_valid(double first, double most, double jitter)
{
	/* Comparisons with NaN are false. */
	return first >= 0 && most >= 0 && jitter >= 0 && jitter <= 1;
}

/* At least 1 ns, because 0 could not double. */
static uint64_t
clamped_ns(double seconds)
{
	uint64_t ns = evc__ns(seconds);

	return ns < 1 ? 1 : ns < AGES ? ns : AGES;
}

uint64_t
evc__backoff_most(double first, double most)
{
	/* A user that sets only the first wait does not want a shorter one. */
	if (!(most > 0))
		most = first > MOST ? first : MOST;
	return clamped_ns(most);
}

uint64_t
evc__backoff_wait(double first, double most, double jitter, unsigned n,
		  uint64_t random)
{
	uint64_t longest = evc__backoff_most(first, most);
	uint64_t wait = clamped_ns(first > 0 ? first : FIRST);
	/* 53 bits make a number from 0 up to, not including, 1. */
	double part = (double)(random >> 11) / (double)(UINT64_C(1) << 53);

	wait = evc__backoff_next(0, wait, longest);
	while (n-- > 0 && wait < longest)
		wait = evc__backoff_next(wait, wait, longest);
	return wait + (uint64_t)((double)wait * jitter * part);
}

uint64_t
evc__backoff_random(uint64_t seed)
{
	/* Multiply and shift, three times: each bit of the seed reaches each
	   bit of the number. */
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
	return seed ^ seed >> 31;
}
