/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a report that scopes write themselves: those of worker groups,
 * and those of a describe of the test's own, whatever it writes.
 */
#include "../../support/workers_util.h"
#include "../../support/report_util.h"
#include "../../support/metrics_util.h"

#include "../../support/older.h"

#include <poll.h>
#include <signal.h>

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

enum { TEN = 10 };

/* A coordinator with groups of these names below it; nothing runs. */
static evc_coord *
root_with(evc_registry *reg, struct crew *k, const char *name, int n)
{
	evc_config cfg = { .name = "root" };
	evc_coord *c = new_coord_with(NULL, &cfg);
	evc_group_opts o = { .coord = c };

	while (n-- > 0)
		crew_add(reg, name, &k[n], 2, &o);
	return c;
}

static void
root_end(evc_coord *c, evc_registry *reg)
{
	end_registry(reg);
	OK(evc_free(c));
}

/* ---- groups ---- */

START_TEST(a_group_in_the_text_of_the_root)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };
	evc_coord *c = root_with(reg, &k, "train", 1);
	const char *text;
	char own[4096];

	OK(evc_group_put(k.group, "bytes", 47110, true));
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	text = whole(report_text, c);
	HAS(text, "coordinator \"root\"");
	HAS(text, "\n  scope \"train\"");
	HAS(text, "\n    group: running, 2 of 2 workers, 1 start");
	HAS(text, "\n      worker 0: in a run for ");
	HAS(text, "\n        bytes: 47110\n");
	HAS(text, "thread \"train/0\"");
	own_report(evc_group_scope(k.group), own, sizeof(own));
	ck_assert_int_eq(strncmp(own, "group: running", 14), 0);
	atomic_store(&k.open, 1);
	root_end(c, reg);
}
END_TEST

START_TEST(ten_groups_of_one_name_in_the_metrics)
{
	evc_registry *reg = new_registry(0);
	struct crew k[TEN] = { { 0 } };
	evc_coord *c = root_with(reg, k, "train", TEN);
	char labels[100];
	int i;

	for (i = 0; i < TEN; i++)
		OK(evc_group_put(k[i].group, "bytes", i, false));
	read_metrics(whole(report_metrics, c));
	for (i = 0; i < TEN; i++) {
		snprintf(labels, sizeof(labels),
			 i == 0 ? "coordinator=\"root\",scope=\"train\","
				  "group=\"train\"" :
				  "coordinator=\"root\",scope=\"train#%d\","
				  "group=\"train\"",
			 i + 1);
		ck_assert(value("evcoord_workers_threads", labels) == 2);
		ck_assert(value("evcoord_workers_live", labels) == 0);
	}
	/* the last one that was added has number 0 */
	ck_assert(value("evcoord_workers_metric",
			"coordinator=\"root\",scope=\"train#10\","
			"group=\"train\",name=\"bytes\"") == 0);
	ck_assert(value("evcoord_workers_metric",
			"coordinator=\"root\",scope=\"train\","
			"group=\"train\",name=\"bytes\"") == TEN - 1);
	/* of one alone it is the same */
	read_metrics(whole(report_metrics, evc_group_scope(k[0].group)));
	ck_assert_ptr_nonnull(find_sample("evcoord_workers_threads",
					  "coordinator=\"root\","
					  "scope=\"train\",group=\"train\""));
	root_end(c, reg);
}
END_TEST

/* Reports wait for nobody who hangs. */
START_TEST(a_group_that_hangs)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_stay };
	evc_coord *c = root_with(reg, &k, "train", 1);
	evc_join_opts none = { .grace = EVC_NO_GRACE };

	STACKS_BY(0);
	OK(evc_registry_start(reg));
	UNTIL(atomic_load(&k.in) == 2);
	LATE(evc_registry_stop(reg, &none));
	evc_report(c, EVC_REPORT_TEXT | EVC_REPORT_STACKS, NULL, 0);
	HAS(report(c), "\n    group: stopping, 2 of 2 workers");
	HAS(report(c), "\n      stopped last: request");
	atomic_store(&k.open, 1);
	root_end(c, reg);
}
END_TEST

START_TEST(a_signal_has_groups_written)
{
	evc_registry *reg = new_registry(0);
	struct crew k = { 0 };
	evc_coord *c = root_with(reg, &k, "train", 1);
	static char text[1 << 16];
	size_t n = 0;
	int fd[2];

	OK(pipe2(fd, O_NONBLOCK));
	OK(evc_dump_signal(c, SIGUSR1, fd[1], EVC_REPORT_TEXT));
	OK(raise(SIGUSR1));
	UNTIL(({
		ssize_t more = read(fd[0], text + n, sizeof(text) - 1 - n);

		n += more > 0 ? (size_t)more : 0;
		strstr(text, "group: new, 0 of 2 workers") != NULL;
	}));
	root_end(c, reg);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

START_TEST(groups_come_and_go_while_another_thread_reports)
{
	evc_registry *reg = new_registry(0);
	evc_config cfg = { .name = "root" };
	struct reporting crowd = { .c = new_coord_with(NULL, &cfg) };
	evc_group_opts o = { .coord = crowd.c };
	struct crew k;
	pthread_t t[2];
	int i, before;

	for (i = 0; i < 2; i++)
		OK(pthread_create(&t[i], NULL, report_again_and_again,
				  &crowd));
	for (i = 0; i < 20; i++) {
		before = atomic_load(&crowd.turns);
		memset(&k, 0, sizeof(k));
		crew_add(reg, "brief", &k, 2, &o);
		OK(evc_group_put(k.group, "x", 1, true));
		OK(evc_group_start(k.group));
		OK(evc_group_resize(k.group, 3));
		UNTIL(atomic_load(&crowd.turns) > before);
		OK(evc_group_stop(k.group, NULL));
		OK(evc_group_free(k.group));
	}
	atomic_store(&crowd.leave, 1);
	for (i = 0; i < 2; i++)
		OK(pthread_join(t[i], NULL));
	root_end(crowd.c, reg);
}
END_TEST

/* ---- a describe of the test's own ---- */

/* What it writes in each format, and how often it was asked. */
struct words {
	const char *text, *json, *metrics;
	int grows; /* bytes more, which each call doubles; 0: none */
	bool refused; /* makes a call that is refused */
	atomic_int calls;
};

static size_t
say(unsigned format, char *buf, size_t n, void *arg)
{
	struct words *w = arg;
	int nth = atomic_fetch_add(&w->calls, 1);
	const char *s = format == EVC_REPORT_TEXT ? w->text :
			format == EVC_REPORT_JSON ? w->json :
						    w->metrics;

	if (w->refused)
		(void)evc_refuse(-EVC_NOT_FOUND, "inside");
	return (size_t)snprintf(buf, n, "%s%*s", s,
				w->grows << (nth < 16 ? nth : 16), "");
}

static evc_coord *
scope_that_says(evc_coord *c, const char *name, struct words *w)
{
	evc_scope_opts o = { .describe = say, .arg = w };
	evc_coord *s = NULL;

	OK(evc_scope_new(c, name, &o, &s));
	OK(evc_scope_ready(s));
	return s;
}

static struct words odd = {
	.text = "first \"line\"\nsecond\x1b[2J\xff line\n\nlast without an end",
	.json = "{\"a \\\"key\\\"\":\"a\\nline\",\"n\":[1,2]}",
	.metrics = "evcoord_lost_before 1\n"
		   "# HELP evcoord_odd Things, \"quoted\".\n"
		   "# TYPE evcoord_odd gauge\n"
		   "evcoord_odd 7\n"
		   "evcoord_odd{} 8\n"
		   "evcoord_odd{x=\"a\\\"b\\nc\\\\\"} 9\n"
		   "\n"
		   "# a comment\n"
		   "# HELP evcoord_odd_total Others.\n"
		   "# TYPE evcoord_odd_total counter\n"
		   "evcoord_odd_total{x=\"y\"} 3",
};

START_TEST(whatever_it_writes_as_text_is_lines)
{
	evc_coord *c = new_coord(NULL);
	evc_coord *s = scope_that_says(c, "odd", &odd);

	HAS(report(c), "\n    first \"line\"\n    second\\x1b[2J\\xff line\n"
		       "    \n    last without an end\n  reasons");
	HAS(report(s), "\n  first \"line\"\n");
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

START_TEST(what_it_writes_as_metrics_has_labels)
{
	static const struct words other = {
		.metrics = "# HELP evcoord_odd Things, \"quoted\".\n"
			   "# TYPE evcoord_odd gauge\n"
			   "evcoord_odd{x=\"z\"} 10\n"
			   "# HELP evcoord_mine Mine.\n"
			   "# TYPE evcoord_mine gauge\n"
			   "evcoord_mine 11\n",
	};
	struct words w[2] = { odd, other };
	evc_config cfg = { .name = "r" };
	evc_coord *c = new_coord_with(NULL, &cfg), *s[2];
	const char *text;

	s[0] = scope_that_says(c, "a", &odd);
	s[1] = scope_that_says(c, "b", &w[1]);
	text = whole(report_metrics, c);
	HAS(text, "\nevcoord_odd{coordinator=\"r\",scope=\"a\"} 7\n");
	HAS(text, "\nevcoord_odd{coordinator=\"r\",scope=\"a\"} 8\n");
	HAS(text, "\nevcoord_odd{coordinator=\"r\",scope=\"a\","
		  "x=\"a\\\"b\\nc\\\\\"} 9\n");
	HAS(text, "\nevcoord_odd_total{coordinator=\"r\",scope=\"a\","
		  "x=\"y\"} 3\n");
	HAS(text, "\nevcoord_odd{coordinator=\"r\",scope=\"b\",x=\"z\"} 10\n");
	HAS(text, "\nevcoord_mine{coordinator=\"r\",scope=\"b\"} 11\n");
	ck_assert_uint_eq(times_in(text, "# HELP evcoord_odd "), 1);
	ck_assert_uint_eq(times_in(text, "# TYPE evcoord_odd "), 1);
	/* what stands in no family, and lines for nobody */
	ck_assert_ptr_null(strstr(text, "lost_before"));
	ck_assert_ptr_null(strstr(text, "\n\n"));
	OK(evc_free(s[0]));
	OK(evc_free(s[1]));
	/* a strict reader takes it, without the sample that is there twice */
	w[0].metrics = "# HELP evcoord_odd Things.\n"
		       "# TYPE evcoord_odd gauge\n"
		       "evcoord_odd{x=\"a\\\"b\\nc\\\\\"} 9\n";
	s[0] = scope_that_says(c, "a", &w[0]);
	s[1] = scope_that_says(c, "b", &w[1]);
	read_metrics(whole(report_metrics, c));
	ck_assert(value("evcoord_odd", "coordinator=\"r\",scope=\"a\","
				       "x=\"a\\\"b\\nc\\\\\"") == 9);
	ck_assert(value("evcoord_odd",
			"coordinator=\"r\",scope=\"b\",x=\"z\"") == 10);
	OK(evc_free(s[0]));
	OK(evc_free(s[1]));
	OK(evc_free(c));
}
END_TEST

/* As snprintf(3), in each format. */
START_TEST(lengths_with_a_part_of_its_own)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct words w = odd;
	static char part[1 << 16];
	unsigned format;
	size_t length, n;
	evc_coord *s;

	/* what is shown as \x1b is cut before it, or not at all */
	w.text = "first\n  second\n";
	s = scope_that_says(c, "plain", &w);
	for (format = EVC_REPORT_TEXT; format <= EVC_REPORT_METRICS;
	     format++) {
		length = evc_report(c, format, NULL, 0);
		ck_assert_uint_gt(length, 100);
		ck_assert_uint_lt(length, sizeof(part));
		for (n = 1; n <= length + 1; n++) {
			memset(part, '#', sizeof(part));
			ck_assert_uint_eq(evc_report(c, format, part, n),
					  length);
			ck_assert_uint_eq(strlen(part), n - 1);
			ck_assert_int_eq(part[n], '#');
		}
		part[0] = '#';
		ck_assert_uint_eq(evc_report(c, format, part, 0), length);
		ck_assert_int_eq(part[0], '#');
	}
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_part_that_is_long_or_grows)
{
	static char lines[40000];
	struct words w = { .text = lines, .json = "{}", .metrics = "" };
	evc_coord *c = new_coord(NULL);
	evc_coord *s = scope_that_says(c, "long", &w);
	size_t i;

	for (i = 0; i + 10 < sizeof(lines); i += 10)
		memcpy(lines + i, "123456789\n", 11);
	ck_assert_uint_eq(times_in(report(c), "    123456789\n"), i / 10);
	ck_assert_int_le(atomic_load(&w.calls), 4);
	/* one that is never done is left out, and that is said */
	lines[0] = '\0';
	atomic_store(&w.calls, 0);
	w.grows = 4096;
	HAS(report(c), "\n    no memory to describe it\n");
	w.grows = 0;
	/* and one that says nothing is no part */
	HAS(report(c), "scope \"long\", round 1: running, 0 ended\n"
		       "  reasons");
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

START_TEST(what_is_refused_inside_is_not_told_outside)
{
	struct words w = odd;
	evc_coord *c = new_coord(NULL), *s;

	w.refused = true;
	s = scope_that_says(c, "odd", &w);
	ck_assert_uint_gt(evc_report(NULL, EVC_REPORT_TEXT, NULL, 0), 0);
	ck_assert_uint_gt(evc_report(c, EVC_REPORT_JSON, NULL, 0), 0);
	ck_assert_int_gt(atomic_load(&w.calls), 0);
	ck_assert_str_eq(evc_last_error(), "evc_report: no coordinator");
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

START_TEST(formats_that_there_are_none_of)
{
	static const unsigned wrong[] = { 0, 4, 1 << 9, EVC_REPORT_STACKS,
					  EVC_REPORT_TEXT | 1 << 9 };
	evc_coord *c = new_coord(NULL);
	char text[100];
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_uint_gt(evc_report(c, wrong[i], text, sizeof(text)),
				  0);
		HAS(text, "evc_report: no format 0");
		ck_assert_str_eq(text, evc_last_error());
	}
	evc_report(c, EVC_REPORT_METRICS | EVC_REPORT_STACKS, text,
		   sizeof(text));
	ck_assert_str_eq(text, "# evc_report: counters have no stacks\n");
	OK(evc_free(c));
}
END_TEST

/* ---- JSON ---- */

#ifdef HAVE_JANSSON

static json_t *
parsed(const evc_coord *c)
{
	const char *text = whole(report_json, c);
	json_error_t why;
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &why);

	ck_assert_msg(o != NULL, "%s at %d in %s", why.text, why.position,
		      text);
	return o;
}

static json_t *
scope_at(json_t *o, size_t i)
{
	json_t *scopes = json_object_get(json_object_get(o, "coordinator"),
					 "scopes");
	json_t *s = json_array_get(scopes, i);

	ck_assert_ptr_nonnull(s);
	return s;
}

START_TEST(ten_groups_of_one_name_in_the_JSON)
{
	evc_registry *reg = new_registry(0);
	struct crew k[TEN] = { { 0 } };
	evc_coord *c = root_with(reg, k, "q\"uo\nte", TEN);
	json_t *o = parsed(c), *g;
	size_t i;

	for (i = 0; i < TEN; i++) {
		g = json_object_get(json_object_get(scope_at(o, i),
						    "described"),
				    "group");
		ck_assert_str_eq(json_string_value(json_object_get(g, "name")),
				 "q\"uo\nte");
		ck_assert_str_eq(json_string_value(json_object_get(g,
								   "state")),
				 "new");
		ck_assert_uint_eq(json_array_size(json_object_get(g,
								  "workers")),
				  2);
	}
	json_decref(o);
	root_end(c, reg);
}
END_TEST

START_TEST(what_it_writes_as_JSON_stands_in_its_place)
{
	struct words none = { .json = "" };
	evc_coord *c = new_coord(NULL);
	evc_coord *s = scope_that_says(c, "odd", &odd);
	evc_coord *silent = scope_that_says(c, "silent", &none);
	json_t *o = parsed(c), *d = json_object_get(scope_at(o, 0),
						    "described");

	ck_assert_str_eq(json_string_value(json_object_get(d, "a \"key\"")),
			 "a\nline");
	ck_assert_uint_eq(json_array_size(json_object_get(d, "n")), 2);
	ck_assert(json_is_null(json_object_get(scope_at(o, 1), "described")));
	ck_assert(json_is_null(json_object_get(
		json_object_get(o, "coordinator"), "described")));
	json_decref(o);
	OK(evc_free(s));
	OK(evc_free(silent));
	OK(evc_free(c));
}
END_TEST

#define JSON_TESTS ten_groups_of_one_name_in_the_JSON, \
		   what_it_writes_as_JSON_stands_in_its_place,
#else
#define JSON_TESTS
#endif

/* Only where it is asked for, and only when the report has stacks. */
static atomic_uint last_format;

static size_t
note_format(unsigned format, char *buf, size_t n, void *arg)
{
	(void)arg;
	atomic_store(&last_format, format);
	return (size_t)snprintf(buf, n, "%s",
				(format & ~(unsigned)EVC_REPORT_STACKS) ==
						EVC_REPORT_JSON ?
					"{}" : "");
}

START_TEST(formats_with_stacks)
{
	evc_coord *c = new_coord(NULL), *s[2];
	evc_scope_opts o = { .describe = note_format };
	const unsigned stacks = EVC_REPORT_STACKS;
	static char text[1 << 16];

	OK(evc_scope_new(c, "bare", &o, &s[0]));
	evc_report(c, EVC_REPORT_TEXT | stacks, text, sizeof(text));
	ck_assert_uint_eq(atomic_load(&last_format), EVC_REPORT_TEXT);
	OK(evc_free(s[0]));
	o.describe_stacks = true;
	OK(evc_scope_new(c, "with", &o, &s[1]));
	evc_report(c, EVC_REPORT_TEXT | stacks, text, sizeof(text));
	ck_assert_uint_eq(atomic_load(&last_format), EVC_REPORT_TEXT | stacks);
	evc_report(c, EVC_REPORT_JSON | stacks, text, sizeof(text));
	ck_assert_uint_eq(atomic_load(&last_format), EVC_REPORT_JSON | stacks);
	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	ck_assert_uint_eq(atomic_load(&last_format), EVC_REPORT_TEXT);
	evc_report(c, EVC_REPORT_METRICS, text, sizeof(text));
	ck_assert_uint_eq(atomic_load(&last_format), EVC_REPORT_METRICS);
	/* In a stop stacks are taken without the flag. */
	OK(evc_request_stop(c, 0, "enough"));
	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	ck_assert_uint_eq(atomic_load(&last_format), EVC_REPORT_TEXT | stacks);
	evc_report(c, EVC_REPORT_METRICS, text, sizeof(text));
	ck_assert_uint_eq(atomic_load(&last_format), EVC_REPORT_METRICS);
	OK(evc_free(s[1]));
	OK(evc_free(c));
}
END_TEST

/* ---- the moment of stacks ---- */

static atomic_int mover_tid;
static atomic_bool may_move, has_moved;

/* A function of a known name, in which the thread is before the describe. */
static evc_status
moves(evc_coord *c, void *arg)
{
	(void)arg;
	atomic_store(&mover_tid, own_tid());
	while (!atomic_load(&may_move))
		t_sleep(0.001);
	atomic_store(&has_moved, true);
	while (!evc_should_stop(c))
		(void)poll(NULL, 0, 50);
	return 0;
}

static size_t
move_it(unsigned format, char *buf, size_t n, void *arg)
{
	char lines[8192];

	(void)format;
	(void)arg;
	atomic_store(&may_move, true);
	UNTIL(atomic_load(&has_moved));
	evc_stack_of(atomic_load(&mover_tid), lines, sizeof(lines));
	return (size_t)snprintf(buf, n, "it is here:\n%s", lines);
}

static int
times(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

/* Threads are looked at before functions are called that may take long, and a
   stack that such a function shows is not shown again. */
START_TEST(stacks_are_of_the_moment_of_the_report)
{
	evc_scope_opts o = { .describe = move_it, .describe_stacks = true };
	evc_coord *c = new_coord(NULL), *s;
	static char text[1 << 18];

	NEEDS_BACKTRACE();
	if (t_under_qemu())
		T_SKIP("a stack of qemu has no names");
	OK(evc_stack_signal(0));
	OK(evc_thread_start(c, "mover", moves, NULL, NULL, NULL));
	OK(evc_scope_new(c, "slow", &o, &s));
	OK(evc_scope_ready(s));
	UNTIL(atomic_load(&mover_tid) != 0);
	t_sleep(0.01);
	evc_report(c, EVC_REPORT_TEXT | EVC_REPORT_STACKS, text, sizeof(text));
	HAS(text, "it is here:");
	HAS(text, "nanosleep+");
	ck_assert_ptr_null(strstr(text, "poll+"));
	ck_assert_int_eq(times(text, "clock_nanosleep+"), 1);
	ck_assert_int_eq(times(text, "its stack stands in another part"), 1);
	/* Outside of a report the function sees what is. */
	UNTIL((move_it(0, text, sizeof(text), NULL),
	       strstr(text, "poll+") != NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

/* ---- stacks of others, in the report of a late stop ---- */

static size_t
take_long(unsigned format, char *buf, size_t n, void *arg)
{
	(void)format;
	(void)arg;
	t_sleep(0.15);
	return (size_t)snprintf(buf, n, "all of them");
}

static char late_lines[1 << 16];

static void
keep_line(int level, const char *text, const evc_reason *r, void *arg)
{
	size_t at = strlen(late_lines);

	(void)level;
	(void)r;
	(void)arg;
	snprintf(late_lines + at, sizeof(late_lines) - at, "%s\n", text);
}

static evc_status
join(evc_coord *c, struct ev_loop *loop)
{
	(void)loop;
	return evc_join(c, NULL, NULL);
}

static evc_status
run(evc_coord *c, struct ev_loop *loop)
{
	(void)loop;
	return evc_run(c, NULL, NULL);
}

static void
on_joined(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	*(evc_status *)arg = v->code;
}

static evc_status
start_join(evc_coord *c, struct ev_loop *loop)
{
	evc_status st = -1;

	OK(evc_join_start(c, on_joined, &st, NULL));
	while (st == -1)
		ev_run(loop, EVRUN_ONCE);
	return st;
}

/* The functions that describe take longer than others may that a report calls.
   The loop of the join, when there is one, waits for the report, and is not to
   blame. */
static void
report_late(struct ev_loop *loop, evc_status (*join_by)(evc_coord *c,
							struct ev_loop *loop))
{
	evc_config cfg = { .name = "root", .log = keep_line, .grace = 0.1 };
	evc_scope_opts o = { .describe = take_long, .describe_stacks = true };
	evc_coord *c = new_coord_with(loop, &cfg), *s;
	evc_id hold;

	OK(evc_scope_new(c, "slow", &o, &s));
	OK(evc_scope_ready(s));
	OK(evc_hold_begin(s, "late", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(join_by(c, loop), EVC_DEADLINE_EXCEEDED);
	HAS(late_lines, "all of them");
	ck_assert_msg(strstr(late_lines, "in its describe") == NULL &&
			      strstr(late_lines, "callback") == NULL,
		      "%s", late_lines);
	OK(evc_hold_end(s, hold));
	ck_assert_int_ge(evc_join(c, NULL, NULL), 0);
	OK(evc_free(s));
	OK(evc_free(c));
}

START_TEST(a_late_report_waits_for_stacks)
{
	if (HAS_BACKTRACE)
		OK(evc_stack_signal(0));
	report_late(NULL, join);
}
END_TEST

START_TEST(main_waits_for_the_late_report)
{
	struct ev_loop *loop = ev_loop_new(0);

	report_late(loop, run);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_loop_waits_for_the_late_report)
{
	struct ev_loop *loop = ev_loop_new(0);

	report_late(loop, start_join);
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("described", a_late_report_waits_for_stacks,
	 main_waits_for_the_late_report, a_loop_waits_for_the_late_report,
	 stacks_are_of_the_moment_of_the_report,
	 formats_with_stacks, JSON_TESTS a_group_in_the_text_of_the_root,
	 ten_groups_of_one_name_in_the_metrics, a_group_that_hangs,
	 a_signal_has_groups_written,
	 groups_come_and_go_while_another_thread_reports,
	 whatever_it_writes_as_text_is_lines,
	 what_it_writes_as_metrics_has_labels, lengths_with_a_part_of_its_own,
	 a_part_that_is_long_or_grows,
	 what_is_refused_inside_is_not_told_outside,
	 formats_that_there_are_none_of)
