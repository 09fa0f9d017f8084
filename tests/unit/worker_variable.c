/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker's functions and the cluster's variables: at once, or noted and made
 * with the result.
 */
#include "worker.h"

#include "../support/seam.h"

static double
value_of(struct bench *b, const char *name)
{
	evc_engine_update u = { .op = EVC_VARIABLE_GET, .name = name };
	evc_value v;
	double d;

	if (evc__variable_do(&b->vars, &u, NULL, &v) == -EVC_NOT_FOUND)
		return -1;
	OK(evc_unpack(&v, "d", &d));
	evc_value_free(&v);
	return d;
}

static void
set_text(struct bench *b, const char *name, const char *text)
{
	evc_engine_update u = { .op = EVC_VARIABLE_SET, .name = name };

	OK(evc_pack(&u.value, "s", text));
	OK(evc__variable_do(&b->vars, &u, NULL, NULL));
	evc_value_free((evc_value *)&u.value);
}

static evc_status
set_number(evc_exec *x, const char *name, int number)
{
	evc_value v;
	evc_status st;

	OK(evc_pack(&v, "i", number));
	st = evc_exec_variable_set(x, name, &v);
	evc_value_free(&v);
	return st;
}

static int
get_number(evc_exec *x, const char *name)
{
	evc_value v;
	int i;

	if (evc_exec_variable_get(x, name, &v) == -EVC_NOT_FOUND)
		return -1;
	OK(evc_unpack(&v, "i", &i));
	evc_value_free(&v);
	return i;
}

static int
number_in(const evc_value *v)
{
	int i;

	OK(evc_unpack(v, "i", &i));
	return i;
}

/* ---- functions ---- */

static evc_status
plain(evc_exec *x, void *arg)
{
	struct bench *b = arg;
	evc_value one, two;
	double now = 0;

	OK(evc_exec_variable_add(x, "count", 2, &now));
	ck_assert_double_eq(now, 2);
	OK(evc_exec_variable_add(x, "count", 2, NULL));
	ck_assert_double_eq(value_of(b, "count"), 4);
	OK(set_number(x, "set", 7));
	ck_assert_double_eq(value_of(b, "set"), 7);
	ck_assert_int_eq(get_number(x, "set"), 7);
	ck_assert_int_eq(get_number(x, "nobody"), -1);
	OK(evc_exec_variable_number(x, "set", &now));
	ck_assert_double_eq(now, 7);
	OK(evc_exec_variable_number(x, "nobody", &now));
	ck_assert_double_eq(now, 0);
	OK(evc_pack(&one, "i", 7));
	OK(evc_pack(&two, "i", 8));
	OK(evc_exec_variable_compare_set(x, "set", &one, &two));
	REFUSED(EVC_ABORTED,
		evc_exec_variable_compare_set(x, "set", &one, &two));
	REFUSED(EVC_ABORTED,
		evc_exec_variable_compare_set(x, "set", NULL, &two));
	OK(evc_exec_variable_compare_set(x, "new", NULL, &two));
	ck_assert_double_eq(value_of(b, "new"), 8);
	evc_value_free(&one);
	evc_value_free(&two);
	return EVC_ABORTED; /* what is done stays done */
}

static evc_status
wrong(evc_exec *x, void *arg)
{
	char name[300];
	evc_value v;
	double now;

	(void)arg;
	memset(name, 'n', sizeof name);
	name[256] = '\0';
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_add(x, NULL, 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_add(x, "", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_add(x, name, 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_exec_variable_add(x, "a", NAN, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_set(x, "a", NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_get(x, "a", NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_get(x, name, &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_get_loose(x, "a", NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_number(x, "a", NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_number(x, "", &now));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_get_loose(x, name, &v));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_exec_variable_add(NULL, "a", 1, NULL));
	v = (evc_value){ "\xc1", 1 };
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_variable_set(x, "a", &v));
	name[255] = '\0';
	OK(evc_exec_variable_add(x, name, 1, NULL));
	return 0;
}

static evc_status
transacts(evc_exec *x, void *arg)
{
	struct bench *b = arg;
	const evc_value nil = { 0 };
	evc_value v;
	double now = 0;

	/* What is there, and what it has added, and nothing of it made. */
	OK(evc_exec_variable_add(x, "count", 1, NULL));
	OK(evc_exec_variable_add(x, "count", 1, &now));
	ck_assert_double_eq(now, 12);
	ck_assert_int_eq(get_number(x, "count"), 12);
	ck_assert_double_eq(value_of(b, "count"), 10);
	/* One that is not there. */
	OK(evc_exec_variable_add(x, "new", 2.5, &now));
	ck_assert_double_eq(now, 2.5);
	/* A set, then an addition: one set. */
	OK(set_number(x, "set", 100));
	OK(evc_exec_variable_add(x, "set", 5, &now));
	ck_assert_double_eq(now, 105);
	ck_assert_int_eq(get_number(x, "set"), 105);
	/* An addition, then a set. */
	OK(evc_exec_variable_add(x, "reset", 5, NULL));
	OK(set_number(x, "reset", 1));
	ck_assert_int_eq(get_number(x, "reset"), 1);
	/* Taken away, and begun anew. */
	OK(evc_exec_variable_set(x, "count2", &nil));
	REFUSED(EVC_NOT_FOUND, evc_exec_variable_get(x, "count2", &v));
	OK(evc_exec_variable_add(x, "count2", 3, &now));
	ck_assert_double_eq(now, 3);
	OK(evc_exec_variable_set(x, "gone", &nil));
	/* No number. */
	OK(evc_pack(&v, "s", "a text that needs memory of its own"));
	OK(evc_exec_variable_set(x, "text", &v));
	evc_value_free(&v);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_exec_variable_add(x, "text", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_exec_variable_add(x, "old text", 1, &now));
	OK(evc_exec_variable_get(x, "text", &v));
	ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_STRING);
	/* With what it has done itself, and with what is there. */
	REFUSED(EVC_ABORTED,
		evc_exec_variable_compare_set(x, "new", NULL, &v));
	OK(evc_exec_variable_compare_set(x, "fresh", NULL, &v));
	REFUSED(EVC_ABORTED,
		evc_exec_variable_compare_set(x, "fresh", NULL, &v));
	evc_value_free(&v);
	ck_assert_double_eq(value_of(b, "new"), -1);
	ck_assert_double_eq(value_of(b, "fresh"), -1);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_exec_variable_number(x, "fresh", &now));
	OK(evc_exec_variable_number(x, "set", &now));
	ck_assert_double_eq(now, 105);
	/* What is read loosely is no read. */
	OK(evc_exec_variable_get_loose(x, "loose", &v));
	ck_assert_int_eq(number_in(&v), 10);
	evc_value_free(&v);
	OK(evc_exec_variable_add(x, "loose", 1, NULL));
	OK(evc_exec_variable_get_loose(x, "loose", &v));
	ck_assert_int_eq(number_in(&v), 11);
	evc_value_free(&v);
	return evc_exec_return(x, "i", 1);
}

static evc_status
transacts_much(evc_exec *x, void *arg)
{
	int *n = arg, i, round;
	char name[32];

	for (round = 0; round < 2; round++)
		for (i = 0; i < *n; i++) {
			snprintf(name, sizeof name, "v%d", i);
			OK(evc_exec_variable_add(x, name, i, NULL));
		}
	return 0;
}

static evc_status
transacts_and_fails(evc_exec *x, void *arg)
{
	(void)arg;
	OK(evc_exec_variable_add(x, "count", 1, NULL));
	OK(set_number(x, "set", 100));
	return EVC_ABORTED;
}

/* What it adds is one addition in the end, which has to be a number. */
static evc_status
transacts_too_much(evc_exec *x, void *arg)
{
	double now = 0;

	(void)arg;
	OK(evc_exec_variable_add(x, "count", 1e308, &now));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_exec_variable_add(x, "count", 1e308, &now));
	ck_assert_double_eq(now, 1e308);
	OK(evc_exec_variable_add(x, "count", -1e308, &now));
	ck_assert_double_eq(now, 0);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_exec_variable_add(x, "new", INFINITY, NULL));
	return 0;
}

static evc_status reads_end;

/* Two reads of one content are one, of two are two; a long one is a hash. */
static evc_status
reads(evc_exec *x, void *arg)
{
	struct bench *b = arg;
	evc_value v;
	char longest[65], longer[66];

	ck_assert_int_eq(get_number(x, "n"), 1);
	ck_assert_int_eq(get_number(x, "n"), 1);
	set_text(b, "n", "other");
	OK(evc_exec_variable_get(x, "n", &v));
	evc_value_free(&v);
	REFUSED(EVC_NOT_FOUND, evc_exec_variable_get(x, "none", &v));
	/* 64 bytes with the head of two. */
	memset(longest, 'l', sizeof longest);
	longest[62] = '\0';
	set_text(b, "longest", longest);
	OK(evc_exec_variable_get(x, "longest", &v));
	ck_assert_uint_eq(v.size, EVC_ENGINE_READ_MOST);
	evc_value_free(&v);
	memset(longer, 'l', sizeof longer);
	longer[63] = '\0';
	set_text(b, "longer", longer);
	OK(evc_exec_variable_get(x, "longer", &v));
	OK(evc_exec_variable_set(x, "longer", &v));
	evc_value_free(&v);
	/* What the function has set is not read. */
	OK(set_number(x, "own", 1));
	ck_assert_int_eq(get_number(x, "own"), 1);
	return reads_end;
}

static struct bench b;
static int many = 1000;

static const evc_function table[] = {
	{ .name = "plain", .fn = plain, .arg = &b },
	{ .name = "wrong", .fn = wrong },
	{ .name = "transacts", .fn = transacts, .arg = &b },
	{ .name = "transacts_much", .fn = transacts_much, .arg = &many },
	{ .name = "transacts_and_fails", .fn = transacts_and_fails },
	{ .name = "transacts_too_much", .fn = transacts_too_much },
	{ .name = "reads", .fn = reads, .arg = &b },
};

/* ---- tests ---- */

START_TEST(plain_functions_do_it_at_once)
{
	BENCH(&b, table);
	bench_call(&b, "plain");
	ck_assert_int_eq(b.r.code, EVC_ABORTED);
	ck_assert_uint_eq(b.r.n_updates, 0);
	ck_assert_double_eq(value_of(&b, "count"), 4);
	OK(bench_call(&b, "wrong"));
	bench_close(&b);
}
END_TEST

static bool
is_read(const evc_engine_update *u)
{
	return u->op == EVC_VARIABLE_READ || u->op == EVC_VARIABLE_READ_HASHED;
}

static unsigned
n_reads(void)
{
	unsigned i, n = 0;

	/* They come first. */
	while (n < b.r.n_updates && is_read(&b.r.updates[n]))
		n++;
	for (i = n; i < b.r.n_updates; i++)
		ck_assert(!is_read(&b.r.updates[i]));
	return n;
}

static const evc_engine_update *
update_of(const char *name)
{
	const evc_engine_update *found = NULL;
	unsigned i;

	for (i = n_reads(); i < b.r.n_updates; i++)
		if (strcmp(b.r.updates[i].name, name) == 0) {
			ck_assert_ptr_null(found);
			found = &b.r.updates[i];
		}
	ck_assert_ptr_nonnull(found);
	return found;
}

static void
is_set_to(const char *name, int want)
{
	const evc_engine_update *u = update_of(name);
	int i;

	ck_assert_uint_eq(u->op, EVC_VARIABLE_SET);
	OK(evc_unpack(&u->value, "i", &i));
	ck_assert_int_eq(i, want);
}

static void
is_added_to(const char *name, double by)
{
	ck_assert_uint_eq(update_of(name)->op, EVC_VARIABLE_ADD);
	ck_assert_double_eq(update_of(name)->by, by);
}

START_TEST(transactional_ones_note_it_and_see_it)
{
	evc_engine_update ten = { .op = EVC_VARIABLE_ADD, .name = "count",
				  .by = 10 };

	BENCH(&b, table);
	OK(evc__variable_do(&b.vars, &ten, NULL, NULL));
	ten.name = "count2";
	OK(evc__variable_do(&b.vars, &ten, NULL, NULL));
	ten.name = "loose";
	OK(evc__variable_do(&b.vars, &ten, NULL, NULL));
	set_text(&b, "old text", "old");
	OK(bench_transact(&b, "transacts"));
	GIVES(&b, 1);
	/* count, new, old text, fresh */
	ck_assert_uint_eq(n_reads(), 4);
	ck_assert_uint_eq(b.r.n_updates, 4 + 9);
	is_added_to("count", 2);
	is_added_to("new", 2.5);
	is_set_to("set", 105);
	is_set_to("reset", 1);
	is_set_to("count2", 3);
	ck_assert_uint_eq(update_of("gone")->op, EVC_VARIABLE_SET);
	ck_assert_uint_eq(update_of("gone")->value.size, 0);
	ck_assert_uint_eq(evc_value_type(&update_of("text")->value),
			  EVC_VALUE_STRING);
	/* They do what they say. */
	OK(evc__variables_commit(&b.vars, 0, b.r.updates, b.r.n_updates));
	ck_assert_double_eq(value_of(&b, "count"), 12);
	ck_assert_double_eq(value_of(&b, "count2"), 3);
	ck_assert_double_eq(value_of(&b, "reset"), 1);
	bench_close(&b);
}
END_TEST

static void
read_is(unsigned i, unsigned op, const char *name, const char *format,
	const char *text)
{
	const evc_engine_update *u = &b.r.updates[i];
	char is[100];

	ck_assert_uint_lt(i, b.r.n_updates);
	ck_assert_uint_eq(u->op, op);
	ck_assert_str_eq(u->name, name);
	ck_assert_uint_eq(u->expected.size > 0, format != NULL);
	if (format == NULL)
		return;
	OK(evc_unpack(&u->expected, format, is, sizeof is));
	ck_assert_str_eq(is, text);
}

static void
reads_of(evc_status code)
{
	evc_engine_update one = { .op = EVC_VARIABLE_ADD, .name = "n",
				  .by = 1 };
	int i;

	BENCH(&b, table);
	OK(evc__variable_do(&b.vars, &one, NULL, NULL));
	reads_end = code;
	ck_assert_int_eq(bench_transact(&b, "reads"), code);
	ck_assert_uint_eq(n_reads(), 5);
	ck_assert_uint_eq(b.r.n_updates, code == 0 ? 7 : 5);
	ck_assert_uint_eq(b.r.updates[0].op, EVC_VARIABLE_READ);
	ck_assert_str_eq(b.r.updates[0].name, "n");
	OK(evc_unpack(&b.r.updates[0].expected, "i", &i));
	ck_assert_int_eq(i, 1);
	read_is(1, EVC_VARIABLE_READ, "n", "s", "other");
	read_is(2, EVC_VARIABLE_READ, "none", NULL, NULL);
	read_is(3, EVC_VARIABLE_READ, "longest", "s",
		"llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll");
	/* printf '\331\077%063d' 0 | tr 0 l | sha1sum */
	read_is(4, EVC_VARIABLE_READ_HASHED, "longer", "s",
		"51fa42ed2996b5ebf08d607a30f1a166ab4a7596");
	/* n was two things. */
	ck_assert_int_eq(evc__variables_commit(&b.vars, b.r.code, b.r.updates,
					       b.r.n_updates),
			 EVC_ABORTED);
	OK(evc__variables_commit(&b.vars, b.r.code, b.r.updates + 1,
				 b.r.n_updates - 1));
	ck_assert_double_eq(value_of(&b, "own"), code == 0 ? 1 : -1);
	bench_close(&b);
}

START_TEST(what_is_read_is_noted)
{
	reads_of(0);
}
END_TEST

/* The result has the reads, and no update. */
START_TEST(also_by_a_function_that_fails)
{
	reads_of(EVC_ABORTED);
}
END_TEST

START_TEST(a_sum_that_is_no_number_is_refused_at_once)
{
	BENCH(&b, table);
	OK(bench_transact(&b, "transacts_too_much"));
	ck_assert_uint_eq(n_reads(), 1);
	ck_assert_uint_eq(b.r.n_updates, 2);
	OK(evc__variables_commit(&b.vars, 0, b.r.updates, b.r.n_updates));
	ck_assert_double_eq(value_of(&b, "count"), 0);
	bench_close(&b);
}
END_TEST

START_TEST(each_call_begins_with_nothing_noted)
{
	BENCH(&b, table);
	bench_transact(&b, "transacts_and_fails");
	ck_assert_int_eq(b.r.code, EVC_ABORTED);
	ck_assert_uint_eq(b.r.n_updates, 0);
	many = 3;
	OK(bench_transact(&b, "transacts_much"));
	ck_assert_uint_eq(b.r.n_updates, 3);
	bench_close(&b);
}
END_TEST

START_TEST(many_names_are_one_note_each)
{
	int i;

	BENCH(&b, table);
	many = 1000;
	for (i = 0; i < 2; i++) {
		OK(bench_transact(&b, "transacts_much"));
		ck_assert_uint_eq(b.r.n_updates, 1000);
		is_added_to("v999", 2 * 999);
		is_added_to("v1", 2);
	}
	bench_close(&b);
}
END_TEST

START_TEST(without_memory_for_the_updates_it_has_failed)
{
	evc_engine_task task;
	int counted, n;

	BENCH(&b, table);
	many = 1000;
	OK(bench_transact(&b, "transacts_much"));
	task = bench_task(&b, "transacts_much");
	task.flags = EVC_TRANSACTIONAL;
	evc__worker_done(b.w);
	/* The last memory is for what goes out, the rest for the notes. */
	counted = seam_fail("alloc", "arena_more_", 1000, ENOMEM);
	evc__worker_run(b.w, &task, &b.r);
	ck_assert_int_eq(b.r.code, 0);
	n = seam_arrivals(counted);
	ck_assert_int_gt(n, 0);
	seam_reset();
	evc__worker_done(b.w);
	task.n = ++b.last_n;
	(void)seam_fail("alloc", "arena_more_", n, ENOMEM);
	evc__worker_run(b.w, &task, &b.r);
	seam_reset();
	ck_assert_int_eq(b.r.code, EVC_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(b.r.n_updates, 0);
	bench_close(&b);
}
END_TEST

API_MAIN("worker_variable", plain_functions_do_it_at_once,
	 transactional_ones_note_it_and_see_it, what_is_read_is_noted,
	 also_by_a_function_that_fails,
	 a_sum_that_is_no_number_is_refused_at_once,
	 each_call_begins_with_nothing_noted, many_names_are_one_note_each,
	 without_memory_for_the_updates_it_has_failed)
