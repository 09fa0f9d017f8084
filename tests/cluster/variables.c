/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables through the public calls: by the program, and by the functions of
 * workers, plain and transactional.
 */
#include "../support/cluster_util.h"

/* ---- functions ---- */

/* Adds to a variable: [name by]. */
static evc_status
f_count(evc_exec *x, void *arg)
{
	char name[64];
	double by;

	(void)arg;
	if (evc_exec_unpack(x, "[sd]", name, sizeof name, &by) < 0 ||
	    evc_exec_variable_add(x, name, by, NULL) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return 0;
}

/* Adds as f_count, sets "last", and fails if it is told to: [name by code]. */
static evc_status
f_all(evc_exec *x, void *arg)
{
	char name[64];
	evc_value v;
	double by, now;
	int code;
	evc_status st;

	(void)arg;
	if (evc_exec_unpack(x, "[sdi]", name, sizeof name, &by, &code) < 0 ||
	    evc_pack(&v, "d", by) < 0)
		return EVC_INVALID_ARGUMENT;
	st = evc_exec_variable_set(x, "last", &v);
	evc_value_free(&v);
	if (st == 0)
		st = evc_exec_variable_add(x, name, by, &now);
	if (st == 0)
		st = evc_exec_variable_add(x, "calls", 1, NULL);
	if (st < 0)
		return evc_exec_fail(x, -st, "%s", evc_last_error());
	return code != 0 ? evc_exec_fail(x, code, "told to")
			 : evc_exec_return(x, "d", now);
}

/* Counts by comparison: as often as it takes. */
static evc_status
f_compare(evc_exec *x, void *arg)
{
	evc_value is, next;
	evc_status st;
	int64_t n;

	(void)arg;
	do {
		st = evc_exec_variable_get(x, "compared", &is);
		if (st < 0 || evc_unpack(&is, "I", &n) < 0 ||
		    evc_pack(&next, "I", n + 1) < 0)
			return EVC_INTERNAL;
		st = evc_exec_variable_compare_set(x, "compared", &is, &next);
		evc_value_free(&is);
		evc_value_free(&next);
	} while (st == -EVC_ABORTED);
	return st == 0 ? 0 : evc_exec_fail(x, -st, "%s", evc_last_error());
}

static const evc_function table[] = {
	{ .name = "count", .fn = f_count },
	{ .name = "all", .fn = f_all },
	{ .name = "compare", .fn = f_compare },
};

/* ---- the cluster ---- */

static evc_coord *c;
static evc_cluster *cl;

static void
setup(void)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions =
					      sizeof table / sizeof table[0] };

	OK(evc_new(NULL, NULL, &c));
	cl = open_with(c, "threads://4", &config);
}

static void
teardown(void)
{
	evc_cluster_close(cl);
	end_coord(c);
}

static void
is(const char *name, const char *text)
{
	evc_value v;

	ck_assert_msg(evc_variable_get(cl, name, &v) == 0, "%s: %s", name,
		      evc_last_error());
	IS_VALUE(&v, text);
	evc_value_free(&v);
}

static void
is_not_there(const char *name)
{
	evc_value v;

	REFUSED(EVC_NOT_FOUND, evc_variable_get(cl, name, &v));
}

static void
set_text(const char *name, const char *text)
{
	evc_value v;

	OK(evc_pack(&v, "s", text));
	OK(evc_variable_set(cl, name, &v));
	evc_value_free(&v);
}

static evc_status
set_number(const char *name, int n)
{
	evc_value v;
	evc_status st;

	OK(evc_pack(&v, "i", n));
	st = evc_variable_set(cl, name, &v);
	evc_value_free(&v);
	return st;
}

/* ---- the program's calls ---- */

START_TEST(the_program_adds_sets_and_reads)
{
	evc_value v, nil = { NULL, 0 };
	double now = 0;

	is_not_there("n");
	OK(evc_variable_add(cl, "n", 2, NULL));
	OK(evc_variable_add(cl, "n", 0.5, &now));
	ck_assert(now == 2.5);
	is("n", "2.5");
	OK(evc_variable_add(cl, "n", 0.5, &now));
	is("n", "3");
	OK(evc_pack(&v, "[i{k:s}]", 7, "x"));
	OK(evc_variable_set(cl, "v", &v));
	evc_value_free(&v);
	OK(evc_variable_get(cl, "v", &v));
	ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_ARRAY);
	evc_value_free(&v);
	OK(evc_variable_set(cl, "v", &nil));
	is_not_there("v");
	set_text("t", "text");
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, "t", 1, NULL));
	is("t", "\"text\"");
}
END_TEST

START_TEST(the_program_compares)
{
	evc_value one, two, whole;

	OK(evc_pack(&one, "i", 1));
	OK(evc_pack(&two, "i", 2));
	OK(evc_pack(&whole, "d", 1.0));
	REFUSED(EVC_ABORTED, evc_variable_compare_set(cl, "x", &one, &two));
	OK(evc_variable_compare_set(cl, "x", NULL, &one));
	REFUSED(EVC_ABORTED, evc_variable_compare_set(cl, "x", NULL, &two));
	REFUSED(EVC_ABORTED, evc_variable_compare_set(cl, "x", &two, &one));
	is("x", "1");
	OK(evc_variable_compare_set(cl, "x", &whole, &two));
	is("x", "2");
	evc_value_free(&one);
	evc_value_free(&two);
	evc_value_free(&whole);
}
END_TEST

struct seen {
	char names[128];
	int left;
};

static bool
note(const char *name, const evc_value *value, void *arg)
{
	struct seen *s = arg;

	ck_assert_uint_ne(evc_value_type(value), 0);
	strcat(s->names, name);
	strcat(s->names, " ");
	/* It may call anything: what it looks at stays as it was. */
	OK(set_number("zz", 1));
	OK(evc_variable_add(cl, "added", 1, NULL));
	return --s->left > 0;
}

START_TEST(all_are_seen_in_the_order_of_their_names)
{
	struct seen s = { "", 100 };

	OK(evc_variable_each(cl, note, &s));
	ck_assert_str_eq(s.names, "");
	set_text("m", "x");
	OK(set_number("a", 1));
	OK(set_number("ab", 2));
	OK(set_number("Z", 3));
	OK(evc_variable_each(cl, note, &s));
	ck_assert_str_eq(s.names, "Z a ab m ");
	is("added", "4");
	s = (struct seen){ "", 2 };
	OK(evc_variable_each(cl, note, &s));
	ck_assert_str_eq(s.names, "Z a ");
}
END_TEST

START_TEST(mistakes_are_refused)
{
	char name[257];
	evc_value v, one;
	evc_remote *r;

	memset(name, 'x', 256);
	name[256] = '\0';
	OK(evc_pack(&one, "i", 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(NULL, "x", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, NULL, 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, "", 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, name, 1, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_add(cl, "x", NAN, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_set(NULL, "x", &one));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_set(cl, "x", NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_get(NULL, "x", &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_get(cl, "x", NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_variable_compare_set(NULL, "x", NULL, &one));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_variable_compare_set(cl, "x", &one, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_each(NULL, note, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_each(cl, NULL, NULL));
	ck_assert_uint_eq(evc_cluster_finished(NULL), 0);
	/* A name of another thing would be kept beyond that. */
	OK(evc_schedule_pack(cl, "count", NULL, &r, "[sd]", "n", 1.0));
	OK(evc_pack(&v, "[r]", r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_variable_set(cl, "x", &v));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_variable_compare_set(cl, "x", NULL, &v));
	evc_value_free(&v);
	is_not_there("x");
	OK(evc_cluster_join(cl, T_LIMIT));
	evc_remote_free(r);
	evc_value_free(&one);
}
END_TEST

/* ---- functions ---- */

#define FUNCTIONS 800

START_TEST(functions_count_exactly)
{
	int i;

	OK(set_number("compared", 0));
	for (i = 0; i < FUNCTIONS; i++) {
		OK(evc_schedule_pack(cl, "count", NULL, NULL, "[sd]", "plain",
				     0.25));
		OK(evc_schedule_pack(cl, "compare", NULL, NULL, "[]"));
		OK(evc_variable_add(cl, "plain", 0.75, NULL));
	}
	OK(evc_cluster_join(cl, T_LIMIT));
	is("plain", "800");
	is("compared", "800");
	ck_assert_uint_eq(evc_cluster_finished(cl), 2 * FUNCTIONS);
}
END_TEST

START_TEST(transactions_are_made_once_or_not)
{
	evc_schedule_opts once = { .flags = EVC_TRANSACTIONAL };
	evc_schedule_opts tries = { .flags = EVC_TRANSACTIONAL,
				    .retry = { .times = 2, .first = 1e-3 } };
	evc_value v;
	evc_remote *r;
	double now;
	int i;

	for (i = 0; i < 100; i++)
		OK(evc_schedule_pack(cl, "all", &once, NULL, "[sdi]", "sum",
				     1.0, 0));
	OK(evc_cluster_join(cl, T_LIMIT));
	is("sum", "100");
	is("calls", "100");
	ck_assert_uint_eq(evc_cluster_finished(cl), 100);
	/* One that fails has done nothing, however often it ran. */
	OK(evc_schedule_pack(cl, "all", &tries, NULL, "[sdi]", "sum", 5.0,
			     EVC_ABORTED));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_ABORTED);
	is("sum", "100");
	is("calls", "100");
	is("last", "1.0");
	ck_assert_uint_eq(evc_cluster_finished(cl), 100);
	/* It sees its own. */
	OK(evc_schedule_pack(cl, "all", &once, &r, "[sdi]", "sum", 2.0, 0));
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "d", &now));
	ck_assert(now == 102);
	evc_remote_free(r);
	is("last", "2.0");
	/* Without the flag what it did stays. */
	OK(evc_schedule_pack(cl, "all", NULL, NULL, "[sdi]", "sum", 5.0,
			     EVC_ABORTED));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_ABORTED);
	is("sum", "107");
	ck_assert_uint_eq(evc_cluster_finished(cl), 101);
}
END_TEST

/* Between the function and its outcome the variable became a text. */
static evc_status
f_spoil(evc_exec *x, void *arg)
{
	(void)arg;
	if (evc_exec_variable_add(x, "first", 1, NULL) < 0 ||
	    evc_exec_variable_add(x, "spoiled", 1, NULL) < 0)
		return EVC_INTERNAL;
	set_text("spoiled", "no number");
	return 0;
}

START_TEST(a_transaction_that_cannot_be_made_is_an_error)
{
	evc_schedule_opts once = { .flags = EVC_TRANSACTIONAL };
	evc_remote_info info;
	evc_remote *r;

	OK(evc_schedule_call(cl, f_spoil, NULL, NULL, NULL, &once, &r));
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_INVALID_ARGUMENT);
	OK(evc_remote_get(r, &info));
	ck_assert_int_eq(info.code, EVC_INVALID_ARGUMENT);
	HAS(info.text, "spoiled");
	evc_remote_free(r);
	is_not_there("first");
	is("spoiled", "\"no number\"");
	ck_assert_uint_eq(evc_cluster_finished(cl), 0);
}
END_TEST

START_TEST(they_are_there_after_the_stop)
{
	OK(evc_schedule_pack(cl, "count", NULL, NULL, "[sd]", "n", 3.0));
	OK(evc_cluster_join(cl, T_LIMIT));
	OK(evc_request_stop(c, 0, "enough"));
	OK(evc_join(c, NULL, NULL));
	is("n", "3");
	OK(evc_variable_add(cl, "n", 1, NULL));
	is("n", "4");
	ck_assert_uint_eq(evc_cluster_finished(cl), 1);
}
END_TEST

API_MAIN_WITH("variables", setup, teardown, the_program_adds_sets_and_reads,
	      the_program_compares, all_are_seen_in_the_order_of_their_names,
	      mistakes_are_refused, functions_count_exactly,
	      transactions_are_made_once_or_not,
	      a_transaction_that_cannot_be_made_is_an_error,
	      they_are_there_after_the_stop)
