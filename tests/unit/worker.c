/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker runs functions: what they are given, what comes of them, and how they
 * are told to stop.
 */
#include "worker.h"

#include "../support/seam.h"

/* ---- functions ---- */

static evc_status
add(evc_exec *x, void *arg)
{
	int a, b;

	(void)arg;
	if (evc_exec_unpack(x, "[ii]", &a, &b) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT,
				     "two numbers are needed");
	return evc_exec_return(x, "i", a + b);
}

static evc_status
named(evc_exec *x, void *arg)
{
	int a = 5, b = 7;

	(void)arg;
	if (evc_exec_unpack_named(x, "{a?:i b?:i}", &a, &b) < 0)
		return EVC_DATA_LOSS;
	return evc_exec_return(x, "i", 10 * a + b);
}

static evc_status
count_args(evc_exec *x, void *arg)
{
	(void)arg;
	ck_assert_uint_eq(evc_value_type(evc_exec_args(x)), EVC_VALUE_ARRAY);
	return evc_exec_return(x, "i", (int)evc_value_count(evc_exec_args(x)));
}

static evc_status
nothing(evc_exec *x, void *arg)
{
	(void)x;
	return arg != NULL ? *(evc_status *)arg : 0;
}

static evc_status negative = -EVC_NOT_FOUND, huge = 4711, tiny = -4711;

static evc_status
changes_its_mind(evc_exec *x, void *arg)
{
	(void)arg;
	ck_assert_int_eq(evc_exec_fail(x, EVC_ABORTED, "first"), EVC_ABORTED);
	ck_assert_int_eq(evc_exec_fail(x, 4711, "odd"), EVC_UNKNOWN);
	(void)evc_exec_return(x, "[iis]", 1, 2, "a text that is not so small");
	return evc_exec_return(x, "i", 3);
}

static evc_status
says_another(evc_exec *x, void *arg)
{
	(void)arg;
	(void)evc_exec_fail(x, EVC_ABORTED, "not this");
	return EVC_INTERNAL;
}

static evc_status
returns_wrongly(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "[i", 1);
}

static evc_status
returns_all(evc_exec *x, void *arg)
{
	static const char *const formats[] = { "n", "b", "i", "u", "I",
					       "U", "d", "s" };
	int which;

	(void)arg;
	OK(evc_exec_unpack(x, "[i]", &which));
	switch (which) {
	case 0:
		return evc_exec_return(x, formats[which]);
	case 1:
		return evc_exec_return(x, formats[which], 1);
	case 2:
		return evc_exec_return(x, formats[which], -7);
	case 3:
		return evc_exec_return(x, formats[which], 4000000000u);
	case 4:
		return evc_exec_return(x, formats[which], INT64_MIN);
	case 5:
		return evc_exec_return(x, formats[which], UINT64_MAX);
	case 6:
		return evc_exec_return(x, formats[which], 0.5);
	default:
		return evc_exec_return(x, formats[which], "seven");
	}
}

static evc_status
who(evc_exec *x, void *arg)
{
	evc_exec_info i;

	(void)arg;
	OK(evc_exec_get(x, &i));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_get(x, NULL));
	return evc_exec_return(x, "[ssuuUU]", i.function, i.worker,
			       i.worker_index, i.attempt, i.generation, i.n);
}

static evc_status
until_stopped(evc_exec *x, void *arg)
{
	atomic_int *in = arg;

	ck_assert_ptr_nonnull(evc_exec_coord(x));
	if (evc_exec_should_stop(x) || evc_exec_wait_for_stop(x, 0))
		return EVC_INTERNAL;
	atomic_store(in, own_tid());
	if (!evc_exec_wait_for_stop(x, T_LIMIT))
		return EVC_DEADLINE_EXCEEDED;
	return evc_exec_should_stop(x) ? EVC_CANCELLED : EVC_INTERNAL;
}

static evc_status
for_a_moment(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_wait_for_stop(x, 0.01) ? EVC_INTERNAL : 0;
}

static atomic_int inside;

static const evc_function table[] = {
	{ .name = "add", .fn = add },
	{ .name = "named", .fn = named },
	{ .name = "count_args", .fn = count_args },
	{ .name = "nothing", .fn = nothing },
	{ .name = "negative", .fn = nothing, .arg = &negative },
	{ .name = "huge", .fn = nothing, .arg = &huge },
	{ .name = "tiny", .fn = nothing, .arg = &tiny },
	{ .name = "changes_its_mind", .fn = changes_its_mind },
	{ .name = "says_another", .fn = says_another },
	{ .name = "returns_wrongly", .fn = returns_wrongly },
	{ .name = "returns_all", .fn = returns_all },
	{ .name = "who", .fn = who },
	{ .name = "until_stopped", .fn = until_stopped, .arg = &inside },
	{ .name = "for_a_moment", .fn = for_a_moment },
};

/* ---- tables ---- */

START_TEST(tables_with_mistakes_are_refused)
{
	static const char edge[] =
		"12345678901234567890123456789012345678901234567";
	static const char over[] =
		"123456789012345678901234567890123456789012345678";
	evc_function t[3] = { { .name = "a", .fn = nothing },
			      { .name = edge, .fn = nothing },
			      { .name = "c", .fn = nothing } };

	OK(evc__functions_check(NULL, 0));
	OK(evc__functions_check(t, 3));
	REFUSED(EVC_INVALID_ARGUMENT, evc__functions_check(NULL, 1));
	t[1].name = over;
	REFUSED(EVC_INVALID_ARGUMENT, evc__functions_check(t, 3));
	t[1].name = NULL;
	REFUSED(EVC_INVALID_ARGUMENT, evc__functions_check(t, 3));
	t[1].name = "";
	REFUSED(EVC_INVALID_ARGUMENT, evc__functions_check(t, 3));
	t[1].name = "c";
	REFUSED(EVC_INVALID_ARGUMENT, evc__functions_check(t, 3));
	HAS(evc_last_error(), "\"c\"");
	t[1].name = "b";
	OK(evc__functions_check(t, 3));
	t[2].fn = NULL;
	REFUSED(EVC_INVALID_ARGUMENT, evc__functions_check(t, 3));
	t[2].fn = nothing;
	t[0].flags = EVC_TRANSACTIONAL;
	REFUSED(EVC_INVALID_ARGUMENT, evc__functions_check(t, 3));
	t[0].flags = 0;
	t[0].reserved_[3] = 1;
	REFUSED(EVC_INVALID_ARGUMENT, evc__functions_check(t, 3));
}
END_TEST

START_TEST(every_function_of_a_large_table_is_found)
{
	enum { MANY = 3000 };
	evc_function *t = calloc(MANY, sizeof *t);
	char (*names)[24] = calloc(MANY, sizeof *names);
	evc_status *codes = calloc(MANY, sizeof *codes);
	struct bench b;
	int i;

	for (i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof names[i], "function %d", i);
		codes[i] = 1 + i % 200;
		t[i] = (evc_function){ .name = names[i], .fn = nothing,
				       .arg = &codes[i] };
	}
	bench_open_as(&b, t, MANY, 0);
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(bench_call(&b, names[i]), codes[i]);
	ck_assert_int_eq(bench_call(&b, "function"), EVC_INVALID_ARGUMENT);
	bench_close(&b);
	free(t);
	free(names);
	free(codes);
}
END_TEST

/* ---- arguments and results ---- */

START_TEST(functions_get_arguments_and_give_results)
{
	struct bench b;

	BENCH(&b, table);
	ARGS(&b, "[ii]", 20, 22);
	OK(bench_call(&b, "add"));
	GIVES(&b, 42);
	ck_assert(b.r.took >= 0);
	ck_assert_uint_eq(b.r.kind, 0);
	ARGS(&b, "[is]", 20, "x");
	bench_call(&b, "add");
	FAILS(&b, EVC_INVALID_ARGUMENT, EVC_FAILED_FUNCTION,
	      "two numbers are needed");
	/* None are an empty array, and an empty map. */
	evc_value_free(&b.args);
	OK(bench_call(&b, "count_args"));
	GIVES(&b, 0);
	OK(bench_call(&b, "named"));
	GIVES(&b, 57);
	OK(evc_pack(&b.kwargs, "n"));
	OK(bench_call(&b, "named"));
	GIVES(&b, 57);
	evc_value_free(&b.kwargs);
	OK(evc_pack(&b.kwargs, "{b:i}", 2));
	OK(bench_call(&b, "named"));
	GIVES(&b, 52);
	bench_close(&b);
}
END_TEST

START_TEST(what_a_function_returns_is_its_outcome)
{
	struct bench b;

	BENCH(&b, table);
	OK(bench_call(&b, "nothing"));
	ck_assert_uint_eq(evc_value_type(&b.r.value), EVC_VALUE_NIL);
	ck_assert_int_eq(bench_call(&b, "negative"), EVC_NOT_FOUND);
	ck_assert_uint_eq(b.r.kind, EVC_FAILED_FUNCTION);
	ck_assert_ptr_null(b.r.text);
	ck_assert_int_eq(bench_call(&b, "huge"), EVC_UNKNOWN);
	ck_assert_int_eq(bench_call(&b, "tiny"), EVC_UNKNOWN);
	/* The last value counts, and a text only with its own code. */
	OK(bench_call(&b, "changes_its_mind"));
	GIVES(&b, 3);
	ck_assert_ptr_null(b.r.text);
	ck_assert_int_eq(bench_call(&b, "says_another"), EVC_INTERNAL);
	ck_assert_ptr_null(b.r.text);
	bench_call(&b, "returns_wrongly");
	ck_assert_int_eq(b.r.code, EVC_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(b.r.text);
	bench_call(&b, "no such function");
	FAILS(&b, EVC_INVALID_ARGUMENT, EVC_FAILED_FUNCTION,
	      "\"no such function\"");
	bench_close(&b);
}
END_TEST

START_TEST(small_results_are_what_evc_pack_makes)
{
	evc_value want[8];
	struct bench b;
	int i;

	OK(evc_pack(&want[0], "n"));
	OK(evc_pack(&want[1], "b", 1));
	OK(evc_pack(&want[2], "i", -7));
	OK(evc_pack(&want[3], "u", 4000000000u));
	OK(evc_pack(&want[4], "I", INT64_MIN));
	OK(evc_pack(&want[5], "U", UINT64_MAX));
	OK(evc_pack(&want[6], "d", 0.5));
	OK(evc_pack(&want[7], "s", "seven"));
	BENCH(&b, table);
	for (i = 0; i < 8; i++) {
		ARGS(&b, "[i]", i);
		OK(bench_call(&b, "returns_all"));
		if (i == 0) {
			ck_assert_uint_eq(evc_value_type(&b.r.value),
					  EVC_VALUE_NIL);
			continue;
		}
		ck_assert_uint_eq(b.r.value.size, want[i].size);
		ck_assert_mem_eq(b.r.value.data, want[i].data, want[i].size);
	}
	for (i = 0; i < 8; i++)
		evc_value_free(&want[i]);
	bench_close(&b);
}
END_TEST

START_TEST(results_of_several_runs_stay_until_they_are_done_with)
{
	enum { MANY = 500 };
	evc_engine_result *r = calloc(MANY, sizeof *r);
	evc_engine_task task;
	struct bench b;
	int i, sum;

	BENCH(&b, table);
	for (i = 0; i < MANY; i++) {
		ARGS(&b, "[ii]", i, 1000);
		task = bench_task(&b, i % 3 == 0 ? "who" : "add");
		evc__worker_run(b.w, &task, &r[i]);
	}
	for (i = 0; i < MANY; i++) {
		OK(r[i].code);
		if (i % 3 == 0) {
			ck_assert_uint_eq(evc_value_count(&r[i].value), 6);
			continue;
		}
		OK(evc_unpack(&r[i].value, "i", &sum));
		ck_assert_int_eq(sum, i + 1000);
	}
	evc__worker_done(b.w);
	bench_close(&b);
	free(r);
}
END_TEST

START_TEST(a_small_function_asks_for_no_memory)
{
	struct bench b;
	int h, i;

	BENCH(&b, table);
	ARGS(&b, "[ii]", 1, 2);
	OK(bench_call(&b, "add"));
	h = seam_fail_all("alloc", NULL, 1, ENOMEM);
	for (i = 0; i < 100; i++) {
		OK(bench_call(&b, "add"));
		GIVES(&b, 3);
	}
	ck_assert_int_eq(seam_arrivals(h), 0);
	/* What needs some says that there is none. */
	seam_reset();
	ARGS(&b, "[]");
	(void)seam_fail_all("alloc", NULL, 1, ENOMEM);
	bench_call(&b, "who");
	seam_reset();
	ck_assert_int_eq(b.r.code, EVC_RESOURCE_EXHAUSTED);
	bench_close(&b);
}
END_TEST

START_TEST(a_function_knows_who_runs_it)
{
	char function[48], worker[48];
	unsigned index, attempt;
	uint64_t generation, n;
	evc_engine_task task;
	struct bench b;

	bench_open_as(&b, table, sizeof table / sizeof table[0], 4);
	task = bench_task(&b, "who");
	task.attempt = 3;
	OK(bench_run(&b, &task));
	OK(evc_unpack(&b.r.value, "[ssuuUU]", function, sizeof function,
		      worker, sizeof worker, &index, &attempt, &generation,
		      &n));
	ck_assert_str_eq(function, "who");
	ck_assert_str_eq(worker, "worker 4");
	ck_assert_uint_eq(index, 4);
	ck_assert_uint_eq(attempt, 3);
	ck_assert_uint_eq(generation, 3);
	ck_assert_uint_eq(n, task.n);
	/* A call of a C function. */
	task = bench_task(&b, NULL);
	task.call = who;
	OK(bench_run(&b, &task));
	OK(evc_unpack(&b.r.value, "[s...]", function, sizeof function));
	ck_assert_str_eq(function, "call");
	bench_close(&b);
}
END_TEST

/* ---- inputs ---- */

START_TEST(results_of_remotes_stand_in_their_places)
{
	unsigned char bytes[2][REF_BYTES];
	evc_value r7 = ref_value(bytes[0], false, 7);
	evc_value r8 = ref_value(bytes[1], false, 8);
	evc_engine_input in[2] = { { .id = 8 }, { .id = 7 } };
	evc_engine_task task;
	struct bench b;

	BENCH(&b, table);
	OK(evc_pack(&in[0].value, "i", 30));
	OK(evc_pack(&b.kept, "i", 12));
	ARGS(&b, "[vv]", &r7, &r8);
	task = bench_task(&b, "add");
	task.inputs = in;
	task.n_inputs = 2;
	/* 7 is one that this worker has kept. */
	OK(bench_run(&b, &task));
	GIVES(&b, 42);
	/* In the named ones, too. */
	ARGS(&b, "[]");
	OK(evc_pack(&b.kwargs, "{a:v b:v}", &r8, &r7));
	task = bench_task(&b, "named");
	task.inputs = in;
	task.n_inputs = 2;
	OK(bench_run(&b, &task));
	GIVES(&b, 312);
	/* And one that it has not. */
	evc_value_free(&b.kept);
	task.n = ++b.last_n;
	bench_run(&b, &task);
	FAILS(&b, EVC_INTERNAL, EVC_FAILED_FUNCTION, "remote 7");
	evc_value_free(&in[0].value);
	bench_close(&b);
}
END_TEST

static evc_status
sum(evc_exec *x, void *arg)
{
	evc_value e;
	size_t at = 0;
	int all = 0, i;

	(void)arg;
	while (evc_value_next(evc_exec_args(x), &at, NULL, &e)) {
		OK(evc_unpack(&e, "i", &i));
		all = 31 * all + i;
		all %= 1000003;
	}
	return evc_exec_return(x, "i", all);
}

START_TEST(many_inputs_in_any_order)
{
	enum { MANY = 300 };
	evc_engine_input in[MANY];
	unsigned char bytes[3 + MANY * REF_BYTES] = { 0xdc, MANY >> 8,
						      MANY & 255 };
	evc_engine_task task;
	struct bench b;
	int i, k, want = 0;

	BENCH(&b, table);
	for (i = 0; i < MANY; i++) {
		k = i * 7 % MANY;
		evc__walk_put_ref(bytes + 3 + i * REF_BYTES, false, 1,
				  (uint64_t)(1000 + k));
		want = (31 * want + k) % 1000003;
		in[i].id = (uint64_t)(1000 + i * 11 % MANY);
		OK(evc_pack(&in[i].value, "i", i * 11 % MANY));
	}
	task = bench_task(&b, NULL);
	task.call = sum;
	task.args = (evc_value){ bytes, sizeof bytes };
	task.inputs = in;
	task.n_inputs = MANY;
	OK(bench_run(&b, &task));
	GIVES(&b, want);
	for (i = 0; i < MANY; i++)
		evc_value_free(&in[i].value);
	bench_close(&b);
}
END_TEST

/* ---- the stop ---- */

START_TEST(what_is_cancelled_before_it_begins_does_not)
{
	evc_engine_task task[4];
	struct bench b;
	int i;

	BENCH(&b, table);
	for (i = 0; i < 4; i++)
		task[i] = bench_task(&b, "nothing");
	evc__worker_cancel(b.w, task[0].n);
	evc__worker_cancel_one(b.w, task[2].n);
	/* One whose number is not this worker's any more is no harm. */
	evc__worker_cancel_one(b.w, 0);
	for (i = 0; i < 4; i++) {
		bench_run(&b, &task[i]);
		if (i % 2 == 0)
			ck_assert(b.r.took < 0);
		else
			ck_assert(b.r.code == 0 && b.r.took >= 0);
	}
	/* It never goes back. */
	evc__worker_cancel(b.w, 1);
	bench_run(&b, &task[0]);
	ck_assert(b.r.took < 0);
	bench_close(&b);
}
END_TEST

struct runner {
	struct bench *b;
	pthread_t thread;
	evc_engine_task task;
};

static void *
runner_main(void *arg)
{
	struct runner *r = arg;

	bench_run(r->b, &r->task);
	return NULL;
}

static void
begin(struct runner *r, struct bench *b, const char *function)
{
	atomic_store(&inside, 0);
	r->b = b;
	r->task = bench_task(b, function);
	OK(pthread_create(&r->thread, NULL, runner_main, r));
	UNTIL(atomic_load(&inside) != 0);
}

START_TEST(a_cancel_wakes_a_function_that_waits_for_it)
{
	struct runner r;
	struct bench b;

	BENCH(&b, table);
	begin(&r, &b, "until_stopped");
	until_asleep(atomic_load(&inside));
	evc__worker_cancel(b.w, r.task.n);
	OK(pthread_join(r.thread, NULL));
	ck_assert_int_eq(b.r.code, EVC_CANCELLED);
	ck_assert(b.r.took >= 0);

	/* The same, and others' before it, several at once. */
	begin(&r, &b, "until_stopped");
	until_asleep(atomic_load(&inside));
	evc__worker_cancel_one(b.w, r.task.n + 1);
	evc__worker_cancel_one(b.w, r.task.n - 1);
	until_asleep(atomic_load(&inside));
	evc__worker_cancel_one(b.w, r.task.n);
	evc__worker_cancel_one(b.w, r.task.n + 2);
	OK(pthread_join(r.thread, NULL));
	ck_assert_int_eq(b.r.code, EVC_CANCELLED);
	/* Those behind it still count. */
	ck_assert_uint_eq(b.last_n, r.task.n);
	bench_call(&b, "nothing");
	ck_assert(b.r.took < 0);
	bench_call(&b, "nothing");
	ck_assert(b.r.took < 0);
	bench_call(&b, "nothing");
	ck_assert(b.r.took >= 0);
	bench_close(&b);
}
END_TEST

START_TEST(the_stop_of_the_coordinator_wakes_it)
{
	struct runner r;
	struct bench b;

	BENCH(&b, table);
	OK(bench_call(&b, "for_a_moment"));
	begin(&r, &b, "until_stopped");
	until_asleep(atomic_load(&inside));
	OK(evc_request_stop(b.c, 0, NULL));
	OK(pthread_join(r.thread, NULL));
	ck_assert_int_eq(b.r.code, EVC_CANCELLED);
	bench_close(&b);
}
END_TEST

START_TEST(the_stop_wakes_it_where_no_hook_is_to_be_had)
{
	struct runner r;
	struct bench b;

	BENCH(&b, table);
	seam_fail_all("alloc", "evc__waker_push", 1, ENOMEM);
	begin(&r, &b, "until_stopped");
	OK(evc_request_stop(b.c, 0, NULL));
	OK(pthread_join(r.thread, NULL));
	seam_reset();
	ck_assert_int_eq(b.r.code, EVC_CANCELLED);
	bench_close(&b);
}
END_TEST

/* A cancel that comes between the look and the sleep ends the sleep. */
START_TEST(no_cancel_is_missed_on_the_way_to_sleep)
{
	struct runner r;
	struct bench b;
	int h;

	BENCH(&b, table);
	h = seam_hold("futex_wait", "wait_for_bell", 1);
	begin(&r, &b, "until_stopped");
	ck_assert(seam_await(h));
	evc__worker_cancel_one(b.w, r.task.n);
	seam_release(h);
	OK(pthread_join(r.thread, NULL));
	seam_reset();
	ck_assert_int_eq(b.r.code, EVC_CANCELLED);
	ck_assert(b.r.took < T_LIMIT / 2);
	bench_close(&b);
}
END_TEST

API_MAIN("worker", tables_with_mistakes_are_refused,
	 every_function_of_a_large_table_is_found,
	 functions_get_arguments_and_give_results,
	 what_a_function_returns_is_its_outcome,
	 small_results_are_what_evc_pack_makes,
	 results_of_several_runs_stay_until_they_are_done_with,
	 a_small_function_asks_for_no_memory, a_function_knows_who_runs_it,
	 results_of_remotes_stand_in_their_places, many_inputs_in_any_order,
	 what_is_cancelled_before_it_begins_does_not,
	 a_cancel_wakes_a_function_that_waits_for_it,
	 the_stop_of_the_coordinator_wakes_it,
	 the_stop_wakes_it_where_no_hook_is_to_be_had,
	 no_cancel_is_missed_on_the_way_to_sleep)
