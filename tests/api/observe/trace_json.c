/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline as JSON, read by a JSON library: Chrome's trace format, whatever
 * the names are.
 */
#include "../../support/trace_util.h"

#ifndef HAVE_JANSSON
int
main(void)
{
	puts("SKIP tests/api/observe/trace_json: configure did not find jansson");
	return 77;
}
#else

#include <jansson.h>

#include "../../support/scope_util.h"

static json_t *
parsed(const evc_coord *c)
{
	char *text = traced(c, EVC_TRACE_JSON);
	json_error_t e;
	json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &e);

	ck_assert_msg(all != NULL, "line %d: %s, in %s", e.line, e.text, text);
	free(text);
	return all;
}

static const char *
str(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	ck_assert_msg(json_is_string(v), "no string %s", key);
	return json_string_value(v);
}

static double
num(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	ck_assert_msg(json_is_number(v), "no number %s", key);
	return json_number_value(v);
}

static long long
whole(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	ck_assert_msg(json_is_integer(v), "no integer %s", key);
	return json_integer_value(v);
}

/* The event of that name, from the ith on. */
static json_t *
named(const json_t *events, const char *name, size_t i)
{
	for (; i < json_array_size(events); i++)
		if (strcmp(str(json_array_get(events, i), "name"), name) == 0)
			return json_array_get(events, i);
	return NULL;
}

/* ---- what each event has to have ---- */

struct slice {
	double from, to;
};

/* Slices of a lane nest. */
static void
nest(const struct slice *s, size_t n)
{
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++) {
			/* Less than a nanosecond is rounding. */
			if (s[k].from <= s[i].from ||
			    s[k].from > s[i].to - 0.0005)
				continue;
			ck_assert_msg(s[k].to < s[i].to + 0.0005,
				      "%f..%f and %f..%f overlap", s[i].from,
				      s[i].to, s[k].from, s[k].to);
		}
}

static json_t *
name_of_lane(const json_t *events, long long lane)
{
	json_t *e;
	size_t i;

	json_array_foreach (events, i, e)
		if (whole(e, "tid") == lane &&
		    strcmp(str(e, "name"), "thread_name") == 0)
			return json_object_get(e, "args");
	ck_abort_msg("lane %lld has no name", lane);
	return NULL;
}

/* Each lane but the first belongs to one before it: calls to the lane of their
   member, all others to a coordinator. */
static void
check_name(const json_t *events, long long lane)
{
	const json_t *args = name_of_lane(events, lane);
	long long of = whole(args, "of");
	const char *kind = str(args, "kind"), *above;

	ck_assert_int_ge(whole(args, "id"), 0);
	ck_assert_int_eq(strncmp(str(args, "name"), str(args, "label"),
				 strlen(str(args, "label"))), 0);
	if (lane == 1) {
		ck_assert_str_eq(kind, "coordinator");
		ck_assert_int_eq(of, 0);
		return;
	}
	ck_assert(of > 0 && of < lane);
	above = str(name_of_lane(events, of), "kind");
	if (strcmp(kind, "its calls") == 0) {
		ck_assert_int_eq(of, lane - 1);
		ck_assert_str_eq(str(name_of_lane(events, of), "label"),
				 str(args, "label"));
	} else
		ck_assert_msg(strcmp(above, "coordinator") == 0 ||
				      strcmp(above, "scope") == 0,
			      "lane %lld stands in a %s", lane, above);
}

static void
check_lane(const json_t *events, long long lane, bool *ret_any)
{
	struct slice slice[256];
	size_t i, n = 0;
	bool named_lane = false, any = false;
	json_t *e;

	json_array_foreach (events, i, e) {
		if (whole(e, "tid") != lane)
			continue;
		any = true;
		named_lane |= strcmp(str(e, "name"), "thread_name") == 0;
		if (strcmp(str(e, "ph"), "X") != 0)
			continue;
		ck_assert_uint_lt(n, sizeof(slice) / sizeof(slice[0]));
		slice[n].from = num(e, "ts");
		slice[n].to = slice[n].from + num(e, "dur");
		n++;
	}
	ck_assert_msg(!any || named_lane || lane == 0, "lane %lld has no name",
		      lane);
	if (named_lane)
		check_name(events, lane);
	nest(slice, n);
	*ret_any = any;
}

static void
check_all(const json_t *all)
{
	const json_t *events = json_object_get(all, "traceEvents");
	const json_t *other = json_object_get(all, "otherData");
	long long lane = 0, zero, to;
	bool any = true;
	json_t *e;
	size_t i;

	ck_assert_str_eq(str(all, "displayTimeUnit"), "ns");
	ck_assert(json_is_array(events));
	zero = whole(other, "zero_ns");
	ck_assert_int_le(zero, whole(other, "written_ns"));
	ck_assert_int_ge(whole(other, "lost"), 0);
	/* The timeline began a moment ago. */
	ck_assert_int_le(llabs(whole(other, "zero_real_ns") / 1000000000 -
			       (long long)time(NULL)), 3600);
	json_array_foreach (events, i, e) {
		const char *ph = str(e, "ph");
		const json_t *args = json_object_get(e, "args");

		ck_assert_int_eq(whole(e, "pid"), getpid());
		ck_assert(json_is_object(args));
		if (strcmp(ph, "M") == 0)
			continue;
		ck_assert(strcmp(ph, "X") == 0 || strcmp(ph, "i") == 0);
		ck_assert(num(e, "ts") >= 0);
		str(e, "cat");
		if (*ph == 'X') {
			ck_assert(num(e, "dur") >= 0);
			to = whole(args, "to_ns");
			ck_assert_int_ge(to, whole(args, "ns"));
			ck_assert(fabs((double)(to - zero) -
				       (num(e, "ts") + num(e, "dur")) *
					       1000) < 0.5);
		}
		/* Microseconds, with their nanoseconds. */
		if (whole(args, "ns") > zero)
			ck_assert(fabs((double)(whole(args, "ns") - zero) -
				       num(e, "ts") * 1000) < 0.5);
	}
	while (any)
		check_lane(events, lane++, &any);
	ck_assert_int_gt(lane, 2);
}

START_TEST(each_event_is_one_of_the_format)
{
	static const evc_task_class cls = { .name = "request" };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop), *s;
	evc_join_opts opts = { .grace = 0.05, .flags = EVC_JOIN_STOP_FIRST };
	struct guest g = { 0 };
	atomic_int hooked = 0;
	evc_task task = { 0 };
	json_t *all;
	int i;

	OK(evc_trace_start(c, 0));
	s = phase_scope(c, "scope", 1, 0.01);
	OK(evc_thread_start(s, "worker", obey, NULL, NULL, NULL));
	OK(evc_thread_start(c, "straggler", stay, &g, NULL, NULL));
	OK(evc_looper_start(c, "looper", 0.001, return_at_once, NULL, NULL,
			    NULL));
	OK(evc_on_stop(c, "hook", count_hook, &hooked, NULL, NULL));
	OK(evc_task_begin(evc_home(c), &task, &cls));
	for (i = 0; i < 5; i++)
		ev_run(loop, EVRUN_ONCE);
	all = parsed(c);
	check_all(all);
	json_decref(all);
	ck_assert_int_eq(evc_join(c, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	all = parsed(c);
	check_all(all);
	json_decref(all);
	evc_task_end(&task);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(s));
	all = parsed(c);
	check_all(all);
	json_decref(all);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- names ---- */

static const struct {
	const char *name, *shown;
} names[] = {
	{ "plain", "plain" },
	{ "a \"quoted\" \\ one", "a \"quoted\" \\ one" },
	{ "tab\tand\nline", "tab\tand\nline" },
	{ "\x01\x1f\x7f", "\x01\x1f\x7f" },
	{ "<b>&amp;</b>", "<b>&amp;</b>" },
	{ "gr\xc3\xb6\xc3\x9f""e \xf0\x9f\x90\xa2", "gr\xc3\xb6\xc3\x9f""e "
						    "\xf0\x9f\x90\xa2" },
	{ "bad \xff\xfe", "bad \xef\xbf\xbd\xef\xbf\xbd" },
	{ "cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd" },
	/* An overlong slash, half of a surrogate pair, beyond the last. */
	{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			      "\xef\xbf\xbd" },
	{ "\xf8\x88\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
				  "\xef\xbf\xbd\xef\xbf\xbd" },
};

START_TEST(any_name_comes_through)
{
	evc_config cfg = { .name = names[_i].name };
	evc_coord *c = new_coord_with(NULL, &cfg);
	json_t *all, *e, *events;

	OK(evc_trace_start(c, 0));
	OK(evc_hold_end(c, hold(c, names[_i].name)));
	OK(evc_request_stop(c, 0, names[_i].name));
	all = parsed(c);
	check_all(all);
	events = json_object_get(all, "traceEvents");
	e = named(events, "process_name", 0);
	ck_assert_str_eq(str(json_object_get(e, "args"), "name"),
			 names[_i].shown);
	e = named(events, names[_i].shown, 0);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(str(json_object_get(e, "args"), "kind"), "hold");
	e = named(events, "stop", 0);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(str(json_object_get(e, "args"), "text"),
			 names[_i].shown);
	json_decref(all);
	OK(evc_free(c));
}
END_TEST

/* What a picture is drawn from, and no viewer asks for. */
START_TEST(a_stop_that_was_cleared_says_when)
{
	evc_coord *c = new_coord(NULL);
	json_t *all, *e, *events;
	size_t i;

	OK(evc_trace_start(c, 0));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_clear_stop(c));
	OK(evc_request_stop(c, 0, NULL));
	all = parsed(c);
	check_all(all);
	events = json_object_get(all, "traceEvents");
	e = named(events, "stopping", 0);
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(whole(json_object_get(e, "args"), "cleared_ns"),
			 whole(json_object_get(named(events, "clear", 0),
					       "args"), "ns"));
	/* The second one stands still. */
	for (i = 0; json_array_get(events, i) != e; i++)
		;
	e = named(events, "stopping", i + 1);
	ck_assert_ptr_nonnull(e);
	ck_assert_ptr_null(json_object_get(json_object_get(e, "args"),
					   "cleared_ns"));
	json_decref(all);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_loop_that_is_anothers_is_shared)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop), *s;
	json_t *all, *e, *events;
	size_t i;
	int loops = 0;

	OK(evc_trace_start(c, 0));
	s = ready_scope(c, "scope", NULL);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	all = parsed(c);
	check_all(all);
	events = json_object_get(all, "traceEvents");
	json_array_foreach (events, i, e) {
		const json_t *args = json_object_get(e, "args");
		const json_t *kind = json_object_get(args, "kind");

		if (strcmp(str(e, "ph"), "X") != 0 || kind == NULL ||
		    strcmp(str(args, "kind"), "loop") != 0)
			continue;
		ck_assert_int_eq(json_is_true(json_object_get(args, "shared")),
				 strcmp(str(args, "scope"), "scope") == 0);
		loops++;
	}
	ck_assert_int_eq(loops, 2);
	json_decref(all);
	OK(evc_free(s));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(an_empty_timeline_is_json_too)
{
	evc_coord *c = new_coord(NULL);
	json_t *all;

	OK(evc_trace_start(c, 0));
	OK(evc_trace_stop(c));
	all = parsed(c);
	check_all(all);
	json_decref(all);
	OK(evc_free(c));
}
END_TEST

START_TEST(another_library_reads_it)
{
	evc_coord *c = new_coord(NULL);
	char path[] = "/tmp/evc-trace-XXXXXX", line[128];
	int fd;

	if (system("command -v python3 >/dev/null") != 0)
		T_SKIP("python3 is not installed");
	OK(evc_trace_start(c, 0));
	OK(evc_hold_end(c, hold(c, names[1].name)));
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	OK(evc_trace_write(c, fd, EVC_TRACE_JSON));
	close(fd);
	snprintf(line, sizeof(line), "python3 -m json.tool %s >/dev/null",
		 path);
	ck_assert_int_eq(system(line), 0);
	unlink(path);
	OK(evc_free(c));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("trace_json");
	TCase *tc = tcase_create("trace_json");

	tcase_add_test(tc, each_event_is_one_of_the_format);
	tcase_add_loop_test(tc, any_name_comes_through, 0,
			    (int)(sizeof(names) / sizeof(names[0])));
	tcase_add_test(tc, a_stop_that_was_cleared_says_when);
	tcase_add_test(tc, a_loop_that_is_anothers_is_shared);
	tcase_add_test(tc, an_empty_timeline_is_json_too);
	tcase_add_test(tc, another_library_reads_it);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}

#endif
