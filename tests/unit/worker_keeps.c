/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker keeps: per-worker values, datasets and iterators, built, used,
 * failed and dropped.
 */
#include "worker.h"

#include "../support/seam.h"

/* ---- a dataset that a function keeps: 0 .. n-1 ---- */

struct counter {
	int n, fail_at; /* fail_at: the element that is an error; 0: none */
};

struct walk_state {
	struct counter *of;
	int at;
};

static int live_states, live_walks, n_walks, refuse_walk;
static char freed[64]; /* who was freed, in order */

static void
note_freed(const char *what)
{
	strncat(freed, what, sizeof freed - strlen(freed) - 1);
}

static evc_status
iterate(evc_exec *x, void *state, void **ret)
{
	struct walk_state *s;

	n_walks++;
	if (refuse_walk != 0 && n_walks >= refuse_walk)
		return evc_exec_fail(x, EVC_UNAVAILABLE, "no walk today");
	s = calloc(1, sizeof *s);
	s->of = state;
	live_walks++;
	*ret = s;
	return 0;
}

static evc_status
next(evc_exec *x, void *iterator)
{
	struct walk_state *s = iterator;

	if (s->at == s->of->n)
		return EVC_OUT_OF_RANGE;
	if (s->of->fail_at != 0 && s->at == s->of->fail_at)
		return evc_exec_fail(x, EVC_DATA_LOSS, "element %d is bad",
				     s->at);
	return evc_exec_return(x, "i", s->at++);
}

static void
free_walk(void *iterator)
{
	free(iterator);
	live_walks--;
	note_freed("i");
}

static void
free_counter(void *state)
{
	free(state);
	live_states--;
	note_freed("d");
}

static const evc_keep_ops counter_ops = {
	.iterate = iterate,
	.next = next,
	.free_iterator = free_walk,
	.free = free_counter,
};

/* ---- functions ---- */

static evc_status
count_to(evc_exec *x, void *arg)
{
	struct counter *c = calloc(1, sizeof *c);

	(void)arg;
	OK(evc_exec_unpack(x, "[ii]", &c->n, &c->fail_at));
	OK(evc_exec_keep(x, &counter_ops, c));
	live_states++;
	return 0;
}

static void
free_value(void *state)
{
	note_freed(state);
}

static evc_status
keeps(evc_exec *x, void *arg)
{
	static const evc_keep_ops ops = { .free = free_value };
	static const evc_keep_ops half = { .iterate = iterate };
	static char name[4][2];
	static int n;

	(void)arg;
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_keep(x, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_keep(x, &half, NULL));
	OK(evc_exec_unpack(x, "[s]", name[n % 4], sizeof name[0]));
	OK(evc_exec_keep(x, &ops, name[n++ % 4]));
	REFUSED(EVC_FAILED_PRECONDITION, evc_exec_keep(x, &ops, NULL));
	return 0;
}

static evc_status
keeps_and_fails(evc_exec *x, void *arg)
{
	static const evc_keep_ops ops = { .free = free_value };

	(void)arg;
	OK(evc_exec_keep(x, &ops, (void *)(uintptr_t)"!"));
	return evc_exec_fail(x, EVC_PERMISSION_DENIED, "the door is shut");
}

static evc_status
gives(evc_exec *x, void *arg)
{
	evc_value v;

	(void)arg;
	OK(evc_exec_unpack(x, "[v]", &v));
	return evc_exec_return(x, "v", &v);
}

/* What it is given of a per-worker value. */
static evc_status
use_value(evc_exec *x, void *arg)
{
	evc_local *l;
	const char *state;

	(void)arg;
	if (evc_exec_unpack(x, "[w]", &l) < 0)
		return EVC_INVALID_ARGUMENT;
	state = evc_local_state(l);
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_exec_keep(x, &counter_ops, NULL));
	return state != NULL ? evc_exec_return(x, "s", state) :
			       evc_exec_return(x, "v", evc_local_value(l));
}

/* So many of an iterator, as an array; with the code that ended it last. */
static evc_status
take(evc_exec *x, void *arg)
{
	int n, i, got[64], code = 0;
	evc_local *it;
	evc_value v;

	(void)arg;
	OK(evc_exec_unpack(x, "[wi]", &it, &n));
	for (i = 0; i < n && i < 64; i++) {
		code = evc_exec_next(x, it, &v);
		if (code != 0)
			break;
		OK(evc_unpack(&v, "i", &got[i]));
	}
	if (code != 0 && i == 0)
		return code;
	switch (i) {
	case 1:
		return evc_exec_return(x, "[i]", got[0]);
	case 2:
		return evc_exec_return(x, "[ii]", got[0], got[1]);
	case 3:
		return evc_exec_return(x, "[iii]", got[0], got[1], got[2]);
	default:
		code = 0;
		for (n = 0; n < i; n++)
			code = (code * 10 + got[n]) % 100000000;
		return evc_exec_return(x, "[ii]", i, code);
	}
}

static evc_status
next_wrongly(evc_exec *x, void *arg)
{
	evc_local *l;
	evc_value v;

	(void)arg;
	OK(evc_exec_unpack(x, "[w]", &l));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_next(x, l, &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_next(x, NULL, &v));
	REFUSED(EVC_INVALID_ARGUMENT, evc_exec_next(x, l, NULL));
	return 0;
}

static evc_status
doubled(evc_exec *x, void *arg)
{
	evc_exec_info info;
	int i;

	(void)arg;
	OK(evc_exec_get(x, &info));
	ck_assert_str_eq(info.function, "doubled");
	if (evc_exec_unpack(x, "[i]", &i) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "no number");
	if (i == 4)
		return evc_exec_fail(x, EVC_INTERNAL, "4 cannot be doubled");
	return evc_exec_return(x, "i", 2 * i);
}

static const evc_function table[] = {
	{ .name = "count_to", .fn = count_to },
	{ .name = "keeps", .fn = keeps },
	{ .name = "keeps_and_fails", .fn = keeps_and_fails },
	{ .name = "gives", .fn = gives },
	{ .name = "use_value", .fn = use_value },
	{ .name = "take", .fn = take },
	{ .name = "next_wrongly", .fn = next_wrongly },
	{ .name = "doubled", .fn = doubled },
};

static struct bench b;

static void
open_bench(void)
{
	live_states = live_walks = n_walks = refuse_walk = 0;
	freed[0] = '\0';
	BENCH(&b, table);
}

/* ---- definitions ---- */

static evc_status
define(const evc_engine_def *def)
{
	const char *text = NULL;
	double seconds = -1;
	evc_status st = evc__worker_define(b.w, def, &text, &seconds);

	ck_assert(seconds >= 0);
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(st == 0, *text == '\0');
	return st;
}

static evc_status
build(uint64_t id, unsigned kind, const char *function, const char *format,
      ...)
{
	evc_engine_def def = { .id = id, .kind = kind, .name = "thing",
			       .function = function };
	evc_value args;
	evc_status st;
	va_list ap;

	va_start(ap, format);
	OK(evc__pack(&args, NULL, NULL, format, ap));
	va_end(ap);
	def.args = args;
	st = define(&def);
	evc_value_free(&args);
	return st;
}

static evc_status
iterator(uint64_t id, uint64_t of)
{
	evc_engine_def def = { .id = id, .kind = EVC_DEF_ITERATOR,
			       .name = "walk", .of = of };

	return define(&def);
}

static void
drop(uint64_t id)
{
	evc_engine_def def = { .id = id, .kind = EVC_DEF_DROP };

	OK(define(&def));
}

/* Elements 0..n-1 of an array, at most 8. */
static evc_status
elements(evc_engine_def *def, int n)
{
	static const char *const formats[] = {
		"[]", "[i]", "[ii]", "[iii]", "[iiii]", "[iiiii]",
		"[iiiiii]", "[iiiiiii]", "[iiiiiiii]"
	};
	evc_value args;
	evc_status st;

	def->kind = EVC_DEF_ELEMENTS;
	def->name = "elements";
	OK(evc_pack(&args, formats[n], 0, 1, 2, 3, 4, 5, 6, 7));
	def->args = args;
	st = define(def);
	evc_value_free(&args);
	return st;
}

/* ---- uses ---- */

static evc_status
call_with(const char *function, uint64_t id)
{
	unsigned char bytes[REF_BYTES];
	evc_value w = ref_value(bytes, true, id);

	ARGS(&b, "[v]", &w);
	return bench_call(&b, function);
}

static evc_status
take_some(uint64_t id, int n)
{
	unsigned char bytes[REF_BYTES];
	evc_value w = ref_value(bytes, true, id);

	ARGS(&b, "[vi]", &w, n);
	return bench_call(&b, "take");
}

#define GIVES_TEXT(want) \
	do { \
		char text_[64]; \
		OK(b.r.code); \
		OK(evc_unpack(&b.r.value, "s", text_, sizeof text_)); \
		ck_assert_str_eq(text_, (want)); \
	} while (0)

static void
is(int want_n, int want_first, int want_second)
{
	int n, first = 0, second = 0;

	OK(b.r.code);
	n = (int)evc_value_count(&b.r.value);
	ck_assert_int_eq(n, want_n);
	if (n == 1)
		OK(evc_unpack(&b.r.value, "[i]", &first));
	else
		OK(evc_unpack(&b.r.value, "[ii...]", &first, &second));
	ck_assert_int_eq(first, want_first);
	ck_assert_int_eq(second, want_second);
}

/* ---- values ---- */

START_TEST(values_are_kept_or_returned)
{
	open_bench();
	OK(build(1, EVC_DEF_VALUE, "keeps", "[s]", "a"));
	OK(build(2, EVC_DEF_VALUE, "gives", "[i]", 42));
	OK(build(3, EVC_DEF_VALUE, "gives", "[s]",
		 "a text that needs memory of its own"));
	ck_assert_uint_eq(evc__worker_n_kept(b.w), 3);
	OK(call_with("use_value", 1));
	GIVES_TEXT("a");
	OK(call_with("use_value", 2));
	GIVES(&b, 42);
	OK(call_with("use_value", 3));
	GIVES_TEXT("a text that needs memory of its own");
	/* One that is not there. */
	ck_assert_int_eq(call_with("use_value", 4), EVC_INVALID_ARGUMENT);
	/* What is no iterator. */
	OK(call_with("next_wrongly", 1));
	drop(1);
	ck_assert_str_eq(freed, "a");
	ck_assert_int_eq(call_with("use_value", 1), EVC_INVALID_ARGUMENT);
	drop(1);
	drop(99);
	ck_assert_str_eq(freed, "a");
	ck_assert_uint_eq(evc__worker_n_kept(b.w), 2);
	bench_close(&b);
}
END_TEST

START_TEST(the_end_drops_iterators_first_and_the_latest_first)
{
	open_bench();
	OK(build(1, EVC_DEF_VALUE, "keeps", "[s]", "a"));
	OK(build(2, EVC_DEF_DATASET, "count_to", "[ii]", 3, 0));
	OK(iterator(3, 2));
	OK(build(4, EVC_DEF_VALUE, "keeps", "[s]", "b"));
	OK(iterator(5, 2));
	OK(build(6, EVC_DEF_VALUE, "keeps", "[s]", "c"));
	/* Dropped, it stays for its iterators. */
	drop(2);
	ck_assert_uint_eq(evc__worker_n_kept(b.w), 6);
	ck_assert_int_eq(live_states, 1);
	OK(take_some(5, 2));
	is(2, 0, 1);
	bench_close(&b);
	ck_assert_str_eq(freed, "iidcba");
	ck_assert_int_eq(live_states, 0);
	ck_assert_int_eq(live_walks, 0);

	open_bench();
	OK(build(2, EVC_DEF_DATASET, "count_to", "[ii]", 3, 0));
	OK(iterator(3, 2));
	drop(2);
	ck_assert_str_eq(freed, "");
	drop(3);
	ck_assert_str_eq(freed, "id");
	ck_assert_uint_eq(evc__worker_n_kept(b.w), 0);
	bench_close(&b);
}
END_TEST

/* ---- what could not be built ---- */

START_TEST(who_uses_what_could_not_be_built_fails)
{
	unsigned char bytes[REF_BYTES];
	evc_value w = ref_value(bytes, true, 1);

	open_bench();
	ck_assert_int_eq(build(1, EVC_DEF_VALUE, "keeps_and_fails", "[]"),
			 EVC_PERMISSION_DENIED);
	/* What it has kept is its own. */
	ck_assert_str_eq(freed, "");
	ck_assert_int_eq(build(2, EVC_DEF_VALUE, "nobody", "[]"),
			 EVC_INVALID_ARGUMENT);
	ck_assert_int_eq(build(3, EVC_DEF_DATASET, "gives", "[i]", 1),
			 EVC_FAILED_PRECONDITION);
	/* No dataset, and then it is the worker's to free. */
	ck_assert_int_eq(build(4, EVC_DEF_DATASET, "keeps", "[s]", "a"),
			 EVC_FAILED_PRECONDITION);
	ck_assert_str_eq(freed, "a");
	ck_assert_int_eq(iterator(5, 3), EVC_FAILED_PRECONDITION);
	ck_assert_uint_eq(evc__worker_n_kept(b.w), 0);

	call_with("use_value", 1);
	FAILS(&b, EVC_PERMISSION_DENIED, EVC_FAILED_INPUT,
	      "input thing on worker 0: the door is shut");
	ck_assert(b.r.took >= 0);
	call_with("use_value", 2);
	FAILS(&b, EVC_INVALID_ARGUMENT, EVC_FAILED_INPUT, "\"nobody\"");
	take_some(5, 1);
	FAILS(&b, EVC_FAILED_PRECONDITION, EVC_FAILED_INPUT,
	      "input walk on worker 0");
	/* At any depth, and by name. */
	ARGS(&b, "[i[{a:[v]}]]", 1, &w);
	bench_call(&b, "use_value");
	FAILS(&b, EVC_PERMISSION_DENIED, EVC_FAILED_INPUT, "the door");
	ARGS(&b, "[]");
	OK(evc_pack(&b.kwargs, "{a:v}", &w));
	bench_call(&b, "use_value");
	FAILS(&b, EVC_PERMISSION_DENIED, EVC_FAILED_INPUT, "the door");
	evc_value_free(&b.kwargs);
	/* Others do not. */
	OK(build(6, EVC_DEF_VALUE, "gives", "[i]", 1));
	OK(call_with("use_value", 6));
	/* And it goes like all others. */
	drop(1);
	ck_assert_int_eq(call_with("use_value", 1), EVC_INVALID_ARGUMENT);
	ck_assert_uint_eq(b.r.kind, EVC_FAILED_FUNCTION);
	bench_close(&b);
	ck_assert_str_eq(freed, "a");
}
END_TEST

START_TEST(one_that_there_was_no_memory_for_is_an_input_that_failed)
{
	open_bench();
	OK(build(1, EVC_DEF_VALUE, "gives", "[i]", 1));
	seam_fail("alloc", "make_local", 1, ENOMEM);
	ck_assert_int_eq(build(2, EVC_DEF_VALUE, "gives", "[i]", 2),
			 EVC_RESOURCE_EXHAUSTED);
	seam_reset();
	call_with("use_value", 2);
	FAILS(&b, EVC_RESOURCE_EXHAUSTED, EVC_FAILED_INPUT, "no memory");
	OK(call_with("use_value", 1));
	bench_close(&b);
}
END_TEST

/* ---- datasets ---- */

START_TEST(iterators_walk_each_on_its_own)
{
	open_bench();
	OK(build(1, EVC_DEF_DATASET, "count_to", "[ii]", 3, 0));
	OK(iterator(2, 1));
	OK(iterator(3, 1));
	ck_assert_int_eq(n_walks, 2);
	OK(take_some(2, 2));
	is(2, 0, 1);
	OK(take_some(3, 1));
	is(1, 0, 0);
	OK(take_some(2, 2));
	is(1, 2, 0);
	/* The end is one for good, and it has a text. */
	take_some(2, 1);
	FAILS(&b, EVC_OUT_OF_RANGE, EVC_FAILED_FUNCTION, "walk is at its end");
	take_some(2, 1);
	FAILS(&b, EVC_OUT_OF_RANGE, EVC_FAILED_FUNCTION, "walk is at its end");
	ck_assert_int_eq(n_walks, 2);
	OK(take_some(3, 1));
	is(1, 1, 0);
	drop(2);
	ck_assert_int_eq(live_walks, 1);
	bench_close(&b);
	ck_assert_int_eq(live_walks, 0);
}
END_TEST

START_TEST(an_error_of_a_dataset_is_the_functions)
{
	open_bench();
	OK(build(1, EVC_DEF_DATASET, "count_to", "[ii]", 3, 1));
	OK(iterator(2, 1));
	OK(take_some(2, 1));
	take_some(2, 1);
	FAILS(&b, EVC_DATA_LOSS, EVC_FAILED_FUNCTION, "element 1 is bad");
	/* A walk that cannot begin. */
	refuse_walk = 1;
	ck_assert_int_eq(iterator(3, 1), EVC_UNAVAILABLE);
	take_some(3, 1);
	FAILS(&b, EVC_UNAVAILABLE, EVC_FAILED_INPUT, "no walk today");
	bench_close(&b);
	ck_assert_int_eq(live_walks, 0);
}
END_TEST

static void
define_repeated(uint64_t id, int n, uint64_t repeat, bool shuffle)
{
	evc_engine_def def = { .id = id, .kind = EVC_DEF_DATASET,
			       .name = "thing", .function = "count_to",
			       .repeat = repeat, .shuffle = shuffle };
	evc_value args;

	OK(evc_pack(&args, "[ii]", n, 0));
	def.args = args;
	OK(define(&def));
	evc_value_free(&args);
}

START_TEST(repeat_walks_again)
{
	evc_engine_def of = { .id = 10, .repeat = 3 };

	open_bench();
	define_repeated(1, 2, 3, false);
	OK(iterator(2, 1));
	OK(take_some(2, 60));
	is(2, 6, 10101); /* 6 of them, 0 1 0 1 0 1 */
	ck_assert_int_eq(take_some(2, 1), EVC_OUT_OF_RANGE);
	ck_assert_int_eq(n_walks, 3);
	ck_assert_int_eq(live_walks, 1);
	OK(elements(&of, 2));
	OK(iterator(11, 10));
	OK(take_some(11, 60));
	is(2, 6, 10101);
	ck_assert_int_eq(take_some(11, 1), EVC_OUT_OF_RANGE);
	/* Without an end. */
	define_repeated(3, 2, UINT64_MAX, false);
	OK(iterator(4, 3));
	OK(take_some(4, 64));
	is(2, 64, 1010101);
	of = (evc_engine_def){ .id = 12, .repeat = UINT64_MAX };
	OK(elements(&of, 1));
	OK(iterator(13, 12));
	OK(take_some(13, 64));
	is(2, 64, 0);
	bench_close(&b);
	ck_assert_int_eq(live_walks, 0);
}
END_TEST

START_TEST(an_empty_dataset_ends_however_often_it_is_repeated)
{
	evc_engine_def of = { .id = 10, .repeat = UINT64_MAX, .shuffle = true };

	open_bench();
	define_repeated(1, 0, UINT64_MAX, false);
	OK(iterator(2, 1));
	ck_assert_int_eq(take_some(2, 1), EVC_OUT_OF_RANGE);
	OK(elements(&of, 0));
	OK(iterator(11, 10));
	ck_assert_int_eq(take_some(11, 1), EVC_OUT_OF_RANGE);
	bench_close(&b);
}
END_TEST

START_TEST(a_walk_that_could_not_begin_again_is_tried_again)
{
	open_bench();
	define_repeated(1, 1, 5, false);
	OK(iterator(2, 1));
	OK(take_some(2, 1));
	refuse_walk = 2;
	take_some(2, 1);
	FAILS(&b, EVC_UNAVAILABLE, EVC_FAILED_FUNCTION, "no walk today");
	refuse_walk = 0;
	OK(take_some(2, 60));
	is(2, 4, 0);
	bench_close(&b);
	ck_assert_int_eq(live_walks, 0);
}
END_TEST

START_TEST(elements_must_be_an_array)
{
	evc_engine_def of = { .id = 1, .kind = EVC_DEF_ELEMENTS,
			      .name = "elements" };
	evc_value v;

	open_bench();
	OK(evc_pack(&v, "i", 7));
	of.args = v;
	ck_assert_int_eq(define(&of), EVC_INVALID_ARGUMENT);
	evc_value_free(&v);
	bench_close(&b);
}
END_TEST

/* ---- maps ---- */

START_TEST(a_map_function_gives_the_elements)
{
	evc_engine_def of = { .id = 1, .map = "doubled" };
	evc_value args;

	open_bench();
	OK(elements(&of, 6));
	OK(iterator(2, 1));
	OK(take_some(2, 3));
	is(3, 0, 2);
	OK(take_some(2, 1));
	is(1, 6, 0);
	/* Its error is the function's, and the walk goes on behind it. */
	take_some(2, 1);
	FAILS(&b, EVC_INTERNAL, EVC_FAILED_FUNCTION, "4 cannot be doubled");
	OK(take_some(2, 1));
	is(1, 10, 0);
	/* Of a function's dataset, too. */
	of = (evc_engine_def){ .id = 3, .kind = EVC_DEF_DATASET,
			       .name = "thing", .function = "count_to",
			       .map = "doubled", .repeat = 2 };
	OK(evc_pack(&args, "[ii]", 2, 0));
	of.args = args;
	OK(define(&of));
	OK(iterator(4, 3));
	OK(take_some(4, 3));
	is(3, 0, 2);
	/* One that is not there. */
	of.id = 5;
	of.map = "nobody";
	ck_assert_int_eq(define(&of), EVC_INVALID_ARGUMENT);
	evc_value_free(&args);
	take_some(5, 1);
	FAILS(&b, EVC_INVALID_ARGUMENT, EVC_FAILED_INPUT, "\"nobody\"");
	bench_close(&b);
	ck_assert_int_eq(live_states, 0);
}
END_TEST

/* ---- random orders ---- */

enum { MANY = 1000 };

/* Whole walks of MANY elements: their order. */
static evc_status
take_order(evc_exec *x, void *arg)
{
	int *order = arg, i, k;
	bool seen[MANY];
	evc_local *it;
	evc_value v;

	OK(evc_exec_unpack(x, "[w]", &it));
	for (k = 0; k < 2; k++) {
		memset(seen, 0, sizeof seen);
		for (i = 0; i < MANY; i++) {
			OK(evc_exec_next(x, it, &v));
			OK(evc_unpack(&v, "i", &order[k * MANY + i]));
			ck_assert(!seen[order[k * MANY + i]]);
			seen[order[k * MANY + i]] = true;
		}
	}
	return evc_exec_next(x, it, &v) == EVC_OUT_OF_RANGE ? 0 : EVC_INTERNAL;
}

/* Two walks on a worker of its own. */
static void
walk_twice(unsigned index, uint64_t seed, int *order)
{
	evc_function f[] = { { .name = "take_order", .fn = take_order,
			       .arg = order } };
	evc_engine_def of = { .id = 1, .kind = EVC_DEF_ELEMENTS,
			      .name = "elements", .repeat = 2,
			      .shuffle = true, .seed = seed };
	unsigned char bytes[3 + 3 * MANY] = { 0xdc, MANY >> 8, MANY & 255 };
	int i;

	bench_open_as(&b, f, 1, index);
	for (i = 0; i < MANY; i++) {
		bytes[3 + 3 * i] = 0xcd;
		bytes[4 + 3 * i] = (unsigned char)(i >> 8);
		bytes[5 + 3 * i] = (unsigned char)i;
	}
	of.args = (evc_value){ bytes, sizeof bytes };
	OK(define(&of));
	OK(iterator(2, 1));
	OK(call_with("take_order", 2));
	bench_close(&b);
}

static bool
same(const int *a, const int *c)
{
	return memcmp(a, c, MANY * sizeof *a) == 0;
}

START_TEST(shuffled_ones_come_in_another_order_each_time)
{
	static int a[2 * MANY], c[2 * MANY];

	walk_twice(0, 0, a);
	walk_twice(1, 0, c);
	ck_assert(!same(a, c));
	ck_assert(!same(a, a + MANY));
	ck_assert(!same(c, c + MANY));
	/* Not even of the same worker. */
	walk_twice(1, 0, a);
	ck_assert(!same(a, c));
}
END_TEST

START_TEST(with_a_seed_it_is_the_same_on_all_workers)
{
	static int a[2 * MANY], c[2 * MANY];

	walk_twice(0, 77, a);
	walk_twice(1, 77, c);
	ck_assert(same(a, c));
	ck_assert(same(a + MANY, c + MANY));
	ck_assert(!same(a, a + MANY));
	walk_twice(0, 78, c);
	ck_assert(!same(a, c));
}
END_TEST

API_MAIN("worker_keeps", values_are_kept_or_returned,
	 the_end_drops_iterators_first_and_the_latest_first,
	 who_uses_what_could_not_be_built_fails,
	 one_that_there_was_no_memory_for_is_an_input_that_failed,
	 iterators_walk_each_on_its_own,
	 an_error_of_a_dataset_is_the_functions, repeat_walks_again,
	 an_empty_dataset_ends_however_often_it_is_repeated,
	 a_walk_that_could_not_begin_again_is_tried_again,
	 elements_must_be_an_array, a_map_function_gives_the_elements,
	 shuffled_ones_come_in_another_order_each_time,
	 with_a_seed_it_is_the_same_on_all_workers)
