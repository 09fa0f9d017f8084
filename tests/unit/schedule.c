/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When loopers run, by a scripted clock.
 *
 * 100,000 random histories - stalls, jumps of the clock forward and back,
 * pauses, changes of the interval, triggers, jitter, every policy - run twice:
 * with evc__schedule_take, and in a model that keeps no number of a boundary
 * but its time, goes from each to the next by adding, and puts all that have
 * passed in a row before it asks which of them has a run.
 *
 * EVC_SEED=n runs other histories; a failure prints the seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/api_util.h"

#include "members/schedule.h"
#include "unit/histories.h"

#define HISTORIES 100000
#define STEPS 24
#define ROW 4096 /* boundaries that pass between two looks, at most */

/* For where millions of things are looked at: check's asserts write each of
   them down. */
#define MUST(cond) \
	do { \
		if (!(cond)) \
			ck_abort_msg("%s; EVC_SEED=%llu", #cond, \
				     (unsigned long long)seed_now); \
	} while (0)
static uint64_t seed_now;

static const unsigned policies[] = { 0,
				     EVC_MISSED_SKIP,
				     EVC_MISSED_BURST,
				     EVC_MISSED_DELAY,
				     EVC_MISSED_AT_MOST(1),
				     EVC_MISSED_AT_MOST(3),
				     17,
				     65535 };
#define N_POLICIES (sizeof(policies) / sizeof(policies[0]))

/* ---- the model ---- */

struct model {
	uint64_t interval; /* ns; 0: back to back; NEVER: infinite */
	unsigned missed_how;
	bool none;         /* no boundary is left */
	uint64_t next;     /* the time of the next one */
	uint64_t ticks, missed;
};

/* How much later than its boundary its run comes; that much is not known to the
   model. */
typedef uint64_t shift_fn(const struct model *m, uint64_t boundary);

static uint64_t
model_due(const struct model *m, shift_fn *shift)
{
	if (m->interval == 0)
		return 0;
	return m->none ? NEVER : m->next + shift(m, m->next);
}

/* The row of boundaries whose run is due, in the order of time. */
static unsigned
passed(const struct model *m, uint64_t now, shift_fn *shift, uint64_t row[ROW])
{
	uint64_t b = m->next;
	unsigned n = 0;

	while (!m->none && b <= now && b + shift(m, b) <= now) {
		MUST(n < ROW);
		row[n++] = b;
		if (m->interval == NEVER)
			break;
		b += m->interval;
	}
	return n;
}

static unsigned
may_run(unsigned missed_how)
{
	if (missed_how >= 0x10000)
		return missed_how - 0x10000;
	if (missed_how > 3)
		return missed_how;
	return missed_how == EVC_MISSED_BURST ? ROW : 1;
}

static bool
model_take(struct model *m, uint64_t now, shift_fn *shift,
	   struct evc__tick *ret)
{
	static uint64_t row[ROW];
	unsigned n, skip, most = may_run(m->missed_how);

	memset(ret, 0, sizeof(*ret));
	if (m->interval == 0) {
		m->ticks++;
		return true;
	}
	n = passed(m, now, shift, row);
	if (n == 0)
		return false;
	skip = n > most ? n - most : 0;
	ret->missed = skip;
	ret->late = now - row[skip];
	m->missed += skip;
	m->ticks++;
	if (m->interval == NEVER)
		m->none = true;
	else if (m->missed_how == EVC_MISSED_DELAY)
		m->next = now + m->interval;
	else
		m->next = row[skip] + m->interval;
	return true;
}

/* ---- histories ---- */

static struct evc__schedule real;
static struct evc__policy policy;

/* Whatever it is, it is less than its share of the interval, and the next
   boundary comes after it. */
static uint64_t
real_shift(const struct model *m, uint64_t boundary)
{
	uint64_t k, shift;

	if (policy.jitter == 0 || m->interval == NEVER)
		return 0;
	k = (boundary - real.start) / m->interval;
	MUST(evc__schedule_boundary(&real, k) == boundary);
	shift = evc__schedule_run(&real, &policy, k) - boundary;
	MUST(shift <= (uint64_t)((double)m->interval * policy.jitter));
	return shift;
}

static double
seconds(uint64_t ns)
{
	return ns == NEVER ? INFINITY : (double)ns / 1e9;
}

static uint64_t
some_interval(void)
{
	static const uint64_t some[] = {
		0, 1, 7, 1000, 333333333, MS, 15625000, SEC, 60 * SEC, NEVER
	};

	if (chance(30))
		return 1 + dice(10 * SEC);
	return some[dice(sizeof(some) / sizeof(some[0]))];
}

struct drive {
	struct model m;
	uint64_t now;
	bool paused;
	unsigned did[8]; /* what the dice threw */
};

/* So many nanoseconds, in intervals. */
static uint64_t
intervals(const struct drive *d, double n)
{
	if (d->m.interval == 0 || d->m.interval == NEVER)
		return dice(SEC);
	return (uint64_t)(n * (double)d->m.interval);
}

static void
show(const struct drive *d, const struct evc__tick *got,
     const struct evc__tick *want)
{
	printf("  policy %#x, jitter %g, interval %llu ns; missed %llu, not "
	       "%llu; late %llu, not %llu\n",
	       policy.missed, policy.jitter,
	       (unsigned long long)d->m.interval,
	       (unsigned long long)got->missed,
	       (unsigned long long)want->missed,
	       (unsigned long long)got->late, (unsigned long long)want->late);
	fflush(stdout);
}

static void
look(struct drive *d)
{
	struct evc__tick want, got;
	struct evc__schedule before = real;
	bool due;

	MUST(evc__schedule_due(&real, &policy) ==
	     model_due(&d->m, real_shift));
	due = model_take(&d->m, d->now, real_shift, &want);
	MUST(evc__schedule_take(&real, &policy, d->now, &got) == due);
	MUST(due || memcmp(&real, &before, sizeof(real)) == 0);
	if (got.missed != want.missed || got.late != want.late)
		show(d, &got, &want);
	MUST(got.missed == want.missed);
	MUST(got.late == want.late);
	MUST(real.ticks == d->m.ticks);
	MUST(real.missed == d->m.missed);
	d->did[0] += due;
	d->did[1] += want.missed > 0;
}

/* Where the clock goes: mostly to about when the next run is due. */
static void
move_clock(struct drive *d)
{
	uint64_t due = model_due(&d->m, real_shift);
	bool soon = due != NEVER && due > d->now;

	switch (dice(6)) {
	case 0:
		if (soon)
			d->now = due;
		break;
	case 1:
		if (soon)
			d->now = due - 1 - dice(due - d->now);
		break;
	case 2:
		d->now += intervals(d, 1.5); /* a stall */
		break;
	case 3:
		d->now += intervals(d, (double)dice(200)); /* a long one */
		d->did[2]++;
		break;
	case 4:
		if (soon)
			d->now = due + dice(intervals(d, 0.2) + 1);
		break;
	default:
		if (chance(30)) {
			d->now -= dice(d->now / 2); /* it goes back */
			d->did[3]++;
		}
		break;
	}
}

static void
step(struct drive *d)
{
	struct evc__tick tick = { 1, 1 };

	move_clock(d);
	switch (dice(12)) {
	case 0:
		d->paused = true;
		d->did[4]++;
		break;
	case 1: /* a resume */
		d->paused = false;
		evc__schedule_begin(&real, d->now);
		d->m.next = d->now;
		d->m.none = false;
		break;
	case 2:
		d->m.interval = some_interval();
		evc__schedule_change(&real, seconds(d->m.interval), d->now);
		d->m.none = d->m.interval == NEVER;
		d->m.next = d->now + (d->m.none ? 0 : d->m.interval);
		d->did[5]++;
		break;
	case 3:
		evc__schedule_extra(&real, &tick);
		MUST(tick.missed == 0 && tick.late == 0);
		d->m.ticks++;
		break;
	default:
		break;
	}
	if (!d->paused)
		look(d);
}

START_TEST(P1_hundred_thousand_histories_against_a_model)
{
	const char *env = getenv("EVC_SEED");
	uint64_t seed = env != NULL ? strtoull(env, NULL, 0) : 20260401;
	unsigned did[8] = { 0 }, i, k;

	for (i = 0; i < HISTORIES; i++) {
		struct drive d;

		seed_now = seed + i;
		state = seed_now * UINT64_C(0x9e3779b97f4a7c15) | 1;
		dice(2);
		memset(&d, 0, sizeof(d));
		memset(&real, 0, sizeof(real));
		memset(&policy, 0, sizeof(policy));
		d.now = 1000 * SEC + dice(1000 * SEC);
		d.m.interval = some_interval();
		d.m.missed_how = policies[dice(N_POLICIES)];
		policy.missed = d.m.missed_how;
		policy.jitter = chance(70) ? 0 : ONE_OF(0.01, 0.5, 1);
		policy.seed = dice(100);
		d.m.next = d.now;
		real.interval = seconds(d.m.interval);
		evc__schedule_begin(&real, d.now);
		for (k = 0; k < STEPS; k++)
			step(&d);
		for (k = 0; k < 8; k++)
			did[k] += d.did[k];
	}
	/* The dice must have thrown all there is. */
	for (k = 0; k < 6; k++)
		ck_assert_uint_gt(did[k], HISTORIES / 10);
}
END_TEST

API_MAIN("schedule", P1_hundred_thousand_histories_against_a_model)
