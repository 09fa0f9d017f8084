/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Phases inside phases: who drives what is below, and who is told when a join
 * leaves; and scopes that are stopped or cleared out of their turn.
 */
#include "../../../support/scope_util.h"

START_TEST(phases_nest)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *a, *a0, *a1, *b;
		evc_id in_a, in_a0, in_a1;

		a = phase_scope(c, "a", 0, 0);
		a1 = phase_scope(a, "a1", 1, 0);
		a0 = phase_scope(a, "a0", 0, 0);
		b = phase_scope(c, "b", 1, 0);
		in_a = hold(a, "a");
		in_a0 = hold(a0, "a0");
		in_a1 = hold(a1, "a1");
		driver_go(&d);
		driver_stop(&d);
		UNTIL(evc_should_stop(a) && evc_should_stop(a0));
		NOT_YET(evc_should_stop(a1) || evc_should_stop(b));
		OK(evc_hold_end(a0, in_a0));
		NOT_YET(evc_should_stop(a1) || evc_should_stop(b));
		OK(evc_hold_end(a, in_a));
		UNTIL(evc_should_stop(a1));
		NOT_YET(evc_should_stop(b));
		OK(evc_hold_end(a1, in_a1));
		UNTIL(evc_should_stop(b));
		OK(driver_wait(&d));
		FREE_ALL(a0, a1, a, b);
		driver_end(&d);
	}
}
END_TEST

/* A join drives what is below it, and nothing beside or above. */
START_TEST(a_join_of_a_scope_drives_that_scope_alone)
{
	evc_coord *c = new_coord(NULL), *a, *a1, *b;
	struct joiner j;
	evc_id in_a;

	a = phase_scope(c, "a", 0, INFINITY);
	a1 = phase_scope(a, "a1", 1, 0);
	b = phase_scope(c, "b", 1, 0);
	in_a = hold(a, "a");
	join_begin(&j, a, INFINITY, 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(evc_should_stop(a));
	ck_assert(evc_should_stop(b));
	NOT_YET(evc_should_stop(a1));
	OK(evc_hold_end(a, in_a));
	OK(join_end(&j));
	BY_PARENT(a1);
	FREE_ALL(a1, a, b, c);
}
END_TEST

START_TEST(a_join_that_gives_up_tells_as_far_as_nobody_else_drives)
{
	evc_coord *c = new_coord(NULL), *a, *a1, *b;
	struct joiner above, inside;
	double start;
	evc_id in_a;
	bool early;

	a = phase_scope(c, "a", 0, INFINITY);
	a1 = phase_scope(a, "a1", 1, 0);
	b = phase_scope(c, "b", 1, 0);
	in_a = hold(a, "a");
	join_begin(&above, c, 0.3, 0);
	join_begin(&inside, a, 0.02, 0);
	start = t_now();
	OK(evc_request_stop(c, 0, NULL));
	/* the one above drives on, here too */
	ck_assert_int_eq(join_end(&inside), EVC_DEADLINE_EXCEEDED);
	early = evc_should_stop(a1) || evc_should_stop(b);
	ck_assert(!early || t_now() - start >= 0.3);
	/* the last one tells all that are left, nested ones too */
	ck_assert_int_eq(join_end(&above), EVC_DEADLINE_EXCEEDED);
	BY_PARENT(a1);
	BY_PARENT(b);
	OK(evc_hold_end(a, in_a));
	FREE_ALL(a1, a, b, c);
}
END_TEST

START_TEST(stopped_or_cleared_out_of_its_turn)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *a, *b;
		evc_id in_a;

		a = phase_scope(c, "a", 0, 0);
		b = phase_scope(c, "b", 1, 0);
		in_a = hold(a, "a");
		driver_go(&d);
		driver_stop(&d);
		UNTIL(evc_should_stop(a));
		ck_assert(!evc_should_stop(b));
		/* its own stop needs no turn */
		OK(evc_request_stop(b, 0, "early"));
		OK(evc_join(b, NULL, NULL));
		/* cleared before its turn it is not asked anew ... */
		OK(evc_clear_stop(b));
		ck_assert(!evc_should_stop(b));
		OK(evc_hold_end(a, in_a));
		OK(driver_wait(&d));
		/* ... but at its turn */
		BY_PARENT(b);
		FREE_ALL(a, b);
		driver_end(&d);
	}
}
END_TEST

static evc_status
stop_root(evc_coord *scope, void *root)
{
	(void)scope;
	return evc_request_stop(root, 0, "a part has failed");
}

/* An error in a later phase stops its scope out of turn; with a scope inside
   that only reports, and asks for the stop of the root, the order holds. */
START_TEST(an_error_in_a_later_phase_and_the_way_round)
{
	struct driver d = { .config.grace = INFINITY };
	evc_scope_opts opts = { .on_error = EVC_ON_ERROR_REPORT };
	int how;

	for (how = 0; how < 2 * N_WAYS; how++) {
		evc_coord *c, *a, *b, *part;
		evc_id in_a;

		if (how / 2 == BY_JOIN_FIRST)
			continue;
		c = driver_make(&d, how / 2);
		a = phase_scope(c, "a", 0, 0);
		b = phase_scope(c, "b", 1, 0);
		part = ready_scope(b, "part", &opts);
		in_a = hold(a, "a");
		OK(evc_on_stop(part, "stop", stop_root, c, NULL, NULL));
		driver_go(&d);
		evc_fail(how % 2 ? part : b, EVC_DATA_LOSS, 0, "first");
		UNTIL(evc_should_stop(c) && evc_should_stop(a));
		ck_assert(evc_should_stop(part));
		if (how % 2)
			NOT_YET(evc_should_stop(b));
		else
			ck_assert(evc_should_stop(b));
		OK(evc_hold_end(a, in_a));
		ck_assert_int_eq(driver_wait(&d), EVC_DATA_LOSS);
		ck_assert_str_eq(d.v.error.text, "first");
		ck_assert_uint_eq(d.v.n_errors, 1);
		ck_assert(evc_should_stop(b));
		FREE_ALL(part, a, b);
		driver_end(&d);
	}
}
END_TEST

API_MAIN("phases_nested", phases_nest,
	 a_join_of_a_scope_drives_that_scope_alone,
	 a_join_that_gives_up_tells_as_far_as_nobody_else_drives,
	 stopped_or_cleared_out_of_its_turn,
	 an_error_in_a_later_phase_and_the_way_round)
