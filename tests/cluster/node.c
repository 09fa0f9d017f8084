/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_worker_main with an address: the process is a node of it.  The engine of
 * this address is one of the test's own, and stands where that of
 * libevcoord-redis would: so this is how it is found, too.
 */
#include "../support/cluster_util.h"
#include "../support/idle_engine.h"

#include <ev.h>
#include <evcoord/redis.h>
#include <math.h>
#include <signal.h>

/* ---- the engine ---- */

static struct {
	atomic_int n_serves, n_stops, n_served;
	/* what it was given */
	char uri[64], place[64], option[64], function[48], workers[16];
	unsigned n_functions, n_workers;
	double grace;
	bool is_worker, same_loop;
	evc_coord *scope;
	evc_id runner;
	ev_timer timer;
	struct ev_loop *loop;
	/* what it is to do */
	evc_status refuses, returns;
	int signal; /* sent in a moment; 0: it asks for the stop itself */
} node;

static bool
n_is_running(void *arg)
{
	(void)arg;
	return atomic_load(&node.n_stops) == 0;
}

static void
n_stop(void *arg)
{
	(void)arg;
	atomic_fetch_add(&node.n_stops, 1);
	OK(evc_runner_done(node.scope, node.runner, 0));
}

static void
n_on_timer(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)t;
	(void)revents;
	if (node.signal != 0)
		OK(kill(getpid(), node.signal));
	else
		OK(evc_request_stop(node.scope, 0, "its cluster has ended"));
}

static void
n_note(const evc_engine_node_env *env)
{
	snprintf(node.uri, sizeof(node.uri), "%s", env->uri);
	snprintf(node.place, sizeof(node.place), "%s", env->place);
	snprintf(node.option, sizeof(node.option), "%s",
		 env->options[0] != NULL ? env->options[0] : "");
	node.n_functions = env->n_functions;
	snprintf(node.function, sizeof(node.function), "%s",
		 env->functions[0].name);
	snprintf(node.workers, sizeof(node.workers), "%s",
		 env->workers->scheme);
	node.n_workers = env->n_workers;
	node.grace = env->grace;
	node.is_worker = evc_worker_is();
	node.same_loop = evc_loop_reactor(env->loop) == env->reactor;
	node.scope = env->scope;
}

static evc_status
n_serve(const evc_engine_node_env *env, evc_engine_node **ret)
{
	const evc_runner_ops ops = { .is_running = n_is_running,
				     .stop = n_stop };

	atomic_fetch_add(&node.n_serves, 1);
	n_note(env);
	if (node.refuses != 0)
		return evc_refuse(node.refuses, "not at %s", env->place);
	OK(evc_runner_add(env->scope, "node", &ops, &node, NULL,
			  &node.runner));
	node.loop = evc_reactor_loop(env->reactor);
	ev_timer_init(&node.timer, n_on_timer, 0.01, 0);
	ev_timer_start(node.loop, &node.timer);
	*ret = (evc_engine_node *)(void *)&node;
	return 0;
}

static evc_status
n_served(evc_engine_node *n)
{
	ck_assert_ptr_eq(n, &node);
	ck_assert_int_eq(atomic_load(&node.n_stops), 1);
	atomic_fetch_add(&node.n_served, 1);
	return node.returns;
}

static evc_status
n_open(const evc_engine_env *env, evc_engine **ret)
{
	(void)ret;
	return evc_refuse(-EVC_UNAVAILABLE, "no coordinator at %s",
			  env->place);
}

static const char *const n_options[] = { "once", NULL };

static evc_engine_ops n_ops = {
	IDLE_OPS,
	.scheme = "redis",
	.usage = "redis://HOST:PORT/NAMESPACE",
	.options = n_options,
	.open = n_open,
	.serve = n_serve,
	.served = n_served,
};

const evc_engine_ops *
evc_redis_engine(const char *scheme)
{
	return strcmp(scheme, "redis") == 0 ? &n_ops : NULL;
}

/* ---- the program of a node ---- */

static evc_status
never_started(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	ck_abort_msg("this is for workers");
	return 0;
}

static void
never_stopped(evc_coord *c, void *arg)
{
	(void)never_started(c, arg);
}

#define URI "redis://host:1/jobs?once=1"
#define OPTS .uri = URI, .start = never_started, .stop = never_stopped
#define N_FUNCTIONS (sizeof(f_table) / sizeof(f_table[0]))

static evc_status
be_node(const evc_worker_opts *o)
{
	return evc_worker_main(f_table, N_FUNCTIONS, o);
}

START_TEST(a_node_has_what_it_was_given)
{
	const evc_worker_opts o = { OPTS, .n_workers = 3, .grace = 2.5 };
	struct census n = census_begin();

	node.signal = SIGTERM;
	OK(be_node(&o));
	ck_assert_int_eq(node.n_serves, 1);
	ck_assert_int_eq(node.n_served, 1);
	ck_assert_str_eq(node.uri, URI);
	ck_assert_str_eq(node.place, "host:1/jobs");
	ck_assert_str_eq(node.option, "once=1");
	ck_assert_uint_eq(node.n_functions, N_FUNCTIONS);
	ck_assert_str_eq(node.function, "add");
	ck_assert_uint_eq(node.n_workers, 3);
	ck_assert(node.grace == 2.5);
	ck_assert_str_eq(node.workers, "processes");
	ck_assert(node.same_loop);
	ck_assert(!node.is_worker);
	ck_assert(!evc_worker_is());
	census_end(&n);
	/* once more, and by the other signal: with the defaults */
	atomic_store(&node.n_stops, 0);
	node.signal = SIGINT;
	OK(be_node(&(evc_worker_opts){ OPTS }));
	ck_assert_int_eq(node.n_served, 2);
	ck_assert_uint_gt(node.n_workers, 0);
	ck_assert(node.grace == 10);
	census_end(&n);
}
END_TEST

START_TEST(how_it_ended_is_what_main_returns)
{
	node.signal = 0;
	node.returns = EVC_UNAVAILABLE;
	ck_assert_int_eq(be_node(&(evc_worker_opts){ OPTS }), EVC_UNAVAILABLE);
	ck_assert_int_eq(node.n_served, 1);
}
END_TEST

START_TEST(somebody_else_has_the_signals)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_signals_start(c, NULL));
	node.signal = 0;
	OK(be_node(&(evc_worker_opts){ OPTS }));
	ck_assert_int_eq(node.n_served, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(an_engine_that_refuses_leaves_nothing)
{
	struct census n = census_begin();

	node.refuses = -EVC_PERMISSION_DENIED;
	REFUSED(EVC_PERMISSION_DENIED, be_node(&(evc_worker_opts){ OPTS }));
	ck_assert_str_eq(evc_last_error(), "not at host:1/jobs");
	ck_assert_int_eq(node.n_served, 0);
	census_end(&n);
}
END_TEST

#define NO(code, why, ...) \
	do { \
		REFUSED(code, be_node(&(evc_worker_opts){ __VA_ARGS__ })); \
		HAS(evc_last_error(), why); \
	} while (0)

START_TEST(mistakes_are_refused)
{
	static const evc_function twice[] = { { .name = "a", .fn = f_add },
					      { .name = "a", .fn = f_add } };
	const evc_worker_opts o = { OPTS };
	struct census n = census_begin();

	NO(EVC_INVALID_ARGUMENT, "zeroed", OPTS, .reserved_ = { 1 });
	NO(EVC_INVALID_ARGUMENT, "grace", OPTS, .grace = -2);
	NO(EVC_INVALID_ARGUMENT, "grace", OPTS, .grace = NAN);
	NO(EVC_INVALID_ARGUMENT, "1024", OPTS, .n_workers = 1025);
	NO(EVC_INVALID_ARGUMENT, "no engine serves", .uri = "");
	NO(EVC_INVALID_ARGUMENT, "no engine serves", .uri = "host:1");
	NO(EVC_INVALID_ARGUMENT, "threads:// has no nodes",
	   .uri = "threads://2");
	NO(EVC_INVALID_ARGUMENT, "processes:// has no nodes",
	   .uri = "processes://2");
	NO(EVC_INVALID_ARGUMENT, "no option \"twice\"",
	   .uri = "redis://host?twice=1");
	NO(EVC_INVALID_ARGUMENT, "NAME=VALUE", .uri = "redis://host?once");
	NO(EVC_UNIMPLEMENTED, "without rediss://", .uri = "rediss://host");
	REFUSED(EVC_INVALID_ARGUMENT, evc_worker_main(twice, 2, &o));
	ck_assert_int_eq(node.n_serves, 0);
	/* without an address it has to be started by a cluster */
	NO(EVC_FAILED_PRECONDITION, "not started as a worker", .uri = NULL);
	census_end(&n);
}
END_TEST

START_TEST(a_worker_is_no_node)
{
	OK(setenv("EVCOORD_WORKER", "77 3 4 1", 1));
	NO(EVC_FAILED_PRECONDITION, "version 77", OPTS);
	ck_assert_int_eq(node.n_serves, 0);
}
END_TEST

/* ---- how the engine is found ---- */

START_TEST(a_cluster_finds_it_too)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl;

	REFUSED(EVC_UNAVAILABLE,
		evc_cluster_open(c, "redis://host:1/jobs", NULL, &cl));
	ck_assert_str_eq(evc_last_error(), "no coordinator at host:1/jobs");
	REFUSED(EVC_UNIMPLEMENTED,
		evc_cluster_open(c, "unix:///run/redis/jobs", NULL, &cl));
	UNTIL(evc_free(c) == 0);
}
END_TEST

START_TEST(one_that_does_not_fit)
{
	evc_coord *c = new_coord(NULL);
	evc_cluster *cl;

	n_ops.abi = 7;
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_cluster_open(c, "redis://host:1/jobs", NULL, &cl));
	HAS(evc_last_error(), "libevcoord-redis");
	HAS(evc_last_error(), "abi 7");
	NO(EVC_INVALID_ARGUMENT, "abi 7", OPTS);
	n_ops.abi = EVC_ENGINE_ABI;
	n_ops.caps = EVC_ENGINE_VARIABLES;
	NO(EVC_INVALID_ARGUMENT, "libevcoord-redis.so.1 lacks", OPTS);
	OK(evc_free(c));
}
END_TEST

API_MAIN("node", a_node_has_what_it_was_given,
	 how_it_ended_is_what_main_returns, somebody_else_has_the_signals,
	 an_engine_that_refuses_leaves_nothing, mistakes_are_refused,
	 a_worker_is_no_node, a_cluster_finds_it_too, one_that_does_not_fit)
