/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_scope_opts.ended: called once a round after the scope's stop, on its home
 * loop or on the helper thread, when its members are gone or its grace is over;
 * it may free the scope, and bars nothing.
 */
#include "../../../support/scope_util.h"

struct ended {
	atomic_int calls, tid;
	_Atomic(evc_coord *) c;
	evc_verdict v;
	bool frees;
	evc_status freed;
};

static void
on_ended(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct ended *e = arg;

	e->v = *v;
	atomic_store(&e->tid, own_tid());
	atomic_store(&e->c, c);
	if (e->frees)
		e->freed = evc_free(c);
	atomic_fetch_add(&e->calls, 1);
}

static evc_coord *
scope_with(evc_coord *parent, struct ended *e, double grace)
{
	evc_scope_opts opts = { .ended = on_ended,
				.arg = e,
				.config.grace = grace };

	return ready_scope(parent, "the-scope", &opts);
}

/* Let the loop turn, if there is one, until cond is true. */
#define UNTIL_TURNING(loop, cond) UNTIL((turn(loop), (cond)))

START_TEST(once_a_round_after_the_stop_whoever_asked)
{
	struct ev_loop *loops[2] = { NULL, ev_loop_new(0) };
	int k, i;

	for (k = 0; k < 2; k++) {
		struct ev_loop *loop = loops[k];
		evc_coord *c = new_coord(loop), *s;
		struct ended e = { 0 };

		s = scope_with(c, &e, 0);
		/* empty again and again, but not stopped: no end */
		OK(evc_hold_end(s, hold(s, "brief")));
		OK(evc_join(s, NULL, NULL));
		OK(evc_clear_stop(s));
		t_sleep(0.01);
		turn(loop);
		ck_assert_int_eq(e.calls, 0);
		for (i = 1; i <= 6; i++) {
			OK(evc_thread_start(s, "obeys", obey, NULL, NULL,
					    NULL));
			if (i % 3 == 0)
				evc_fail(s, EVC_DATA_LOSS, 0, "an error");
			else
				OK(evc_request_stop(i % 3 == 1 ? s : c, 0,
						    "a stop"));
			UNTIL_TURNING(loop, atomic_load(&e.calls) == i);
			ck_assert_ptr_eq(e.c, s);
			ck_assert_uint_eq(e.v.round, (unsigned)i);
			ck_assert_uint_eq(e.v.n_ended, i == 1 ? 2 : 1);
			ck_assert_uint_eq(e.v.n_stragglers, 0);
			ck_assert_int_eq(e.v.code, i % 3 ? 0 : EVC_DATA_LOSS);
			ck_assert_uint_ne(e.v.stop.kind, 0);
			if (k)
				ck_assert_int_eq(e.tid, own_tid());
			else
				ck_assert_int_ne(e.tid, own_tid());
			OK(evc_request_stop(s, 0, "again"));
			turn(loop);
			t_sleep(0.01);
			ck_assert_int_eq(e.calls, i);
			OK(evc_clear_stop(c));
			OK(evc_clear_stop(s));
		}
		FREE_ALL(s, c);
	}
	ev_loop_destroy(loops[1]);
}
END_TEST

START_TEST(not_before_the_members_are_gone)
{
	struct ev_loop *loops[2] = { NULL, ev_loop_new(0) };
	int k;

	for (k = 0; k < 2; k++) {
		struct ev_loop *loop = loops[k];
		evc_coord *c = new_coord(loop), *s, *below;
		struct ended e = { 0 };
		struct guest g = { 0 };
		evc_id id;

		s = scope_with(c, &e, INFINITY);
		below = ready_scope(s, "below", NULL);
		id = hold(s, "hold");
		OK(evc_thread_start(below, "stays", stay, &g, NULL, NULL));
		OK(evc_request_stop(s, 0, NULL));
		turn(loop);
		NOT_YET(atomic_load(&e.calls));
		OK(evc_hold_end(s, id));
		turn(loop);
		NOT_YET(atomic_load(&e.calls));
		atomic_store(&g.open, 1);
		UNTIL_TURNING(loop, atomic_load(&e.calls) == 1);
		ck_assert_int_eq(e.v.code, 0);
		FREE_ALL(below, s, c);
	}
	ev_loop_destroy(loops[1]);
}
END_TEST

START_TEST(when_its_grace_is_over_with_who_is_late)
{
	struct ev_loop *loops[2] = { NULL, ev_loop_new(0) };
	int k;

	for (k = 0; k < 2; k++) {
		struct ev_loop *loop = loops[k];
		evc_coord *c = new_coord(loop), *s;
		struct ended e = { 0 };
		double start = t_now();
		evc_id id;

		s = scope_with(c, &e, 0.1);
		id = hold(s, "late-one");
		OK(evc_request_stop(c, 0, NULL));
		UNTIL_TURNING(loop, atomic_load(&e.calls) == 1);
		ck_assert_double_ge(t_now() - start, 0.1);
		ck_assert_int_eq(e.v.code, EVC_DEADLINE_EXCEEDED);
		ck_assert_uint_eq(e.v.n_stragglers, 1);
		HAS(e.v.error.text, "late-one");
		/* its end does not call it again */
		OK(evc_hold_end(s, id));
		turn(loop);
		NOT_YET(atomic_load(&e.calls) != 1);
		OK(evc_clear_stop(c));

		/* in the next round it is called again */
		OK(evc_request_stop(c, 0, NULL));
		UNTIL_TURNING(loop, atomic_load(&e.calls) == 2);
		ck_assert_int_eq(e.v.code, 0);
		FREE_ALL(s, c);
	}
	ev_loop_destroy(loops[1]);
}
END_TEST

/* What is left of the parent's bounds it, though nobody joins. */
START_TEST(the_parents_grace_bounds_it)
{
	evc_config cfg = { .grace = 0.1 };
	evc_coord *c = new_coord_with(NULL, &cfg), *s;
	struct ended e = { 0 };
	evc_id id;

	s = scope_with(c, &e, 1000);
	id = hold(s, "late-one");
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&e.calls) == 1);
	ck_assert_int_eq(e.v.code, EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(s, id));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(a_loop_that_sleeps_is_woken_for_it)
{
	struct driver d = { .config.grace = INFINITY };
	evc_coord *c = driver_make(&d, BY_RUN), *s, *t;
	struct ended early = { 0 }, late = { 0 };
	evc_id id;

	s = scope_with(c, &early, 0);
	t = scope_with(c, &late, 0.1);
	driver_go(&d);
	OK(evc_thread_start(s, "obeys", obey, NULL, NULL, NULL));
	OK(evc_request_stop(s, 0, NULL));
	UNTIL(atomic_load(&early.calls) == 1);
	ck_assert_int_eq(early.tid, d.tid);
	id = hold(t, "late-one");
	OK(evc_request_stop(t, 0, NULL));
	UNTIL(atomic_load(&late.calls) == 1);
	ck_assert_int_eq(late.tid, d.tid);
	ck_assert_int_eq(late.v.code, EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(t, id));
	FREE_ALL(s, t);
	driver_stop(&d);
	OK(driver_wait(&d));
	driver_end(&d);
}
END_TEST

/* A library frees its scope there and needs to know nothing else. */
START_TEST(the_scope_may_be_freed_in_it)
{
	struct ev_loop *loops[2] = { NULL, ev_loop_new(0) };
	int k, i;

	for (k = 0; k < 2; k++)
		for (i = 0; i < 20; i++) {
			struct ev_loop *loop = loops[k];
			evc_coord *c = new_coord(loop), *s;
			struct ended e = { .frees = true, .freed = 77 };

			s = scope_with(c, &e, 0);
			OK(evc_thread_start(s, "obeys", obey, NULL, NULL,
					    NULL));
			OK(evc_request_stop(i % 2 ? c : s, 0, NULL));
			OK(evc_join(c, NULL, NULL));
			UNTIL_TURNING(loop, atomic_load(&e.calls) == 1);
			OK(e.freed);
			OK(evc_free(c));
		}
	ev_loop_destroy(loops[1]);
}
END_TEST

START_TEST(freed_in_it_the_host_has_nothing_left_to_do)
{
	struct driver d = { 0 };
	int how;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how), *s, *t;
		struct ended e = { .frees = true, .freed = 77 };
		struct ended f = { .frees = true, .freed = 77 };

		s = scope_with(c, &e, 0);
		t = scope_with(s, &f, 0);
		OK(evc_thread_start(s, "obeys", obey, NULL, NULL, NULL));
		OK(evc_thread_start(t, "obeys", obey, NULL, NULL, NULL));
		/* the one below first: s cannot be freed before it */
		OK(evc_request_stop(t, 0, NULL));
		if (how == BY_RUN || how == BY_START)
			driver_go(&d);
		UNTIL(atomic_load(&f.calls) == 1);
		OK(f.freed);
		if (how != BY_RUN && how != BY_START)
			driver_go(&d);
		driver_stop(&d);
		OK(driver_wait(&d));
		/* the host frees without another look at the library */
		driver_end(&d);
		ck_assert_int_eq(e.calls, 1);
		OK(e.freed);
	}
}
END_TEST

START_TEST(it_bars_neither_clear_nor_free)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s;
	struct ended e = { 0 };
	int i;

	s = scope_with(c, &e, 0);
	for (i = 0; i < 3; i++) { /* the loop does not turn */
		OK(evc_request_stop(i ? c : s, 0, NULL));
		OK(evc_clear_stop(c));
		OK(evc_clear_stop(s));
	}
	turn(loop);
	ck_assert_int_eq(e.calls, 1); /* they are told as one */
	OK(evc_request_stop(s, 0, NULL));
	OK(evc_free(s)); /* L1: it is dropped */
	turn(loop);
	ck_assert_int_eq(e.calls, 1);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(L1_not_called_after_free_on_the_helper_thread)
{
	evc_coord *c = new_coord(NULL), *s;
	struct ended e = { 0 };
	int i, before;

	for (i = 0; i < 200; i++) {
		s = scope_with(c, &e, 0);
		OK(evc_request_stop(s, 0, NULL));
		if (i % 3 == 0)
			UNTIL(atomic_load(&e.c) == s);
		OK(evc_free(s));
		before = atomic_load(&e.calls);
		if (i % 20 == 0) {
			t_sleep(0.005);
			ck_assert_int_eq(atomic_load(&e.calls), before);
		}
		atomic_store(&e.c, NULL);
	}
	ck_assert_int_ge(e.calls, 67);
	OK(evc_free(c));
}
END_TEST

/* The loop runs meanwhile, rung a moment before. */
START_TEST(L1_not_called_after_a_free_by_another_thread)
{
	struct driver d = { .config.grace = INFINITY };
	evc_coord *c = driver_make(&d, BY_RUN), *s;
	struct ended e = { 0 };
	int i, before;

	driver_go(&d);
	for (i = 0; i < 300; i++) {
		s = scope_with(c, &e, i % 2 ? 0 : 1000);
		OK(evc_request_stop(s, 0, NULL));
		if (i % 3 == 0)
			UNTIL(atomic_load(&e.c) == s);
		UNTIL(evc_free(s) == 0); /* or its end is just due there */
		before = atomic_load(&e.calls);
		if (i % 20 == 0) {
			t_sleep(0.005);
			ck_assert_int_eq(atomic_load(&e.calls), before);
		}
		atomic_store(&e.c, NULL);
	}
	ck_assert_int_ge(e.calls, 100);
	driver_stop(&d);
	OK(driver_wait(&d));
	driver_end(&d);
}
END_TEST

API_MAIN("scope_ended", once_a_round_after_the_stop_whoever_asked,
	 not_before_the_members_are_gone,
	 when_its_grace_is_over_with_who_is_late, the_parents_grace_bounds_it,
	 a_loop_that_sleeps_is_woken_for_it, the_scope_may_be_freed_in_it,
	 freed_in_it_the_host_has_nothing_left_to_do,
	 it_bars_neither_clear_nor_free,
	 L1_not_called_after_free_on_the_helper_thread,
	 L1_not_called_after_a_free_by_another_thread)
