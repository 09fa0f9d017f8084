/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "threads": what is its own beside what every engine does, which
 * tests/conformance has.
 */
#include "../support/api_util.h"

#include <evcoord/cluster.h>

static evc_coord *c;
static evc_cluster *cl;
static atomic_int n_in, n_ran, open_gate;

/* ---- functions ---- */

static evc_status
add(evc_exec *x, void *arg)
{
	int a, b;

	(void)arg;
	if (evc_exec_unpack(x, "[ii]", &a, &b) < 0)
		return EVC_INVALID_ARGUMENT;
	atomic_fetch_add(&n_ran, 1);
	return evc_exec_return(x, "i", a + b);
}

static evc_status
own_thread(evc_exec *x, void *arg)
{
	evc_exec_info i;

	(void)arg;
	if (evc_exec_get(x, &i) < 0)
		return EVC_INTERNAL;
	return evc_exec_return(x, "[sui]", i.worker, i.worker_index,
			       own_tid());
}

static evc_status
complains(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_fail(evc_exec_coord(x), EVC_DATA_LOSS, 0, "no disk") ==
			       EVC_DATA_LOSS ?
		       0 : EVC_INTERNAL;
}

/* Deaf: it does not look whether it should stop. */
static evc_status
hangs(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	atomic_fetch_add(&n_in, 1);
	while (!atomic_load(&open_gate))
		t_sleep(0.001);
	return 0;
}

static atomic_int late_status;

/* Likewise; then it adds to a variable, twice. */
static evc_status
hangs_and_adds(evc_exec *x, void *arg)
{
	evc_status st;
	double sum;

	(void)hangs(x, arg);
	(void)evc_exec_variable_add(x, "late", 1, NULL);
	st = evc_exec_variable_add(x, "late", 1, &sum);
	atomic_store(&late_status, st);
	return 0;
}

static evc_status
obeys(evc_exec *x, void *arg)
{
	(void)arg;
	atomic_fetch_add(&n_in, 1);
	return evc_exec_wait_for_stop(x, T_LIMIT) ? EVC_CANCELLED :
						    EVC_DEADLINE_EXCEEDED;
}

static evc_status
opens(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	atomic_store(&open_gate, 1);
	return 0;
}

static evc_status
ends_its_thread(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	pthread_exit(NULL);
}

/* No join that needs the function's own end; one of a scope beside. */
static evc_status
joins(evc_exec *x, void *arg)
{
	evc_coord *beside;

	(void)x;
	(void)arg;
	REFUSED(EVC_FAILED_PRECONDITION, evc_join(c, NULL, NULL));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_join(evc_cluster_scope(cl), NULL, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_cluster_join(cl, INFINITY));
	OK(evc_scope_new(c, NULL, NULL, &beside));
	OK(evc_scope_ready(beside));
	OK(evc_join(beside, NULL, NULL));
	OK(evc_free(beside));
	return 0;
}

static const evc_function table[] = {
	{ .name = "joins", .fn = joins },
	{ .name = "add", .fn = add },
	{ .name = "own_thread", .fn = own_thread },
	{ .name = "hangs", .fn = hangs },
	{ .name = "hangs and adds", .fn = hangs_and_adds },
	{ .name = "obeys", .fn = obeys },
	{ .name = "complains", .fn = complains },
	{ .name = "opens", .fn = opens },
	{ .name = "ends_its_thread", .fn = ends_its_thread },
};

static evc_cluster_config config = {
	.functions = table,
	.n_functions = sizeof table / sizeof table[0],
};

static void
open_cluster(const char *uri)
{
	atomic_store(&n_in, 0);
	atomic_store(&n_ran, 0);
	atomic_store(&open_gate, 0);
	c = new_coord(NULL);
	OK(evc_cluster_open(c, uri, &config, &cl));
}

static void
close_cluster(void)
{
	struct joiner j;

	evc_cluster_close(cl);
	join_begin(&j, c, T_LIMIT, EVC_JOIN_STOP_FIRST);
	OK(join_end(&j));
	OK(evc_free(c));
}

static evc_remote *
schedule(const char *function)
{
	evc_remote *r = NULL;

	OK(evc_schedule(cl, function, NULL, NULL, NULL, &r));
	return r;
}

static void
free_all(evc_remote **r, int n)
{
	while (n > 0)
		evc_remote_free(r[--n]);
}

/* So many short ones that workers take many at a time. */
static void
warm_up(void)
{
	int i;

	for (i = 0; i < 20000; i++)
		OK(evc_schedule_pack(cl, "add", NULL, NULL, "[ii]", i, i));
	OK(evc_cluster_join(cl, T_LIMIT));
}

static unsigned
n_workers(void)
{
	evc_cluster_info i;

	OK(evc_cluster_get(cl, &i));
	return i.n_workers;
}

static evc_cluster_worker_info
worker(unsigned index)
{
	evc_cluster_worker_info i;

	OK(evc_cluster_worker_get(cl, index, &i));
	return i;
}

/* ---- open ---- */

START_TEST(the_place_is_the_number_of_threads)
{
	static const char *const wrong[] = { "threads://0", "threads://1025",
					     "threads://x", "threads://-1",
					     "threads://2x" };
	evc_cluster *none = NULL;
	int before = t_count_threads();
	size_t i;

	open_cluster("threads://3");
	ck_assert_uint_eq(n_workers(), 3);
	close_cluster();
	open_cluster("threads://");
	ck_assert_uint_ge(n_workers(), 1);
	ck_assert_uint_le(n_workers(), (unsigned)sysconf(_SC_NPROCESSORS_CONF));
	close_cluster();
	c = new_coord(NULL);
	for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_cluster_open(c, wrong[i], &config, &none));
		HAS(evc_last_error(), "threads");
	}
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_cluster_open(c, "threads://2?stack=7", &config, &none));
	OK(evc_join(c, &(evc_join_opts){ .flags = EVC_JOIN_STOP_FIRST }, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(before), before);
}
END_TEST

START_TEST(workers_are_threads_with_names)
{
	evc_cluster_worker_info w;
	evc_remote *r[4];
	unsigned i, index, n = 4;
	char name[48], where[96];
	int tid;
	evc_value v;

	open_cluster("threads://4");
	OK(evc_schedule_all(cl, "own_thread", NULL, NULL, NULL, r, &n));
	ck_assert_uint_eq(n, 4);
	for (i = 0; i < n; i++) {
		OK(evc_remote_fetch(r[i], T_LIMIT, &v));
		OK(evc_unpack(&v, "[sui]", name, sizeof name, &index, &tid));
		w = worker(index);
		ck_assert_uint_eq(index, i);
		ck_assert_uint_eq(w.state, EVC_WORKER_UP);
		ck_assert_uint_eq(w.lives, 1);
		ck_assert_uint_eq(w.n_done, 1);
		ck_assert_str_eq(w.name, name);
		snprintf(where, sizeof where, "tid %d", tid);
		ck_assert_str_eq(w.where, where);
		snprintf(where, sizeof where, "worker %u", i);
		ck_assert_str_eq(w.name, where);
		ck_assert_int_ne(tid, own_tid());
	}
	free_all(r, 4);
	close_cluster();
}
END_TEST

START_TEST(it_opens_and_closes_and_leaves_nothing)
{
	int before = t_count_threads(), fds = t_count_fds(), i;

	for (i = 0; i < 20; i++) {
		open_cluster("threads://4");
		if (i % 2 == 0)
			warm_up();
		close_cluster();
	}
	ck_assert_int_eq(t_settle_threads(before), before);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

/* ---- batches ---- */

START_TEST(many_short_ones_run_once_each)
{
	enum { MANY = 50000 };
	evc_remote **r = calloc(MANY, sizeof(evc_remote *));
	evc_value v;
	int i, sum;

	open_cluster("threads://4");
	for (i = 0; i < MANY; i++)
		OK(evc_schedule_pack(cl, "add", NULL, &r[i], "[ii]", i, 7));
	OK(evc_cluster_join(cl, T_LIMIT));
	ck_assert_int_eq(atomic_load(&n_ran), MANY);
	for (i = 0; i < MANY; i++) {
		OK(evc_remote_fetch(r[i], 0, &v));
		OK(evc_unpack(&v, "i", &sum));
		ck_assert_int_eq(sum, i + 7);
	}
	free_all(r, MANY);
	free(r);
	close_cluster();
}
END_TEST

/* What waits for another one gets it, though one worker had taken both. */
START_TEST(a_function_may_wait_for_one_behind_it)
{
	int round;

	open_cluster("threads://2");
	for (round = 0; round < t_many(20); round++) {
		warm_up();
		atomic_store(&open_gate, 0);
		evc_remote_free(schedule("hangs"));
		evc_remote_free(schedule("opens"));
		OK(evc_cluster_join(cl, T_LIMIT));
	}
	close_cluster();
}
END_TEST

/* And a result is there, though the worker is in the next one. */
START_TEST(a_function_may_wait_for_who_has_a_result_before_it)
{
	evc_remote *r[8];
	int round, i;

	open_cluster("threads://1");
	for (round = 0; round < t_many(20); round++) {
		warm_up();
		atomic_store(&open_gate, 0);
		for (i = 0; i < 8; i++)
			OK(evc_schedule_pack(cl, "add", NULL, &r[i], "[ii]", i,
					     i));
		evc_remote_free(schedule("hangs"));
		for (i = 0; i < 8; i++)
			OK(evc_remote_fetch(r[i], T_LIMIT, NULL));
		atomic_store(&open_gate, 1);
		OK(evc_cluster_join(cl, T_LIMIT));
		free_all(r, 8);
	}
	close_cluster();
}
END_TEST

/* One that sleeps hears of what comes, each time. */
START_TEST(no_wake_up_is_lost)
{
	evc_remote *r;
	int i;

	open_cluster("threads://3");
	for (i = 0; i < 3000; i++) {
		OK(evc_schedule_pack(cl, "add", NULL, &r, "[ii]", i, i));
		if (i % 2 == 0)
			OK(evc_schedule_pack(cl, "add", NULL, NULL, "[ii]", i,
					     i));
		OK(evc_remote_fetch(r, T_LIMIT, NULL));
		evc_remote_free(r);
	}
	OK(evc_cluster_join(cl, T_LIMIT));
	ck_assert_int_eq(atomic_load(&n_ran), 4500);
	close_cluster();
}
END_TEST

struct producer {
	int n;
	atomic_int failed;
};

static void *
produce(void *arg)
{
	struct producer *p = arg;
	evc_remote *r;
	int i;

	for (i = 0; i < p->n; i++) {
		if (evc_schedule_pack(cl, "add", NULL, &r, "[ii]", i, i) != 0 ||
		    (i % 7 == 0 && evc_remote_fetch(r, T_LIMIT, NULL) != 0))
			atomic_fetch_add(&p->failed, 1);
		evc_remote_free(r);
	}
	return NULL;
}

START_TEST(several_threads_schedule_and_fetch)
{
	struct producer p = { .n = 3000 };
	struct t_crowd k;

	open_cluster("threads://4");
	crowd_begin(&k, 4, produce, &p, 0);
	crowd_end(&k);
	ck_assert_int_eq(p.failed, 0);
	OK(evc_cluster_join(cl, T_LIMIT));
	ck_assert_int_eq(atomic_load(&n_ran), 12000);
	close_cluster();
}
END_TEST

START_TEST(a_function_may_not_join_what_waits_for_it)
{
	evc_remote *r;

	open_cluster("threads://2");
	r = schedule("joins");
	OK(evc_remote_fetch(r, T_LIMIT, NULL));
	evc_remote_free(r);
	close_cluster();
}
END_TEST

START_TEST(a_function_of_the_program_runs_by_its_address)
{
	evc_remote *r;
	evc_value v, args;
	int sum;

	open_cluster("threads://2");
	OK(evc_pack(&args, "[ii]", 40, 2));
	OK(evc_schedule_call(cl, add, NULL, &args, NULL, NULL, &r));
	evc_value_free(&args);
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "i", &sum));
	ck_assert_int_eq(sum, 42);
	evc_remote_free(r);
	close_cluster();
}
END_TEST

/* ---- stops ---- */

START_TEST(a_cancel_wakes_the_one_that_runs)
{
	evc_remote *r[3];
	int i;

	open_cluster("threads://1");
	for (i = 0; i < 3; i++)
		r[i] = schedule("obeys");
	UNTIL(atomic_load(&n_in) == 1);
	/* Of the two that wait the first. */
	OK(evc_remote_cancel(r[1]));
	ck_assert_int_eq(evc_remote_fetch(r[1], T_LIMIT, NULL), EVC_CANCELLED);
	OK(evc_remote_cancel(r[0]));
	ck_assert_int_eq(evc_remote_fetch(r[0], T_LIMIT, NULL), EVC_CANCELLED);
	UNTIL(atomic_load(&n_in) == 2);
	OK(evc_remote_cancel(r[2]));
	ck_assert_int_eq(evc_remote_fetch(r[2], T_LIMIT, NULL), EVC_CANCELLED);
	OK(evc_cluster_join(cl, T_LIMIT));
	free_all(r, 3);
	close_cluster();
}
END_TEST

START_TEST(a_stop_ends_what_runs_and_what_waits)
{
	int before = t_count_threads(), i;
	evc_remote *r[50];
	struct joiner j;

	open_cluster("threads://4");
	warm_up();
	for (i = 0; i < 50; i++)
		r[i] = schedule("obeys");
	UNTIL(atomic_load(&n_in) == 4);
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(evc_remote_fetch(r[i], T_LIMIT, NULL),
				 EVC_CANCELLED);
	ck_assert_int_eq(atomic_load(&n_in), 4);
	join_begin(&j, c, T_LIMIT, 0);
	OK(join_end(&j));
	free_all(r, 50);
	evc_cluster_close(cl);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(before), before);
}
END_TEST

/* The result is dropped, and later changes are refused. */
START_TEST(one_that_was_given_up_changes_nothing)
{
	evc_cluster_config brief = config;
	evc_remote *r;
	evc_status st;
	double late;

	c = new_coord(NULL);
	brief.grace = 0.05;
	atomic_store(&n_in, 0);
	atomic_store(&open_gate, 0);
	atomic_store(&late_status, 1);
	OK(evc_cluster_open(c, "threads://1", &brief, &cl));
	r = schedule("hangs and adds");
	UNTIL(atomic_load(&n_in) == 1);
	OK(evc_remote_cancel(r));
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_UNAVAILABLE);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	atomic_store(&open_gate, 1);
	UNTIL(atomic_load(&late_status) != 1);
	st = atomic_load(&late_status);
	ck_assert_int_eq(st, -EVC_CANCELLED);
	/* The worker goes on with others. */
	OK(evc_schedule_pack(cl, "add", NULL, NULL, "[ii]", 1, 1));
	OK(evc_cluster_join(cl, T_LIMIT));
	OK(evc_variable_number(cl, "late", &late));
	ck_assert_double_eq(late, 0);
	evc_remote_free(r);
	close_cluster();
}
END_TEST

/* In the report it stands by name and place, and the stop waits for it. */
START_TEST(a_hung_function_is_a_straggler)
{
	evc_join_opts brief = { .grace = 0.2 };
	static char text[1 << 16];
	struct joiner j;
	evc_verdict v;
	evc_remote *r;

	open_cluster("threads://2");
	r = schedule("hangs");
	UNTIL(atomic_load(&n_in) == 1);
	ck_assert_int_eq(evc_cluster_join(cl, 0.05), -EVC_DEADLINE_EXCEEDED);
	HAS(evc_last_error(), "hangs");
	OK(evc_request_stop(c, 0, NULL));
	/* The code is that of its lost result when that comes first. */
	ck_assert_int_gt(evc_join(c, &brief, &v), 0);
	ck_assert_uint_gt(v.n_stragglers, 0);
	HAS(v.error.text, "still running: ");
	(void)evc_report(c, EVC_REPORT_TEXT, text, sizeof text);
	HAS(text, "worker ");
	HAS(text, "hangs");
	atomic_store(&open_gate, 1);
	join_begin(&j, c, T_LIMIT, 0);
	(void)join_end(&j);
	evc_remote_free(r);
	evc_cluster_close(cl);
	UNTIL(evc_free(c) == 0);
}
END_TEST

/* An error that is no function's. */
START_TEST(an_error_on_the_scope_is_the_programs)
{
	evc_verdict v;

	open_cluster("threads://2");
	OK(evc_schedule_pack(cl, "complains", NULL, NULL, "[]"));
	UNTIL(evc_should_stop(evc_cluster_scope(cl)));
	ck_assert(!evc_should_stop(c));
	evc_cluster_close(cl);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	HAS(v.error.text, "no disk");
	OK(evc_free(c));
}
END_TEST

START_TEST(one_that_ends_its_thread_is_the_end_of_that_worker_alone)
{
	evc_schedule_opts once = { .deaths = 1 };
	evc_cluster_info info;
	evc_remote *r;
	int i;

	open_cluster("threads://3");
	warm_up();
	OK(evc_schedule(cl, "ends_its_thread", NULL, NULL, &once, &r));
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_ABORTED);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_ABORTED);
	evc_remote_free(r);
	OK(evc_cluster_get(cl, &info));
	ck_assert_uint_eq(info.n_up, 2);
	ck_assert(!evc_should_stop(c));
	atomic_store(&n_ran, 0);
	for (i = 0; i < 1000; i++)
		OK(evc_schedule_pack(cl, "add", NULL, NULL, "[ii]", i, i));
	OK(evc_cluster_join(cl, T_LIMIT));
	ck_assert_int_eq(atomic_load(&n_ran), 1000);
	close_cluster();
}
END_TEST

static atomic_int n_in_use;

static void
count_in_use(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)level;
	(void)r;
	(void)arg;
	if (strstr(line, "cluster cluster cannot end, because its scope is in "
			 "use: ") != NULL)
		atomic_fetch_add(&n_in_use, 1);
}

/* A function has left something on the scope. */
START_TEST(one_whose_scope_is_in_use_says_so_once)
{
	const evc_join_opts soon = { .grace = 0.5,
				     .flags = EVC_JOIN_STOP_FIRST };
	evc_config logged = { .log = count_in_use };
	evc_cond *cond;

	OK(evc_new(NULL, &logged, &c));
	OK(evc_cluster_open(c, "threads://1", NULL, &cl));
	OK(evc_cond_new(evc_cluster_scope(cl), &cond));
	OK(evc_cluster_close(cl));
	ck_assert_int_eq(evc_join(c, &soon, NULL), EVC_DEADLINE_EXCEEDED);
	UNTIL(atomic_load(&n_in_use) == 1);
	OK(evc_cond_free(cond));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(atomic_load(&n_in_use), 1);
}
END_TEST

API_MAIN("threads", the_place_is_the_number_of_threads,
	 workers_are_threads_with_names, it_opens_and_closes_and_leaves_nothing,
	 many_short_ones_run_once_each, a_function_may_wait_for_one_behind_it,
	 a_function_may_wait_for_who_has_a_result_before_it, no_wake_up_is_lost,
	 several_threads_schedule_and_fetch,
	 a_function_may_not_join_what_waits_for_it,
	 a_function_of_the_program_runs_by_its_address,
	 a_cancel_wakes_the_one_that_runs, a_stop_ends_what_runs_and_what_waits,
	 a_hung_function_is_a_straggler, one_that_was_given_up_changes_nothing,
	 an_error_on_the_scope_is_the_programs,
	 one_whose_scope_is_in_use_says_so_once,
	 one_that_ends_its_thread_is_the_end_of_that_worker_alone)
