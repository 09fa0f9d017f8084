/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables that are vectors: their elements are read and added to in their
 * places, by programs and by functions, transactional or not, and a vector is a
 * value as others are.
 */
#include "steps.h"

#include <float.h>
#include <math.h>
#include <unistd.h>

enum { MANY = 5000, STEPS = 400 };

static const evc_schedule_opts whole = { .flags = EVC_TRANSACTIONAL };

/* ---- functions ---- */

/* [name, from, n, by]: the same to each element */
static evc_status
fn_range(evc_exec *x, void *arg)
{
	double some[200], by;
	evc_elements e = { .doubles = some };
	char name[64];
	uint64_t from, n, i;

	(void)arg;
	if (evc_exec_unpack(x, "[sUUd]", name, sizeof(name), &from, &n, &by) < 0)
		return refused(x);
	for (i = 0; i < n; i++)
		some[i] = by;
	e.from = from;
	e.n = n;
	return evc_exec_vector_add(x, name, &e) < 0 ?
		       evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error()) :
		       0;
}

/* [name, seed]: 1 to 50 elements, some of them more than once */
static evc_status
fn_sparse(evc_exec *x, void *arg)
{
	float ones[50];
	uint32_t at[50];
	evc_elements e = { .floats = ones, .n = 50, .at = at };
	char name[64];
	unsigned seed, i;

	(void)arg;
	if (evc_exec_unpack(x, "[su]", name, sizeof(name), &seed) < 0)
		return refused(x);
	for (i = 0; i < 50; i++) {
		ones[i] = 1;
		at[i] = (seed * 7919 + i * i * 31) % MANY;
	}
	return evc_exec_vector_add(x, name, &e) < 0 ? refused(x) : 0;
}

/* [name, i]: element i + 1, by reading it; -> what it is then */
static evc_status
fn_step_at(evc_exec *x, void *arg)
{
	double is = 0, one = 1;
	evc_elements e = { .doubles = &is, .n = 1 };
	evc_elements more = { .doubles = &one, .n = 1 };
	char name[64];
	uint64_t i;

	(void)arg;
	if (evc_exec_unpack(x, "[sU]", name, sizeof(name), &i) < 0)
		return refused(x);
	e.from = more.from = i;
	if (evc_exec_vector_get(x, name, &e) < 0 ||
	    evc_exec_vector_add(x, name, &more) < 0)
		return refused(x);
	return evc_exec_return(x, "I", (int64_t)is + 1);
}

/* [name, n]: a vector of 0, 1, ... */
static evc_status
fn_fill(evc_exec *x, void *arg)
{
	static double some[MANY];
	evc_elements e = { .doubles = some };
	char name[64];
	uint64_t n, i;

	(void)arg;
	if (evc_exec_unpack(x, "[sU]", name, sizeof(name), &n) < 0)
		return refused(x);
	for (i = 0; i < n; i++)
		some[i] = (double)i;
	e.n = n;
	return evc_exec_vector_set(x, name, &e) < 0 ? refused(x) : 0;
}

#define MUST(what) \
	do { \
		if (!(what)) \
			return evc_exec_fail(x, EVC_INTERNAL, "%s: %s", #what, \
					     evc_last_error()); \
	} while (0)

/* [name of a vector 0 ... 999]: all that a function can do, seen by itself */
static evc_status
fn_own(evc_exec *x, void *arg)
{
	double two[2] = { 10, 20 }, is[3] = { 0 };
	float half[2] = { 0.5f, 0.25f };
	uint32_t at[3] = { 500, 3, 999 };
	evc_elements a = { .doubles = two, .n = 2, .at = at };
	evc_elements b = { .floats = half, .n = 2, .from = 3 };
	evc_elements to = { .doubles = is, .n = 3, .at = at };
	evc_elements first = { .doubles = is, .n = 2 };
	evc_value v = { NULL, 0 };
	char name[64];
	size_t n = 0;

	(void)arg;
	MUST(evc_exec_unpack(x, "[s]", name, sizeof(name)) == 0);
	MUST(evc_exec_vector_add(x, name, &a) == 0);
	MUST(evc_exec_vector_add(x, name, &b) == 0);
	MUST(evc_exec_vector_get(x, name, &to) == 0);
	MUST(is[0] == 510 && is[1] == 23.5 && is[2] == 999);
	MUST(evc_exec_vector_get_loose(x, name, &to) == 0);
	MUST(is[0] == 510 && is[1] == 23.5 && is[2] == 999);
	MUST(evc_exec_vector_size(x, name, &n) == 0 && n == 1000);
	MUST(evc_exec_variable_get(x, name, &v) == 0);
	MUST(evc_value_count(&v) == 1000);
	MUST(evc_value_elements(&v, &to) == 0);
	MUST(is[0] == 510 && is[1] == 23.5 && is[2] == 999);
	evc_value_free(&v);
	MUST(evc_exec_vector_get(x, "missing", &to) == -EVC_NOT_FOUND);
	first.from = 999;
	MUST(evc_exec_vector_get(x, name, &first) == -EVC_OUT_OF_RANGE);
	MUST(evc_exec_vector_size(x, name, NULL) == -EVC_INVALID_ARGUMENT);
	/* Another one in its place. */
	first.from = 0;
	is[0] = 1;
	is[1] = 2;
	MUST(evc_exec_vector_set(x, name, &first) == 0);
	MUST(evc_exec_vector_size(x, name, &n) == 0);
	first.n = 1;
	first.from = 1;
	is[0] = 40;
	MUST(evc_exec_vector_add(x, name, &first) == 0);
	MUST(evc_exec_vector_get(x, name, &first) == 0 && is[0] == 42);
	return 0;
}

/* [name]: loosely, until element 0 is another */
static evc_status
fn_watch(evc_exec *x, void *arg)
{
	double first = 0, is = 0;
	evc_elements e = { .doubles = &first, .n = 1 };
	char name[64];

	(void)arg;
	MUST(evc_exec_unpack(x, "[s]", name, sizeof(name)) == 0);
	MUST(evc_exec_vector_get_loose(x, name, &e) == 0);
	e.doubles = &is;
	for (;;) {
		MUST(evc_exec_vector_get_loose(x, name, &e) == 0);
		if (is != first)
			break;
		if (evc_exec_wait_for_stop(x, 0.001))
			return EVC_CANCELLED;
	}
	return evc_exec_return(x, "d", is);
}

/* [vector, by]: "n" and the vector, which may be impossible */
static evc_status
fn_both(evc_exec *x, void *arg)
{
	double by = 0;
	evc_elements e = { .doubles = &by, .n = 1 };
	char name[64];
	uint64_t from;

	(void)arg;
	MUST(evc_exec_unpack(x, "[sUd]", name, sizeof(name), &from, &by) == 0);
	e.from = from;
	MUST(evc_exec_variable_add(x, "n", 1, NULL) == 0);
	MUST(evc_exec_vector_add(x, name, &e) == 0);
	return 0;
}

/* [name, by] */
static evc_status
fn_more(evc_exec *x, void *arg)
{
	char name[64];
	double by;

	(void)arg;
	MUST(evc_exec_unpack(x, "[sd]", name, sizeof(name), &by) == 0);
	MUST(evc_exec_variable_add(x, name, by, NULL) == 0);
	return 0;
}

/* [vector]: -> it, in a map */
static evc_status
fn_mirror(evc_exec *x, void *arg)
{
	double some[3];
	evc_elements e = { .doubles = some, .n = 3 };
	evc_value v;

	(void)arg;
	MUST(evc_exec_unpack(x, "[v]", &v) == 0);
	MUST(evc_value_elements(&v, &e) == 0);
	return evc_exec_return(x, "{is:E}", &e);
}

/* ---- rows ---- */

/* The error of a function is raised once. */
static void
ends_with(int code, evc_remote *r)
{
	IS(code_of(r), code);
	evc_remote_free(r);
	IS(join(), code);
}

static double numbers_at[MANY];

static void
get_all(const char *name, size_t n)
{
	evc_elements e = { .doubles = numbers_at, .n = n };

	OK(evc_vector_get(on.cl, name, &e));
}

static void
set_zeros(const char *name, size_t n)
{
	evc_elements e = { .doubles = numbers_at, .n = n };

	memset(numbers_at, 0, sizeof(numbers_at));
	OK(evc_vector_set(on.cl, name, &e));
}

START_TEST(elements_come_back_as_they_were_set)
{
	double odd[5] = { -0.0, NAN, INFINITY, DBL_MAX, 1.0 / 3 }, d[5];
	float f[5] = { 1.5f, -2, FLT_MAX, 0, 1e-30f }, g[5] = { 0 };
	evc_elements to = { .doubles = d, .n = 5 };
	uint32_t at[2] = { 4, 0 };
	evc_value v;
	size_t n = 0;
	int i;

	begin(_i, 1);
	OK(evc_vector_set(on.cl, "odd", &(evc_elements){ .doubles = odd,
							 .n = 5 }));
	OK(evc_vector_get(on.cl, "odd", &to));
	ck_assert(memcmp(d, odd, sizeof(d)) == 0);
	OK(evc_vector_set(on.cl, "f", &(evc_elements){ .floats = f, .n = 5 }));
	OK(evc_vector_get(on.cl, "f", &(evc_elements){ .floats = g, .n = 5 }));
	ck_assert(memcmp(f, g, sizeof(f)) == 0);
	OK(evc_vector_get(on.cl, "f", &to));
	for (i = 0; i < 5; i++)
		ck_assert(d[i] == (double)f[i]);
	OK(evc_vector_get(on.cl, "f",
			  &(evc_elements){ .doubles = d, .n = 2, .at = at }));
	ck_assert(d[0] == (double)f[4] && d[1] == 1.5);
	OK(evc_vector_get(on.cl, "f",
			  &(evc_elements){ .doubles = d, .n = 2, .from = 1 }));
	ck_assert(d[0] == -2 && d[1] == (double)FLT_MAX);
	OK(evc_vector_size(on.cl, "f", &n));
	ck_assert_uint_eq(n, 5);
	OK(evc_variable_get(on.cl, "f", &v));
	ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_VECTOR);
	ck_assert_uint_eq(evc_value_count(&v), 5);
	/* As a value, too, and back. */
	OK(evc_variable_set(on.cl, "g", &v));
	OK(evc_vector_size(on.cl, "g", &n));
	ck_assert_uint_eq(n, 5);
	OK(evc_variable_compare_set(on.cl, "g", &v, &(evc_value){ NULL, 0 }));
	REFUSED(EVC_NOT_FOUND, evc_vector_size(on.cl, "g", &n));
	evc_value_free(&v);
	/* None at all. */
	OK(evc_vector_set(on.cl, "no", &(evc_elements){ .doubles = d }));
	OK(evc_vector_size(on.cl, "no", &n));
	ck_assert_uint_eq(n, 0);
	OK(evc_vector_get(on.cl, "no", &(evc_elements){ .doubles = d }));
	/* No elements are nowhere, so nothing is out of range. */
	OK(evc_vector_get(on.cl, "no", &(evc_elements){ .doubles = d,
							.from = SIZE_MAX }));
	OK(evc_vector_add(on.cl, "no", &(evc_elements){ .doubles = d,
							.from = SIZE_MAX }));
	REFUSED(EVC_OUT_OF_RANGE,
		evc_vector_get(on.cl, "no",
			       &(evc_elements){ .doubles = d, .n = 1 }));
}
END_TEST

START_TEST(wrong_elements_are_refused)
{
	double d[2] = { 1, INFINITY };
	float f = 1;
	uint32_t at = 0;
	size_t n;

	begin(_i, 1);
	set_zeros("v", 2);
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_set(on.cl, "v", NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_set(on.cl, "v", &(evc_elements){
						   .floats = (float[]){ 1 },
						   .n = 1,
						   .reserved_ = { 1 } }));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_set(on.cl, "v", &(evc_elements){ .n = 1 }));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_set(on.cl, "v", &(evc_elements){ .doubles = d,
							    .floats = &f,
							    .n = 1 }));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_set(on.cl, "v", &(evc_elements){ .doubles = d,
							    .n = 1,
							    .at = &at }));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_set(on.cl, "v", &(evc_elements){ .doubles = d,
							    .n = 1,
							    .from = 1 }));
	REFUSED(EVC_OUT_OF_RANGE,
		evc_vector_add(on.cl, "v", &(evc_elements){ .doubles = d,
							    .n = 1,
							    .from = SIZE_MAX }));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_add(on.cl, "v", &(evc_elements){ .doubles = d,
							    .n = 2 }));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_add(on.cl, "v", &(evc_elements){ .doubles = d,
							    .n = 1,
							    .from = 2 }));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_add(on.cl, "none", &(evc_elements){ .doubles = d,
							       .n = 1 }));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(on.cl, "v", 1, NULL));
	OK(evc_variable_add(on.cl, "x", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_vector_add(on.cl, "x", &(evc_elements){ .doubles = d,
							    .n = 1 }));
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_size(on.cl, "x", &n));
	get_all("v", 2);
	ck_assert(numbers_at[0] == 0 && numbers_at[1] == 0);
}
END_TEST

static void
fails_with(const char *text, evc_remote *r)
{
	IS(code_of(r), EVC_INVALID_ARGUMENT);
	HAS(info_of(r).text, text);
	ends_with(EVC_INVALID_ARGUMENT, r);
}

/* The same texts on each engine: which element, of how many. */
START_TEST(texts_name_the_element)
{
	double d[4] = { 0, DBL_MAX, 0, 0 };
	uint32_t at[2] = { 0, 70000 };
	evc_elements range = { .doubles = d, .n = 4, .from = 1 };
	evc_elements places = { .doubles = d, .n = 2, .at = at };

	begin(_i, 1);
	set_zeros("v", 3);
	REFUSED(EVC_OUT_OF_RANGE, evc_vector_get(on.cl, "v", &range));
	HAS(evc_last_error(),
	    "variable v: there is no element 4 in a vector of 3");
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_add(on.cl, "v", &range));
	HAS(evc_last_error(),
	    "variable v: there is no element 4 in a vector of 3");
	REFUSED(EVC_OUT_OF_RANGE, evc_vector_get(on.cl, "v", &places));
	HAS(evc_last_error(), "there is no element 70000 in a vector of 3");
	d[0] = 0;
	d[1] = DBL_MAX;
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_add(on.cl, "v", &places));
	HAS(evc_last_error(), "there is no element 70000 in a vector of 3");
	places.at = NULL;
	OK(evc_vector_add(on.cl, "v", &places));
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_add(on.cl, "v", &places));
	HAS(evc_last_error(), "the sum at element 1 is no finite number");
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_add(on.cl, "none", &places));
	HAS(evc_last_error(), "variable none is missing; a vector has to be set "
			      "before elements are added");
	OK(evc_variable_add(on.cl, "none", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_add(on.cl, "none", &places));
	HAS(evc_last_error(), "variable none is no vector");
	/* By a function, at its end. */
	fails_with("variable never is missing; a vector has to be set",
		   SCHEDULE_WITH(&whole, "both", "[sUd]", "never", (uint64_t)0,
				 1.0));
	fails_with("there is no element 7 in a vector of 3",
		   SCHEDULE_WITH(&whole, "both", "[sUd]", "v", (uint64_t)7,
				 1.0));
	fails_with("the sum at element 1 is no finite number",
		   SCHEDULE_WITH(&whole, "both", "[sUd]", "v", (uint64_t)1,
				 DBL_MAX));
}
END_TEST

/* Sums that are no finite number are refused: of elements, and of numbers. */
START_TEST(no_sum_is_infinite)
{
	double most = DBL_MAX, one = 1, is[2] = { 1, 1 };
	float f = FLT_MAX;
	evc_elements add = { .doubles = &most, .n = 1 };
	evc_value v = PACKED("d", (double)INFINITY);

	begin(_i, 1);
	OK(evc_variable_add(on.cl, "x", DBL_MAX, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_variable_add(on.cl, "x", DBL_MAX, NULL));
	ck_assert(variable("x") == DBL_MAX);
	OK(evc_variable_set(on.cl, "inf", &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(on.cl, "inf", 1, NULL));
	evc_value_free(&v);
	OK(evc_vector_set(on.cl, "d", &(evc_elements){ .doubles = is, .n = 2 }));
	OK(evc_vector_add(on.cl, "d", &add));
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_add(on.cl, "d", &add));
	OK(evc_vector_set(on.cl, "f", &(evc_elements){ .floats = &f, .n = 1 }));
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_add(on.cl, "f", &add));
	add = (evc_elements){ .floats = &f, .n = 1 };
	REFUSED(EVC_INVALID_ARGUMENT, evc_vector_add(on.cl, "f", &add));
	add = (evc_elements){ .doubles = &one, .n = 1 };
	OK(evc_vector_add(on.cl, "f", &add));
	/* By functions, at their end. */
	ends_with(EVC_INVALID_ARGUMENT, SCHEDULE_WITH(&whole, "both", "[sUd]", "d", (uint64_t)0,
				   DBL_MAX));
	ends_with(EVC_INVALID_ARGUMENT, SCHEDULE_WITH(&whole, "more", "[sd]", "x", DBL_MAX));
	/* Nothing of it is made, and the next one is. */
	ends_with(0, SCHEDULE_WITH(&whole, "more", "[sd]", "x", -1.0));
	get_all("d", 2);
	ck_assert(numbers_at[0] == DBL_MAX && numbers_at[1] == 1);
	ck_assert(variable("n") == 0);
}
END_TEST

START_TEST(a_function_sees_what_it_does_itself)
{
	int i;

	begin(_i, 2);
	for (i = 0; i < 2; i++) {
		DO("fill", "[sU]", "v", (uint64_t)1000);
		OK(join());
		ends_with(0, SCHEDULE_WITH(i == 0 ? &whole : NULL, "own", "[s]",
					   "v"));
		get_all("v", 2);
		ck_assert(numbers_at[0] == 1 && numbers_at[1] == 42);
	}
	OK(join());
}
END_TEST

START_TEST(no_addition_is_lost_or_made_twice)
{
	double sum = 0;
	int i;

	begin(_i, 4);
	set_zeros("v", MANY);
	for (i = 0; i < STEPS; i++) {
		OK(evc_schedule_pack(on.cl, "sparse",
				     i % 4 == 0 ? NULL : &whole, NULL, "[su]",
				     "v", (unsigned)i));
		OK(evc_schedule_pack(on.cl, "range", i % 4 == 1 ? NULL : &whole,
				     NULL, "[sUUd]", "v", (uint64_t)(i * 7),
				     (uint64_t)(1 + i % 200), 2.0));
	}
	OK(join());
	get_all("v", MANY);
	for (i = 0; i < MANY; i++)
		sum += numbers_at[i];
	for (i = 0; i < STEPS; i++)
		sum -= 50 + 2.0 * (1 + i % 200);
	ck_assert_msg(sum == 0, "%g are missing", -sum);
	ck_assert_uint_eq(numbers().n_conflicts, 0);
}
END_TEST

START_TEST(no_step_of_an_element_is_lost)
{
	static evc_remote *r[STEPS];
	static bool seen[STEPS + 1];
	int i;

	memset(seen, 0, sizeof(seen));
	begin(_i, 4);
	set_zeros("v", 300);
	for (i = 0; i < STEPS; i++)
		r[i] = SCHEDULE_WITH(&whole, "step at", "[sU]", "v",
				     (uint64_t)77);
	for (i = 0; i < STEPS; i++) {
		int64_t n = take_number(r[i]);

		ck_assert(n >= 1 && n <= STEPS && !seen[n]);
		seen[n] = true;
	}
	OK(join());
	get_all("v", 300);
	ck_assert(numbers_at[77] == STEPS);
}
END_TEST

START_TEST(other_elements_are_no_conflict)
{
	int i;

	begin(_i, 4);
	set_zeros("v", 4);
	for (i = 0; i < STEPS; i++) {
		char name[16];
		evc_schedule_opts o = whole;

		snprintf(name, sizeof(name), "worker %d", i % 4);
		o.worker = name;
		OK(evc_schedule_pack(on.cl, "step at", &o, NULL, "[sU]", "v",
				     (uint64_t)(i % 4)));
	}
	OK(join());
	ck_assert_uint_eq(numbers().n_conflicts, 0);
	get_all("v", 4);
	for (i = 0; i < 4; i++)
		ck_assert(numbers_at[i] == STEPS / 4);
}
END_TEST

START_TEST(an_impossible_addition_fails_the_function)
{
	begin(_i, 2);
	set_zeros("v", 10);
	ends_with(EVC_INVALID_ARGUMENT, SCHEDULE_WITH(&whole, "both", "[sUd]", "v", (uint64_t)10,
				   1.0));
	ends_with(EVC_INVALID_ARGUMENT, SCHEDULE_WITH(&whole, "both", "[sUd]", "none", (uint64_t)0,
				   1.0));
	ends_with(EVC_INTERNAL, SCHEDULE_WITH(&whole, "both", "[sUd]", "n", (uint64_t)0,
				   1.0));
	ends_with(EVC_INVALID_ARGUMENT, SCHEDULE("range", "[sUUd]", "v", (uint64_t)5,
			      (uint64_t)6, 1.0));
	ck_assert(variable("n") == 0);
	get_all("v", 10);
	ck_assert(numbers_at[5] == 0 && numbers_at[9] == 0);
	ends_with(0, SCHEDULE_WITH(&whole, "both", "[sUd]", "v", (uint64_t)9,
				   1.0));
	ck_assert(variable("n") == 1);
}
END_TEST

struct found {
	int n;
	size_t size;
};

static bool
count_variables(const char *name, const evc_value *value, void *arg)
{
	struct found *f = arg;

	f->n++;
	if (strcmp(name, "v") == 0)
		f->size = evc_value_count(value);
	return true;
}

START_TEST(a_vector_is_one_variable)
{
	struct found f = { 0 };
	size_t n;

	begin(_i, 2);
	DO("fill", "[sU]", "v", (uint64_t)MANY);
	OK(join());
	OK(evc_variable_each(on.cl, count_variables, &f));
	IS(f.n, 1);
	ck_assert_uint_eq(f.size, MANY);
	/* Shorter; a number in its place; longer again; gone. */
	DO("fill", "[sU]", "v", (uint64_t)3);
	OK(join());
	OK(evc_vector_size(on.cl, "v", &n));
	ck_assert_uint_eq(n, 3);
	OK(evc_variable_set(on.cl, "v", &(evc_value){ "\x07", 1 }));
	ck_assert(variable("v") == 7);
	DO("fill", "[sU]", "v", (uint64_t)4000);
	OK(join());
	get_all("v", 4000);
	ck_assert(numbers_at[3999] == 3999);
	OK(evc_variable_set(on.cl, "v", &(evc_value){ NULL, 0 }));
	f.n = 0;
	OK(evc_variable_each(on.cl, count_variables, &f));
	IS(f.n, 0);
}
END_TEST

START_TEST(a_checkpoint_has_it)
{
	char path[64];
	float some[3] = { 1, 2, 3 };
	evc_elements e = { .floats = some, .n = 3 };

	snprintf(path, sizeof(path), "/tmp/evc-vectors-%d", (int)getpid());
	begin(_i, 2);
	DO("fill", "[sU]", "v", (uint64_t)MANY);
	OK(evc_vector_set(on.cl, "f", &e));
	OK(evc_variable_add(on.cl, "x", 5, NULL));
	OK(join());
	OK(evc_cluster_save(on.cl, path));
	DO("fill", "[sU]", "v", (uint64_t)7);
	DO("range", "[sUUd]", "f", (uint64_t)0, (uint64_t)3, 1.0);
	DO("fill", "[sU]", "x", (uint64_t)1000);
	OK(join());
	OK(evc_cluster_restore(on.cl, path));
	unlink(path);
	get_all("v", MANY);
	ck_assert(numbers_at[MANY - 1] == MANY - 1 && numbers_at[1] == 1);
	get_all("f", 3);
	ck_assert(numbers_at[0] == 1 && numbers_at[2] == 3);
	ck_assert(variable("x") == 5);
}
END_TEST

START_TEST(a_loose_read_of_it_is_not_checked)
{
	evc_remote *r;
	double one = 1;
	evc_value v = { NULL, 0 };
	double is = 0;

	begin(_i, 2);
	set_zeros("v", 10);
	r = SCHEDULE_WITH(&whole, "watch", "[s]", "v");
	while (evc_remote_fetch(r, 0.01, NULL) == -EVC_DEADLINE_EXCEEDED)
		OK(evc_vector_add(on.cl, "v",
				  &(evc_elements){ .doubles = &one, .n = 1 }));
	IS(code_of(r), 0);
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "d", &is));
	ck_assert(is > 0);
	evc_remote_free(r);
	ck_assert_uint_eq(numbers().n_conflicts, 0);
	OK(join());
}
END_TEST

START_TEST(it_is_an_argument_and_a_result)
{
	double some[3] = { 1.5, -2, 1e300 };
	evc_elements e = { .doubles = some, .n = 3 };
	evc_value v = { NULL, 0 }, is;
	evc_remote *r;
	char text[100];

	begin(_i, 2);
	r = SCHEDULE("mirror", "[E]", &e);
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "{is:v}", &is));
	memset(some, 0, sizeof(some));
	OK(evc_value_elements(&is, &e));
	ck_assert(some[0] == 1.5 && some[1] == -2 && some[2] == 1e300);
	evc_value_print(&v, text, sizeof(text));
	ck_assert_str_eq(text, "{\"is\":[1.5,-2.0,1e+300]}");
	REFUSED(EVC_INVALID_ARGUMENT, evc_value_elements(&v, &e));
	e.from = 1;
	REFUSED(EVC_OUT_OF_RANGE, evc_value_elements(&is, &e));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&is, "E", &e));
	evc_remote_free(r);
	OK(join());
}
END_TEST

/* Some elements of a vector, and what is added to them. */
static void
make_addends(unsigned *seed, evc_elements *e, size_t n)
{
	static uint32_t at[MANY];
	static double doubles[MANY];
	static float floats[MANY];
	size_t i;

	*e = (evc_elements){ .n = (size_t)(rand_r(seed) % 300) };
	if (rand_r(seed) % 2 == 0)
		e->doubles = doubles;
	else
		e->floats = floats;
	for (i = 0; i < e->n; i++) {
		at[i] = (uint32_t)rand_r(seed) % (uint32_t)n;
		doubles[i] = (rand_r(seed) % 2001 - 1000) / 3.0;
		floats[i] = (float)doubles[i];
	}
	if (rand_r(seed) % 2 == 0) {
		/* Each place once: the order of two sums is not said. */
		for (i = 0; i < e->n; i++)
			at[i] = (uint32_t)((at[0] + i * 7) % n);
		e->at = at;
	} else
		e->from = (size_t)rand_r(seed) % (n - e->n + 1);
}

/* The sums are those of this machine, to the last bit. */
START_TEST(sums_are_as_here)
{
	static float f[2000], g[2000];
	static double d[2000], is[2000];
	unsigned seed = 1;
	evc_elements e;
	size_t i, k, at;

	begin(_i, 1);
	for (i = 0; i < 2000; i++)
		d[i] = f[i] = (float)i / 7;
	OK(evc_vector_set(on.cl, "d", &(evc_elements){ .doubles = d,
						       .n = 2000 }));
	OK(evc_vector_set(on.cl, "f", &(evc_elements){ .floats = f,
						       .n = 2000 }));
	for (k = 0; k < 100; k++) {
		make_addends(&seed, &e, 2000);
		OK(evc_vector_add(on.cl, "d", &e));
		OK(evc_vector_add(on.cl, "f", &e));
		for (i = 0; i < e.n; i++) {
			double by = e.doubles != NULL ? e.doubles[i] :
							(double)e.floats[i];

			at = e.at != NULL ? e.at[i] : e.from + i;
			d[at] += by;
			f[at] = (float)((double)f[at] + by);
		}
	}
	OK(evc_vector_get(on.cl, "d", &(evc_elements){ .doubles = is,
						       .n = 2000 }));
	OK(evc_vector_get(on.cl, "f", &(evc_elements){ .floats = g,
						       .n = 2000 }));
	ck_assert(memcmp(d, is, sizeof(d)) == 0);
	ck_assert(memcmp(f, g, sizeof(f)) == 0);
	/* And what is read is the same in each way. */
	for (k = 0; k < 50; k++) {
		make_addends(&seed, &e, 2000);
		OK(evc_vector_get(on.cl, "d", &e));
		for (i = 0; i < e.n; i++) {
			at = e.at != NULL ? e.at[i] : e.from + i;
			if (e.doubles != NULL)
				ck_assert(e.doubles[i] == d[at]);
			else
				ck_assert(e.floats[i] == (float)d[at]);
		}
	}
}
END_TEST

/* [name]: -1e39 to its first element, 1 to its second; both as floats, and -0.0
   to the number "zero": is the sum's sign a minus? */
static evc_status
fn_as_floats(evc_exec *x, void *arg)
{
	double by[2] = { -1e39, 1 }, now = -1;
	float is[2];
	const evc_elements add = { .doubles = by, .n = 2 };
	const evc_elements get = { .floats = is, .n = 2 };
	char name[64];

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    evc_exec_vector_add(x, name, &add) < 0 ||
	    evc_exec_vector_get(x, name, &get) < 0 ||
	    evc_exec_variable_add(x, "zero", -0.0, &now) < 0)
		return refused(x);
	return evc_exec_return(x, "[ddb]", (double)is[0], (double)is[1],
			       signbit(now) != 0);
}

/* Sums are made of doubles, whoever makes them, and then become floats. */
START_TEST(sums_become_floats_and_not_their_parts)
{
	double first[2] = { 1e39, 16777217 }, a, b;
	const evc_elements set = { .doubles = first, .n = 2 };
	evc_value zero = PACKED("d", -0.0);
	evc_remote *r;
	evc_value v;
	int minus;
	int i;

	begin(_i, 1);
	for (i = 0; i < 2; i++) {
		OK(evc_vector_set(on.cl, "d", &set));
		OK(evc_variable_set(on.cl, "zero", &zero));
		r = i == 0 ? SCHEDULE("as floats", "[s]", "d") :
			     SCHEDULE_WITH(&whole, "as floats", "[s]", "d");
		OK(evc_remote_fetch(r, T_LIMIT, &v));
		OK(evc_unpack(&v, "[ddb]", &a, &b, &minus));
		ck_assert_double_eq(a, 0);
		ck_assert_double_eq(b, 16777218);
		ck_assert(!minus);
		evc_remote_free(r);
	}
	OK(join());
	evc_value_free(&zero);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "as floats", .fn = fn_as_floats },
	{ .name = "both", .fn = fn_both },
	{ .name = "fill", .fn = fn_fill },
	{ .name = "mirror", .fn = fn_mirror },
	{ .name = "more", .fn = fn_more },
	{ .name = "own", .fn = fn_own },
	{ .name = "range", .fn = fn_range },
	{ .name = "sparse", .fn = fn_sparse },
	{ .name = "step at", .fn = fn_step_at },
	{ .name = "watch", .fn = fn_watch },
};

CONFORMANCE_MAIN("vectors", functions,
		 ROW(elements_come_back_as_they_were_set),
		 ROW(sums_are_as_here), ROW(wrong_elements_are_refused),
		 ROW(texts_name_the_element), ROW(no_sum_is_infinite),
		 ROW(sums_become_floats_and_not_their_parts),
		 ROW(a_function_sees_what_it_does_itself),
		 ROW(no_addition_is_lost_or_made_twice),
		 ROW(no_step_of_an_element_is_lost),
		 ROW(other_elements_are_no_conflict),
		 ROW(an_impossible_addition_fails_the_function),
		 ROW(a_vector_is_one_variable), ROW(a_checkpoint_has_it),
		 ROW(a_loose_read_of_it_is_not_checked),
		 ROW(it_is_an_argument_and_a_result))
