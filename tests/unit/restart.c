/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When workers that fail begin again: the pauses and the intensity, by a table,
 * and by 100,000 random histories beside a model that remembers every restart
 * there was and counts those that are in the window each time anew.
 *
 * EVC_SEED=n runs other histories; a failure prints the seed.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/api_util.h"
#include "support/seam.h"

#include "unit/histories.h"
#include "group/restart.h"

#define HISTORIES 100000
#define STEPS 40
#define WORKERS 3

#define MUST(cond) \
	do { \
		if (!(cond)) \
			ck_abort_msg("%s; EVC_SEED=%llu", #cond, \
				     (unsigned long long)seed_now); \
	} while (0)
static uint64_t seed_now;

/* ---- by a table ---- */

/* One worker that fails as soon as it has begun: the pauses in milliseconds, and
   whether it is given up after them. */
static const struct {
	evc_backoff cfg;
	unsigned n;
	double pause[8];
	bool gives_up;
} table[] = {
	{ { 0 }, 5, { 100, 200, 400, 800, 1600 }, true },
	{ { .times = 8 }, 8, { 100, 200, 400, 800, 1600, 3200, 6400, 12800 },
	  true },
	{ { .first = 10, .times = 8 }, 4, { 1e4, 2e4, 3e4, 3e4 }, false },
	{ { .first = 1, .most = 4, .times = 7 }, 7,
	  { 1e3, 2e3, 4e3, 4e3, 4e3, 4e3, 4e3 }, true },
	{ { .first = 1, .most = 3, .times = 4 }, 4, { 1e3, 2e3, 3e3, 3e3 },
	  true },
	/* 0 more than its default asks for. */
	{ { .first = 45, .within = 1e6 }, 5, { 45e3, 45e3, 45e3, 45e3, 45e3 },
	  true },
	{ { .first = 8, .most = 2, .times = 3 }, 3, { 2e3, 2e3, 2e3 }, true },
	/* The window is over before it is full. */
	{ { .first = 1, .most = 1, .times = 3, .within = 2.5 }, 3,
	  { 1e3, 1e3, 1e3 }, false },
	{ { .first = 1, .most = 1, .times = 3, .within = 3 }, 8,
	  { 1e3, 1e3, 1e3, 1e3, 1e3, 1e3, 1e3, 1e3 }, false },
	{ { .first = 1, .most = 1, .times = 3, .within = 3.001 }, 3,
	  { 1e3, 1e3, 1e3 }, true },
	{ { .first = 1, .most = INFINITY, .times = 8, .within = INFINITY }, 8,
	  { 1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 64e3, 128e3 }, true },
	{ { .times = 1, .within = 1 }, 1, { 100 }, true },
};

/* A pause that is as long as `most` is begins anew only when the worker then
   runs as long: here it never runs. */
START_TEST(pauses_double_up_to_the_most_and_then_it_is_given_up)
{
	struct evc__restart_state group = { 0 };
	struct evc__restart_own worker = { 0 };
	uint64_t now = 77 * SEC, pause;
	unsigned i;

	OK(evc__restart_check(&table[_i].cfg));
	for (i = 0; i < table[_i].n; i++) {
		pause = evc__restart_next(&table[_i].cfg, &group, &worker, now,
					  UINT64_MAX);
		ck_assert_uint_ne(pause, EVC__RESTART_GIVE_UP);
		ck_assert_double_eq_tol((double)pause / 1e6,
					table[_i].pause[i], 1e-5);
		now += pause;
		evc__restart_began(&worker, now);
	}
	pause = evc__restart_next(&table[_i].cfg, &group, &worker, now, 0);
	ck_assert_int_eq(pause == EVC__RESTART_GIVE_UP, table[_i].gives_up);
	evc__restart_drop(&group);
}
END_TEST

START_TEST(a_worker_that_ran_for_the_most_begins_with_the_first_pause)
{
	static const evc_backoff cfg = { .first = 1, .most = 10, .times = 100 };
	struct evc__restart_state group = { 0 };
	struct evc__restart_own worker = { 0 };
	uint64_t now = SEC;
	unsigned i;

	for (i = 0; i < 3; i++) {
		now += evc__restart_next(&cfg, &group, &worker, now, 0);
		evc__restart_began(&worker, now);
	}
	/* A nanosecond too early, then just long enough. */
	now += 10 * SEC - 1;
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &worker, now, 0),
			  8 * SEC);
	evc__restart_began(&worker, now);
	now += 10 * SEC;
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &worker, now, 0),
			  SEC);
	evc__restart_began(&worker, now);
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &worker, now, 0),
			  2 * SEC);
	evc__restart_drop(&group);
}
END_TEST

START_TEST(each_worker_has_its_pauses_and_all_of_them_one_window)
{
	static const evc_backoff cfg = {
		.first = 1, .times = 3, .within = 100
	};
	struct evc__restart_state group = { 0 };
	struct evc__restart_own a = { 0 }, b = { 0 };

	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &a, SEC, 0), SEC);
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &b, SEC, 0), SEC);
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &a, SEC, 0),
			  2 * SEC);
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &b, SEC, 0),
			  EVC__RESTART_GIVE_UP);
	/* Given up is given up, and no restart: the window is over with those
	   that were. */
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &b, 101 * SEC - 1,
					    0),
			  EVC__RESTART_GIVE_UP);
	ck_assert_uint_ne(evc__restart_next(&cfg, &group, &b, 101 * SEC, 0),
			  EVC__RESTART_GIVE_UP);
	/* And a new start of the group has a window of its own. */
	evc__restart_forget(&group);
	a = (struct evc__restart_own){ 0 };
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &a, 101 * SEC, 0),
			  SEC);
	evc__restart_drop(&group);
}
END_TEST

START_TEST(what_is_no_time_or_no_part_is_refused)
{
	static const evc_backoff wrong[] = {
		{ .first = -1 },    { .first = NAN },  { .most = -0.1 },
		{ .most = NAN },    { .within = -1 },  { .within = NAN },
		{ .jitter = -0.1 }, { .jitter = 1.1 }, { .jitter = NAN },
	};
	static const evc_backoff right[] = {
		{ .first = INFINITY }, { .most = INFINITY },
		{ .within = INFINITY }, { .jitter = 1 },
		{ .times = UINT_MAX }, { .first = 1e-30 },
	};
	unsigned i;

	for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		REFUSED(EVC_INVALID_ARGUMENT, evc__restart_check(&wrong[i]));
	for (i = 0; i < sizeof right / sizeof right[0]; i++) {
		struct evc__restart_state group = { 0 };
		struct evc__restart_own worker = { .doubled = UINT_MAX };

		OK(evc__restart_check(&right[i]));
		ck_assert_uint_ne(evc__restart_next(&right[i], &group, &worker,
						    SEC, UINT64_MAX),
				  EVC__RESTART_GIVE_UP);
		evc__restart_drop(&group);
	}
}
END_TEST

START_TEST(restarts_that_cannot_be_counted_are_too_many)
{
	static const evc_backoff cfg = { .times = 100 };
	struct evc__restart_state group = { 0 };
	struct evc__restart_own worker = { 0 };
	unsigned i;

	seam_fail("alloc", "evc__array_grow", 1, ENOMEM);
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &worker, SEC, 0),
			  EVC__RESTART_GIVE_UP);
	for (i = 0; i < group.room || i == 0; i++)
		ck_assert_uint_ne(evc__restart_next(&cfg, &group, &worker,
						    SEC, 0),
				  EVC__RESTART_GIVE_UP);
	seam_fail("alloc", "evc__array_grow", 1, ENOMEM);
	ck_assert_uint_eq(evc__restart_next(&cfg, &group, &worker, SEC, 0),
			  EVC__RESTART_GIVE_UP);
	ck_assert_uint_ne(evc__restart_next(&cfg, &group, &worker, SEC, 0),
			  EVC__RESTART_GIVE_UP);
	seam_reset();
	evc__restart_drop(&group);
}
END_TEST

/* ---- beside a model ---- */

struct model {
	uint64_t restart[STEPS]; /* all that ever were */
	unsigned n;
	double next[WORKERS]; /* ns: the pause of its next one; 0: the first */
	uint64_t began[WORKERS];
};

static double
or_else(double s, double otherwise)
{
	return (s == 0 ? otherwise : s) * 1e9;
}

/* The least pause, or -1: given up. */
static double
model_next(struct model *m, const evc_backoff *cfg, unsigned w, uint64_t now)
{
	double first = or_else(cfg->first, 0.1), most = or_else(cfg->most, 30);
	double within = or_else(cfg->within, 60), pause;
	unsigned i, in_window = 0;

	if (cfg->most == 0 && first > most)
		most = first;
	for (i = 0; i < m->n; i++)
		in_window += (double)(now - m->restart[i]) < within;
	if (in_window >= (cfg->times == 0 ? 5 : cfg->times))
		return -1;
	m->restart[m->n++] = now;
	if (m->next[w] == 0 || (double)(now - m->began[w]) >= most)
		m->next[w] = first;
	pause = m->next[w];
	m->next[w] = pause * 2;
	return pause < most ? pause : most;
}

START_TEST(a_hundred_thousand_histories_beside_a_model)
{
	const char *env = getenv("EVC_SEED");
	uint64_t seed = env != NULL ? strtoull(env, NULL, 0) : 20260501;
	unsigned i, k, gave_up = 0, restarted = 0;

	for (i = 0; i < HISTORIES; i++) {
		struct evc__restart_state group = { 0 };
		struct evc__restart_own worker[WORKERS] = { { 0 } };
		struct model m = { .n = 0 };
		evc_backoff cfg;
		uint64_t now = 1000 * SEC;

		seed_now = seed + i;
		state = seed_now * UINT64_C(0x9e3779b97f4a7c15) | 1;
		/* All of them halves, quarters and so on: doubles have them
		   exactly. */
		cfg = (evc_backoff){ .first = ONE_OF(0.125, 0.5, 1, 4, 50),
				     .most = ONE_OF(0, 0.5, 8, 64, INFINITY),
				     .jitter = ONE_OF(0, 0, 0.25, 1),
				     .times = (unsigned)dice(12),
				     .within = ONE_OF(0, 0.5, 8, 1000) };
		for (k = 0; k < STEPS; k++) {
			unsigned w = (unsigned)dice(WORKERS);
			double want;
			uint64_t got;

			now += chance(30) ? 0 :
			       chance(50) ? dice(2 * SEC) :
					    dice(16) * SEC / 2;
			want = model_next(&m, &cfg, w, now);
			got = evc__restart_next(&cfg, &group, &worker[w], now,
						dice(UINT64_MAX));
			MUST((want < 0) == (got == EVC__RESTART_GIVE_UP));
			gave_up += want < 0;
			if (want < 0)
				continue;
			restarted++;
			MUST((double)got >= want - 1);
			MUST((double)got <= want * (1 + cfg.jitter) + 1);
			MUST(cfg.jitter == 0 || want < 1e9 ||
			     (double)got < want * (1 + cfg.jitter));
			m.began[w] = now + (chance(50) ? 0 : dice(SEC));
			evc__restart_began(&worker[w], m.began[w]);
			if (m.began[w] > now)
				now = m.began[w];
		}
		evc__restart_drop(&group);
	}
	ck_assert_uint_gt(gave_up, HISTORIES);
	ck_assert_uint_gt(restarted, HISTORIES);
}
END_TEST

T_MAIN("restart", NULL, NULL,
       T_TIMES(pauses_double_up_to_the_most_and_then_it_is_given_up,
	       sizeof table / sizeof table[0]),
       T_ONCE(a_worker_that_ran_for_the_most_begins_with_the_first_pause),
       T_ONCE(each_worker_has_its_pauses_and_all_of_them_one_window),
       T_ONCE(what_is_no_time_or_no_part_is_refused),
       T_ONCE(restarts_that_cannot_be_counted_are_too_many),
       T_ONCE(a_hundred_thousand_histories_beside_a_model))
