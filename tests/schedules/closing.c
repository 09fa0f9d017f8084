/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing a round and clearing it, stepped: what comes in between the steps of
 * who closes is either in the round or handed back, never lost.
 */
#include "schedules.h"

/* The steps of a closing: set CLOSING, look at the count, swap. */
static const struct place closing[] = {
	{"cas", "close_round", 1},
	{"load", "close_round", 1},
	{"cas", "close_round", 2},
};

/* ---- closing ---- */

/* The error comes while the closer stands.  Fails when the round is closed by
   anything but a CAS on the word that was seen empty. */
static void
error_before(const struct place *p, bool stopped)
{
	evc_coord *c = new_coord(NULL);
	struct actor a;
	evc_verdict v;
	int h;

	if (stopped)
		OK(evc_request_stop(c, 0, "stop"));
	h = hold_at(p);
	actor_begin(&a, do_join, c, &v);
	HELD(h);
	OK(evc_request_stop(c, EVC_INTERNAL, "in time"));
	seam_release(h);
	ck_assert_int_eq(actor_end(&a), EVC_INTERNAL);
	ck_assert_str_eq(v.error.text, "in time");
	ck_assert_uint_eq(v.n_errors, 1);
	OK(evc_free(c));
}

/* The closer comes while the error stands before its CAS.  Fails when a
   request does not look for JOINED. */
static void
error_after(bool stopped)
{
	evc_coord *c = new_coord(NULL);
	struct ask late = {EVC_INTERNAL, "too late"};
	struct actor a;
	evc_verdict v;
	int h;

	if (stopped)
		OK(evc_request_stop(c, 0, "stop"));
	h = seam_hold("cas", "record_request", 1);
	actor_begin(&a, do_request, c, &late);
	HELD(h);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	seam_release(h);
	ck_assert_int_eq(actor_end(&a), EVC_INTERNAL);
	ck_assert(evc_should_stop(c) == stopped);
	ck_assert_int_eq(evc_raise_requested(c, NULL), 0);
	OK(evc_join(c, NULL, &v));
	ck_assert(is_kept(c, "too late"));
	OK(evc_free(c));
}

START_TEST(closing_against_an_error_stepped_on_both_sides)
{
	size_t i;

	for (i = 0; i < N_OF(closing); i++) {
		error_before(&closing[i], false);
		error_before(&closing[i], true);
	}
	error_after(false);
	error_after(true);
}
END_TEST

/* The same for an error that only counts.  Fails when it does not look at the
   word after it was counted. */
START_TEST(closing_against_a_second_error_stepped_on_both_sides)
{
	struct ask second = {EVC_INTERNAL, "second"};
	struct actor a;
	evc_verdict v;
	size_t i;
	int h;

	for (i = 0; i < N_OF(closing); i++) {
		evc_coord *c = new_coord(NULL);

		OK(evc_request_stop(c, EVC_NOT_FOUND, "first"));
		h = hold_at(&closing[i]);
		actor_begin(&a, do_join, c, &v);
		HELD(h);
		OK(evc_request_stop(c, EVC_INTERNAL, "second"));
		seam_release(h);
		ck_assert_int_eq(actor_end(&a), EVC_NOT_FOUND);
		ck_assert_uint_eq(v.n_errors, 2);
		OK(evc_free(c));
	}
	for (i = 0; i < N_OF(at_the_count); i++) {
		evc_coord *c = new_coord(NULL);

		OK(evc_request_stop(c, EVC_NOT_FOUND, "first"));
		h = hold_at(&at_the_count[i]);
		actor_begin(&a, do_request, c, &second);
		HELD(h);
		ck_assert_int_eq(evc_join(c, NULL, &v), EVC_NOT_FOUND);
		/* Counted or not, it is not taken for accepted. */
		seam_release(h);
		ck_assert_int_eq(actor_end(&a), EVC_INTERNAL);
		ck_assert(is_kept(c, "second"));
		OK(evc_free(c));
	}
}
END_TEST

static const evc_task_class early = { .name = "early" };
static const evc_task_class late = { .name = "late", .flags = EVC_AFTER_STOP };

/* Fails when the count is not looked at again under CLOSING, and when a begin
   leaves CLOSING in the word. */
START_TEST(closing_against_a_task_that_begins)
{
	struct actor a;
	evc_verdict v;
	size_t i;
	int h;

	for (i = 0; i < N_OF(closing); i++) {
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_coord(loop);
		evc_task t = {0};

		h = hold_at(&closing[i]);
		actor_begin(&a, do_join, c, &v);
		HELD(h);
		OK(evc_task_begin(evc_home(c), &t, &early));
		seam_release(h);
		actor_sleeps(&a);
		evc_task_end(&t);
		OK(actor_end(&a));
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

/* A loop of its own, with one task on it. */
struct own_loop {
	struct t_gate begun, end;
};

static evc_status
one_task(evc_coord *c, void *arg)
{
	struct own_loop *o = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_task t = {0};
	evc_reactor *r = NULL;
	evc_status st = evc_reactor_attach(c, "own", loop, &r);

	if (st == 0)
		st = evc_task_begin(r, &t, &early);
	gate_step(&o->begun);
	gate_await(&o->end, 1);
	evc_task_end(&t);
	if (st == 0)
		st = evc_reactor_detach(r);
	ev_loop_destroy(loop);
	return st;
}

/* The begin stands between its steps while somebody joins.  Fails when a task
   is shown only after it was counted. */
START_TEST(closing_while_a_task_stands_in_its_begin)
{
	static const struct place begin[] = {
		{"load", "evc__alive_add", 1},
		{"cas", "evc__alive_add", 1},
		{"load", "evc__reopen", 1},
	};
	struct actor a, j;
	evc_verdict v;
	size_t i;
	int h;

	for (i = 0; i < N_OF(begin); i++) {
		struct own_loop o = {GATE_INIT, GATE_INIT};
		evc_coord *c = new_coord(NULL);

		h = hold_at(&begin[i]);
		actor_begin(&a, one_task, c, &o);
		HELD(h);
		actor_begin(&j, do_join, c, &v);
		actor_sleeps(&j);
		seam_release(h);
		ck_assert(gate_await(&o.begun, 1));
		actor_sleeps(&j);
		gate_step(&o.end);
		OK(actor_end(&a));
		OK(actor_end(&j));
		OK(evc_free(c));
	}
}
END_TEST

/* ---- joined ---- */

/* The round is closed, its verdict not yet written.  Fails when an error is
   taken in there. */
START_TEST(joined_round_hands_errors_back_and_answers_the_same)
{
	evc_coord *c = new_coord(NULL);
	struct actor a, b;
	evc_verdict v, v2;
	int h;

	h = seam_hold("load", "evc__n_errors", 1);
	actor_begin(&a, do_join, c, &v);
	HELD(h);
	ck_assert_int_eq(evc_request_stop(c, EVC_INTERNAL, "late"),
			 EVC_INTERNAL);
	ck_assert(!evc_should_stop(c));
	actor_begin(&b, do_join, c, &v2);
	actor_sleeps(&b);
	seam_release(h);
	OK(actor_end(&a));
	OK(actor_end(&b));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_mem_eq(&v, &v2, sizeof(v));
	/* A plain request sets the flag all the same. */
	OK(evc_request_stop(c, 0, "plain"));
	ck_assert(evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

/* Fails when a registration leaves JOINED in the word. */
START_TEST(joined_round_is_opened_by_a_registration)
{
	evc_coord *c = new_coord(NULL);
	struct actor a;
	struct joiner j;
	evc_id id = 0;
	int h;

	OK(evc_join(c, NULL, NULL));
	h = seam_hold("cas", "evc__reopen", 1);
	actor_begin(&a, do_hold, c, &id);
	HELD(h);
	/* Closed still. */
	ck_assert_int_eq(evc_request_stop(c, EVC_DATA_LOSS, "late"),
			 EVC_DATA_LOSS);
	seam_release(h);
	OK(actor_end(&a));
	join_begin(&j, c, INFINITY, 0);
	ck_assert(still_waits(&j));
	OK(evc_request_stop(c, EVC_INTERNAL, "in time"));
	OK(evc_hold_end(c, id));
	ck_assert_int_eq(join_end(&j), EVC_INTERNAL);
	ck_assert_uint_eq(j.v.n_errors, 1);
	OK(evc_free(c));
}
END_TEST

/* evc_joined is a mark of its own.  Fails when it reads JOINED, and when an
   answer does not set it. */
START_TEST(joined_says_that_a_join_of_this_round_has_returned)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts o = {.grace = EVC_NO_GRACE};
	struct actor a;
	evc_id id = 0;
	int h;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_request_stop(c, 0, "stop"));
	ck_assert_int_eq(evc_join(c, &o, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert(evc_joined(c));
	OK(evc_hold_end(c, id));
	OK(evc_clear_stop(c));
	ck_assert(!evc_joined(c));
	h = seam_hold("store", "answer_join", 1);
	actor_begin(&a, do_join, c, NULL);
	HELD(h);
	ck_assert(!evc_joined(c));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert(evc_joined(c));
	OK(evc_clear_stop(c));
	ck_assert(!evc_joined(c));
	OK(evc_free(c));
}
END_TEST

/* ---- clear ---- */

/* Fails when the count is not looked at under CLOSING, and when a begin leaves
   CLOSING in the word. */
START_TEST(clear_against_a_task_that_begins)
{
	static const struct place clearing[] = {
		{ "cas", "clear_stop", 1 },
		{ "load", "check_alive", 1 },
		{ "cas", "clear_stop", 2 },
	};
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(clearing); i++) {
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_coord(loop);
		evc_task t = {0};

		OK(evc_request_stop(c, 0, "stop"));
		h = hold_at(&clearing[i]);
		actor_begin(&a, do_clear, c, NULL);
		HELD(h);
		OK(evc_task_begin(evc_home(c), &t, &late));
		seam_release(h);
		ck_assert_int_eq(actor_end(&a), -EVC_FAILED_PRECONDITION);
		ck_assert(evc_should_stop(c));
		evc_task_end(&t);
		OK(evc_clear_stop(c));
		ck_assert(!evc_should_stop(c));
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

/* The winner stands before its walk, and the clear comes first.  Fails when
   the clear does not walk. */
START_TEST(clear_tells_whom_the_frozen_winner_has_not_told)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct ask win = {0, "winner"};
	atomic_int told = 0;
	struct waiter w;
	struct actor a;
	int h;

	OK(evc_on_stop(c, "hook", count_hook, &told, NULL, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	waiter_begin(&w, c, INFINITY);
	UNTIL(atomic_load(&w.tid) != 0);
	until_asleep(atomic_load(&w.tid));
	h = seam_hold("load", "enter_level", 1);
	actor_begin(&a, do_request, c, &win);
	HELD(h);
	OK(evc_clear_stop(c));
	UNTIL(atomic_load(&w.released));
	OK(pthread_join(w.thread, NULL));
	ck_assert(w.answer);
	seam_release(h);
	OK(actor_end(&a));
	/* The loop has not turned in between: it runs its hook once. */
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(atomic_load(&told), 1);
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

SCHEDULES_MAIN("closing", closing_against_an_error_stepped_on_both_sides,
	       closing_against_a_second_error_stepped_on_both_sides,
	       closing_against_a_task_that_begins,
	       closing_while_a_task_stands_in_its_begin,
	       joined_round_hands_errors_back_and_answers_the_same,
	       joined_round_is_opened_by_a_registration,
	       joined_says_that_a_join_of_this_round_has_returned,
	       clear_against_a_task_that_begins,
	       clear_tells_whom_the_frozen_winner_has_not_told)
