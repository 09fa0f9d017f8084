/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long texts of errors and of deaths: wherever they do not fit, the beginning and
 * the end stay, and no half of a character.
 */
#include "functions.h"

#include <locale.h>

#define BEGINNING "the beginning "
#define GAP " ... "
#define END " the end"

/* [n, times, any]: fails with a text of n characters of two bytes in the middle; the
   last of several times counts */
static evc_status
fn_complain(evc_exec *x, void *arg)
{
	unsigned n, times, i;
	evc_status st = 0;
	char *middle;
	evc_value any;

	(void)arg;
	if (evc_exec_unpack(x, "[uuv]", &n, &times, &any) < 0)
		return EVC_INVALID_ARGUMENT;
	middle = calloc(n + 1, 2);
	for (i = 0; i < n; i++)
		memcpy(middle + 2 * i, "\xc3\xa9", 2);
	for (i = 0; i < times; i++)
		st = evc_exec_fail(x, EVC_DATA_LOSS, "%s%s%s", BEGINNING,
				   middle, END);
	free(middle);
	return st;
}

/* [n]: prints n lines, and dies */
static evc_status
fn_shout(evc_exec *x, void *arg)
{
	unsigned n, i;

	(void)arg;
	if (evc_exec_unpack(x, "[u]", &n) < 0)
		return EVC_INVALID_ARGUMENT;
	for (i = 0; i < n; i++)
		fprintf(stderr, "line %u of what it says\n", i);
	fprintf(stderr, "and this is%s\n", END);
	_exit(3);
}

/* [] -> what a per-worker value fails with */
static evc_status
fn_no_value(evc_exec *x, void *arg)
{
	(void)arg;
	return evc_exec_fail(x, EVC_DATA_LOSS, "%s%0*d%s", BEGINNING, 1000, 0,
			     END);
}

static bool
is_whole(const char *s)
{
	size_t n = mbstowcs(NULL, s, 0);

	return n != (size_t)-1;
}

static void
both_ends(const char *s, const char *end)
{
	ck_assert_msg(strlen(s) >= strlen(end) &&
			      strcmp(s + strlen(s) - strlen(end), end) == 0,
		      "its end: %s", s);
	HAS(s, BEGINNING);
	HAS(s, GAP);
	ck_assert_msg(is_whole(s), "half of a character: %s", s);
}

START_TEST(an_error_of_a_function)
{
	static char all[10000];
	evc_remote *r, *by, *gate;
	evc_reason e;
	size_t n;
	unsigned times;

	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	begin(_i, 2);
	for (times = 1; times <= 100; times += 99) {
		r = SCHEDULE("complain", "[uui]", 5000u, times, 0);
		IS(code_of(r), EVC_DATA_LOSS);
		both_ends(evc_last_error(), END);
		both_ends(info_of(r).text, END);
		n = evc_remote_text(r, all, sizeof(all));
		ck_assert_uint_eq(n, strlen(all));
		ck_assert_uint_gt(n, 4080);
		ck_assert_uint_lt(n, 4096);
		ck_assert_int_eq(strncmp(all, BEGINNING, strlen(BEGINNING)), 0);
		both_ends(all, END);
		/* As snprintf. */
		ck_assert_uint_eq(evc_remote_text(r, NULL, 0), n);
		ck_assert_uint_eq(evc_remote_text(r, all, 5), n);
		ck_assert_str_eq(all, "the ");
		/* But without half of a character. */
		ck_assert_uint_eq(evc_remote_text(r, all,
						  strlen(BEGINNING) + 2),
				  n);
		ck_assert_str_eq(all, BEGINNING);
		IS(join(), EVC_DATA_LOSS);
		both_ends(evc_last_error(), END);
		OK(evc_cluster_error_get(on.cl, 0, &e));
		both_ends(e.text, END);
		evc_remote_free(r);
	}
	/* One that depends on it says the same, in short. */
	gate = SCHEDULE("hold", "[s]", "g");
	r = SCHEDULE("complain", "[uur]", 5000u, 1u, gate);
	by = SCHEDULE("echo", "[r]", r);
	let_go("g");
	IS(code_of(by), EVC_DATA_LOSS);
	ck_assert_uint_lt(evc_remote_text(by, all, sizeof(all)), 192);
	both_ends(all, END);
	evc_remote_free(by);
	evc_remote_free(gate);
	evc_remote_free(r);
	IS(join(), EVC_DATA_LOSS);
	/* What fits is whole. */
	r = SCHEDULE("complain", "[uui]", 80u, 1u, 0);
	IS(code_of(r), EVC_DATA_LOSS);
	n = evc_remote_text(r, all, sizeof(all));
	ck_assert_uint_eq(n, strlen(BEGINNING) + 160 + strlen(END));
	ck_assert_str_eq(info_of(r).text, all);
	ck_assert_ptr_null(strstr(all, GAP));
	evc_remote_free(r);
	IS(join(), EVC_DATA_LOSS);
	/* And one that has none. */
	r = SCHEDULE("add", "[ii]", 1, 2);
	IS(number_of(r), 3);
	ck_assert_uint_eq(evc_remote_text(r, all, sizeof(all)), 0);
	ck_assert_str_eq(all, "");
	ck_assert_uint_eq(evc_remote_text(NULL, all, sizeof(all)), 0);
	evc_remote_free(r);
}
END_TEST

START_TEST(an_error_of_a_build)
{
	evc_per_worker *p = NULL;
	evc_remote *r;

	begin(_i, 1);
	OK(evc_per_worker_value(on.cl, "thing", "no value", NULL, &p));
	r = SCHEDULE("echo", "[w]", p);
	IS(code_of(r), EVC_DATA_LOSS);
	ck_assert_int_eq(strncmp(info_of(r).text, "input thing on ", 15), 0);
	both_ends(info_of(r).text, END);
	IS(join(), EVC_DATA_LOSS);
	evc_remote_free(r);
	evc_per_worker_free(p);
}
END_TEST

START_TEST(last_words)
{
	static char all[10000];
	evc_schedule_opts o = { .deaths = 1 };
	evc_cluster_worker_info w;
	evc_remote *r;
	size_t n;

	begin(_i, 1);
	ck_assert_uint_eq(evc_cluster_worker_text(on.cl, 0, all, sizeof(all)),
			  0);
	r = SCHEDULE_WITH(&o, "shout", "[u]", 1000u);
	IS(code_of(r), EVC_ABORTED);
	w = worker(0);
	HAS(w.text, "worker 0 (pid ");
	HAS(w.text, "ended with exit status 3");
	HAS(w.text, GAP);
	ck_assert_str_eq(w.text + strlen(w.text) - strlen(END), END);
	n = evc_cluster_worker_text(on.cl, 0, all, sizeof(all));
	ck_assert_uint_eq(n, strlen(all));
	ck_assert_uint_gt(n, 4000);
	ck_assert_uint_lt(n, 4608);
	HAS(all, "; its last words: ");
	HAS(all, "line 900 of what it says line 901 of what it says");
	ck_assert_str_eq(all + n - strlen(END), END);
	ck_assert_uint_eq(evc_cluster_worker_text(on.cl, 0, NULL, 0), n);
	/* The function's error has them, too. */
	n = evc_remote_text(r, all, sizeof(all));
	ck_assert_uint_gt(n, 4000);
	HAS(all, "1 death; the last: ");
	HAS(all, "line 990 of");
	ck_assert_str_eq(all + n - strlen(END), END);
	HAS(info_of(r).text, "1 death");
	HAS(info_of(r).text, END);
	evc_remote_free(r);
	IS(join(), EVC_ABORTED);
	HAS(evc_last_error(), END);
	/* The next death has its own words alone. */
	r = SCHEDULE_WITH(&o, "shout", "[u]", 0u);
	IS(code_of(r), EVC_ABORTED);
	n = evc_cluster_worker_text(on.cl, 0, all, sizeof(all));
	ck_assert_uint_lt(n, 192);
	HAS(all, "; its last words: and this is the end");
	ck_assert_str_eq(worker(0).text, all);
	evc_remote_free(r);
	IS(join(), EVC_ABORTED);
	ck_assert_uint_eq(evc_cluster_worker_text(on.cl, 99, all, sizeof(all)),
			  0);
	ck_assert_uint_eq(evc_cluster_worker_text(NULL, 0, all, sizeof(all)),
			  0);
}
END_TEST

static const evc_function functions[] = {
	COMMON_FUNCTIONS,
	{ .name = "complain", .fn = fn_complain },
	{ .name = "shout", .fn = fn_shout },
	{ .name = "no value", .fn = fn_no_value },
};

CONFORMANCE_MAIN("texts", functions, ROW(an_error_of_a_function),
		 ROW(an_error_of_a_build), ROW_ON(DIES, last_words))
