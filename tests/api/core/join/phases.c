/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Phases: in what order scopes are told of their parent's stop while a join
 * drives it, in each way to join; and that without a join all are told at
 * once.  What holds up a phase stands in phase_holds.c, limits and late ones in
 * phase_limits.c, nested ones in phases_nested.c.
 */
#include "../../../support/scope_util.h"

#include <limits.h>

#define PHASES 4

/* One scope in each phase with a hold in it, the numbers with gaps. */
struct ladder {
	evc_coord *s[PHASES];
	evc_id hold[PHASES];
};

static const int number[PHASES] = { 0, 1, 7, INT_MAX };

static void
ladder_make(struct ladder *l, evc_coord *c)
{
	static const int order[PHASES] = { 2, 0, 3, 1 };
	char name[16];
	int i, k;

	for (i = 0; i < PHASES; i++) {
		k = order[i]; /* not in the order that they are made in */
		snprintf(name, sizeof(name), "scope-%d", k);
		l->s[k] = phase_scope(c, name, number[k], 0);
		l->hold[k] = hold(l->s[k], "held");
	}
}

static void
ladder_free(struct ladder *l)
{
	int i;

	for (i = 0; i < PHASES; i++)
		OK(evc_free(l->s[i]));
}

/* Told are exactly the first n. */
static bool
told(struct ladder *l, int n)
{
	int i;

	for (i = 0; i < PHASES; i++)
		if (evc_should_stop(l->s[i]) != (i < n))
			return false;
	return true;
}

START_TEST(one_after_the_other_in_every_way_to_join)
{
	struct driver d = { .config.grace = INFINITY };
	struct ladder l;
	int how, round, i;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how);

		ladder_make(&l, c);
		for (round = 0; round < 2; round++) {
			driver_go(&d);
			if (how != BY_JOIN_FIRST)
				ck_assert(told(&l, 0));
			driver_stop(&d);
			UNTIL(evc_should_stop(c));
			UNTIL(told(&l, 1));
			for (i = 0; i < PHASES; i++) {
				NOT_YET(!told(&l, i + 1));
				BY_PARENT(l.s[i]);
				OK(evc_hold_end(l.s[i], l.hold[i]));
				if (i < PHASES - 1)
					UNTIL(told(&l, i + 2));
			}
			OK(driver_wait(&d));
			ck_assert_uint_eq(d.v.n_stragglers, 0);
			OK(evc_clear_stop(c));
			ck_assert(told(&l, 0));
			for (i = 0; i < PHASES; i++)
				l.hold[i] = hold(l.s[i], "again");
		}
		for (i = 0; i < PHASES; i++)
			OK(evc_hold_end(l.s[i], l.hold[i]));
		ladder_free(&l);
		driver_end(&d);
	}
}
END_TEST

START_TEST(phase_0_is_told_in_the_request_itself)
{
	struct driver d = { .config.grace = INFINITY };
	struct ladder l;
	int how, i;

	for (how = 0; how < BY_JOIN_FIRST; how++) {
		ladder_make(&l, driver_make(&d, how));
		driver_go(&d);
		OK(evc_request_stop(d.c, 0, NULL));
		ck_assert(evc_should_stop(l.s[0]));
		ck_assert(told(&l, 1));
		for (i = 0; i < PHASES; i++)
			OK(evc_hold_end(l.s[i], l.hold[i]));
		OK(driver_wait(&d));
		ladder_free(&l);
		driver_end(&d);
	}
}
END_TEST

/* The request finds the order of the phases already under way. */
START_TEST(further_requests_do_not_hurry_it)
{
	struct driver d = { .config.grace = INFINITY };
	struct ladder l;
	int how, i;

	for (how = 0; how < N_WAYS; how++) {
		ladder_make(&l, driver_make(&d, how));
		driver_go(&d);
		driver_stop(&d);
		UNTIL(told(&l, 1));
		OK(evc_request_stop(d.c, 0, "again"));
		evc_fail(d.c, EVC_DATA_LOSS, 0, "and an error");
		evc_fail(l.s[0], EVC_DATA_LOSS, 0, "and one from below");
		NOT_YET(!told(&l, 1));
		for (i = 0; i < PHASES; i++)
			OK(evc_hold_end(l.s[i], l.hold[i]));
		ck_assert_int_eq(driver_wait(&d), EVC_DATA_LOSS);
		ladder_free(&l);
		driver_end(&d);
	}
}
END_TEST

START_TEST(without_a_join_all_are_told_at_once)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct ladder l;
	int k, i;

	for (k = 0; k < 2; k++) {
		evc_coord *c = new_coord(k ? loop : NULL);

		ladder_make(&l, c);
		OK(evc_request_stop(c, 0, NULL));
		ck_assert(told(&l, PHASES));
		for (i = 0; i < PHASES; i++) {
			BY_PARENT(l.s[i]);
			OK(evc_hold_end(l.s[i], l.hold[i]));
		}
		OK(evc_join(c, NULL, NULL));
		ladder_free(&l);
		OK(evc_free(c));
	}
	ev_loop_destroy(loop);
}
END_TEST

struct in_timer {
	struct ladder l;
	bool all_told;
};

static void
stop_in_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct in_timer *t = w->data;

	(void)loop;
	(void)revents;
	evc_request_stop(evc_scope_parent(t->l.s[0]), 0, NULL);
	t->all_told = told(&t->l, PHASES);
}

START_TEST(a_loop_that_runs_is_no_join)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct in_timer t = { .all_told = false };
	ev_timer timer;
	int i;

	ladder_make(&t.l, c);
	ev_timer_init(&timer, stop_in_timer, 0, 0);
	timer.data = &t;
	ev_timer_start(loop, &timer);
	OK(evc_reactor_run(evc_home(c)));
	ck_assert(t.all_told);
	for (i = 0; i < PHASES; i++)
		OK(evc_hold_end(t.l.s[i], t.l.hold[i]));
	OK(evc_run(c, NULL, NULL));
	ladder_free(&t.l);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Nor is one of the scope itself a join of its parent. */
START_TEST(a_join_of_a_scope_puts_off_nothing_above)
{
	evc_coord *c = new_coord(NULL);
	struct joiner j[PHASES];
	struct ladder l;
	int i;

	ladder_make(&l, c);
	for (i = 0; i < PHASES; i++)
		join_begin(&j[i], l.s[i], INFINITY, 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(told(&l, PHASES));
	for (i = 0; i < PHASES; i++) {
		OK(evc_hold_end(l.s[i], l.hold[i]));
		OK(join_end(&j[i]));
	}
	ladder_free(&l);
	OK(evc_free(c));
}
END_TEST

START_TEST(the_last_join_that_leaves_tells_the_rest)
{
	struct driver d = { .config.grace = INFINITY, .opts.grace = 0.1 };
	struct ladder l;
	int how, i;

	for (how = 0; how < N_WAYS; how++) {
		ladder_make(&l, driver_make(&d, how));
		driver_go(&d);
		driver_stop(&d);
		ck_assert_int_eq(driver_wait(&d), EVC_DEADLINE_EXCEEDED);
		/* before it has returned, as a request would */
		ck_assert(told(&l, PHASES));
		for (i = 0; i < PHASES; i++) {
			BY_PARENT(l.s[i]);
			OK(evc_hold_end(l.s[i], l.hold[i]));
		}
		ladder_free(&l);
		driver_end(&d);
	}
}
END_TEST

START_TEST(a_join_that_leaves_beside_another_tells_nobody)
{
	evc_coord *c = new_coord(NULL);
	struct joiner brief, patient;
	struct ladder l;
	int i;

	ladder_make(&l, c);
	join_begin(&brief, c, 0.1, 0);
	join_begin(&patient, c, INFINITY, 0);
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(join_end(&brief), EVC_DEADLINE_EXCEEDED);
	NOT_YET(!told(&l, 1));
	for (i = 0; i < PHASES; i++) {
		ck_assert(told(&l, i + 1));
		OK(evc_hold_end(l.s[i], l.hold[i]));
		if (i < PHASES - 1)
			UNTIL(told(&l, i + 2));
	}
	OK(join_end(&patient));
	ladder_free(&l);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_join_whose_loop_is_destroyed_leaves_too)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { .grace = INFINITY };
	evc_status code = 77;
	struct ladder l;
	int i;

	OK(evc_reactor_attach(c, "doomed", loop, &opts.reactor));
	ladder_make(&l, c);
	OK(evc_join_start(c, take_code, &code, &opts));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(told(&l, 1));
	ev_loop_destroy(loop);
	ck_assert_int_eq(code, EVC_CANCELLED);
	UNTIL(told(&l, PHASES));
	for (i = 0; i < PHASES; i++)
		OK(evc_hold_end(l.s[i], l.hold[i]));
	OK(evc_join(c, NULL, NULL));
	ladder_free(&l);
	OK(evc_free(c));
}
END_TEST

/* A join that comes after the stop finds everybody told: nothing to drive. */
START_TEST(a_join_after_the_stop_takes_nothing_back)
{
	evc_coord *c = new_coord(NULL);
	struct joiner j;
	struct ladder l;
	int i;

	ladder_make(&l, c);
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, INFINITY, 0);
	NOT_YET(!told(&l, PHASES));
	for (i = PHASES - 1; i >= 0; i--)
		OK(evc_hold_end(l.s[i], l.hold[i]));
	OK(join_end(&j));
	ladder_free(&l);
	OK(evc_free(c));
}
END_TEST

/* ---- what it is for ---- */

struct service {
	evc_coord *log, *requests;
	atomic_int lines, refused, log_ended;
};

/* Lines are taken until the log is told. */
static evc_status
log_main(evc_coord *c, void *arg)
{
	struct service *v = arg;

	evc_wait_for_stop(c, INFINITY);
	atomic_store(&v->log_ended, 1);
	return 0;
}

/* After the stop it has things to say, for a while. */
static evc_status
request_main(evc_coord *c, void *arg)
{
	struct service *v = arg;
	int i;

	evc_wait_for_stop(c, INFINITY);
	for (i = 0; i < 20; i++) {
		if (evc_should_stop(v->log) || atomic_load(&v->log_ended))
			atomic_fetch_add(&v->refused, 1);
		else
			atomic_fetch_add(&v->lines, 1);
		t_sleep(0.002);
	}
	return 0;
}

START_TEST(a_log_service_outlives_the_requests)
{
	struct driver d = { .config.grace = INFINITY };
	int how, i;

	for (how = 0; how < N_WAYS; how++) {
		evc_coord *c = driver_make(&d, how);
		struct service v = { 0 };

		v.log = phase_scope(c, "log", 3, 0);
		v.requests = phase_scope(c, "requests", 1, 0);
		OK(evc_thread_start(v.log, "log", log_main, &v, NULL, NULL));
		for (i = 0; i < 8; i++)
			OK(evc_thread_start(v.requests, "request", request_main,
					    &v, NULL, NULL));
		driver_go(&d);
		driver_stop(&d);
		OK(driver_wait(&d));
		ck_assert_int_eq(v.lines, 160);
		ck_assert_int_eq(v.refused, 0);
		ck_assert_int_eq(v.log_ended, 1);
		FREE_ALL(v.requests, v.log);
		driver_end(&d);
	}
}
END_TEST

API_MAIN("phases", one_after_the_other_in_every_way_to_join,
	 phase_0_is_told_in_the_request_itself,
	 further_requests_do_not_hurry_it, without_a_join_all_are_told_at_once,
	 a_loop_that_runs_is_no_join, a_join_of_a_scope_puts_off_nothing_above,
	 the_last_join_that_leaves_tells_the_rest,
	 a_join_that_leaves_beside_another_tells_nobody,
	 a_join_whose_loop_is_destroyed_leaves_too,
	 a_join_after_the_stop_takes_nothing_back,
	 a_log_service_outlives_the_requests)
