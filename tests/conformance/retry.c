/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that fail and are run again, and those that take too long.
 */
#include "functions.h"

/* [n, code]: fails n times with that code; -> attempt */
static evc_status
fn_fails_first(evc_exec *x, void *arg)
{
	evc_exec_info i;
	unsigned n;
	int code;

	(void)arg;
	if (evc_exec_get(x, &i) < 0 || evc_exec_unpack(x, "[ui]", &n, &code) < 0)
		return EVC_INVALID_ARGUMENT;
	evc_exec_variable_add(x, "runs", 1, NULL);
	if (i.attempt <= n)
		return evc_exec_fail(x, code, "attempt %u of %u", i.attempt, n);
	return evc_exec_return(x, "u", i.attempt);
}

START_TEST(it_is_run_again_and_nobody_hears_of_it)
{
	evc_schedule_opts o = { .retry = { .times = 5,
					   .first = 0.02,
					   .most = 0.04 } };
	evc_remote *r, *follows;
	evc_remote_info i;

	begin(_i, 2);
	r = SCHEDULE_WITH(&o, "fails first", "[ui]", 4u, EVC_UNAVAILABLE);
	follows = SCHEDULE("add", "[ri]", r, 10);
	OK(join());
	IS(number_of(r), 5);
	i = info_of(r);
	ck_assert_uint_eq(i.attempts, 5);
	ck_assert_uint_eq(i.kind, 0);
	ck_assert_str_eq(i.text, "");
	/* Later and later: 20, 40, 40, 40 ms. */
	ck_assert(i.took >= 0.139);
	IS(take_number(follows), 15);
	ck_assert_uint_eq(numbers().n_retries, 4);
	ck_assert_uint_eq(numbers().n_failed, 0);
	evc_remote_free(r);
}
END_TEST

START_TEST(jitter_makes_the_waits_longer)
{
	evc_schedule_opts o = { .retry = { .times = 20,
					   .first = 0.01,
					   .most = 0.01,
					   .jitter = 1 } };
	evc_remote *r;

	begin(_i, 2);
	r = SCHEDULE_WITH(&o, "fails first", "[ui]", 20u, EVC_UNAVAILABLE);
	OK(join());
	ck_assert_uint_eq(info_of(r).attempts, 21);
	/* 200 ms, and twenty random parts of 0 to 10 ms, less than 25 ms in
	   all for once in a billion runs. */
	ck_assert(info_of(r).took >= 0.224);
	evc_remote_free(r);
}
END_TEST

START_TEST(so_often_and_no_more)
{
	evc_cluster_config config = { .retry = { .times = 2, .first = 0.001 } };
	evc_schedule_opts once = { .retry = { .times = 1, .first = 0.001 } };
	evc_remote *r;

	begin_with(_i, 2, &config);
	r = SCHEDULE("fails first", "[ui]", 100u, EVC_UNAVAILABLE);
	IS(code_of(r), EVC_UNAVAILABLE);
	ck_assert_uint_eq(info_of(r).attempts, 3);
	/* The last one's. */
	ck_assert_str_eq(info_of(r).text, "attempt 3 of 100");
	evc_remote_free(r);
	IS(join(), EVC_UNAVAILABLE);
	r = SCHEDULE_WITH(&once, "fails first", "[ui]", 100u, EVC_UNAVAILABLE);
	IS(code_of(r), EVC_UNAVAILABLE);
	ck_assert_uint_eq(info_of(r).attempts, 2);
	evc_remote_free(r);
	IS(join(), EVC_UNAVAILABLE);
	ck_assert(variable("runs") == 5);
}
END_TEST

START_TEST(not_every_code_is_worth_it)
{
	static const int never[] = { EVC_CANCELLED, EVC_INVALID_ARGUMENT,
				     EVC_OUT_OF_RANGE, EVC_UNIMPLEMENTED };
	evc_schedule_opts o = { .retry = { .times = 3, .first = 0.001 } };
	evc_remote *r;
	size_t i;

	begin(_i, 2);
	for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		r = SCHEDULE_WITH(&o, "fails first", "[ui]", 1u, never[i]);
		IS(code_of(r), never[i]);
		ck_assert_uint_eq(info_of(r).attempts, 1);
		evc_remote_free(r);
		IS(join(), never[i]);
	}
	o.retry.codes[0] = EVC_OUT_OF_RANGE;
	o.retry.codes[1] = 200;
	IS(take_number(SCHEDULE_WITH(&o, "fails first", "[ui]", 1u,
				     EVC_OUT_OF_RANGE)), 2);
	IS(take_number(SCHEDULE_WITH(&o, "fails first", "[ui]", 3u, 200)), 4);
	r = SCHEDULE_WITH(&o, "fails first", "[ui]", 1u, EVC_UNAVAILABLE);
	IS(code_of(r), EVC_UNAVAILABLE);
	evc_remote_free(r);
	IS(join(), EVC_UNAVAILABLE);
}
END_TEST

START_TEST(what_waits_to_be_run_again_can_be_cancelled)
{
	evc_schedule_opts o = { .retry = { .times = 3, .first = 1000,
					   .most = 1000 } };
	evc_remote *r[3];

	begin(_i, 2);
	r[0] = SCHEDULE_WITH(&o, "fails first", "[ui]", 100u, EVC_ABORTED);
	UNTIL(info_of(r[0]).state == EVC_REMOTE_WAITING);
	ck_assert(!all_done());
	ck_assert_uint_eq(numbers().n_queued, 1);
	OK(evc_remote_cancel(r[0]));
	IS(code_of(r[0]), EVC_CANCELLED);
	OK(join());
	/* By another one's error. */
	r[1] = SCHEDULE_WITH(&o, "fails first", "[ui]", 100u, EVC_ABORTED);
	UNTIL(info_of(r[1]).state == EVC_REMOTE_WAITING);
	DO("fail", "[is]", EVC_DATA_LOSS, "no");
	IS(join(), EVC_DATA_LOSS);
	IS(code_of(r[1]), EVC_CANCELLED);
	ck_assert_uint_eq(info_of(r[1]).kind, EVC_FAILED_CANCEL);
	/* By the stop. */
	r[2] = SCHEDULE_WITH(&o, "fails first", "[ui]", 100u, EVC_ABORTED);
	UNTIL(info_of(r[2]).state == EVC_REMOTE_WAITING);
	evc_request_stop(on.c, 0, "enough");
	IS(code_of(r[2]), EVC_CANCELLED);
	evc_remote_free(r[0]);
	evc_remote_free(r[1]);
	evc_remote_free(r[2]);
}
END_TEST

/* Fails when it is asked to stop, with an error of its own. */
static evc_status
fn_fails_asked(evc_exec *x, void *arg)
{
	(void)arg;
	while (!evc_exec_wait_for_stop(x, 60))
		continue;
	return evc_exec_fail(x, EVC_ABORTED, "not this time");
}

/* As one in its pause: it has not failed yet. */
START_TEST(a_retry_that_cannot_come_is_no_error)
{
	evc_schedule_opts o = { .retry = { .times = 3, .first = 0.001 } };
	evc_remote *r[2];
	evc_reason e;

	begin(_i, 2);
	r[0] = SCHEDULE_WITH(&o, "fails asked", "[]");
	UNTIL(info_of(r[0]).state == EVC_REMOTE_RUNNING);
	DO("fail", "[is]", EVC_DATA_LOSS, "no");
	IS(join(), EVC_DATA_LOSS);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	IS(evc_cluster_error_get(on.cl, 1, &e), -EVC_NOT_FOUND);
	IS(code_of(r[0]), EVC_CANCELLED);
	ck_assert_uint_eq(info_of(r[0]).kind, EVC_FAILED_CANCEL);
	HAS(info_of(r[0]).text, "reschedule");
	OK(join());
	r[1] = SCHEDULE_WITH(&o, "fails asked", "[]");
	UNTIL(info_of(r[1]).state == EVC_REMOTE_RUNNING);
	evc_request_stop(on.c, 0, "enough");
	IS(code_of(r[1]), EVC_CANCELLED);
	HAS(info_of(r[1]).text, "the cluster was stopped");
	evc_remote_free(r[0]);
	evc_remote_free(r[1]);
}
END_TEST

START_TEST(a_transaction_that_is_run_again)
{
	evc_schedule_opts o = { .retry = { .times = 9, .first = 0.001 },
				.flags = EVC_TRANSACTIONAL };

	begin(_i, 2);
	IS(take_number(SCHEDULE_WITH(&o, "fails first", "[ui]", 4u,
				     EVC_ABORTED)), 5);
	OK(join());
	ck_assert(variable("runs") == 1);
}
END_TEST

/* ---- deadlines ---- */

START_TEST(a_function_that_takes_too_long_is_ended)
{
	evc_schedule_opts o = { .deadline = 0.5 };
	evc_remote_info i;
	evc_remote *r;
	pid_t pid;

	begin(_i, 2);
	IS(take_number(SCHEDULE_WITH(&o, "add", "[ii]", 1, 2)), 3);
	r = SCHEDULE_WITH(&o, "insist", "[si]", "for ever", 0);
	UNTIL(are_in("for ever", 1));
	pid = pid_with(r);
	IS(join(), EVC_DEADLINE_EXCEEDED);
	/* Nothing runs any more when a join raises. */
	ck_assert(is_dead(pid));
	IS(code_of(r), EVC_DEADLINE_EXCEEDED);
	i = info_of(r);
	/* It is not run again: that would take as long. */
	ck_assert_uint_eq(i.attempts, 1);
	ck_assert(i.took >= 0.49);
	HAS(i.text, "deadline");
	ck_assert_uint_eq(i.kind, EVC_FAILED_WORKER);
	OK(join());
	/* Its worker is another one. */
	UNTIL(numbers().n_up == 2);
	ck_assert_uint_eq(worker(0).lives + worker(1).lives, 3);
	evc_remote_free(r);
}
END_TEST

/* [], and never again */
static evc_status
fn_spin(evc_exec *x, void *arg)
{
	(void)arg;
	while (evc_exec_coord(x) != NULL)
		continue;
	return 0;
}

/* The worker that is ended for it is proven dead before anything is raised. */
START_TEST(nothing_runs_when_its_end_is_raised)
{
	enum { ROUNDS = 20 };
	evc_schedule_opts o = { .deadline = 0.05 };
	char name[48];
	unsigned i;
	pid_t pid;

	begin(_i, ROUNDS);
	for (i = 0; i < ROUNDS; i++) {
		pid = pid_when_up(i);
		snprintf(name, sizeof(name), "%s", worker(i).name);
		o.worker = name;
		OK(evc_schedule(on.cl, "spin", NULL, NULL, &o, NULL));
		IS(join(), EVC_DEADLINE_EXCEEDED);
		ck_assert(is_dead(pid));
	}
	OK(join());
}
END_TEST

START_TEST(a_deadline_is_of_a_run_and_not_of_its_wait)
{
	evc_schedule_opts o = { .deadline = 0.4, .worker = "worker 0" };
	evc_remote *r[6];
	int i;

	begin(_i, 1);
	for (i = 0; i < 6; i++)
		r[i] = SCHEDULE_WITH(&o, "nap", "[d]", 0.1);
	OK(join());
	for (i = 0; i < 6; i++)
		evc_remote_free(r[i]);
	ck_assert_uint_eq(worker(0).lives, 1);
}
END_TEST

START_TEST(a_deadline_that_nobody_can_keep_is_refused)
{
	evc_schedule_opts o = { .deadline = 0.3 };
	evc_remote *r = NULL;

	begin(_i, 2);
	if (can(DEADLINES)) {
		OK(evc_schedule(on.cl, "who", NULL, NULL, &o, &r));
		OK(code_of(r));
	} else {
		REFUSED(EVC_UNIMPLEMENTED,
			evc_schedule(on.cl, "who", NULL, NULL, &o, &r));
		ck_assert_ptr_null(r);
	}
	evc_remote_free(r);
	OK(join());
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "fails first", .fn = fn_fails_first },
	{ .name = "fails asked", .fn = fn_fails_asked },
	{ .name = "spin", .fn = fn_spin },
};

CONFORMANCE_MAIN("retry and deadline", functions,
		 ROW(it_is_run_again_and_nobody_hears_of_it),
		 ROW(jitter_makes_the_waits_longer),
		 ROW(so_often_and_no_more), ROW(not_every_code_is_worth_it),
		 ROW(what_waits_to_be_run_again_can_be_cancelled),
		 ROW(a_retry_that_cannot_come_is_no_error),
		 ROW(a_transaction_that_is_run_again),
		 ROW_ON(DEADLINES, a_function_that_takes_too_long_is_ended),
		 ROW_ON(DEADLINES, nothing_runs_when_its_end_is_raised),
		 ROW_ON(DEADLINES, a_deadline_is_of_a_run_and_not_of_its_wait),
		 ROW(a_deadline_that_nobody_can_keep_is_refused))
