/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control of a worker: how the window follows the times of functions, and
 * batches, and when functions have waited for too long.
 */
#include <math.h>
#include <stdlib.h>

#include "../support/api_util.h"
#include "support/seam.h"

#include "engine/flow.h"

#define QUICK 0.001
#define AHEAD 0.004

static void
end(struct flow *f, unsigned n, double took)
{
	while (n-- > 0)
		flow_ended(f, took, QUICK, AHEAD, 0, WINDOW_MOST);
}

START_TEST(the_window_doubles_while_functions_are_quick)
{
	struct flow f = { .window = 1 };
	unsigned want;

	for (want = 2; want < WINDOW_MOST; want *= 2) {
		end(&f, 1, 1e-6);
		ck_assert_uint_eq(f.window, want);
	}
	end(&f, 1000, 1e-6);
	ck_assert_uint_eq(f.window, WINDOW_MOST);
	/* No time at all, too. */
	end(&f, 1000, 0);
	ck_assert_uint_eq(f.window, WINDOW_MOST);
}
END_TEST

START_TEST(the_window_is_as_wide_as_some_time_of_work)
{
	static const double took[] = { 20e-6, 50e-6, 100e-6, 300e-6, 900e-6 };
	size_t i;

	for (i = 0; i < sizeof took / sizeof took[0]; i++) {
		struct flow f = { .window = 1 };

		end(&f, 1000, took[i]);
		ck_assert_double_eq_tol(f.average, took[i], 1e-9);
		ck_assert_double_le(f.window * took[i], AHEAD * 1.0001);
		ck_assert_double_gt((f.window + 1) * took[i], AHEAD * 0.9999);
	}
}
END_TEST

START_TEST(functions_that_are_not_quick_come_one_by_one)
{
	struct flow f = { .window = 1 };

	end(&f, 100, FLOW_NEXT * 1.01);
	ck_assert_uint_eq(f.window, 1);
	end(&f, 100, 1);
	ck_assert_uint_eq(f.window, 1);
	/* Among shorter ones, too. */
	end(&f, 100, QUICK * 2);
	ck_assert_uint_eq(f.window, 2);
	end(&f, 1, FLOW_NEXT * 2);
	ck_assert_uint_eq(f.window, 1);
}
END_TEST

START_TEST(one_waits_behind_functions_that_are_not_long)
{
	struct flow f = { .window = 1 };

	end(&f, 100, QUICK * 1.01);
	ck_assert_uint_eq(f.window, 2);
	end(&f, 100, FLOW_NEXT * 0.99);
	ck_assert_uint_eq(f.window, 2);
	/* On the way there the window is never wide for long: the average
	   follows within a few functions. */
	f = (struct flow){ .window = 1 };
	end(&f, 100, 1e-5);
	end(&f, 20, QUICK * 2);
	ck_assert_uint_eq(f.window, 2);
	/* A single long function is enough, and is forgotten soon. */
	f = (struct flow){ .window = 1 };
	end(&f, 1000, 1e-7);
	end(&f, 1, QUICK * 10);
	ck_assert_uint_eq(f.window, 2);
	end(&f, 1, 1e-7);
	ck_assert_uint_eq(f.window, 2);
	end(&f, 100, 1e-7);
	ck_assert_uint_eq(f.window, WINDOW_MOST);
}
END_TEST

START_TEST(some_functions_more_cover_a_round_trip)
{
	struct flow f = { .window = 1 };
	unsigned i;

	/* Without a limit of quickness as well. */
	for (i = 0; i < 1000; i++)
		flow_ended(&f, AHEAD * 0.999, INFINITY, AHEAD, 1, WINDOW_MOST);
	ck_assert_uint_eq(f.window, 3);
	for (i = 0; i < 1000; i++)
		flow_ended(&f, FLOW_NEXT * 1.01, INFINITY, FLOW_NEXT * 1.02, 1,
			   WINDOW_MOST);
	ck_assert_uint_eq(f.window, 2);
	for (i = 0; i < 1000; i++)
		flow_ended(&f, 1000, INFINITY, AHEAD, 1, WINDOW_MOST);
	ck_assert_uint_eq(f.window, 1);
	for (i = 0; i < 1000; i++)
		flow_ended(&f, 1e-9, INFINITY, AHEAD, 1, WINDOW_MOST);
	ck_assert_uint_eq(f.window, WINDOW_MOST);
}
END_TEST

/* Whatever functions take, the window has a place in the ring of functions. */
START_TEST(the_window_is_in_its_bounds_after_any_times)
{
	static const double some[] = { 0, 1e-300, 1e-9, 1e-5, 3e-4, 1e-3, 0.1,
				       1e9, 1e300 };
	struct flow f = { .window = 1 };
	unsigned seed = 20260501, i, more;

	for (i = 0; i < 100000; i++) {
		double took = some[rand_r(&seed) %
				   (sizeof some / sizeof some[0])];

		more = rand_r(&seed) % 2;
		flow_ended(&f, took, more ? INFINITY : QUICK, AHEAD, more,
			   WINDOW_MOST);
		ck_assert_uint_ge(f.window, 1);
		ck_assert_uint_le(f.window, WINDOW_MOST);
	}
}
END_TEST

START_TEST(full_batches_double_and_others_halve)
{
	static const struct {
		unsigned window, n;
		double took;
		unsigned next;
	} row[] = {
		{ 1, 1, 0, 2 },      { 2, 2, 0.001, 4 }, { 32, 32, 0, 64 },
		{ 64, 64, 0, 64 },   { 64, 63, 0, 32 },  { 2, 1, 0, 1 },
		{ 8, 1, 0, 4 },      { 64, 64, 1, 32 },  { 64, 5, 1, 2 },
		{ 1, 1, 1, 1 },      { 8, 1, 1, 1 },     { 8, 2, 1, 1 },
	};
	size_t i;

	for (i = 0; i < sizeof row / sizeof row[0]; i++)
		ck_assert_msg(flow_next_batch(row[i].window, row[i].n,
					      row[i].took, 0.001, 64) ==
				      row[i].next,
			      "row %zu", i);
}
END_TEST

START_TEST(functions_wait_until_patience_is_over)
{
	ck_assert(!flow_is_stuck(100, 100, 0.5));
	ck_assert(!flow_is_stuck(100, 100.5, 0.5));
	ck_assert(flow_is_stuck(100, 100.51, 0.5));
	/* The clock was set back. */
	ck_assert(flow_is_stuck(100, 99, 0.5));
}
END_TEST

START_TEST(results_of_functions_that_have_not_run)
{
	evc_engine_result r = flow_given_back(7);

	ck_assert_uint_eq(r.n, 7);
	ck_assert(r.took < 0);
	ck_assert_int_eq(r.code, EVC_CANCELLED);
	ck_assert_ptr_null(r.text);
	evc_refuse(-EVC_OUT_OF_RANGE, "no room");
	r = flow_refused(8);
	ck_assert_uint_eq(r.n, 8);
	ck_assert(r.took >= 0);
	ck_assert_int_eq(r.code, EVC_RESOURCE_EXHAUSTED);
	ck_assert_str_eq(r.text, "no room");
}
END_TEST

API_MAIN("flow", the_window_doubles_while_functions_are_quick,
	 the_window_is_as_wide_as_some_time_of_work,
	 functions_that_are_not_quick_come_one_by_one,
	 one_waits_behind_functions_that_are_not_long,
	 some_functions_more_cover_a_round_trip,
	 the_window_is_in_its_bounds_after_any_times,
	 full_batches_double_and_others_halve,
	 functions_wait_until_patience_is_over,
	 results_of_functions_that_have_not_run)
