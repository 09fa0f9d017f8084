/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork children of a program with a cluster, as a table, on each engine: the child
 * of a plain thread, of a member's, of a callback of the cluster, of a function; in
 * it all public calls with what is the parent's (fork_cluster_calls.h); and then
 * what a child may want: clusters of its own, the loop that it has inherited, that
 * loop's end, exit, exec.  Threads of the parent hold the cluster's locks meanwhile
 * as often as they can, and its workers live on.
 *
 * A child says on stderr what was not as it should be, and leaves with 1 or 3; an
 * alarm ends one that hangs.
 */
#include "../support/fork_child.h"
#include "../support/fork_cluster_calls.h"
#include "functions.h"

#include <fcntl.h>

static struct world world;
static char saved_at[200];
static atomic_int over;

/* ---- functions of the workers ---- */

/* What a child of a function does then. */
enum { RETURNS, EXITS, ENDS_THREAD };

/* [what, PAD]: fork, and say how the child has ended. */
static evc_status
fn_fork(evc_exec *x, void *arg)
{
	struct world w = { .x = x };
	int what, pad, st = -1;
	pid_t pid;

	(void)arg;
	if (evc_exec_unpack(x, "[ii]", &what, &pad) < 0)
		return EVC_INVALID_ARGUMENT;
	pid = fork();
	if (pid == 0) {
		begin_child();
		CHILD(evc_pack(&w.args, "[ii]", 1, 2) == 0);
		FORK_CHECK(fork_exec_call, &w);
		CHILD(!evc_worker_is());
		if (what == EXITS)
			exit(0);
		if (what == ENDS_THREAD)
			pthread_exit(NULL);
		return evc_exec_return(x, "i", -1);
	}
	if (pid > 0)
		(void)waitpid(pid, &st, 0);
	return evc_exec_return(x, "i", st);
}

/* [n] -> n; never in a child */
static evc_status
fn_mark(evc_exec *x, void *arg)
{
	int n = 0;

	(void)arg;
	if (in_child)
		_exit(4);
	(void)evc_exec_unpack(x, "[i]", &n);
	return evc_exec_return(x, "i", n);
}

static const evc_function functions[] = {
	{ .name = "add", .fn = fn_add },
	{ .name = "nap", .fn = fn_nap },
	{ .name = "fork", .fn = fn_fork },
	{ .name = "mark", .fn = fn_mark },
};

/* ---- what lives in the parent ---- */

static void
worker_changed(evc_cluster *cl, const evc_cluster_worker_info *info, void *arg)
{
	(void)cl;
	(void)info;
	(void)arg;
	called();
}

static void
joined(evc_cluster *cl, evc_status st, void *arg)
{
	(void)cl;
	(void)st;
	(void)arg;
	called();
}

static void
fetched(evc_cluster *cl, evc_status st, const evc_value *value, void *arg)
{
	(void)cl;
	(void)st;
	(void)value;
	(void)arg;
	called();
}

/* It has the locks as often as it can. */
static void *
busy(void *arg)
{
	evc_remote_info remote;
	evc_cluster_info i;
	evc_reason reason;
	char text[1000];

	(void)arg;
	while (!atomic_load(&over)) {
		(void)evc_cluster_get(world.cl, &i);
		(void)report_text(evc_cluster_scope(world.cl), text,
				  sizeof(text));
		(void)evc_cluster_error_get(world.cl, 0, &reason);
		(void)evc_remote_get(world.runs, &remote);
	}
	return NULL;
}

static evc_remote *
turn_for(evc_remote *r)
{
	TURN_UNTIL(info_of(r).state == EVC_REMOTE_DONE);
	return r;
}

static void
remove_saved(void)
{
	(void)unlink(saved_at);
}

static struct t_crowd busy_threads;

static void
world_make(int i)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions = n_table,
				      .worker = worker_changed,
				      .checkpoint_every = INFINITY,
				      .grace = 1 };
	struct world *w = &world;

	also_at_end = remove_saved;
	note_old_fds();
	snprintf(saved_at, sizeof(saved_at), "%s/fork-%d",
		 getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp",
		 (int)getpid());
	choose(i, 2);
	/* An engine that keeps the variables may be asked for the first save at
	   any time; the others save at the end alone, when told so. */
	if (!can(STORE))
		config.checkpoint = saved_at;
	w->cl = begin_on_loop(i, 2, &config);
	w->c = on.c;
	TURN_UNTIL(numbers().n_up == 2);
	OK(evc_pack(&w->args, "[ii]", 1, 2));
	OK(evc_per_worker_value(w->cl, "v", "add", &w->args, &w->value));
	OK(evc_per_worker_dataset_of(w->cl, "d", &w->args, NULL, &w->dataset));
	OK(evc_per_worker_iterator(w->dataset, &w->iterator));
	w->done = turn_for(SCHEDULE("add", "[ii]", 1, 2));
	w->runs = SCHEDULE("nap", "[d]", 1000.0);
	TURN_UNTIL(info_of(w->runs).state == EVC_REMOTE_RUNNING);
	/* Those wait on the loop: for ever, and for its next turn. */
	OK(evc_cluster_join_start(w->cl, joined, NULL));
	OK(evc_fetch_start(w->cl, &w->args, fetched, NULL));
	atomic_store(&over, 0);
	crowd_begin(&busy_threads, 2, busy, NULL, 0);
}

/* All is as it was, and goes on. */
static void
world_is_well(void)
{
	struct world *w = &world;

	ck_assert_int_eq(info_of(w->runs).state, EVC_REMOTE_RUNNING);
	IS(take_number(turn_for(SCHEDULE("add", "[ii]", 3, 4))), 7);
	ck_assert_uint_eq(numbers().n_up, 2);
	ck_assert_uint_eq(numbers().n_lost, 0);
	ck_assert_uint_eq(numbers().n_cancelled, 0);
	ck_assert_int_lt(access(saved_at, F_OK), 0);
}

static void
world_end(void)
{
	struct world *w = &world;

	atomic_store(&over, 1);
	crowd_end(&busy_threads);
	OK(evc_remote_cancel(w->runs));
	turn_for(w->runs);
	evc_per_worker_free(w->iterator);
	evc_per_worker_free(w->dataset);
	evc_per_worker_free(w->value);
	evc_remote_free(w->done);
	evc_remote_free(w->runs);
	evc_value_free(&w->args);
	evc_cluster_close(on.cl);
	on.cl = NULL;
}

/* ---- what a child does ---- */

static void
use_own(evc_coord *c, const char *uri, unsigned nodes)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions = n_table };
	evc_remote *r = NULL;
	evc_cluster *cl;
	int64_t sum = 0;
	evc_value v;

	CHILD(evc_cluster_open(c, uri, &config, &cl) == 0);
	(void)redis_needs_nodes(uri, nodes, nodes);
	CHILD(evc_schedule_pack(cl, "add", NULL, &r, "[ii]", 20, 3) == 0);
	CHILD(evc_remote_fetch(r, T_LIMIT, &v) == 0);
	CHILD(evc_unpack(&v, "I", &sum) == 0);
	CHILD(sum == 23);
	evc_remote_free(r);
	CHILD(evc_cluster_close(cl) == 0);
}

/* Clusters of the child's own: beside a loop that is given they have one of
   their own. */
static void
make_own(void)
{
	evc_coord *c = NULL;
	evc_verdict v;
	char uri[200];

	CHILD(evc_new(NULL, NULL, &c) == 0);
	use_own(c, "threads://2", 0);
	use_own(c, "processes://1", 0);
	if (can(FINDS)) {
		redis_forget();
		redis_another("", uri, sizeof(uri));
		use_own(c, uri, 1);
		redis_end_first();
	}
	CHILD(evc_request_stop(c, 0, "own") == 0);
	CHILD(evc_join(c, NULL, &v) == 0);
	CHILD(evc_free(c) == 0);
}

static void
check_calls(void)
{
	FORK_CHECK(fork_cluster_call, &world);
}

static void
keep_loop(void)
{
	ev_loop_fork(on.loop);
	turn_loop(on.loop);
	make_own();
	check_calls();
	ev_loop_destroy(on.loop);
}

static void
destroy_loops(void)
{
	ev_loop_destroy(on.loop);
}

/* ---- who forks ---- */

/* libcheck has a lock, which nobody may hold at the fork: from the first until the
   second the test's thread asserts nothing. */
static atomic_int may_fork, forked;

static void
fork_when_allowed(enum from from)
{
	while (!atomic_load(&may_fork))
		t_sleep(0.0005);
	do_fork(from);
	atomic_store(&forked, 1);
}

static void
await_fork(void)
{
	double until = t_now() + 3 * T_LIMIT;

	atomic_store(&may_fork, 1);
	while (!atomic_load(&forked) && t_now() < until)
		t_sleep(0.0005);
	ck_assert_int_eq(atomic_load(&forked), 1);
}

static void *
plain_thread(void *arg)
{
	(void)arg;
	fork_when_allowed(PLAIN);
	return NULL;
}

static evc_status
member_thread(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	fork_when_allowed(MEMBER);
	return 0;
}

static void
fork_in_callback(evc_cluster *cl, evc_status st, const evc_value *value,
		 void *arg)
{
	(void)cl;
	(void)st;
	(void)value;
	(void)arg;
	do_fork(CALLBACK);
	ev_break(on.loop, EVBREAK_ALL);
}

static void
fork_from(enum from from)
{
	pthread_t t;

	atomic_store(&may_fork, 0);
	atomic_store(&forked, 0);
	switch (from) {
	case PLAIN:
		OK(pthread_create(&t, NULL, plain_thread, NULL));
		await_fork();
		OK(pthread_join(t, NULL));
		break;
	case MEMBER:
		OK(evc_thread_start(on.c, "forks", member_thread, NULL, NULL,
				    NULL));
		await_fork();
		break;
	case CALLBACK:
		/* The second one is due in the same turn. */
		OK(evc_fetch_start(on.cl, &world.args, fork_in_callback, NULL));
		OK(evc_fetch_start(on.cl, &world.args, fetched, NULL));
		ev_run(on.loop, 0);
		if (in_child)
			do_then();
		break;
	}
}

static void
rows_from(int i, enum from from)
{
	world_make(i);
	for (next_child = OWN; next_child <= EXEC; next_child++) {
		fork_from(from);
		ENDED_WELL;
		world_is_well();
	}
	world_end();
}

START_TEST(the_child_of_a_plain_thread)
{
	rows_from(_i, PLAIN);
}
END_TEST

START_TEST(the_child_of_a_member)
{
	rows_from(_i, MEMBER);
}
END_TEST

START_TEST(the_child_of_a_callback)
{
	rows_from(_i, CALLBACK);
}
END_TEST

/* Its child runs none of what stands behind it, and says nothing. */
static void
function_forks(int what, int expected, unsigned flags)
{
	const evc_schedule_opts o = { .flags = flags };
	evc_remote *forks, *behind[8];
	int k;

	OK(evc_schedule_pack(on.cl, "fork", &o, &forks, "[ii]", what, 0));
	for (k = 0; k < 8; k++)
		behind[k] = SCHEDULE("mark", "[i]", k);
	IS(take_number(turn_for(forks)), expected);
	for (k = 0; k < 8; k++)
		IS(take_number(turn_for(behind[k])), k);
}

START_TEST(the_child_of_a_function)
{
	world_make(_i);
	/* A worker that is a thread ends there; one that is a process has
	   main's answer to a refusal. */
	function_forks(RETURNS, can(CALLS) ? 0 : EXIT_FAILURE << 8, 0);
	world_is_well();
	function_forks(EXITS, 0, 0);
	function_forks(EXITS, 0, EVC_TRANSACTIONAL);
	world_is_well();
	function_forks(ENDS_THREAD, 0, 0);
	function_forks(ENDS_THREAD, 0, EVC_TRANSACTIONAL);
	world_is_well();
	world_end();
}
END_TEST

CONFORMANCE_MAIN("fork", functions, ROW(the_child_of_a_plain_thread),
		 ROW(the_child_of_a_member), ROW(the_child_of_a_callback),
		 ROW(the_child_of_a_function))
