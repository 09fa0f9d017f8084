/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_stop_left: the end of a stop as joins of the coordinator have it, with
 * the coordinators above, and what moves it.
 */
#include "../../support/ladder_util.h"
#include "../../support/scope_util.h"

/* So many seconds are left; the clock stands still. */
#define LEFT(c, seconds) \
	ck_assert_double_eq_tol(evc_stop_left(c), seconds, 1e-3)

START_TEST(before_a_stop_there_is_no_end)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100), *low;

	OK(evc_scope_new(c, "low", NULL, &low));
	ck_assert_double_infinite(evc_stop_left(c));
	ck_assert_double_infinite(evc_stop_left(low));
	FREE_ALL(low, c);
}
END_TEST

START_TEST(a_budget_runs_down_above_and_below)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100), *low;
	evc_scope_opts own = { .config.grace = 1 };

	OK(evc_scope_new(c, "low", &own, &low));
	OK(evc_scope_ready(low));
	stop_now(c);
	LEFT(c, 2);
	LEFT(low, 1); /* its own grace is shorter */
	at(1.5);
	LEFT(c, 0.5);
	LEFT(low, 0);
	at(7);
	LEFT(c, 0);
	OK(evc_clear_stop(c));
	ck_assert_double_infinite(evc_stop_left(c));
	FREE_ALL(low, c);
}
END_TEST

START_TEST(a_stop_below_is_none_above)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100), *low;

	OK(evc_scope_new(c, "low", NULL, &low));
	stop_now(low);
	ck_assert_double_infinite(evc_stop_left(c));
	LEFT(low, 2); /* the escalation is inherited */
	FREE_ALL(low, c);
}
END_TEST

START_TEST(a_phase_that_was_not_told_ends_with_the_others)
{
	evc_config cfg = { .clock = scripted_clock, .grace = 5 };
	evc_scope_opts last = { .phase = 1 };
	evc_coord *c = new_coord_with(NULL, &cfg), *low;
	struct joiner j;
	evc_id id;

	OK(evc_scope_new(c, "low", &last, &low));
	id = hold(c, "first");
	join_begin(&j, c, 5, 0);
	stop_now(c);
	ck_assert(!evc_should_stop(low));
	LEFT(low, 5);
	OK(evc_hold_end(c, id));
	OK(evc_scope_ready(low));
	OK(join_end(&j));
	FREE_ALL(low, c);
}
END_TEST

START_TEST(more_time_moves_the_end)
{
	evc_escalation_opts o = { .budget = 2, .hard_end = 100 };
	evc_coord *c = laddered(&o, 100);
	double granted = 0;
	evc_id id = hold(c, "slow");

	stop_now(c);
	OK(evc_extend_stop(c, id, 10, "needs a while", &granted));
	LEFT(c, 12);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_signal_has_its_grace_and_the_second_one_cuts_it)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_signals_start(c, NULL));
	kill(getpid(), SIGTERM);
	UNTIL(evc_should_stop(c));
	ck_assert_double_gt(evc_stop_left(c), 0);
	ck_assert_double_le(evc_stop_left(c), 8);
	kill(getpid(), SIGTERM);
	UNTIL(evc_stop_left(c) <= 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_join_that_has_given_up_was_the_end)
{
	evc_config cfg = { .grace = 100 };
	evc_coord *c = new_coord_with(NULL, &cfg), *low;
	evc_join_opts at_once = { .grace = EVC_NO_GRACE };
	evc_id id;

	OK(evc_scope_new(c, "low", NULL, &low));
	id = hold(low, "stays");
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_double_gt(evc_stop_left(low), 50);
	ck_assert_int_eq(evc_join(c, &at_once, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_eq(evc_stop_left(low), 0);
	OK(evc_hold_end(low, id));
	FREE_ALL(low, c);
}
END_TEST

START_TEST(no_coordinator_has_no_time)
{
	ck_assert_double_eq(evc_stop_left(NULL), 0);
	HAS(evc_last_error(), "evc_stop_left");
}
END_TEST

API_MAIN("stop_left", before_a_stop_there_is_no_end,
	 a_budget_runs_down_above_and_below, a_stop_below_is_none_above,
	 a_phase_that_was_not_told_ends_with_the_others,
	 more_time_moves_the_end,
	 a_signal_has_its_grace_and_the_second_one_cuts_it,
	 a_join_that_has_given_up_was_the_end, no_coordinator_has_no_time)
