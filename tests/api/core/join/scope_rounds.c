/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rounds of scopes: whose stop a clear takes back, a clear under a stopped
 * parent, and what bars a clear.  The callback at the end of a round stands in
 * scope_ended.c.
 */
#include "../../../support/scope_util.h"

START_TEST(a_clear_of_the_parent_clears_what_was_only_inherited)
{
	evc_coord *c = new_coord(NULL), *s, *t;
	evc_verdict v;
	evc_reason r;
	unsigned i;
	int fd;

	s = ready_scope(c, "s", NULL);
	t = ready_scope(s, "t", NULL);
	fd = evc_stop_fd(t);
	for (i = 1; i <= 20; i++) {
		OK(evc_thread_start(t, "obeys", obey, NULL, NULL, NULL));
		OK(evc_request_stop(c, 0, NULL));
		BY_PARENT(t);
		ck_assert(readable(fd));
		OK(evc_join(c, NULL, NULL));
		OK(evc_join(t, NULL, &v));
		ck_assert_uint_eq(v.round, i);
		ck_assert_uint_eq(v.n_ended, 1);
		OK(evc_clear_stop(c));
		ck_assert(!evc_should_stop(c));
		ck_assert(!evc_should_stop(s));
		ck_assert(!evc_should_stop(t));
		ck_assert(!evc_joined(t));
		ck_assert(!readable(fd));
		REFUSED(EVC_NOT_FOUND, evc_reason_get(t, 0, &r));
	}
	FREE_ALL(t, s, c);
}
END_TEST

/* Asked for before the parent's stop, or after it: both are its own. */
START_TEST(a_stop_of_its_own_stays_when_the_parent_is_cleared)
{
	int after;

	for (after = 0; after < 2; after++) {
		evc_coord *c = new_coord(NULL), *s, *below, *beside;

		s = ready_scope(c, "s", NULL);
		below = ready_scope(s, "below", NULL);
		beside = ready_scope(c, "beside", NULL);
		if (after)
			OK(evc_request_stop(c, 0, NULL));
		OK(evc_request_stop(s, 0, "its own"));
		if (!after)
			OK(evc_request_stop(c, 0, NULL));
		OK(evc_clear_stop(c));
		ck_assert(!evc_should_stop(c));
		ck_assert(!evc_should_stop(beside));
		ck_assert(evc_should_stop(s));
		ck_assert(evc_should_stop(below)); /* s is stopped still */
		ck_assert_str_eq(reason_of(s, after ? 1 : 0).text, "its own");
		OK(evc_clear_stop(s));
		ck_assert(!evc_should_stop(s));
		ck_assert(!evc_should_stop(below));
		/* the mark was of that round: the next one is inherited */
		OK(evc_request_stop(c, 0, NULL));
		BY_PARENT(s);
		OK(evc_clear_stop(c));
		ck_assert(!evc_should_stop(s));
		FREE_ALL(below, s, beside, c);
	}
}
END_TEST

START_TEST(a_stop_of_its_own_further_down_stays_too)
{
	evc_coord *c = new_coord(NULL), *s, *t;

	s = ready_scope(c, "s", NULL);
	t = ready_scope(s, "t", NULL);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_request_stop(t, EVC_OUT_OF_RANGE, "its own"));
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(s));
	ck_assert(evc_should_stop(t));
	OK(evc_clear_stop(s)); /* nothing to do, and nothing of t's */
	ck_assert(evc_should_stop(t));
	OK(evc_clear_stop(t));
	ck_assert(!evc_should_stop(t));
	FREE_ALL(t, s, c);
}
END_TEST

START_TEST(a_scope_cleared_under_a_stopped_parent_is_asked_anew_at_once)
{
	evc_coord *c = new_coord(NULL), *s, *below;
	atomic_int calls = 0;
	evc_verdict v;
	unsigned i;

	s = ready_scope(c, "s", NULL);
	below = ready_scope(s, "below", NULL);
	OK(evc_on_stop(s, "hook", count_hook, &calls, NULL, NULL));
	evc_fail(s, EVC_DATA_LOSS, 0, "of round 1");
	ck_assert(evc_should_stop(c));
	for (i = 1; i <= 5; i++) {
		ck_assert_int_eq(evc_join(s, NULL, &v),
				 i == 1 ? EVC_DATA_LOSS : 0);
		ck_assert_uint_eq(v.round, i);
		ck_assert_int_eq(calls, (int)i); /* each is a stop */
		OK(evc_clear_stop(s));
		BY_PARENT(s);
		BY_PARENT(below);
		OK(evc_raise_requested(s, NULL));
		ck_assert(evc_wait_for_stop(s, 0));
		REFUSED(EVC_CANCELLED, evc_hold_begin(s, "no", NULL, NULL));
	}
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(s));
	ck_assert(!evc_should_stop(below));
	FREE_ALL(below, s, c);
}
END_TEST

START_TEST(a_clear_is_refused_while_something_lives_below)
{
	evc_coord *c = new_coord(NULL), *s, *t, *half;
	struct guest g = { 0 };
	evc_id id;

	s = ready_scope(c, "s", NULL);
	t = ready_scope(s, "t", NULL);
	id = hold(t, "deep-hold");
	OK(evc_thread_start(t, "deep-thread", stay, &g, NULL, NULL));
	OK(evc_request_stop(c, 0, "stays"));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "deep-hold");
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(s));
	/* nothing has changed, anywhere */
	ck_assert(evc_should_stop(c));
	ck_assert(evc_should_stop(s));
	ck_assert(evc_should_stop(t));
	ck_assert_str_eq(reason_of(c, 0).text, "stays");
	OK(evc_hold_end(t, id));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "deep-thread");
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	half = new_scope(s, "half-made", NULL);
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "half-made");
	OK(evc_scope_ready(half));
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(half));
	FREE_ALL(half, t, s, c);
}
END_TEST

START_TEST(a_clear_is_refused_while_a_join_waits_in_a_scope)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s = ready_scope(c, "s", NULL);

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(s, ignore_verdict, NULL, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(s));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	ck_assert(evc_should_stop(s));
	ev_run(loop, 0);
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(s));
	FREE_ALL(s, c);
	ev_loop_destroy(loop);
}
END_TEST

static evc_status
clear_the_parent(evc_coord *c, void *arg)
{
	evc_wait_for_stop(c, INFINITY);
	atomic_store((atomic_int *)arg, evc_clear_stop(evc_scope_parent(c)));
	return 0;
}

START_TEST(a_member_of_a_scope_that_clears_the_parent_is_left_out_itself)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	atomic_int st = 77;

	OK(evc_thread_start(s, "clears", clear_the_parent, &st, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&st) != 77);
	OK(st);
	OK(evc_join(c, NULL, NULL));
	ck_assert(!evc_should_stop(c));
	ck_assert(!evc_should_stop(s));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(hooks_of_a_scope_are_called_once_for_each_stop)
{
	struct ev_loop *loop = ev_loop_new(0);
	int with_loop, i;

	for (with_loop = 0; with_loop < 2; with_loop++) {
		evc_coord *c = new_coord(with_loop ? loop : NULL), *s;
		atomic_int calls = 0;

		s = ready_scope(c, "s", NULL);
		OK(evc_on_stop(s, "h", count_hook, &calls, NULL, NULL));
		for (i = 1; i <= 6; i++) {
			if (i % 3 == 0)
				OK(evc_request_stop(s, 0, NULL));
			OK(evc_request_stop(c, 0, NULL));
			if (i % 3 == 1)
				OK(evc_request_stop(s, 0, NULL));
			OK(evc_join(c, NULL, NULL));
			ck_assert_int_eq(calls, i);
			OK(evc_clear_stop(c));
			if (i % 3 != 2)
				OK(evc_clear_stop(s));
			ck_assert(!evc_should_stop(s));
		}
		FREE_ALL(s, c);
	}
	ev_loop_destroy(loop);
}
END_TEST

/* A scope that goes on by itself: its rounds are not its parent's. */
START_TEST(rounds_of_a_scope_are_its_own)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	evc_verdict v;
	unsigned i;

	for (i = 1; i <= 10; i++) {
		OK(evc_request_stop(s, 0, NULL));
		OK(evc_join(s, NULL, &v));
		ck_assert_uint_eq(v.round, i);
		OK(evc_clear_stop(s));
	}
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.round, 1);
	OK(evc_join(s, NULL, &v));
	ck_assert_uint_eq(v.round, 11);
	FREE_ALL(s, c);
}
END_TEST

/* Whatever the order was: in the end all the signs say the same. */
START_TEST(clears_of_scope_and_parent_beside_requests_agree_in_the_end)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	int fd = evc_stop_fd(s), i;
	struct requests r;

	requests_begin(&r, c);
	for (i = 0; i < 1000 || atomic_load(&r.n) < 2000; i++) {
		OK(evc_clear_stop(i % 2 ? c : s));
		if (i % 8 == 0) { /* N1: nobody else clears */
			OK(evc_request_stop(c, 0, "mine"));
			ck_assert(evc_should_stop(s));
		}
	}
	requests_end(&r);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(evc_should_stop(s));
	ck_assert(readable(fd));
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(s));
	ck_assert(!readable(fd));
	FREE_ALL(s, c);
}
END_TEST

API_MAIN("scope_rounds", a_clear_of_the_parent_clears_what_was_only_inherited,
	 a_stop_of_its_own_stays_when_the_parent_is_cleared,
	 a_stop_of_its_own_further_down_stays_too,
	 a_scope_cleared_under_a_stopped_parent_is_asked_anew_at_once,
	 a_clear_is_refused_while_something_lives_below,
	 a_clear_is_refused_while_a_join_waits_in_a_scope,
	 a_member_of_a_scope_that_clears_the_parent_is_left_out_itself,
	 hooks_of_a_scope_are_called_once_for_each_stop,
	 rounds_of_a_scope_are_its_own,
	 clears_of_scope_and_parent_beside_requests_agree_in_the_end)
