/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The times of a looper's runs.  Pure: no clock, no thread, no libev; all times
 * are arguments, in nanoseconds of a monotonic clock.
 *
 * Boundary k is the time start + k * interval; all boundaries form a grid.  A
 * run uses up a boundary, or the looper gives up the boundary as missed; no
 * boundary is used twice.  A resume or a change of the interval begins a new
 * grid: passed boundaries of the old grid without a run are forgotten, and
 * count neither as runs nor as missed.
 */
#ifndef EVC_MEMBERS_SCHEDULE_H
#define EVC_MEMBERS_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define SCHEDULE_NEVER UINT64_MAX

/* The compiler puts functions marked as hot next to each other: after a second
   of sleep each separate cache line costs a wait. */
#define TICK_PATH __attribute__((hot))

struct evc__schedule {
	double interval; /* seconds: 0 back to back, INFINITY boundary 0 only */
	uint64_t start;  /* boundary 0 */
	uint64_t k;      /* the first boundary that is not used up */
	uint64_t ticks;  /* all runs, of any kind */
	uint64_t missed; /* all boundaries given up */
};

/* Options that most loopers leave at their defaults. */
struct evc__policy {
	unsigned missed; /* EVC_MISSED_..., or at most n */
	double jitter;   /* of the interval, 0..1 */
	uint64_t seed;
};
extern const struct evc__policy evc__policy_default;

/* The facts of a run. */
struct evc__tick {
	uint64_t missed; /* boundaries given up since the run before */
	uint64_t late;   /* nanoseconds after the boundary */
};

/* Is this a valid value of opts.missed? */
bool evc__policy_valid(unsigned missed);

/* Boundary 0 is now: a start, or a resume. */
void evc__schedule_begin(struct evc__schedule *s, uint64_t now);
/* The next boundary is one new interval from now. */
void evc__schedule_change(struct evc__schedule *s, double interval,
			  uint64_t now);

/* The time of the next run; SCHEDULE_NEVER: none without a trigger. */
uint64_t evc__schedule_due(const struct evc__schedule *s,
			   const struct evc__policy *p);
/* Use up boundaries for a run at now, by the policy.  false: no run is due, and
   nothing has changed. */
bool evc__schedule_take(struct evc__schedule *s, const struct evc__policy *p,
			uint64_t now, struct evc__tick *ret);
/* A run that uses up no boundary: a triggered one, or the last one. */
void evc__schedule_extra(struct evc__schedule *s, struct evc__tick *ret);

/* The time of boundary k, and of its run. */
uint64_t evc__schedule_boundary(const struct evc__schedule *s, uint64_t k);
uint64_t evc__schedule_run(const struct evc__schedule *s,
			   const struct evc__policy *p, uint64_t k);

#endif
