/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each worker has its own of, mostly on workers that are threads: values,
 * datasets, iterators, what they are made of, who may use them, and that
 * nothing of them is left when they are dropped.
 */
#include "../support/cluster_util.h"

#define WORKERS 3

/* ---- what workers keep, counted ---- */

static atomic_int n_states, n_sets, n_iterators, n_built;

struct range {
	int next, end;
};

static void
state_free(void *state)
{
	free(state);
	atomic_fetch_sub(&n_states, 1);
}

static evc_status
f_state(evc_exec *x, void *arg)
{
	static const evc_keep_ops ops = { .free = state_free };
	int *state = malloc(sizeof *state);

	(void)arg;
	*state = 0;
	(void)evc_exec_unpack(x, "[i]", state);
	atomic_fetch_add(&n_states, 1);
	atomic_fetch_add(&n_built, 1);
	return evc_exec_keep(x, &ops, state);
}

/* A value that is returned instead. */
static evc_status
f_plain(evc_exec *x, void *arg)
{
	(void)arg;
	atomic_fetch_add(&n_built, 1);
	return evc_exec_return(x, "s", "returned");
}

/* [index]: only this worker cannot build it; [-1]: none can. */
static evc_status
f_broken(evc_exec *x, void *arg)
{
	evc_exec_info info;
	int index;

	(void)arg;
	if (evc_exec_get(x, &info) < 0 || evc_exec_unpack(x, "[i]", &index) < 0)
		return EVC_INTERNAL;
	if (index < 0 || (unsigned)index == info.worker_index)
		return evc_exec_fail(x, EVC_DATA_LOSS, "it is broken");
	return evc_exec_return(x, "i", index);
}

static evc_status
range_iterate(evc_exec *x, void *state, void **ret)
{
	struct range *it = malloc(sizeof *it);

	(void)x;
	*it = *(struct range *)state;
	*ret = it;
	atomic_fetch_add(&n_iterators, 1);
	return 0;
}

static evc_status
range_next(evc_exec *x, void *iterator)
{
	struct range *it = iterator;

	return it->next < it->end ? evc_exec_return(x, "i", it->next++)
				  : EVC_OUT_OF_RANGE;
}

static void
range_free_iterator(void *iterator)
{
	free(iterator);
	atomic_fetch_sub(&n_iterators, 1);
}

static void
range_free(void *state)
{
	free(state);
	atomic_fetch_sub(&n_sets, 1);
}

static evc_status
f_range(evc_exec *x, void *arg)
{
	static const evc_keep_ops ops = {
		.iterate = range_iterate,
		.next = range_next,
		.free_iterator = range_free_iterator,
		.free = range_free,
	};
	struct range *state = malloc(sizeof *state);

	(void)arg;
	if (evc_exec_unpack(x, "[ii]", &state->next, &state->end) < 0) {
		free(state);
		return EVC_INVALID_ARGUMENT;
	}
	atomic_fetch_add(&n_sets, 1);
	return evc_exec_keep(x, &ops, state);
}

static evc_status
f_twice(evc_exec *x, void *arg)
{
	int n;

	(void)arg;
	return evc_exec_unpack(x, "[i]", &n) < 0
		       ? EVC_INVALID_ARGUMENT
		       : evc_exec_return(x, "i", 2 * n);
}

/* ---- who uses it ---- */

static evc_status
f_bump(evc_exec *x, void *arg)
{
	evc_local *l;
	int *state;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &l) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	state = evc_local_state(l);
	return evc_exec_return(x, "i", ++*state);
}

static evc_status
f_read(evc_exec *x, void *arg)
{
	evc_local *l;

	(void)arg;
	if (evc_exec_unpack(x, "[{here:[*w]}]", &l) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_return(x, "v", evc_local_value(l));
}

/* [iterator most]: "1 2 3", and how it ended. */
static evc_status
f_take(evc_exec *x, void *arg)
{
	char text[400] = "";
	evc_status st = 0;
	evc_local *it;
	evc_value v;
	size_t n = 0;
	int most, k;

	(void)arg;
	if (evc_exec_unpack(x, "[wi]", &it, &most) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	while (most-- > 0 && (st = evc_exec_next(x, it, &v)) == 0) {
		if (evc_unpack(&v, "i", &k) < 0)
			return EVC_INTERNAL;
		n += (size_t)snprintf(text + n, sizeof text - n, "%d ", k);
	}
	if (st != 0)
		snprintf(text + n, sizeof text - n, "(%d)", st);
	return evc_exec_return(x, "s", text);
}

/* The next element, whatever it is. */
static evc_status
f_skip(evc_exec *x, void *arg)
{
	evc_local *it;
	evc_value v;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &it) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_next(x, it, &v);
}

static const evc_function table[] = {
	{ .name = "state", .fn = f_state },
	{ .name = "plain", .fn = f_plain },
	{ .name = "broken", .fn = f_broken },
	{ .name = "range", .fn = f_range },
	{ .name = "twice", .fn = f_twice },
	{ .name = "bump", .fn = f_bump },
	{ .name = "read", .fn = f_read },
	{ .name = "take", .fn = f_take },
	{ .name = "skip", .fn = f_skip },
	{ .name = "echo", .fn = f_echo },
	{ .name = "add", .fn = f_add },
};

/* ---- the cluster ---- */

static evc_coord *c;
static evc_cluster *cl;
static char workers[WORKERS][48];

static bool
are_up(void)
{
	evc_cluster_worker_info w;
	unsigned i;

	for (i = 0; i < WORKERS; i++) {
		if (evc_cluster_worker_get(cl, i, &w) < 0 ||
		    w.state != EVC_WORKER_UP)
			return false;
		snprintf(workers[i], sizeof workers[i], "%s", w.name);
	}
	return true;
}

static void
setup(void)
{
	evc_cluster_config config = { .functions = table,
				      .n_functions =
					      sizeof table / sizeof table[0] };

	OK(evc_new(NULL, NULL, &c));
	cl = open_with(c, "threads://3", &config);
	UNTIL(are_up());
}

static bool
nothing_is_kept(void)
{
	return atomic_load(&n_states) + atomic_load(&n_sets) +
		       atomic_load(&n_iterators) ==
	       0;
}

static void
teardown(void)
{
	evc_cluster_close(cl);
	end_coord(c);
	ck_assert(nothing_is_kept());
}

static evc_value *
packed(evc_value v)
{
	static evc_value kept;

	evc_value_free(&kept);
	kept = v;
	return &kept;
}

/* Arguments for one call. */
#define ARGS(...) \
	__extension__({ \
		evc_value args_; \
		OK(evc_pack(&args_, __VA_ARGS__)); \
		packed(args_); \
	})

static evc_per_worker *
value(const char *function, const evc_value *args)
{
	evc_per_worker *p = NULL;

	ck_assert_msg(evc_per_worker_value(cl, "thing", function, args, &p) ==
			      0,
		      "%s", evc_last_error());
	return p;
}

static evc_per_worker *
range(int from, int to, const evc_dataset_opts *opts)
{
	evc_per_worker *p = NULL;

	ck_assert_msg(evc_per_worker_dataset(cl, "set", "range",
					     ARGS("[ii]", from, to), opts,
					     &p) == 0,
		      "%s", evc_last_error());
	return p;
}

static evc_per_worker *
numbers(const evc_dataset_opts *opts)
{
	evc_per_worker *p = NULL;

	OK(evc_per_worker_dataset_of(
		cl, "set", ARGS("[iiiiii]", 1, 2, 3, 4, 5, 6), opts, &p));
	return p;
}

static evc_per_worker *
iterator(evc_per_worker *dataset)
{
	evc_per_worker *it = NULL;

	OK(evc_per_worker_iterator(dataset, &it));
	return it;
}

static evc_remote *
on(unsigned worker, const char *function, const evc_value *args)
{
	evc_schedule_opts o = { .worker = workers[worker] };
	evc_remote *r = NULL;

	ck_assert_msg(evc_schedule(cl, function, args, NULL, &o, &r) == 0, "%s",
		      evc_last_error());
	return r;
}

static void
gives(evc_remote *r, const char *text)
{
	evc_value v;
	evc_status st = evc_remote_fetch(r, T_LIMIT, &v);

	ck_assert_msg(st == 0, "%d: %s", st, evc_last_error());
	IS_VALUE(&v, text);
	evc_remote_free(r);
}

/* What this worker takes of an iterator. */
#define TAKES(worker, it, most, text) \
	gives(on((worker), "take", ARGS("[wi]", (it), (most))), "\"" text "\"")

/* ---- values ---- */

START_TEST(each_worker_has_a_state_of_its_own)
{
	evc_per_worker *p = value("state", ARGS("[i]", 10));
	unsigned i;

	UNTIL(atomic_load(&n_states) == WORKERS);
	for (i = 0; i < WORKERS; i++)
		gives(on(i, "bump", ARGS("[w]", p)), "11");
	gives(on(1, "bump", ARGS("[w]", p)), "12");
	gives(on(0, "bump", ARGS("[w]", p)), "12");
	gives(on(1, "bump", ARGS("[w]", p)), "13");
	ck_assert_int_eq(atomic_load(&n_built), WORKERS);
	evc_per_worker_free(p);
	UNTIL(nothing_is_kept());
}
END_TEST

START_TEST(a_value_may_be_returned_and_stand_anywhere)
{
	evc_per_worker *p = value("plain", NULL);
	evc_value v;

	OK(evc_pack(&v, "[{here:[iw]}]", 1, p));
	ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_ARRAY);
	gives(on(2, "read", &v), "\"returned\"");
	evc_value_free(&v);
	OK(evc_pack(&v, "w", p));
	ck_assert_uint_eq(evc_value_type(&v), EVC_VALUE_PER_WORKER);
	evc_value_free(&v);
	evc_per_worker_free(p);
}
END_TEST

START_TEST(it_is_kept_for_functions_that_use_it)
{
	evc_per_worker *p = value("state", NULL);
	evc_remote *r, *last = NULL;
	evc_value args, v;
	int i, n;

	OK(evc_pack(&args, "[w]", p));
	for (i = 0; i < 200; i++) {
		OK(evc_schedule(cl, "bump", &args, NULL, NULL, &r));
		evc_remote_free(last);
		last = r;
	}
	evc_per_worker_free(p);
	/* No more of them, but those that there are end well. */
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_schedule(cl, "bump", &args, NULL, NULL, NULL));
	OK(evc_cluster_join(cl, T_LIMIT));
	OK(evc_remote_fetch(last, 0, &v));
	OK(evc_unpack(&v, "i", &n));
	ck_assert_int_gt(n, 0);
	evc_remote_free(last);
	evc_value_free(&args);
	UNTIL(nothing_is_kept());
}
END_TEST

/* ---- datasets ---- */

START_TEST(a_dataset_of_a_function_comes_to_its_end)
{
	evc_per_worker *d = range(1, 4, NULL), *it = iterator(d);

	TAKES(0, it, 2, "1 2 ");
	TAKES(1, it, 9, "1 2 3 (11)");
	TAKES(0, it, 9, "3 (11)");
	TAKES(0, it, 9, "(11)");
	evc_per_worker_free(it);
	it = iterator(d);
	/* Fresh ones begin anew. */
	TAKES(0, it, 9, "1 2 3 (11)");
	evc_per_worker_free(d);
	/* The iterator keeps it. */
	TAKES(2, it, 9, "1 2 3 (11)");
	ck_assert_int_eq(atomic_load(&n_sets), WORKERS);
	evc_per_worker_free(it);
	UNTIL(nothing_is_kept());
}
END_TEST

START_TEST(elements_are_a_dataset)
{
	evc_per_worker *d = numbers(NULL), *it = iterator(d);

	TAKES(0, it, 9, "1 2 3 4 5 6 (11)");
	TAKES(1, it, 3, "1 2 3 ");
	evc_per_worker_free(it);
	evc_per_worker_free(d);
	/* None at all is one too. */
	OK(evc_per_worker_dataset_of(cl, "none", ARGS("[]"), NULL, &d));
	it = iterator(d);
	TAKES(0, it, 9, "(11)");
	evc_per_worker_free(it);
	evc_per_worker_free(d);
}
END_TEST

START_TEST(elements_are_mapped_and_repeated)
{
	evc_dataset_opts twice = { .map = "twice", .repeat = 2 };
	evc_dataset_opts endless = { .repeat = UINT64_MAX };
	evc_per_worker *d, *it;
	int by_function;

	for (by_function = 0; by_function < 2; by_function++) {
		d = by_function ? range(1, 7, &twice) : numbers(&twice);
		it = iterator(d);
		TAKES(0, it, 4, "2 4 6 8 ");
		TAKES(0, it, 99, "10 12 2 4 6 8 10 12 (11)");
		evc_per_worker_free(it);
		evc_per_worker_free(d);
		d = by_function ? range(1, 7, &endless) : numbers(&endless);
		it = iterator(d);
		TAKES(1, it, 14, "1 2 3 4 5 6 1 2 3 4 5 6 1 2 ");
		evc_per_worker_free(it);
		evc_per_worker_free(d);
	}
	UNTIL(nothing_is_kept());
}
END_TEST

/* What it takes, all of it: sorted it is what there is. */
static void
take_all(unsigned worker, evc_per_worker *it, char *ret, size_t n)
{
	evc_remote *r = on(worker, "take", ARGS("[wi]", it, 99));
	int a[6], i, seen = 0;
	evc_value v;

	OK(evc_remote_fetch(r, T_LIMIT, &v));
	OK(evc_unpack(&v, "s", ret, n));
	evc_remote_free(r);
	ck_assert_int_eq(sscanf(ret, "%d %d %d %d %d %d", &a[0], &a[1], &a[2],
				&a[3], &a[4], &a[5]),
			 6);
	for (i = 0; i < 6; i++)
		seen |= 1 << a[i];
	ck_assert_int_eq(seen, 0x7e);
}

START_TEST(a_seed_is_one_order_and_none_is_many)
{
	evc_dataset_opts o = { .shuffle = true, .seed = 77 };
	evc_per_worker *d = numbers(&o), *it = iterator(d);
	char text[WORKERS][100], again[100];
	int i, differ = 0;

	for (i = 0; i < WORKERS; i++) {
		take_all((unsigned)i, it, text[i], sizeof text[i]);
		ck_assert_str_eq(text[i], text[0]);
	}
	evc_per_worker_free(it);
	evc_per_worker_free(d);
	o.seed = 0;
	d = numbers(&o);
	/* One in 720 to the power of 40 says wrong. */
	for (i = 0; i < 40; i++) {
		it = iterator(d);
		take_all((unsigned)i % WORKERS, it, again, sizeof again);
		differ += strcmp(again, text[0]) != 0;
		evc_per_worker_free(it);
	}
	ck_assert_int_gt(differ, 0);
	evc_per_worker_free(d);
}
END_TEST

/* ---- what cannot be built ---- */

START_TEST(a_failed_build_is_the_error_of_who_uses_it)
{
	evc_per_worker *p = value("broken", ARGS("[i]", -1));
	evc_remote_info info;
	evc_remote *r;
	unsigned i;

	/* Nobody else hears of it. */
	for (i = 0; i < 30; i++)
		OK(evc_schedule_pack(cl, "add", NULL, NULL, "[ii]", 1, 2));
	OK(evc_cluster_join(cl, T_LIMIT));
	for (i = 0; i < WORKERS; i++) {
		r = on(i, "bump", ARGS("[w]", p));
		ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL),
				 EVC_DATA_LOSS);
		OK(evc_remote_get(r, &info));
		ck_assert_uint_eq(info.kind, EVC_FAILED_INPUT);
		ck_assert_int_eq(info.code, EVC_DATA_LOSS);
		HAS(info.text, "thing");
		HAS(info.text, workers[i]);
		HAS(info.text, "it is broken");
		evc_remote_free(r);
		ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
		OK(evc_cluster_join(cl, T_LIMIT));
	}
	evc_per_worker_free(p);
	OK(evc_cluster_join(cl, T_LIMIT));
}
END_TEST

START_TEST(it_fails_where_it_could_not_be_built_alone)
{
	evc_per_worker *p = value("broken", ARGS("[i]", 1));
	evc_remote *r;
	evc_value v;

	OK(evc_pack(&v, "[{here:[iw]}]", 0, p));
	gives(on(0, "read", &v), "1");
	gives(on(2, "read", &v), "1");
	r = on(1, "read", &v);
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_DATA_LOSS);
	evc_remote_free(r);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	gives(on(0, "read", &v), "1");
	evc_value_free(&v);
	evc_per_worker_free(p);
}
END_TEST

START_TEST(what_keeps_no_dataset_has_no_iterators)
{
	evc_per_worker *d = NULL, *it;
	evc_remote *r;

	/* It is built, but it has no iterate. */
	OK(evc_per_worker_dataset(cl, "set", "state", NULL, NULL, &d));
	it = iterator(d);
	r = on(0, "take", ARGS("[wi]", it, 1));
	ck_assert_int_gt(evc_remote_fetch(r, T_LIMIT, NULL), 0);
	evc_remote_free(r);
	ck_assert_int_gt(evc_cluster_join(cl, T_LIMIT), 0);
	evc_per_worker_free(it);
	evc_per_worker_free(d);
	UNTIL(nothing_is_kept());
}
END_TEST

/* ---- refusals ---- */

START_TEST(mistakes_are_refused)
{
	evc_dataset_opts shuffle = { .shuffle = true };
	evc_dataset_opts unknown = { .map = "nobody" };
	evc_dataset_opts reserved = { .reserved_ = { 1 } };
	char name[49];
	evc_per_worker *p = value("plain", NULL), *q = p;
	evc_value v = { &v, 7 };
	evc_remote *r;

	memset(name, 'n', 48);
	name[48] = '\0';
#define NO(call) \
	do { \
		q = p; \
		REFUSED(EVC_INVALID_ARGUMENT, (call)); \
		ck_assert_ptr_eq(q, p); \
	} while (0)
	NO(evc_per_worker_value(NULL, "a", "plain", NULL, &q));
	NO(evc_per_worker_value(cl, NULL, "plain", NULL, &q));
	NO(evc_per_worker_value(cl, "", "plain", NULL, &q));
	NO(evc_per_worker_value(cl, name, "plain", NULL, &q));
	NO(evc_per_worker_value(cl, "a", NULL, NULL, &q));
	NO(evc_per_worker_value(cl, "a", "", NULL, &q));
	NO(evc_per_worker_value(cl, "a", name, NULL, &q));
	NO(evc_per_worker_value(cl, "a", "plain", NULL, NULL));
	NO(evc_per_worker_value(cl, "a", "nobody", NULL, &q));
	HAS(evc_last_error(), "nobody");
	NO(evc_per_worker_value(cl, "a", "plain", ARGS("i", 1), &q));
	NO(evc_per_worker_value(cl, "a", "plain", ARGS("[w]", p), &q));
	HAS(evc_last_error(), "per-worker value");
	OK(evc_schedule_pack(cl, "add", NULL, &r, "[ii]", 1, 2));
	NO(evc_per_worker_value(cl, "a", "plain", ARGS("[[r]]", r), &q));
	HAS(evc_last_error(), "remote");
	evc_remote_free(r);
	NO(evc_per_worker_dataset(cl, "a", "range", NULL, &shuffle, &q));
	NO(evc_per_worker_dataset(cl, "a", "range", NULL, &unknown, &q));
	NO(evc_per_worker_dataset(cl, "a", "range", NULL, &reserved, &q));
	NO(evc_per_worker_dataset_of(cl, "a", NULL, NULL, &q));
	NO(evc_per_worker_dataset_of(cl, "a", ARGS("{}"), NULL, &q));
	NO(evc_per_worker_dataset_of(cl, "a", ARGS("[w]", p), NULL, &q));
	NO(evc_per_worker_iterator(NULL, &q));
	NO(evc_per_worker_iterator(p, &q));
	HAS(evc_last_error(), "no dataset");
	REFUSED(EVC_UNIMPLEMENTED, evc_per_worker_next(p, &v));
	HAS(evc_last_error(), "evc_schedule");
	ck_assert_ptr_eq(v.data, &v);
	REFUSED(EVC_UNIMPLEMENTED, evc_per_worker_next(NULL, NULL));
	evc_per_worker_free(NULL);
	evc_per_worker_free(p);
}
END_TEST

/* The largest args that are taken can be sent, too, with all that goes with
   them, and what they make is there for those who use it. */
START_TEST(what_is_taken_fits_a_message)
{
	evc_cluster_config config = { .max_frame = 64 << 10 };
	static char bytes[64 << 10], name[48];
	size_t n = sizeof bytes;
	evc_dataset_opts opts = { .map = "echo" };
	evc_per_worker *d = NULL, *it = NULL;
	evc_cluster *other;
	evc_remote *r;
	evc_status st;

	if (t_under_qemu())
		T_SKIP("the kernel cannot run a program of another machine");
	other = open_with(c, "processes://1", &config);
	memset(name, 'n', 47);
	do {
		st = evc_per_worker_dataset_of(other, name,
					       ARGS("[B]", bytes, n), &opts,
					       &d);
		if (st != 0)
			HAS(evc_last_error(), "max_frame");
	} while (st == -EVC_INVALID_ARGUMENT && --n > 0);
	OK(st);
	/* There is no need of much. */
	ck_assert_uint_gt(n, sizeof bytes - 256);
	OK(evc_per_worker_iterator(d, &it));
	OK(evc_schedule_pack(other, "skip", NULL, &r, "[w]", it));
	ck_assert_msg(evc_remote_fetch(r, T_LIMIT, NULL) == 0, "%s",
		      evc_last_error());
	evc_remote_free(r);
	evc_per_worker_free(it);
	evc_per_worker_free(d);
	evc_cluster_close(other);
}
END_TEST

START_TEST(after_the_stop_there_are_no_more)
{
	evc_per_worker *d = range(1, 3, NULL), *p = value("state", NULL);
	evc_per_worker *none = NULL;

	UNTIL(atomic_load(&n_states) == WORKERS);
	OK(evc_request_stop(c, 0, "enough"));
	OK(evc_join(c, NULL, NULL));
	/* The workers have freed all of it. */
	ck_assert(nothing_is_kept());
	REFUSED(EVC_CANCELLED,
		evc_per_worker_value(cl, "a", "plain", NULL, &none));
	REFUSED(EVC_CANCELLED, evc_per_worker_iterator(d, &none));
	ck_assert_ptr_null(none);
	evc_per_worker_free(p);
	evc_per_worker_free(d);
}
END_TEST

START_TEST(they_may_be_freed_after_the_last_close)
{
	evc_per_worker *p = value("state", NULL), *d = range(1, 2, NULL);
	evc_per_worker *it = iterator(d), *none = NULL;

	UNTIL(atomic_load(&n_states) == WORKERS);
	evc_cluster_close(cl);
	evc_per_worker_free(it);
	OK(evc_request_stop(c, 0, "enough"));
	OK(evc_join(c, NULL, NULL));
	ck_assert(nothing_is_kept());
	ck_assert_msg(evc_free(c) == 0, "%s", evc_last_error());
	REFUSED(EVC_CANCELLED, evc_per_worker_iterator(d, &none));
	evc_per_worker_free(p);
	evc_per_worker_free(d);
	/* For the teardown. */
	setup();
}
END_TEST

/* ---- many ---- */

START_TEST(many_come_and_go)
{
	evc_per_worker *d = range(1, 1000, NULL), *it, *p;
	int round, i;

	for (round = 0; round < 200; round++) {
		it = iterator(d);
		p = value("state", NULL);
		for (i = 0; i < WORKERS; i++) {
			OK(evc_schedule_pack(cl, "take", NULL, NULL, "[wi]", it,
					     3));
			OK(evc_schedule_pack(cl, "bump", NULL, NULL, "[w]", p));
		}
		/* Before they have run, mostly. */
		evc_per_worker_free(p);
		evc_per_worker_free(it);
		if (round % 20 == 0)
			OK(evc_cluster_join(cl, T_LIMIT));
	}
	OK(evc_cluster_join(cl, T_LIMIT));
	UNTIL(atomic_load(&n_iterators) + atomic_load(&n_states) == 0);
	ck_assert_int_eq(atomic_load(&n_sets), WORKERS);
	evc_per_worker_free(d);
	UNTIL(nothing_is_kept());
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("per_worker");
	TCase *tc = tcase_create("per_worker");

	if (evc_worker_is())
		return evc_worker_main(table, sizeof table / sizeof table[0],
				       NULL) != 0;
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, each_worker_has_a_state_of_its_own);
	tcase_add_test(tc, a_value_may_be_returned_and_stand_anywhere);
	tcase_add_test(tc, it_is_kept_for_functions_that_use_it);
	tcase_add_test(tc, a_dataset_of_a_function_comes_to_its_end);
	tcase_add_test(tc, elements_are_a_dataset);
	tcase_add_test(tc, elements_are_mapped_and_repeated);
	tcase_add_test(tc, a_seed_is_one_order_and_none_is_many);
	tcase_add_test(tc, a_failed_build_is_the_error_of_who_uses_it);
	tcase_add_test(tc, it_fails_where_it_could_not_be_built_alone);
	tcase_add_test(tc, what_keeps_no_dataset_has_no_iterators);
	tcase_add_test(tc, mistakes_are_refused);
	tcase_add_test(tc, what_is_taken_fits_a_message);
	tcase_add_test(tc, after_the_stop_there_are_no_more);
	tcase_add_test(tc, they_may_be_freed_after_the_last_close);
	tcase_add_test(tc, many_come_and_go);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
