/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The escalation: one budget for the whole stop, and each step at its fraction of
 * it.  Time is what the test says it is.
 */
#include "../../support/ladder_util.h"
#include "../../support/scope_util.h"

/* ---- hooks and kicks at their fractions ---- */

START_TEST(hooks_wait_for_their_fraction_of_the_budget)
{
	evc_escalation_opts o = { .budget = 2, .hooks = 0.5 };
	evc_coord *c = laddered(&o, 100);
	atomic_int pushed = 0;
	evc_id id = 0;

	OK(evc_cancel_push(c, count_call, &pushed, 0, &id));
	stop_now(c);
	NOT_YET(atomic_load(&pushed) > 0);
	at(0.99);
	NOT_YET(atomic_load(&pushed) > 0);
	at(1.01);
	UNTIL(atomic_load(&pushed) == 1);
	OK(evc_cancel_pop(c, id));
	ends_at_last(c);
	OK(evc_free(c));
}
END_TEST

struct lodger {
	atomic_int calls, in, open;
};

static evc_status
lodge(evc_coord *c, void *arg)
{
	struct lodger *l = arg;

	(void)c;
	atomic_store(&l->in, 1);
	while (!atomic_load(&l->open))
		t_sleep(0.001);
	return 0;
}

static void
nudge(void *arg)
{
	struct lodger *l = arg;

	if (atomic_fetch_add(&l->calls, 1) == 4)
		atomic_store(&l->open, 1);
}

START_TEST(unblock_waits_for_it_and_goes_on_from_there)
{
	evc_escalation_opts o = { .budget = 2, .hooks = 0.5 };
	evc_coord *c = laddered(&o, 100);
	evc_member_opts m = { .unblock = nudge };
	struct lodger l = { 0 };

	OK(evc_thread_start(c, "lodger", lodge, &l, &m, NULL));
	stop_now(c);
	at(0.99);
	NOT_YET(atomic_load(&l.calls) > 0);
	at(1.01);
	UNTIL_BEFORE(1.9, atomic_load(&l.calls) >= 5);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}
END_TEST

static void
kicked_at(const evc_escalation_opts *o, double grace, double not_at,
	  double when)
{
	struct sleeper s = { .call = call_nanosleep };
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_coord *c = laddered(o, grace);

	sleeper_begin(&s, c, A_THREAD, &kick);
	stop_now(c);
	NOT_YET(atomic_load(&s.interrupted) > 0);
	at(not_at);
	NOT_YET(atomic_load(&s.interrupted) > 0);
	at(when);
	UNTIL_BEFORE(when + 0.1, atomic_load(&s.interrupted) > 0);
	OK(evc_join(c, &generous, NULL));
	OK(evc_free(c));
}

START_TEST(kicks_wait_for_their_fraction)
{
	evc_escalation_opts o = { .budget = 2, .kicks = 0.75 };

	kicked_at(&o, 100, 1.49, 1.51);
}
END_TEST

START_TEST(kicks_never_come_before_the_hooks)
{
	evc_escalation_opts o = { .budget = 2, .hooks = 0.5, .kicks = 0.25 };

	kicked_at(&o, 100, 0.99, 1.01);
}
END_TEST

START_TEST(without_a_budget_the_fractions_are_of_the_grace)
{
	evc_escalation_opts o = { .kicks = 0.5 };

	kicked_at(&o, 4, 1.99, 2.01);
}
END_TEST

START_TEST(a_fraction_of_one_is_never)
{
	evc_escalation_opts o = { .budget = 2, .hooks = 1, .kicks = 1 };
	struct sleeper s = { .call = call_read };
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_coord *c = laddered(&o, 100);
	atomic_int calls = 0;
	struct joiner j;
	evc_id id = 0;

	OK(pipe(s.fd));
	sleeper_begin(&s, c, A_THREAD, &kick);
	OK(evc_cancel_push(c, count_call, &calls, EVC_CANCEL_REPEAT, &id));
	join_begin(&j, c, 50, 0);
	stop_now(c);
	at(1.99);
	STILL_WAITS(&j);
	at(2.5);
	gave_up(&j, "sleeper");
	let_come();
	ck_assert_int_eq(atomic_load(&calls), 0);
	ck_assert_int_eq(atomic_load(&s.interrupted), 0);
	OK(evc_cancel_pop(c, id));
	ck_assert_int_eq(write(s.fd[1], "g", 1), 1);
	ends_at_last(c);
	OK(evc_free(c));
	close(s.fd[0]);
	close(s.fd[1]);
}
END_TEST

/* ---- the budget ---- */

START_TEST(the_budget_caps_a_longer_grace)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100);
	evc_id id = hold(c, "hold");
	struct joiner j;

	join_begin(&j, c, 50, 0);
	stop_now(c);
	ends_late(c, id, "hold", &j, 2);
}
END_TEST

START_TEST(the_budget_is_the_grace_where_there_is_none)
{
	evc_escalation_opts o = { .budget = 200 };
	evc_coord *c = laddered(&o, 0);
	evc_id id = hold(c, "hold");
	struct joiner j;

	join_begin(&j, c, 0, 0);
	stop_now(c);
	ends_late(c, id, "hold", &j, 200); /* without a budget: 120 */
}
END_TEST

START_TEST(the_budget_counts_from_the_request)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100);
	evc_id id = hold(c, "hold");
	struct joiner j;

	stop_now(c);
	at(1.5);
	join_begin(&j, c, 50, 0); /* it begins late */
	STILL_WAITS(&j);
	at(2.01);
	gave_up(&j, "hold");
	/* And one that begins when it is over finds nothing left. */
	at(3);
	join_begin(&j, c, 50, 0);
	gave_up(&j, "hold");
	OK(evc_hold_end(c, id));
	ends_at_last(c);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_shorter_grace_counts_all_the_same)
{
	evc_escalation_opts o = { .budget = 20 };
	evc_coord *c = laddered(&o, 100);
	evc_id id = hold(c, "hold");
	struct joiner j;

	stop_now(c);
	join_begin(&j, c, 1, 0);
	ends_late(c, id, "hold", &j, 1);
}
END_TEST

START_TEST(a_new_round_has_a_new_budget)
{
	evc_escalation_opts o = { .budget = 2 };
	evc_coord *c = laddered(&o, 100);
	struct joiner j;
	evc_id id;
	int i;

	for (i = 0; i < 3; i++) {
		id = hold(c, "hold");
		scripted_advance(7);
		stop_now(c);
		join_begin(&j, c, 50, 0);
		at(1.99);
		STILL_WAITS(&j);
		at(2.01);
		gave_up(&j, "hold");
		OK(evc_hold_end(c, id));
		ends_at_last(c);
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

/* ---- scopes ---- */

START_TEST(a_scope_has_the_ladder_of_what_is_above_it)
{
	evc_escalation_opts o = { .budget = 2, .hooks = 0.5 };
	evc_coord *c = laddered(&o, 100), *low = NULL;
	atomic_int calls = 0;
	struct joiner j;
	evc_id id, push = 0;

	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	id = hold(low, "held");
	OK(evc_cancel_push(low, count_call, &calls, 0, &push));
	scripted_advance(10);
	stop_now(low); /* its own stop: counted from there */
	join_begin(&j, low, 50, 0);
	at(0.99);
	NOT_YET(atomic_load(&calls) > 0);
	at(1.01);
	UNTIL(atomic_load(&calls) == 1);
	at(1.99);
	STILL_WAITS(&j);
	at(2.01);
	gave_up(&j, "held");
	OK(evc_cancel_pop(low, push));
	OK(evc_hold_end(low, id));
	ends_at_last(low);
	FREE_ALL(low, c);
}
END_TEST

START_TEST(a_scope_may_have_a_ladder_of_its_own)
{
	evc_escalation_opts o = { .budget = 100 }, own = { .budget = 2 };
	evc_coord *c = laddered(&o, 200), *low = NULL;
	struct joiner j;
	evc_id id;

	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	OK(evc_escalation_set(low, &own));
	id = hold(low, "held");
	stop_now(low);
	join_begin(&j, low, 50, 0);
	at(1.99);
	STILL_WAITS(&j);
	at(2.01);
	gave_up(&j, "held");
	OK(evc_hold_end(low, id));
	ends_at_last(low);
	FREE_ALL(low, c);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(what_makes_no_sense_is_refused)
{
	const evc_escalation_opts wrong[] = {
		{ .budget = NAN },
		{ .budget = -1 },
		{ .budget = -INFINITY },
		{ .hooks = NAN },
		{ .hooks = -0.1 },
		{ .hooks = 1.1 },
		{ .kicks = NAN },
		{ .kicks = -0.1 },
		{ .kicks = 1.1 },
		{ .step = NAN },
		{ .step = -1 },
		{ .hard_end = NAN },
		{ .hard_end = -1 },
		{ .reserved_ = { 1 } },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } },
	};
	evc_escalation_opts fine = { .budget = 2 };
	evc_coord *c = new_coord(NULL);
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		evc_status st = evc_escalation_set(c, &wrong[i]);

		ck_assert_msg(st == -EVC_INVALID_ARGUMENT, "case %zu: %d", i,
			      st);
		ck_assert_str_ne(evc_last_error(), "");
	}
	REFUSED(EVC_INVALID_ARGUMENT, evc_escalation_set(NULL, &fine));
	OK(evc_escalation_set(c, &fine));
	OK(evc_escalation_set(c, NULL));
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_escalation_set(c, &fine));
	OK(evc_clear_stop(c));
	OK(evc_escalation_set(c, &fine));
	OK(evc_free(c));
}
END_TEST

START_TEST(NULL_brings_the_defaults_back)
{
	evc_escalation_opts o = { .budget = 2, .hooks = 0.5 };
	evc_coord *c = laddered(&o, 100);
	atomic_int calls = 0;
	struct joiner j;
	evc_id id, push = 0;

	OK(evc_escalation_set(c, NULL));
	id = hold(c, "hold");
	OK(evc_cancel_push(c, count_call, &calls, 0, &push));
	stop_now(c);
	UNTIL(atomic_load(&calls) == 1); /* at once */
	join_begin(&j, c, 50, 0);
	at(10);
	STILL_WAITS(&j);
	OK(evc_hold_end(c, id));
	OK(join_end(&j));
	OK(evc_cancel_pop(c, push));
	OK(evc_free(c));
}
END_TEST

API_MAIN("ladder", hooks_wait_for_their_fraction_of_the_budget,
	 unblock_waits_for_it_and_goes_on_from_there,
	 kicks_wait_for_their_fraction, kicks_never_come_before_the_hooks,
	 without_a_budget_the_fractions_are_of_the_grace,
	 a_fraction_of_one_is_never, the_budget_caps_a_longer_grace,
	 the_budget_is_the_grace_where_there_is_none,
	 the_budget_counts_from_the_request,
	 a_shorter_grace_counts_all_the_same, a_new_round_has_a_new_budget,
	 a_scope_has_the_ladder_of_what_is_above_it,
	 a_scope_may_have_a_ladder_of_its_own, what_makes_no_sense_is_refused,
	 NULL_brings_the_defaults_back)
