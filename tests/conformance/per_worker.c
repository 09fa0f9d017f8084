/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each worker has its own of: rows R04, R06, R08, R09, R15, R16, each also
 * with a queue of two functions and five workers (R17).
 */
#include "kept.h"

/* ---- what the rows share ---- */

static evc_per_worker *
range(int from, int n, bool endless, const evc_dataset_opts *o)
{
	evc_value args = PACKED("[iib]", from, n, endless);
	evc_per_worker *d = NULL;

	ck_assert_msg(evc_per_worker_dataset(on.cl, "range", "range", &args, o,
					     &d) == 0,
		      "%s", evc_last_error());
	evc_value_free(&args);
	return d;
}

/* Of a MessagePack array of small numbers, 'a' for 0. */
static evc_per_worker *
elements(const char *digits, const evc_dataset_opts *o)
{
	evc_per_worker *d = NULL;
	unsigned char bytes[16];
	evc_value v = { bytes, strlen(digits) + 1 };
	size_t i;

	ck_assert_uint_le(v.size, sizeof(bytes));
	bytes[0] = (unsigned char)(0x90 | (v.size - 1));
	for (i = 1; i < v.size; i++)
		bytes[i] = (unsigned char)(digits[i - 1] - 'a');
	OK(evc_value_check(&v));
	OK(evc_per_worker_dataset_of(on.cl, "elements", &v, o, &d));
	return d;
}

static evc_per_worker *
iterator(evc_per_worker *dataset)
{
	evc_per_worker *it = NULL;

	OK(evc_per_worker_iterator(dataset, &it));
	return it;
}

static evc_remote *
on_worker(unsigned index, const char *function, const evc_value *args)
{
	evc_schedule_opts o = { 0 };
	evc_remote *r = NULL;
	char name[48];

	snprintf(name, sizeof(name), "%s", worker(index).name);
	o.worker = name;
	ck_assert_msg(evc_schedule(on.cl, function, args, NULL, &o, &r) == 0,
		      "%s", evc_last_error());
	return r;
}

/* On all workers, one after the other: there may be room for two alone. */
static void
on_each_worker(const char *function, const evc_value *args, int64_t *ret)
{
	unsigned i;

	for (i = 0; i < on.n_workers; i++)
		ret[i] = take_number(on_worker(i, function, args));
}

/* Nothing of what workers kept is left on any, soon. */
static bool
nothing_is_kept(void)
{
	evc_value v;
	evc_remote *r;
	unsigned i;
	int a, b, sum = 0;

	for (i = 0; i < on.n_workers; i++) {
		r = on_worker(i, "live", NULL);
		OK(evc_remote_fetch(r, T_LIMIT, &v));
		OK(evc_unpack(&v, "[ii]", &a, &b));
		evc_remote_free(r);
		sum += a + b;
	}
	return sum == 0;
}

/* ---- the rows ---- */

START_TEST(R04_testInputFunction)
{
	evc_per_worker *d, *it;
	evc_remote *r[2];

	begin(_i, 3);
	d = range(1, 1, true, NULL);
	it = iterator(d);
	r[0] = SCHEDULE("next", "[w]", it);
	r[1] = SCHEDULE("next", "[w]", it);
	OK(join());
	IS(take_number(r[0]), 1);
	IS(take_number(r[1]), 1);
	ck_assert(variable("sum") == 2);
	evc_per_worker_free(it);
	evc_per_worker_free(d);
	UNTIL(nothing_is_kept());
}
END_TEST

/* There a transform is traced once; here it is a function of the workers, and
   what is built once on each is the dataset. */
static void
with_a_map(bool by_function)
{
	evc_dataset_opts o = { .map = "twice", .repeat = UINT64_MAX };
	evc_per_worker *d, *it;
	unsigned i;

	d = by_function ? range(7, 3, false, &o) : elements("hij", &o);
	it = iterator(d);
	IS(take_number(SCHEDULE("next", "[w]", it)), 14);
	for (i = 0; i < 2 * on.n_workers; i++)
		IS(take_number(SCHEDULE("next", "[w]", it)) % 2, 0);
	OK(join());
	/* One for each element that was asked for, and no more. */
	ck_assert(variable("twice called") == 1 + 2 * on.n_workers);
	if (by_function)
		ck_assert(variable("ranges built") >= 1 &&
			  variable("ranges built") <= on.n_workers);
	else
		ck_assert(variable("ranges built") == 0);
	evc_per_worker_free(d);
	evc_per_worker_free(it);
	UNTIL(nothing_is_kept());
}

START_TEST(R06_testInputFunctionWithMap)
{
	begin(_i, 1);
	with_a_map(true);
}
END_TEST

START_TEST(R06_testInputFunctionWithMapDataset)
{
	begin(_i, 1);
	with_a_map(false);
}
END_TEST

static void
is_permutation(int64_t all)
{
	unsigned seen = 0;

	for (; all > 0; all /= 16)
		seen |= 1u << (all % 16);
	ck_assert_uint_eq(seen & ~1u, 0xfffe);
}

static void
drained(const evc_dataset_opts *o, bool alike)
{
	evc_per_worker *d = elements("bcdefghijklmnop", o), *it[2];
	int64_t all[2][8] = { { 0 } };
	unsigned i, walk, differ = 0;
	evc_value args;

	for (walk = 0; walk < 2; walk++) {
		it[walk] = iterator(d);
		args = PACKED("[w]", it[walk]);
		on_each_worker("drain", &args, all[walk]);
		evc_value_free(&args);
		for (i = 0; i < on.n_workers; i++) {
			is_permutation(all[walk][i]);
			differ += all[walk][i] != all[walk][0];
		}
		/* One in 15! says wrong. */
		ck_assert(alike ? differ == 0 : differ > walk);
	}
	/* Without a seed another walk has another order, too. */
	if (!alike)
		ck_assert(all[0][0] != all[1][0] || all[0][1] != all[1][1]);
	for (walk = 0; walk < 2; walk++)
		evc_per_worker_free(it[walk]);
	evc_per_worker_free(d);
}

START_TEST(R08_testDatasetsShuffledDifferently)
{
	evc_dataset_opts o = { .shuffle = true };

	begin(_i, 2);
	drained(&o, false);
	OK(join());
}
END_TEST

/* With a seed of its own it is the same everywhere. */
START_TEST(R08_testDatasetsShuffledAlikeWithASeed)
{
	evc_dataset_opts o = { .shuffle = true, .seed = 4711 };

	begin(_i, 2);
	drained(&o, true);
	OK(join());
}
END_TEST

START_TEST(R09_testPerWorkerValue)
{
	int64_t each[8] = { 0 }, sum = 0;
	evc_per_worker *p = NULL;
	evc_value args;
	unsigned i;

	begin(_i, 3);
	OK(evc_per_worker_value(on.cl, "counter", "counter", NULL, &p));
	for (i = 0; i < 10; i++)
		DO("bump", "[wi]", p, 1);
	OK(join());
	args = PACKED("[wi]", p, 0);
	on_each_worker("bump", &args, each);
	evc_value_free(&args);
	for (i = 0; i < on.n_workers; i++)
		sum += each[i];
	IS(sum, 10);
	evc_per_worker_free(p);
	UNTIL(nothing_is_kept());
}
END_TEST

START_TEST(R15_testMultipleDatasets)
{
	evc_per_worker *d[3], *it[3];
	evc_remote *r;
	int i;

	begin(_i, 3);
	for (i = 0; i < 3; i++) {
		d[i] = range(i == 0 ? 2 : 3, 10, true, NULL);
		it[i] = iterator(d[i]);
	}
	IS(take_number(SCHEDULE("next of two", "[{a:[w] b:{c:w}}]", it[0],
				it[1])), 5);
	/* The second one is used on one worker, and new on the others. */
	ck_assert_int_ge(take_number(SCHEDULE("next of two",
					      "[{a:[w] b:{c:w}}]", it[2],
					      it[1])), 5);
	OK(join());
	/* A dataset is no iterator, and a number is neither. */
	r = SCHEDULE("next", "[i]", 1);
	IS(code_of(r), EVC_INVALID_ARGUMENT);
	IS(join(), EVC_INVALID_ARGUMENT);
	evc_remote_free(r);
	r = SCHEDULE("next", "[w]", d[0]);
	IS(code_of(r), EVC_INVALID_ARGUMENT);
	IS(join(), EVC_INVALID_ARGUMENT);
	evc_remote_free(r);
	for (i = 0; i < 3; i++) {
		evc_per_worker_free(it[i]);
		evc_per_worker_free(d[i]);
	}
}
END_TEST

START_TEST(R16_testRepeatedIteratorCreation)
{
	evc_per_worker *d, *it;
	evc_remote *r[11];
	int round, i;

	begin(_i, 3);
	d = range(2, 5, true, NULL);
	for (round = 0; round < 10; round++) {
		it = iterator(d);
		for (i = 0; i < 11; i++)
			r[i] = SCHEDULE("next", "[w]", it);
		/* It is kept for those that use it. */
		evc_per_worker_free(it);
		OK(join());
		for (i = 0; i < 11; i++)
			ck_assert_int_ge(take_number(r[i]), 2);
	}
	evc_per_worker_free(d);
	UNTIL(nothing_is_kept());
	ck_assert(variable("ranges built") <= on.n_workers);
	ck_assert_uint_eq(numbers().n_failed, 0);
}
END_TEST

START_TEST(there_is_nothing_of_them_at_the_coordinator)
{
	evc_per_worker *d, *it, *none = NULL;
	evc_remote *r = NULL;
	evc_value v, got;

	begin(_i, 2);
	d = range(1, 3, false, NULL);
	it = iterator(d);
	REFUSED(EVC_UNIMPLEMENTED, evc_per_worker_next(it, &got));
	HAS(evc_last_error(), "evc_schedule");
	v = PACKED("[iw]", 1, it);
	REFUSED(EVC_UNIMPLEMENTED, evc_fetch(on.cl, &v, T_LIMIT, &got));
	HAS(evc_last_error(), "evc_schedule");
	evc_value_free(&v);
	REFUSED(EVC_INVALID_ARGUMENT, evc_per_worker_iterator(it, &none));
	ck_assert_ptr_null(none);
	v = PACKED("[w]", it);
	evc_per_worker_free(it);
	evc_per_worker_free(d);
	/* It has named what is not there any more. */
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(on.cl, "next", &v, NULL, NULL, &r));
	ck_assert_ptr_null(r);
	evc_value_free(&v);
	OK(join());
}
END_TEST

/* OUT_OF_RANGE is an error like any other. */
START_TEST(the_end_of_a_dataset_is_its_functions_error)
{
	evc_per_worker *d, *it;
	evc_remote *r[5];
	int i, ended = 0;

	begin(_i, 1);
	d = range(1, 3, false, NULL);
	it = iterator(d);
	for (i = 0; i < 5; i++) {
		evc_value args = PACKED("[w]", it);

		r[i] = on_worker(0, "next", &args);
		ended += code_of(r[i]) == EVC_OUT_OF_RANGE;
		evc_value_free(&args);
		IS(info_of(r[i]).code, i < 3 ? 0 : EVC_OUT_OF_RANGE);
		evc_remote_free(r[i]);
		IS(join(), i < 3 ? 0 : EVC_OUT_OF_RANGE);
	}
	IS(ended, 2);
	OK(join());
	evc_per_worker_free(it);
	/* A new walk is at the beginning. */
	it = iterator(d);
	evc_per_worker_free(d);
	{
		evc_value args = PACKED("[w]", it);
		evc_remote *first = on_worker(0, "next", &args);

		IS(take_number(first), 1);
		evc_value_free(&args);
	}
	evc_per_worker_free(it);
}
END_TEST

/* [gate]: the first worker waits there */
static evc_status
fn_slow_at_first(evc_exec *x, void *arg)
{
	evc_exec_info i;

	if (evc_exec_get(x, &i) < 0)
		return EVC_INTERNAL;
	return i.worker_index == 0 ? fn_hold(x, arg) :
				     evc_exec_return(x, "i", 1);
}

/* Others are idle meanwhile. */
START_TEST(nothing_waits_for_another_workers_build)
{
	evc_value args = PACKED("[s]", "g");
	evc_per_worker *slow;
	evc_remote *r[20];
	unsigned n;

	begin(_i, 2);
	/* Workers that have shown to be quick are sent several at once. */
	for (n = 0; n < 400; n++)
		DO("add", "[ii]", 1, (int)n);
	OK(join());
	OK(evc_per_worker_value(on.cl, "slow", "slow at first", &args, &slow));
	for (n = 0; n < 20; n++)
		r[n] = SCHEDULE("add", "[ii]", 1, (int)n);
	for (n = 0; n < 20; n++)
		IS(take_number(r[n]), 1 + (int)n);
	UNTIL(strcmp(worker(0).builds, "slow") == 0);
	let_go("g");
	OK(join());
	evc_per_worker_free(slow);
	evc_value_free(&args);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "range", .fn = fn_range },
	{ .name = "twice", .fn = fn_twice },
	{ .name = "next", .fn = fn_next },
	{ .name = "next of two", .fn = fn_next_of_two },
	{ .name = "drain", .fn = fn_drain },
	{ .name = "counter", .fn = fn_counter },
	{ .name = "bump", .fn = fn_bump },
	{ .name = "live", .fn = fn_live },
	{ .name = "slow at first", .fn = fn_slow_at_first },
};

CONFORMANCE_MAIN("per-worker values", functions,
		 ROW_TIGHT(R04_testInputFunction),
		 ROW_TIGHT(R06_testInputFunctionWithMap),
		 ROW_TIGHT(R06_testInputFunctionWithMapDataset),
		 ROW_TIGHT(R08_testDatasetsShuffledDifferently),
		 ROW_TIGHT(R08_testDatasetsShuffledAlikeWithASeed),
		 ROW_TIGHT(R09_testPerWorkerValue),
		 ROW_TIGHT(R15_testMultipleDatasets),
		 ROW_TIGHT(R16_testRepeatedIteratorCreation),
		 ROW_TIGHT(there_is_nothing_of_them_at_the_coordinator),
		 ROW_TIGHT(the_end_of_a_dataset_is_its_functions_error),
		 ROW(nothing_waits_for_another_workers_build))
