/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_extend_stop: a member asks for more time once in a stop, gets at most
 * what the hard end leaves, and has to say why.
 */
#include "../../support/ladder_util.h"
#include "../../support/scope_util.h"

static const evc_escalation_opts escalation = { .budget = 2, .hard_end = 5 };

START_TEST(the_end_of_the_stop_moves)
{
	evc_coord *c = laddered(&escalation, 100);
	evc_id id = hold(c, "slow");
	double granted = 0;
	struct joiner j;

	join_begin(&j, c, 50, 0);
	stop_now(c);
	at(1);
	OK(evc_extend_stop(c, id, 1.5, "the index is being written", &granted));
	ck_assert_double_eq_tol(granted, 1.5, 1e-6);
	ends_late(c, id, "slow", &j, 3.5);
}
END_TEST

START_TEST(never_beyond_the_hard_end)
{
	evc_coord *c = laddered(&escalation, 100);
	evc_id id = hold(c, "slow");
	double granted = 0;
	struct joiner j;

	join_begin(&j, c, 50, 0);
	stop_now(c);
	at(1);
	OK(evc_extend_stop(c, id, 1000, "very slow", &granted));
	ck_assert_double_eq_tol(granted, 3, 1e-6);
	ends_late(c, id, "slow", &j, 5);
}
END_TEST

START_TEST(without_a_budget_the_grace_moves)
{
	evc_escalation_opts o = { .hard_end = 50 };
	evc_coord *c = laddered(&o, 2);
	evc_id id = hold(c, "slow");
	double granted = 0;
	struct joiner j;

	join_begin(&j, c, 0, 0);
	stop_now(c);
	OK(evc_extend_stop(c, id, 10, "slow", &granted));
	ck_assert_double_eq_tol(granted, 10, 1e-6);
	ends_late(c, id, "slow", &j, 12);
}
END_TEST

START_TEST(once_for_each_member)
{
	evc_coord *c = laddered(&escalation, 100);
	evc_id first = hold(c, "first"), second = hold(c, "second");
	double granted = 0;
	int i;

	for (i = 0; i < 2; i++) { /* and in each stop anew */
		stop_now(c);
		OK(evc_extend_stop(c, first, 1, "one", &granted));
		granted = 77;
		REFUSED(EVC_ALREADY_EXISTS,
			evc_extend_stop(c, first, 1, "two", &granted));
		ck_assert_double_eq(granted, 77);
		OK(evc_extend_stop(c, second, 100, "three", &granted));
		ck_assert_double_le(granted, 3);
		ck_assert_double_ge(granted, 1.9);
		REFUSED(EVC_ALREADY_EXISTS,
			evc_extend_stop(c, second, 1, "four", NULL));
		OK(evc_hold_end(c, first));
		OK(evc_hold_end(c, second));
		ends_at_last(c);
		OK(evc_clear_stop(c));
		first = hold(c, "first");
		second = hold(c, "second");
	}
	OK(evc_hold_end(c, first));
	OK(evc_hold_end(c, second));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_reason_is_in_the_report_and_in_the_log)
{
	evc_coord *c = laddered(&escalation, 100);
	evc_id id = hold(c, "slow");
	char reason[300];

	stop_now(c);
	memset(reason, 'x', sizeof(reason));
	memcpy(reason, "two shards are left", 19);
	reason[sizeof(reason) - 1] = '\0';
	OK(evc_extend_stop(c, id, 1, reason, NULL));
	memset(reason, 'y', 20); /* it was copied */
	UNTIL_REPORT_HAS(c, "two shards are left");
	HAS(report_of(c), "slow");
	OK(evc_hold_end(c, id));
	ends_at_last(c);
	UNTIL(book_has(EVC_LOG_WARNING, "two shards are left"));
	ck_assert(book_has(EVC_LOG_WARNING, "slow"));
	OK(evc_clear_stop(c));
	LACKS(report_of(c), "two shards");
	OK(evc_free(c));
}
END_TEST

/* ---- who asks ---- */

struct asker {
	evc_coord *c;
	evc_status status;
	double granted;
	atomic_int asked, open;
};

static evc_status
asks(evc_coord *c, void *arg)
{
	struct asker *a = arg;

	(void)evc_wait_for_stop(c, INFINITY);
	a->status = evc_extend_stop(c, 0, 1, "I am not ready", &a->granted);
	atomic_store(&a->asked, 1);
	while (!atomic_load(&a->open))
		t_sleep(0.001);
	return 0;
}

static void *
asks_thread(void *arg)
{
	struct asker *a = arg;

	a->status = evc_register_thread(a->c, "itself", pthread_self(), NULL,
					NULL);
	if (a->status == 0)
		asks(a->c, a);
	return NULL;
}

START_TEST(id_0_is_the_calling_member)
{
	evc_coord *c = laddered(&escalation, 100);
	struct asker a = { .c = c }, r = { .c = c };
	struct joiner j;
	pthread_t t;

	OK(evc_thread_start(c, "started", asks, &a, NULL, NULL));
	OK(pthread_create(&t, NULL, asks_thread, &r));
	t_sleep(0.01);
	join_begin(&j, c, 50, 0);
	stop_now(c);
	UNTIL(atomic_load(&a.asked) && atomic_load(&r.asked));
	OK(a.status);
	OK(r.status);
	ck_assert_double_eq_tol(a.granted, 1, 1e-6);
	HAS(report_of(c), "I am not ready");
	at(2.99);
	STILL_WAITS(&j);
	atomic_store(&a.open, 1);
	atomic_store(&r.open, 1);
	/* Where there is no pidfd it looks for the end now and then. */
	UNTIL_BEFORE(3.9, atomic_load(&j.returned));
	OK(join_end(&j));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_veto_in_a_scope_moves_the_end_of_what_is_above)
{
	evc_coord *c = laddered(&escalation, 100), *low = NULL;
	double granted = 0;
	struct joiner j;
	evc_id id;

	OK(evc_scope_new(c, "scope", NULL, &low));
	OK(evc_scope_ready(low));
	id = hold(low, "below");
	join_begin(&j, c, 50, 0);
	stop_now(c);
	OK(evc_extend_stop(low, id, 1, "asked below", &granted));
	ck_assert_double_eq_tol(granted, 1, 1e-6);
	REFUSED(EVC_ALREADY_EXISTS, evc_extend_stop(low, id, 1, "again", NULL));
	HAS(report_of(c), "asked below");
	at(2.99);
	STILL_WAITS(&j);
	at(3.01);
	gave_up(&j, "below");
	OK(evc_hold_end(low, id));
	ends_at_last(c);
	FREE_ALL(low, c);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
	evc_coord *c = laddered(&escalation, 100), *bare = laddered(NULL, 100);
	evc_id id = hold(c, "slow"), other = hold(bare, "other");
	double granted = 77;

	REFUSED(EVC_FAILED_PRECONDITION,
		evc_extend_stop(c, id, 1, "before the stop", &granted));
	OK(evc_request_stop(bare, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_extend_stop(bare, other, 1, "nothing to extend", &granted));
	stop_now(c);
	REFUSED(EVC_NOT_FOUND, evc_extend_stop(c, 0, 1, "no member", &granted));
	REFUSED(EVC_NOT_FOUND,
		evc_extend_stop(c, id + 4711, 1, "nobody", &granted));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_extend_stop(NULL, id, 1, "c", &granted));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_extend_stop(c, id, NAN, "NaN", &granted));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_extend_stop(c, id, -1, "back", &granted));
	ck_assert_double_eq(granted, 77);
	LACKS(report_of(c), "nobody");
	/* none of them counted */
	OK(evc_extend_stop(c, id, 1, "now", &granted));
	OK(evc_hold_end(c, id));
	REFUSED(EVC_NOT_FOUND, evc_extend_stop(c, id, 1, "ended", &granted));
	OK(evc_hold_end(bare, other));
	ends_at_last(c);
	ends_at_last(bare);
	FREE_ALL(c, bare);
}
END_TEST

START_TEST(a_veto_after_the_hard_end_gets_nothing)
{
	evc_coord *c = laddered(&escalation, 100);
	evc_id id = hold(c, "slow");
	struct joiner j;

	stop_now(c);
	at(6);
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_extend_stop(c, id, 1, "too late", NULL));
	join_begin(&j, c, 50, 0);
	gave_up(&j, "slow");
	OK(evc_hold_end(c, id));
	ends_at_last(c);
	OK(evc_free(c));
}
END_TEST

API_MAIN("veto", the_end_of_the_stop_moves, never_beyond_the_hard_end,
	 without_a_budget_the_grace_moves, once_for_each_member,
	 the_reason_is_in_the_report_and_in_the_log, id_0_is_the_calling_member,
	 a_veto_in_a_scope_moves_the_end_of_what_is_above,
	 what_makes_no_sense_is_refused, a_veto_after_the_hard_end_gets_nothing)
