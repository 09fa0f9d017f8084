/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers of several machines: nodes that come and go while functions run, what
 * is said of them, priorities and large values across them, many of them.
 */
#include "rows.h"

#include <sys/resource.h>

START_TEST(workers_of_two_nodes)
{
	evc_cluster_worker_info w;
	char host[64] = "";
	pid_t pids[4];
	unsigned i, k;

	rig(_i, NULL);
	rig_node(2);
	rig_node(2);
	rig_open(NULL);
	gethostname(host, sizeof(host) - 1);
	workers_of(0, pids, 2);
	workers_of(1, pids + 2, 2);
	ck_assert_uint_eq(numbers().n_workers, 4);
	for (i = 0; i < 4; i++) {
		w = worker(i);
		HAS(w.where, host);
		for (k = 0; k < 4 && pids[k] != pid_where(&w); k++)
			continue;
		ck_assert_msg(k < 4, "no worker is \"%s\"", w.where);
		pids[k] = -1;
	}
	IS(take_number(SCHEDULE("add", "[ii]", 20, 22)), 42);
	OK(join());
}
END_TEST

START_TEST(a_function_fails)
{
	evc_remote *r, *good;
	evc_reason e;

	rig(_i, NULL);
	rig_node(1);
	rig_node(1);
	rig_open(NULL);
	good = SCHEDULE("add", "[ii]", 1, 2);
	IS(number_of(good), 3);
	r = SCHEDULE("fail", "[is]", EVC_DATA_LOSS, "not today");
	IS(join(), EVC_DATA_LOSS);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	ck_assert_str_eq(e.text, "not today");
	ck_assert_str_eq(e.func, "fail");
	/* Once. */
	OK(join());
	IS(code_of(r), EVC_DATA_LOSS);
	IS(take_number(good), 3);
	evc_remote_free(r);
}
END_TEST

/* [] -> the generation of its fencing token, n */
static evc_status
fn_token(evc_exec *x, void *arg)
{
	evc_exec_info i;

	(void)arg;
	if (evc_exec_get(x, &i) < 0)
		return EVC_INTERNAL;
	return evc_exec_return(x, "[UU]", i.generation, i.n);
}

/* A machine whose clock is behind, or a node that began earlier, must not make a
   later attempt the smaller one. */
START_TEST(tokens_are_those_of_the_cluster_on_all_nodes)
{
	uint64_t generation, n, before = 0;
	evc_schedule_opts one = { 0 };
	evc_cluster_worker_info w;
	evc_remote *r;
	evc_value v;
	unsigned i;

	rig(_i, NULL);
	rig_node(1);
	rig_open(NULL);
	rig_node(1);
	rig_all_up();
	for (i = 0; i < 4; i++) {
		w = worker(1 - i % 2);
		one.worker = w.name;
		r = SCHEDULE_WITH(&one, "token", "[]");
		OK(evc_remote_fetch(r, T_LIMIT, &v));
		OK(evc_unpack(&v, "[UU]", &generation, &n));
		ck_assert_int_eq((int64_t)generation, rig_key("GET", "gen"));
		ck_assert_uint_gt(n, before);
		before = n;
		evc_remote_free(r);
	}
	OK(join());
}
END_TEST

enum { ROUNDS = 4, EACH = 150 };

/* SIGTERM of a node loses nothing, and nothing runs twice: what runs there may
   end, the others are given back. */
START_TEST(nodes_come_and_leave_while_functions_run)
{
	struct marks m = marks_begin();
	evc_remote *r[ROUNDS * EACH];
	int i, round, last;

	rig(_i, NULL);
	last = rig_node(2);
	rig_open(NULL);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < EACH; i++)
			r[round * EACH + i] =
				SCHEDULE("nap", "[d]", 0.004);
		for (i = 0; i < EACH; i++) {
			evc_remote_free(r[round * EACH + i]);
			r[round * EACH + i] = SCHEDULE("mark", "[s]", m.path);
		}
		rig_node(2);
		UNTIL(numbers().n_up == 4);
		/* The one before it goes, with functions in it. */
		rig_node_ends(last, SIGTERM);
		on.n_workers -= 2;
		last = rg.n_nodes - 1;
	}
	OK(join());
	for (i = 0; i < ROUNDS * EACH; i++) {
		IS(number_of(r[i]), 1);
		ck_assert_uint_eq(info_of(r[i]).deaths, 0);
		evc_remote_free(r[i]);
	}
	IS(marks_end(&m), ROUNDS * EACH);
	ck_assert_uint_eq(numbers().n_lost, 0);
	ck_assert_uint_eq(numbers().n_late, 0);
}
END_TEST

/* A node that comes late finds functions that wait for it. */
START_TEST(a_node_comes_late)
{
	evc_remote *r;

	rig(_i, NULL);
	rig_open(NULL);
	r = SCHEDULE("add", "[ii]", 1, 2);
	IS(evc_cluster_join(on.cl, 0.3), -EVC_DEADLINE_EXCEEDED);
	IS(info_of(r).state, EVC_REMOTE_QUEUED);
	rig_node(1);
	IS(take_number(r), 3);
	OK(join());
}
END_TEST

/* A node that was there first waits for its coordinator; it serves the next one,
   too. */
START_TEST(a_node_serves_one_cluster_after_the_other)
{
	int round;
	pid_t pid;

	rig(_i, NULL);
	rig_node(2);
	pid = node_of(0);
	for (round = 0; round < 3; round++) {
		rig_open(NULL);
		redis.n--; /* the address is noted anew */
		IS(take_number(SCHEDULE("add", "[ii]", round, 2)), round + 2);
		rig_close();
		ck_assert_int_eq(node_of(0), pid);
		ck_assert(!process_is_over(pid));
	}
}
END_TEST

START_TEST(once_it_ends_with_its_cluster)
{
	evc_join_opts budget = { .grace = T_LIMIT };
	char uri[200];
	int status;
	pid_t pid;

	rig(_i, NULL);
	rig_uri(uri, sizeof(uri), (unsigned)rg.server->port, "?once=1");
	pid = node_start(uri, 1);
	on.n_workers = 1;
	rig_open(NULL);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &budget, NULL));
	status = node_wait(pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(greater_priorities_run_first_on_all_nodes)
{
	enum { N = 200 };
	evc_schedule_opts most = { .priority = EVC_PRIORITY_MOST },
			  least = { .priority = EVC_PRIORITY_LEAST };
	evc_remote *gate[2], *high[N];
	int i;

	rig(_i, NULL);
	rig_node(1);
	rig_node(1);
	rig_open(NULL);
	for (i = 0; i < 2; i++)
		gate[i] = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 2));
	for (i = 0; i < 20 * N; i++)
		OK(evc_schedule_pack(on.cl, "count", &least, NULL, "[sd]",
				     "order", 1.0));
	for (i = 0; i < N; i++)
		high[i] = SCHEDULE_WITH(&most, "count", "[sd]", "order", 1.0);
	let_go("g");
	OK(join());
	/* Before the last ones of the others by far: what workers had taken
	   already stands before them. */
	for (i = 0; i < N; i++)
		ck_assert_int_lt(take_number(high[i]), 10 * N);
	for (i = 0; i < 2; i++)
		evc_remote_free(gate[i]);
}
END_TEST

/* By key: below, at and above 64 KiB, made on one node and used on the other. */
START_TEST(large_values_travel_between_nodes)
{
	static const int sizes[] = { 1000, 65535, 65536, 65537, 300000,
				     5000000 };
	enum { N = sizeof(sizes) / sizeof(sizes[0]) };
	evc_schedule_opts at[2] = { { .worker = "worker 0" },
				    { .worker = "worker 1" } };
	evc_remote *a[N], *b[N], *both;
	evc_value v;
	const unsigned char *bytes;
	size_t n;
	int i;

	rig(_i, NULL);
	rig_node(1);
	rig_node(1);
	rig_open(NULL);
	for (i = 0; i < N; i++) {
		a[i] = SCHEDULE_WITH(&at[i % 2], "big", "[ii]", sizes[i], i);
		b[i] = SCHEDULE_WITH(&at[1 - i % 2], "big", "[ii]", 70000,
				     100 + i);
	}
	for (i = 0; i < N; i++) {
		both = SCHEDULE_WITH(&at[1 - i % 2], "look", "[rr]", a[i],
				     b[i]);
		IS(take_number(both),
		   (int64_t)(sizes[i] + 70000) * 256 + 100 + 2 * i);
		both = SCHEDULE_WITH(&at[i % 2], "look", "[rr]", a[i], a[i]);
		IS(take_number(both), (int64_t)(2 * sizes[i]) * 256 + 2 * i);
	}
	for (i = 0; i < N; i++) {
		OK(evc_remote_fetch(a[i], T_LIMIT, &v));
		OK(evc_unpack(&v, "B", &bytes, &n));
		IS(n, sizes[i]);
		IS(bytes[n - 1], i);
		evc_remote_free(a[i]);
		evc_remote_free(b[i]);
	}
	OK(join());
	/* Nobody needs them any more. */
	{
		char pattern[100];

		snprintf(pattern, sizeof(pattern), "{%s}:*:v:*", rg.ns);
		UNTIL(rs_keys(rg.server, pattern, false) == 0);
	}
}
END_TEST

/* As an argument, and kept as an input after its node has gone. */
START_TEST(large_values_outlive_their_node)
{
	evc_schedule_opts first = { .worker = "worker 0" };
	evc_remote *a, *b;

	rig(_i, NULL);
	rig_node(1);
	rig_open(NULL);
	a = SCHEDULE_WITH(&first, "big", "[ii]", 200000, 7);
	OK(code_of(a));
	rig_node(1);
	UNTIL(numbers().n_up == 2);
	rig_node_ends(0, SIGKILL);
	b = SCHEDULE("look", "[rr]", a, a);
	IS(take_number(b), (int64_t)400000 * 256 + 14);
	evc_remote_free(a);
	OK(join());
}
END_TEST

START_TEST(two_hundred_workers)
{
	enum { N = 200 };
	unsigned of_node = N / 4;
	evc_remote *r[N];
	unsigned n = N;
	int i;

	rig(_i, NULL);
	for (i = 0; i < 4; i++)
		rig_node(of_node);
	rig_open(NULL);
	ck_assert_uint_eq(numbers().n_up, N);
	OK(evc_schedule_all(on.cl, "pid", NULL, NULL, NULL, r, &n));
	ck_assert_uint_eq(n, N);
	for (i = 0; i < N; i++) {
		ck_assert_int_gt(take_number(r[i]), 0);
		ck_assert_uint_eq(worker((unsigned)i).n_done, 1);
	}
	for (i = 0; i < 20 * N; i++)
		DO("count", "[sd]", "n", 1.0);
	OK(join());
	ck_assert(variable("n") == 20 * N);
}
END_TEST

/* On a loaded machine the others may do all before one of them begins: then more
   is scheduled, until the time is over. */
static bool
all_have_worked(unsigned n, double until)
{
	unsigned i, idle = 0;

	for (i = 0; i < n; i++)
		idle += worker(i).n_done == 0;
	ck_assert_msg(idle == 0 || t_now() < until, "%u have done nothing",
		      idle);
	return idle == 0;
}

/* ---- nodes of different programs ---- */

static evc_status
fn_new(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "i", 42);
}

/* [value or iterator] -> what it is, or gives */
static evc_status
fn_use(evc_exec *x, void *arg)
{
	evc_value v = { NULL, 0 };
	evc_local *l;
	int64_t n;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &l) < 0)
		return EVC_INVALID_ARGUMENT;
	if (evc_unpack(evc_local_value(l), "I", &n) == 0)
		return evc_exec_return(x, "I", n);
	st = evc_exec_next(x, l, &v);
	if (st == 0)
		st = evc_unpack(&v, "I", &n);
	return st == 0 ? evc_exec_return(x, "I", n) :
			 evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
}

/* What "new" builds, or maps, on the workers that have it. */
struct news {
	evc_per_worker *value, *dataset, *iterator;
};

static struct news
news(void)
{
	evc_dataset_opts o = { .map = "new", .repeat = UINT64_MAX };
	evc_value elements = PACKED("[i]", 7);
	struct news n;

	OK(evc_per_worker_value(on.cl, "n", "new", NULL, &n.value));
	OK(evc_per_worker_dataset_of(on.cl, "d", &elements, &o, &n.dataset));
	OK(evc_per_worker_iterator(n.dataset, &n.iterator));
	evc_value_free(&elements);
	return n;
}

static void
news_free(struct news *n)
{
	evc_per_worker_free(n->iterator);
	evc_per_worker_free(n->dataset);
	evc_per_worker_free(n->value);
}

static void
rig_old_node(unsigned n_workers)
{
	OK(setenv(OLD_VARIABLE, "1", 1));
	rig_node(n_workers);
	OK(unsetenv(OLD_VARIABLE));
}

/* One node of four is old: it gets what it has, the others all. */
START_TEST(old_nodes_get_what_they_have)
{
	evc_schedule_opts urgent = { .priority = 1 };
	evc_remote *r[2000];
	double until = t_now() + T_LIMIT;
	unsigned i;

	rig(_i, NULL);
	rig_old_node(1);
	for (i = 0; i < 3; i++)
		rig_node(1);
	rig_open(NULL);
	do {
		for (i = 0; i < 2000; i++)
			r[i] = i % 2 == 0 ?
				       SCHEDULE_WITH(&urgent, "new", "[]") :
				       SCHEDULE("nap", "[d]", 0.0005);
		for (i = 0; i < 2000; i++) {
			IS(code_of(r[i]), 0);
			evc_remote_free(r[i]);
		}
		OK(join());
	} while (!all_have_worked(4, until));
}
END_TEST

/* What no worker has waits for one, which comes. */
START_TEST(a_new_node_runs_what_waits)
{
	evc_remote *r, *old;

	rig(_i, NULL);
	rig_old_node(2);
	rig_open(NULL);
	r = SCHEDULE("new", "[]");
	old = SCHEDULE("add", "[ii]", 1, 2);
	IS(take_number(old), 3);
	IS(info_of(r).state, EVC_REMOTE_QUEUED);
	rig_node(1);
	IS(take_number(r), 42);
	OK(join());
}
END_TEST

/* Or does not come. */
START_TEST(what_nobody_has_ends_by_name)
{
	evc_cluster_config config = { .worker_wait = 0.4 };
	evc_schedule_opts at = { .worker = "worker 1" };
	evc_remote *r, *first;

	rig(_i, NULL);
	rig_old_node(2);
	rig_open(&config);
	first = SCHEDULE("add", "[ii]", 1, 2);
	r = SCHEDULE("new", "[r]", first);
	IS(code_of(r), EVC_UNAVAILABLE);
	HAS(info_of(r).text, "no worker has had a function called \"new\"");
	IS(join(), EVC_UNAVAILABLE);
	evc_remote_free(r);
	r = SCHEDULE_WITH(&at, "new", "[]");
	IS(code_of(r), EVC_UNAVAILABLE);
	HAS(info_of(r).text, "worker 1 has not had a function called \"new\"");
	IS(join(), EVC_UNAVAILABLE);
	evc_remote_free(r);
	evc_remote_free(first);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
}
END_TEST

/* So do those go that all have, with a value that only new ones can build. */
START_TEST(values_are_used_where_they_can_be_built)
{
	evc_schedule_opts urgent = { .priority = 1 };
	evc_remote *r[600];
	double until = t_now() + T_LIMIT;
	unsigned i;
	struct news n;

	rig(_i, NULL);
	rig_old_node(1);
	for (i = 0; i < 3; i++)
		rig_node(1);
	rig_open(NULL);
	n = news();
	do {
		for (i = 0; i < 600; i++)
			r[i] = i % 3 == 0 ?
				       SCHEDULE("nap", "[d]", 0.0005) :
				       SCHEDULE_WITH(&urgent, "use", "[w]",
						     i % 3 == 1 ? n.value :
								  n.iterator);
		for (i = 0; i < 600; i++)
			if (i % 3 == 0)
				evc_remote_free(r[i]);
			else
				IS(take_number(r[i]), 42);
		OK(join());
	} while (!all_have_worked(4, until));
	news_free(&n);
}
END_TEST

/* They wait for a worker that can build them, and for no longer than others. */
START_TEST(values_that_nobody_can_build_end_by_name)
{
	evc_cluster_config config = { .worker_wait = 0.4 };
	evc_schedule_opts at = { .worker = "worker 0" };
	evc_remote *r;
	struct news n;

	rig(_i, NULL);
	rig_old_node(2);
	rig_open(&config);
	n = news();
	r = SCHEDULE("use", "[w]", n.value);
	IS(code_of(r), EVC_UNAVAILABLE);
	HAS(info_of(r).text, "no worker has had a function called \"new\", "
			     "which builds a value among its arguments");
	evc_remote_free(r);
	IS(join(), EVC_UNAVAILABLE);
	r = SCHEDULE_WITH(&at, "use", "[w]", n.iterator);
	IS(code_of(r), EVC_UNAVAILABLE);
	HAS(info_of(r).text, "worker 0 has not had a function called \"new\"");
	evc_remote_free(r);
	IS(join(), EVC_UNAVAILABLE);
	/* One that comes runs what waits, each with its values. */
	rig_node(1);
	rig_all_up();
	IS(take_number(SCHEDULE("use", "[w]", n.value)), 42);
	IS(take_number(SCHEDULE("use", "[w]", n.iterator)), 42);
	OK(join());
	news_free(&n);
}
END_TEST

/* The build is not why they have ended, and is not given up. */
START_TEST(a_node_is_killed_while_its_workers_build)
{
	evc_cluster_config config = { .lease = 3, .deaths = 1 };
	evc_value args = PACKED("[s]", "g");
	evc_per_worker *slow;

	rig(_i, NULL);
	redis.may_expire = true;
	rig_node(2);
	rig_open(&config);
	OK(evc_per_worker_value(on.cl, "slow", "hold", &args, &slow));
	UNTIL(worker(0).builds[0] != '\0' && worker(1).builds[0] != '\0');
	rig_node_ends(0, SIGKILL);
	rig_node(2);
	let_go("g");
	IS(take_number(SCHEDULE("use", "[w]", slow)), 1);
	OK(join());
	evc_per_worker_free(slow);
	evc_value_free(&args);
}
END_TEST

/* One for each worker, also for the one that cannot run it: which ends, too. */
START_TEST(once_on_all_with_an_old_one_among_them)
{
	evc_cluster_config config = { .worker_wait = 1 };
	unsigned i, n = 4, n_missing = 0;
	evc_remote *r[4];

	rig(_i, NULL);
	rig_old_node(1);
	for (i = 0; i < 3; i++)
		rig_node(1);
	rig_open(&config);
	OK(evc_schedule_all(on.cl, "new", NULL, NULL, NULL, r, &n));
	ck_assert_uint_eq(n, 4);
	IS(join(), EVC_UNAVAILABLE);
	for (i = 0; i < 4; i++) {
		if (code_of(r[i]) == EVC_UNAVAILABLE) {
			HAS(info_of(r[i]).text, "has not had a function");
			n_missing++;
			evc_remote_free(r[i]);
		} else {
			IS(take_number(r[i]), 42);
		}
	}
	ck_assert_uint_eq(n_missing, 1);
	OK(join());
}
END_TEST

/* A worker with this in its environment ends before it is one. */
#define FALSE_START "EVC_TEST_FALSE_START"

__attribute__((constructor)) static void
start_falsely(void)
{
	if (evc_worker_is() && getenv(FALSE_START) != NULL)
		_exit(7);
}

/* The coordinator hears why, though it has never seen them up. */
START_TEST(workers_that_do_not_start)
{
	evc_cluster_config config = { .worker_wait = 3, .lease = 60 };
	evc_cluster_worker_info w;
	evc_reason e;

	rig(_i, NULL);
	OK(setenv(FALSE_START, "1", 1));
	rig_node(2);
	OK(unsetenv(FALSE_START));
	OK(evc_new(on.loop, NULL, &on.c));
	redis_note(rg.uri, 0);
	OK(open_another(rg.uri, &config, &on.cl));
	UNTIL(evc_cluster_worker_get(on.cl, 1, &w) == 0 && w.n_failures > 1);
	ck_assert_uint_eq(w.lives, 0);
	HAS(w.text, "exit status 7");
	ck_assert_uint_ge(numbers().n_worker_failures, 2);
	DO("add", "[ii]", 1, 2);
	IS(join(), EVC_UNAVAILABLE);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	HAS(e.text, "exit status 7");
}
END_TEST

/* [n]: one more for each of n elements, here and there */
static evc_status
fn_add_here_and_there(evc_exec *x, void *arg)
{
	int n, i;
	uint32_t *at;
	double *ones;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[i]", &n) < 0)
		return EVC_INVALID_ARGUMENT;
	at = malloc((size_t)n * sizeof(*at));
	ones = malloc((size_t)n * sizeof(*ones));
	for (i = 0; i < n; i++) {
		at[i] = (uint32_t)i;
		ones[i] = 1;
	}
	st = evc_exec_vector_add(x, "v", &(evc_elements){ .doubles = ones,
							  .n = (size_t)n,
							  .at = at });
	free(at);
	free(ones);
	return st == 0 ? 0 : evc_exec_fail(x, -st, "%s", evc_last_error());
}

/* The server would answer nobody for so long that leases end, and the library
   would run the function again. */
START_TEST(a_call_that_takes_too_long_is_refused)
{
	enum { N = 700000 };
	evc_cluster_config k = { .lease = 1 };
	/* A slow machine may lose such leases. */
	const evc_schedule_opts often = { .deaths = 255 };
	double *zeros = calloc(N, sizeof(*zeros));
	evc_elements e = { .doubles = zeros, .n = N }, few = e;
	evc_value nil = { NULL, 0 };
	evc_remote *r;

	ck_assert_ptr_nonnull(zeros);
	few.n = N / 8; /* for a slow machine */
	rig(_i, NULL);
	rig_node(1);
	rig_open(&k);
	redis_leaves_keys();
	OK(evc_vector_set(on.cl, "v", &e));
	IS(evc_vector_add(on.cl, "v", &e), -EVC_RESOURCE_EXHAUSTED);
	HAS(evc_last_error(), "one call for variable v would hold the server "
			      "for about 0.3 s, and a quarter of the lease, "
			      "0.25 s, is the most");
	OK(evc_vector_add(on.cl, "v", &few));
	r = SCHEDULE_WITH(&often, "add here and there", "[i]", N / 3);
	IS(code_of(r), EVC_RESOURCE_EXHAUSTED);
	HAS(info_of(r).text, "one call for variable v would hold the server "
			      "for about 0.3 s");
	evc_remote_free(r);
	IS(join(), EVC_RESOURCE_EXHAUSTED);
	OK(evc_schedule_pack(on.cl, "add here and there", &often, NULL, "[i]",
			     N / 40));
	OK(join());
	OK(evc_variable_set(on.cl, "v", &nil));
	free(zeros);
}
END_TEST

/* [sss]: the bytes of three variables, read whole; "": none */
static evc_status
fn_read_whole(evc_exec *x, void *arg)
{
	evc_value v = { NULL, 0 };
	char names[3][16];
	evc_status st = 0;
	uint64_t n = 0;
	unsigned i;

	(void)arg;
	if (evc_exec_unpack(x, "[sss]", names[0], sizeof(names[0]), names[1],
			    sizeof(names[1]), names[2], sizeof(names[2])) < 0)
		return EVC_INVALID_ARGUMENT;
	for (i = 0; i < 3 && st == 0; i++) {
		if (names[i][0] != '\0')
			st = evc_exec_variable_get(x, names[i], &v);
		n += v.size;
		evc_value_free(&v);
	}
	return st == 0 ? evc_exec_return(x, "U", n) :
			 evc_exec_fail(x, -st, "%s", evc_last_error());
}

#define VECTORS(X) X("few") X("few 2") X("few 3")

/* Such vectors come from a checkpoint, where no call has to set them. */
static void
save_vectors(const char *checkpoint, size_t few, size_t many)
{
#define SET(name) OK(evc_vector_set(cl, name, &e));
	double *zeros = calloc(many, sizeof(*zeros));
	evc_elements e = { .doubles = zeros };
	evc_cluster *cl;
	evc_coord *c;

	ck_assert_ptr_nonnull(zeros);
	OK(evc_new(NULL, NULL, &c));
	OK(evc_cluster_open(c, "threads://1", NULL, &cl));
	e.n = few;
	VECTORS(SET)
	e.n = many;
	OK(evc_vector_set(cl, "many", &e));
	OK(evc_cluster_save(cl, checkpoint));
	OK(evc_cluster_close(cl));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	free(zeros);
}

/* The limit for a lease of two seconds is 42.4 MB. */
START_TEST(a_vector_that_takes_too_long_is_read_by_ranges)
{
	enum { FEW = 2000000, MANY = 6000000, READERS = 4 };
	evc_cluster_config k = { .lease = 2 };
	/* A slow machine may lose such leases. */
	evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	evc_schedule_opts often = { .deaths = 255 };
	evc_value v = { NULL, 0 }, nil = { NULL, 0 };
	char checkpoint[] = "/tmp/evc-redis-XXXXXX";
	evc_remote *r[READERS];
	double last = 1;
	unsigned i;

	if (t_under_tsan())
		T_SKIP("its leases are too short for values of 48 MB");
	rig(_i, NULL);
	OK(close(mkstemp(checkpoint)));
	save_vectors(checkpoint, FEW, MANY);
	rig_node(READERS);
	rig_open(&k);
	redis_leaves_keys();
	OK(evc_cluster_restore(on.cl, checkpoint));
	OK(unlink(checkpoint));
	IS(evc_variable_get(on.cl, "many", &v), -EVC_RESOURCE_EXHAUSTED);
	HAS(evc_last_error(), "variable many has 48000000 bytes");
	HAS(evc_last_error(), "more than a quarter of the lease");
	OK(evc_vector_get(on.cl, "many",
			  &(evc_elements){
				  .doubles = &last, .n = 1, .from = MANY - 1 }));
	ck_assert_double_eq(last, 0);
	r[0] = SCHEDULE_WITH(&often, "read whole", "[sss]", "many", "", "");
	IS(code_of(r[0]), EVC_RESOURCE_EXHAUSTED);
	HAS(info_of(r[0]).text, "variable many has 48000000 bytes");
	evc_remote_free(r[0]);
	IS(join(), EVC_RESOURCE_EXHAUSTED);
	r[0] = SCHEDULE_WITH(&txn, "read whole", "[sss]", "few", "few 2",
			     "few 3");
	IS(code_of(r[0]), EVC_RESOURCE_EXHAUSTED);
	HAS(info_of(r[0]).text, "the reads and updates of one function would "
				"hold the server for about 0.");
	evc_remote_free(r[0]);
	IS(join(), EVC_RESOURCE_EXHAUSTED);
	/* The questions that are too many for one script are asked again. */
	for (i = 0; i < READERS; i++)
		r[i] = SCHEDULE_WITH(&often, "read whole", "[sss]", "few", "",
				     "");
	for (i = 0; i < READERS; i++) {
		ck_assert_int_gt(number_of(r[i]), FEW * sizeof(double));
		evc_remote_free(r[i]);
	}
	OK(join());
	/* On a slow machine the lease of 2 s may be lost with so much to free. */
	(void)evc_variable_set(on.cl, "many", &nil);
#define UNSET(name) (void)evc_variable_set(on.cl, name, &nil);
	VECTORS(UNSET)
}
END_TEST

/* ---- a node without memory ---- */

static void
limit_memory(pid_t pid, size_t more)
{
	char path[64], line[256];
	unsigned long kib = 0;
	struct rlimit limit;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "VmSize:", 7) == 0)
			kib = strtoul(line + 7, NULL, 10);
	fclose(f);
	ck_assert_uint_gt(kib, 0);
	limit.rlim_cur = limit.rlim_max = kib * 1024 + more;
	OK(prlimit(pid, RLIMIT_AS, &limit, NULL));
}

/* It has memory for the result, and not for its way to the server: the function
   ends, as with a worker that dies of it. */
START_TEST(a_node_has_no_memory_for_a_result)
{
	const evc_schedule_opts how[] = { { 0 }, { .flags = EVC_TRANSACTIONAL } };
	evc_remote *r;
	unsigned i;

	if (t_under_asan() || t_under_tsan())
		T_SKIP("a limit of the address space ends the node");
	rig(_i, NULL);
	rig_node(1);
	rig_open(NULL);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	limit_memory(node_of(0), 200000000);
	for (i = 0; i < 2; i++) {
		r = SCHEDULE_WITH(&how[i], "big", "[ii]", 60000000, 1);
		IS(code_of(r), EVC_ABORTED);
		HAS(info_of(r).text, "3 deaths");
		HAS(info_of(r).text, "it had no memory for a message");
		evc_remote_free(r);
		IS(join(), EVC_ABORTED);
	}
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
}
END_TEST

static const evc_function functions[] = {
	ROW_FUNCTIONS, { .name = "token", .fn = fn_token },
	{ .name = "add here and there", .fn = fn_add_here_and_there },
	{ .name = "read whole", .fn = fn_read_whole },
	{ .name = "use", .fn = fn_use },
	{ .name = "new", .fn = fn_new } /* the last */
};

REDIS_ROWS("redis: workers", functions, ROW(workers_of_two_nodes),
	   ROW(tokens_are_those_of_the_cluster_on_all_nodes),
	   ROW(a_function_fails), ROW(nodes_come_and_leave_while_functions_run),
	   ROW(a_node_comes_late),
	   ROW(a_node_is_killed_while_its_workers_build),
	   ROW(a_node_serves_one_cluster_after_the_other),
	   ROW(once_it_ends_with_its_cluster),
	   ROW(greater_priorities_run_first_on_all_nodes),
	   ROW(large_values_travel_between_nodes),
	   ROW(a_call_that_takes_too_long_is_refused),
	   ROW(a_vector_that_takes_too_long_is_read_by_ranges),
	   ROW(a_node_has_no_memory_for_a_result),
	   ROW(large_values_outlive_their_node), ROW(two_hundred_workers),
	   ROW(old_nodes_get_what_they_have), ROW(a_new_node_runs_what_waits),
	   ROW(values_are_used_where_they_can_be_built),
	   ROW(values_that_nobody_can_build_end_by_name),
	   ROW(once_on_all_with_an_old_one_among_them),
	   ROW(what_nobody_has_ends_by_name), ROW(workers_that_do_not_start))
