/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a stop carries: reasons kept, bounded and counted; codes of every kind;
 * what is clean and what is an error; texts and places; errors that come too
 * late and go back to whoever reports them.
 */
#include "../../../support/api_util.h"

#include <limits.h>

/* How many reasons are kept. */
static unsigned
n_kept(evc_coord *c)
{
	evc_reason r;
	unsigned n = 0;

	while (evc_reason_get(c, n, &r) == 0)
		n++;
	return n;
}

/* The code of the one reason that a stop with this code leaves. */
static evc_status
recorded_as(evc_status code, evc_reason *ret)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_request_stop(c, code, NULL));
	ck_assert(evc_should_stop(c));
	OK(evc_reason_get(c, 0, ret));
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 1, ret));
	OK(evc_free(c));
	return ret->code;
}

START_TEST(S3_reasons_are_kept_in_the_order_of_arrival)
{
	evc_coord *c = new_coord(NULL);
	char text[16];
	uint64_t last = 0;
	evc_reason r;
	int i;

	for (i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "number %d", i);
		OK(evc_request_stop(c, i % 2 ? EVC_INTERNAL : 0, text));
	}
	for (i = 0; i < 10; i++) {
		OK(evc_reason_get(c, (unsigned)i, &r));
		snprintf(text, sizeof(text), "number %d", i);
		ck_assert_str_eq(r.text, text);
		ck_assert_uint_eq(r.round, 1);
		ck_assert_uint_ge(r.mono_ns, last);
		last = r.mono_ns;
	}
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 10, &r));
	OK(evc_free(c));
}
END_TEST

START_TEST(S3_kept_reasons_are_bounded_and_errors_counted)
{
	evc_config cfg = { 0 };
	evc_coord *c;
	evc_verdict v;
	int i;

	for (cfg.max_reasons = 1; cfg.max_reasons < 8; cfg.max_reasons++) {
		c = new_coord_with(NULL, &cfg);
		OK(evc_request_stop(c, 0, "first"));
		for (i = 0; i < 10; i++)
			OK(evc_request_stop(c, EVC_OUT_OF_RANGE, "clean"));
		for (i = 0; i < 100; i++)
			OK(evc_request_stop(c, 20 + i, "error"));
		ck_assert_uint_ge(n_kept(c), 2);
		ck_assert_uint_le(n_kept(c),
				  cfg.max_reasons < 2 ? 2 : cfg.max_reasons);
		ck_assert_int_eq(evc_join(c, NULL, &v), 20);
		ck_assert_uint_eq(v.n_errors, 100);
		ck_assert_str_eq(v.stop.text, "first");
		ck_assert_str_eq(v.error.text, "error");
		OK(evc_free(c));
	}
}
END_TEST

START_TEST(S3_an_error_after_many_clean_requests_is_kept_whole)
{
	evc_coord *c = new_coord(NULL);
	evc_reason r;
	evc_verdict v;
	unsigned i;
	int found = 0;

	for (i = 0; i < 320; i++)
		OK(evc_request_stop(c, i % 2 ? EVC_OUT_OF_RANGE : 0, "clean"));
	OK(evc_raise_requested(c, &r));
	for (i = 7; i < 11; i++) /* there is room for more than one */
		evc_fail(c, EVC_DATA_LOSS, EIO, "block %u", i);
	ck_assert_uint_le(n_kept(c), 32);
	for (i = 0; evc_reason_get(c, i, &r) == 0; i++)
		found += r.code == EVC_DATA_LOSS && r.err == EIO;
	ck_assert_int_eq(found, 4);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.text, "block 7");
	ck_assert_int_eq(v.error.err, EIO);
	ck_assert_str_eq(v.stop.text, "clean");
	ck_assert_uint_eq(v.n_errors, 4);
	OK(evc_free(c));
}
END_TEST

START_TEST(raise_requested_answers_as_often_as_asked)
{
	evc_coord *c = new_coord(NULL);
	evc_reason r = { .code = 77 };

	OK(evc_raise_requested(c, &r));
	OK(evc_request_stop(c, EVC_OUT_OF_RANGE, "clean"));
	OK(evc_raise_requested(c, &r));
	ck_assert_int_eq(r.code, 77); /* untouched while there is none */
	OK(evc_request_stop(c, EVC_ABORTED, "first error"));
	OK(evc_request_stop(c, EVC_INTERNAL, "second error"));
	ck_assert_int_eq(evc_raise_requested(c, NULL), EVC_ABORTED);
	ck_assert_int_eq(evc_raise_requested(c, &r), EVC_ABORTED);
	ck_assert_str_eq(r.text, "first error");
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_ABORTED);
	ck_assert_int_eq(evc_raise_requested(c, &r), EVC_ABORTED);
	ck_assert_int_eq(evc_raise_requested(c, &r), EVC_ABORTED);
	OK(evc_clear_stop(c));
	OK(evc_raise_requested(c, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(an_error_after_the_round_was_closed_goes_back)
{
	evc_coord *c = new_coord(NULL);
	evc_status result = EVC_DATA_LOSS;

	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(evc_request_stop(c, EVC_INTERNAL, "too late"),
			 EVC_INTERNAL);
	ck_assert_int_eq(evc_fail(c, EVC_ABORTED, 0, "too late"), EVC_ABORTED);
	ck_assert_int_eq(evc_guard(c, "g", return_at_once, &result, NULL),
			 EVC_DATA_LOSS);
	ck_assert(!evc_should_stop(c));
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	OK(evc_request_stop(c, EVC_INTERNAL, "in time"));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_clean_request_after_the_round_was_closed_stops)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_join(c, NULL, NULL));
	OK(evc_request_stop(c, EVC_OUT_OF_RANGE, NULL));
	ck_assert(evc_should_stop(c));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(clean_by_default_is_end_of_input_alone)
{
	static const unsigned kind[] = { EVC_BY_ERROR, EVC_BY_REQUEST };
	evc_coord *c;
	evc_verdict v;
	int code;

	for (code = 1; code <= 255; code++) {
		c = new_coord(NULL);
		OK(evc_request_stop(c, code, NULL));
		ck_assert_int_eq(evc_join(c, NULL, &v),
				 code == EVC_OUT_OF_RANGE ? 0 : code);
		ck_assert_uint_eq(v.n_errors, code != EVC_OUT_OF_RANGE);
		ck_assert_uint_eq(v.stop.kind, kind[code == EVC_OUT_OF_RANGE]);
		OK(evc_free(c));
	}
}
END_TEST

START_TEST(a_list_of_clean_codes_replaces_the_default)
{
	evc_status clean[] = { 20, 21 };
	evc_config cfg = { .clean = clean, .n_clean = 2 };
	evc_coord *c = new_coord_with(NULL, &cfg);

	clean[0] = 99; /* it was copied */
	OK(evc_request_stop(c, 20, NULL));
	OK(evc_request_stop(c, 21, NULL));
	OK(evc_raise_requested(c, NULL));
	OK(evc_request_stop(c, EVC_OUT_OF_RANGE, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_OUT_OF_RANGE);
	OK(evc_free(c));
}
END_TEST

static unsigned asked[1000];

static bool
even_is_clean(evc_status code, void *arg)
{
	ck_assert_ptr_eq(arg, asked);
	ck_assert_int_ge(code, 1);
	ck_assert_int_le(code, 255);
	asked[code]++;
	return code % 2 == 0;
}

START_TEST(a_predicate_is_asked_once_for_each_code_and_never_again)
{
	evc_status clean[] = { 31 };
	evc_config cfg = { .clean = clean,
			   .n_clean = 1,
			   .is_clean = even_is_clean,
			   .arg = asked };
	evc_coord *c;
	int i;

	memset(asked, 0, sizeof(asked));
	c = new_coord_with(NULL, &cfg);
	OK(evc_request_stop(c, 30, "by the predicate"));
	OK(evc_request_stop(c, 31, "by the list"));
	OK(evc_raise_requested(c, NULL));
	OK(evc_request_stop(c, 33, "by none"));
	ck_assert_int_eq(evc_join(c, NULL, NULL), 33);
	for (i = 1; i <= 255; i++)
		ck_assert_uint_eq(asked[i], 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(with_NO_CLEAN_CODES_only_0_is_clean)
{
	evc_status list[] = { 20 };
	evc_config cfg = { .flags = EVC_NO_CLEAN_CODES };
	evc_coord *c = new_coord_with(NULL, &cfg);

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_request_stop(c, EVC_OUT_OF_RANGE, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_OUT_OF_RANGE);
	OK(evc_free(c));

	cfg.clean = list;
	cfg.n_clean = 1;
	REFUSED(EVC_INVALID_ARGUMENT, evc_new(NULL, &cfg, &c));
}
END_TEST

START_TEST(negative_codes_are_positive_and_odd_ones_UNKNOWN)
{
	static const int odd[] = { 256, 1000, -256, INT_MAX, INT_MIN };
	evc_coord *c = new_coord(NULL);
	evc_reason r;
	size_t i;

	ck_assert_int_eq(recorded_as(-EVC_INTERNAL, &r), EVC_INTERNAL);
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		ck_assert_int_eq(recorded_as(odd[i], &r), EVC_UNKNOWN);
		ck_assert_str_ne(r.text, "");
	}
	ck_assert_int_eq(evc_fail(c, 0, 0, "no code"), EVC_UNKNOWN);
	OK(evc_reason_get(c, 0, &r));
	HAS(r.text, "no code");
	ck_assert_int_eq(evc_fail(c, -EVC_ABORTED, 0, "x"), EVC_ABORTED);
	OK(evc_free(c));
}
END_TEST

START_TEST(after_the_stop_CANCELLED_is_obedience_before_it_an_error)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_request_stop(c, 0, "stop"));
	OK(evc_request_stop(c, EVC_CANCELLED, "obeyed"));
	evc_fail(c, EVC_CANCELLED, ECANCELED, "obeyed, too");
	OK(evc_raise_requested(c, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	OK(evc_request_stop(c, EVC_CANCELLED, "of its own accord"));
	ck_assert_int_eq(evc_raise_requested(c, NULL), EVC_CANCELLED);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_CANCELLED);
	OK(evc_free(c));
}
END_TEST

START_TEST(long_texts_and_places_are_cut_and_NULL_is_empty)
{
	evc_coord *c = new_coord(NULL);
	char text[1000], file[300];
	evc_reason r;

	memset(text, 'x', sizeof(text) - 1);
	strcpy(text + sizeof(text) - sizeof("the end"), "the end");
	memset(file, 'd', sizeof(file));
	strcpy(file + 200, "/the_end.c");
	OK(evc_request_stop_at(c, 0, text, file, 12, text));
	evc_fail_at(c, EVC_INTERNAL, 0, file, 13, text, "%s", text);
	OK(evc_request_stop_at(c, 0, NULL, NULL, 0, NULL));

	OK(evc_reason_get(c, 0, &r));
	ck_assert_uint_gt(strlen(r.text), 150);
	ck_assert_uint_lt(strlen(r.text), sizeof(r.text));
	ck_assert_int_eq(strncmp(r.text, text, 80), 0);
	HAS(r.text, "xxx ... xxx");
	HAS(r.text, "the end");
	ck_assert_uint_lt(strlen(r.file), sizeof(r.file));
	HAS(r.file, "d/the_end.c");
	ck_assert_uint_lt(strlen(r.func), sizeof(r.func));
	OK(evc_reason_get(c, 1, &r));
	ck_assert_int_eq(strncmp(r.text, text, 80), 0);
	HAS(r.text, "the end");
	OK(evc_reason_get(c, 2, &r));
	ck_assert_str_eq(r.text, "");
	ck_assert_str_eq(r.file, "");
	ck_assert_str_eq(r.func, "");
	OK(evc_free(c));
}
END_TEST

START_TEST(the_macros_add_the_place)
{
	evc_coord *c = new_coord(NULL);
	int line = __LINE__;
	evc_reason r;

	OK(evc_request_stop(c, 0, "a"));           /* line + 3 */
	evc_fail(c, EVC_INTERNAL, EIO, "b %d", 1); /* line + 4 */
	OK((evc_request_stop)(c, 0, "c"));
	ck_assert_int_eq((evc_fail)(c, EVC_ABORTED, EPERM, "d %d", 2),
			 EVC_ABORTED);
	OK(evc_reason_get(c, 0, &r));
	ck_assert_int_eq(r.line, line + 3);
	HAS(r.file, "reasons.c");
	ck_assert_str_eq(r.func, __func__);
	OK(evc_reason_get(c, 1, &r));
	ck_assert_int_eq(r.line, line + 4);
	ck_assert_str_eq(r.text, "b 1");
	ck_assert_int_eq(r.err, EIO);
	ck_assert_uint_eq(r.kind, EVC_BY_ERROR);
	OK(evc_reason_get(c, 2, &r));
	ck_assert_int_eq(r.line, 0);
	ck_assert_str_eq(r.file, "");
	OK(evc_reason_get(c, 3, &r));
	ck_assert_str_eq(r.text, "d 2");
	ck_assert_int_eq(r.err, EPERM);
	ck_assert_int_eq(r.line, 0);
	OK(evc_free(c));
}
END_TEST

struct failure {
	evc_status reports, returns;
	int tid;
};

static evc_status
fail_and_return(evc_coord *c, void *arg)
{
	struct failure *f = arg;

	f->tid = own_tid();
	evc_fail(c, f->reports, ENOSPC, "shard %d", 3);
	return f->returns;
}

START_TEST(return_evc_fail_adds_nothing)
{
	struct failure same = { EVC_DATA_LOSS, EVC_DATA_LOSS, 0 };
	struct failure other = { EVC_DATA_LOSS, EVC_ABORTED, 0 };
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	evc_id id = 0;

	OK(evc_thread_start(c, "writer", fail_and_return, &same, NULL, &id));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_uint_eq(n_kept(c), 1);
	ck_assert_str_eq(v.error.text, "shard 3");
	ck_assert_int_eq(v.error.err, ENOSPC);
	ck_assert_str_eq(v.error.who, "writer");
	ck_assert_uint_eq(v.error.by, id);
	ck_assert_int_eq(v.error.tid, same.tid);
	OK(evc_clear_stop(c));

	OK(evc_thread_start(c, "other", fail_and_return, &other, NULL, NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 2);
	OK(evc_clear_stop(c));

	OK(evc_guard(c, "guarded", fail_and_return, &same, NULL));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_errors, 1);
	OK(evc_free(c));
}
END_TEST

static void *
ask_under_a_name(void *arg)
{
	pthread_setname_np(pthread_self(), "the-asker");
	evc_request_stop(arg, 0, NULL);
	return (void *)(intptr_t)own_tid();
}

START_TEST(a_reason_says_who_and_when)
{
	evc_coord *c = new_coord(NULL);
	struct timespec a, b;
	evc_reason r;
	pthread_t t;
	void *tid;

	clock_gettime(CLOCK_MONOTONIC, &a);
	OK(pthread_create(&t, NULL, ask_under_a_name, c));
	pthread_join(t, &tid);
	clock_gettime(CLOCK_MONOTONIC, &b);
	OK(evc_reason_get(c, 0, &r));
	ck_assert_int_eq(r.tid, (intptr_t)tid);
	ck_assert_str_eq(r.who, "the-asker");
	ck_assert_uint_eq(r.by, 0);
	ck_assert_uint_ge(r.mono_ns, (uint64_t)a.tv_sec * 1000000000u +
					     (uint64_t)a.tv_nsec);
	ck_assert_uint_le(r.mono_ns, (uint64_t)b.tv_sec * 1000000000u +
					     (uint64_t)b.tv_nsec);
	ck_assert_int_le(llabs((long long)(r.real_ns / 1000000000u) -
			       (long long)time(NULL)),
			 60);
	OK(evc_free(c));
}
END_TEST

API_MAIN("reasons", S3_reasons_are_kept_in_the_order_of_arrival,
	 S3_kept_reasons_are_bounded_and_errors_counted,
	 S3_an_error_after_many_clean_requests_is_kept_whole,
	 raise_requested_answers_as_often_as_asked,
	 an_error_after_the_round_was_closed_goes_back,
	 a_clean_request_after_the_round_was_closed_stops,
	 clean_by_default_is_end_of_input_alone,
	 a_list_of_clean_codes_replaces_the_default,
	 a_predicate_is_asked_once_for_each_code_and_never_again,
	 with_NO_CLEAN_CODES_only_0_is_clean,
	 negative_codes_are_positive_and_odd_ones_UNKNOWN,
	 after_the_stop_CANCELLED_is_obedience_before_it_an_error,
	 long_texts_and_places_are_cut_and_NULL_is_empty,
	 the_macros_add_the_place, return_evc_fail_adds_nothing,
	 a_reason_says_who_and_when)
