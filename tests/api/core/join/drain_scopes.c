/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drains of trees: they reach all scopes, whatever their phase; the phases
 * begin at the stop that follows.  And drains one after the other: a second
 * one, one beside a stop, one in a later round.
 */
#include "../../../support/scope_util.h"

static bool
draining(evc_coord *c)
{
	return evc_should_drain(c) && !evc_should_stop(c);
}

static bool
running(evc_coord *c)
{
	return !evc_should_drain(c) && !evc_should_stop(c);
}

static void
hook_on_drain(evc_coord *c, atomic_int *count)
{
	evc_member_opts opts = { .flags = EVC_ON_DRAIN };

	OK(evc_on_stop(c, "on-drain", count_hook, count, &opts, NULL));
}

/* ---- one after the other ---- */

START_TEST(a_second_drain_can_only_bring_the_limit_nearer)
{
	evc_coord *c = new_coord(NULL);
	double start;
	evc_id id;
	int i;

	for (i = 0; i < 3; i++) {
		id = hold(c, "works on");
		OK(evc_request_drain(c, i == 0 ? INFINITY : 1000, NULL));
		OK(evc_request_drain(c, INFINITY, NULL));
		NOT_YET(!draining(c));
		start = t_now();
		OK(evc_request_drain(c, 0.1, "nearer"));
		if (i == 1)
			OK(evc_request_drain(c, 1000, "farther"));
		if (i == 2)
			OK(evc_request_drain(c, INFINITY, "never"));
		ck_assert(draining(c));
		UNTIL(evc_should_stop(c));
		ck_assert_double_ge(t_now() - start, 0.1);
		OK(evc_hold_end(c, id));
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
	}
	/* down to nothing */
	id = hold(c, "works on");
	OK(evc_request_drain(c, 1000, NULL));
	OK(evc_request_drain(c, 0, NULL));
	ck_assert(evc_should_stop(c));
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

START_TEST(after_the_stop_it_changes_nothing)
{
	evc_coord *c = new_coord(NULL);
	atomic_int calls = 0;
	evc_reason r;
	evc_verdict v;

	hook_on_drain(c, &calls);
	OK(evc_request_stop(c, 0, "the stop"));
	OK(evc_request_drain(c, 0, "too late"));
	OK(evc_request_drain(c, 0.001, "too late"));
	OK(evc_join(c, NULL, &v));
	t_sleep(0.02);
	ck_assert_str_eq(v.stop.text, "the stop");
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 1, &r));
	ck_assert_int_eq(calls, 1);
	OK(evc_clear_stop(c));
	ck_assert(running(c));
	OK(evc_free(c));
}
END_TEST

/* S5: the limit of an old drain is no affair of the new round. */
START_TEST(S5_a_limit_of_an_old_round_stops_nothing)
{
	evc_coord *c = new_coord(NULL);
	evc_id id;
	int i;

	for (i = 0; i < 2; i++) {
		id = hold(c, "works on");
		OK(evc_request_drain(c, 0.6, "of the old round"));
		OK(evc_request_stop(c, 0, "sooner"));
		ck_assert_str_eq(reason_of(c, 0).text, "sooner");
		OK(evc_hold_end(c, id));
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
		ck_assert(running(c));
		id = hold(c, "of the new round");
		t_sleep(0.7);
		ck_assert(running(c));
		/* nor when it drains again, with more time */
		OK(evc_request_drain(c, 1000, NULL));
		t_sleep(0.7);
		ck_assert(draining(c));
		OK(evc_hold_end(c, id));
		UNTIL(evc_should_stop(c));
		OK(evc_clear_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(sticky_until_a_clear_which_is_refused_while_members_live)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	evc_id id = hold(s, "works-on");

	OK(evc_request_drain(c, INFINITY, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "works-on");
	ck_assert(draining(c) && draining(s));
	OK(evc_hold_end(s, id));
	UNTIL(evc_should_stop(c));
	OK(evc_join(c, NULL, NULL));
	ck_assert(evc_should_drain(c) && evc_should_drain(s));
	OK(evc_clear_stop(c));
	ck_assert(running(c) && running(s));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(a_drain_of_what_is_empty_is_a_stop)
{
	struct ev_loop *loop = ev_loop_new(0);
	int k;

	for (k = 0; k < 3; k++) {
		evc_coord *c = new_coord(k ? loop : NULL), *s;

		s = ready_scope(c, "s", NULL);
		OK(evc_request_drain(k == 2 ? s : c, INFINITY, "empty"));
		if (k == 2) {
			UNTIL((ev_run(loop, EVRUN_NOWAIT), evc_should_stop(s)));
			ck_assert(running(c));
		} else {
			UNTIL((ev_run(loop, EVRUN_NOWAIT), evc_should_stop(c)));
			HAS(reason_of(c, 0).text, "empty");
		}
		OK(evc_join(c, NULL, NULL));
		FREE_ALL(s, c);
	}
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(an_error_while_it_drains_is_a_stop_at_once)
{
	evc_coord *c = new_coord(NULL);
	evc_id id = hold(c, "works on");
	evc_verdict v;

	OK(evc_request_drain(c, INFINITY, "leave"));
	evc_fail(c, EVC_DATA_LOSS, 0, "broke meanwhile");
	ck_assert(evc_should_stop(c));
	OK(evc_hold_end(c, id));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.stop.text, "broke meanwhile");
	OK(evc_free(c));
}
END_TEST

/* ---- scopes ---- */

START_TEST(it_reaches_all_scopes_below_whatever_their_phase)
{
	struct ev_loop *loop = ev_loop_new(0);
	int k, i;

	for (k = 0; k < 2; k++) {
		evc_coord *c = new_coord(k ? loop : NULL), *s[3];
		atomic_int early[3] = { 0, 0, 0 }, late[3] = { 0, 0, 0 };
		evc_id id[3];

		s[0] = phase_scope(c, "s0", 0, 0);
		s[1] = phase_scope(c, "s1", 5, 0);
		s[2] = phase_scope(s[1], "s2", 3, 0);
		for (i = 0; i < 3; i++) {
			hook_on_drain(s[i], &early[i]);
			OK(evc_on_stop(s[i], "late", count_hook, &late[i], NULL,
				       NULL));
			id[i] = hold(s[i], "works on");
		}
		OK(evc_request_drain(c, INFINITY, NULL));
		for (i = 0; i < 3; i++)
			ck_assert(draining(s[i]));
		for (i = 0; i < 3; i++)
			UNTIL((ev_run(loop, EVRUN_NOWAIT),
			       atomic_load(&early[i]) == 1));
		NOT_YET(late[0] || late[1] || late[2]);
		/* what lives below keeps it from being a stop */
		OK(evc_hold_end(s[0], id[0]));
		OK(evc_hold_end(s[2], id[2]));
		ev_run(loop, EVRUN_NOWAIT);
		NOT_YET(!draining(c) || !draining(s[0]) || !draining(s[1]) ||
			!draining(s[2]));
		OK(evc_hold_end(s[1], id[1]));
		UNTIL((ev_run(loop, EVRUN_NOWAIT), evc_should_stop(c)));
		OK(evc_join(c, NULL, NULL));
		for (i = 0; i < 3; i++) {
			BY_PARENT(s[i]);
			ck_assert_int_eq(early[i], 1);
			ck_assert_int_eq(late[i], 1);
		}
		OK(evc_clear_stop(c));
		for (i = 0; i < 3; i++)
			ck_assert(running(s[i]));
		for (i = 2; i >= 0; i--)
			OK(evc_free(s[i]));
		OK(evc_free(c));
	}
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_service_in_the_background_of_a_scope_stays_until_all_are_done)
{
	evc_member_opts background = { .flags = EVC_BACKGROUND };
	evc_coord *c = new_coord(NULL), *log, *work;
	evc_id id;

	log = phase_scope(c, "log", 1, 0);
	work = phase_scope(c, "work", 0, 0);
	OK(evc_thread_start(log, "log", obey, NULL, &background, NULL));
	id = hold(work, "works on");
	OK(evc_request_drain(c, INFINITY, NULL));
	NOT_YET(!draining(log) || !draining(work) || !draining(c));
	OK(evc_hold_end(work, id));
	UNTIL(evc_should_stop(c));
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(log, work, c);
}
END_TEST

START_TEST(the_drain_of_a_scope_is_its_own)
{
	evc_coord *c = new_coord(NULL), *s, *below, *beside;
	evc_id id, other = 0;

	s = ready_scope(c, "s", NULL);
	below = ready_scope(s, "below", NULL);
	beside = ready_scope(c, "beside", NULL);
	other = hold(beside, "works on");
	id = hold(below, "works on");
	OK(evc_request_drain(s, INFINITY, "the part"));
	ck_assert(draining(s) && draining(below));
	ck_assert(running(c) && running(beside));
	OK(evc_hold_end(below, id));
	UNTIL(evc_should_stop(s));
	HAS(reason_of(s, 0).text, "the part");
	UNTIL(evc_should_stop(below));
	BY_PARENT(below);
	NOT_YET(!running(c) || !running(beside));
	OK(evc_clear_stop(s));
	ck_assert(running(s) && running(below));
	OK(evc_hold_end(beside, other));
	FREE_ALL(below, s, beside, c);
}
END_TEST

START_TEST(a_scope_of_what_drains_is_born_draining)
{
	evc_coord *c = new_coord(NULL), *s, *t;
	atomic_int calls = 0;
	evc_id id = hold(c, "works on");

	OK(evc_request_drain(c, INFINITY, NULL));
	s = new_scope(c, "s", NULL);
	t = phase_scope(s, "t", 4, 0);
	ck_assert(draining(s) && draining(t));
	hook_on_drain(t, &calls);
	UNTIL(atomic_load(&calls) == 1);
	OK(evc_hold_end(c, id));
	NOT_YET(!draining(c)); /* held, until it is ready */
	OK(evc_scope_ready(s));
	UNTIL(evc_should_stop(c));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(calls, 1);
	FREE_ALL(t, s, c);
}
END_TEST

START_TEST(a_scope_cleared_while_its_parent_drains_drains_again)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	atomic_int calls = 0;
	evc_id id = hold(c, "works on");

	hook_on_drain(s, &calls);
	OK(evc_request_drain(c, INFINITY, NULL));
	UNTIL(atomic_load(&calls) == 1);
	OK(evc_request_stop(s, 0, NULL));
	OK(evc_join(s, NULL, NULL));
	OK(evc_clear_stop(s));
	ck_assert(draining(s));
	UNTIL(atomic_load(&calls) == 2); /* once a round */
	OK(evc_hold_end(c, id));
	UNTIL(evc_should_stop(c));
	OK(evc_join(c, NULL, NULL));
	BY_PARENT(s);
	FREE_ALL(s, c);
}
END_TEST

/* ---- phases begin at the stop that it becomes ---- */

START_TEST(phases_begin_at_the_stop_that_it_becomes)
{
	struct driver d = { .config.grace = INFINITY };
	int how;

	for (how = 0; how < BY_JOIN_FIRST; how++) {
		evc_coord *c = driver_make(&d, how), *a, *b;
		evc_id in_a, in_b;

		a = phase_scope(c, "a", 0, 0);
		b = phase_scope(c, "b", 1, 0);
		in_a = hold(a, "a");
		in_b = hold(b, "b");
		driver_go(&d);
		OK(evc_request_drain(c, 0.1, "closing time"));
		ck_assert(evc_should_drain(a) && evc_should_drain(b));
		UNTIL(evc_should_stop(c));
		UNTIL(evc_should_stop(a));
		NOT_YET(!draining(b)); /* it drains on, until its turn */
		OK(evc_hold_end(a, in_a));
		UNTIL(evc_should_stop(b));
		OK(evc_hold_end(b, in_b));
		OK(driver_wait(&d));
		HAS(d.v.stop.text, "closing time");
		FREE_ALL(a, b);
		driver_end(&d);
	}
}
END_TEST

API_MAIN("drain_scopes", a_second_drain_can_only_bring_the_limit_nearer,
	 after_the_stop_it_changes_nothing,
	 S5_a_limit_of_an_old_round_stops_nothing,
	 sticky_until_a_clear_which_is_refused_while_members_live,
	 a_drain_of_what_is_empty_is_a_stop,
	 an_error_while_it_drains_is_a_stop_at_once,
	 it_reaches_all_scopes_below_whatever_their_phase,
	 a_service_in_the_background_of_a_scope_stays_until_all_are_done,
	 the_drain_of_a_scope_is_its_own,
	 a_scope_of_what_drains_is_born_draining,
	 a_scope_cleared_while_its_parent_drains_drains_again,
	 phases_begin_at_the_stop_that_it_becomes)
