/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service manager that is gone, is another one by now, or does not read, costs
 * detail and nothing else; and while no stop stands nobody wakes up for it.
 */
#include "../../support/systemd_util.h"

static evc_id
hold(evc_coord *c)
{
	evc_id id = 0;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	return id;
}

/* A stop with a member, and nothing changed by who listens. */
static void
stop_as_ever(evc_coord *c)
{
	evc_verdict v;

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	errno = 77;
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(errno, 77);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_stragglers, 0);
	ck_assert_uint_eq(v.n_ended, 1);
}

START_TEST(a_manager_that_is_gone_is_no_error_of_the_stop)
{
	struct manager m;
	evc_coord *c;

	manager_begin(&m, _i);
	c = manager_told(&m, NULL, NULL, NULL);
	OK(evc_systemd_ready(c, NULL));
	manager_die(&m);
	REFUSED(EVC_UNAVAILABLE, evc_systemd_ready(c, NULL));
	REFUSED(EVC_UNAVAILABLE, evc_systemd_notify(c, "X=1"));
	stop_as_ever(c);
	OK(evc_clear_stop(c));
	stop_as_ever(c);
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(one_that_was_started_anew_hears_the_rest)
{
	struct manager m;
	evc_coord *c;
	evc_id id;

	manager_begin(&m, _i);
	c = manager_told(&m, NULL, NULL, NULL);
	id = hold(c);
	manager_die(&m);
	REFUSED(EVC_UNAVAILABLE, evc_systemd_ready(c, NULL));
	OK(evc_request_stop(c, 0, NULL));
	manager_listen(&m);
	/* Also what nobody heard when it was said. */
	UNTIL(manager_heard(&m, "STOPPING=1\n") &&
	      manager_heard(&m, "STATUS=stopping: 1 member left"));
	OK(evc_hold_end(c, id));
	UNTIL(manager_heard(&m, "STATUS=stopped\n"));
	ck_assert_int_eq(manager_count(&m, "STOPPING=1"), 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(one_that_does_not_read_holds_up_nobody)
{
	struct manager m;
	evc_coord *c;
	evc_id id;
	int n = 0;

	manager_begin(&m, _i);
	c = manager_told(&m, NULL, NULL, NULL);
	while (evc_systemd_notify(c, "X=1\n") == 0)
		ck_assert_int_lt(++n, 100000);
	REFUSED(EVC_UNAVAILABLE, evc_systemd_ready(c, NULL));
	stop_as_ever(c);
	OK(evc_clear_stop(c));
	id = hold(c);
	OK(evc_request_stop(c, 0, NULL));
	/* Now it reads, and hears of this stop. */
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	ck_assert(manager_heard(&m, "STOPPING=1\n"));
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

START_TEST(while_no_stop_stands_nobody_wakes_up)
{
	struct manager m;
	evc_coord *c;
	int tid, i;

	if (t_under_tsan())
		T_SKIP("the sanitizer wakes threads up");
	manager_begin(&m, true);
	c = manager_told(&m, NULL, NULL, NULL);
	for (i = 0; i < 2; i++) {
		UNTIL((tid = helper_tid()) != 0);
		UNTIL(sleeps_on(tid, 0.3));
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
		UNTIL(manager_count(&m, "READY=1\n") == i + 1);
	}
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("systemd_lost");
	TCase *tcase = tcase_create("systemd_lost");

	/* By a path, and by an abstract name. */
	tcase_add_loop_test(tcase,
			    a_manager_that_is_gone_is_no_error_of_the_stop, 0,
			    2);
	tcase_add_loop_test(tcase, one_that_was_started_anew_hears_the_rest, 0,
			    2);
	tcase_add_loop_test(tcase, one_that_does_not_read_holds_up_nobody, 0,
			    2);
	tcase_add_test(tcase, while_no_stop_stands_nobody_wakes_up);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
