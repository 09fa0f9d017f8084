/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics of a group from the inside: tallies of several threads, names in
 * memory that is used again, resets beside puts, what happens without memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/api_util.h"
#include "support/seam.h"

#include "group/metrics.h"

static struct evc__metrics *m;

static void
set_up(void)
{
	m = evc__metrics_new();
	ck_assert_ptr_nonnull(m);
}

static void
tear_down(void)
{
	seam_reset();
	evc__tally_enter(NULL);
	evc__metrics_free(m);
}

static double
one(const char *name)
{
	return evc__metrics_one(m, name);
}

static void
enter_new(void)
{
	struct evc__tally *t = evc__tally_new(m);

	ck_assert_ptr_nonnull(t);
	evc__tally_enter(t);
}

/* ---- names ---- */

/* The same address with another text each time: as a program does that writes
   the name into a buffer. */
START_TEST(a_buffer_that_is_used_again_is_another_name)
{
	char name[16];
	unsigned i, k;

	enter_new();
	for (k = 0; k < 100; k++)
		for (i = 0; i < 20; i++) {
			snprintf(name, sizeof name, "m%u", i);
			OK(evc__metrics_put(m, name, i, i % 2));
		}
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "m%u", i);
		ck_assert(one(name) == 100. * i);
		snprintf(name, sizeof name, "m%u_count", i);
		ck_assert(one(name) == (i % 2 ? 100 : 0));
	}
	ck_assert_uint_eq(evc__metrics_read(m, NULL, 0), 30);
}
END_TEST

/* Many addresses, so that they fall on the same place of what is kept. */
START_TEST(the_same_text_in_many_places_is_one_name)
{
	char names[500][8];
	unsigned i;

	enter_new();
	for (i = 0; i < 500; i++)
		snprintf(names[i], sizeof names[i], "m%u", i % 3);
	for (i = 0; i < 1500; i++)
		OK(evc__metrics_put(m, names[i % 500], 1, true));
	ck_assert(one("m0") + one("m1") + one("m2") == 1500);
	ck_assert(one("m0_count") == one("m0"));
	ck_assert_uint_eq(evc__metrics_read(m, NULL, 0), 6);
}
END_TEST

START_TEST(a_count_may_come_later_and_a_counter_may_be_put)
{
	static const char name[] = "x";

	enter_new();
	OK(evc__metrics_put(m, name, 2, false));
	OK(evc__metrics_put(m, name, 2, true));
	OK(evc__metrics_put(m, name, 2, false));
	OK(evc__metrics_put(m, "x_count", 10, false));
	ck_assert(one("x") == 6);
	ck_assert(one("x_count") == 11);
}
END_TEST

static void
fill(unsigned upto)
{
	char name[16];
	unsigned i;

	for (i = (unsigned)evc__metrics_read(m, NULL, 0); i < upto; i++) {
		snprintf(name, sizeof name, "m%u", i);
		OK(evc__metrics_put(m, name, 1, false));
	}
}

/* Both or none; and what each run puts has its place. */
START_TEST(the_last_places_are_for_the_time_of_runs)
{
	evc_metric all[METRIC_NAMES];
	unsigned i;

	if (_i == 0)
		enter_new();
	fill(METRIC_NAMES - 3);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__metrics_put(m, "two", 1, true));
	ck_assert(one("two") == 0);
	fill(METRIC_NAMES - 2);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__metrics_put(m, "one", 1, false));
	OK(evc__metrics_put(m, "worker_time", 1.5, true));
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__metrics_put(m, "one", 1, false));
	OK(evc__metrics_put(m, "m7", 1, false));
	ck_assert_uint_eq(evc__metrics_read(m, all, METRIC_NAMES),
			  METRIC_NAMES);
	for (i = 0; i < METRIC_NAMES - 2; i++)
		ck_assert(all[i].value == (i == 7 ? 2 : 1));
	ck_assert_str_eq(all[i].name, "worker_time");
	ck_assert(all[i].value == 1.5);
	ck_assert_str_eq(all[i + 1].name, "worker_time_count");
	ck_assert(all[i + 1].value == 1);
}
END_TEST

START_TEST(what_is_no_name_is_refused)
{
	char name[METRIC_PUT_SIZE + 1];

	if (_i == 0)
		enter_new();
	memset(name, 'n', METRIC_PUT_SIZE);
	name[METRIC_PUT_SIZE] = '\0';
	REFUSED(EVC_INVALID_ARGUMENT, evc__metrics_put(m, NULL, 1, true));
	REFUSED(EVC_INVALID_ARGUMENT, evc__metrics_put(m, "", 1, true));
	REFUSED(EVC_INVALID_ARGUMENT, evc__metrics_put(m, name, 1, true));
	name[METRIC_PUT_SIZE - 1] = '\0';
	OK(evc__metrics_put(m, name, 1, true));
	ck_assert_uint_eq(evc__metrics_read(m, NULL, 0), 2);
}
END_TEST

/* ---- whose tally ---- */

START_TEST(a_thread_puts_into_the_tally_it_has_entered)
{
	struct evc__metrics *other = evc__metrics_new();
	struct evc__tally *a = evc__tally_new(m), *b = evc__tally_new(other);
	unsigned n;

	ck_assert_ptr_null(evc__tally_enter(a));
	OK(evc__metrics_put(m, "x", 1, false));
	/* Not its own: the shared one of that group. */
	OK(evc__metrics_put(other, "x", 10, false));
	ck_assert_ptr_eq(evc__tally_enter(b), a);
	OK(evc__metrics_put(other, "x", 100, false));
	ck_assert_ptr_eq(evc__tally_enter(a), b);
	OK(evc__metrics_put(m, "x", 1, false));
	ck_assert_ptr_eq(evc__tally_enter(NULL), a);
	OK(evc__metrics_put(m, "x", 1000, false));
	ck_assert(one("x") == 1002);
	ck_assert(evc__metrics_one(other, "x") == 110);
	ck_assert_str_eq(evc__tally_read(a, &n)->name, "x");
	ck_assert_uint_eq(n, 1);
	ck_assert(evc__tally_read(a, &n)->value == 1002);
	evc__metrics_free(other);
}
END_TEST

/* ---- threads ---- */

#define PUTTERS 3
#define PUTS 30000

static atomic_int left;

static void *
put_all(void *arg)
{
	static const char *const name[] = { "a", "b", "c" };
	evc_status st = 0;
	unsigned i;

	if (arg == NULL)
		evc__tally_enter(evc__tally_new(m));
	for (i = 0; st == 0 && i < PUTS; i++)
		st = evc__metrics_put(m, name[i % 3], 1, true);
	evc__tally_enter(NULL);
	atomic_fetch_sub(&left, 1);
	return (void *)(intptr_t)st;
}

static void
start(struct t_crowd *k, bool shared)
{
	atomic_store(&left, PUTTERS);
	crowd_begin(k, PUTTERS, put_all, shared ? m : NULL, 0);
}

/* Whoever they are put by; the sums only rise. */
START_TEST(nothing_is_lost)
{
	double before = 0, now;
	struct t_crowd k;

	start(&k, _i);
	while (atomic_load(&left) > 0) {
		now = one("a");
		ck_assert(now >= before);
		before = now;
	}
	ck_assert_uint_eq(crowd_end(&k), 0);
	ck_assert(one("a") + one("b") + one("c") == PUTTERS * PUTS);
	ck_assert(one("b_count") == one("b"));
	ck_assert_uint_eq(evc__metrics_read(m, NULL, 0), 6);
}
END_TEST

/* Each put counts before one reset or after it: between two of them there are
   never more than there were puts, and a sum never falls but by a reset. */
START_TEST(a_reset_beside_puts_keeps_no_half)
{
	evc_metric all[6];
	struct t_crowd k;
	double at, again;
	size_t i, n;

	start(&k, _i);
	while (atomic_load(&left) > 0) {
		evc__metrics_reset(m);
		n = evc__metrics_read(m, all, 6);
		for (i = 0; i < n; i++)
			ck_assert(all[i].value >= 0 &&
				  all[i].value <= PUTTERS * PUTS);
		at = one("a");
		again = one("a");
		ck_assert(again >= at);
	}
	ck_assert_uint_eq(crowd_end(&k), 0);
	evc__metrics_reset(m);
	n = evc__metrics_read(m, all, 6);
	ck_assert_uint_eq(n, 6);
	for (i = 0; i < n; i++)
		ck_assert(all[i].value == 0);
	start(&k, _i);
	ck_assert_uint_eq(crowd_end(&k), 0);
	ck_assert(one("a") + one("b") + one("c") == PUTTERS * PUTS);
	ck_assert(one("c_count") == one("c"));
}
END_TEST

static void *
put_one(void *arg)
{
	evc__tally_enter(arg);
	return (void *)(intptr_t)evc__metrics_put(m, "x", 1, true);
}

/* Held after it has found its tally of an older time, and before it adds: as
   long as it stands there, and for ever if the worker ends, what it had counts
   nothing; then its one put does. */
START_TEST(a_tally_that_is_taken_up_anew_counts_nothing_of_before)
{
	struct evc__tally *t = evc__tally_new(m);
	evc_status st;
	pthread_t p;
	void *res;
	int h;

	evc__tally_enter(t);
	OK(evc__metrics_put(m, "x", 40, true));
	OK(evc__metrics_put(m, "y", 2, false));
	evc__tally_enter(NULL);
	evc__metrics_reset(m);
	ck_assert(one("x") == 0 && one("y") == 0);
	h = seam_hold("store", "begin_anew", _i + 1);
	OK(pthread_create(&p, NULL, put_one, t));
	ck_assert(seam_await(h));
	ck_assert(one("x") == 0 && one("y") == 0 && one("x_count") == 0);
	/* The others go on meanwhile. */
	st = evc__metrics_put(m, "x", 100, false);
	ck_assert(one("x") == 100);
	seam_release(h);
	OK(pthread_join(p, &res));
	OK(st);
	ck_assert_ptr_null(res);
	ck_assert(one("x") == 101 && one("y") == 0 && one("x_count") == 1);
}
END_TEST

/* ---- no memory ---- */

START_TEST(without_memory_a_put_is_refused_and_nothing_is_half)
{
	struct evc__tally *t;

	seam_fail("alloc", "evc__metrics_new", 1, ENOMEM);
	ck_assert_ptr_null(evc__metrics_new());
	seam_fail("alloc", "new_tally", 1, ENOMEM);
	ck_assert_ptr_null(evc__metrics_new());
	seam_fail("alloc", "new_tally", 1, ENOMEM);
	ck_assert_ptr_null(evc__tally_new(m));
	enter_new();
	seam_fail("alloc", "own_cell", 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__metrics_put(m, "x", 1, true));
	ck_assert(one("x") == 0 && one("x_count") == 0);
	OK(evc__metrics_put(m, "x", 1, true));
	/* The sum has its cell, and its counter stands in the next chunk. */
	fill(TALLY_CHUNK - 1);
	seam_fail("alloc", "own_cell", 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__metrics_put(m, "z", 1, true));
	ck_assert(one("z") == 0 && one("z_count") == 0);
	OK(evc__metrics_put(m, "z", 1, true));
	ck_assert(one("z") == 1 && one("z_count") == 1);
	t = evc__tally_enter(NULL);
	seam_fail("alloc", "evc__tally_read", 1, ENOMEM);
	ck_assert_ptr_null(evc__tally_read(t, &(unsigned){ 0 }));
	ck_assert_ptr_nonnull(evc__tally_read(t, &(unsigned){ 0 }));
}
END_TEST

T_MAIN("metrics", set_up, tear_down,
       T_ONCE(a_buffer_that_is_used_again_is_another_name),
       T_ONCE(the_same_text_in_many_places_is_one_name),
       T_ONCE(a_count_may_come_later_and_a_counter_may_be_put),
       T_TIMES(the_last_places_are_for_the_time_of_runs, 2),
       T_TIMES(what_is_no_name_is_refused, 2),
       T_ONCE(a_thread_puts_into_the_tally_it_has_entered),
       T_TIMES(nothing_is_lost, 2),
       T_TIMES(a_reset_beside_puts_keeps_no_half, 2),
       T_TIMES(a_tally_that_is_taken_up_anew_counts_nothing_of_before,
	       TALLY_CHUNK + 1),
       T_ONCE(without_memory_a_put_is_refused_and_nothing_is_half))
