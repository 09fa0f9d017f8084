/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remotes and per-worker values inside of values: what they look like there,
 * and what a function finds in their places, at any depth.
 */
#include "../support/api_util.h"

#include <evcoord/cluster.h>

/* ---- the functions ---- */

static evc_status
fn_echo(evc_exec *x, void *arg)
{
	evc_value v;

	(void)arg;
	return evc_exec_unpack(x, "[v]", &v) < 0 ?
		       evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error()) :
		       evc_exec_return(x, "v", &v);
}

/* Anything but a map with a word and what this worker has is refused. */
static evc_status
fn_use(evc_exec *x, void *arg)
{
	evc_local *local = NULL;
	char word[16] = "";
	evc_value v;

	(void)arg;
	if (evc_exec_unpack(x, "[{word:s own:[w]}]", word, sizeof(word),
			    &local) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	if (local == NULL || evc_exec_unpack(x, "[v]", &v) < 0)
		return evc_exec_fail(x, EVC_INTERNAL, "nothing was filled in");
	return evc_exec_return(x, "s", word);
}

static const evc_function functions[] = {
	{ .name = "echo", .fn = fn_echo },
	{ .name = "use", .fn = fn_use },
};

struct stage {
	evc_coord *c;
	evc_cluster *cl;
};

static void
begin(struct stage *s)
{
	evc_cluster_config k = { .functions = functions, .n_functions = 2 };

	OK(evc_new(NULL, NULL, &s->c));
	OK(evc_cluster_open(s->c, "threads://2", &k, &s->cl));
}

static void
end(struct stage *s)
{
	evc_verdict v;

	evc_cluster_close(s->cl);
	OK(evc_request_stop(s->c, 0, "over"));
	ck_assert_int_ge(evc_join(s->c, NULL, &v), 0);
	OK(evc_free(s->c));
}

/* ---- the tests ---- */

START_TEST(a_remote_in_a_value)
{
	struct stage s;
	evc_remote *r = NULL, *around = NULL;
	evc_value v, e, result;
	char text[64];
	unsigned u = 0;

	begin(&s);
	OK(evc_schedule_pack(s.cl, "echo", NULL, &r, "[{a:[u]}]", 7u));
	OK(evc_pack(&v, "[[r] {k:r}]", r, r));
	OK(evc_value_check(&v));
	OK(evc_unpack(&v, "[[v]*]", &e));
	ck_assert_uint_eq(evc_value_type(&e), EVC_VALUE_REMOTE);
	ck_assert_uint_eq(evc_value_count(&e), 0);
	evc_value_print(&e, text, sizeof(text));
	HAS(text, "<remote ");
	REFUSED(EVC_INVALID_ARGUMENT, evc_unpack(&v, "[[u]*]", &u));
	ck_assert_str_eq(evc_last_error(),
			 "in [0][0]: a remote, not an integer");

	/* In its places stands the result. */
	OK(evc_schedule_pack(s.cl, "echo", NULL, &around, "[v]", &v));
	OK(evc_remote_fetch(around, INFINITY, &result));
	OK(evc_unpack(&result, "[[{a:[u]}] {k:{a:[*]}}]", &u));
	ck_assert_uint_eq(u, 7);
	evc_value_free(&v);
	evc_remote_free(around);
	evc_remote_free(r);
	end(&s);
}
END_TEST

START_TEST(a_result_that_is_nil)
{
	struct stage s;
	evc_remote *r = NULL, *around = NULL;
	evc_value result;

	begin(&s);
	OK(evc_schedule_pack(s.cl, "echo", NULL, &r, "[n]"));
	OK(evc_schedule_pack(s.cl, "echo", NULL, &around, "[[r r]]", r, r));
	OK(evc_remote_fetch(around, INFINITY, &result));
	OK(evc_unpack(&result, "[nn]"));
	evc_remote_free(around);
	evc_remote_free(r);
	end(&s);
}
END_TEST

START_TEST(results_that_are_too_deep_in_their_places)
{
	char deep[2 * 20 + 1];
	struct stage s;
	evc_remote *r = NULL, *around = NULL;
	evc_value v, e, result = { NULL, 0 };

	begin(&s);
	memset(deep, '[', 20);
	memset(deep + 20, ']', 20);
	deep[40] = '\0';
	OK(evc_pack(&v, deep));
	OK(evc_schedule_pack(s.cl, "echo", NULL, &r, "[v]", &v));
	evc_value_free(&v);
	OK(evc_pack(&v, "[[[[[[[[[[[[[[[r]]]]]]]]]]]]]]]", r));
	OK(evc_schedule(s.cl, "echo", &v, NULL, NULL, &around));
	ck_assert_int_eq(evc_remote_fetch(around, INFINITY, &result),
			 EVC_INVALID_ARGUMENT);
	OK(evc_remote_fetch(r, INFINITY, &e));
	ck_assert_int_eq(evc_cluster_join(s.cl, INFINITY),
			 EVC_INVALID_ARGUMENT);
	evc_value_free(&v);
	evc_remote_free(around);
	evc_remote_free(r);
	end(&s);
}
END_TEST

/* ---- arrays of remotes ---- */

#define MANY 10000

static evc_status
sum_of(const evc_value *all, size_t *ret_n, int64_t *ret_sum)
{
	evc_value e;
	size_t at = 0;
	int64_t n;

	*ret_n = evc_value_count(all);
	*ret_sum = 0;
	while (evc_value_next(all, &at, NULL, &e)) {
		if (evc_unpack(&e, "[I]", &n) < 0)
			return -EVC_INVALID_ARGUMENT;
		*ret_sum += n;
	}
	return 0;
}

START_TEST(an_array_of_remotes)
{
	static evc_remote *r[MANY];
	evc_remote *around = NULL;
	evc_value v, all, result;
	struct stage s;
	int64_t sum;
	size_t n;
	int i;

	begin(&s);
	for (i = 0; i < MANY; i++)
		OK(evc_schedule_pack(s.cl, "echo", NULL, &r[i], "[[i]]", i));
	/* As an argument, beside others ... */
	OK(evc_schedule_pack(s.cl, "echo", NULL, &around, "[{all:R n:U}]", r,
			     (size_t)MANY, (uint64_t)MANY));
	OK(evc_remote_fetch(around, INFINITY, &result));
	OK(evc_unpack(&result, "{all:v n:U}", &all, &(uint64_t){ 0 }));
	OK(sum_of(&all, &n, &sum));
	ck_assert_uint_eq(n, MANY);
	ck_assert_int_eq(sum, (int64_t)MANY * (MANY - 1) / 2);
	/* ... and as all of a value, of which some are there twice. */
	evc_remote_free(r[1]);
	r[1] = r[0];
	OK(evc_pack(&v, "R", r, (size_t)3));
	ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_ARRAY);
	OK(evc_fetch(s.cl, &v, INFINITY, &all));
	OK(sum_of(&all, &n, &sum));
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(sum, 2);
	evc_value_free(&all);
	evc_value_free(&v);
	evc_remote_free(around);
	r[1] = NULL;
	for (i = 0; i < MANY; i++)
		evc_remote_free(r[i]);
	end(&s);
}
END_TEST

START_TEST(an_array_without_remotes)
{
	evc_remote *none[1] = { NULL };
	evc_value v;

	OK(evc_pack(&v, "[R i]", none, (size_t)0, 7));
	ck_assert_uint_eq(v.size, 3);
	OK(evc_unpack(&v, "[[] i]", &(int){ 0 }));
	evc_value_free(&v);
	OK(evc_pack(&v, "R", NULL, (size_t)0));
	ck_assert_uint_eq(evc_value_count(&v), 0);
	ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_ARRAY);
	evc_value_free(&v);
}
END_TEST

START_TEST(arrays_of_remotes_that_are_refused)
{
	char deep[2 * EVC_VALUE_DEPTH + 2] = "";
	struct stage s, other;
	evc_remote *r[3] = { NULL };
	evc_value v = { NULL, 0 }, result;

	begin(&s);
	begin(&other);
	OK(evc_schedule_pack(s.cl, "echo", NULL, &r[0], "[i]", 1));
	OK(evc_schedule_pack(other.cl, "echo", NULL, &r[2], "[i]", 2));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&v, "[R]", NULL, (size_t)3));
	HAS(evc_last_error(), "remotes at NULL");
	/* With 32 bits no number is too large. */
	if (SIZE_MAX > UINT32_MAX)
		REFUSED(EVC_RESOURCE_EXHAUSTED, evc_pack(&v, "R", r, SIZE_MAX));
	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&v, "R", r, (size_t)3));
	HAS(evc_last_error(), "a remote that is NULL");
	ck_assert_ptr_null(v.data);
	/* It is an array, and so a level of its own. */
	memset(deep, '[', EVC_VALUE_DEPTH);
	deep[EVC_VALUE_DEPTH] = 'R';
	memset(deep + EVC_VALUE_DEPTH + 1, ']', EVC_VALUE_DEPTH);
	REFUSED(EVC_INVALID_ARGUMENT, evc_pack(&v, deep, r, (size_t)1));
	HAS(evc_last_error(), "too deep");
	/* Only to pack. */
	OK(evc_pack(&v, "R", r, (size_t)1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_unpack(&v, "R", r, &(size_t){ 0 }));
	HAS(evc_last_error(), "R cannot stand here");
	evc_value_free(&v);
	/* One of another cluster means nothing to this one. */
	r[1] = r[0];
	OK(evc_pack(&v, "[R]", r, (size_t)3));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(s.cl, "echo", &v, NULL, NULL, NULL));
	HAS(evc_last_error(), "of another cluster");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_fetch(s.cl, &v, INFINITY, &result));
	evc_value_free(&v);
	evc_remote_free(r[0]);
	evc_remote_free(r[2]);
	end(&other);
	end(&s);
}
END_TEST

START_TEST(a_per_worker_value_in_a_value)
{
	evc_value v, e, args = { "\x91\x05", 2 }, result = { NULL, 0 };
	struct stage s;
	evc_remote *r = NULL;
	evc_per_worker *own = NULL;
	char text[64];

	begin(&s);
	OK(evc_per_worker_value(s.cl, "own", "echo", &args, &own));
	OK(evc_pack(&v, "[{word:s own:[w]}]", "hello", own));
	OK(evc_unpack(&v, "[{own:[v]}]", &e));
	ck_assert_uint_eq(evc_value_type(&e), EVC_VALUE_PER_WORKER);
	evc_value_print(&e, text, sizeof(text));
	HAS(text, "<per-worker value ");
	/* It means nothing outside of a function. */
	REFUSED(EVC_INVALID_ARGUMENT, evc_unpack(&v, "[{own:[w]}]", &e));

	OK(evc_schedule(s.cl, "use", &v, NULL, NULL, &r));
	OK(evc_remote_fetch(r, INFINITY, &result));
	OK(evc_unpack(&result, "s", text, sizeof(text)));
	ck_assert_str_eq(text, "hello");
	evc_remote_free(r);
	/* A function cannot give one back. */
	OK(evc_schedule(s.cl, "echo", &v, NULL, NULL, &r));
	ck_assert_int_eq(evc_remote_fetch(r, INFINITY, &result),
			 EVC_INVALID_ARGUMENT);
	ck_assert_int_eq(evc_cluster_join(s.cl, INFINITY),
			 EVC_INVALID_ARGUMENT);
	evc_remote_free(r);
	evc_value_free(&v);
	evc_per_worker_free(own);
	end(&s);
}
END_TEST

API_MAIN("value_refs", a_remote_in_a_value, a_result_that_is_nil,
	 results_that_are_too_deep_in_their_places, an_array_of_remotes,
	 an_array_without_remotes, arrays_of_remotes_that_are_refused,
	 a_per_worker_value_in_a_value)
