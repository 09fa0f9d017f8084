/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of a looper's boundaries.  An interval is split into whole
 * nanoseconds and a rest.  The whole part times k is exact; the rest times k is
 * off by far less than a nanosecond; nothing is added up, so nothing drifts.
 * The number of passed boundaries is a division, so a clock that jumps over a
 * year costs as much as a tick.  A clock that goes back delays the next
 * boundary.
 * Called by: the loopers.
 * Locks: none; all data is the caller's.
 */
#include "core/core.h"
#include "members/schedule.h"

#include <evcoord/types.h>
#include <math.h>

/* No clock separates closer boundaries: such runs are back to back. */
#define CLOSEST 1e-9
/* About 584 years; more is for ever. */
#define MOST_NS 1.8e19
#define AT_MOST 0x10000u

const struct evc__policy evc__policy_default = { EVC_MISSED_SKIP, 0, 0 };

bool
evc__policy_valid(unsigned missed)
{
	return missed < AT_MOST ||
	       (missed > AT_MOST && missed <= AT_MOST + 0xffffu);
}

TICK_PATH static bool
back_to_back(const struct evc__schedule *s)
{
	return s->interval < CLOSEST;
}

TICK_PATH static uint64_t
plus(uint64_t a, uint64_t b)
{
	return a > SCHEDULE_NEVER - b ? SCHEDULE_NEVER : a + b;
}

TICK_PATH uint64_t
evc__schedule_boundary(const struct evc__schedule *s, uint64_t k)
{
	double ns = s->interval * 1e9;
	uint64_t whole, offset;

	if (k == 0 || back_to_back(s))
		return s->start;
	if (ns >= MOST_NS)
		return SCHEDULE_NEVER;
	whole = (uint64_t)ns;
	if (__builtin_mul_overflow(k, whole, &offset))
		return SCHEDULE_NEVER;
	/* Rounded, because a double may miss a whole number of nanoseconds by
	   a little. */
	offset = plus(offset,
		      (uint64_t)((double)k * (ns - (double)whole) + 0.5));
	return plus(s->start, offset);
}

/* A pseudo-random number in [0, 1), the same for the same seed, grid and
   boundary. */
static double
random_shift(const struct evc__schedule *s, const struct evc__policy *p,
	     uint64_t k)
{
	uint64_t x = p->seed * UINT64_C(0x9e3779b97f4a7c15) + s->start;

	/* The start is a part of the seed: so the same looper in a thousand
	   programs runs at a thousand different times. */
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93) + k;
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	return (double)(x >> 11) * 0x1p-53;
}

TICK_PATH uint64_t
evc__schedule_run(const struct evc__schedule *s, const struct evc__policy *p,
		  uint64_t k)
{
	uint64_t b = evc__schedule_boundary(s, k), next, run;
	double later;

	if (p->jitter == 0 || isinf(s->interval) || back_to_back(s))
		return b;
	later = random_shift(s, p, k) * p->jitter * s->interval * 1e9;
	next = evc__schedule_boundary(s, k + 1);
	run = later < MOST_NS ? plus(b, (uint64_t)later) : SCHEDULE_NEVER;
	/* Never past the next boundary, however rounded. */
	return run < next ? run : next;
}

TICK_PATH uint64_t
evc__schedule_due(const struct evc__schedule *s, const struct evc__policy *p)
{
	if (back_to_back(s))
		return 0;
	return evc__schedule_run(s, p, s->k);
}

/* The last boundary with a due run; the run at s->k is due. */
TICK_PATH static uint64_t
latest_due(const struct evc__schedule *s, const struct evc__policy *p,
	   uint64_t now)
{
	double n;
	uint64_t k, i;

	/* The common case: in time. */
	if (isinf(s->interval) || now <= s->start ||
	    evc__schedule_run(s, p, s->k + 1) > now)
		return s->k;
	/* A division of doubles may be off by 1, or by a few for a k beyond
	   their precision: check the neighbours. */
	n = (double)(now - s->start) / (s->interval * 1e9);
	k = (uint64_t)(n < MOST_NS ? n : MOST_NS);
	for (i = 0; i < 4 && evc__schedule_run(s, p, k + 1) <= now; i++)
		k++;
	for (i = 0; i < 4 && k > s->k && evc__schedule_run(s, p, k) > now; i++)
		k--;
	return k > s->k ? k : s->k;
}

/* The most runs for the due boundaries. */
TICK_PATH static uint64_t
most_runs(const struct evc__policy *p)
{
	switch (p->missed) {
	case 0:
	case EVC_MISSED_SKIP:
	case EVC_MISSED_DELAY:
		return 1;
	case EVC_MISSED_BURST:
		return UINT64_MAX;
	default:
		return p->missed & 0xffffu;
	}
}

TICK_PATH bool
evc__schedule_take(struct evc__schedule *s, const struct evc__policy *p,
		   uint64_t now, struct evc__tick *ret)
{
	uint64_t most = most_runs(p), due = evc__schedule_due(s, p);
	uint64_t last, boundary;

	ret->missed = ret->late = 0;
	if (due > now || due == SCHEDULE_NEVER)
		return false;
	s->ticks++;
	if (back_to_back(s))
		return true;
	if (most != UINT64_MAX) {
		last = latest_due(s, p, now);
		if (last - s->k >= most)
			ret->missed = last - s->k - (most - 1);
	}
	s->k += ret->missed;
	s->missed += ret->missed;
	boundary = evc__schedule_boundary(s, s->k);
	ret->late = now > boundary ? now - boundary : 0;
	s->k++;
	if (p->missed == EVC_MISSED_DELAY && !isinf(s->interval)) {
		s->start = now;
		s->k = 1;
	}
	return true;
}

void
evc__schedule_extra(struct evc__schedule *s, struct evc__tick *ret)
{
	s->ticks++;
	ret->missed = ret->late = 0;
}

void
evc__schedule_begin(struct evc__schedule *s, uint64_t now)
{
	s->start = now;
	s->k = 0;
}

void
evc__schedule_change(struct evc__schedule *s, double interval, uint64_t now)
{
	s->interval = interval;
	s->start = now;
	s->k = 1;
}
