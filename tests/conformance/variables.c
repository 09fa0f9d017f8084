/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a function reads: a worker's function finds in the variables what all
 * functions before it on the same worker have done to them, whether these were
 * transactional or not.
 *
 * Each function makes its variable one more, and returns what it is then: so all
 * results are different, whatever the order in which they are run.
 */
#include "steps.h"

#include "../support/locale_util.h"

#define TIMES 2000

/* [name] -> what it is */
static evc_status
fn_read(evc_exec *x, void *arg)
{
	char name[64];
	int64_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0 ||
	    read_number(x, name, &n) < 0)
		return refused(x);
	return evc_exec_return(x, "I", n);
}

/* [name]: would make it 1000, and fails, twice; then it leaves it alone */
static evc_status
fn_undone(evc_exec *x, void *arg)
{
	evc_exec_info i;
	char name[64];

	(void)arg;
	if (evc_exec_get(x, &i) < 0 ||
	    evc_exec_unpack(x, "[s]", name, sizeof(name)) < 0)
		return refused(x);
	if (i.attempt > 2)
		return 0;
	return set_number(x, name, 1000) < 0 ? refused(x) : EVC_UNAVAILABLE;
}

/* [bytes of a remote]: values that are none, and one that may not be kept */
static evc_status
fn_wrong(evc_exec *x, void *arg)
{
	static const unsigned char none[] = { 0xc1 }, cut[] = { 0x92, 1 },
				   more[] = { 1, 1 }, ext[] = { 0xd4, 99, 0 },
				   one[] = { 1 };
	const evc_value fine = { one, 1 };
	evc_value wrong[] = { { NULL, 0 },	{ NULL, 5 },
			      { none, sizeof(none) }, { cut, sizeof(cut) },
			      { more, sizeof(more) }, { ext, sizeof(ext) } };
	evc_status set, to, from;
	unsigned i;

	(void)arg;
	if (evc_exec_unpack(x, "[B]", &wrong[0].data, &wrong[0].size) < 0)
		return refused(x);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		set = evc_exec_variable_set(x, "w", &wrong[i]);
		to = evc_exec_variable_compare_set(x, "w", NULL, &wrong[i]);
		/* A variable that has another value is compared with it. */
		from = evc_exec_variable_compare_set(x, "w", &wrong[i], &fine);
		if (set != -EVC_INVALID_ARGUMENT ||
		    to != -EVC_INVALID_ARGUMENT ||
		    from != (i == 0 ? -EVC_ABORTED : -EVC_INVALID_ARGUMENT))
			return evc_exec_fail(x, EVC_INTERNAL, "%u: %d %d %d", i,
					     set, to, from);
	}
	return 0;
}

/* ---- rows ---- */

/* Which function, and how it is scheduled. */
struct kind {
	const char *function;
	evc_schedule_opts opts;
	const char *variable;
};

#define ON(worker_) { .worker = (worker_) }
#define WHOLE_ON(worker_) \
	{ .worker = (worker_), .flags = EVC_TRANSACTIONAL }

/* A result of that variable, which no other function had. */
static void
note(bool *seen, int64_t n)
{
	ck_assert_msg(n >= 1 && n <= TIMES && !seen[n],
		      "%lld is the result of two functions", (long long)n);
	seen[n] = true;
}

/* So many together, at most, and as many of each kind: all those of a variable are
   on one worker. */
static void
run_kinds(int most, const struct kind *kinds, int n)
{
	static evc_remote *r[TIMES];
	static bool seen[2][TIMES + 1];
	int i, all = most / n * n, counts[2] = { 0 };
	const struct kind *k;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < all; i++) {
		k = &kinds[i % n];
		r[i] = strcmp(k->function, "count") == 0 ?
			       SCHEDULE_WITH(&k->opts, "count", "[sd]",
					     k->variable, 1.0) :
			       SCHEDULE_WITH(&k->opts, k->function, "[s]",
					     k->variable);
	}
	for (i = 0; i < all; i++) {
		int which = kinds[i % n].variable[0] == 'y';

		note(seen[which], take_number(r[i]));
		counts[which]++;
	}
	OK(join());
	ck_assert(variable("x") == counts[0]);
	ck_assert(variable("y") == counts[1]);
}

#define RUN_KINDS(most, kinds) \
	run_kinds((most), (kinds), (int)(sizeof(kinds) / sizeof((kinds)[0])))

START_TEST(a_transactional_function_reads_what_is_done)
{
	static const struct kind kinds[] = { { "step", WHOLE_ON(NULL), "x" } };

	begin(_i, 1);
	RUN_KINDS(TIMES, kinds);
	ck_assert_uint_eq(evc_cluster_finished(on.cl), TIMES);
}
END_TEST

START_TEST(a_plain_function_reads_what_is_done)
{
	static const struct kind kinds[] = { { "step", ON(NULL), "x" } };

	begin(_i, 1);
	RUN_KINDS(300, kinds);
}
END_TEST

START_TEST(so_does_each_of_two_workers)
{
	static const struct kind kinds[] = {
		{ "step", WHOLE_ON("worker 0"), "x" },
		{ "step", WHOLE_ON("worker 1"), "y" },
	};

	begin(_i, 2);
	RUN_KINDS(300, kinds);
}
END_TEST

/* Plain ones change it at once, transactional ones when they have ended. */
START_TEST(plain_and_transactional_functions_take_turns)
{
	static const struct kind kinds[] = {
		{ "step", WHOLE_ON("worker 0"), "x" },
		{ "step", ON("worker 0"), "x" },
		{ "step", WHOLE_ON("worker 0"), "x" },
		{ "compare", ON("worker 0"), "x" },
		{ "count", WHOLE_ON("worker 0"), "x" },
		{ "count", ON("worker 0"), "x" },
		{ "count", WHOLE_ON("worker 0"), "x" },
	};

	begin(_i, 2);
	RUN_KINDS(300, kinds);
}
END_TEST

START_TEST(what_has_failed_is_not_found)
{
	static const evc_schedule_opts whole = WHOLE_ON("worker 0");
	evc_schedule_opts fails = whole;
	evc_remote *r[100];
	int i;

	fails.retry = (evc_backoff){ .times = 2, .first = 0.001 };
	begin(_i, 2);
	for (i = 0; i < 100; i++)
		r[i] = i % 2 == 0 ?
			       SCHEDULE_WITH(&fails, "undone", "[s]", "x") :
			       SCHEDULE_WITH(&whole, "read", "[s]", "x");
	for (i = 0; i < 100; i++)
		if (i % 2 == 0)
			evc_remote_free(r[i]);
		else
			IS(take_number(r[i]), 0);
	OK(join());
	ck_assert(variable("x") == 0);
	ck_assert_uint_eq(numbers().n_retries, 100);
}
END_TEST

START_TEST(values_that_are_none)
{
	static const evc_schedule_opts opts[] = {
		{ .flags = 0 },
		{ .flags = EVC_TRANSACTIONAL },
	};
	evc_remote *made, *r;
	evc_value v;
	unsigned i;

	begin(_i, 1);
	made = SCHEDULE("echo", "[i]", 1);
	OK(evc_pack(&v, "r", made));
	for (i = 0; i < 2; i++) {
		r = SCHEDULE_WITH(&opts[i], "wrong", "[B]", v.data, v.size);
		OK(code_of(r));
		evc_remote_free(r);
	}
	evc_value_free(&v);
	evc_remote_free(made);
	OK(join());
	IS(evc_variable_get(on.cl, "w", &v), -EVC_NOT_FOUND);
	ck_assert_uint_eq(numbers().n_lost, 0);
}
END_TEST

/* []: whether a refused read leaves alone what it would have filled, but for nil
   in place of what is missing; and one that succeeds the text of an error */
static evc_status
fn_missing(evc_exec *x, void *arg)
{
	evc_value seven = { x, 7 };
	double zero = 7;
	int alone;

	(void)arg;
	(void)evc_refuse(0, "this one");
	if (evc_exec_variable_number(x, "missing", &zero) < 0)
		return refused(x);
	alone = zero == 0 && strcmp(evc_last_error(), "this one") == 0;
	alone &= evc_exec_variable_get(x, "", &seven) == -EVC_INVALID_ARGUMENT;
	alone &= seven.data == (void *)x && seven.size == 7;
	alone &= evc_exec_variable_get(x, "missing", &seven) == -EVC_NOT_FOUND;
	alone &= seven.data == NULL && seven.size == 0;
	seven.size = 7;
	alone &= evc_exec_variable_get_loose(x, "missing", &seven) ==
		 -EVC_NOT_FOUND;
	alone &= seven.data == NULL && seven.size == 0;
	return evc_exec_return(x, "i", alone);
}

START_TEST(what_is_missing_leaves_all_as_it_is)
{
	evc_value minus_zero = PACKED("d", -0.0);
	static const evc_schedule_opts whole = { .flags = EVC_TRANSACTIONAL };
	evc_value seven = { &seven, 7 };
	evc_per_worker *none = (evc_per_worker *)&seven;
	double zero = 7;

	begin(_i, 1);
	ck_assert_int_eq(take_number(SCHEDULE("missing", "[]")), 1);
	ck_assert_int_eq(take_number(SCHEDULE_WITH(&whole, "missing", "[]")),
			 1);
	(void)evc_refuse(0, "this one");
	OK(evc_variable_set(on.cl, "minus", &minus_zero));
	OK(evc_variable_number(on.cl, "minus", &zero));
	ck_assert(zero == 0 && signbit(zero));
	evc_value_free(&minus_zero);
	OK(evc_variable_number(on.cl, "missing", &zero));
	ck_assert(zero == 0);
	ck_assert_str_eq(evc_last_error(), "this one");
	IS(evc_variable_get(on.cl, "", &seven), -EVC_INVALID_ARGUMENT);
	ck_assert(seven.data == &seven && seven.size == 7);
	IS(evc_variable_get(on.cl, "missing", &seven), -EVC_NOT_FOUND);
	ck_assert(seven.data == NULL && seven.size == 0);
	IS(evc_per_worker_value(on.cl, "", "missing", NULL, &none),
	   -EVC_INVALID_ARGUMENT);
	ck_assert_ptr_eq(none, (evc_per_worker *)&seven);
	/* Without a function there is nothing to go on with. */
	ck_assert(evc_exec_should_stop(NULL));
	ck_assert(evc_exec_wait_for_stop(NULL, INFINITY));
	ck_assert_ptr_null(evc_exec_coord(NULL));
	OK(join());
}
END_TEST

/* Texts between machines have a point in every locale. */
START_TEST(halves_are_added_where_they_have_a_comma)
{
	static const evc_schedule_opts whole = { .flags = EVC_TRANSACTIONAL };
	double now = 0;

	if (!comma_begin()) {
		comma_end();
		T_SKIP("there is no locale here that writes 0,5");
	}
	begin(_i, 1);
	OK(evc_variable_add(on.cl, "x", 0.5, &now));
	ck_assert(now == 0.5);
	ck_assert_int_eq(take_number(SCHEDULE("count", "[sd]", "x", 1.25)), 1);
	ck_assert_int_eq(take_number(SCHEDULE_WITH(&whole, "count", "[sd]", "x",
						   1.25)),
			 3);
	OK(evc_variable_number(on.cl, "x", &now));
	ck_assert(now == 3);
	evc_cluster_close(on.cl);
	on.cl = NULL;
	comma_end();
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	STEP_FUNCTIONS,
	{ .name = "read", .fn = fn_read },
	{ .name = "undone", .fn = fn_undone },
	{ .name = "wrong", .fn = fn_wrong },
	{ .name = "missing", .fn = fn_missing },
};

CONFORMANCE_MAIN("variables", functions,
		 ROW(a_transactional_function_reads_what_is_done),
		 ROW(a_plain_function_reads_what_is_done),
		 ROW(so_does_each_of_two_workers),
		 ROW(plain_and_transactional_functions_take_turns),
		 ROW(what_has_failed_is_not_found), ROW(values_that_are_none),
		 ROW(what_is_missing_leaves_all_as_it_is),
		 ROW(halves_are_added_where_they_have_a_comma))
