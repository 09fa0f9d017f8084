/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Schedule, join, done and fetch when nothing fails: rows R01, R03, R05, R11,
 * R12, and what belongs to them.
 */
#include "functions.h"

START_TEST(R01_testClusterCoordinatorOnlyInitOnce)
{
	evc_cluster_config config = { .name = "train" };
	evc_cluster *again = NULL, *other = NULL, *third = NULL;

	begin_with(_i, 2, &config);
	OK(open_another(address(), &config, &again));
	ck_assert_ptr_eq(again, on.cl);
	/* Without a name it is one of its own; the same name elsewhere is a
	   mistake. */
	OK(open_another(address(), NULL, &other));
	ck_assert_ptr_ne(other, on.cl);
	evc_cluster_close(other);
	REFUSED(EVC_ALREADY_EXISTS,
		open_another(address_elsewhere(), &config, &third));
	/* As often as it was opened it has to be closed. */
	evc_cluster_close(again);
	IS(take_number(SCHEDULE("add", "[ii]", 2, 3)), 5);
	OK(join());
}
END_TEST

START_TEST(R03_testFetchingRemoteValueStructure)
{
	evc_remote *r[5];
	evc_value v, got;
	int64_t n[5];
	int i;

	begin(_i, 3);
	for (i = 0; i < 5; i++)
		r[i] = SCHEDULE("add", "[ii]", 4, 3);
	v = PACKED("[rrrrr]", r[0], r[1], r[2], r[3], r[4]);
	OK(evc_fetch(on.cl, &v, T_LIMIT, &got));
	OK(evc_unpack(&got, "[IIIII]", &n[0], &n[1], &n[2], &n[3], &n[4]));
	for (i = 0; i < 5; i++)
		IS(n[i], 7);
	evc_value_free(&v);
	evc_value_free(&got);
	/* One alone, and one twice. */
	v = PACKED("r", r[1]);
	OK(evc_fetch(on.cl, &v, T_LIMIT, &got));
	OK(evc_unpack(&got, "I", &n[0]));
	IS(n[0], 7);
	evc_value_free(&v);
	evc_value_free(&got);
	/* The structure stays, and so does what is no remote. */
	v = PACKED("{a:r b:[s{c:r d:n} d] e:r}", r[0], "text", r[1], 0.5, r[0]);
	OK(evc_fetch(on.cl, &v, T_LIMIT, &got));
	{
		char text[8];
		double half;

		OK(evc_unpack(&got, "{a:I b:[s{c:I d:n} d] e:I}", &n[0], text,
			      sizeof(text), &n[1], &half, &n[2]));
		IS(n[0] + n[1] + n[2], 21);
		ck_assert_str_eq(text, "text");
		ck_assert(half == 0.5);
	}
	evc_value_free(&v);
	evc_value_free(&got);
	/* A plain value is returned as it is. */
	v = PACKED("[iis]", 1, 2, "three");
	OK(evc_fetch(on.cl, &v, T_LIMIT, &got));
	IS(v.size, got.size);
	OK(memcmp(v.data, got.data, v.size));
	evc_value_free(&v);
	evc_value_free(&got);
	OK(evc_fetch(on.cl, &v, T_LIMIT, &got));
	ck_assert_uint_eq(evc_value_type(&got), EVC_VALUE_NIL);
	evc_value_free(&got);
	for (i = 0; i < 5; i++)
		evc_remote_free(r[i]);
	OK(join());
}
END_TEST

START_TEST(R05_testAsyncScheduleAndJoin)
{
	int i;

	begin(_i, 3);
	OK(join());
	ck_assert(all_done());
	ck_assert(variable("v") == 0);
	for (i = 0; i < 5; i++)
		DO("count", "[sd]", "v", 2.0);
	OK(join());
	ck_assert(variable("v") == 10);
	for (i = 0; i < 5; i++)
		DO("count", "[sd]", "v", 2.0);
	OK(join());
	OK(join());
	OK(join());
	ck_assert(variable("v") == 20);
	ck_assert(all_done());
}
END_TEST

/* There it is a value error.  Here it was a wish: the result travels. */
START_TEST(R11_testDisallowRemoteValueAsInput)
{
	evc_remote *a, *b;

	begin(_i, 3);
	a = SCHEDULE("add", "[ii]", 1, 2);
	b = SCHEDULE("add", "[ri]", a, 10);
	IS(take_number(b), 13);
	IS(take_number(a), 3);
	OK(join());
}
END_TEST

static evc_status
add_to(evc_exec *x, void *arg)
{
	evc_exec_info i;

	OK(evc_exec_get(x, &i));
	atomic_fetch_add((atomic_int *)arg,
			 strcmp(i.function, "call") == 0 ? 1 : 1000);
	return evc_exec_return(x, "v", evc_exec_args(x));
}

/* A function is a name that the workers know; a C function is one only where
   they share the program's memory. */
START_TEST(R12_testPythonFunctionNotAllowedToSchedule)
{
	static atomic_int calls;
	evc_remote *r = NULL;
	evc_value v, args;
	int a;

	begin(_i, 2);
	IS(take_number(SCHEDULE("add", "[ii]", 2, 3)), 5);
	/* Where nodes come and go one that has it may come: tests/redis/workers. */
	if (!can(FINDS)) {
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_schedule(on.cl, "nonesuch", NULL, NULL, NULL, &r));
		HAS(evc_last_error(), "nonesuch");
	}
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, NULL, NULL, NULL, NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "", NULL, NULL, NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule_call(on.cl, NULL, NULL, NULL, NULL, NULL, &r));
	ck_assert_ptr_null(r);
	args = PACKED("[i]", 42);
	if (can(CALLS)) {
		OK(evc_schedule_call(on.cl, add_to, &calls, &args, NULL, NULL,
				     &r));
		OK(evc_remote_fetch(r, T_LIMIT, &v));
		OK(evc_unpack(&v, "[i]", &a));
		IS(a, 42);
		IS(calls, 1);
		ck_assert_str_eq(info_of(r).function, "call");
		evc_remote_free(r);
	} else {
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_schedule_call(on.cl, add_to, &calls, &args, NULL,
					  NULL, &r));
		ck_assert_ptr_null(r);
	}
	evc_value_free(&args);
	OK(join());
}
END_TEST

START_TEST(R12_what_is_wrong_is_refused)
{
	evc_schedule_opts o = { 0 };
	evc_value v = PACKED("[i]", 1), map = PACKED("{a:i}", 1);
	evc_value bad = { "\x91", 1 }; /* an array of one, without it */
	evc_remote *r = NULL;

	begin(_i, 2);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "echo", &map, NULL, NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "echo", NULL, &v, NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "echo", &bad, NULL, NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(NULL, "echo", &v, NULL, NULL, &r));
	o.priority = 8;
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "echo", &v, NULL, &o, &r));
	o = (evc_schedule_opts){ .worker = "worker 99" };
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "echo", &v, NULL, &o, &r));
	o = (evc_schedule_opts){ .flags = 1u << 31 };
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "echo", &v, NULL, &o, &r));
	o = (evc_schedule_opts){ .deadline = NAN };
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "echo", &v, NULL, &o, &r));
	ck_assert_ptr_null(r);
	evc_value_free(&v);
	evc_value_free(&map);
	OK(join());
	ck_assert_uint_eq(numbers().n_scheduled, 0);
}
END_TEST

/* ---- by name, on the loop, by many ---- */

static evc_status
fn_named(evc_exec *x, void *arg)
{
	const char *s;
	size_t n;
	int a = -1, b = -1;

	(void)arg;
	if (evc_exec_unpack(x, "[S...]", &s, &n) < 0 ||
	    evc_exec_unpack_named(x, "{a:i b?:i}", &a, &b) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_return(x, "[Sii]", s, n, a, b);
}

START_TEST(arguments_by_name)
{
	evc_value args, kwargs, v;
	evc_remote *r = NULL;
	char text[16];
	int a, b;

	begin(_i, 2);
	args = PACKED("[si]", "so", 9);
	kwargs = PACKED("{c:n a:i}", 5);
	OK(evc_schedule(on.cl, "named", &args, &kwargs, NULL, &r));
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "[sii]", text, sizeof(text), &a, &b));
	ck_assert_str_eq(text, "so");
	IS(a, 5);
	IS(b, -1);
	evc_remote_free(r);
	/* A missing one is an error of that function. */
	OK(evc_schedule(on.cl, "named", &args, NULL, NULL, &r));
	IS(code_of(r), EVC_INVALID_ARGUMENT);
	evc_remote_free(r);
	IS(join(), EVC_INVALID_ARGUMENT);
	evc_value_free(&args);
	evc_value_free(&kwargs);
}
END_TEST

struct told {
	int calls;
	evc_status st;
	int64_t a, b;
	evc_status refused[2];
	evc_remote *r;
};

static void
fetched(evc_cluster *cl, evc_status result, const evc_value *value, void *arg)
{
	struct told *t = arg;

	(void)cl;
	t->calls++;
	t->st = result;
	if (result == 0)
		t->st = evc_unpack(value, "[I[I]]", &t->a, &t->b);
}

static void
joined(evc_cluster *cl, evc_status result, void *arg)
{
	struct told *t = arg;
	t->calls++;
	t->st = result;
	/* This is the loop's thread: nothing that would wait. */
	t->refused[0] = evc_cluster_join(cl, 1);
	/* What has its outcome may be looked at. */
	t->refused[1] = evc_remote_fetch(t->r, 1, NULL);
}

START_TEST(fetch_and_join_on_the_loop)
{
	struct told f = { .st = 77 }, j = { .st = 77 };
	evc_remote *a, *b;
	evc_value v, got;

	begin_on_loop(_i, 2, NULL);
	a = SCHEDULE("add", "[ii]", 1, 2);
	b = SCHEDULE("add", "[ri]", a, 2);
	v = PACKED("[r[r]]", a, b);
	OK(evc_fetch_start(on.cl, &v, fetched, &f));
	evc_value_free(&v);
	/* The fetch keeps them. */
	evc_remote_free(b);
	j.r = a;
	OK(evc_cluster_join_start(on.cl, joined, &j));
	IS(f.calls + j.calls, 0);
	TURN_UNTIL(f.calls > 0 && j.calls > 0);
	OK(f.st);
	IS(f.a, 3);
	IS(f.b, 5);
	OK(j.st);
	IS(j.refused[0], -EVC_FAILED_PRECONDITION);
	IS(j.refused[1], 0);
	/* With nothing to wait for it is called all the same, and later. */
	OK(evc_cluster_join_start(on.cl, joined, &j));
	IS(j.calls, 1);
	TURN_UNTIL(j.calls == 2);
	IS(f.calls, 1);
	REFUSED(EVC_FAILED_PRECONDITION, evc_cluster_join(on.cl, 1));
	ck_assert(all_done());
	b = SCHEDULE("hold", "[s]", "g");
	REFUSED(EVC_FAILED_PRECONDITION, evc_remote_fetch(b, 1, NULL));
	v = PACKED("[r]", b);
	REFUSED(EVC_FAILED_PRECONDITION, evc_fetch(on.cl, &v, 1, &got));
	evc_value_free(&v);
	let_go("g");
	TURN_UNTIL(info_of(b).state == EVC_REMOTE_DONE);
	evc_remote_free(b);
	evc_remote_free(a);
}
END_TEST

#define CALLERS 8
#define EACH 50

static void *
call_often(void *arg)
{
	atomic_int *wrong = arg;
	evc_remote *r[EACH];
	evc_value v;
	int64_t n;
	int i;

	for (i = 0; i < EACH; i++)
		if (evc_schedule_pack(on.cl, "add", NULL, &r[i], "[ii]", i,
				      1) != 0) {
			atomic_fetch_add(wrong, 1);
			return NULL;
		}
	for (i = 0; i < EACH; i++) {
		if (evc_remote_fetch(r[i], T_LIMIT, &v) != 0 ||
		    evc_unpack(&v, "I", &n) != 0 || n != i + 1)
			atomic_fetch_add(wrong, 1);
		evc_remote_free(r[i]);
	}
	return NULL;
}

START_TEST(many_threads_schedule_and_fetch)
{
	atomic_int wrong = 0;
	struct t_crowd k;

	begin(_i, 3);
	crowd_begin(&k, CALLERS, call_often, &wrong, 0);
	crowd_end(&k);
	IS(wrong, 0);
	OK(join());
	ck_assert_uint_eq(numbers().n_done, CALLERS * EACH);
}
END_TEST

/* What it stands for goes on, and is counted, without anybody who would know
   its outcome. */
START_TEST(remotes_are_dropped_before_their_results)
{
	int i;

	begin(_i, 3);
	for (i = 0; i < 200; i++)
		evc_remote_free(SCHEDULE("count", "[sd]", "dropped", 1.0));
	for (i = 0; i < 200; i++)
		DO("count", "[sd]", "dropped", 1.0);
	OK(join());
	ck_assert(variable("dropped") == 400);
	ck_assert_uint_eq(numbers().n_done, 400);
}
END_TEST

/* There and back, with every byte in its place; and as another one's input. */
static void
goes_and_comes(size_t n)
{
	unsigned char *p = malloc(n + 1);
	const unsigned char *got;
	evc_remote *first, *second;
	evc_value v;
	size_t i, n_got;

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 2654435761u >> 11);
	first = SCHEDULE("echo", "[B]", p, n);
	second = SCHEDULE("echo", "[r]", first);
	OK(evc_remote_fetch(first, 3 * T_LIMIT, &v));
	OK(evc_unpack(&v, "B", &got, &n_got));
	ck_assert_uint_eq(n_got, n);
	OK(memcmp(got, p, n));
	evc_remote_free(first);
	OK(evc_remote_fetch(second, 3 * T_LIMIT, &v));
	OK(evc_unpack(&v, "B", &got, &n_got));
	ck_assert_uint_eq(n_got, n);
	OK(memcmp(got, p, n));
	evc_remote_free(second);
	free(p);
}

START_TEST(values_of_any_size)
{
	static const size_t sizes[] = {
		0, 1, 63, 64 << 10, 1 << 20, 4 << 20,
	};
	const evc_cluster_config config = { .max_frame = 65 << 20 };
	unsigned i;

	begin_with(_i, 2, &config);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		goes_and_comes(sizes[i]);
	/* A server has to hold it several times. */
	goes_and_comes((size_t)t_many(can(FINDS) ? 16 << 20 : 64 << 20));
	OK(join());
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "named", .fn = fn_named },
};

CONFORMANCE_MAIN("results", functions,
		 ROW_TIGHT(R01_testClusterCoordinatorOnlyInitOnce),
		 ROW_TIGHT(R03_testFetchingRemoteValueStructure),
		 ROW_TIGHT(R05_testAsyncScheduleAndJoin),
		 ROW_TIGHT(R11_testDisallowRemoteValueAsInput),
		 ROW_TIGHT(R12_testPythonFunctionNotAllowedToSchedule),
		 ROW_TIGHT(R12_what_is_wrong_is_refused),
		 ROW_TIGHT(arguments_by_name), ROW(fetch_and_join_on_the_loop),
		 ROW_TIGHT(many_threads_schedule_and_fetch),
		 ROW_TIGHT(remotes_are_dropped_before_their_results),
		 ROW(values_of_any_size))
