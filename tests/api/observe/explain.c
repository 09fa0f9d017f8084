/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a person reads: evc_explain and evc_report name who, why, where, when
 * and what came after; and both behave like snprintf.
 */
#include "../../support/api_util.h"

#include <ev.h>
#include <signal.h>

/* The texts of a coordinator, whole. */
static const char *
explain(evc_coord *c)
{
	static char text[8192];
	size_t n = evc_explain(c, text, sizeof(text));

	ck_assert_uint_lt(n, sizeof(text));
	ck_assert_uint_eq(n, strlen(text));
	ck_assert_uint_gt(n, 0);
	return text;
}

static const char *
report(evc_coord *c)
{
	static char text[8192];
	size_t n = evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));

	ck_assert_uint_lt(n, sizeof(text));
	ck_assert_uint_eq(n, strlen(text));
	return text;
}

struct who {
	int tid, line;
};

static evc_status
fail_here(evc_coord *c, void *arg)
{
	struct who *w = arg;

	w->tid = own_tid();
	w->line = __LINE__ + 1;
	return evc_fail(c, EVC_DATA_LOSS, ENOSPC, "shard %d is full", 3);
}

START_TEST(a_members_error_is_explained_with_who_why_where)
{
	evc_config cfg = { .name = "trainer" };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct who w = { 0 };
	char part[64];
	const char *text;

	OK(evc_thread_start(c, "shard-writer", fail_here, &w, NULL, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	text = explain(c);
	HAS(text, "trainer");
	HAS(text, "shard-writer");
	snprintf(part, sizeof(part), "%d", w.tid);
	HAS(text, part);
	HAS(text, "DATA_LOSS");
	HAS(text, "shard 3 is full");
	snprintf(part, sizeof(part), "explain.c:%d", w.line);
	HAS(text, part);
	text = report(c);
	HAS(text, "shard-writer");
	HAS(text, "shard 3 is full");
	OK(evc_free(c));
}
END_TEST

START_TEST(what_came_after_a_clean_stop_is_told_too)
{
	evc_coord *c = new_coord(NULL);
	const char *text;
	char main_tid[16];

	OK(evc_request_stop(c, 0, "the operator asked"));
	OK(evc_request_stop(c, EVC_INTERNAL, "then this broke"));
	OK(evc_request_stop(c, EVC_ABORTED, "and this"));
	text = explain(c);
	HAS(text, "the operator asked");
	HAS(text, "then this broke");
	HAS(text, "INTERNAL");
	snprintf(main_tid, sizeof(main_tid), "%d", own_tid());
	HAS(text, main_tid);
	text = report(c);
	HAS(text, "the operator asked");
	HAS(text, "then this broke");
	HAS(text, "and this");
	OK(evc_free(c));
}
END_TEST

START_TEST(why_it_does_not_stop_is_explained_too)
{
	evc_coord *c = new_coord(NULL);
	evc_id hold = 0;

	HAS(explain(c), "no stop was requested. No member is alive.");
	OK(evc_hold_begin(c, "open-file", NULL, &hold));
	HAS(report(c), "open-file");
	HAS(explain(c), "no stop was requested. Alive (1): open-file.");
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_ptr_null(strstr(explain(c), "no stop was requested"));
	HAS(explain(c), "the stop was requested by ");
	HAS(explain(c), "No error was reported. Alive (1): open-file.");
	OK(evc_hold_end(c, hold));
	ck_assert_ptr_null(strstr(report(c), "open-file"));
	OK(evc_free(c));
}
END_TEST

START_TEST(an_end_that_stops_is_explained_by_its_member)
{
	evc_member_opts opts = { .flags = EVC_END_STOPS };
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "main-loop", return_at_once, NULL, &opts, NULL));
	OK(evc_join(c, NULL, NULL));
	HAS(explain(c), "main-loop");
	OK(evc_free(c));
}
END_TEST

START_TEST(a_signal_is_explained_by_its_name)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_signals_start(c, NULL));
	raise(SIGTERM);
	HAS(explain(c), "TERM");
	OK(evc_free(c));
}
END_TEST

START_TEST(after_a_clear_nothing_old_is_told)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_request_stop(c, EVC_INTERNAL, "of the old round"));
	OK(evc_clear_stop(c));
	ck_assert_ptr_null(strstr(explain(c), "of the old round"));
	ck_assert_ptr_null(strstr(report(c), "of the old round"));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_report_has_a_line_for_each_that_is_alive)
{
	static const evc_task_class cls = { .name = "upload" };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_join_opts opts = { .grace = 0.01 };
	struct guest g = { 0 };
	evc_task task = { 0 };
	evc_id hold = 0;
	const char *text, *p;
	int n = 0;

	OK(evc_hold_begin(c, "a-hold", NULL, &hold));
	OK(evc_thread_start(c, "a-thread", stay, &g, NULL, NULL));
	OK(evc_task_begin(evc_home(c), &task, &cls));
	OK(evc_request_stop(c, 0, "why"));
	ck_assert_int_eq(evc_join(c, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	text = report(c);
	HAS(text, "why");
	HAS(text, "a-hold");
	HAS(text, "a-thread");
	HAS(text, "upload");
	for (p = text; *p != '\0'; p++)
		n += *p == '\n';
	ck_assert_int_ge(n, 4);
	evc_task_end(&task);
	OK(evc_hold_end(c, hold));
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Both as snprintf, at every length. */
static void
like_snprintf(size_t (*tell)(const evc_coord *, char *, size_t), evc_coord *c)
{
	static char whole[8192], part[8192];
	size_t length, n;

	length = tell(c, NULL, 0);
	ck_assert_uint_gt(length, 0);
	ck_assert_uint_lt(length, sizeof(whole));
	ck_assert_uint_eq(tell(c, whole, sizeof(whole)), length);
	ck_assert_uint_eq(strlen(whole), length);
	for (n = 1; n <= length + 1; n++) {
		memset(part, '#', sizeof(part));
		ck_assert_uint_eq(tell(c, part, n), length);
		ck_assert_uint_eq(strlen(part), n - 1);
		ck_assert_int_eq(memcmp(part, whole, n - 1), 0);
		ck_assert_int_eq(part[n], '#');
	}
	part[0] = '#';
	ck_assert_uint_eq(tell(c, part, 0), length);
	ck_assert_int_eq(part[0], '#');
}

START_TEST(lengths_are_those_of_snprintf)
{
	/* ages and dates stand still on this clock */
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	evc_fail(c, EVC_INTERNAL, EIO, "some error");
	like_snprintf(evc_explain, c);
	like_snprintf(report_text, c);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

API_MAIN("explain", a_members_error_is_explained_with_who_why_where,
	 what_came_after_a_clean_stop_is_told_too,
	 why_it_does_not_stop_is_explained_too,
	 an_end_that_stops_is_explained_by_its_member,
	 a_signal_is_explained_by_its_name, after_a_clear_nothing_old_is_told,
	 a_report_has_a_line_for_each_that_is_alive,
	 lengths_are_those_of_snprintf)
