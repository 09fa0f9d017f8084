/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes: their life, and who a stop reaches (N1, N2).  Homes stand in
 * scope_home.c, joins in scope_join.c, errors in scope_errors.c, rounds in
 * scope_rounds.c, wrong use in scope_wrong.c.
 */
#include "../../../support/scope_util.h"

#include <signal.h>

START_TEST(a_scope_knows_its_parent)
{
	evc_coord *c = new_coord(NULL), *s, *t;

	s = new_scope(c, "s", NULL);
	t = new_scope(s, NULL, NULL);
	ck_assert_ptr_eq(evc_scope_parent(s), c);
	ck_assert_ptr_eq(evc_scope_parent(t), s);
	ck_assert_ptr_null(evc_scope_parent(c));
	ck_assert_ptr_null(evc_scope_parent(NULL));
	ck_assert(!evc_should_stop(s));
	OK(evc_scope_ready(t));
	OK(evc_scope_ready(s));
	FREE_ALL(t, s, c);
}
END_TEST

START_TEST(born_held_until_it_is_ready)
{
	evc_coord *c = new_coord(NULL), *s = new_scope(c, "library", NULL);
	struct guest g = { 0 };
	struct joiner j;

	join_begin(&j, c, 0, 0);
	NOT_YET(atomic_load(&j.returned));
	/* what is started meanwhile is not missed */
	OK(evc_thread_start(s, "worker", stay, &g, NULL, NULL));
	OK(evc_scope_ready(s));
	NOT_YET(atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	OK(evc_clear_stop(c));

	/* from now on it counts only while something lives in it */
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(without_a_member_ready_is_what_ends_it)
{
	evc_coord *c = new_coord(NULL), *s = new_scope(c, "library", NULL);
	struct joiner j;

	join_begin(&j, c, 0, 0);
	NOT_YET(atomic_load(&j.returned));
	OK(evc_scope_ready(s));
	OK(join_end(&j));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(a_forgotten_ready_is_a_late_member)
{
	evc_coord *c = new_coord(NULL), *s = new_scope(c, "forgotten", NULL);
	evc_join_opts opts = { .grace = MOMENT };
	evc_verdict v;

	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 1);
	HAS(v.error.text, "forgotten");
	HAS(v.error.text, "set-up not finished");
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "forgotten");
	OK(evc_scope_ready(s));
	OK(evc_join(c, NULL, &v));
	FREE_ALL(s, c);
}
END_TEST

/* ---- N1, N2: who is told ---- */

START_TEST(N1_the_parents_stop_reaches_it_in_the_same_request)
{
	evc_coord *c = new_coord(NULL), *s, *t;
	struct waiter w;

	s = ready_scope(c, "s", NULL);
	t = new_scope(c, "t", NULL); /* before it is ready, too */
	OK(evc_thread_start(s, "obeys", obey, NULL, NULL, NULL));
	waiter_begin(&w, s, INFINITY);
	UNTIL(atomic_load(&w.tid) != 0);
	until_asleep(w.tid);
	ck_assert(!readable(evc_stop_fd(s)));
	OK(evc_request_stop(c, EVC_OUT_OF_RANGE, "the parent's reason"));
	ck_assert(evc_should_stop(s));
	ck_assert(evc_should_stop(t));
	ck_assert(readable(evc_stop_fd(s)));
	UNTIL(atomic_load(&w.released));
	OK(pthread_join(w.thread, NULL));
	ck_assert(w.answer);
	BY_PARENT(s);
	BY_PARENT(t);
	OK(evc_scope_ready(t));
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(s, t, c);
}
END_TEST

START_TEST(N1_an_error_of_the_parent_is_none_of_the_scope)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);

	evc_fail(c, EVC_DATA_LOSS, EIO, "of the parent");
	BY_PARENT(s);
	OK(evc_raise_requested(s, NULL));
	OK(evc_join(s, NULL, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	FREE_ALL(s, c);
}
END_TEST

#define DEEP 16

static evc_coord *chain[DEEP + 1];
static int told_in_handler;

static void
stop_by_signal(int sig)
{
	int i;

	(void)sig;
	evc_request_stop(chain[0], 0, "in a handler");
	for (i = 0; i <= DEEP; i++)
		told_in_handler += evc_should_stop(chain[i]);
}

static void
chain_make(void)
{
	char name[16];
	int i;

	chain[0] = new_coord(NULL);
	for (i = 1; i <= DEEP; i++) {
		snprintf(name, sizeof(name), "deep-%d", i);
		chain[i] = ready_scope(chain[i - 1], name, NULL);
	}
}

static void
chain_free(void)
{
	int i;

	for (i = DEEP; i >= 0; i--)
		OK(evc_free(chain[i]));
}

START_TEST(N1_from_a_signal_handler_sixteen_deep)
{
	struct sigaction act = { .sa_handler = stop_by_signal };
	int i;

	chain_make();
	told_in_handler = 0;
	OK(sigaction(SIGUSR1, &act, NULL));
	OK(raise(SIGUSR1));
	ck_assert_int_eq(told_in_handler, DEEP + 1);
	for (i = 1; i <= DEEP; i++)
		BY_PARENT(chain[i]);
	OK(evc_join(chain[0], NULL, NULL));
	chain_free();
}
END_TEST

START_TEST(N1_N2_a_stop_goes_down_and_never_up)
{
	struct joiner j;
	evc_id id;
	int i;

	chain_make();
	id = hold(chain[DEEP], "at the bottom");
	OK(evc_request_stop(chain[7], 0, "in the middle"));
	for (i = 0; i <= DEEP; i++)
		ck_assert_int_eq(evc_should_stop(chain[i]), i >= 7);
	join_begin(&j, chain[0], 0, 0);
	NOT_YET(atomic_load(&j.returned));
	OK(evc_hold_end(chain[DEEP], id));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.stop.kind, 0);
	ck_assert(!evc_should_stop(chain[0]));
	chain_free();
}
END_TEST

#define MANY 1000

START_TEST(N1_a_thousand_scopes)
{
	static evc_coord *s[MANY];
	static evc_id h[MANY];
	evc_coord *c = new_coord(NULL);
	char name[16];
	struct joiner j;
	int i;

	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		s[i] = ready_scope(c, name, NULL);
		h[i] = hold(s[i], "h");
	}
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < MANY; i++)
		ck_assert_msg(evc_should_stop(s[i]), "scope %d", i);
	join_begin(&j, c, INFINITY, 0);
	for (i = 0; i < MANY; i++) {
		ck_assert(!atomic_load(&j.returned));
		OK(evc_hold_end(s[i], h[i]));
	}
	OK(join_end(&j));
	for (i = 0; i < MANY; i++) /* not in the order they were made in */
		OK(evc_free(s[i * 7 % MANY]));
	OK(evc_free(c));
}
END_TEST

START_TEST(N2_its_own_stop_stays_its_own)
{
	evc_coord *c = new_coord(NULL), *s, *t;
	evc_reason r;

	s = ready_scope(c, "s", NULL);
	t = ready_scope(c, "t", NULL);
	OK(evc_request_stop(s, EVC_OUT_OF_RANGE, "its own"));
	ck_assert(evc_should_stop(s));
	ck_assert(!evc_should_stop(c));
	ck_assert(!evc_should_stop(t));
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 0, &r));
	ck_assert_str_eq(reason_of(s, 0).text, "its own");
	OK(evc_thread_start(c, "runs on", return_at_once, NULL, NULL, NULL));
	OK(evc_join(c, NULL, NULL));

	/* the first reason wins in a scope, too; the parent's comes second */
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_str_eq(reason_of(s, 0).text, "its own");
	ck_assert_uint_eq(reason_of(s, 1).kind, EVC_BY_PARENT);
	FREE_ALL(s, t, c);
}
END_TEST

START_TEST(born_stopped_under_a_stopped_parent)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_coord *c = new_coord(NULL), *s, *t;
	struct joiner j;
	evc_id id = 0;

	OK(evc_request_stop(c, 0, NULL));
	s = new_scope(c, "s", NULL);
	BY_PARENT(s);
	t = new_scope(s, "t", NULL);
	BY_PARENT(t);
	REFUSED(EVC_CANCELLED, evc_hold_begin(s, "no", NULL, &id));
	REFUSED(EVC_CANCELLED,
		evc_thread_start(s, "no", obey, NULL, NULL, NULL));
	OK(evc_hold_begin(t, "late", &late, &id));
	OK(evc_scope_ready(s));
	OK(evc_scope_ready(t));
	join_begin(&j, c, INFINITY, 0);
	NOT_YET(atomic_load(&j.returned));
	OK(evc_hold_end(t, id));
	OK(join_end(&j));
	FREE_ALL(t, s, c);
}
END_TEST

/* A scope opens the parent's closed round again, by what begins in it. */
START_TEST(what_begins_after_the_parents_join_is_waited_for_by_the_next)
{
	evc_coord *c = new_coord(NULL), *s = ready_scope(c, "s", NULL);
	struct joiner j;
	evc_id id;

	OK(evc_join(c, NULL, NULL));
	id = hold(s, "later");
	join_begin(&j, c, 0, 0);
	NOT_YET(atomic_load(&j.returned));
	OK(evc_hold_end(s, id));
	OK(join_end(&j));
	FREE_ALL(s, c);
}
END_TEST

/* ---- alone, while the parent runs ---- */

static void
one_round(evc_coord *s, struct guest *g, unsigned n_ended_below)
{
	evc_verdict v;

	OK(evc_thread_start(s, "obeys", obey, NULL, NULL, NULL));
	OK(evc_thread_start(s, "stays", stay, g, NULL, NULL));
	OK(evc_request_stop(s, 0, "alone"));
	atomic_store(&g->open, 1);
	OK(evc_join(s, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 2 + n_ended_below);
	ck_assert_str_eq(v.stop.text, "alone");
	ck_assert(evc_joined(s));
	OK(evc_clear_stop(s));
	ck_assert(!evc_should_stop(s));
}

START_TEST(stopped_joined_cleared_and_used_again_while_the_parent_runs)
{
	struct driver d = { 0 };
	struct guest g = { 0 };
	int i, k;

	for (i = 0; i < 2; i++) {
		evc_coord *c = driver_make(&d, i ? BY_JOIN : BY_RUN), *s, *t;
		evc_id id = hold(c, "runs");

		driver_go(&d);
		for (k = 0; k < 20; k++) {
			s = ready_scope(c, "s", NULL);
			t = ready_scope(s, "t", NULL);
			one_round(s, &g, 0);
			one_round(t, &g, 0);
			one_round(s, &g, 2);
			FREE_ALL(t, s);
		}
		ck_assert(!evc_should_stop(c));
		ck_assert(!driver_returned(&d));
		OK(evc_hold_end(c, id));
		driver_stop(&d);
		OK(driver_wait(&d));
		ck_assert_uint_eq(d.v.n_errors, 0);
		driver_end(&d);
	}
}
END_TEST

START_TEST(free_of_the_parent_is_refused_and_names_its_scopes)
{
	evc_coord *c = new_coord(NULL), *s, *t;
	evc_id id;

	s = ready_scope(c, "first-library", NULL);
	t = ready_scope(s, "second-library", NULL);
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	HAS(evc_last_error(), "first-library");
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(s));
	HAS(evc_last_error(), "second-library");
	id = hold(t, "the-hold");
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(t));
	HAS(evc_last_error(), "the-hold");
	OK(evc_hold_end(t, id));
	OK(evc_free(t));
	REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
	OK(evc_request_stop(s, 0, NULL)); /* nothing has changed in it */
	OK(evc_join(s, NULL, NULL));
	FREE_ALL(s, c);
}
END_TEST

START_TEST(depth_16_works_and_too_deep_is_refused)
{
	evc_coord *s[40] = { new_coord(NULL) };
	int n = 0;

	while (n < 32) {
		s[n + 1] = ready_scope(s[n], "deeper", NULL);
		n++;
	}
	REFUSED(EVC_OUT_OF_RANGE, evc_scope_new(s[n], "no", NULL, &s[n + 1]));
	ck_assert_ptr_null(s[n + 1]);
	OK(evc_request_stop(s[0], 0, NULL));
	BY_PARENT(s[n]);
	for (; n >= 0; n--)
		OK(evc_free(s[n]));
}
END_TEST

START_TEST(L3_scopes_leave_no_thread_and_no_descriptor)
{
	int threads = t_count_threads(), fds = t_count_fds(), i;
	evc_coord *c = new_coord(NULL), *s;
	atomic_int calls = 0;
	pthread_t t;

	for (i = 0; i < 20; i++) {
		s = ready_scope(c, "s", NULL);
		OK(evc_thread_start(s, "obeys", obey, NULL, NULL, NULL));
		OK(pthread_create(&t, NULL, end_at_once, NULL));
		OK(evc_register_thread(s, "ends", t, NULL, NULL));
		OK(evc_on_stop(s, "hook", count_hook, &calls, NULL, NULL));
		ck_assert_int_ge(evc_stop_fd(s), 0);
		OK(evc_request_stop(i % 2 ? c : s, 0, NULL));
		OK(evc_join(s, NULL, NULL));
		OK(evc_join(c, NULL, NULL));
		OK(evc_free(s));
		OK(evc_clear_stop(c));
	}
	ck_assert_int_eq(calls, 20);
	/* one helper thread for the tree */
	ck_assert_int_le(t_settle_threads(threads + 1), threads + 1);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

API_MAIN("scope", a_scope_knows_its_parent, born_held_until_it_is_ready,
	 without_a_member_ready_is_what_ends_it,
	 a_forgotten_ready_is_a_late_member,
	 N1_the_parents_stop_reaches_it_in_the_same_request,
	 N1_an_error_of_the_parent_is_none_of_the_scope,
	 N1_from_a_signal_handler_sixteen_deep,
	 N1_N2_a_stop_goes_down_and_never_up, N1_a_thousand_scopes,
	 N2_its_own_stop_stays_its_own, born_stopped_under_a_stopped_parent,
	 what_begins_after_the_parents_join_is_waited_for_by_the_next,
	 stopped_joined_cleared_and_used_again_while_the_parent_runs,
	 free_of_the_parent_is_refused_and_names_its_scopes,
	 depth_16_works_and_too_deep_is_refused,
	 L3_scopes_leave_no_thread_and_no_descriptor)
