/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that is busy with somebody's script, and answers BUSY: functions wait,
 * in their order; nothing is forgotten; some leases later the server is given up.
 * Builds also wait for a server without memory.
 */
#include "rows.h"

static void
begin_with_lease(int i, double lease)
{
	const evc_cluster_config config = { .lease = lease };

	rig(i, &(struct rig_opts){ .own = true });
	rig_node(1);
	rig_open(&config);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
}

static bool
report_has(const char *part)
{
	char text[1000];

	own_report(evc_cluster_scope(on.cl), text, sizeof(text));
	return strstr(text, part) != NULL;
}

/* No function fails for a late answer. */
START_TEST(functions_wait_for_it)
{
	redisContext *c;
	evc_remote *r;

	begin_with_lease(_i, 10);
	c = makes_busy();
	r = SCHEDULE("add", "[ii]", 3, 4);
	says("BUSY");
	ck_assert_uint_ne(info_of(r).state, EVC_REMOTE_DONE);
	is_busy_no_more(c);
	IS(take_number(r), 7);
	UNTIL(!report_has("BUSY"));
	OK(join());
}
END_TEST

/* [value of a worker] -> its number */
static evc_status
fn_use(evc_exec *x, void *arg)
{
	evc_local *l;
	int64_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &l) < 0 ||
	    evc_unpack(evc_local_value(l), "I", &n) < 0)
		return EVC_INVALID_ARGUMENT;
	return evc_exec_return(x, "I", n);
}

static evc_status
fn_new(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "I", (int64_t)42);
}

/* The order to build waits for the next try.  A function with the value comes when
   the server is no more busy, and does not overtake the order. */
START_TEST(values_are_built_before_functions_use_them)
{
	evc_per_worker *value;
	redisContext *c;
	int i;

	begin_with_lease(_i, 10);
	for (i = 0; i < 5; i++) {
		c = makes_busy();
		OK(evc_per_worker_value(on.cl, "v", "new", NULL, &value));
		says("BUSY");
		is_busy_no_more(c);
		IS(take_number(SCHEDULE("use", "[w]", value)), 42);
		evc_per_worker_free(value);
	}
	OK(join());
}
END_TEST

/* Nor is an order to build lost when the server is full, and not busy. */
START_TEST(values_are_built_when_there_is_memory_again)
{
	evc_per_worker *value;

	begin_with_lease(_i, 10);
	rs_do(rg.server, "CONFIG SET maxmemory 1");
	OK(evc_per_worker_value(on.cl, "v", "new", NULL, &value));
	says("orders for node ");
	says("OOM");
	rs_do(rg.server, "CONFIG SET maxmemory 0");
	IS(take_number(SCHEDULE("use", "[w]", value)), 42);
	evc_per_worker_free(value);
	OK(join());
}
END_TEST

/* Inputs with a key of their own on the server. */
static int
n_values(void)
{
	redisReply *r = rs_ask(rg.server, "KEYS {%s}:*:v:*", rg.ns);
	int n;

	ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
	n = (int)r->elements;
	freeReplyObject(r);
	return n;
}

START_TEST(values_that_are_freed_meanwhile_are_deleted)
{
	redisContext *c;
	evc_remote *r;

	begin_with_lease(_i, 10);
	rig_node(1);
	UNTIL(numbers().n_up == 2);
	r = SCHEDULE_WITH(&(evc_schedule_opts){ .worker = "worker 0" }, "big",
			  "[ii]", 200000, 1);
	ck_assert_int_gt(take_number(SCHEDULE_WITH(
				 &(evc_schedule_opts){ .worker = "worker 1" },
				 "look", "[rr]", r, r)),
			 400000);
	ck_assert_int_gt(n_values(), 0);
	c = makes_busy();
	evc_remote_free(r);
	r = SCHEDULE("add", "[ii]", 3, 4);
	says("BUSY");
	is_busy_no_more(c);
	IS(take_number(r), 7);
	UNTIL(n_values() == 0);
	OK(join());
}
END_TEST

/* The node asks again, and the coordinator still knows the keys on the server. */
START_TEST(inputs_wait_for_it)
{
	redisContext *c;
	evc_remote *big, *r, *add;

	begin_with_lease(_i, 20);
	rig_node(1);
	UNTIL(numbers().n_up == 2);
	big = SCHEDULE_WITH(&(evc_schedule_opts){ .worker = "worker 0" },
			    "big", "[ii]", 200000, 1);
	OK(evc_remote_fetch(big, T_LIMIT, NULL));
	OK(kill(node_of(1), SIGSTOP));
	r = SCHEDULE_WITH(&(evc_schedule_opts){ .worker = "worker 1" }, "look",
			  "[rr]", big, big);
	UNTIL(n_values() > 0);
	c = makes_busy();
	OK(kill(node_of(1), SIGCONT));
	add = SCHEDULE("add", "[ii]", 3, 4);
	says("BUSY");
	evc_remote_cancel(r);
	is_busy_no_more(c);
	IS(take_number(add), 7);
	UNTIL(info_of(r).state == EVC_REMOTE_DONE);
	evc_remote_free(r);
	evc_remote_free(big);
	UNTIL(n_values() == 0);
	OK(join());
}
END_TEST

/* [] -> number of additions of 1 to n */
static evc_status
fn_add_often(evc_exec *x, void *arg)
{
	int64_t n;

	(void)arg;
	for (n = 0; n < 500; n++) {
		if (evc_exec_variable_add(x, "n", 1, NULL) < 0)
			return EVC_INTERNAL;
		evc_exec_wait_for_stop(x, 0.001);
	}
	return evc_exec_return(x, "I", n);
}

START_TEST(additions_wait_for_it)
{
	evc_remote *r, *add;
	redisContext *c;

	begin_with_lease(_i, 10);
	r = SCHEDULE("add often", "[]");
	UNTIL(info_of(r).state == EVC_REMOTE_RUNNING);
	c = makes_busy();
	add = SCHEDULE("add", "[ii]", 3, 4);
	says("BUSY");
	is_busy_no_more(c);
	IS(take_number(r), 500);
	IS(take_number(add), 7);
	ck_assert(variable("n") == 500);
	OK(join());
}
END_TEST

/* Pieces that are refused are sent, or asked for, again. */
START_TEST(a_checkpoint_is_loaded_and_saved_all_the_same)
{
	enum { N = 2000000 };
	const char path[] = "/tmp/evc-redis-busy";
	evc_cluster_config config = { .lease = 20, .checkpoint = path };
	double *x = calloc(N, sizeof *x), last = 0;
	const evc_elements all = { .doubles = x, .n = N };
	const evc_elements one = { .doubles = &last, .n = 1, .from = N - 1 };
	redisContext *c;

	unlink(path);
	begin_with_lease(_i, 20);
	x[N - 1] = 7;
	OK(evc_vector_set(on.cl, "x", &all));
	free(x);
	OK(evc_cluster_save(on.cl, path));
	rig_close();
	on.n_workers = 0;
	rig_open(&config);
	UNTIL(rig_key("EXISTS", "coord") == 1);
	c = makes_busy();
	says("BUSY");
	is_busy_no_more(c);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(evc_vector_get(on.cl, "x", &one));
	ck_assert_double_eq(last, 7);
	OK(join());
	OK(unlink(path));
	c = makes_busy();
	OK(evc_request_stop(on.c, 0, "enough"));
	says("the last checkpoint is not saved yet");
	/* It has asked by then, and was refused. */
	t_sleep(0.3);
	is_busy_no_more(c);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	OK(evc_join(on.c, &(evc_join_opts){ .grace = T_LIMIT }, NULL));
	OK(unlink(path));
}
END_TEST

/* The server is away, and no function is to blame. */
START_TEST(for_longer_than_some_leases)
{
	redisContext *c;
	evc_remote *r;

	begin_with_lease(_i, 1);
	r = SCHEDULE_WITH(&(evc_schedule_opts){ .deaths = 1 }, "hold", "[s]",
			  "g");
	UNTIL(are_in("g", 1));
	c = makes_busy();
	UNTIL(join() == EVC_UNAVAILABLE);
	HAS(evc_last_error(), "BUSY");
	IS(code_of(r), EVC_CANCELLED);
	ck_assert_uint_eq(info_of(r).deaths, 0);
	evc_remote_free(r);
	is_busy_no_more(c);
}
END_TEST

static const evc_function functions[] = {
	ROW_FUNCTIONS,
	{ .name = "use", .fn = fn_use },
	{ .name = "new", .fn = fn_new },
	{ .name = "add often", .fn = fn_add_often },
};

REDIS_ROWS("redis: a busy server", functions, ROW(functions_wait_for_it),
	   ROW(values_are_built_before_functions_use_them),
	   ROW(values_are_built_when_there_is_memory_again),
	   ROW(values_that_are_freed_meanwhile_are_deleted),
	   ROW(inputs_wait_for_it), ROW(additions_wait_for_it),
	   ROW(a_checkpoint_is_loaded_and_saved_all_the_same),
	   ROW(for_longer_than_some_leases))
