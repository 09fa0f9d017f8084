/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables of a cluster: sums that stay whole as long as they can, sets
 * and comparisons, commits that are made or not made, the value that goes to a
 * file, and all of it by several threads at once.
 */
#include "../support/api_util.h"
#include "support/seam.h"

#include "cluster/variables/table.h"
#include "cluster/variables/variable.h"
#include "wire/walk.h"

static struct variables vars;

static void
setup(void)
{
	ck_assert(evc__variables_init(&vars));
}

static void
teardown(void)
{
	seam_reset();
	evc__variables_destroy(&vars);
}

static evc_status
add(const char *name, double by, double *now)
{
	evc_engine_update u = { .op = EVC_VARIABLE_ADD,
				.name = name,
				.by = by };

	return evc__variable_do(&vars, &u, now, NULL);
}

static evc_status
set(const char *name, const evc_value *v)
{
	evc_engine_update u = { .op = EVC_VARIABLE_SET,
				.name = name,
				.value = *v };

	return evc__variable_do(&vars, &u, NULL, NULL);
}

static evc_status
get(const char *name, evc_value *ret)
{
	evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };

	return evc__variable_do(&vars, &u, NULL, ret);
}

static evc_status
compare_set(const char *name, evc_value expected, evc_value value)
{
	evc_engine_update u = { .op = EVC_VARIABLE_COMPARE_SET,
				.name = name,
				.value = value,
				.expected = expected };

	return evc__variable_do(&vars, &u, NULL, NULL);
}

/* One packed value at a time is enough for a test. */
#define PACK(...) \
	__extension__({ \
		static evc_value v_; \
		evc_value_free(&v_); \
		OK(evc_pack(&v_, __VA_ARGS__)); \
		&v_; \
	})

#define SET(name, ...) OK(set((name), PACK(__VA_ARGS__)))

/* The variable is that value, byte by byte. */
static void
is(const char *name, const evc_value *want)
{
	char a[256], b[256];
	evc_value v;

	OK(get(name, &v));
	evc_value_print(&v, a, sizeof a);
	evc_value_print(want, b, sizeof b);
	ck_assert_str_eq(a, b);
	ck_assert_uint_eq(v.size, want->size);
	ck_assert_mem_eq(v.data, want->data, v.size);
	evc_value_free(&v);
}

#define IS(name, ...) is((name), PACK(__VA_ARGS__))
#define IS_NOT_THERE(name) \
	do { \
		evc_value gone_; \
		REFUSED(EVC_NOT_FOUND, get((name), &gone_)); \
		ck_assert_ptr_null(gone_.data); \
	} while (0)

/* ---- sums ---- */

#define E53 9007199254740992.0

static const struct {
	double start, by, sum;
	bool whole;
} sums[] = {
	{ 0, 1, 1, true },
	{ 5, -7, -2, true },
	{ 0.5, 0.25, 0.75, false },
	{ 0.5, 0.5, 1, true },
	{ -1.5, 1.5, 0, true },
	{ E53 - 2, 1, E53 - 1, true },
	{ E53 - 1, 1, E53, false },
	{ -E53 + 2, -1, -E53 + 1, true },
	{ -E53 + 1, -1, -E53, false },
	{ 1e300, 1, 1e300, false },
	{ 1e300, -1e300, 0, true },
	{ 1e308, 0.7e308, 1.7e308, false },
};

START_TEST(no_sum_is_infinite)
{
	double now = -1;

	SET("x", "d", 1e308);
	REFUSED(EVC_INVALID_ARGUMENT, add("x", 1e308, &now));
	HAS(evc_last_error(), "no finite number");
	ck_assert(now == -1);
	IS("x", "d", 1e308);
	SET("x", "d", (double)INFINITY);
	REFUSED(EVC_INVALID_ARGUMENT, add("x", -1, NULL));
	SET("x", "d", (double)NAN);
	REFUSED(EVC_INVALID_ARGUMENT, add("x", 1, NULL));
}
END_TEST

START_TEST(sums_are_integers_while_they_can_be)
{
	double now = -1;

	SET("x", "d", sums[_i].start);
	OK(add("x", sums[_i].by, &now));
	ck_assert(now == sums[_i].sum);
	if (sums[_i].whole)
		IS("x", "I", (int64_t)sums[_i].sum);
	else
		IS("x", "d", sums[_i].sum);
	/* The same from an integer. */
	if (sums[_i].start == trunc(sums[_i].start) &&
	    fabs(sums[_i].start) < E53) {
		SET("y", "I", (int64_t)sums[_i].start);
		OK(add("y", sums[_i].by, NULL));
		if (sums[_i].whole)
			IS("y", "I", (int64_t)sums[_i].sum);
		else
			IS("y", "d", sums[_i].sum);
	}
}
END_TEST

START_TEST(what_is_not_there_is_zero)
{
	double now = 0;

	OK(add("n", 3, &now));
	ck_assert(now == 3);
	IS("n", "i", 3);
	OK(add("n", -3, &now));
	IS("n", "i", 0);
	SET("n", "n");
	IS_NOT_THERE("n");
	OK(add("n", 0.5, NULL));
	IS("n", "d", 0.5);
}
END_TEST

START_TEST(large_integers_are_kept_until_they_are_added_to)
{
	SET("a", "U", UINT64_MAX);
	IS("a", "U", UINT64_MAX);
	OK(add("a", 1, NULL));
	IS("a", "d", 18446744073709551616.0);
	SET("a", "I", INT64_MIN);
	IS("a", "I", INT64_MIN);
	OK(add("a", -1, NULL));
	IS("a", "d", -9223372036854775808.0);
}
END_TEST

START_TEST(what_cannot_be_added_changes_nothing)
{
	uint64_t changes;

	SET("s", "s", "text");
	changes = evc__variables_n_changes(&vars);
	REFUSED(EVC_INVALID_ARGUMENT, add("s", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, add("n", NAN, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, add("n", INFINITY, NULL));
	IS("s", "s", "text");
	IS_NOT_THERE("n");
	ck_assert_uint_eq(evc__variables_n_changes(&vars), changes);
}
END_TEST

/* ---- names and values ---- */

START_TEST(names_have_1_to_255_bytes)
{
	char name[258];
	evc_value v;

	memset(name, 'x', sizeof name);
	name[255] = '\0';
	OK(add(name, 1, NULL));
	IS(name, "i", 1);
	name[255] = 'x';
	name[256] = '\0';
	REFUSED(EVC_INVALID_ARGUMENT, add(name, 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, add("", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, add(NULL, 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, get("", &v));
}
END_TEST

START_TEST(values_are_what_was_set)
{
	char text[4000];

	memset(text, 'y', sizeof text);
	SET("v", "[i s {k:d}]", 1, "two", 3.5);
	IS("v", "[i s {k:d}]", 1, "two", 3.5);
	SET("v", "S", text, sizeof text);
	IS("v", "S", text, sizeof text);
	SET("v", "b", 1);
	IS("v", "b", 1);
	SET("v", "n");
	IS_NOT_THERE("v");
	/* Taken away twice. */
	SET("v", "n");
	OK(set("v", &(evc_value){ NULL, 0 }));
	ck_assert_uint_eq(vars.by_name.n, 0);
}
END_TEST

START_TEST(what_is_no_value_is_refused)
{
	unsigned char ref[1 + REF_BYTES] = { 0x91 };
	static const unsigned char cut[] = { 0x92, 0x01 };
	int i;

	SET("v", "i", 1);
	for (i = 0; i < 2; i++) {
		evc__walk_put_ref(ref + 1, i == 1, 7, 8);
		REFUSED(EVC_INVALID_ARGUMENT,
			set("v", &(evc_value){ ref, sizeof ref }));
		REFUSED(EVC_INVALID_ARGUMENT,
			set("v", &(evc_value){ ref + 1, REF_BYTES }));
		REFUSED(EVC_INVALID_ARGUMENT,
			compare_set("v", *PACK("i", 1),
				    (evc_value){ ref, sizeof ref }));
	}
	REFUSED(EVC_INVALID_ARGUMENT,
		set("v", &(evc_value){ cut, sizeof cut }));
	REFUSED(EVC_INVALID_ARGUMENT,
		compare_set("v", (evc_value){ cut, sizeof cut },
			    *PACK("i", 2)));
	IS("v", "i", 1);
}
END_TEST

START_TEST(many_names_have_a_value_each)
{
	char name[32];
	int i;

	for (i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "name %d", i);
		OK(add(name, i, NULL));
	}
	ck_assert_uint_gt(vars.by_name.n_buckets, 4000);
	for (i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "name %d", i);
		IS(name, "i", i);
		if (i % 2)
			SET(name, "n");
	}
	ck_assert_uint_eq(vars.by_name.n, 2500);
	IS_NOT_THERE("name 4999");
	IS("name 4998", "i", 4998);
}
END_TEST

/* ---- comparisons ---- */

/* One number, in one of its spellings. */
struct spelled {
	char kind;
	int64_t i;
	uint64_t u;
	double d;
};

#define I(x) \
	{ \
		.kind = 'I', .i = (x) \
	}
#define U(x) \
	{ \
		.kind = 'U', .u = (x) \
	}
#define D(x) \
	{ \
		.kind = 'd', .d = (x) \
	}

static evc_value
spell(const struct spelled *n)
{
	evc_value v;

	if (n->kind == 'I')
		OK(evc_pack(&v, "I", n->i));
	else if (n->kind == 'U')
		OK(evc_pack(&v, "U", n->u));
	else
		OK(evc_pack(&v, "d", n->d));
	return v;
}

static const struct {
	struct spelled a, b;
	bool equal;
} pairs[] = {
	{ I(3), D(3), true },
	{ I(3), D(3.5), false },
	{ I(-3), I(-3), true },
	{ I(-1), U(UINT64_MAX), false },
	{ U(UINT64_MAX), D(0x1p64), false },
	{ U(UINT64_C(1) << 63), D(0x1p63), true },
	{ I(INT64_MAX), D(0x1p63), false },
	{ I(INT64_MIN), D(-0x1p63), true },
	{ I((INT64_C(1) << 53) + 1), D(0x1p53), false },
	{ D(0.0), D(-0.0), true },
	{ D(INFINITY), D(INFINITY), true },
	{ D(INFINITY), U(UINT64_MAX), false },
	{ D(INFINITY), D(-INFINITY), false },
	{ D(1e300), D(1e300), true },
};

START_TEST(numbers_compare_as_numbers)
{
	evc_value a = spell(&pairs[_i].a), b = spell(&pairs[_i].b);

	ck_assert_int_eq(evc__value_is_equal(&a, &b), pairs[_i].equal);
	ck_assert_int_eq(evc__value_is_equal(&b, &a), pairs[_i].equal);
	OK(set("x", &a));
	if (pairs[_i].equal)
		OK(compare_set("x", b, *PACK("s", "new")));
	else
		REFUSED(EVC_ABORTED, compare_set("x", b, *PACK("s", "new")));
	if (pairs[_i].equal)
		IS("x", "s", "new");
	else
		is("x", &a);
	evc_value_free(&a);
	evc_value_free(&b);
}
END_TEST

START_TEST(all_else_compares_by_its_bytes)
{
	evc_value a, b;

	OK(evc_pack(&a, "[is]", 1, "x"));
	OK(evc_pack(&b, "[is]", 1, "x"));
	ck_assert(evc__value_is_equal(&a, &b));
	evc_value_free(&b);
	OK(evc_pack(&b, "[ds]", 1.0, "x"));
	ck_assert(!evc__value_is_equal(&a, &b));
	ck_assert(!evc__value_is_equal(&a, PACK("i", 1)));
	ck_assert(!evc__value_is_equal(PACK("b", 1), PACK("i", 1)));
	ck_assert(!evc__value_is_equal(PACK("s", "1"), PACK("i", 1)));
	ck_assert(evc__value_is_equal(PACK("n"), &(evc_value){ NULL, 0 }));
	ck_assert(!evc__value_is_equal(PACK("b", 0), PACK("n")));
	evc_value_free(&a);
	evc_value_free(&b);
}
END_TEST

START_TEST(compare_set_knows_what_is_not_there)
{
	evc_value none = { NULL, 0 }, one, two;

	OK(evc_pack(&one, "i", 1));
	OK(evc_pack(&two, "i", 2));
	REFUSED(EVC_ABORTED, compare_set("x", one, two));
	IS_NOT_THERE("x");
	OK(compare_set("x", none, one));
	REFUSED(EVC_ABORTED, compare_set("x", none, two));
	IS("x", "i", 1);
	OK(compare_set("x", one, two));
	IS("x", "i", 2);
	/* nil takes it away, here too. */
	OK(compare_set("x", two, none));
	IS_NOT_THERE("x");
	OK(compare_set("x", *PACK("n"), one));
	IS("x", "i", 1);
	evc_value_free(&one);
	evc_value_free(&two);
}
END_TEST

/* ---- commits ---- */

#define ADD(n, x) \
	{ \
		.op = EVC_VARIABLE_ADD, .name = (n), .by = (x) \
	}
#define PUT(n, v) \
	{ \
		.op = EVC_VARIABLE_SET, .name = (n), .value = (v) \
	}

START_TEST(updates_are_made_in_their_order)
{
	evc_value five, text, nil;
	OK(evc_pack(&five, "i", 5));
	OK(evc_pack(&text, "s", "a text that is longer than sixteen bytes"));
	OK(evc_pack(&nil, "n"));
	evc_engine_update u[] = {
		PUT("x", text),   PUT("x", five),  ADD("x", 2),
		ADD("y", 1),      ADD("y", 1),     PUT("z", text),
		PUT("z", nil),    ADD("z", 4),     PUT("gone", text),
		PUT("gone", nil), PUT("was", nil),
	};

	SET("was", "i", 1);
	OK(evc__variables_commit(&vars, 0, u, sizeof u / sizeof u[0]));
	IS("x", "i", 7);
	IS("y", "i", 2);
	IS("z", "i", 4);
	IS_NOT_THERE("gone");
	IS_NOT_THERE("was");
	ck_assert_uint_eq(vars.by_name.n, 3);
	ck_assert_uint_eq(evc__variables_n_finished(&vars), 1);
	OK(evc__variables_commit(&vars, 0, NULL, 0));
	ck_assert_uint_eq(evc__variables_n_finished(&vars), 2);
	evc_value_free(&five);
	evc_value_free(&text);
	evc_value_free(&nil);
}
END_TEST

/* Everything there is, to be compared. */
static evc_value
all(void)
{
	evc_value v;

	OK(evc__variables_pack(&vars, &v, NULL));
	return v;
}

#define UNCHANGED(before) \
	do { \
		evc_value now_ = all(); \
		ck_assert_uint_eq(now_.size, (before).size); \
		ck_assert_mem_eq(now_.data, (before).data, now_.size); \
		evc_value_free(&now_); \
	} while (0)

static unsigned
make_updates(evc_engine_update *u, const evc_value *text)
{
	evc_engine_update made[] = {
		ADD("n", 1),         PUT("t", *text),
		ADD("new", 1),       ADD("new", 1),
		PUT("n", *text),     PUT("t", ((evc_value){ NULL, 0 })),
		PUT("newer", *text), PUT("newer", *text),
		ADD("m", 2),
	};

	memcpy(u, made, sizeof made);
	return sizeof made / sizeof made[0];
}

START_TEST(one_that_cannot_be_made_undoes_all_before_it)
{
	static const evc_engine_update bad[] = {
		ADD("s", 1),
		ADD("", 1),
		ADD("n", NAN),
		{ .op = EVC_VARIABLE_GET, .name = "n" },
		{ .op = EVC_VARIABLE_COMPARE_SET, .name = "n" },
		{ .op = 77, .name = "n" },
		PUT("n", ((evc_value){ "\x91", 1 })),
	};
	evc_engine_update u[16];
	evc_value text, before;
	unsigned n, at;

	OK(evc_pack(&text, "s", "a text that is longer than sixteen bytes"));
	SET("s", "s", "no number");
	SET("n", "i", 1);
	SET("t", "s", "another text, longer than sixteen bytes too");
	before = all();
	for (at = 0; at <= 9; at++) {
		n = make_updates(u, &text);
		ck_assert_uint_eq(n, 9);
		memmove(u + at + 1, u + at, (n - at) * sizeof u[0]);
		u[at] = bad[_i];
		REFUSED(EVC_INVALID_ARGUMENT,
			evc__variables_commit(&vars, 0, u, n + 1));
		UNCHANGED(before);
		ck_assert_uint_eq(vars.by_name.n, 3);
		ck_assert_uint_eq(evc__variables_n_finished(&vars), 0);
	}
	n = make_updates(u, &text);
	OK(evc__variables_commit(&vars, 0, u, n));
	IS("new", "i", 2);
	is("n", &text);
	IS_NOT_THERE("t");
	evc_value_free(&text);
	evc_value_free(&before);
}
END_TEST

/* ---- reads ---- */

#define READ(n, v) \
	{ \
		.op = EVC_VARIABLE_READ, .name = (n), .expected = (v) \
	}
#define HASHED(n, v) \
	{ \
		.op = EVC_VARIABLE_READ_HASHED, .name = (n), .expected = (v) \
	}

/* n reads, of which one may not hold, and then an addition. */
static void
commit_holds(const evc_engine_update *reads, unsigned n, bool hold)
{
	evc_engine_update u[8] = { 0 };
	evc_value before = all();
	uint64_t finished = evc__variables_n_finished(&vars);

	memcpy(u, reads, n * sizeof u[0]);
	u[n] = (evc_engine_update)ADD("sum", 1);
	/* A failed function changes nothing in any case. */
	ck_assert_int_eq(evc__variables_commit(&vars, EVC_INTERNAL, u, n + 1),
			 hold ? 0 : EVC_ABORTED);
	UNCHANGED(before);
	ck_assert_uint_eq(evc__variables_n_finished(&vars), finished);
	ck_assert_int_eq(evc__variables_commit(&vars, 0, u, n + 1),
			 hold ? 0 : EVC_ABORTED);
	if (!hold)
		UNCHANGED(before);
	ck_assert_uint_eq(evc__variables_n_finished(&vars),
			  finished + (hold ? 1 : 0));
	evc_value_free(&before);
}

START_TEST(a_read_has_to_hold_by_its_bytes)
{
	const evc_value nothing = { NULL, 0 };
	const evc_value one = { "\x01", 1 }, two = { "\x02", 1 };
	const evc_value other = { "\xa1n", 2 };
	evc_engine_update good[] = { READ("n", one), READ("none", nothing) };
	evc_engine_update bad[][2] = {
		{ READ("n", one), READ("n", two) },
		{ READ("n", one), READ("none", one) },
		{ READ("n", nothing), READ("none", nothing) },
		{ READ("n", other), READ("none", nothing) },
	};
	unsigned i;

	SET("n", "i", 1);
	commit_holds(good, 2, true);
	IS("sum", "i", 1);
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		commit_holds(bad[i], 2, false);
		IS("sum", "i", 1);
	}
}
END_TEST

START_TEST(a_long_read_has_to_hold_by_its_hash)
{
	char text[200], hash[CONTENT_HASH_SIZE];
	evc_value v, h = { hash, sizeof hash };
	evc_engine_update read = HASHED("t", h);

	memset(text, 't', sizeof text);
	text[sizeof text - 1] = '\0';
	OK(evc_pack(&v, "s", text));
	SET("t", "s", text);
	evc__content_hash(&v, hash);
	commit_holds(&read, 1, true);
	text[0] = 'u';
	SET("t", "s", text);
	commit_holds(&read, 1, false);
	/* The hash itself, as a short value, is not what was read. */
	SET("t", "i", 1);
	commit_holds(&read, 1, false);
	text[0] = 't';
	SET("t", "s", text);
	commit_holds(&read, 1, true);
	evc_value_free(&v);
}
END_TEST

START_TEST(without_memory_nothing_is_made)
{
	evc_engine_update u[16];
	evc_value text, before;
	unsigned n, nth;
	evc_status st;
	int h;

	OK(evc_pack(&text, "s", "a text that is longer than sixteen bytes"));
	SET("n", "i", 1);
	before = all();
	n = make_updates(u, &text);
	for (nth = 1;; nth++) {
		h = seam_fail("alloc", NULL, (int)nth, ENOMEM);
		st = evc__variables_commit(&vars, 0, u, n);
		if (seam_arrivals(h) < (int)nth)
			break;
		seam_reset();
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		UNCHANGED(before);
		ck_assert_uint_eq(evc__variables_n_finished(&vars), 0);
	}
	seam_reset();
	OK(st);
	ck_assert_uint_ge(nth, 8);
	IS("m", "i", 2);
	/* And single ones. */
	seam_fail("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, add("other", 1, NULL));
	seam_reset();
	IS_NOT_THERE("other");
	seam_fail("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, set("m", &text));
	seam_reset();
	IS("m", "i", 2);
	evc_value_free(&text);
	evc_value_free(&before);
}
END_TEST

START_TEST(a_table_that_cannot_grow_works_on)
{
	size_t before = vars.by_name.n_buckets;
	char name[16];
	int i;

	seam_fail_all("alloc", "evc__table_reserve", 1, ENOMEM);
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "%d", i);
		OK(add(name, i, NULL));
	}
	ck_assert_uint_eq(vars.by_name.n_buckets, before);
	IS("299", "i", 299);
	seam_reset();
	OK(add("one more", 1, NULL));
	ck_assert_uint_ge(vars.by_name.n_buckets * 2, 301);
	IS("0", "i", 0);
}
END_TEST

/* ---- as one value ---- */

/* As deep as a value may be. */
static evc_value
deepest(void)
{
	static unsigned char bytes[EVC_VALUE_DEPTH + 1];

	memset(bytes, 0x91, EVC_VALUE_DEPTH);
	bytes[EVC_VALUE_DEPTH] = 7;
	return (evc_value){ bytes, sizeof bytes };
}

static void
fill(void)
{
	evc_value v = deepest();

	OK(set("deep", &v));
	SET("zero", "d", 0.5);
	SET("a", "[is]", 1, "x");
	SET("b", "s", "text");
	evc__variables_finished(&vars, 41);
	evc__variables_finished(&vars, 1);
}

START_TEST(it_comes_back_as_it_was)
{
	static const char *const order[] = { "a", "b", "deep", "zero" };
	struct variable_list l;
	evc_value before;
	uint64_t changes = 0;
	size_t i;

	fill();
	OK(evc__variables_list(&vars, &l));
	ck_assert_uint_eq(l.n, 4);
	ck_assert_uint_eq(l.finished, 42);
	for (i = 0; i < 4; i++) {
		ck_assert_str_eq(l.entries[i].name, order[i]);
		is(order[i], &l.entries[i].value);
	}
	evc__variables_list_free(&l);
	OK(evc__variables_pack(&vars, &before, &changes));
	ck_assert_uint_eq(changes, evc__variables_n_changes(&vars));
	SET("a", "n");
	SET("c", "i", 1);
	evc__variables_finished(&vars, 1);
	OK(evc__variables_unpack(&vars, &before));
	UNCHANGED(before);
	ck_assert_uint_eq(evc__variables_n_finished(&vars), 42);
	IS_NOT_THERE("c");
	IS("a", "[is]", 1, "x");
	ck_assert_uint_gt(evc__variables_n_changes(&vars), changes);
	evc_value_free(&before);
}
END_TEST

START_TEST(nothing_comes_back_as_nothing)
{
	evc_value v = all();
	struct variable_list l;

	SET("x", "i", 1);
	OK(evc__variables_unpack(&vars, &v));
	IS_NOT_THERE("x");
	ck_assert_uint_eq(evc__variables_n_finished(&vars), 0);
	OK(evc__variables_list(&vars, &l));
	ck_assert_uint_eq(l.n, 0);
	evc__variables_list_free(&l);
	evc_value_free(&v);
}
END_TEST

/* ---- as a list, and as they come ---- */

/* The same bytes, for a function that takes them. */
static evc_value
copy_of(const evc_value *v)
{
	evc_value copy = { NULL, v->size };

	if (v->size > 0)
		copy.data = memcpy(malloc(v->size), v->data, v->size);
	return copy;
}

static void
check_list(const struct variable_list *l)
{
	struct variable_list is;
	size_t i;

	OK(evc__variables_list(&vars, &is));
	ck_assert_uint_eq(l->n, is.n);
	for (i = 0; i < is.n; i++) {
		ck_assert_str_eq(l->entries[i].name, is.entries[i].name);
		ck_assert_uint_eq(l->entries[i].value.size,
				  is.entries[i].value.size);
		ck_assert_mem_eq(l->entries[i].value.data,
				 is.entries[i].value.data,
				 is.entries[i].value.size);
	}
	evc__variables_list_free(&is);
}

START_TEST(it_comes_back_as_a_list)
{
	struct variable_list l;
	evc_value v = all();

	OK(evc__variables_read(&v, &l));
	ck_assert_uint_eq(l.n, 0);
	evc__variables_list_free(&l);
	fill();
	evc__variables_finished(&vars, 41);
	v = all();
	OK(evc__variables_read(&v, &l));
	ck_assert_ptr_null(v.data);
	ck_assert_uint_eq(l.finished, evc__variables_n_finished(&vars));
	check_list(&l);
	evc__variables_list_free(&l);
}
END_TEST

static void
pile_one(struct pile *p, const char *name, const void *bytes, size_t n)
{
	const evc_engine_entry e = { name, { bytes, n } };

	OK(evc__pile_add(p, &e, 1));
}

/* Many, in several blocks; each a second time, a part of them with other values
   or removed; and a large one. */
static void
pile_up(struct pile *p)
{
	enum { MANY = 100000, LARGE = 3 << 20 };
	unsigned char *large = malloc(LARGE);
	char name[32];
	int i, again;

	memset(large, 'x', LARGE);
	memcpy(large, "\xc6\x00\x2f\xff\xfb", 5);
	for (again = 0; again < 2; again++)
		for (i = 0; i < MANY; i++) {
			snprintf(name, sizeof(name), "v%d", i);
			if (again == 1 && i % 3 == 0)
				pile_one(p, name, NULL, 0);
			else
				pile_one(p, name,
					 again == 1 && i % 3 == 1 ? "\x07"
								  : "\x01",
					 1);
			if (again == 0 && i == MANY / 2)
				pile_one(p, "large", large, LARGE);
		}
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "v%d", i);
		if (i % 3 != 0)
			SET(name, "i", i % 3 == 1 ? 7 : 1);
	}
	OK(set("large", &(evc_value){ large, LARGE }));
	free(large);
}

START_TEST(the_last_of_a_name_counts)
{
	struct pile p = { .n = 0 };
	struct variable_list l;
	evc_value *parts, v = { NULL, 0 };
	size_t n, i;
	char *to;

	pile_up(&p);
	OK(evc__pile_settle(&p));
	OK(evc__pile_parts(&p, 42, &parts, &n));
	for (i = 0; i < n; i++)
		v.size += parts[i].size;
	v.data = to = malloc(v.size);
	for (i = 0; i < n; i++) {
		memcpy(to, parts[i].data, parts[i].size);
		to += parts[i].size;
	}
	free(parts);
	OK(evc__pile_list(&p, &l));
	evc__variables_sort(&l);
	check_list(&l);
	evc__variables_list_free(&l);
	evc__pile_free(&p);
	/* And its parts are a file. */
	OK(evc__variables_read(&v, &l));
	ck_assert_uint_eq(l.finished, 42);
	evc__variables_sort(&l);
	check_list(&l);
	evc__variables_list_free(&l);
}
END_TEST

START_TEST(nothing_in_a_pile)
{
	const evc_engine_entry none = { "gone", { NULL, 0 } };
	const evc_engine_entry bad[] = { { "", { "\x01", 1 } },
					 { "x", { "\xc1", 1 } } };
	struct pile p = { .n = 0 };
	struct variable_list l;
	evc_value *parts;
	size_t n;

	OK(evc__pile_add(&p, &none, 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc__pile_add(&p, &bad[0], 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc__pile_add(&p, &bad[1], 1));
	OK(evc__pile_settle(&p));
	ck_assert_uint_eq(p.n, 0);
	OK(evc__pile_parts(&p, 0, &parts, &n));
	free(parts);
	OK(evc__pile_list(&p, &l));
	ck_assert_uint_eq(l.n, 0);
	evc__pile_free(&p);
}
END_TEST

START_TEST(without_memory_nothing_is_piled)
{
	struct pile p = { .n = 0 };
	const evc_engine_entry one = { "x", { "\x01", 1 } };
	struct variable_list l;
	evc_value *parts, v, copy;
	int nth, h;
	size_t n;
	evc_status st;

	seam_fail("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__pile_add(&p, &one, 1));
	seam_reset();
	OK(evc__pile_add(&p, &one, 1));
	seam_fail("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__pile_settle(&p));
	seam_reset();
	OK(evc__pile_settle(&p));
	seam_fail("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__pile_parts(&p, 0, &parts, &n));
	seam_reset();
	seam_fail("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__pile_list(&p, &l));
	seam_reset();
	evc__pile_free(&p);
	fill();
	v = all();
	for (nth = 1;; nth++) {
		copy = copy_of(&v);
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc__variables_read(&copy, &l);
		if (seam_arrivals(h) < nth)
			break;
		seam_reset();
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
	}
	OK(st);
	ck_assert_int_ge(nth, 3);
	evc__variables_list_free(&l);
	evc_value_free(&v);
}
END_TEST

/* What cannot have come from a pack. */
static evc_value
broken(int i)
{
	unsigned char ref[REF_BYTES];
	evc_value v, one, nil;
	char name[300];

	memset(name, 'n', sizeof name);
	name[256] = '\0';
	OK(evc_pack(&one, "i", 1));
	OK(evc_pack(&nil, "n"));
	evc__walk_put_ref(ref, false, 1, 2);
	switch (i) {
	case 0:
		OK(evc_pack(&v, "n"));
		break;
	case 1:
		OK(evc_pack(&v, "[U]", UINT64_C(1)));
		break;
	case 2:
		OK(evc_pack(&v, "[i{}]", -1));
		break;
	case 3:
		OK(evc_pack(&v, "[s{}]", "1"));
		break;
	case 4:
		OK(evc_pack(&v, "[i[]]", 1));
		break;
	case 5:
		OK(evc_pack(&v, "[i{}i]", 1, 2));
		break;
	case 6:
		OK(evc_pack(&v, "[i{a:i}]", 1, 2));
		break;
	case 7:
		OK(evc_pack(&v, "[i{a:B}]", 1, "\x92\x01", (size_t)2));
		break;
	case 8:
		OK(evc_pack(&v, "[i{a:B}]", 1, ref, sizeof ref));
		break;
	case 9:
		OK(evc_pack(&v, "[i{a:B}]", 1, nil.data, nil.size));
		break;
	case 10:
		OK(evc_pack(&v, "[i{a:B}]", 1, "", (size_t)0));
		break;
	case 11:
		OK(evc_pack(&v, "[i{%:B}]", 1, name, one.data, one.size));
		break;
	case 12:
		OK(evc_pack(&v, "[i{%:B}]", 1, "", one.data, one.size));
		break;
	default: {
		/* A name twice; a number as one; one with a 0 byte; bytes
		   behind it all. */
		static const char *const bytes[] = {
			"\x92\x01\x82\xa1"
			"a\xc4\x01\x01\xa1"
			"a\xc4\x01\x01",
			"\x92\x01\x81\x07\xc4\x01\x01",
			"\x92\x01\x81\xa1\x00\xc4\x01\x01",
			"\x92\x01\x80\xc0",
		};
		static const size_t sizes[] = { 13, 7, 8, 4 };

		OK(evc_value_copy(&v, &one));
		evc_value_free(&v);
		v.data = memcpy(malloc(sizes[i - 13]), bytes[i - 13],
				sizes[i - 13]);
		v.size = sizes[i - 13];
	}
	}
	evc_value_free(&one);
	evc_value_free(&nil);
	return v;
}

START_TEST(what_is_broken_changes_nothing)
{
	evc_value before, v = broken(_i);
	struct variable_list l;

	fill();
	before = all();
	REFUSED(EVC_INVALID_ARGUMENT, evc__variables_unpack(&vars, &v));
	UNCHANGED(before);
	evc_value_free(&before);
	REFUSED(EVC_INVALID_ARGUMENT, evc__variables_read(&v, &l));
}
END_TEST

START_TEST(what_is_cut_changes_nothing)
{
	struct variable_list l;
	evc_value before, cut;
	size_t i;

	fill();
	before = all();
	for (i = 0; i < before.size; i++) {
		/* Of its own size, so that a tool sees what is read behind. */
		cut.size = i;
		cut.data = memcpy(malloc(i + 1), before.data, i);
		REFUSED(EVC_INVALID_ARGUMENT,
			evc__variables_unpack(&vars, &cut));
		UNCHANGED(before);
		REFUSED(EVC_INVALID_ARGUMENT, evc__variables_read(&cut, &l));
	}
	evc_value_free(&before);
}
END_TEST

START_TEST(without_memory_it_is_not_packed)
{
	evc_value before, v;
	struct variable_list l;
	int nth, h;
	evc_status st;

	fill();
	before = all();
	for (nth = 1;; nth++) {
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc__variables_pack(&vars, &v, NULL);
		if (seam_arrivals(h) < nth)
			break;
		seam_reset();
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		ck_assert_ptr_null(v.data);
	}
	OK(st);
	evc_value_free(&v);
	ck_assert_int_ge(nth, 4);
	seam_reset();
	for (nth = 1;; nth++) {
		h = seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc__variables_unpack(&vars, &before);
		if (seam_arrivals(h) < nth)
			break;
		seam_reset();
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		UNCHANGED(before);
	}
	OK(st);
	ck_assert_int_ge(nth, 6);
	seam_reset();
	seam_fail("alloc", NULL, 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc__variables_list(&vars, &l));
	seam_reset();
	UNCHANGED(before);
	evc_value_free(&before);
}
END_TEST

/* ---- all at once ---- */

#define THREADS 4
#define TURNS   3000

static atomic_int wrong, at_work;

/* left + right stays 0, in every look at them. */
static void *
work(void *arg)
{
	evc_engine_update move[] = { ADD("left", 1), ADD("right", -1),
				     ADD("moved", 1) };
	evc_engine_update bad[] = { ADD("left", 1), ADD("right", 1),
				    ADD("text", 1) };
	evc_value is, next;
	double now;
	int64_t x;
	int i;

	(void)arg;
	for (i = 0; i < TURNS; i++) {
		if (add("sum", 0.25, &now) < 0 || now <= 0)
			atomic_fetch_add(&wrong, 1);
		if (evc__variables_commit(&vars, 0, move, 3) < 0)
			atomic_fetch_add(&wrong, 1);
		if (evc__variables_commit(&vars, 0, bad, 3) !=
		    -EVC_INVALID_ARGUMENT)
			atomic_fetch_add(&wrong, 1);
		/* Counted by comparison, as often as it takes. */
		for (;;) {
			evc_status st;

			if (get("counted", &is) < 0 ||
			    evc_unpack(&is, "I", &x) < 0 ||
			    evc_pack(&next, "I", x + 1) < 0) {
				atomic_fetch_add(&wrong, 1);
				break;
			}
			st = compare_set("counted", is, next);
			evc_value_free(&is);
			evc_value_free(&next);
			if (st == 0)
				break;
			if (st != -EVC_ABORTED)
				atomic_fetch_add(&wrong, 1);
		}
		evc__variables_finished(&vars, 2);
	}
	atomic_fetch_sub(&at_work, 1);
	return NULL;
}

static int64_t
number_in(const struct variable_list *l, const char *name)
{
	int64_t x = 0;
	size_t i;

	for (i = 0; i < l->n; i++)
		if (strcmp(l->entries[i].name, name) == 0)
			OK(evc_unpack(&l->entries[i].value, "I", &x));
	return x;
}

START_TEST(sums_are_exact_and_commits_are_seen_whole)
{
	struct variable_list l;
	struct t_crowd k;
	bool last = false;

	SET("text", "s", "no number");
	SET("counted", "i", 0);
	atomic_store(&wrong, 0);
	atomic_store(&at_work, THREADS);
	crowd_begin(&k, THREADS, work, NULL, 0);
	do {
		last = atomic_load(&at_work) == 0;
		OK(evc__variables_list(&vars, &l));
		ck_assert_int_eq(number_in(&l, "left"),
				 -number_in(&l, "right"));
		/* Those of commits, and twice as many at most without. */
		ck_assert_int_eq(number_in(&l, "left"), number_in(&l, "moved"));
		ck_assert_uint_ge(l.finished, (uint64_t)number_in(&l, "moved"));
		evc__variables_list_free(&l);
	} while (!last);
	crowd_end(&k);
	ck_assert_int_eq(atomic_load(&wrong), 0);
	IS("sum", "i", THREADS * TURNS / 4);
	IS("left", "i", THREADS * TURNS);
	IS("counted", "i", THREADS * TURNS);
	ck_assert_uint_eq(evc__variables_n_finished(&vars),
			  3 * THREADS * TURNS);
}
END_TEST

T_MAIN("variable", setup, teardown,
       T_TIMES(sums_are_integers_while_they_can_be,
	       sizeof sums / sizeof sums[0]),
       T_ONCE(no_sum_is_infinite), T_ONCE(what_is_not_there_is_zero),
       T_ONCE(large_integers_are_kept_until_they_are_added_to),
       T_ONCE(what_cannot_be_added_changes_nothing),
       T_ONCE(names_have_1_to_255_bytes),
       T_ONCE(values_are_what_was_set),
       T_ONCE(what_is_no_value_is_refused),
       T_ONCE(many_names_have_a_value_each),
       T_TIMES(numbers_compare_as_numbers, sizeof pairs / sizeof pairs[0]),
       T_ONCE(all_else_compares_by_its_bytes),
       T_ONCE(compare_set_knows_what_is_not_there),
       T_ONCE(updates_are_made_in_their_order),
       T_TIMES(one_that_cannot_be_made_undoes_all_before_it, 7),
       T_ONCE(a_read_has_to_hold_by_its_bytes),
       T_ONCE(a_long_read_has_to_hold_by_its_hash),
       T_ONCE(without_memory_nothing_is_made),
       T_ONCE(a_table_that_cannot_grow_works_on),
       T_ONCE(it_comes_back_as_it_was),
       T_ONCE(nothing_comes_back_as_nothing),
       T_ONCE(it_comes_back_as_a_list), T_ONCE(the_last_of_a_name_counts),
       T_ONCE(nothing_in_a_pile), T_ONCE(without_memory_nothing_is_piled),
       T_TIMES(what_is_broken_changes_nothing, 17),
       T_ONCE(what_is_cut_changes_nothing),
       T_ONCE(without_memory_it_is_not_packed),
       T_ONCE(sums_are_exact_and_commits_are_seen_whole))
