/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Phases that do not go smoothly: limits and who is named at them, and scopes
 * that come while the stop goes on.  Nested ones stand in phases_nested.c.
 */
#include "../../../support/scope_util.h"

START_TEST(when_its_limit_is_over_the_next_is_told_and_it_is_named)
{
	struct driver d = { .opts.grace = 0.5 };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s, *next;
		double start;
		evc_id id;

		s = phase_scope(c, "requests", 1, 0.1);
		next = phase_scope(c, "log", 2, 0);
		id = hold(s, "stuck-one");
		OK(evc_thread_start(next, "obeys", obey, NULL, NULL, NULL));
		start = t_now();
		driver_go(&d);
		if (how == BY_JOIN_FIRST) {
			UNTIL(evc_should_stop(c));
		} else {
			start = t_now();
			driver_stop(&d);
		}
		UNTIL(evc_should_stop(next));
		ck_assert_double_ge(t_now() - start, 0.1);
		ck_assert_int_eq(driver_wait(&d), EVC_DEADLINE_EXCEEDED);
		ck_assert_uint_eq(d.v.n_stragglers, 1);
		HAS(d.v.error.text, "stuck-one");
		HAS(d.v.error.text, "requests");
		HAS(d.v.error.text, "phase 1");
		OK(evc_hold_end(s, id));
		FREE_ALL(s, next);
		driver_end(&d);
	}
}
END_TEST

/* A limit lets the next phase have its turn; the join has its own grace. */
START_TEST(who_outlasts_its_phase_is_waited_for_as_long_as_the_join_has)
{
	struct driver d = { 0 };
	int how, ends;

	for (how = 0; how < N_WAYS; how++)
		for (ends = 0; ends < 2; ends++) {
			evc_coord *c = driver_make(&d, how), *s, *next;
			evc_id id, in_next;

			d.opts.grace = ends ? INFINITY : 0.5;
			s = phase_scope(c, "requests", 1, 0.02);
			next = phase_scope(c, "log", 2, 0);
			id = hold(s, "stuck-one");
			in_next = hold(next, "held");
			driver_go(&d);
			driver_stop(&d);
			UNTIL(evc_should_stop(next));
			OK(evc_hold_end(next, in_next));
			if (ends) {
				NOT_YET(driver_returned(&d));
				OK(evc_hold_end(s, id));
			}
			ck_assert_int_eq(driver_wait(&d),
					 ends ? 0 : EVC_DEADLINE_EXCEEDED);
			if (!ends) {
				HAS(d.v.error.text, "requests (phase 1)");
				HAS(d.v.error.text, "stuck-one");
				OK(evc_hold_end(s, id));
			}
			FREE_ALL(s, next);
			driver_end(&d);
		}
}
END_TEST

START_TEST(the_one_budget_bounds_every_limit)
{
	struct driver d = { .opts.grace = 0.2 };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s, *next, *last;
		double start = t_now();
		evc_id id;

		s = phase_scope(c, "s", 0, 1000);
		next = phase_scope(c, "next", 1, INFINITY);
		last = phase_scope(c, "last", 2, 0);
		id = hold(s, "stuck");
		driver_go(&d);
		driver_stop(&d);
		ck_assert_int_eq(driver_wait(&d), EVC_DEADLINE_EXCEEDED);
		ck_assert_double_ge(t_now() - start, 0.2);
		ck_assert_double_lt(t_now() - start, T_LIMIT);
		BY_PARENT(next);
		BY_PARENT(last);
		OK(evc_hold_end(s, id));
		FREE_ALL(s, next, last);
		driver_end(&d);
	}
}
END_TEST

/* What is left is told inside the grace, with time for one turn of it; no join
   lasts longer, by a clock that stands still then, either. */
START_TEST(later_phases_are_told_before_the_grace_is_over)
{
	static const double grace[] = { 5, 0.005, EVC_NO_GRACE };
	struct driver d = { .config.clock = scripted_clock };
	unsigned i;
	int how;

	for (i = 0; i < 3; i++)
		for (how = 0; how < N_WAYS; how++) {
			evc_coord *c, *s, *next;
			evc_id id, in_next;

			d.config.grace = grace[i];
			c = driver_make(&d, how);
			s = phase_scope(c, "s", 0, 0);
			next = phase_scope(c, "next", 1, 0);
			id = hold(s, "stuck");
			in_next = hold(next, "next");
			driver_go(&d);
			driver_stop(&d);
			if (grace[i] > 1) {
				scripted_advance(grace[i] - 0.03);
				NOT_YET(evc_should_stop(next));
				scripted_advance(0.02);
			}
			UNTIL(evc_should_stop(next));
			if (grace[i] > 0) {
				NOT_YET(driver_returned(&d));
				scripted_advance(0.01);
			}
			ck_assert_int_eq(driver_wait(&d),
					 EVC_DEADLINE_EXCEEDED);
			BY_PARENT(next);
			OK(evc_hold_end(s, id));
			OK(evc_hold_end(next, in_next));
			FREE_ALL(s, next);
			driver_end(&d);
		}
}
END_TEST

START_TEST(a_limit_of_none_keeps_nobody_waiting)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s, *next;
		evc_id id, in_next;

		s = phase_scope(c, "s", 0, EVC_NO_GRACE);
		next = phase_scope(c, "next", 1, 0);
		id = hold(s, "slow");
		in_next = hold(next, "held");
		driver_go(&d);
		driver_stop(&d);
		UNTIL(evc_should_stop(next));
		NOT_YET(driver_returned(&d));
		OK(evc_hold_end(s, id));
		OK(evc_hold_end(next, in_next));
		OK(driver_wait(&d));
		FREE_ALL(s, next);
		driver_end(&d);
	}
}
END_TEST

START_TEST(a_limit_counts_from_its_own_turn)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *a, *b, *e;
		evc_id in_a, in_b, in_e;
		double told;

		a = phase_scope(c, "a", 0, 0);
		b = phase_scope(c, "b", 1, 0.2);
		e = phase_scope(c, "e", 2, 0);
		in_e = hold(e, "e");
		in_a = hold(a, "a");
		in_b = hold(b, "b");
		driver_go(&d);
		driver_stop(&d);
		t_sleep(0.3); /* longer than b's limit */
		t_until_quiet();
		ck_assert(!evc_should_stop(b));
		told = t_now();
		OK(evc_hold_end(a, in_a));
		UNTIL(evc_should_stop(e));
		ck_assert_double_ge(t_now() - told, 0.2);
		OK(evc_hold_end(b, in_b));
		OK(evc_hold_end(e, in_e));
		OK(driver_wait(&d));
		FREE_ALL(a, b, e);
		driver_end(&d);
	}
}
END_TEST

START_TEST(each_scope_of_a_phase_has_its_own_limit)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *a, *b, *next;
		evc_id in_a, in_b, in_next;

		a = phase_scope(c, "a", 1, 0.02);
		b = phase_scope(c, "b", 1, INFINITY);
		next = phase_scope(c, "next", 2, 0);
		in_next = hold(next, "next");
		in_a = hold(a, "a");
		in_b = hold(b, "b");
		driver_go(&d);
		driver_stop(&d);
		UNTIL(evc_should_stop(a) && evc_should_stop(b));
		t_sleep(0.02);
		NOT_YET(evc_should_stop(next));
		OK(evc_hold_end(b, in_b));
		UNTIL(evc_should_stop(next)); /* a is over its own */
		OK(evc_hold_end(a, in_a));
		OK(evc_hold_end(next, in_next));
		OK(driver_wait(&d));
		FREE_ALL(a, b, next);
		driver_end(&d);
	}
}
END_TEST

/* The loop is held up when s has been told, before it can hear of it. */
static void
hold_up_once(struct ev_loop *loop, ev_prepare *w, int revents)
{
	(void)revents;
	if (!evc_should_stop(w->data))
		return;
	ev_prepare_stop(loop, w);
	t_sleep(0.1);
}

/* Who was not told before cannot be late: it may obey first. */
START_TEST(who_is_told_at_the_end_is_not_named_when_it_obeys)
{
	static const evc_task_class cls = {
		.name = "obedient",
		.on_stop = end_told_task,
	};
	evc_join_opts opts = { .grace = 0.1, .flags = EVC_JOIN_STOP_FIRST };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s = phase_scope(c, "s", 1, 0);
	evc_id id = hold(c, "stuck");
	evc_task t = { 0 };
	ev_prepare prepare;
	evc_verdict v;

	ev_prepare_init(&prepare, hold_up_once);
	prepare.data = s;
	ev_prepare_start(loop, &prepare);
	OK(evc_task_begin(evc_home(s), &t, &cls));
	ck_assert_int_eq(evc_run(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 1);
	HAS(v.error.text, "stuck");
	OK(evc_hold_end(c, id));
	FREE_ALL(s, c);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- scopes that come while the stop goes on ---- */

START_TEST(born_during_the_stop_each_waits_for_its_turn)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *a, *b, *same, *behind,
			  *later;
		evc_member_opts late = { .flags = EVC_AFTER_STOP };
		evc_id in_a, in_b, in_later, in_c = 0;

		a = phase_scope(c, "a", 0, 0);
		b = phase_scope(c, "b", 2, 0);
		in_a = hold(a, "a");
		in_b = hold(b, "b");
		driver_go(&d);
		driver_stop(&d);
		UNTIL(evc_should_stop(a));
		same = phase_scope(c, "same", 0, 0);
		BY_PARENT(same); /* its phase was told */
		later = phase_scope(c, "later", 3, 0);
		ck_assert(!evc_should_stop(later));
		in_later = hold(later, "later"); /* it works still */
		OK(evc_hold_end(a, in_a));
		UNTIL(evc_should_stop(b));
		OK(evc_hold_begin(c, "late", &late, &in_c));
		behind = phase_scope(c, "behind", 1, 0);
		BY_PARENT(behind); /* a phase behind one that is over */
		NOT_YET(evc_should_stop(later));
		OK(evc_hold_end(c, in_c));
		OK(evc_hold_end(b, in_b));
		UNTIL(evc_should_stop(later));
		NOT_YET(driver_returned(&d));
		OK(evc_hold_end(later, in_later));
		OK(driver_wait(&d));
		FREE_ALL(a, b, same, behind, later);
		driver_end(&d);
	}
}
END_TEST

START_TEST(born_when_all_were_told_it_is_born_stopped)
{
	evc_coord *c = new_coord(NULL), *s;
	evc_join_opts opts = { .grace = 0.02 };
	evc_id id = hold(c, "held");
	int i;

	for (i = 0; i < 2; i++) {
		if (i == 0) {
			OK(evc_request_stop(c, 0, NULL));
		} else {
			struct joiner j;

			join_begin(&j, c, 0.02, 0);
			OK(evc_request_stop(c, 0, NULL));
			ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
		}
		ck_assert_int_eq(evc_join(c, &opts, NULL),
				 EVC_DEADLINE_EXCEEDED);
		s = phase_scope(c, "s", 5, 0);
		BY_PARENT(s);
		OK(evc_free(s));
		OK(evc_hold_end(c, id));
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
		id = hold(c, "held");
	}
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

API_MAIN("phase_limits",
	 when_its_limit_is_over_the_next_is_told_and_it_is_named,
	 who_outlasts_its_phase_is_waited_for_as_long_as_the_join_has,
	 the_one_budget_bounds_every_limit,
	 later_phases_are_told_before_the_grace_is_over,
	 a_limit_of_none_keeps_nobody_waiting, a_limit_counts_from_its_own_turn,
	 each_scope_of_a_phase_has_its_own_limit,
	 born_during_the_stop_each_waits_for_its_turn,
	 born_when_all_were_told_it_is_born_stopped,
	 who_is_told_at_the_end_is_not_named_when_it_obeys)
