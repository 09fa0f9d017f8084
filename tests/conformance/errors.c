/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors: rows E01 to E09, each also with a queue of two functions and five
 * workers (E10).
 */
#include "functions.h"

static void
good(int n)
{
	int i;

	for (i = 0; i < n; i++)
		DO("count", "[sd]", "good", 1.0);
}

static void
bad(void)
{
	DO("fail", "[is]", EVC_DATA_LOSS, "division by zero");
}

START_TEST(E01_testJoinRaiseError)
{
	evc_reason e;

	begin(_i, 3);
	good(3);
	bad();
	IS(join(), EVC_DATA_LOSS);
	OK(evc_cluster_error_get(on.cl, 0, &e));
	IS(e.code, EVC_DATA_LOSS);
	ck_assert_str_eq(e.text, "division by zero");
	ck_assert_str_eq(e.func, "fail");
	ck_assert_int_eq(strncmp(e.who, "worker ", 7), 0);
	IS(evc_cluster_error_get(on.cl, 1, &e), -EVC_NOT_FOUND);
	/* It is said once, and is no error of the coordinator's. */
	OK(join());
	ck_assert(!evc_should_stop(on.c));
	ck_assert(!evc_should_stop(evc_cluster_scope(on.cl)));
}
END_TEST

START_TEST(E02_testScheduleRaiseError)
{
	evc_remote *r = NULL;
	evc_status st = 0;
	double until = t_now() + T_LIMIT;

	begin(_i, 3);
	good(3);
	bad();
	while (st == 0 && t_now() < until)
		st = evc_schedule_pack(on.cl, "count", NULL, NULL, "[sd]",
				       "good", 1.0);
	IS(st, EVC_DATA_LOSS);
	OK(evc_schedule_pack(on.cl, "add", NULL, &r, "[ii]", 1, 1));
	IS(take_number(r), 2);
	OK(join());
}
END_TEST

START_TEST(E03_testScheduleRaiseErrorWithMultipleFailure)
{
	evc_status st = 0;
	double until = t_now() + T_LIMIT;

	begin(_i, 3);
	good(3);
	while (st == 0 && t_now() < until)
		st = evc_schedule_pack(on.cl, "fail", NULL, NULL, "[is]",
				       EVC_DATA_LOSS, "again and again");
	IS(st, EVC_DATA_LOSS);
	/* All of them were cleared together, and what raised was not
	   accepted. */
	OK(join());
	OK(join());
}
END_TEST

START_TEST(E04_testErrorWillbeCleared)
{
	int round;

	begin(_i, 3);
	for (round = 0; round < 3; round++) {
		good(3);
		bad();
		IS(join(), EVC_DATA_LOSS);
	}
	OK(join());
	ck_assert(all_done());
}
END_TEST

START_TEST(E05_testRemoteValueReturnError)
{
	evc_value v, got;
	evc_remote *r;

	begin(_i, 3);
	r = SCHEDULE("fail", "[is]", EVC_DATA_LOSS, "division by zero");
	IS(code_of(r), EVC_DATA_LOSS);
	ck_assert_uint_eq(info_of(r).kind, EVC_FAILED_FUNCTION);
	ck_assert_str_eq(info_of(r).text, "division by zero");
	ck_assert_str_eq(info_of(r).function, "fail");
	v = PACKED("[ir]", 1, r);
	IS(evc_fetch(on.cl, &v, T_LIMIT, &got), EVC_DATA_LOSS);
	evc_value_free(&v);
	/* A fetch takes nothing away from the join. */
	IS(join(), EVC_DATA_LOSS);
	OK(join());
	/* A failed remote keeps its own error. */
	IS(code_of(r), EVC_DATA_LOSS);
	evc_remote_free(r);
}
END_TEST

/* ---- inputs that could not be built ---- */

static evc_status
fn_broken(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_fail(x, EVC_NOT_FOUND, "no such shard");
}

static evc_status
fn_fine(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "i", 5);
}

static evc_status
fn_use(evc_exec *x, void *arg)
{
	evc_local *l;
	int n;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &l) < 0)
		return evc_exec_fail(x, EVC_INTERNAL, "%s", evc_last_error());
	if (evc_unpack(evc_local_value(l), "i", &n) < 0)
		return EVC_INTERNAL;
	return evc_exec_return(x, "i", n);
}

START_TEST(E06_testInputError)
{
	evc_per_worker *p = NULL;
	evc_remote_info i;
	evc_remote *r;
	evc_reason e;

	begin(_i, 3);
	OK(evc_per_worker_value(on.cl, "shards", "broken", NULL, &p));
	good(3);
	r = SCHEDULE("use", "[w]", p);
	IS(join(), EVC_NOT_FOUND);
	IS(code_of(r), EVC_NOT_FOUND);
	i = info_of(r);
	ck_assert_uint_eq(i.kind, EVC_FAILED_INPUT);
	HAS(i.text, "shards");
	HAS(i.text, "worker ");
	HAS(i.text, "no such shard");
	OK(evc_cluster_error_get(on.cl, 0, &e));
	ck_assert_str_eq(e.text, i.text);
	OK(join());
	evc_remote_free(r);
	evc_per_worker_free(p);
}
END_TEST

START_TEST(E07_testErroredInputNotUsed)
{
	evc_per_worker *p = NULL, *q = NULL;

	begin(_i, 3);
	OK(evc_per_worker_value(on.cl, "shards", "broken", NULL, &p));
	OK(evc_per_worker_value(on.cl, "fine", "fine", NULL, &q));
	IS(take_number(SCHEDULE("use", "[w]", q)), 5);
	IS(take_number(SCHEDULE("add", "[ii]", 1, 2)), 3);
	OK(join());
	evc_per_worker_free(p);
	evc_per_worker_free(q);
}
END_TEST

START_TEST(E08_testCancellation)
{
	evc_remote *r;

	begin(_i, 2);
	good(3);
	r = SCHEDULE("nap", "[d]", 1000.0);
	bad();
	IS(join(), EVC_DATA_LOSS);
	IS(code_of(r), EVC_CANCELLED);
	evc_remote_free(r);
	/* And once more when workers are trusted with many at a time. */
	good(400);
	r = SCHEDULE("nap", "[d]", 1000.0);
	bad();
	IS(join(), EVC_DATA_LOSS);
	IS(code_of(r), EVC_CANCELLED);
	good(3);
	OK(join());
	ck_assert_uint_eq(numbers().n_failed, 2);
	evc_remote_free(r);
}
END_TEST

/* And what had not begun, whether a worker has taken it already or not. */
START_TEST(E08_testCancellation_of_what_is_queued)
{
	enum { N = 200 };
	evc_remote *r[2], *queued[N];
	int i;

	begin(_i, 2);
	r[0] = SCHEDULE("insist", "[si]", "fails", EVC_DATA_LOSS);
	r[1] = SCHEDULE("hold", "[s]", "never");
	UNTIL(are_in("fails", 1) && are_in("never", 1));
	for (i = 0; i < N; i++)
		queued[i] = SCHEDULE("count", "[sd]", "begun", 1.0);
	let_go("fails");
	IS(join(), EVC_DATA_LOSS);
	for (i = 0; i < N; i++) {
		IS(code_of(queued[i]), EVC_CANCELLED);
		ck_assert_uint_eq(info_of(queued[i]).kind, EVC_FAILED_CANCEL);
		HAS(info_of(queued[i]).text, "reschedule");
		evc_remote_free(queued[i]);
	}
	ck_assert(variable("begun") == 0);
	IS(code_of(r[0]), EVC_DATA_LOSS);
	/* Asked to stop, it has obeyed. */
	IS(code_of(r[1]), EVC_CANCELLED);
	ck_assert_uint_eq(info_of(r[1]).kind, EVC_FAILED_CANCEL);
	ck_assert_uint_eq(numbers().n_cancelled, N + 1);
	ck_assert_uint_eq(numbers().n_failed, 1);
	evc_remote_free(r[0]);
	evc_remote_free(r[1]);
}
END_TEST

START_TEST(E09_testResourceCanStillbeUsedAfterCancellation)
{
	evc_per_worker *p = NULL;
	int round;

	begin(_i, 3);
	OK(evc_per_worker_value(on.cl, "fine", "fine", NULL, &p));
	for (round = 0; round < 3; round++) {
		IS(take_number(SCHEDULE("use", "[w]", p)), 5);
		bad();
		IS(join(), EVC_DATA_LOSS);
	}
	IS(take_number(SCHEDULE("use", "[w]", p)), 5);
	OK(join());
	/* It was built once on each. */
	ck_assert_uint_le(numbers().n_builds, on.n_workers);
	evc_per_worker_free(p);
}
END_TEST

/* Whatever a function returns is its outcome: no code is clean, and none is a
   refusal. */
static evc_status
fn_returns(evc_exec *x, void *arg)
{
	int code;

	(void)arg;
	return evc_exec_unpack(x, "[i]", &code) < 0 ? EVC_INTERNAL : code;
}

START_TEST(every_code_is_an_error)
{
	static const struct { int returned, is; } of[] = {
		{ EVC_CANCELLED, EVC_CANCELLED },
		{ EVC_OUT_OF_RANGE, EVC_OUT_OF_RANGE }, { 17, 17 },
		{ 255, 255 }, { -EVC_ABORTED, EVC_ABORTED },
		{ 256, EVC_UNKNOWN }, { -300, EVC_UNKNOWN },
		{ -1000, EVC_UNKNOWN },
	};
	evc_remote *r;
	size_t i;

	begin(_i, 2);
	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		r = SCHEDULE("returns", "[i]", of[i].returned);
		IS(code_of(r), of[i].is);
		ck_assert_uint_eq(info_of(r).kind, EVC_FAILED_FUNCTION);
		IS(join(), of[i].is);
		OK(join());
		evc_remote_free(r);
	}
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "broken", .fn = fn_broken },
	{ .name = "fine", .fn = fn_fine },
	{ .name = "use", .fn = fn_use },
	{ .name = "returns", .fn = fn_returns },
};

CONFORMANCE_MAIN("errors", functions, ROW_TIGHT(E01_testJoinRaiseError),
		 ROW_TIGHT(E02_testScheduleRaiseError),
		 ROW_TIGHT(E03_testScheduleRaiseErrorWithMultipleFailure),
		 ROW_TIGHT(E04_testErrorWillbeCleared),
		 ROW_TIGHT(E05_testRemoteValueReturnError),
		 ROW_TIGHT(E06_testInputError),
		 ROW_TIGHT(E07_testErroredInputNotUsed),
		 ROW_TIGHT(E08_testCancellation),
		 ROW(E08_testCancellation_of_what_is_queued),
		 ROW_TIGHT(E09_testResourceCanStillbeUsedAfterCancellation),
		 ROW(every_code_is_an_error))
