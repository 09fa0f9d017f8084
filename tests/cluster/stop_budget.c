/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One budget for the waits of a cluster: each ends with the stop of the
 * coordinator, however long its own time and the cluster's grace are, and names
 * what runs.  And the errors that nobody has taken by then: they stand in the
 * coordinator's verdict.
 */
#include "../support/processes_util.h"

/* The grace of all clusters here, in seconds. */
#define AGES 1e6

static const evc_function functions[] = { P_FUNCTIONS };

#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static evc_coord *
with_budget(struct ev_loop *loop, double budget)
{
	evc_escalation_opts o = { .budget = budget };
	evc_coord *c = new_coord(loop);

	OK(evc_escalation_set(c, &o));
	return c;
}

/* ---- a log hook that hangs ---- */

static atomic_bool hangs;

static void
hang_in_log(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)line;
	(void)r;
	(void)arg;
	while (atomic_load(&hangs))
		t_sleep(0.001);
}

/* An error that nobody took is told to the coordinator by the same way. */
START_TEST(a_log_hook_that_hangs_keeps_no_join)
{
	const evc_config config = { .log = hang_in_log };
	evc_cluster_config k = { F_CONFIG };
	evc_coord *c = new_coord_with(NULL, &config);
	evc_cluster *cl = open_with(c, "threads://1", &k);
	evc_remote *r = schedule(cl, "fail");
	evc_verdict v;

	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_DATA_LOSS);
	evc_remote_free(r);
	atomic_store(&hangs, true);
	evc_log(c, EVC_LOG_INFO, NULL, "a line");
	evc_log_flush(c, 0.05);
	OK(evc_request_stop(c, 0, "enough"));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_stragglers, 0);
	evc_cluster_close(cl);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	atomic_store(&hangs, false);
	UNTIL(evc_log_flush(c, 1));
	OK(evc_free(c));
}
END_TEST

static void *
stop_soon(void *c)
{
	t_sleep(MOMENT);
	OK(evc_request_stop(c, 0, "enough"));
	return NULL;
}

/* ---- threads, which nobody can end ---- */

/* A cluster of threads, and a function that hears nothing. */
static evc_cluster *
with_deaf(evc_coord *c, evc_remote **ret)
{
	evc_cluster_config k = { F_CONFIG, .grace = AGES };
	evc_cluster *cl;

	atomic_store(&f_in, 0);
	atomic_store(&f_open, 0);
	cl = open_with(c, "threads://2", &k);
	*ret = schedule(cl, "deaf");
	UNTIL(atomic_load(&f_in) == 1);
	return cl;
}

static void
let_go(evc_coord *c, evc_cluster *cl, evc_remote *r)
{
	atomic_store(&f_open, 1);
	evc_remote_free(r);
	UNTIL(evc_all_stopped(c));
	evc_cluster_close(cl);
	UNTIL(evc_free(c) == 0);
}

START_TEST(a_fetch_ends_with_the_stop)
{
	evc_coord *c = with_budget(NULL, 0.5);
	evc_remote *r;
	evc_cluster *cl = with_deaf(c, &r);
	pthread_t t;

	OK(pthread_create(&t, NULL, stop_soon, c));
	ck_assert_int_eq(evc_remote_fetch(r, INFINITY, NULL), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "deaf: it did not return in ");
	OK(pthread_join(t, NULL));
	let_go(c, cl, r);
}
END_TEST

START_TEST(a_join_ends_with_the_stop)
{
	evc_coord *c = with_budget(NULL, 0.5);
	evc_remote *r;
	evc_cluster *cl = with_deaf(c, &r);
	pthread_t t;

	OK(pthread_create(&t, NULL, stop_soon, c));
	ck_assert_int_eq(evc_cluster_join(cl, INFINITY), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "deaf: it did not return in ");
	OK(pthread_join(t, NULL));
	let_go(c, cl, r);
}
END_TEST

START_TEST(the_second_signal_ends_them_sooner)
{
	evc_coord *c = with_budget(NULL, AGES);
	evc_remote *r;
	evc_cluster *cl = with_deaf(c, &r);

	OK(evc_signals_start(c, &(evc_signals_opts){ .short_grace = 0.3 }));
	kill(getpid(), SIGTERM);
	UNTIL(evc_should_stop(c));
	kill(getpid(), SIGTERM);
	ck_assert_int_eq(evc_remote_fetch(r, INFINITY, NULL), EVC_UNAVAILABLE);
	let_go(c, cl, r);
}
END_TEST

/* Its loop, which gives up functions, stands still. */
struct fetcher {
	evc_cluster *cl;
	evc_remote *r;
	char why[256], why_join[256];
};

static void *
fetch_and_join(void *arg)
{
	struct fetcher *f = arg;

	ck_assert_int_eq(evc_remote_fetch(f->r, INFINITY, NULL),
			 -EVC_DEADLINE_EXCEEDED);
	snprintf(f->why, sizeof f->why, "%s", evc_last_error());
	ck_assert_int_eq(evc_cluster_join(f->cl, INFINITY),
			 -EVC_DEADLINE_EXCEEDED);
	snprintf(f->why_join, sizeof f->why_join, "%s", evc_last_error());
	return NULL;
}

START_TEST(waits_end_also_when_the_clusters_loop_hangs)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = with_budget(loop, 0.3);
	struct fetcher f = { 0 };
	pthread_t t;

	f.cl = with_deaf(c, &f.r);
	OK(pthread_create(&t, NULL, fetch_and_join, &f));
	OK(evc_request_stop(c, 0, "enough"));
	OK(pthread_join(t, NULL)); /* and turns no loop */
	HAS(f.why, "deaf has no outcome yet; deaf on worker ");
	HAS(f.why_join, "deaf on worker ");
	atomic_store(&f_open, 1);
	evc_cluster_close(f.cl);
	ck_assert_int_ge(evc_join(c, NULL, NULL), 0);
	evc_remote_free(f.r);
	while (evc_free(c) < 0)
		ev_run(loop, EVRUN_NOWAIT);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- errors ---- */

START_TEST(a_result_that_the_stop_has_lost_is_an_error)
{
	evc_coord *c = with_budget(NULL, 1);
	evc_remote *r;
	evc_cluster *cl = with_deaf(c, &r);
	evc_verdict v;

	OK(evc_request_stop(c, 0, "enough"));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_UNAVAILABLE);
	HAS(v.error.text, "cluster: deaf on worker ");
	HAS(v.error.text, "; still running: ");
	ck_assert_uint_eq(v.n_errors, 1);
	/* Members are alive. */
	ck_assert_int_eq(evc_finish(c, v.code), 1);
	let_go(c, cl, r);
}
END_TEST

/* A function has failed, and no call has raised that. */
static evc_cluster *
with_failed(evc_coord *c)
{
	evc_cluster *cl = open_threads(c, "threads://2");
	evc_remote *r = schedule(cl, "fail");

	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_DATA_LOSS);
	evc_remote_free(r);
	return cl;
}

START_TEST(an_error_that_nobody_took_is_in_the_verdict)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = with_failed(c);
	evc_verdict v;

	OK(evc_request_stop(c, 0, "enough"));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 1);
	HAS(v.error.text, "cluster: fail on worker ");
	HAS(v.error.text, "it was asked to fail");
	/* The close says so, too. */
	ck_assert_int_eq(evc_cluster_close(cl), EVC_DATA_LOSS);
	ck_assert_int_eq(evc_finish(c, v.code), 1);
}
END_TEST

START_TEST(an_error_that_a_join_took_is_in_no_verdict)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = with_failed(c);
	evc_status st;

	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	OK(evc_request_stop(c, 0, "enough"));
	st = evc_join(c, NULL, NULL);
	OK(evc_cluster_close(cl));
	ck_assert_int_eq(evc_finish(c, st), 0);
}
END_TEST

START_TEST(an_error_that_the_close_took_is_in_no_verdict)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = with_failed(c);
	evc_status st;

	ck_assert_int_eq(evc_cluster_close(cl), EVC_DATA_LOSS);
	OK(evc_request_stop(c, 0, "enough"));
	st = evc_join(c, NULL, NULL);
	ck_assert_int_eq(evc_finish(c, st), 0);
}
END_TEST

/* The error of a stop that is the cluster's alone stops nothing above. */
START_TEST(an_error_after_the_clusters_own_stop)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl = with_failed(c);
	evc_status st;

	OK(evc_request_stop(evc_cluster_scope(cl), 0, "this one alone"));
	UNTIL(evc_all_stopped(evc_cluster_scope(cl)));
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(evc_cluster_close(cl), EVC_DATA_LOSS);
	OK(evc_request_stop(c, 0, "enough"));
	st = evc_join(c, NULL, NULL);
	ck_assert_int_eq(st, EVC_DATA_LOSS);
	ck_assert_int_eq(evc_finish(c, st), 1);
}
END_TEST

/* ---- processes ---- */

START_TEST(two_stuck_processes_are_killed_in_time)
{
	evc_cluster_config k = { .grace = AGES };
	struct before b = begin_test();
	/* They are killed in the last tenth. */
	evc_coord *c = with_budget(NULL, 5);
	evc_remote *r[2];
	evc_cluster *cl;
	pthread_t t;
	double deaf = 0;
	int i;

	if (t_under_qemu())
		T_SKIP("the kernel cannot run a program of another machine");
	cl = open_with(c, "processes://2", &k);
	for (i = 0; i < 2; i++)
		OK(evc_schedule_pack(cl, "deaf", NULL, &r[i], "[i]", 1000000));
	UNTIL(evc_variable_add(cl, "deaf", 0, &deaf) == 0 && deaf == 2);
	OK(pthread_create(&t, NULL, stop_soon, c));
	ck_assert_int_eq(evc_cluster_join(cl, INFINITY), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "deaf: it did not return when it was asked");
	OK(pthread_join(t, NULL));
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(evc_remote_fetch(r[i], 0, NULL),
				 EVC_UNAVAILABLE);
		evc_remote_free(r[i]);
	}
	OK(evc_cluster_close(cl));
	end_test(&b, c);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_fetch_ends_with_the_stop,
		a_join_ends_with_the_stop,
		the_second_signal_ends_them_sooner,
		waits_end_also_when_the_clusters_loop_hangs,
		a_result_that_the_stop_has_lost_is_an_error,
		an_error_that_nobody_took_is_in_the_verdict,
		an_error_that_a_join_took_is_in_no_verdict,
		an_error_that_the_close_took_is_in_no_verdict,
		an_error_after_the_clusters_own_stop,
		two_stuck_processes_are_killed_in_time,
		a_log_hook_that_hangs_keeps_no_join,
	};

	if (evc_worker_is())
		return evc_worker_main(functions, N_FUNCTIONS, NULL) != 0;
	return api_run("stop_budget", NULL, NULL, tests,
		       sizeof(tests) / sizeof(tests[0]));
}
