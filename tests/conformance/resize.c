/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number of workers changes while the cluster runs: evc_cluster_resize.
 */
#include "kept.h"

#include <pthread.h>

#define MANY 64

static void
resize(unsigned n)
{
	ck_assert_msg(evc_cluster_resize(on.cl, n) == 0, "%u: %s", n,
		      evc_last_error());
	ck_assert_uint_eq(numbers().n_wanted, n);
}

/* There are so many, all of them are up, and nobody is left of others. */
static bool
are(unsigned n)
{
	evc_cluster_info i = numbers();
	evc_cluster_worker_info w;

	return i.n_workers == n && i.n_wanted == n && i.n_up == n &&
	       evc_cluster_worker_get(on.cl, n, &w) == -EVC_NOT_FOUND;
}

/* Each worker answers once, with its own number. */
static void
all_answer(unsigned n)
{
	bool seen[MANY] = { false };
	evc_remote *r[MANY];
	unsigned i, index, got = MANY;
	char name[48], is[48];
	evc_value v;

	OK(evc_schedule_all(on.cl, "who", NULL, NULL, NULL, r, &got));
	ck_assert_uint_eq(got, n);
	for (i = 0; i < n; i++) {
		OK(evc_remote_fetch(r[i], T_LIMIT, &v));
		OK(evc_unpack(&v, "[su*]", name, sizeof(name), &index));
		ck_assert_uint_lt(index, n);
		ck_assert(!seen[index]);
		seen[index] = true;
		snprintf(is, sizeof(is), "worker %u", index);
		ck_assert_str_eq(name, is);
		evc_remote_free(r[i]);
	}
}

START_TEST(grows)
{
	evc_value two = PACKED("[iib]", 0, 3, 0);
	evc_per_worker *range;

	begin(_i, 1);
	OK(evc_per_worker_dataset(on.cl, "range", "range", &two, NULL, &range));
	UNTIL(numbers().n_builds == 1);
	resize(4);
	UNTIL(are(4));
	all_answer(4);
	/* Each has built it before its first function. */
	ck_assert_uint_eq(numbers().n_builds, 4);
	resize(MANY);
	UNTIL(are(MANY));
	all_answer(MANY);
	ck_assert_uint_eq(numbers().n_builds, MANY);
	ck_assert_uint_eq(worker(MANY - 1).lives, 1);
	evc_per_worker_free(range);
	evc_value_free(&two);
	OK(join());
}
END_TEST

START_TEST(shrinks_under_load)
{
	int i;

	begin(_i, MANY);
	UNTIL(are(MANY));
	for (i = 0; i < 3000; i++) {
		DO("count", "[sd]", "sum", 1.0);
		if (i == 1000)
			resize(1);
	}
	OK(join());
	ck_assert(variable("sum") == 3000);
	UNTIL(are(1));
	ck_assert_uint_eq(numbers().n_executions, 3000);
	ck_assert_uint_eq(numbers().n_lost, 0);
	/* And the same ones come back. */
	resize(4);
	UNTIL(are(4));
	all_answer(4);
	ck_assert_uint_eq(worker(3).lives, 2);
	ck_assert_str_eq(worker(3).name, "worker 3");
}
END_TEST

/* A worker that leaves has to do what is for it alone. */
START_TEST(own_functions_run)
{
	evc_schedule_opts at = { .worker = "worker 3" };
	evc_remote *held, *r[5], *other;
	double began;
	int i;

	begin(_i, 4);
	UNTIL(are(4));
	held = SCHEDULE_WITH(&at, "hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	for (i = 0; i < 4; i++)
		r[i] = SCHEDULE_WITH(&at, "who", "[]");
	/* It waits for its input. */
	r[4] = SCHEDULE_WITH(&at, "add", "[ri]", held, 1);
	began = t_now();
	resize(1);
	UNTIL(numbers().n_workers == 2);
	ck_assert_uint_eq(worker(3).state, EVC_WORKER_LEAVING);
	/* Not from the time when the worker was up. */
	ck_assert_double_le(worker(3).since, t_now() - began);
	ck_assert_uint_eq(numbers().n_up, 1);
	/* There is no such worker for a new one, and no other takes it. */
	IS(evc_schedule(on.cl, "who", NULL, NULL, &at, &other),
	   -EVC_INVALID_ARGUMENT);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	let_go("g");
	for (i = 0; i < 4; i++) {
		OK(code_of(r[i]));
		ck_assert_str_eq(info_of(r[i]).worker, "worker 3");
		evc_remote_free(r[i]);
	}
	IS(take_number(r[4]), 2);
	evc_remote_free(held);
	UNTIL(are(1));
	OK(join());
}
END_TEST

/* The last function for it is cancelled, and it has nothing more to wait for. */
START_TEST(own_function_is_cancelled)
{
	evc_schedule_opts at = { .worker = "worker 1" };
	evc_remote *held, *r;

	begin(_i, 2);
	UNTIL(are(2));
	held = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	r = SCHEDULE_WITH(&at, "add", "[ri]", held, 1);
	if (strcmp(info_of(held).worker, "worker 1") == 0) {
		/* It is not the one that leaves by itself. */
		let_go("g");
		OK(code_of(r));
	}
	resize(1);
	if (info_of(r).state != EVC_REMOTE_DONE) {
		ck_assert_uint_eq(numbers().n_workers, 2);
		OK(evc_remote_cancel(r));
		UNTIL(numbers().n_workers == 1);
		let_go("g");
	}
	evc_remote_free(r);
	evc_remote_free(held);
	OK(join());
	UNTIL(are(1));
}
END_TEST

/* It leaves, dies, and comes back for what is its own. */
START_TEST(leaving_one_dies)
{
	evc_schedule_opts at = { .worker = "worker 1" };
	evc_remote *held, *r;

	begin(_i, 2);
	held = SCHEDULE_WITH(&at, "hold", "[s]", "g");
	UNTIL(are_in("g", 1));
	r = SCHEDULE_WITH(&at, "who", "[]");
	resize(1);
	evc_cluster_worker_info w = worker(1);
	OK(kill(pid_where(&w), SIGKILL));
	UNTIL(are_in("g", 2));
	ck_assert_uint_eq(worker(1).lives, 2);
	let_go("g");
	OK(code_of(r));
	OK(code_of(held));
	ck_assert_uint_eq(info_of(held).deaths, 1);
	evc_remote_free(r);
	evc_remote_free(held);
	UNTIL(are(1));
	OK(join());
}
END_TEST

/* They were to leave, and are to stay after all. */
START_TEST(stay_after_all)
{
	evc_remote *r[4];
	unsigned i;

	begin(_i, 4);
	UNTIL(are(4));
	for (i = 0; i < 4; i++)
		r[i] = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 4));
	resize(1);
	ck_assert_uint_eq(numbers().n_workers, 4);
	ck_assert_uint_eq(numbers().n_up, 1);
	resize(2);
	resize(4);
	ck_assert(are(4));
	let_go("g");
	for (i = 0; i < 4; i++) {
		OK(code_of(r[i]));
		evc_remote_free(r[i]);
		ck_assert_uint_eq(worker(i).lives, 1);
	}
	OK(join());
	all_answer(4);
}
END_TEST

/* ---- many times ---- */

static unsigned
next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

static void
part_slowly(void *state)
{
	(void)state;
	t_sleep(0.5);
}

static evc_status
fn_parts_slowly(evc_exec *x, void *arg)
{
	static const evc_keep_ops ops = { .free = part_slowly };
	static int state;

	(void)arg;
	return evc_exec_keep(x, &ops, &state) < 0 ? EVC_INTERNAL : 0;
}

/* The number grows and shrinks again while a worker ends: what came for that
   worker meanwhile runs in its next life. */
START_TEST(given_some_while_it_ends)
{
	evc_value nil = PACKED("n");
	evc_per_worker *slow;
	evc_remote *r[2];
	unsigned n = 2, i;

	begin(_i, 2);
	OK(evc_per_worker_value(on.cl, "slow", "parts slowly", &nil, &slow));
	all_answer(2);
	resize(1);
	/* It is told to leave. */
	t_sleep(0.1);
	resize(2);
	OK(evc_schedule_all(on.cl, "who", NULL, NULL, NULL, r, &n));
	ck_assert_uint_eq(n, 2);
	resize(1);
	OK(join());
	for (i = 0; i < n; i++) {
		OK(code_of(r[i]));
		evc_remote_free(r[i]);
	}
	UNTIL(are(1));
	evc_per_worker_free(slow);
	evc_value_free(&nil);
}
END_TEST

START_TEST(random_resizes)
{
	evc_schedule_opts own = { .worker = "worker 2" };
	unsigned seed = 7, i, k, scheduled = 0, top;
	evc_cluster_worker_info w;

	begin(_i, 3);
	top = can(DIES) ? 6 : 24;
	for (i = 0; i < 200; i++) {
		resize(1 + next_random(&seed) % top);
		for (k = next_random(&seed) % 8; k > 0; k--, scheduled++)
			DO("count", "[sd]", "sum", 1.0);
		if (numbers().n_wanted > 2) {
			OK(evc_schedule_pack(on.cl, "count", &own, NULL, "[sd]",
					     "sum", 1.0));
			scheduled++;
		}
		if (next_random(&seed) % 3 == 0)
			t_sleep(0.003);
	}
	resize(5);
	OK(join());
	ck_assert(variable("sum") == scheduled);
	UNTIL(are(5));
	/* Those that are there are known by their own numbers. */
	for (i = 0; i < 5; i++) {
		OK(evc_cluster_worker_get(on.cl, i, &w));
		ck_assert_uint_eq(w.state, EVC_WORKER_UP);
	}
	all_answer(5);
	ck_assert_uint_eq(numbers().n_lost, 0);
}
END_TEST

/* [name]: adds 1 when it succeeds, however often it had to begin */
static evc_status
fn_count_once(evc_exec *x, void *arg)
{
	char name[64];

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    evc_exec_variable_add(x, name, 1, NULL) < 0)
		return EVC_INVALID_ARGUMENT;
	return evc_exec_wait_for_stop(x, 0.001) ? EVC_CANCELLED : 0;
}

/* Workers are killed meanwhile. */
START_TEST(random_deaths)
{
	evc_schedule_opts once = { .flags = EVC_TRANSACTIONAL, .deaths = 255 };
	unsigned seed = 11, i, k;
	evc_cluster_worker_info w;

	begin(_i, 4);
	for (i = 0; i < 60; i++) {
		resize(1 + next_random(&seed) % 6);
		for (k = 0; k < 10; k++)
			OK(evc_schedule_pack(on.cl, "count once", &once, NULL,
					     "[s]", "sum"));
		if (next_random(&seed) % 2 == 0 &&
		    evc_cluster_worker_get(on.cl, next_random(&seed) % 6, &w) ==
			    0 &&
		    w.state != EVC_WORKER_GONE && pid_where(&w) > 0)
			(void)kill(pid_where(&w), SIGKILL);
		t_sleep(0.003);
	}
	resize(4);
	OK(join());
	ck_assert(variable("sum") == 600);
	UNTIL(are(4));
	all_answer(4);
}
END_TEST

static void *
resizes_often(void *arg)
{
	unsigned i, n = *(unsigned *)arg;

	for (i = 0; i < 50; i++)
		if (evc_cluster_resize(on.cl, n + i % 3) != 0)
			return arg;
	return NULL;
}

START_TEST(two_at_once)
{
	unsigned a = 1, b = 4, i;
	void *failed[2];
	pthread_t t[2];

	begin(_i, 2);
	OK(pthread_create(&t[0], NULL, resizes_often, &a));
	OK(pthread_create(&t[1], NULL, resizes_often, &b));
	for (i = 0; i < 200; i++)
		DO("count", "[sd]", "sum", 1.0);
	for (i = 0; i < 2; i++) {
		OK(pthread_join(t[i], &failed[i]));
		ck_assert_ptr_null(failed[i]);
	}
	OK(join());
	ck_assert(variable("sum") == 200);
	/* The later one counts, whichever it was. */
	UNTIL(are((unsigned)numbers().n_wanted));
	ck_assert_uint_le(numbers().n_workers, 6);
}
END_TEST

/* ---- the end ---- */

START_TEST(closed_while_it_grows)
{
	begin(_i, 1);
	resize(MANY);
	DO("nap", "[d]", 0.001);
}
END_TEST

START_TEST(closed_while_it_shrinks)
{
	int i;

	begin(_i, 8);
	UNTIL(are(8));
	for (i = 0; i < 8; i++)
		DO("hold", "[s]", "g");
	UNTIL(are_in("g", 8));
	resize(1);
	ck_assert_uint_eq(numbers().n_workers, 8);
}
END_TEST

/* [] : keeps what cannot be freed */
static evc_status
fn_sticks(evc_exec *x, void *arg)
{
	const evc_keep_ops ops = { .free = hang_for_ever };
	evc_exec_info i;

	if (evc_exec_get(x, &i) < 0)
		return EVC_INTERNAL;
	return i.worker_index == 0 ? 0 : evc_exec_keep(x, &ops, arg);
}

/* A process that has nothing to do and does not end is killed. */
START_TEST(stuck_one_is_killed)
{
	evc_cluster_config config = { .grace = 0.3 };
	evc_per_worker *v;

	begin_with(_i, 2, &config);
	OK(evc_per_worker_value(on.cl, "sticks", "sticks", NULL, &v));
	UNTIL(numbers().n_builds == 2);
	resize(1);
	UNTIL(are(1));
	evc_per_worker_free(v);
	OK(join());
}
END_TEST

/* ---- threads ---- */

/* A function may do it, too: its own worker then leaves after it. */
static evc_status
fn_shrinks(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	return evc_cluster_resize(on.cl, 1) == 0 ? 0 : EVC_INTERNAL;
}

START_TEST(in_a_function)
{
	evc_schedule_opts at = { .worker = "worker 2" };
	evc_remote *r;

	begin(_i, 3);
	OK(evc_schedule_call(on.cl, fn_shrinks, NULL, NULL, NULL, &at, &r));
	OK(code_of(r));
	evc_remote_free(r);
	UNTIL(are(1));
	OK(join());
}
END_TEST

static evc_status
fn_ends_thread(evc_exec *x, void *arg)
{
	evc_exec_info i;

	(void)arg;
	if (evc_exec_get(x, &i) < 0)
		return EVC_INTERNAL;
	if (i.attempt == 1)
		pthread_exit(NULL);
	return 0;
}

/* Its worker is gone; a resize brings it back, also one to the same number. */
START_TEST(lost_thread_is_replaced)
{
	unsigned i, lost = 0;
	evc_remote *r;

	begin(_i, 3);
	UNTIL(are(3));
	r = SCHEDULE("ends thread", "[]");
	OK(code_of(r));
	evc_remote_free(r);
	for (i = 0; i < 3; i++)
		if (worker(i).state == EVC_WORKER_GONE)
			lost = i;
	ck_assert_uint_eq(numbers().n_up, 2);
	resize(3);
	UNTIL(are(3) && worker(lost).state == EVC_WORKER_UP);
	all_answer(3);
	OK(join());
}
END_TEST

START_TEST(lost_thread_of_one)
{
	evc_remote *r;

	begin(_i, 1);
	UNTIL(are(1));
	r = SCHEDULE("ends thread", "[]");
	UNTIL(worker(0).state == EVC_WORKER_GONE);
	resize(1);
	OK(code_of(r));
	HAS(worker(0).text, "a function has ended its thread");
	evc_remote_free(r);
	OK(join());
}
END_TEST

/* ---- what is said ---- */

struct heard {
	int up, leaving, gone;
	/* of each worker */
	int ups[MANY], gones[MANY];
};

static void
hear(evc_cluster *cl, const evc_cluster_worker_info *w, void *arg)
{
	struct heard *h = arg;

	(void)cl;
	h->up += w->state == EVC_WORKER_UP;
	h->leaving += w->state == EVC_WORKER_LEAVING;
	h->gone += w->state == EVC_WORKER_GONE;
	h->ups[w->index] += w->state == EVC_WORKER_UP;
	h->gones[w->index] += w->state == EVC_WORKER_GONE;
}

/* However soon the second resize comes. */
START_TEST(lost_thread_is_replaced_at_once)
{
	evc_schedule_opts at = { .worker = "worker 1" };
	static struct heard h;
	evc_cluster_config config = { .worker = hear, .arg = &h };
	evc_remote *r;

	begin_on_loop(_i, 2, &config);
	TURN_UNTIL(h.up == 2);
	r = SCHEDULE_WITH(&at, "ends thread", "[]");
	TURN_UNTIL(h.gone == 1);
	/* Nobody else may run it. */
	OK(evc_cluster_resize(on.cl, 1));
	OK(evc_cluster_resize(on.cl, 2));
	TURN_UNTIL(h.up == 3);
	ck_assert_int_eq(h.ups[1], 2);
	ck_assert_int_eq(h.gones[1], 1);
	TURN_UNTIL(info_of(r).state == EVC_REMOTE_DONE);
	IS(info_of(r).code, 0);
	evc_remote_free(r);
}
END_TEST

/* It is down when it leaves, and was told to be. */
START_TEST(gone_is_told_once)
{
	static struct heard h;
	evc_cluster_config config = { .worker = hear, .arg = &h };

	begin_on_loop(_i, 2, &config);
	TURN_UNTIL(h.up == 2);
	OK(kill(pid_of(1), SIGKILL));
	TURN_UNTIL(h.gone == 1);
	resize(1);
	TURN_UNTIL(numbers().n_workers == 1);
	resize(2);
	TURN_UNTIL(numbers().n_up == 2 && h.ups[1] > h.gones[1]);
	ck_assert_int_eq(h.ups[1], h.gones[1] + 1);
	ck_assert_int_eq(h.ups[0], 1);
}
END_TEST

/* ---- a callback that causes the next one ---- */

#define SWINGS 30

struct swings {
	bool on;
	int n;
};

static void
swing(evc_cluster *cl, const evc_cluster_worker_info *w, void *arg)
{
	struct swings *s = arg;

	if (!s->on)
		return;
	s->n++;
	/* A worker that is told to be up may be gone by now: then its end is
	   what goes on. */
	if (w->state == EVC_WORKER_LEAVING || w->state == EVC_WORKER_GONE)
		OK(evc_cluster_resize(cl, 4));
	else if (w->state == EVC_WORKER_UP)
		OK(evc_cluster_resize(cl, 2));
}

START_TEST(callback_that_resizes)
{
	static struct swings s;
	evc_cluster_config config = { .worker = swing, .arg = &s };
	int i;

	begin_on_loop(_i, 4, &config);
	TURN_UNTIL(numbers().n_up == 4);
	for (i = 0; i < 100; i++)
		DO("add", "[ii]", i, 1);
	s.on = true;
	OK(evc_cluster_resize(on.cl, 3));
	/* The loop has its turns in between. */
	TURN_UNTIL(s.n >= SWINGS && numbers().n_done == 100);
	s.on = false;
	resize(1);
	TURN_UNTIL(are(1));
}
END_TEST

START_TEST(callbacks)
{
	static struct heard h;
	evc_cluster_config config = { .worker = hear, .arg = &h };

	begin_on_loop(_i, 3, &config);
	TURN_UNTIL(h.up == 3);
	resize(1);
	TURN_UNTIL(h.gone == 2);
	ck_assert_int_eq(h.leaving, 2);
	ck_assert_int_eq(h.up, 3);
	resize(2);
	TURN_UNTIL(h.up == 4);
}
END_TEST

START_TEST(report_and_metrics)
{
	static char text[32768];

	begin(_i, 2);
	UNTIL(are(2));
	DO("hold", "[s]", "g");
	DO("hold", "[s]", "g");
	UNTIL(are_in("g", 2));
	resize(1);
	OK(evc_report(evc_cluster_scope(on.cl), EVC_REPORT_TEXT, text,
		      sizeof(text)) == 0);
	ck_assert_msg(strstr(text, "is leaving") != NULL, "%.3000s", text);
	OK(evc_report(evc_cluster_scope(on.cl), EVC_REPORT_METRICS, text,
		      sizeof(text)) == 0);
	ck_assert_msg(strstr(text, "state=\"leaving\"} 1") != NULL, "%.3000s", text);
	let_go("g");
	OK(join());
	UNTIL(are(1));
	OK(evc_report(evc_cluster_scope(on.cl), EVC_REPORT_METRICS, text,
		      sizeof(text)) == 0);
	ck_assert_msg(strstr(text, "state=\"gone\"} 0") != NULL, "%.3000s", text);
}
END_TEST

/* ---- refusals ---- */

START_TEST(refused)
{
	IS(evc_cluster_resize(NULL, 2), -EVC_INVALID_ARGUMENT);
	begin(_i, 2);
	IS(evc_cluster_resize(on.cl, 0), -EVC_INVALID_ARGUMENT);
	IS(evc_cluster_resize(on.cl, 1025), -EVC_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(evc_last_error(), "1 to 1024"));
	ck_assert_uint_eq(numbers().n_wanted, 2);
	OK(evc_request_stop(on.c, 0, "the test is over"));
	IS(evc_cluster_resize(on.cl, 3), -EVC_CANCELLED);
}
END_TEST

START_TEST(refused_where_workers_come_by_themselves)
{
	begin(_i, 2);
	IS(evc_cluster_resize(on.cl, 3), -EVC_UNIMPLEMENTED);
	ck_assert_ptr_nonnull(strstr(evc_last_error(), "by themselves"));
	ck_assert_uint_eq(numbers().n_wanted, numbers().n_workers);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "range", .fn = fn_range },
	{ .name = "count once", .fn = fn_count_once },
	{ .name = "sticks", .fn = fn_sticks },
	{ .name = "parts slowly", .fn = fn_parts_slowly },
	{ .name = "ends thread", .fn = fn_ends_thread },
};

CONFORMANCE_MAIN("resize", functions,
		 ROW_ON(RESIZES, grows),
		 ROW_ON(RESIZES, shrinks_under_load),
		 ROW_ON(RESIZES, own_functions_run),
		 ROW_ON(RESIZES, own_function_is_cancelled),
		 ROW_ON(RESIZES | DIES, leaving_one_dies),
		 ROW_ON(RESIZES, stay_after_all),
		 ROW_ON(RESIZES, given_some_while_it_ends),
		 ROW_ON(RESIZES, random_resizes),
		 ROW_ON(RESIZES | DIES, random_deaths),
		 ROW_ON(RESIZES, two_at_once),
		 ROW_ON(RESIZES, closed_while_it_grows),
		 ROW_ON(RESIZES, closed_while_it_shrinks),
		 ROW_ON(RESIZES | DIES, stuck_one_is_killed),
		 ROW_ON(RESIZES | CALLS, in_a_function),
		 ROW_ON(RESIZES | CALLS, lost_thread_is_replaced),
		 ROW_ON(RESIZES | CALLS, lost_thread_of_one),
		 ROW_ON(RESIZES | CALLS, lost_thread_is_replaced_at_once),
		 ROW_ON(RESIZES, callbacks),
		 ROW_ON(RESIZES | DIES, gone_is_told_once),
		 ROW_ON(RESIZES, callback_that_resizes),
		 ROW_ON(RESIZES, report_and_metrics),
		 ROW_ON(RESIZES, refused),
		 ROW_ON(FINDS, refused_where_workers_come_by_themselves))
