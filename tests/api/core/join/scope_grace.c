/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines of a tree: there is one budget for a whole stop, and no scope has
 * more than what is left of its parent's.
 */
#include "../../../support/scope_util.h"

#include <signal.h>

START_TEST(no_grace_of_a_scope_outlasts_what_is_left_of_the_parents)
{
	static const double graces[] = { 60, INFINITY, 0 };
	evc_config cfg = { .grace = 0.2 };
	evc_coord *c = new_coord_with(NULL, &cfg), *s, *t;
	size_t i;

	for (i = 0; i < sizeof(graces) / sizeof(graces[0]); i++) {
		evc_scope_opts opts = { .config.grace = graces[i] };
		evc_join_opts join = { .grace = graces[i] };
		double start;
		evc_verdict v;
		evc_id id;

		s = ready_scope(c, "s", &opts);
		t = ready_scope(s, "t", &opts);
		id = hold(t, "stuck");
		start = t_now();
		OK(evc_request_stop(c, 0, NULL));
		ck_assert_int_eq(evc_join(t, &join, &v), EVC_DEADLINE_EXCEEDED);
		ck_assert_double_ge(t_now() - start, 0.2);
		ck_assert_double_lt(t_now() - start, T_LIMIT);
		HAS(v.error.text, "stuck");
		/* the whole budget is used up: nobody waits again */
		ck_assert_int_eq(evc_join(s, &join, &v), EVC_DEADLINE_EXCEEDED);
		ck_assert_double_lt(t_now() - start, T_LIMIT);
		OK(evc_hold_end(t, id));
		OK(evc_join(c, NULL, NULL));
		FREE_ALL(t, s);
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(a_shorter_grace_of_a_scope_counts_and_its_own_stop_has_its_own)
{
	evc_config cfg = { .grace = 1000 };
	evc_coord *c = new_coord_with(NULL, &cfg), *s;
	evc_scope_opts opts = { .config.grace = 0.1 };
	double start;
	evc_id id;

	s = ready_scope(c, "s", &opts);
	id = hold(s, "stuck");
	start = t_now();
	OK(evc_request_stop(s, 0, NULL));
	ck_assert_int_eq(evc_join(s, NULL, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(t_now() - start, 0.1);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(s, NULL, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_lt(t_now() - start, T_LIMIT);
	OK(evc_hold_end(s, id));
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(its_own_stop_has_the_parents_grace_when_it_has_none)
{
	evc_config cfg = { .grace = 0.1 };
	evc_coord *c = new_coord_with(NULL, &cfg), *s, *t;
	double start = t_now();
	evc_id id;

	s = ready_scope(c, "s", NULL);
	t = ready_scope(s, "t", NULL);
	id = hold(t, "stuck");
	OK(evc_request_stop(t, 0, NULL));
	ck_assert_int_eq(evc_join(t, NULL, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(t_now() - start, 0.1);
	ck_assert_double_lt(t_now() - start, T_LIMIT);
	OK(evc_hold_end(t, id));
	FREE_ALL(t, s, c);
}
END_TEST

/* The grace of a scope is for its own joins, its `ended` and its phase. */
START_TEST(J1_a_grace_of_a_scope_cuts_no_join_above)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s, *below;
		evc_scope_opts opts = { .config.grace = 0.1 };
		evc_id id;

		s = ready_scope(c, "s", &opts);
		below = ready_scope(s, "below", NULL);
		id = hold(below, "late-one");
		driver_go(&d);
		driver_stop(&d);
		t_sleep(0.15);
		NOT_YET(driver_returned(&d));
		OK(evc_hold_end(below, id));
		OK(driver_wait(&d));
		FREE_ALL(below, s);
		driver_end(&d);
	}
}
END_TEST

START_TEST(the_longest_of_several_joins_above_is_the_budget)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	evc_join_opts opts = { .grace = 1000 };
	struct joiner brief, longer;
	double start = t_now();
	evc_id id = hold(s, "stuck");

	join_begin(&brief, c, 0.02, 0);
	join_begin(&longer, c, 0.2, 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(s, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(t_now() - start, 0.2);
	ck_assert_double_lt(t_now() - start, T_LIMIT);
	ck_assert_int_eq(join_end(&brief), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(join_end(&longer), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(s, id));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(a_second_signal_cuts_the_grace_of_the_whole_tree)
{
	evc_signals_opts sig = { .stop = { SIGUSR1 }, .short_grace = 0.1 };
	evc_config cfg = { .grace = 1000 };
	evc_coord *c = new_coord_with(NULL, &cfg), *s, *t;
	evc_scope_opts opts = { .config.grace = 1000 };
	struct joiner on_s, on_t, on_c;
	double start;
	evc_id id;

	s = ready_scope(c, "s", &opts);
	t = ready_scope(s, "t", &opts);
	id = hold(t, "stuck");
	OK(evc_signals_start(c, &sig));
	join_begin(&on_s, s, 1000, 0);
	join_begin(&on_t, t, 1000, 0);
	join_begin(&on_c, c, 1000, 0);
	OK(raise(SIGUSR1));
	BY_PARENT(t);
	NOT_YET(atomic_load(&on_s.returned) || atomic_load(&on_t.returned) ||
		atomic_load(&on_c.returned));
	start = t_now();
	OK(raise(SIGUSR1));
	ck_assert_int_eq(join_end(&on_c), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(join_end(&on_s), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(join_end(&on_t), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(t_now() - start, 0.1);
	ck_assert_double_lt(t_now() - start, T_LIMIT);
	OK(evc_hold_end(t, id));
	FREE_ALL(t, s, c);
}
END_TEST

API_MAIN("scope_grace",
	 no_grace_of_a_scope_outlasts_what_is_left_of_the_parents,
	 a_shorter_grace_of_a_scope_counts_and_its_own_stop_has_its_own,
	 its_own_stop_has_the_parents_grace_when_it_has_none,
	 J1_a_grace_of_a_scope_cuts_no_join_above,
	 the_longest_of_several_joins_above_is_the_budget,
	 a_second_signal_cuts_the_grace_of_the_whole_tree)
