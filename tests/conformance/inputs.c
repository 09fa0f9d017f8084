/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remotes among the arguments: their results travel, or stay where they are; one
 * that failed gives its own error to who has it, and one that was cancelled
 * cancels that.
 */
#include "functions.h"

START_TEST(results_travel_and_stay)
{
	evc_schedule_opts at[2] = { { .worker = "worker 0" },
				    { .worker = "worker 1" } };
	evc_remote *a, *b[4];
	int i;

	begin(_i, 2);
	/* Made on each, used on each. */
	for (i = 0; i < 4; i++) {
		a = SCHEDULE_WITH(&at[i / 2], "add", "[ii]", 10, i);
		b[i] = SCHEDULE_WITH(&at[i % 2], "add", "[rr]", a, a);
		evc_remote_free(a);
	}
	for (i = 0; i < 4; i++) {
		ck_assert_str_eq((number_of(b[i]), info_of(b[i]).worker),
				 at[i % 2].worker);
		IS(take_number(b[i]), 20 + 2 * i);
	}
	/* One that is there already, and was fetched. */
	a = SCHEDULE_WITH(&at[0], "add", "[ii]", 1, 2);
	IS(number_of(a), 3);
	for (i = 0; i < 4; i++)
		IS(take_number(SCHEDULE_WITH(&at[i % 2], "add", "[ri]", a, i)),
		   3 + i);
	evc_remote_free(a);
	OK(join());
}
END_TEST

/* A function that has said nothing gives nil, to another one as well. */
START_TEST(no_result_is_nil)
{
	evc_remote *nothing, *after;
	evc_value v;

	begin(_i, 2);
	nothing = SCHEDULE("nap", "[d]", 0.0);
	after = SCHEDULE("echo", "[r]", nothing);
	OK(evc_remote_fetch(after, T_LIMIT, &v));
	ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_NIL);
	evc_remote_free(after);
	/* And when it has ended long before. */
	after = SCHEDULE("echo", "[[ri]]", nothing, 7);
	OK(evc_remote_fetch(after, T_LIMIT, &v));
	OK(evc_unpack(&v, "[ni]", &(int){ 0 }));
	evc_remote_free(after);
	evc_remote_free(nothing);
	OK(join());
}
END_TEST

START_TEST(a_chain_and_a_tree)
{
	enum { LONG = 300, WIDE = 64 };
	evc_remote *r, *next, *leaf[WIDE];
	int i, n;

	begin(_i, 3);
	r = SCHEDULE("add", "[ii]", 0, 0);
	for (i = 0; i < LONG; i++) {
		next = SCHEDULE("add", "[ri]", r, 1);
		evc_remote_free(r);
		r = next;
	}
	IS(take_number(r), LONG);
	for (i = 0; i < WIDE; i++)
		leaf[i] = SCHEDULE("add", "[ii]", i, 0);
	for (n = WIDE; n > 1; n /= 2)
		for (i = 0; i < n / 2; i++) {
			r = SCHEDULE("add", "[rr]", leaf[2 * i],
				     leaf[2 * i + 1]);
			evc_remote_free(leaf[2 * i]);
			evc_remote_free(leaf[2 * i + 1]);
			leaf[i] = r;
		}
	IS(take_number(leaf[0]), WIDE * (WIDE - 1) / 2);
	OK(join());
}
END_TEST

/* [{a:[[[n]]] b:{c:[number, n]}}], and {k:{l:[n]}} -> their sum */
static evc_status
fn_deep(evc_exec *x, void *arg)
{
	int64_t a, b, c = 0;
	evc_local *l;
	int n;

	(void)arg;
	if (evc_exec_unpack(x, "[{a:[[[I]]] b:{c:[wI]}}]", &a, &l, &b) < 0 ||
	    evc_exec_unpack_named(x, "{k:{l:[I]}}", &c) < 0 ||
	    evc_unpack(evc_local_value(l), "i", &n) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_return(x, "I", a + b + c + n);
}

static evc_status
fn_thousand(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "i", 1000);
}

START_TEST(they_stand_at_any_depth)
{
	evc_remote *a, *b, *r = NULL;
	evc_per_worker *w = NULL;
	evc_value args, kwargs;

	begin(_i, 3);
	OK(evc_per_worker_value(on.cl, "thousand", "thousand", NULL, &w));
	a = SCHEDULE("add", "[ii]", 1, 2);
	b = SCHEDULE("add", "[ri]", a, 30);
	args = PACKED("[{b:{c:[wr]} a:[[[r]]]}]", w, b, a);
	kwargs = PACKED("{k:{l:[r]}}", b);
	OK(evc_schedule(on.cl, "deep", &args, &kwargs, NULL, &r));
	/* They are kept from here on. */
	evc_remote_free(a);
	evc_remote_free(b);
	evc_per_worker_free(w);
	IS(take_number(r), 1000 + 3 + 33 + 33);
	/* And named no more: nobody has them. */
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "deep", &args, NULL, NULL, &r));
	evc_value_free(&args);
	evc_value_free(&kwargs);
	OK(join());
}
END_TEST

START_TEST(a_result_that_makes_it_too_deep)
{
	evc_value v = PACKED("n"), more;
	evc_remote *a, *b;
	int i;

	begin(_i, 2);
	for (i = 0; i < 20; i++) {
		more = PACKED("[v]", &v);
		evc_value_free(&v);
		v = more;
	}
	a = SCHEDULE("echo", "[v]", &v);
	OK(code_of(a));
	/* 12 + 20 levels are allowed, one more is not. */
	b = SCHEDULE("echo", "[[[[[[[[[[[[r]]]]]]]]]]]]", a);
	OK(code_of(b));
	evc_remote_free(b);
	b = SCHEDULE("echo", "[[[[[[[[[[[[[r]]]]]]]]]]]]]", a);
	IS(code_of(b), EVC_INVALID_ARGUMENT);
	IS(join(), EVC_INVALID_ARGUMENT);
	OK(join());
	evc_value_free(&v);
	evc_remote_free(a);
	evc_remote_free(b);
}
END_TEST

START_TEST(large_results_travel)
{
	enum { LARGE = 3 << 20 };
	evc_remote *a, *b[4];
	evc_value v;
	char *bytes = malloc(LARGE);
	const void *got;
	size_t n;
	int i;

	begin(_i, 2);
	for (i = 0; i < LARGE; i++)
		bytes[i] = (char)(i * 7);
	a = SCHEDULE("echo", "[B]", bytes, (size_t)LARGE);
	for (i = 0; i < 4; i++)
		b[i] = SCHEDULE("echo", "[r]", a);
	for (i = 0; i < 4; i++) {
		OK(evc_remote_fetch(b[i], T_LIMIT, &v));
		OK(evc_unpack(&v, "B", &got, &n));
		IS(n, LARGE);
		OK(memcmp(got, bytes, LARGE));
		evc_remote_free(b[i]);
	}
	evc_remote_free(a);
	free(bytes);
	OK(join());
}
END_TEST

/* ---- inputs that fail ---- */

static int
times(const char *text, const char *part)
{
	int n = 0;

	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		n++;
	return n;
}

START_TEST(a_failed_input_gives_its_own_error)
{
	evc_remote *gate, *code, *a, *b, *c, *d;
	evc_reason e;

	begin(_i, 2);
	gate = SCHEDULE("hold", "[s]", "g");
	/* Fails as soon as the gate opens, which gives 1. */
	code = SCHEDULE("add", "[ri]", gate, 199);
	a = SCHEDULE("fail", "[rs]", code, "boom");
	b = SCHEDULE("echo", "[r]", a);
	c = SCHEDULE("echo", "[[r]]", b);
	d = SCHEDULE("add", "[rr]", c, a);
	IS(info_of(b).state, EVC_REMOTE_WAITING);
	IS(info_of(d).state, EVC_REMOTE_WAITING);
	let_go("g");
	IS(code_of(a), 200);
	ck_assert_uint_eq(info_of(a).kind, EVC_FAILED_FUNCTION);
	IS(code_of(b), 200);
	IS(code_of(c), 200);
	IS(code_of(d), 200);
	ck_assert_uint_eq(info_of(b).kind, EVC_FAILED_REMOTE);
	ck_assert_uint_eq(info_of(c).kind, EVC_FAILED_REMOTE);
	ck_assert_uint_eq(info_of(d).kind, EVC_FAILED_REMOTE);
	/* It is said, and not wrapped again and again. */
	IS(times(info_of(c).text, "boom"), 1);
	ck_assert_str_eq(info_of(b).text, info_of(a).text);
	ck_assert_str_eq(info_of(c).text, info_of(a).text);
	ck_assert_str_eq(info_of(d).text, info_of(a).text);
	ck_assert_uint_eq(info_of(d).attempts, 0);
	IS(join(), 200);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	ck_assert_str_eq(e.func, "fail");
	ck_assert_str_eq(e.text, "boom");
	OK(join());
	evc_remote_free(gate);
	evc_remote_free(code);
	evc_remote_free(b);
	evc_remote_free(c);
	evc_remote_free(d);
	/* One that has failed long ago: the same, and an error of this one. */
	b = SCHEDULE("echo", "[r]", a);
	IS(code_of(b), 200);
	ck_assert_uint_eq(info_of(b).kind, EVC_FAILED_REMOTE);
	ck_assert_str_eq(info_of(b).text, info_of(a).text);
	IS(join(), 200);
	OK(join());
	evc_remote_free(a);
	evc_remote_free(b);
}
END_TEST

START_TEST(a_cancelled_input_cancels)
{
	evc_remote *busy[2], *a, *b, *c;
	int i;

	begin(_i, 2);
	for (i = 0; i < 2; i++)
		busy[i] = SCHEDULE("hold", "[s]", "g");
	UNTIL(are_in("g", 2));
	a = SCHEDULE("add", "[ii]", 1, 2);
	b = SCHEDULE("add", "[ri]", a, 3);
	c = SCHEDULE("add", "[ri]", b, 3);
	OK(evc_remote_cancel(a));
	IS(code_of(a), EVC_CANCELLED);
	IS(code_of(b), EVC_CANCELLED);
	IS(code_of(c), EVC_CANCELLED);
	ck_assert_uint_eq(info_of(a).kind, EVC_FAILED_CANCEL);
	ck_assert_uint_eq(info_of(b).kind, EVC_FAILED_CANCEL);
	ck_assert_uint_eq(info_of(c).kind, EVC_FAILED_CANCEL);
	evc_remote_free(b);
	/* A cancelled one among the arguments, later. */
	b = SCHEDULE("add", "[ri]", a, 3);
	IS(code_of(b), EVC_CANCELLED);
	ck_assert_uint_eq(info_of(b).kind, EVC_FAILED_CANCEL);
	evc_remote_free(b);
	/* What waits is cancelled alone; its input goes on. */
	b = SCHEDULE("add", "[ri]", busy[0], 3);
	OK(evc_remote_cancel(b));
	IS(code_of(b), EVC_CANCELLED);
	let_go("g");
	OK(join());
	for (i = 0; i < 2; i++)
		IS(take_number(busy[i]), 1);
	evc_remote_free(a);
	evc_remote_free(b);
	evc_remote_free(c);
}
END_TEST

START_TEST(of_another_cluster_or_nobody)
{
	evc_cluster *other = NULL;
	evc_remote *a = NULL, *r = NULL;
	evc_value v, got;

	begin(_i, 2);
	OK(open_another(address_of_another(), NULL, &other));
	OK(evc_schedule_pack(other, "add", NULL, &a, "[ii]", 1, 2));
	v = PACKED("[ri]", a, 1);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "add", &v, NULL, NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch(on.cl, &v, T_LIMIT, &got));
	OK(evc_schedule(other, "add", &v, NULL, NULL, &r));
	IS(take_number(r), 4);
	r = NULL;
	evc_remote_free(a);
	/* A value keeps nothing alive. */
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(other, "add", &v, NULL, NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_fetch(other, &v, T_LIMIT, &got));
	ck_assert_ptr_null(r);
	evc_value_free(&v);
	OK(evc_cluster_join(other, T_LIMIT));
	evc_cluster_close(other);
}
END_TEST

/* In a queue that is full of them: who waits takes room, and lets it go. */
START_TEST(inputs_in_a_narrow_queue)
{
	evc_cluster_config config = { .max_queued = 2 };
	evc_remote *r, *next;
	int i;

	begin_with(_i, 2, &config);
	r = SCHEDULE("add", "[ii]", 0, 0);
	for (i = 0; i < 100; i++) {
		next = SCHEDULE("add", "[ri]", r, 1);
		evc_remote_free(r);
		r = next;
	}
	IS(take_number(r), 100);
	OK(join());
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "deep", .fn = fn_deep },
	{ .name = "thousand", .fn = fn_thousand },
};

CONFORMANCE_MAIN("remotes as inputs", functions, ROW(results_travel_and_stay),
		 ROW(no_result_is_nil), ROW(a_chain_and_a_tree), ROW(they_stand_at_any_depth),
		 ROW(a_result_that_makes_it_too_deep), ROW(large_results_travel),
		 ROW(a_failed_input_gives_its_own_error),
		 ROW(a_cancelled_input_cancels),
		 ROW(of_another_cluster_or_nobody),
		 ROW(inputs_in_a_narrow_queue))
