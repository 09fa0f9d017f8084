/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is built of schedule, per-worker values and variables together: rows R02,
 * R07, R10, R13, R14, X01, and S02 to S14, which there are about a strategy.
 */
#include "kept.h"

/* [] -> 2, (3, 4), [5], {v: 1} */
static evc_status
fn_nested(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_return(x, "[i[ii][i]{v:i}]", 2, 3, 4, 5, 1);
}

START_TEST(R02_testFnReturnNestedValues)
{
	int n[5], round;
	evc_value v, what;
	evc_remote *r;

	begin(_i, 3);
	r = SCHEDULE("nested", "[]");
	what = PACKED("r", r);
	for (round = 0; round < 2; round++) {
		OK(round == 0 ? evc_remote_fetch(r, T_LIMIT, &v) :
				evc_fetch(on.cl, &what, T_LIMIT, &v));
		OK(evc_unpack(&v, "[i[ii][i]{v:i}]", &n[0], &n[1], &n[2],
			      &n[3], &n[4]));
		IS(n[0] == 2 && n[1] == 3 && n[2] == 4 && n[3] == 5, 1);
		IS(n[4], 1);
		if (round == 1)
			evc_value_free(&v);
	}
	evc_value_free(&what);
	evc_remote_free(r);
	OK(join());
}
END_TEST

/* ---- datasets ---- */

static evc_per_worker *
made_by(const char *function, const evc_value *args, const evc_dataset_opts *o)
{
	evc_per_worker *d = NULL;

	ck_assert_msg(evc_per_worker_dataset(on.cl, "data", function, args, o,
					     &d) == 0,
		      "%s", evc_last_error());
	return d;
}

static evc_per_worker *
iterator(evc_per_worker *d)
{
	evc_per_worker *it = NULL;

	OK(evc_per_worker_iterator(d, &it));
	evc_per_worker_free(d);
	return it;
}

/* [] an endless range whose making adds to a variable */
static evc_status
fn_makes_variables(evc_exec *x, void *arg)
{
	struct range *r = calloc(1, sizeof(*r));

	(void)arg;
	if (r == NULL || evc_exec_variable_add(x, "made", 1, NULL) < 0 ||
	    evc_exec_keep(x, &range_ops, r) < 0)
		return EVC_INTERNAL;
	*r = (struct range){ 3, 1, true };
	atomic_fetch_add(&live_ranges, 1);
	return 0;
}

/* There a variable belongs to who makes it, so it is refused.  Here all of them
   are the cluster's. */
START_TEST(R07_testInputFunctionCreateVariables)
{
	evc_per_worker *it;

	begin(_i, 3);
	it = iterator(made_by("makes variables", NULL, NULL));
	IS(take_number(SCHEDULE("next", "[w]", it)), 3);
	OK(join());
	ck_assert(variable("made") >= 1);
	ck_assert(variable("made") <= on.n_workers);
	evc_per_worker_free(it);
}
END_TEST

/* What the dataset is made of is not to be had on the workers. */
static evc_status
fn_of_a_file(evc_exec *x, void *arg)
{
	char path[256];

	(void)arg;
	if (evc_exec_unpack(x, "[s]", path, sizeof(path)) < 0)
		return EVC_INVALID_ARGUMENT;
	if (access(path, R_OK) != 0)
		return evc_exec_fail(x, EVC_NOT_FOUND, "cannot read %s", path);
	return evc_exec_return(x, "i", 1);
}

START_TEST(R13_testDatasetPartiallyCreatedOnCoordinator)
{
	evc_value args = PACKED("[s]", "/nonexistent/of the coordinator");
	evc_per_worker *it;
	evc_remote *r;

	begin(_i, 3);
	it = iterator(made_by("of a file", &args, NULL));
	r = SCHEDULE("next", "[w]", it);
	IS(join(), EVC_NOT_FOUND);
	IS(code_of(r), EVC_NOT_FOUND);
	ck_assert_uint_eq(info_of(r).kind, EVC_FAILED_INPUT);
	HAS(info_of(r).text, "cannot read /nonexistent");
	OK(join());
	evc_remote_free(r);
	evc_per_worker_free(it);
	evc_value_free(&args);
}
END_TEST

/* 1 to 10 in batches of 4. */
static evc_per_worker *
batches(void)
{
	evc_value v = PACKED("[[iiii][iiii][ii]]", 1, 2, 3, 4, 5, 6, 7, 8, 9,
			     10);
	evc_per_worker *d = NULL;

	OK(evc_per_worker_dataset_of(on.cl, "batches", &v, NULL, &d));
	evc_value_free(&v);
	return d;
}

/* [iterator] -> the next element, whatever it is */
static evc_status
fn_next_value(evc_exec *x, void *arg)
{
	evc_local *it;
	evc_status st;
	evc_value v;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &it) < 0)
		return EVC_INVALID_ARGUMENT;
	st = evc_exec_next(x, it, &v);
	if (st < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return st > 0 ? st : evc_exec_return(x, "v", &v);
}

START_TEST(R14_testPassDatasetToCreatePerWorkerDataset)
{
	evc_per_worker *it;
	int n[4], i;
	evc_remote *r;
	evc_value v;

	begin(_i, 3);
	it = iterator(batches());
	r = SCHEDULE("next value", "[w]", it);
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "[iiii]", &n[0], &n[1], &n[2], &n[3]));
	for (i = 0; i < 4; i++)
		IS(n[i], i + 1);
	evc_remote_free(r);
	evc_per_worker_free(it);
	OK(join());
}
END_TEST

/* [n] each n-th number below 10, from this worker's own on */
static evc_status
fn_shard(evc_exec *x, void *arg)
{
	evc_exec_info i;
	int n;

	(void)arg;
	if (evc_exec_get(x, &i) < 0 || evc_exec_unpack(x, "[i]", &n) < 0 ||
	    n != 5 || i.worker_index >= 5)
		return EVC_INVALID_ARGUMENT;
	return evc_exec_return(x, "[ii]", i.worker_index, i.worker_index + n);
}

/* [shard] -> its sum */
static evc_status
fn_sum(evc_exec *x, void *arg)
{
	evc_local *l;
	int a, b;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &l) < 0 ||
	    evc_unpack(evc_local_value(l), "[ii]", &a, &b) < 0)
		return EVC_INVALID_ARGUMENT;
	return evc_exec_return(x, "i", a + b);
}

START_TEST(X01_testWorkerIndexDatasetFn)
{
	evc_value n = PACKED("[i]", 5), args;
	evc_per_worker *p = NULL;
	unsigned seen = 0, i, n_all = 5;
	evc_remote *r[5];

	begin(_i, 5);
	OK(evc_per_worker_value(on.cl, "shard", "shard", &n, &p));
	args = PACKED("[w]", p);
	OK(evc_schedule_all(on.cl, "sum", &args, NULL, NULL, r, &n_all));
	ck_assert_uint_eq(n_all, 5);
	/* 5, 7, 9, 11 and 13, each once. */
	for (i = 0; i < 5; i++)
		seen |= 1u << take_number(r[i]);
	ck_assert_uint_eq(seen, 1u << 5 | 1u << 7 | 1u << 9 | 1u << 11 |
					1u << 13);
	OK(join());
	evc_value_free(&args);
	evc_value_free(&n);
	evc_per_worker_free(p);
}
END_TEST

/* ---- values of each worker ---- */

/* What all workers have of p together, by one function on each. */
static int64_t
sum_of_all(evc_per_worker *p)
{
	evc_value args = PACKED("[wi]", p, 0);
	evc_schedule_opts o = { 0 };
	evc_remote *r = NULL;
	int64_t sum = 0;
	char name[48];
	unsigned i;

	for (i = 0; i < on.n_workers; i++) {
		snprintf(name, sizeof(name), "%s", worker(i).name);
		o.worker = name;
		OK(evc_schedule(on.cl, "bump", &args, NULL, &o, &r));
		sum += number_of(r);
		ck_assert_str_eq(info_of(r).worker, name);
		evc_remote_free(r);
	}
	evc_value_free(&args);
	return sum;
}

START_TEST(R10_testPerWorkerVariableCreation)
{
	evc_per_worker *p = NULL;
	int i;

	begin(_i, 3);
	OK(evc_per_worker_value(on.cl, "counter", "counter", NULL, &p));
	for (i = 0; i < 10; i++) {
		DO("bump", "[wi]", p, 1);
		OK(join());
		IS(sum_of_all(p), i + 1);
	}
	for (i = 0; i < 10; i++)
		DO("bump", "[wi]", p, 1);
	OK(join());
	IS(sum_of_all(p), 20);
	evc_per_worker_free(p);
}
END_TEST

/* ---- variables ---- */

/* [] adds 0.1 to one and takes 0.2 from another; -> their quotient */
static evc_status
fn_two_variables(evc_exec *x, void *arg)
{
	double a, b;

	(void)arg;
	if (evc_exec_variable_add(x, "v1", 0.1, &a) < 0 ||
	    evc_exec_variable_add(x, "v2", -0.2, &b) < 0 || b == 0)
		return EVC_INTERNAL;
	return evc_exec_return(x, "d", a / b);
}

static void
set(const char *name, double to)
{
	evc_value v = PACKED("d", to);

	OK(evc_variable_set(on.cl, name, &v));
	evc_value_free(&v);
}

START_TEST(S02_testBasicVariableAssignment)
{
	evc_value v;
	evc_remote *r;
	double d;

	begin(_i, 1);
	set("v1", 0);
	set("v2", 1);
	r = SCHEDULE("two variables", "[]");
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "d", &d));
	ck_assert_double_eq_tol(d, 0.125, 1e-6);
	ck_assert_double_eq_tol(variable("v1"), 0.1, 1e-6);
	ck_assert_double_eq_tol(variable("v2"), 0.8, 1e-6);
	evc_remote_free(r);
	OK(join());
}
END_TEST

/* [number, name or ""]: adds it to that; -> [number + v, number - v] */
static evc_status
fn_run(evc_exec *x, void *arg)
{
	char name[64];
	double n, v;

	(void)arg;
	if (evc_exec_unpack(x, "[ds]", &n, name, sizeof(name)) < 0 ||
	    evc_exec_variable_add(x, "v", 0, &v) < 0 ||
	    (name[0] != '\0' && evc_exec_variable_add(x, name, n, NULL) < 0))
		return EVC_INTERNAL;
	return evc_exec_return(x, "[dd]", n + v, n - v);
}

/* Run on all workers, and the sum of what they say; added is done by one. */
static void
run_and_reduce(const char *added)
{
	evc_value args = PACKED("[ds]", 3.0, ""), v;
	unsigned n = on.n_workers, i;
	double sum[2] = { 0, 0 }, a, b;
	evc_remote *r[8];

	OK(evc_schedule_all(on.cl, "run", &args, NULL, NULL, r, &n));
	ck_assert_uint_eq(n, on.n_workers);
	for (i = 0; i < n; i++) {
		OK(evc_remote_fetch(r[i], T_LIMIT, &v));
		OK(evc_unpack(&v, "[dd]", &a, &b));
		sum[0] += a;
		sum[1] += b;
		evc_remote_free(r[i]);
	}
	ck_assert(sum[0] == 4.0 * n && sum[1] == 2.0 * n);
	if (added[0] != '\0')
		DO("run", "[ds]", 3.0, added);
	OK(join());
	evc_value_free(&args);
}

START_TEST(S03_testRunAndReduce)
{
	begin(_i, 2);
	set("v", 1);
	run_and_reduce("");
	run_and_reduce("");
}
END_TEST

START_TEST(S04_testRunAndReduceWithAssignAdd)
{
	begin(_i, 2);
	set("v", 1);
	run_and_reduce("v1");
	run_and_reduce("v1");
	ck_assert(variable("v1") == 6);
}
END_TEST

/* [] adds this worker's number and 1 to a variable */
static evc_status
fn_number(evc_exec *x, void *arg)
{
	evc_exec_info i;

	(void)arg;
	if (evc_exec_get(x, &i) < 0 ||
	    evc_exec_variable_add(x, "v", i.worker_index + 1.0, NULL) < 0)
		return EVC_INTERNAL;
	return 0;
}

START_TEST(S05_testVariableAggregation)
{
	unsigned n = 0;

	begin(_i, 4);
	OK(evc_schedule_all(on.cl, "number", NULL, NULL, NULL, NULL, &n));
	OK(join());
	ck_assert(variable("v") == 1 + 2 + 3 + 4);
}
END_TEST

/* ---- datasets and variables together ---- */

START_TEST(S10_testAsyncScheduleWithDistributedDataset)
{
	evc_dataset_opts o = { .repeat = UINT64_MAX };
	evc_value two = PACKED("[i]", 2);
	evc_per_worker *d = NULL, *it;
	int i;

	begin(_i, 3);
	OK(evc_per_worker_dataset_of(on.cl, "twos", &two, &o, &d));
	it = iterator(d);
	OK(join());
	ck_assert(variable("sum") == 0);
	for (i = 0; i < 5; i++)
		DO("next", "[w]", it);
	OK(join());
	ck_assert(variable("sum") == 10);
	for (i = 0; i < 5; i++)
		DO("next", "[w]", it);
	OK(join());
	OK(join());
	OK(join());
	ck_assert(all_done());
	ck_assert(variable("sum") == 20);
	evc_per_worker_free(it);
	evc_value_free(&two);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "nested", .fn = fn_nested },
	{ .name = "makes variables", .fn = fn_makes_variables },
	{ .name = "of a file", .fn = fn_of_a_file },
	{ .name = "next", .fn = fn_next },
	{ .name = "next value", .fn = fn_next_value },
	{ .name = "shard", .fn = fn_shard },
	{ .name = "sum", .fn = fn_sum },
	{ .name = "counter", .fn = fn_counter },
	{ .name = "bump", .fn = fn_bump },
	{ .name = "two variables", .fn = fn_two_variables },
	{ .name = "run", .fn = fn_run },
	{ .name = "number", .fn = fn_number },
};

CONFORMANCE_MAIN("strategy", functions,
		 ROW_TIGHT(R02_testFnReturnNestedValues),
		 ROW_TIGHT(R07_testInputFunctionCreateVariables),
		 ROW_TIGHT(R10_testPerWorkerVariableCreation),
		 ROW_TIGHT(R13_testDatasetPartiallyCreatedOnCoordinator),
		 ROW_TIGHT(R14_testPassDatasetToCreatePerWorkerDataset),
		 ROW(X01_testWorkerIndexDatasetFn),
		 ROW(S02_testBasicVariableAssignment),
		 ROW(S03_testRunAndReduce),
		 ROW(S04_testRunAndReduceWithAssignAdd),
		 ROW(S05_testVariableAggregation),
		 ROW(S10_testAsyncScheduleWithDistributedDataset))
