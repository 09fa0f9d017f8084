/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The waits of a back-off: in nanoseconds from one to the next, and out of a
 * user's seconds; whatever the numbers are, no wait is longer than the longest,
 * or 0.
 */
#include <limits.h>
#include <stdint.h>

#include "../support/api_util.h"
#include "support/seam.h"

#include "base/backoff.h"

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define MANY UINT64_MAX

START_TEST(each_wait_is_twice_the_last_up_to_the_longest)
{
	static const uint64_t want[] = { 1, 2, 4, 8, 16, 25, 25 };
	uint64_t wait = 0;
	size_t i;

	for (i = 0; i < sizeof want / sizeof want[0]; i++) {
		wait = evc__backoff_next(wait, MS, 25 * MS);
		ck_assert_uint_eq(wait, want[i] * MS);
	}
}
END_TEST

START_TEST(no_number_overflows)
{
	static const uint64_t some[] = { 1, 2, 3, MANY / 2, MANY / 2 + 1,
					 MANY - 1, MANY };
	size_t n = sizeof some / sizeof some[0], i, k, l;

	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++)
			for (l = 0; l <= n; l++) {
				uint64_t last = l < n ? some[l] : 0;
				uint64_t got = evc__backoff_next(
					last, some[i], some[k]);

				ck_assert_uint_gt(got, 0);
				ck_assert_uint_le(got, some[k]);
				ck_assert(got == some[k] || got >= last);
			}
}
END_TEST

static const double no_times[] = { -1, -1e-300, -INFINITY, NAN };
static const double times[] = { 0, 1e-300, 1e-9, 0.5, 1e9, 1e300, INFINITY };
#define N(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(negative_times_and_parts_are_refused)
{
	size_t i;

	for (i = 0; i < N(no_times); i++) {
		ck_assert(!evc__backoff_is_valid(no_times[i], 1, 0));
		ck_assert(!evc__backoff_is_valid(1, no_times[i], 0));
		ck_assert(!evc__backoff_is_valid(1, 1, no_times[i]));
	}
	ck_assert(!evc__backoff_is_valid(0, 0, 1.001));
	ck_assert(!evc__backoff_is_valid(0, 0, INFINITY));
	for (i = 0; i < N(times); i++)
		ck_assert(evc__backoff_is_valid(times[i], times[i], 1));
}
END_TEST

static uint64_t
wait_of(double first, double most, unsigned n)
{
	return evc__backoff_wait(first, most, 0, n, 12345);
}

START_TEST(zero_is_the_default)
{
	ck_assert_uint_eq(wait_of(0, 0, 0), 100 * MS);
	ck_assert_uint_eq(wait_of(0, 0, 1), 200 * MS);
	ck_assert_uint_eq(wait_of(0, 0, 8), 25600 * MS);
	ck_assert_uint_eq(wait_of(0, 0, 9), 30 * SEC);
	ck_assert_uint_eq(evc__backoff_most(0, 0), 30 * SEC);
	/* A first wait that is longer than the default. */
	ck_assert_uint_eq(wait_of(45, 0, 0), 45 * SEC);
	ck_assert_uint_eq(wait_of(45, 0, 7), 45 * SEC);
	ck_assert_uint_eq(wait_of(8, 2, 0), 2 * SEC);
	ck_assert_uint_eq(wait_of(1, 3, 1), 2 * SEC);
	ck_assert_uint_eq(wait_of(1, 3, 2), 3 * SEC);
}
END_TEST

START_TEST(no_count_overflows)
{
	static const unsigned counts[] = { 0, 1, 31, 32, 33, 63, 64, 65,
					   INT_MAX, UINT_MAX };
	size_t i, k, l;

	for (i = 0; i < N(times); i++)
		for (k = 0; k < N(times); k++) {
			uint64_t most = evc__backoff_most(times[i], times[k]);
			uint64_t last = 0;

			ck_assert_uint_gt(most, 0);
			for (l = 0; l < N(counts); l++) {
				uint64_t got = wait_of(times[i], times[k],
						       counts[l]);

				ck_assert_uint_ge(got, last);
				ck_assert_uint_gt(got, 0);
				ck_assert_uint_le(got, most);
				last = got;
				/* Nor does the random part. */
				got = evc__backoff_wait(times[i], times[k], 1,
							counts[l], MANY);
				ck_assert_uint_ge(got, last);
				ck_assert_uint_le(got / 2, last);
			}
			ck_assert_uint_eq(last, most);
		}
}
END_TEST

START_TEST(the_jitter_is_added_and_less_than_its_part)
{
	unsigned i, low = 0, high = 0;

	for (i = 0; i < 20000; i++) {
		uint64_t wait = evc__backoff_wait(1, 8, 0.5, 2,
						  evc__backoff_random(i));

		ck_assert_uint_ge(wait, 4 * SEC);
		ck_assert_uint_lt(wait, 6 * SEC);
		low += wait < 4 * SEC + SEC / 2;
		high += wait > 5 * SEC + SEC / 2;
	}
	/* A quarter each, and far from it only if it is not random. */
	ck_assert_uint_gt(low, 4500);
	ck_assert_uint_lt(low, 5500);
	ck_assert_uint_gt(high, 4500);
	ck_assert_uint_lt(high, 5500);
	ck_assert_uint_eq(evc__backoff_wait(1, 8, 0.5, 2, 0), 4 * SEC);
}
END_TEST

API_MAIN("backoff", each_wait_is_twice_the_last_up_to_the_longest,
	 no_number_overflows, negative_times_and_parts_are_refused,
	 zero_is_the_default, no_count_overflows,
	 the_jitter_is_added_and_less_than_its_part)
