/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When loopers run: the clear cases by name.  tests/unit/schedule.c drives the
 * same functions through histories at random.
 */
#include "../support/api_util.h"

#include "members/schedule.h"

#define SEC UINT64_C(1000000000)
#define NEVER UINT64_MAX
#define YEAR (UINT64_C(31556952) * SEC)

static const unsigned policies[] = { 0,
				     EVC_MISSED_SKIP,
				     EVC_MISSED_BURST,
				     EVC_MISSED_DELAY,
				     EVC_MISSED_AT_MOST(1),
				     EVC_MISSED_AT_MOST(3),
				     17,
				     65535 };
#define N_POLICIES (sizeof(policies) / sizeof(policies[0]))

/* For where millions of things are looked at: check's asserts write each of
   them down. */
#define MUST(cond) \
	do { \
		if (!(cond)) \
			ck_abort_msg("%s", #cond); \
	} while (0)

static struct evc__schedule
begun(double interval, uint64_t start)
{
	struct evc__schedule s = { .interval = interval };

	evc__schedule_begin(&s, start);
	return s;
}

/* A million boundaries of num / den seconds. */
static void
does_not_drift(unsigned num, unsigned den)
{
	const uint64_t start = 12345 * SEC + 678;
	struct evc__schedule s = begun((double)num / den, start);
	const struct evc__policy *p = &evc__policy_default;
	struct evc__tick t;
	uint64_t k, exact;

	for (k = 0; k < 1000000; k++) {
		exact = start + k * num * SEC / den;
		/* Off by the rounding, never by more. */
		MUST(evc__schedule_due(&s, p) - exact <= 1);
		MUST(evc__schedule_take(&s, p, exact + 1 + k % 1000, &t));
		MUST(t.missed == 0);
		MUST(1 + k % 1000 - t.late <= 1);
	}
	ck_assert_uint_eq(s.ticks, 1000000);
	ck_assert_uint_eq(s.missed, 0);
}

START_TEST(P1_no_drift_after_a_million_ticks)
{
	does_not_drift(1, 1000);
	does_not_drift(1, 64);
	does_not_drift(1, 3);
	does_not_drift(7, 10);
	does_not_drift(1, 10);
	does_not_drift(355, 113);
}
END_TEST

/* At rest at 10 s, so that 10 and 11 s are boundaries; then at 15.5 s. */
static struct evc__schedule
after_a_stall(unsigned missed, struct evc__tick *t)
{
	const struct evc__policy p = { .missed = missed };
	struct evc__schedule s = begun(1, 10 * SEC);

	ck_assert(evc__schedule_take(&s, &p, 10 * SEC, t));
	ck_assert_uint_eq(t->missed, 0);
	ck_assert_uint_eq(t->late, 0);
	ck_assert(!evc__schedule_take(&s, &p, 11 * SEC - 1, t));
	ck_assert(evc__schedule_take(&s, &p, 15 * SEC + SEC / 2, t));
	return s;
}

START_TEST(P1_skip_runs_the_latest_and_misses_the_others)
{
	const struct evc__policy p = { .missed = EVC_MISSED_SKIP };
	struct evc__tick t;
	struct evc__schedule s = after_a_stall(EVC_MISSED_SKIP, &t);

	ck_assert_uint_eq(t.missed, 4);
	ck_assert_uint_eq(t.late, SEC / 2);
	ck_assert_uint_eq(evc__schedule_due(&s, &p), 16 * SEC);
	ck_assert(!evc__schedule_take(&s, &p, 15 * SEC + SEC / 2, &t));
	ck_assert_uint_eq(s.missed, 4);
	s = after_a_stall(0, &t);
	ck_assert_uint_eq(t.missed, 4);
	s = after_a_stall(EVC_MISSED_AT_MOST(1), &t);
	ck_assert_uint_eq(t.missed, 4);
}
END_TEST

START_TEST(P1_burst_runs_each)
{
	const struct evc__policy p = { .missed = EVC_MISSED_BURST };
	struct evc__tick t;
	struct evc__schedule s = after_a_stall(EVC_MISSED_BURST, &t);
	unsigned i;

	for (i = 0; i < 5; i++) {
		ck_assert_uint_eq(t.missed, 0);
		ck_assert_uint_eq(t.late, (4 - i) * SEC + SEC / 2);
		ck_assert(evc__schedule_take(&s, &p, 15 * SEC + SEC / 2, &t) ==
			  (i < 4));
	}
	ck_assert_uint_eq(evc__schedule_due(&s, &p), 16 * SEC);
	ck_assert_uint_eq(s.missed, 0);
	ck_assert_uint_eq(s.ticks, 6);
}
END_TEST

START_TEST(P1_at_most_n_runs_the_n_latest)
{
	const struct evc__policy p = { .missed = EVC_MISSED_AT_MOST(2) };
	struct evc__tick t;
	struct evc__schedule s = after_a_stall(p.missed, &t);

	ck_assert_uint_eq(t.missed, 3);
	ck_assert_uint_eq(t.late, SEC + SEC / 2);
	ck_assert(evc__schedule_take(&s, &p, 15 * SEC + SEC / 2, &t));
	ck_assert_uint_eq(t.missed, 0);
	ck_assert_uint_eq(t.late, SEC / 2);
	ck_assert(!evc__schedule_take(&s, &p, 15 * SEC + SEC / 2, &t));
	ck_assert_uint_eq(evc__schedule_due(&s, &p), 16 * SEC);
	/* A plain number above 3 is the same. */
	s = after_a_stall(4, &t);
	ck_assert_uint_eq(t.missed, 1);
	s = after_a_stall(EVC_MISSED_AT_MOST(4), &t);
	ck_assert_uint_eq(t.missed, 1);
	s = after_a_stall(5, &t);
	ck_assert_uint_eq(t.missed, 0);
}
END_TEST

START_TEST(P1_delay_moves_the_grid)
{
	const struct evc__policy p = { .missed = EVC_MISSED_DELAY };
	struct evc__tick t;
	struct evc__schedule s = after_a_stall(EVC_MISSED_DELAY, &t);

	ck_assert_uint_eq(t.missed, 4);
	ck_assert_uint_eq(t.late, SEC / 2);
	ck_assert_uint_eq(evc__schedule_due(&s, &p), 16 * SEC + SEC / 2);
	ck_assert(evc__schedule_take(&s, &p, 16 * SEC + SEC / 2, &t));
	ck_assert_uint_eq(t.missed, 0);
	ck_assert_uint_eq(t.late, 0);
	ck_assert_uint_eq(evc__schedule_due(&s, &p), 17 * SEC + SEC / 2);
}
END_TEST

START_TEST(P1_resume_and_a_new_interval_begin_a_grid)
{
	const struct evc__policy *p = &evc__policy_default;
	struct evc__schedule s = begun(1, 10 * SEC);
	struct evc__tick t;

	ck_assert(evc__schedule_take(&s, p, 10 * SEC, &t));
	evc__schedule_begin(&s, 20 * SEC + 5);
	ck_assert_uint_eq(evc__schedule_due(&s, p), 20 * SEC + 5);
	ck_assert(evc__schedule_take(&s, p, 20 * SEC + 5, &t));
	ck_assert_uint_eq(t.missed, 0);
	ck_assert_uint_eq(evc__schedule_due(&s, p), 21 * SEC + 5);
	evc__schedule_change(&s, 0.25, 30 * SEC);
	ck_assert_uint_eq(evc__schedule_due(&s, p), 30 * SEC + SEC / 4);
	ck_assert(evc__schedule_take(&s, p, 30 * SEC + SEC / 4, &t));
	ck_assert_uint_eq(t.missed, 0);
	/* What was given up with the old grid counts for nothing. */
	ck_assert_uint_eq(s.missed, 0);
	ck_assert_uint_eq(s.ticks, 3);
}
END_TEST

START_TEST(P1_a_triggered_run_uses_no_boundary)
{
	const struct evc__policy *p = &evc__policy_default;
	struct evc__schedule s = begun(1, 10 * SEC);
	struct evc__tick t;

	evc__schedule_extra(&s, &t);
	ck_assert_uint_eq(t.late, 0);
	ck_assert_uint_eq(s.ticks, 1);
	ck_assert_uint_eq(evc__schedule_due(&s, p), 10 * SEC);
	ck_assert(evc__schedule_take(&s, p, 10 * SEC, &t));
	ck_assert_uint_eq(evc__schedule_due(&s, p), 11 * SEC);
}
END_TEST

START_TEST(P1_back_to_back_is_always_due)
{
	struct evc__policy p = { .jitter = 1 };
	struct evc__schedule s = begun(0, 10 * SEC);
	struct evc__tick t;
	unsigned i;

	/* The clock stands, goes back, and on. */
	for (i = 0; i < N_POLICIES; i++) {
		p.missed = policies[i];
		ck_assert(evc__schedule_take(&s, &p, 10 * SEC, &t));
		ck_assert(evc__schedule_take(&s, &p, 10 * SEC, &t));
		ck_assert(evc__schedule_take(&s, &p, 3, &t));
		ck_assert(evc__schedule_take(&s, &p, YEAR, &t));
		ck_assert_uint_eq(t.missed, 0);
		ck_assert_uint_eq(t.late, 0);
	}
	ck_assert_uint_eq(s.missed, 0);
	/* So close that no clock can tell. */
	s = begun(1e-300, 10 * SEC);
	ck_assert(evc__schedule_take(&s, &p, 10 * SEC, &t));
	ck_assert(evc__schedule_take(&s, &p, 10 * SEC, &t));
	ck_assert(evc__schedule_take(&s, &p, 11 * SEC, &t));
	ck_assert_uint_eq(s.missed, 0);
}
END_TEST

START_TEST(P1_an_infinite_interval_has_one_boundary)
{
	struct evc__policy p = { .jitter = 0.5 };
	struct evc__tick t;
	unsigned i;

	for (i = 0; i < N_POLICIES; i++) {
		struct evc__schedule s = begun(INFINITY, 10 * SEC);

		p.missed = policies[i];
		ck_assert(evc__schedule_take(&s, &p, 12 * SEC, &t));
		ck_assert_uint_eq(t.late, 2 * SEC);
		ck_assert_uint_eq(evc__schedule_due(&s, &p), NEVER);
		ck_assert(!evc__schedule_take(&s, &p, YEAR, &t));
		ck_assert(!evc__schedule_take(&s, &p, NEVER, &t));
		evc__schedule_change(&s, INFINITY, 20 * SEC);
		ck_assert_uint_eq(evc__schedule_due(&s, &p), NEVER);
		evc__schedule_begin(&s, 30 * SEC);
		ck_assert_uint_eq(evc__schedule_due(&s, &p), 30 * SEC);
	}
}
END_TEST

/* Were each boundary looked at, this would take days. */
START_TEST(P1_a_jump_over_a_year_costs_one_step)
{
	static const double some[] = { 1e-9, 3e-9, 1e-6, 1. / 3, 1, 1e5 };
	static const unsigned how[] = { EVC_MISSED_SKIP, EVC_MISSED_DELAY,
					EVC_MISSED_AT_MOST(1000) };
	struct evc__tick t;
	unsigned i, n;

	for (i = 0; i < 18; i++) {
		struct evc__policy p = { .missed = how[i % 3],
					 .jitter = i % 2 ? 1 : 0 };
		struct evc__schedule s = begun(some[i / 3], 10 * SEC);
		uint64_t now = 10 * SEC;

		for (n = 0; n < 500; n++) {
			now += YEAR;
			MUST(evc__schedule_take(&s, &p, now, &t));
			MUST(evc__schedule_due(&s, &p) > 10 * SEC);
		}
		ck_assert_uint_eq(s.ticks, 500);
		ck_assert_uint_gt(s.missed, 100000);
	}
}
END_TEST

START_TEST(P1_no_clock_breaks_it)
{
	static const double some[] = { 0, 1e-9, 0.1, 1, 1e9, 1e19, 1e300,
				       INFINITY };
	/* One that a double knows a thousand too late. */
	static const uint64_t times[] = {
		0, 1, SEC, YEAR, UINT64_MAX / 2, UINT64_MAX / 2 + 2049100,
		UINT64_MAX - 1, UINT64_MAX
	};
	struct evc__tick t;
	unsigned i, k, n, steps = 0;

	for (i = 0; i < 8 * N_POLICIES; i++)
		for (k = 0; k < 8; k++) {
			struct evc__policy p = {
				.missed = policies[i / 8],
				.jitter = k % 2 ? 1 : 0
			};
			struct evc__schedule s = begun(some[i % 8], times[k]);

			for (n = 0; n < 64; n++) {
				uint64_t now = times[n % 8];
				uint64_t due = evc__schedule_due(&s, &p);
				bool took = evc__schedule_take(&s, &p, now, &t);

				MUST(took == (due != NEVER && due <= now));
				MUST(t.late <= now);
				steps += took;
			}
		}
	ck_assert_uint_gt(steps, 0);
}
END_TEST

START_TEST(P1_boundaries_beyond_all_time_never_come)
{
	struct evc__schedule s = begun(1e9, SEC);
	uint64_t before = 0, k;

	/* 18 and a half fit into the clock. */
	for (k = 0; k < 100; k++) {
		uint64_t b = evc__schedule_boundary(&s, k);

		ck_assert_uint_eq(b, k <= 18 ? SEC + k * SEC * SEC : NEVER);
		ck_assert_uint_ge(b, before);
		before = b;
	}
	ck_assert_uint_eq(evc__schedule_boundary(&s, UINT64_MAX), NEVER);
	s = begun(1, UINT64_MAX - SEC - 1);
	ck_assert_uint_eq(evc__schedule_boundary(&s, 1), UINT64_MAX - 1);
	ck_assert_uint_eq(evc__schedule_boundary(&s, 2), NEVER);
}
END_TEST

START_TEST(P1_jitter_shifts_the_run_and_never_the_boundary)
{
	struct evc__policy p = { .missed = EVC_MISSED_BURST, .jitter = 1 };
	struct evc__policy half = { .jitter = 0.5 };
	struct evc__schedule s = begun(1, 10 * SEC);
	double sum = 0, least = 1, most = 0;
	unsigned k, same = 0;

	for (k = 0; k < 10000; k++) {
		uint64_t b = evc__schedule_boundary(&s, k);
		uint64_t run = evc__schedule_run(&s, &p, k);
		double part = (double)(run - b) / SEC;

		MUST(b == (10 + (uint64_t)k) * SEC);
		/* Never twice for one: the next one's comes later. */
		MUST(run >= b && run <= b + SEC);
		MUST(evc__schedule_run(&s, &p, k) == run);
		MUST(evc__schedule_run(&s, &half, k) <= b + SEC / 2);
		sum += part;
		least = part < least ? part : least;
		most = part > most ? part : most;
	}
	ck_assert_double_eq_tol(sum / 10000, 0.5, 0.02);
	ck_assert_double_lt(least, 0.01);
	ck_assert_double_gt(most, 0.99);
	/* Another looper, and the same of another program, have others. */
	for (k = 0; k < 1000; k++) {
		struct evc__policy other = { .jitter = 1, .seed = 1 + k };
		struct evc__schedule later = begun(1, 10 * SEC + 1 + k);

		same += evc__schedule_run(&s, &p, 0) ==
			evc__schedule_run(&s, &other, 0);
		same += evc__schedule_run(&s, &p, 0) + 1 + k ==
			evc__schedule_run(&later, &p, 0);
	}
	ck_assert_uint_eq(same, 0);
}
END_TEST

START_TEST(P1_late_counts_from_the_boundary_with_jitter_too)
{
	const struct evc__policy p = { .jitter = 1, .seed = 5 };
	struct evc__schedule s = begun(1, 10 * SEC);
	uint64_t run = evc__schedule_run(&s, &p, 0);
	struct evc__tick t;

	ck_assert_uint_gt(run, 10 * SEC);
	ck_assert(!evc__schedule_take(&s, &p, run - 1, &t));
	ck_assert(evc__schedule_take(&s, &p, run, &t));
	ck_assert_uint_eq(t.late, run - 10 * SEC);
	ck_assert_uint_eq(t.missed, 0);
	/* Boundary 1 has passed, its run is not due. */
	run = evc__schedule_run(&s, &p, 1);
	ck_assert_uint_gt(run, 11 * SEC);
	ck_assert(!evc__schedule_take(&s, &p, run - 1, &t));
	ck_assert(evc__schedule_take(&s, &p, run, &t));
}
END_TEST

START_TEST(only_policies_that_there_are_are_valid)
{
	unsigned i;

	for (i = 0; i < N_POLICIES; i++)
		ck_assert(evc__policy_valid(policies[i]));
	ck_assert(evc__policy_valid(EVC_MISSED_AT_MOST(65535)));
	ck_assert(!evc__policy_valid(EVC_MISSED_AT_MOST(0)));
	ck_assert(!evc__policy_valid(EVC_MISSED_AT_MOST(65536)));
	ck_assert(!evc__policy_valid(UINT32_MAX));
}
END_TEST

API_MAIN("schedule_cases", P1_no_drift_after_a_million_ticks,
	 P1_skip_runs_the_latest_and_misses_the_others, P1_burst_runs_each,
	 P1_at_most_n_runs_the_n_latest, P1_delay_moves_the_grid,
	 P1_resume_and_a_new_interval_begin_a_grid,
	 P1_a_triggered_run_uses_no_boundary, P1_back_to_back_is_always_due,
	 P1_an_infinite_interval_has_one_boundary,
	 P1_a_jump_over_a_year_costs_one_step, P1_no_clock_breaks_it,
	 P1_boundaries_beyond_all_time_never_come,
	 P1_jitter_shifts_the_run_and_never_the_boundary,
	 P1_late_counts_from_the_boundary_with_jitter_too,
	 only_policies_that_there_are_are_valid)
