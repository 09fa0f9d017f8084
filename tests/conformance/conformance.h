/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One suite for every engine: what it promises stands in the public headers, and
 * each row here runs on each engine that can do it.  A row that one cannot run is
 * named, with the reason, which stands in one place: lacks[].
 *
 * Each program of this folder is the program of its own worker processes, too.
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include "redis.h"

#include <ev.h>
#include <evcoord/cluster.h>
#include <evcoord/worker.h>
#include <locale.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- engines, and what they can ---- */

enum {
	CALLS = 1 << 0,     /* evc_schedule_call */
	DIES = 1 << 1,      /* a worker can be killed, and comes back */
	DEADLINES = 1 << 2, /* ends a function that takes too long */
	STORE = 1 << 3,     /* keeps the variables itself, apart from the
			       coordinator, and so can fail itself */
	FINDS = 1 << 4,     /* its workers are not its own: they come and go by
			       themselves, on nodes that the test starts */
	RESIZES = 1 << 5    /* evc_cluster_resize */
};

struct engine {
	const char *name, *uri; /* in front of the number of workers; with FINDS
				   redis.h knows it */
	unsigned can;
	const char *barren;     /* an address where no worker ever comes up */
	unsigned nodes;         /* with FINDS: among which the workers are
				   shared out */
};

static const struct engine engines[] = {
	{ "threads", "threads://", CALLS | RESIZES, NULL, 0 },
	{ "processes", "processes://", DIES | DEADLINES | RESIZES,
	  "processes://2?program=/bin/false", 0 },
	{ "redis", NULL, DIES | DEADLINES | STORE | FINDS, NULL, 1 },
	/* Where a node's numbers are not the cluster's. */
	{ "two nodes of redis", NULL, DIES | DEADLINES | STORE | FINDS, NULL,
	  2 },
};

enum { N_ENGINES = sizeof(engines) / sizeof(engines[0]) };

/* The one place that says why a row is not run somewhere. */
static const struct {
	unsigned what;
	const char *reason;
} lacks[] = {
	{ CALLS, "its workers do not share the program's memory" },
	{ DIES, "a thread does not die alone" },
	{ DEADLINES, "a thread cannot be ended" },
	{ RESIZES, "its workers come and go by themselves" },
	{ FINDS, "its workers are its own" },
};

/* ---- rows ---- */

struct row {
	const TTest *test;
	const char *name;
	unsigned needs;
	bool tight;        /* R17: as well with a queue of 2 and 5 workers */
};

#define ROW(t) { .test = (t), .name = #t }
#define ROW_ON(what, t) { .test = (t), .name = #t, .needs = (what) }
#define ROW_TIGHT(t) { .test = (t), .name = #t, .tight = true }

static const evc_function *table;
static unsigned n_table;
static const evc_worker_opts *worker_opts MAYBE_UNUSED;
static int row_seconds MAYBE_UNUSED; /* that each row may take; 0: as usual */

/* ---- the test that runs ---- */

static struct {
	const struct engine *engine;
	bool tight;
	unsigned n_workers;
	evc_coord *c;
	evc_cluster *cl;
	struct ev_loop *loop; /* of the test's thread, or NULL */
	int threads, fds;
	char address[200]; /* with FINDS */
} on;

static MAYBE_UNUSED bool
can(unsigned what)
{
	return (on.engine->can & what) == what;
}

static MAYBE_UNUSED void
no_child_is_left(void)
{
	const char *forks = getenv("CK_FORK");
	pid_t some[8];

	if (redis_children() > 0 && forks != NULL &&
	    strcmp(forks, "no") == 0) {
		/* Dead or not. */
		ck_assert_uint_eq(children_of(getpid(), some, 8),
				  (unsigned)redis_children());
		return;
	}
	errno = 0;
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

/* What the fixture does last, before it counts. */
static void (*also_at_end)(void) MAYBE_UNUSED;

/* Fixture: what there is before the test ... */
static MAYBE_UNUSED void
count_before(void)
{
	memset(&on, 0, sizeof(on));
	on.threads = t_count_threads();
	on.fds = t_count_fds();
	no_child_is_left();
}

/* ... is what there is after it.  An error of a function is none of the
   coordinator. */
static MAYBE_UNUSED void
end_and_count(void)
{
	evc_join_opts budget = { .grace = T_LIMIT };
	evc_verdict v;

	evc_cluster_close(on.cl);
	on.cl = NULL;
	if (on.c != NULL) {
		ck_assert_msg(evc_join(on.c, &budget, &v) == 0, "evc_join: %s",
			      v.error.text);
		ck_assert_uint_eq(v.n_errors, 0);
		ck_assert_uint_eq(v.n_stragglers, 0);
		ck_assert_msg(evc_free(on.c) == 0, "evc_free: %s",
			      evc_last_error());
		on.c = NULL;
	}
	if (on.loop != NULL)
		ev_loop_destroy(on.loop);
	on.loop = NULL;
	redis_test_ends();
	if (also_at_end != NULL)
		also_at_end();
	ck_assert_int_eq(t_settle_threads(on.threads), on.threads);
	ck_assert_int_eq(t_settle_fds(on.fds), on.fds);
	no_child_is_left();
}

/* Until a node that was started for it has said what there is. */
static MAYBE_UNUSED void
await_workers(evc_cluster *cl)
{
	double until = t_now() + T_LIMIT;
	evc_cluster_info i;

	for (;;) {
		OK(evc_cluster_get(cl, &i));
		if (i.n_workers >= on.n_workers)
			return;
		ck_assert_msg(t_now() < until, "no node has come");
		if (on.loop != NULL)
			ev_run(on.loop, EVRUN_NOWAIT);
		t_sleep(0.001);
	}
}

/* At an address of this engine, and not closed by the fixture. */
static MAYBE_UNUSED evc_status
open_another(const char *uri, const evc_cluster_config *config,
	     evc_cluster **ret)
{
	evc_cluster_config cfg = { 0 };
	evc_status st;

	if (config != NULL)
		cfg = *config;
	if (cfg.functions == NULL) {
		cfg.functions = table;
		cfg.n_functions = n_table;
	}
	if (on.tight && cfg.max_queued == 0)
		cfg.max_queued = 2;
	st = evc_cluster_open(on.c, uri, &cfg, ret);
	if (st == 0 && can(FINDS) &&
	    redis_needs_nodes(uri, on.engine->nodes, on.n_workers))
		await_workers(*ret);
	return st;
}

/* The one of this test. */
static MAYBE_UNUSED const char *
address(void)
{
	if (!can(FINDS))
		snprintf(on.address, sizeof(on.address), "%s%u",
			 on.engine->uri, on.n_workers);
	else if (on.address[0] == '\0')
		redis_another("", on.address, sizeof(on.address));
	return on.address;
}

/* One for a cluster beside it: here only who finds its workers has to tell them
   apart. */
static MAYBE_UNUSED const char *
address_of_another(void)
{
	static char uri[200];

	if (!can(FINDS))
		return address();
	redis_another("", uri, sizeof(uri));
	return uri;
}

/* One that is not the same to anybody. */
static MAYBE_UNUSED const char *
address_elsewhere(void)
{
	static char uri[200];

	if (can(FINDS))
		return address_of_another();
	snprintf(uri, sizeof(uri), "%s%u", on.engine->uri, on.n_workers + 1);
	return uri;
}

/* One where no worker ever comes up. */
static MAYBE_UNUSED const char *
address_of_none(void)
{
	const char *uri = on.engine->barren;

	if (uri == NULL) {
		uri = address_of_another();
		redis_note(uri, 0);
	}
	return uri;
}

/* Is that one whose children its workers are? */
static MAYBE_UNUSED bool
is_parent_of_workers(pid_t pid)
{
	return can(FINDS) ? redis_is_node(pid) : pid == getpid();
}

/* i is the _i of the test: which engine, and whether R17 is meant. */
static MAYBE_UNUSED void
choose(int i, unsigned n_workers)
{
	on.engine = &engines[i % N_ENGINES];
	on.tight = i >= N_ENGINES;
	on.n_workers = on.tight ? 5 : n_workers;
}

static MAYBE_UNUSED evc_cluster *
begin_with(int i, unsigned n_workers, const evc_cluster_config *config)
{
	choose(i, n_workers);
	OK(evc_new(on.loop, NULL, &on.c));
	ck_assert_msg(open_another(address(), config, &on.cl) == 0,
		      "evc_cluster_open: %s", evc_last_error());
	return on.cl;
}

static MAYBE_UNUSED evc_cluster *
begin(int i, unsigned n_workers)
{
	return begin_with(i, n_workers, NULL);
}

/* The test's own thread is the cluster's loop. */
static MAYBE_UNUSED evc_cluster *
begin_on_loop(int i, unsigned n_workers, const evc_cluster_config *config)
{
	on.loop = ev_loop_new(EVFLAG_AUTO);
	ck_assert_ptr_nonnull(on.loop);
	return begin_with(i, n_workers, config);
}

/* What waits for an answer, and so is not for the loop's own thread: on another
   one, while this one turns the loop.  It only looks and says what it saw. */
struct aside {
	evc_status (*fn)(void *arg);
	void *arg;
	evc_status st;
	atomic_int over;
};

static inline void *
run_aside(void *arg)
{
	struct aside *a = arg;

	a->st = a->fn(a->arg);
	atomic_store(&a->over, 1);
	return NULL;
}

static MAYBE_UNUSED evc_status
aside(evc_status (*fn)(void *arg), void *arg)
{
	struct aside a = { .fn = fn, .arg = arg };
	double until = t_now() + T_LIMIT;
	pthread_t t;

	if (on.loop == NULL || !can(STORE))
		return fn(arg);
	OK(pthread_create(&t, NULL, run_aside, &a));
	while (!atomic_load(&a.over)) {
		ck_assert_msg(t_now() < until, "it waits for ever");
		ev_run(on.loop, EVRUN_NOWAIT);
		t_sleep(0.0005);
	}
	OK(pthread_join(t, NULL));
	return a.st;
}

/* Wait by turning it. */
#define TURN_UNTIL(cond) \
	UNTIL((ev_run(on.loop, EVRUN_NOWAIT), (cond)))

/* ---- main ---- */

static MAYBE_UNUSED void
say_skip(const char *row, const struct engine *e, unsigned missing)
{
	size_t i;

	for (i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++)
		if (lacks[i].what & missing) {
			printf("SKIP %s %s: %s\n", row, e->name,
			       lacks[i].reason);
			fflush(stdout);
			return;
		}
}

/* Which engine alone: of programs that are about one, or CK_RUN_SUITE says so;
   NULL: all. */
static const char *only_engine;

static MAYBE_UNUSED void
add_rows(TCase *tc, const struct row *rows, size_t n, int e, bool is_there)
{
	unsigned missing;
	size_t r;

	for (r = 0; r < n; r++) {
		if (!t_is_wanted(rows[r].test))
			continue;
		missing = rows[r].needs & ~engines[e].can;
		if (!is_there) {
			printf("SKIP %s %s: %s\n", rows[r].name,
			       engines[e].name, REDIS_LACKS);
			fflush(stdout);
		} else if (missing != 0) {
			say_skip(rows[r].name, &engines[e], missing);
		} else {
			tcase_add_loop_test(tc, rows[r].test, e, e + 1);
			if (rows[r].tight)
				tcase_add_loop_test(tc, rows[r].test,
						    e + N_ENGINES,
						    e + N_ENGINES + 1);
		}
	}
}

static MAYBE_UNUSED int
run_rows(const char *area, const struct row *rows, size_t n)
{
	const char *chosen = getenv("CK_RUN_SUITE");
	Suite *s = suite_create(chosen != NULL ? chosen : area);
	bool is_there;
	TCase *tc;
	int e;

	if (only_engine == NULL)
		only_engine = chosen;
	/* Workers that do not know that they are would run all this again, and
	   start workers, and so on without an end. */
	if (getenv("EVC_CONFORMANCE_RUNS") != NULL) {
		fprintf(stderr, "a worker that does not know it is one\n");
		return EXIT_FAILURE;
	}
	setenv("EVC_CONFORMANCE_RUNS", "1", 1);
	for (e = 0; e < N_ENGINES; e++) {
		if (only_engine != NULL &&
		    strcmp(only_engine, engines[e].name) != 0)
			continue;
		tc = tcase_create(engines[e].name);
		tcase_add_checked_fixture(tc, count_before, end_and_count);
		if (row_seconds > 0)
			tcase_set_timeout(tc, row_seconds);
		if (engines[e].can & FINDS)
			tcase_add_unchecked_fixture(tc, redis_begin, redis_end);
		is_there = !(engines[e].can & FINDS) || redis_is_there();
		add_rows(tc, rows, n, e, is_there);
		suite_add_tcase(s, tc);
	}
	return run_suite(s);
}

static MAYBE_UNUSED void
count_writable(evc_cluster *cl, void *arg)
{
	(void)cl;
	++*(int *)arg;
}

/* A whole number of the environment. */
static MAYBE_UNUSED int
from_environment(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text != NULL && atoi(text) > 0 ? atoi(text) : otherwise;
}

/* The program of workers and nodes is this one: there it knows the functions, and
   no rows. */
#define CONFORMANCE_MAIN_WITH(area, functions, opts, ...) \
	int main(void) \
	{ \
		const struct row rows_[] = { __VA_ARGS__ }; \
		(void)setlocale(LC_ALL, ""); \
		table = (functions); \
		n_table = sizeof(functions) / sizeof((functions)[0]) - \
			  node_is_old(); \
		worker_opts = (opts); \
		if (evc_worker_is()) \
			return evc_worker_main(table, n_table, worker_opts) == \
					       0 ? \
				       EXIT_SUCCESS : \
				       EXIT_FAILURE; \
		if (node_is()) \
			return node_main(table, n_table, worker_opts); \
		return run_rows((area), rows_, \
				sizeof(rows_) / sizeof(rows_[0])); \
	}
#define CONFORMANCE_MAIN(area, functions, ...) \
	CONFORMANCE_MAIN_WITH(area, functions, NULL, __VA_ARGS__)

#endif
