/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a cluster whose nodes or whose server do not do their part: it has a
 * limit, and what is late is named.
 */
#include "rows.h"

#define LEASE 3.0
/* Nothing waits for half of it in a test. */
#define LONG 1000.0

static void
begin_own(int i, unsigned n_workers)
{
	evc_cluster_config config = { .lease = LEASE, .grace = 0.5 };

	rig(i, &(struct rig_opts){ .own = true });
	rig_node(n_workers);
	rig_open(&config);
}

static void
begin_shared(int i, double lease, double grace)
{
	evc_cluster_config config = { .lease = lease, .grace = grace };

	rig(i, NULL);
	rig_node(1);
	rig_open(&config);
}

/* Closed, and joined for so long; what the verdict says of who is late, and what
   a report says meanwhile. */
static evc_status
close_and_join(double seconds, char *late, char *report, size_t n)
{
	evc_join_opts budget = { .grace = seconds,
				 .flags = EVC_JOIN_STOP_FIRST };
	evc_verdict v;
	evc_status st;

	evc_cluster_close(on.cl);
	on.cl = NULL;
	st = evc_join(on.c, &budget, &v);
	snprintf(late, n, "%s", v.error.text);
	evc_report(on.c, EVC_REPORT_TEXT, report, n);
	return st;
}

static void
ends_within(double seconds)
{
	char late[4096], report[4096];
	evc_status st;

	st = close_and_join(seconds, late, report, sizeof(late));
	ck_assert_msg(st == 0, "%d, %s: %s", st, late, report);
}

/* ---- who is late is named ---- */

START_TEST(a_frozen_node_is_named)
{
	char late[4096], report[4096], pid[32];
	pid_t node;

	begin_shared(_i, 10, 10);
	OK(join());
	node = node_of(0);
	OK(kill(node, SIGSTOP));
	evc_cluster_close(on.cl);
	UNTIL((evc_report(on.c, EVC_REPORT_TEXT, report, sizeof(report)),
	       strstr(report, "its workers are ending, 1 of 1 workers up: "
			      "worker 0 (") != NULL));
	snprintf(pid, sizeof(pid), "-%d-", (int)node);
	HAS(report, pid);
	on.cl = NULL;
	IS(close_and_join(0.3, late, report, sizeof(late)),
	   EVC_DEADLINE_EXCEEDED);
	HAS(late, "cluster/node ");
	HAS(late, pid);
	HAS(report, pid);
	OK(kill(node, SIGCONT));
}
END_TEST

START_TEST(a_function_that_heeds_nothing_is_named)
{
	char late[4096], report[4096];
	evc_remote *r;

	/* The close comes sooner, or it would return the error itself. */
	begin_shared(_i, 10, 2);
	r = SCHEDULE("step", "[sd]", "n", 1000.0);
	/* It has begun: a stop would take back one that has not. */
	UNTIL(variable("n") == 1);
	OK(evc_request_stop(on.c, 0, "the test"));
	evc_report(on.c, EVC_REPORT_TEXT, report, sizeof(report));
	HAS(report, "step on worker 0");
	IS(close_and_join(T_LIMIT, late, report, sizeof(late)),
	   EVC_UNAVAILABLE);
	HAS(late, "step on worker 0: it did not return");
	OK(evc_free(on.c));
	on.c = NULL;
	evc_remote_free(r);
}
END_TEST

/* ---- and that has an end ---- */

START_TEST(a_frozen_node)
{
	pid_t node;

	begin_shared(_i, LEASE, 0.5);
	OK(join());
	node = node_of(0);
	OK(kill(node, SIGSTOP));
	ends_within(T_LIMIT);
	OK(kill(node, SIGCONT));
}
END_TEST

START_TEST(a_server_that_is_gone)
{
	char late[4096], report[4096];
	evc_remote *r;

	begin_own(_i, 1);
	r = SCHEDULE("hang", "[]");
	UNTIL(info_of(r).state == EVC_REMOTE_RUNNING);
	rs_kill(rg.server);
	/* The result of the function is lost. */
	ck_assert_int_eq(close_and_join(T_LIMIT, late, report, sizeof(late)),
			 EVC_UNAVAILABLE);
	HAS(late, "hang on worker 0: it did not return");
	OK(evc_free(on.c));
	on.c = NULL;
	evc_remote_free(r);
	rs_start(rg.server);
}
END_TEST

START_TEST(a_server_that_is_frozen)
{
	begin_own(_i, 1);
	OK(join());
	rs_freeze(rg.server);
	ends_within(T_LIMIT);
	rs_thaw(rg.server);
}
END_TEST

/* ---- waits end with the stop, whatever the server does ---- */

static void *
stop_soon(void *c)
{
	t_sleep(MOMENT);
	OK(evc_request_stop(c, 0, "enough"));
	return NULL;
}

static void
waits_end(int i, void (*hit)(struct redis_server *s))
{
	evc_cluster_config config = { .lease = LEASE, .grace = 1e6 };
	evc_escalation_opts o = { .budget = 0.5 };
	evc_remote *r;
	pthread_t t;

	rig(i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(&config);
	OK(evc_escalation_set(on.c, &o));
	r = SCHEDULE("hang", "[]");
	UNTIL(info_of(r).state == EVC_REMOTE_RUNNING);
	hit(rg.server);
	OK(pthread_create(&t, NULL, stop_soon, on.c));
	IS(evc_remote_fetch(r, INFINITY, NULL), -EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "hang on worker 0");
	IS(evc_cluster_join(on.cl, INFINITY), -EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "hang on worker 0");
	OK(pthread_join(t, NULL));
	evc_remote_free(r);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	/* The node's lease has to be over first.  The function was lost. */
	UNTIL(evc_all_stopped(on.c));
	ck_assert_int_gt(evc_join(on.c, NULL, NULL), 0);
	UNTIL(evc_free(on.c) == 0);
	on.c = NULL;
}

START_TEST(waits_with_a_server_that_is_gone)
{
	waits_end(_i, rs_kill);
	rs_start(rg.server);
}
END_TEST

START_TEST(waits_with_a_server_that_is_frozen)
{
	waits_end(_i, rs_freeze);
	rs_thaw(rg.server);
}
END_TEST

static atomic_int asker, n_answered; /* asker: its thread id */

static void *
add_and_count(void *arg)
{
	evc_status st;

	(void)arg;
	atomic_store(&asker, own_tid());
	st = evc_variable_add(on.cl, "x", 1, NULL);
	(void)evc_cluster_finished(on.cl);
	atomic_fetch_add(&n_answered, 1);
	return (void *)(intptr_t)st;
}

/* Long before the server has been silent for half a lease. */
START_TEST(calls_about_variables_end_with_the_stop)
{
	evc_cluster_config config = { .lease = LONG, .grace = 0.5 };
	pthread_t t;
	void *st;

	atomic_store(&n_answered, 0);
	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(&config);
	OK(evc_variable_add(on.cl, "x", 1, NULL));
	rs_freeze(rg.server);
	OK(pthread_create(&t, NULL, add_and_count, NULL));
	UNTIL(atomic_load(&asker) != 0 &&
	      sleeps_on(atomic_load(&asker), 0.01));
	ck_assert_int_eq(atomic_load(&n_answered), 0);
	OK(evc_request_stop(on.c, 0, "enough"));
	UNTIL(atomic_load(&n_answered) == 1);
	OK(pthread_join(t, &st));
	IS((int)(intptr_t)st, -EVC_UNAVAILABLE);
	rs_thaw(rg.server);
	ends_within(T_LIMIT);
}
END_TEST

/* The cluster is given up before the grace ends, and nobody hears of the function's
   end: its result is lost, and that is an error. */
START_TEST(a_function_that_runs_with_a_frozen_server)
{
	evc_cluster_config config = { .lease = LEASE, .grace = 60 };
	char late[4096], report[4096];
	evc_remote *r;

	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(&config);
	r = SCHEDULE("step", "[sd]", "n", 1000.0);
	UNTIL(variable("n") == 1);
	rs_freeze(rg.server);
	OK(evc_request_stop(on.c, 0, "the test"));
	IS(close_and_join(T_LIMIT, late, report, sizeof(late)),
	   EVC_UNAVAILABLE);
	IS(info_of(r).code, EVC_UNAVAILABLE);
	HAS(info_of(r).text, "it did not return when it was asked to stop");
	OK(evc_free(on.c));
	on.c = NULL;
	evc_remote_free(r);
	rs_thaw(rg.server);
}
END_TEST

/* So does a node, when its own stop ends its workers. */
START_TEST(a_node_that_is_stopped)
{
	evc_cluster_config config = { .lease = LONG, .grace = 0.5 };
	pid_t node, worker;

	rig(_i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(&config);
	OK(join());
	node = node_of(0);
	ck_assert_uint_eq(workers_of(0, &worker, 1), 1);
	rs_freeze(rg.server);
	OK(kill(node, SIGTERM));
	/* The second one takes most of the time away. */
	UNTIL(process_is_over(worker));
	OK(kill(node, SIGTERM));
	UNTIL(is_dead(node));
	rs_thaw(rg.server);
	ends_within(T_LIMIT);
}
END_TEST

START_TEST(a_server_that_is_busy)
{
	redisContext *c;

	begin_own(_i, 1);
	OK(join());
	c = makes_busy();
	ends_within(T_LIMIT);
	is_busy_no_more(c);
}
END_TEST

/* ---- from the beginning: nothing runs, and nothing is waited for ---- */

static void
open_without_a_node(double lease)
{
	evc_cluster_config config = { .lease = lease, .grace = 0.5 };

	OK(evc_new(NULL, NULL, &on.c));
	redis_note(rg.uri, 0);
	OK(open_another(rg.uri, &config, &on.cl));
	evc_remote_free(SCHEDULE("add", "[ii]", 1, 2));
}

START_TEST(one_that_was_never_there)
{
	rig(_i, &(struct rig_opts){ .own = true });
	rs_kill(rg.server);
	open_without_a_node(LEASE);
	says("refused");
	ends_within(T_LIMIT);
	rs_start(rg.server);
}
END_TEST

START_TEST(one_that_was_always_frozen)
{
	rig(_i, &(struct rig_opts){ .own = true });
	rs_freeze(rg.server);
	open_without_a_node(LEASE);
	says("127.0.0.1");
	ends_within(T_LIMIT);
	rs_thaw(rg.server);
}
END_TEST

START_TEST(one_that_was_always_busy)
{
	redisContext *c;

	rig(_i, &(struct rig_opts){ .own = true });
	c = makes_busy();
	open_without_a_node(LEASE);
	says("BUSY");
	ends_within(T_LIMIT);
	is_busy_no_more(c);
}
END_TEST

START_TEST(one_that_froze_before_a_node_came)
{
	rig(_i, &(struct rig_opts){ .own = true });
	open_without_a_node(LONG);
	UNTIL(rig_key("EXISTS", "coord") == 1);
	rs_freeze(rg.server);
	ends_within(T_LIMIT);
	rs_thaw(rg.server);
}
END_TEST

/* Taken by another coordinator. */
START_TEST(a_namespace_that_is_in_use)
{
	rig(_i, &(struct rig_opts){ .own = true });
	rs_do(rg.server, "SET {%s}:coord somebody", rg.ns);
	rs_do(rg.server, "SET {%s}:gen 7", rg.ns);
	open_without_a_node(LEASE);
	says("in use");
	ends_within(T_LIMIT);
}
END_TEST

static const evc_function functions[] = { ROW_FUNCTIONS };

REDIS_ROWS("redis: the end of a cluster", functions,
	   ROW(a_frozen_node_is_named),
	   ROW(a_function_that_heeds_nothing_is_named), ROW(a_frozen_node),
	   ROW(a_server_that_is_gone), ROW(a_server_that_is_frozen),
	   ROW(waits_with_a_server_that_is_gone),
	   ROW(waits_with_a_server_that_is_frozen),
	   ROW(calls_about_variables_end_with_the_stop),
	   ROW(a_node_that_is_stopped),
	   ROW(a_server_that_is_busy),
	   ROW(a_function_that_runs_with_a_frozen_server),
	   ROW(one_that_was_never_there),
	   ROW(one_that_was_always_frozen), ROW(one_that_was_always_busy),
	   ROW(one_that_froze_before_a_node_came),
	   ROW(a_namespace_that_is_in_use))
