/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EXTEND_TIMEOUT_USEC: whenever somebody gets on, never when nobody does, and
 * never beyond what the stop may take; and that nobody is left who is gone.
 *
 * That nothing was sent is seen by the datagrams that come again and again: the
 * watchdog's, by the same job.
 */
#include "../../support/systemd_util.h"

#include <ev.h>

#define EXTEND "EXTEND_TIMEOUT_USEC="

static evc_id
hold(evc_coord *c, const char *name)
{
	evc_id id = 0;

	OK(evc_hold_begin(c, name, NULL, &id));
	return id;
}

/* Let it look several times more; how often it has asked for more time. */
static int
extensions(struct manager *m)
{
	int before = manager_count(m, "WATCHDOG=1");

	UNTIL(manager_count(m, "WATCHDOG=1") >= before + 5);
	return manager_count(m, EXTEND);
}

/* The stop has been seen, and nobody has got on: then there is nothing new to be
   said, either. */
static void
begun(struct manager *m)
{
	int n;

	UNTIL(manager_heard(m, "STATUS=stopping: "));
	/* The end of the watchdog's looper may be. */
	ck_assert_int_eq(extensions(m), 0);
	n = manager_count(m, "STATUS=");
	ck_assert_int_eq(extensions(m), 0);
	ck_assert_int_eq(manager_count(m, "STATUS="), n);
}

static void
over(struct manager *m, evc_coord *c)
{
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	manager_end(m);
}

START_TEST(each_end_asks_for_more_time_once)
{
	evc_systemd_opts o = { .watchdog = 0.01, .extend = _i ? 1.5 : 0 };
	struct manager m;
	evc_coord *c;
	evc_id id[3];
	char text[32];
	int i;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, &o);
	for (i = 0; i < 3; i++)
		id[i] = hold(c, "hold");
	OK(evc_request_stop(c, 0, NULL));
	begun(&m);
	for (i = 0; i < 3; i++) {
		OK(evc_hold_end(c, id[i]));
		UNTIL(manager_count(&m, EXTEND) > i);
		ck_assert_int_eq(extensions(&m), i + 1);
		ck_assert_str_eq(manager_last(&m, EXTEND, text, sizeof(text)),
				 _i ? "1500000" : "5000000");
	}
	over(&m, c);
}
END_TEST

START_TEST(never_is_never)
{
	evc_systemd_opts o = { .watchdog = 0.01, .extend = -1 };
	struct manager m;
	evc_coord *c;
	evc_id id;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, &o);
	id = hold(c, "hold");
	OK(evc_request_stop(c, 0, NULL));
	begun(&m);
	OK(evc_hold_end(c, id));
	UNTIL(manager_heard(&m, "STATUS=stopped\n"));
	ck_assert_int_eq(extensions(&m), 0);
	over(&m, c);
}
END_TEST

/* A member that says where it is, each time it is let. */
struct worker {
	atomic_int let, said;
};

static evc_status
work(evc_coord *c, void *arg)
{
	struct worker *w = arg;

	(void)c;
	for (;;) {
		UNTIL(atomic_load(&w->let) > atomic_load(&w->said));
		if (atomic_load(&w->let) == 100)
			return 0;
		/* The coarse clock has to move between two of them. */
		t_sleep(0.02);
		evc_progress("flushing");
		atomic_fetch_add(&w->said, 1);
	}
}

/* Also of one in a scope below. */
START_TEST(a_checkpoint_asks_for_more_time)
{
	evc_systemd_opts o = { .watchdog = 0.01 };
	struct worker w = { 0 };
	evc_coord *c, *s = NULL;
	struct manager m;
	int i;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, &o);
	if (_i) {
		OK(evc_scope_new(c, "scope", NULL, &s));
		OK(evc_scope_ready(s));
	}
	OK(evc_thread_start(_i ? s : c, "worker", work, &w, NULL, NULL));
	/* What was said before the stop does not count. */
	atomic_store(&w.let, 1);
	UNTIL(atomic_load(&w.said) == 1);
	OK(evc_request_stop(c, 0, NULL));
	begun(&m);
	for (i = 1; i <= 3; i++) {
		atomic_store(&w.let, i + 1);
		UNTIL(manager_count(&m, EXTEND) >= i);
		ck_assert_int_eq(extensions(&m), i);
	}
	atomic_store(&w.let, 100);
	OK(evc_join(c, NULL, NULL));
	if (_i)
		OK(evc_free(s));
	over(&m, c);
}
END_TEST

/* Tasks are no ends of members, but fewer of them are left. */
START_TEST(the_end_of_a_task_asks_for_more_time)
{
	static const evc_task_class conn = { .name = "conn" };
	evc_systemd_opts o = { .watchdog = 0.01 };
	struct ev_loop *loop = ev_loop_new(0);
	evc_task task[2] = { 0 };
	struct manager m;
	evc_coord *c;
	int i;

	manager_begin(&m, true);
	c = manager_told(&m, loop, NULL, &o);
	for (i = 0; i < 2; i++)
		OK(evc_task_begin(evc_home(c), &task[i], &conn));
	OK(evc_request_stop(c, 0, NULL));
	/* The watchdog's looper ends by its loop. */
	for (i = 0; i < 10; i++)
		ev_run(loop, EVRUN_NOWAIT);
	UNTIL(manager_heard(&m, "STATUS=stopping: 2 members left: 2 tasks "
				"conn on home"));
	/* And that is no progress. */
	ck_assert_int_eq(extensions(&m), 0);
	for (i = 0; i < 2; i++) {
		evc_task_end(&task[i]);
		UNTIL(manager_count(&m, EXTEND) > i);
		ck_assert_int_eq(extensions(&m), i + 1);
	}
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	manager_end(&m);
}
END_TEST

/* By a clock that only the test moves: exactly what is left. */
START_TEST(never_beyond_the_end_of_the_stop)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_systemd_opts o = { .watchdog = 0.01, .extend = 8 };
	evc_escalation_opts escalation = { .budget = 10 };
	struct manager m;
	evc_coord *c;
	evc_id id[4];
	char text[32];
	int i;

	if (_i)
		escalation =
			(evc_escalation_opts){ .budget = 2, .hard_end = 10 };
	manager_begin(&m, true);
	c = manager_told(&m, NULL, &cfg, &o);
	OK(evc_escalation_set(c, &escalation));
	for (i = 0; i < 4; i++)
		id[i] = hold(c, "hold");
	OK(evc_request_stop(c, 0, NULL));
	begun(&m);
	scripted_advance(1);
	OK(evc_hold_end(c, id[0]));
	UNTIL(manager_count(&m, EXTEND) == 1);
	ck_assert_str_eq(manager_last(&m, EXTEND, text, sizeof(text)),
			 "8000000");
	scripted_advance(3);
	OK(evc_hold_end(c, id[1]));
	UNTIL(manager_count(&m, EXTEND) == 2);
	ck_assert_str_eq(manager_last(&m, EXTEND, text, sizeof(text)),
			 "6000000");
	/* And then there is nothing left to be had. */
	scripted_advance(6);
	OK(evc_hold_end(c, id[2]));
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left"));
	ck_assert_int_eq(extensions(&m), 2);
	OK(evc_hold_end(c, id[3]));
	over(&m, c);
}
END_TEST

/* The manager has to grant it as well. */
START_TEST(a_veto_asks_for_what_was_granted)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_systemd_opts o = { .watchdog = 0.01 };
	evc_escalation_opts escalation = { .budget = 10, .hard_end = 100 };
	struct manager m;
	double granted = 0;
	evc_coord *c;
	char text[32];
	evc_id id;

	manager_begin(&m, true);
	c = manager_told(&m, NULL, &cfg, &o);
	OK(evc_escalation_set(c, &escalation));
	id = hold(c, "hold");
	OK(evc_request_stop(c, 0, NULL));
	begun(&m);
	OK(evc_extend_stop(c, id, 20, "still writing", &granted));
	ck_assert_double_eq(granted, 20);
	UNTIL(manager_count(&m, EXTEND) == 1);
	ck_assert_str_eq(manager_last(&m, EXTEND, text, sizeof(text)),
			 "25000000");
	ck_assert_int_eq(extensions(&m), 1);
	OK(evc_hold_end(c, id));
	over(&m, c);
}
END_TEST

/* ---- who is left ---- */

static pthread_key_t slow;
static atomic_int in_last, open_last;

static void
take_long(void *arg)
{
	(void)arg;
	atomic_store(&in_last, 1);
	while (!atomic_load(&open_last))
		t_sleep(0.001);
}

static evc_status
end_long_ago(evc_coord *c, void *arg)
{
	(void)c;
	pthread_setspecific(slow, arg);
	return 0;
}

/* Nobody joins.  The thread's function has returned, and what it does on its way
   out keeps it there while the job looks several times; then it is gone.  Fails
   when who could not be joined at the first look stays in the status for ever. */
START_TEST(who_took_long_to_be_gone_is_not_left)
{
	evc_systemd_opts o = { .watchdog = 0.01 };
	evc_coord *c, *scope = NULL;
	struct manager m;

	OK(pthread_key_create(&slow, take_long));
	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, &o);
	if (_i) {
		OK(evc_scope_new(c, "part", NULL, &scope));
		OK(evc_scope_ready(scope));
	}
	OK(evc_thread_start(_i ? scope : c, "slow", end_long_ago, &m, NULL,
			    NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&in_last));
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: "));
	(void)extensions(&m);
	ck_assert(!manager_heard(&m, "STATUS=stopped\n"));
	atomic_store(&open_last, 1);
	UNTIL(manager_heard(&m, "STATUS=stopped\n"));
	OK(evc_join(c, NULL, NULL));
	if (_i)
		OK(evc_free(scope));
	over(&m, c);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("systemd_progress");
	TCase *tcase = tcase_create("systemd_progress");

	tcase_add_loop_test(tcase, each_end_asks_for_more_time_once, 0, 2);
	tcase_add_loop_test(tcase, a_checkpoint_asks_for_more_time, 0, 2);
	tcase_add_loop_test(tcase, never_beyond_the_end_of_the_stop, 0, 2);
	tcase_add_loop_test(tcase, who_took_long_to_be_gone_is_not_left, 0, 2);
	tcase_add_test(tcase, never_is_never);
	tcase_add_test(tcase, the_end_of_a_task_asks_for_more_time);
	tcase_add_test(tcase, a_veto_asks_for_what_was_granted);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
