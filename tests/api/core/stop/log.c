/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log hook: one line for every error, one for every join that ends with
 * members alive, and none from the thread that asks for the stop.
 */
#include "../../../support/api_util.h"

#include <ev.h>

struct line {
	int level, tid;
	bool has_reason;
	evc_reason reason;
	char text[512];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct line lines[64];
static int n_lines;

static void
keep_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct line *l;

	(void)arg;
	/* log_stop.c has the lines about a stop that goes well, and the warning
	   shortly before its end. */
	if (level == EVC_LOG_WARNING ||
	    (level == EVC_LOG_INFO && strstr(line, "still running") == NULL))
		return;
	pthread_mutex_lock(&lock);
	if (n_lines < 64) {
		l = &lines[n_lines++];
		l->level = level;
		l->tid = own_tid();
		l->has_reason = r != NULL;
		if (r != NULL)
			l->reason = *r;
		snprintf(l->text, sizeof(l->text), "%s", line);
	}
	pthread_mutex_unlock(&lock);
}

static int
count_lines(void)
{
	int n;

	pthread_mutex_lock(&lock);
	n = n_lines;
	pthread_mutex_unlock(&lock);
	return n;
}

static evc_coord *
logged_coord(struct ev_loop *loop)
{
	evc_config cfg = { .name = "the-coordinator", .log = keep_line };

	n_lines = 0;
	return new_coord_with(loop, &cfg);
}

static evc_status
fail_with_text(evc_coord *c, void *arg)
{
	*(int *)arg = __LINE__ + 1;
	return evc_fail(c, EVC_DATA_LOSS, EIO, "block %d", 12);
}

START_TEST(one_line_for_an_error_says_all_that_is_known)
{
	evc_coord *c = logged_coord(NULL);
	char place[32];
	int line = 0;

	OK(evc_thread_start(c, "the-writer", fail_with_text, &line, NULL,
			    NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	ck_assert_int_eq(count_lines(), 1);
	ck_assert_int_eq(lines[0].level, EVC_LOG_ERROR);
	HAS(lines[0].text, "the-coordinator");
	HAS(lines[0].text, "DATA_LOSS");
	HAS(lines[0].text, "block 12");
	HAS(lines[0].text, "the-writer");
	snprintf(place, sizeof(place), "log.c:%d", line);
	HAS(lines[0].text, place);
	ck_assert_ptr_null(strchr(lines[0].text, '\n'));
	ck_assert(lines[0].has_reason);
	ck_assert_int_eq(lines[0].reason.code, EVC_DATA_LOSS);
	ck_assert_int_eq(lines[0].reason.err, EIO);
	ck_assert_str_eq(lines[0].reason.text, "block 12");
	OK(evc_free(c));
	ck_assert_int_eq(count_lines(), 1); /* once, and not again */
}
END_TEST

START_TEST(the_meaning_of_errno_stands_there_once)
{
	evc_coord *c = logged_coord(NULL);
	char text[4096];
	const char *at;

	evc_fail(c, EVC_DATA_LOSS, EIO, "write: %s", strerror(EIO));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	ck_assert_int_eq(count_lines(), 1);
	at = strstr(lines[0].text, strerror(EIO));
	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_null(strstr(at + 1, strerror(EIO)));
	ck_assert_uint_lt(evc_report(c, EVC_REPORT_TEXT, text, sizeof(text)), sizeof(text));
	at = strstr(text, strerror(EIO));
	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_null(strstr(at + 1, strerror(EIO)));
	OK(evc_free(c));
}
END_TEST

START_TEST(each_error_has_a_line_and_clean_stops_have_none)
{
	evc_coord *c = logged_coord(NULL);
	char text[16];
	int i;

	OK(evc_request_stop(c, 0, "clean"));
	OK(evc_request_stop(c, EVC_OUT_OF_RANGE, "clean"));
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	ck_assert_int_eq(count_lines(), 0);
	for (i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "error %d", i);
		OK(evc_request_stop(c, EVC_INTERNAL, text));
	}
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	ck_assert_int_eq(count_lines(), 5);
	for (i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "error %d", i);
		HAS(lines[i].text, text);
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(no_line_comes_from_the_thread_that_asks)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = logged_coord(loop);
	struct joiner j;
	evc_id hold = 0;

	/* no join, no loop that runs: the helper thread tells the log */
	OK(evc_request_stop(c, EVC_INTERNAL, "first"));
	evc_fail(c, EVC_ABORTED, 0, "second");
	UNTIL(count_lines() >= 1);
	ck_assert_int_eq(evc_run(c, NULL, NULL), EVC_INTERNAL);
	ck_assert_int_eq(count_lines(), 2);
	ck_assert_int_ne(lines[0].tid, own_tid());
	ck_assert_int_eq(lines[0].tid, lines[1].tid);
	OK(evc_clear_stop(c));

	/* nor does a line come from a thread that joins */
	n_lines = 0;
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	join_begin(&j, c, 0, 0);
	OK(evc_request_stop(c, EVC_INTERNAL, "third"));
	OK(evc_hold_end(c, hold));
	ck_assert_int_eq(join_end(&j), EVC_INTERNAL);
	ck_assert_int_eq(count_lines(), 1);
	ck_assert_int_ne(lines[0].tid, j.tid);
	ck_assert_int_ne(lines[0].tid, own_tid());
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_loop_that_turns_tells_the_log)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = logged_coord(loop);

	OK(evc_request_stop(c, EVC_INTERNAL, "the error"));
	ev_run(loop, EVRUN_NOWAIT);
	UNTIL(count_lines() == 1);
	HAS(lines[0].text, "the error");
	OK(evc_free(c));
	ck_assert_int_eq(count_lines(), 1);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(clear_and_free_tell_what_was_not_told)
{
	evc_coord *c = logged_coord(NULL);

	OK(evc_request_stop(c, EVC_INTERNAL, "before the clear"));
	OK(evc_clear_stop(c));
	ck_assert_int_eq(count_lines(), 1);
	HAS(lines[0].text, "before the clear");
	OK(evc_request_stop(c, EVC_INTERNAL, "before the free"));
	OK(evc_free(c));
	ck_assert_int_eq(count_lines(), 2);
	HAS(lines[1].text, "before the free");
}
END_TEST

/* The only line with this text; NULL: there are none, or more. */
static const struct line *
line_with(const char *text)
{
	const struct line *found = NULL;
	int i, n = 0;

	for (i = 0; i < n_lines; i++)
		if (strstr(lines[i].text, text) != NULL && ++n == 1)
			found = &lines[i];
	return n == 1 ? found : NULL;
}

/* The lines of one join with two holds alive. */
static const struct line *
join_with_two_alive(unsigned flags, evc_status expected)
{
	const struct line *l;
	int n;
	evc_coord *c = logged_coord(NULL);
	evc_join_opts opts = { .grace = EVC_NO_GRACE, .flags = flags };
	evc_id a = 0, b = 0;

	OK(evc_hold_begin(c, "late-a", NULL, &a));
	OK(evc_hold_begin(c, "late-b", NULL, &b));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, NULL), expected);
	l = line_with("ended after");
	ck_assert_ptr_nonnull(l);
	HAS(l->text, "the-coordinator");
	HAS(l->text, "late-a");
	HAS(l->text, "late-b");
	for (n = 0; n < count_lines(); n++)
		ck_assert_ptr_null(strchr(lines[n].text, '\n'));
	OK(evc_hold_end(c, a));
	OK(evc_hold_end(c, b));
	OK(evc_join(c, NULL, NULL)); /* none alive: no line */
	ck_assert_int_eq(count_lines(), n);
	OK(evc_free(c));
	return l;
}

START_TEST(a_join_with_members_alive_is_an_error_line)
{
	const struct line *l = join_with_two_alive(0, EVC_DEADLINE_EXCEEDED);

	ck_assert_int_eq(l->level, EVC_LOG_ERROR);
	/* and the report, with a line for each member */
	ck_assert_ptr_nonnull(line_with("hold \"late-a\""));
	ck_assert_ptr_nonnull(line_with("hold \"late-b\""));
	ck_assert_ptr_nonnull(line_with("the time of the stop is over"));
}
END_TEST

START_TEST(with_IGNORE_LIVE_it_is_for_information)
{
	const struct line *l = join_with_two_alive(EVC_JOIN_IGNORE_LIVE, 0);

	ck_assert_int_eq(l->level, EVC_LOG_INFO);
	ck_assert_ptr_null(line_with("the time of the stop is over"));
}
END_TEST

static evc_coord *calling;

static void
call_back(int level, const char *line, const evc_reason *r, void *arg)
{
	evc_id id = 0;

	(void)level;
	(void)line;
	(void)r;
	++*(int *)arg;
	/* called under no lock: every call may be made from here */
	if (evc_raise_requested(calling, NULL) < 0 ||
	    evc_on_stop(calling, "h", return_at_once, NULL, NULL, &id) != 0 ||
	    evc_member_remove(calling, id) != 0)
		++*(int *)arg;
}

START_TEST(the_hook_may_call_the_coordinator)
{
	int calls = 0;
	evc_config cfg = { .log = call_back, .arg = &calls };
	struct ev_loop *loop = ev_loop_new(0);

	calling = new_coord_with(loop, &cfg);
	OK(evc_request_stop(calling, EVC_INTERNAL, "x"));
	ck_assert_int_eq(evc_join(calling, NULL, NULL), EVC_INTERNAL);
	/* The join may have seen the hook "h" on its own thread and left the
	   round open: then the last line is written by evc_free. */
	ck_assert(evc_log_flush(calling, 30));
	OK(evc_free(calling));
	ck_assert_int_eq(calls, 3); /* requested, the error, ended */
	ev_loop_destroy(loop);
}
END_TEST

/* The same time for all: then what came first stands first. */
START_TEST(S3_with_equal_times_the_order_of_arrival_stands)
{
	static const char *const text[] = { "a", "b", "c", "d" };
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_reason r;
	unsigned i;

	for (i = 0; i < 4; i++)
		OK(evc_request_stop(c, i == 2 ? EVC_INTERNAL : 0, text[i]));
	for (i = 0; i < 4; i++) {
		OK(evc_reason_get(c, i, &r));
		ck_assert_str_eq(r.text, text[i]);
	}
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_free(c));
}
END_TEST

API_MAIN("log", S3_with_equal_times_the_order_of_arrival_stands,
	 one_line_for_an_error_says_all_that_is_known,
	 the_meaning_of_errno_stands_there_once,
	 each_error_has_a_line_and_clean_stops_have_none,
	 no_line_comes_from_the_thread_that_asks,
	 a_loop_that_turns_tells_the_log, clear_and_free_tell_what_was_not_told,
	 a_join_with_members_alive_is_an_error_line,
	 with_IGNORE_LIVE_it_is_for_information,
	 the_hook_may_call_the_coordinator)
