/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is counted: row M01, and the numbers beside it.
 */
#include "functions.h"

static evc_status
fn_slow_value(evc_exec *x, void *arg)
{
	(void)arg;
	t_sleep(0.55);
	return evc_exec_return(x, "i", 7);
}

static evc_status
fn_value(evc_exec *x, void *arg)
{
	evc_local *l;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &l) < 0)
		return EVC_INVALID_ARGUMENT;
	return evc_exec_return(x, "v", evc_local_value(l));
}

START_TEST(M01_testSimpleMetrics)
{
	evc_per_worker *p = NULL;
	evc_cluster_info n;
	evc_remote *r[2];
	int i;

	begin(_i, 1);
	OK(evc_per_worker_value(on.cl, "slow", "slow value", NULL, &p));
	for (i = 0; i < 2; i++)
		r[i] = SCHEDULE("value", "[w]", p);
	OK(join());
	n = numbers();
	ck_assert_uint_eq(n.n_queued, 0);
	ck_assert_uint_eq(n.n_running, 0);
	ck_assert_uint_eq(n.n_executions, 2);
	ck_assert_uint_eq(n.n_builds, 1);
	ck_assert(n.build_time > 0.5);
	/* There a result is fetched as it comes; here, when somebody asks, and
	   each counts once. */
	ck_assert_uint_eq(n.n_fetches, 0);
	for (i = 0; i < 2; i++) {
		IS(number_of(r[i]), 7);
		IS(number_of(r[i]), 7);
	}
	ck_assert_uint_eq(numbers().n_fetches, 2);
	for (i = 0; i < 2; i++)
		evc_remote_free(r[i]);
	evc_per_worker_free(p);
}
END_TEST

START_TEST(all_numbers_add_up)
{
	evc_schedule_opts at = { .worker = "worker 0" };
	evc_remote *gate, *r;
	evc_cluster_info n;
	int i;

	begin(_i, 1);
	gate = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	for (i = 0; i < 5; i++)
		DO("nap", "[d]", 0.01);
	r = SCHEDULE_WITH(&at, "add", "[ri]", gate, 1);
	n = numbers();
	ck_assert_uint_eq(n.n_scheduled, 7);
	ck_assert_uint_eq(n.n_queued + n.n_running, 7);
	ck_assert_uint_ge(n.n_running, 1);
	ck_assert_uint_eq(n.n_done, 0);
	HAS(on.engine->name, n.engine);
	ck_assert(n.age > 0);
	OK(evc_remote_cancel(r));
	let_go("g");
	OK(join());
	n = numbers();
	ck_assert_uint_eq(n.n_scheduled, 7);
	ck_assert_uint_eq(n.n_queued, 0);
	ck_assert_uint_eq(n.n_running, 0);
	ck_assert_uint_eq(n.n_done, 6);
	ck_assert_uint_eq(n.n_cancelled, 1);
	ck_assert_uint_eq(n.n_failed, 0);
	ck_assert_uint_eq(n.n_executions, 6);
	ck_assert_uint_eq(n.n_late + n.n_lost + n.n_retries, 0);
	ck_assert(n.run_time >= 0.049);
	ck_assert(n.rate > 0);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 6);
	DO("fail", "[is]", EVC_ABORTED, "no");
	IS(join(), EVC_ABORTED);
	ck_assert_uint_eq(numbers().n_failed, 1);
	ck_assert_uint_eq(numbers().n_executions, 7);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), 6);
	ck_assert_uint_eq(worker(0).n_done, 7);
	evc_remote_free(gate);
	evc_remote_free(r);
}
END_TEST

START_TEST(the_report_names_what_runs_and_what_waits)
{
	evc_remote *gate[2], *r;
	char text[4096], small[8];
	size_t n;
	int i;

	begin(_i, 2);
	for (i = 0; i < 2; i++)
		gate[i] = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 2));
	r = SCHEDULE("add", "[ri]", gate[0], 1);
	n = own_report(evc_cluster_scope(on.cl), text, sizeof(text));
	IS(n, strlen(text));
	HAS(text, "hold");
	HAS(text, "worker 0");
	HAS(text, "worker 1");
	/* What waits is a number. */
	HAS(text, "1 waiting for inputs or a retry");
	ck_assert_uint_ge(own_report(evc_cluster_scope(on.cl), small,
				     sizeof(small)),
			  8);
	IS(strlen(small), sizeof(small) - 1);
	let_go("g");
	IS(take_number(r), 2);
	OK(join());
	own_report(evc_cluster_scope(on.cl), text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "hold"));
	evc_remote_free(gate[0]);
	evc_remote_free(gate[1]);
}
END_TEST

/* A death is a failure of its worker; an end in good order is none. */
START_TEST(failures_of_workers_are_counted)
{
	evc_remote *r;

	begin(_i, 2);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	ck_assert_uint_eq(numbers().n_worker_failures, 0);
	ck_assert(numbers().server_away == 0);
	r = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	OK(kill(pid_with(r), SIGKILL));
	UNTIL(are_in("g", 2));
	ck_assert_uint_eq(numbers().n_worker_failures, 1);
	ck_assert_uint_eq(worker(0).n_failures + worker(1).n_failures, 1);
	let_go("g");
	IS(take_number(r), 1);
	OK(join());
}
END_TEST

START_TEST(without_a_server_none_is_away)
{
	begin(_i, 1);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	ck_assert(numbers().server_away == 0);
	ck_assert_uint_eq(numbers().n_worker_failures, 0);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "slow value", .fn = fn_slow_value },
	{ .name = "value", .fn = fn_value },
};

CONFORMANCE_MAIN("metrics", functions, ROW(M01_testSimpleMetrics),
		 ROW(all_numbers_add_up),
		 ROW_ON(DIES, failures_of_workers_are_counted),
		 ROW(without_a_server_none_is_away),
		 ROW(the_report_names_what_runs_and_what_waits))
