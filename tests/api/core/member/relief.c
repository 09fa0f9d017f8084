/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of the program's that take long on the helper thread: others are
 * woken all the same, and nothing of what was planned is lost when the thread
 * that hung comes back.
 */
#include "../../../support/api_util.h"

#include <signal.h>

/* However it ends. */
static void
join_somehow(evc_coord *c, const evc_join_opts *o, evc_verdict *v)
{
	ck_assert_int_ge(evc_join(c, o, v), 0);
}

static void
takes_long(void *arg)
{
	t_sleep(0.1);
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void
counts(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static evc_status
until_woken_often(evc_coord *c, void *arg)
{
	(void)c;
	while (atomic_load((atomic_int *)arg) < 20)
		t_sleep(0.002);
	return 0;
}

/* It is woken until it has ended, long after the hook has returned. */
START_TEST(who_repeats_goes_on_when_a_slow_one_has_returned)
{
	evc_member_opts o = { .unblock = counts };
	evc_coord *c = new_coord(NULL);
	atomic_int slow = 0, calls = 0;
	struct joiner j;
	evc_id hook;

	OK(evc_cancel_push(c, takes_long, &slow, 0, &hook));
	OK(evc_thread_start(c, "m", until_woken_often, &calls, &o, NULL));
	join_begin(&j, c, 0, 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(join_end(&j));
	UNTIL(atomic_load(&slow) == 1);
	OK(evc_cancel_pop(c, hook));
	OK(evc_free(c));
}
END_TEST

static evc_status
until_woken_once(evc_coord *c, void *arg)
{
	(void)c;
	while (atomic_load((atomic_int *)arg) == 0)
		t_sleep(0.002);
	return 0;
}

/* The hooks' step is at 30 s; the second signal moves it to half a second. */
START_TEST(a_rung_that_moves_nearer_comes)
{
	evc_escalation_opts l = { .budget = 60, .hooks = 0.5 };
	evc_signals_opts s = { .short_grace = 1 };
	evc_member_opts o = { .unblock = counts };
	evc_join_opts patient = { .grace = 60 };
	evc_coord *c = new_coord(NULL);
	atomic_int calls = 0;
	evc_verdict v;

	OK(evc_escalation_set(c, &l));
	OK(evc_signals_start(c, &s));
	OK(evc_thread_start(c, "m", until_woken_once, &calls, &o, NULL));
	OK(raise(SIGTERM));
	t_sleep(0.05);
	ck_assert_int_eq(atomic_load(&calls), 0);
	OK(raise(SIGTERM));
	join_somehow(c, &patient, &v);
	UNTIL(atomic_load(&calls) > 0);
	ck_assert_double_lt(v.took, 20);
	join_somehow(c, &patient, NULL);
	OK(evc_free(c));
}
END_TEST

static evc_status
asks_for_more(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	return evc_extend_stop(c, 0, 300, "flush", NULL);
}

/* A scope's own stop is over, and the parent's comes later. */
START_TEST(a_scopes_veto_leaves_no_trace_above)
{
	evc_escalation_opts l = { .hard_end = 3000 };
	evc_join_opts short_grace = { .grace = 0.1 };
	evc_coord *c = new_coord(NULL), *s;
	evc_verdict v;
	evc_id id;

	OK(evc_escalation_set(c, &l));
	OK(evc_scope_new(c, "s", NULL, &s));
	OK(evc_thread_start(s, "t", asks_for_more, NULL, NULL, NULL));
	OK(evc_scope_ready(s));
	OK(evc_request_stop(s, 0, NULL));
	OK(evc_join(s, NULL, NULL));
	OK(evc_free(s));
	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &short_grace, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_lt(v.took, T_LIMIT);
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- a scope that frees itself, slowly, when all is abandoned ---- */

static atomic_int ended_in, freed;

static void
frees_slowly(evc_coord *s, const evc_verdict *v, void *arg)
{
	(void)v;
	(void)arg;
	atomic_store(&ended_in, 1);
	t_sleep(0.2);
	if (evc_free(s) == 0)
		atomic_store(&freed, 1);
}

static evc_status
last_straggler(evc_coord *c, void *arg)
{
	evc_join_opts o = { .grace = 0.1 };

	(void)c;
	while (!atomic_load(&ended_in))
		t_sleep(0.001);
	/* A join that finds the helper hanging. */
	join_somehow(arg, &o, NULL);
	return 0;
}

START_TEST(an_abandoned_scope_is_freed_once)
{
	evc_scope_opts o = { .ended = frees_slowly };
	int threads = t_count_threads();
	evc_coord *c = new_coord(NULL), *s, *x;
	evc_id id;

	OK(evc_scope_new(c, "s", &o, &s));
	OK(evc_scope_ready(s));
	OK(evc_scope_new(c, "x", NULL, &x));
	OK(evc_thread_start(x, "straggler", last_straggler, x, NULL, &id));
	OK(evc_scope_ready(x));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_abandon(c));
	/* The helper ends with what it has freed. */
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert(atomic_load(&freed));
}
END_TEST

API_MAIN("relief", who_repeats_goes_on_when_a_slow_one_has_returned,
	 a_rung_that_moves_nearer_comes, a_scopes_veto_leaves_no_trace_above,
	 an_abandoned_scope_is_freed_once)
