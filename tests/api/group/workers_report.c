/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registries as text, as JSON and as metrics for Prometheus: everything is in
 * them, and whatever names and texts there are they are well formed.
 */
#include "../../support/workers_util.h"

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

typedef size_t tell_fn(const evc_coord *c, char *buf, size_t n);

static const char *
whole(tell_fn *tell, evc_registry *reg)
{
	static char text[1 << 20];
	size_t n = tell(evc_registry_coord(reg), text, sizeof(text));

	ck_assert_uint_lt(n, sizeof(text));
	ck_assert_uint_eq(n, strlen(text));
	return text;
}

/* A registry in which something has happened: "train" runs, with a metric and a
   restart; "test" was stopped by an error; "late" has somebody who stays. */
struct show {
	evc_registry *reg;
	struct crew train, test, late;
};

static evc_status
once_wrong(evc_group *group, unsigned id, void *arg)
{
	struct crew *k = arg;

	crew_enter(group, id, k);
	if (id == 0 && atomic_load(&k->by_id[0]) == 1)
		return crew_leave(k, EVC_UNAVAILABLE);
	evc_sleep(evc_group_scope(group), 0.001);
	return crew_leave(k, 0);
}

static void
show_make(struct show *s, const char *odd)
{
	evc_group_opts again = {
		.on_error = EVC_GROUP_RESTART,
		.restart = { .first = 0.001, .times = 10, .within = 100 }
	};
	evc_join_opts none = { .grace = EVC_NO_GRACE };

	memset(s, 0, sizeof(*s));
	s->reg = new_registry(0);
	s->train.run = once_wrong;
	s->test.run = crew_fail;
	s->test.open = 1;
	s->late.run = crew_stay;
	crew_add(s->reg, odd != NULL ? odd : "train", &s->train, 3, &again);
	crew_add(s->reg, "test", &s->test, 1, NULL);
	crew_add(s->reg, "late", &s->late, 1, NULL);
	OK(evc_group_put(s->train.group, odd != NULL ? odd : "bytes", 47110,
			 true));
	OK(evc_registry_start(s->reg));
	STATE_COMES(s->test.group, EVC_GROUP_STOPPED);
	UNTIL(atomic_load(&s->train.by_id[0]) > 3);
	UNTIL(atomic_load(&s->late.in) == 1);
	LATE(evc_group_stop(s->late.group, &none));
}

static void
show_end(struct show *s)
{
	atomic_store(&s->late.open, 1);
	end_registry(s->reg);
}

START_TEST(the_text_has_groups_workers_runs_errors_and_metrics)
{
	evc_registry *empty = new_registry(0);
	struct show s;
	const char *text;

	ck_assert_ptr_nonnull(whole(report_text, empty));
	OK(evc_registry_free(empty));
	show_make(&s, NULL);
	text = whole(report_text, s.reg);
	HAS(text, "train");
	HAS(text, "test");
	HAS(text, "late");
	HAS(text, "47110");
	HAS(text, "bytes");
	HAS(text, "worker_time");
	HAS(text, "shard 7");
	HAS(text, "DATA_LOSS");
	HAS(text, "UNAVAILABLE");
	HAS(text, "running");
	HAS(text, "stopped");
	HAS(text, "stopping");
	HAS(text, "restart");
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
	show_end(&s);
}
END_TEST

/* As snprintf(3): the length of all, as much as there is room for. */
START_TEST(they_are_written_as_snprintf_writes)
{
	static tell_fn *const tells[] = { report_text, report_json,
					  report_metrics };
	struct crew k = { 0 };
	evc_registry *reg = new_registry(0);
	size_t i, cut, n;
	char buf[64], *all;
	evc_coord *c;

	crew_add(reg, "train", &k, 2, NULL);
	c = evc_registry_coord(reg);
	/* The group's hook is due at once: a report has its thread while the
	   hook runs. */
	t_until_quiet();
	for (i = 0; i < 3; i++) {
		n = tells[i](c, NULL, 0);
		ck_assert_uint_gt(n, 20);
		all = malloc(n + 1);
		ck_assert_uint_eq(tells[i](c, all, n + 1), n);
		ck_assert_uint_eq(strlen(all), n);
		for (cut = 1; cut < sizeof(buf) && cut <= n; cut++) {
			memset(buf, 'x', sizeof(buf));
			ck_assert_uint_eq(tells[i](c, buf, cut), n);
			ck_assert_uint_eq(strlen(buf), cut - 1);
			ck_assert(memcmp(buf, all, cut - 1) == 0);
		}
		free(all);
	}
	/* The process's registry has no coordinator yet. */
	for (i = 0; i < 3; i++)
		ck_assert_uint_gt(tells[i](evc_registry_coord(NULL), buf,
					   sizeof(buf)), 20);
	end_registry(reg);
}
END_TEST

/* ---- JSON ---- */

#ifdef HAVE_JANSSON

/* Is there a value, anywhere in it, that is this text (holds it: part), or this
   number? */
static bool
holds(json_t *v, const char *text, bool part, double number)
{
	const char *key;
	json_t *below;
	size_t i;

	if (json_is_string(v) && text != NULL)
		return part ? strstr(json_string_value(v), text) != NULL :
			      strcmp(json_string_value(v), text) == 0;
	if (json_is_number(v) && text == NULL)
		return json_number_value(v) == number;
	json_array_foreach(v, i, below)
		if (holds(below, text, part, number))
			return true;
	json_object_foreach(v, key, below)
		if (holds(below, text, part, number) ||
		    (text != NULL && strcmp(key, text) == 0))
			return true;
	return false;
}

static json_t *
parsed(evc_registry *reg)
{
	const char *text = whole(report_json, reg);
	json_error_t why;
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &why);

	ck_assert_msg(o != NULL, "%s at %d in %s", why.text, why.position,
		      text);
	ck_assert(json_is_object(o));
	return o;
}

START_TEST(the_JSON_has_all_that)
{
	struct show s;
	json_t *o;

	show_make(&s, NULL);
	o = parsed(s.reg);
	ck_assert(holds(o, "train", false, 0));
	ck_assert(holds(o, "test", false, 0));
	ck_assert(holds(o, "late", false, 0));
	ck_assert(holds(o, NULL, false, 47110));
	ck_assert(holds(o, "worker_time", false, 0));
	ck_assert(holds(o, "shard 7", true, 0));
	json_decref(o);
	show_end(&s);
	/* And nothing is well formed, too. */
	s.reg = new_registry(0);
	o = parsed(s.reg);
	json_decref(o);
	OK(evc_registry_free(s.reg));
}
END_TEST

static const char *const odd_names[] = { "q\"uote", "back\\slash", "new\nline",
					 "\x01\x1f", "uml\xc3\xa4ut",
					 "bad\xff\xc3", "{a=\"b\"}" };

START_TEST(whatever_a_name_holds_it_is_JSON)
{
	struct show s;
	json_t *o;

	show_make(&s, odd_names[_i]);
	o = parsed(s.reg);
	/* Bytes that are no UTF-8 are replaced. */
	if (_i != 5)
		ck_assert(holds(o, odd_names[_i], false, 0));
	json_decref(o);
	show_end(&s);
}
END_TEST

#endif

/* ---- Prometheus ---- */

/* NAME{LABEL="VALUE",...} NUMBER, with \\, \" and \n in values alone. */
static void
is_sample(const char *line, size_t n)
{
	const char *p = line, *end = line + n;
	char *after;

	ck_assert_msg(n > 8 && memcmp(p, "evcoord_", 8) == 0,
		      "\"%.*s\"", (int)n, line);
	while (p < end && (*p == '_' || (*p >= 'a' && *p <= 'z') ||
			   (*p >= '0' && *p <= '9')))
		p++;
	if (p < end && *p == '{') {
		do {
			p++;
			while (p < end && (*p == '_' || (*p >= 'a' &&
							 *p <= 'z')))
				p++;
			ck_assert_msg(p + 2 < end && p[0] == '=' &&
					      p[1] == '"',
				      "a label in \"%.*s\"", (int)n, line);
			for (p += 2; p < end && *p != '"'; p++) {
				if (*p != '\\')
					continue;
				p++;
				ck_assert_msg(*p == '\\' || *p == '"' ||
						      *p == 'n',
					      "an escape in \"%.*s\"", (int)n,
					      line);
			}
			p++;
		} while (p < end && *p == ',');
		ck_assert_msg(p < end && *p == '}', "\"%.*s\"", (int)n, line);
		p++;
	}
	ck_assert_msg(p < end && *p == ' ', "\"%.*s\"", (int)n, line);
	(void)strtod(p + 1, &after);
	ck_assert_msg(after == end, "a number in \"%.*s\"", (int)n, line);
}

static void
is_prometheus(const char *text)
{
	const char *nl;

	for (; *text != '\0'; text = nl + 1) {
		nl = strchr(text, '\n');
		ck_assert_ptr_nonnull(nl);
		if (strncmp(text, "# HELP evcoord_", 15) != 0 &&
		    strncmp(text, "# TYPE evcoord_", 15) != 0)
			is_sample(text, (size_t)(nl - text));
	}
}

/* Is there a line with all three? */
static bool
has_sample(const char *text, const char *a, const char *b, const char *c)
{
	char line[1024];
	const char *nl;

	for (; (nl = strchr(text, '\n')) != NULL; text = nl + 1) {
		snprintf(line, sizeof(line), "%.*s", (int)(nl - text), text);
		if (line[0] != '#' && strstr(line, a) && strstr(line, b) &&
		    strstr(line, c))
			return true;
	}
	return false;
}

START_TEST(the_metrics_have_all_that)
{
	struct show s;
	const char *text;

	show_make(&s, NULL);
	text = whole(report_metrics, s.reg);
	is_prometheus(text);
	ck_assert(has_sample(text, "bytes", "\"train\"", " 47110"));
	ck_assert(has_sample(text, "worker_time", "\"train\"", " "));
	ck_assert(has_sample(text, "runs", "\"train\"", " "));
	ck_assert(has_sample(text, "errors", "\"test\"", " 1"));
	ck_assert(has_sample(text, "errors", "\"train\"", " 1"));
	ck_assert(has_sample(text, "restarts", "\"train\"", " 1"));
	ck_assert(has_sample(text, "restarts", "\"test\"", " 0"));
	show_end(&s);
}
END_TEST

static const char *const odd_labels[] = { "q\"uote", "back\\slash",
					  "new\nline", "{a=\"b\"}" };

START_TEST(whatever_a_name_holds_it_is_Prometheus)
{
	struct show s;

	show_make(&s, odd_labels[_i]);
	is_prometheus(whole(report_metrics, s.reg));
	show_end(&s);
}
END_TEST

/* Two groups of one name are two lines, not one twice. */
START_TEST(no_sample_is_there_twice)
{
	evc_registry *reg = new_registry(0);
	struct crew a = { 0 }, b = { 0 };
	char key[1024];
	const char *text, *nl, *p;
	size_t n;

	crew_add(reg, "train", &a, 2, NULL);
	crew_add(reg, "train", &b, 2, NULL);
	OK(evc_group_put(a.group, "bytes", 1, true));
	OK(evc_group_put(b.group, "bytes", 2, true));
	OK(evc_registry_start(reg));
	text = whole(report_metrics, reg);
	is_prometheus(text);
	for (p = text; (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
		/* Up to its value: the last word. */
		n = (size_t)(nl - p);
		while (n > 0 && p[n - 1] != ' ')
			n--;
		snprintf(key, sizeof(key), "\n%.*s", (int)n, p);
		ck_assert_msg(strstr(nl, key) == NULL, "twice: %s", key);
	}
	end_registry(reg);
}
END_TEST

static Suite *
report_suite(void)
{
	Suite *s = suite_create("workers_report");
	TCase *tc = tcase_create("workers_report");

	tcase_add_test(tc, the_text_has_groups_workers_runs_errors_and_metrics);
	tcase_add_test(tc, they_are_written_as_snprintf_writes);
#ifdef HAVE_JANSSON
	tcase_add_test(tc, the_JSON_has_all_that);
	tcase_add_loop_test(tc, whatever_a_name_holds_it_is_JSON, 0, 7);
#else
	t_say_skip("the_JSON_has_all_that", "there is no jansson to read it");
#endif
	tcase_add_test(tc, the_metrics_have_all_that);
	tcase_add_loop_test(tc, whatever_a_name_holds_it_is_Prometheus, 0, 4);
	tcase_add_test(tc, no_sample_is_there_twice);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return run_suite(report_suite());
}
