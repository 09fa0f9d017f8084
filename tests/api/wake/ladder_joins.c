/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The budget, and what moves it, hold for every way to join: on loops, in
 * steps, blocking, with what lives in scopes.
 */
#include "../../support/scope_util.h"

START_TEST(the_budget_ends_every_join)
{
	evc_escalation_opts o = { .budget = 0.3 };
	struct driver d = { .config.grace = 1000 };
	evc_coord *c = driver_make(&d, _i);
	evc_id id = hold(c, "late");
	double start;

	OK(evc_escalation_set(c, &o));
	driver_go(&d);
	start = t_now();
	driver_stop(&d);
	ck_assert_int_eq(driver_wait(&d), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_lt(t_now() - start, T_LIMIT);
	ck_assert_uint_eq(d.v.n_stragglers, 1);
	ck_assert_double_ge(d.v.took, 0.29);
	HAS(d.v.error.text, "late");
	OK(evc_hold_end(c, id));
	driver_end(&d);
}
END_TEST

START_TEST(more_time_holds_for_every_join)
{
	evc_escalation_opts o = { .budget = 2, .hard_end = 100 };
	struct driver d = { .config.grace = 1000,
			    .config.clock = scripted_clock };
	evc_coord *c = driver_make(&d, _i);
	double granted = 0;
	evc_id id = hold(c, "slow");

	OK(evc_escalation_set(c, &o));
	driver_go(&d);
	driver_stop(&d);
	OK(evc_extend_stop(c, id, 10, "needs a while", &granted));
	ck_assert_double_eq_tol(granted, 10, 1e-3);
	scripted_advance(5);
	NOT_YET(driver_returned(&d));
	scripted_advance(10);
	ck_assert_int_eq(driver_wait(&d), EVC_DEADLINE_EXCEEDED);
	HAS(d.v.error.text, "slow");
	OK(evc_hold_end(c, id));
	driver_end(&d);
}
END_TEST

START_TEST(the_budget_of_the_root_ends_what_lives_below)
{
	evc_escalation_opts o = { .budget = 0.3 };
	struct driver d = { .config.grace = 1000 };
	evc_coord *c = driver_make(&d, _i), *low;
	evc_id id;

	OK(evc_escalation_set(c, &o));
	low = ready_scope(c, "scope", NULL);
	id = hold(low, "late");
	driver_go(&d);
	driver_stop(&d);
	ck_assert_int_eq(driver_wait(&d), EVC_DEADLINE_EXCEEDED);
	HAS(d.v.error.text, "late");
	OK(evc_hold_end(low, id));
	OK(evc_free(low));
	driver_end(&d);
}
END_TEST

T_MAIN("ladder_joins", NULL, NULL,
       T_TIMES(the_budget_ends_every_join, N_WAYS),
       T_TIMES(more_time_holds_for_every_join, N_WAYS),
       T_TIMES(the_budget_of_the_root_ends_what_lives_below, N_WAYS))
