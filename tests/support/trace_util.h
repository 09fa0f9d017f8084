/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the timeline share: to have it written, to have it drawn by
 * evc-trace, and to find in it lanes and events.  The JSON has an event on each
 * line; that it is JSON is for tests/api/observe/trace_json.c to show.
 */
#ifndef TESTS_SUPPORT_TRACE_UTIL_H
#define TESTS_SUPPORT_TRACE_UTIL_H

#include "api_util.h"

#include <time.h>

static MAYBE_UNUSED uint64_t
mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* All that was written to f; to be freed. */
static MAYBE_UNUSED char *
all_of(FILE *f)
{
	long n;
	char *text;

	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	n = ftell(f);
	ck_assert_int_gt(n, 0);
	text = malloc((size_t)n + 1);
	ck_assert_ptr_nonnull(text);
	rewind(f);
	ck_assert_uint_eq(fread(text, 1, (size_t)n, f), (size_t)n);
	text[n] = '\0';
	return text;
}

/* The timeline of c in that form; to be freed. */
static MAYBE_UNUSED char *
traced(const evc_coord *c, unsigned format)
{
	FILE *f = tmpfile();
	char *text;

	ck_assert_ptr_nonnull(f);
	OK(evc_trace_write(c, fileno(f), format));
	text = all_of(f);
	fclose(f);
	return text;
}

/* ---- the picture of it ---- */

/* The tool that draws; NULL: it was not built. */
static MAYBE_UNUSED const char *
trace_tool(void)
{
	static char path[1024];
	const char *build = getenv("EVC_TOP_BUILDDIR");

	snprintf(path, sizeof(path), "%s/tools/evc-trace",
		 build != NULL ? build : ".");
	return access(path, X_OK) == 0 ? path : NULL;
}

/* A file with the picture of c; to be unlinked. */
static MAYBE_UNUSED void
draw(const evc_coord *c, char path[64])
{
	char line[2048];
	int fd;

	strcpy(path, "/tmp/evc-trace-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	OK(evc_trace_write(c, fd, EVC_TRACE_JSON));
	close(fd);
	snprintf(line, sizeof(line), "'%s' -o %s %s", trace_tool(), path, path);
	ck_assert_msg(system(line) == 0, "%s", line);
}

/* The picture of c; to be freed.  NULL: there is no tool that draws, and so it
   was said of the test. */
static MAYBE_UNUSED char *
drawn(const evc_coord *c, const char *test)
{
	char path[64], *text;
	FILE *f;

	if (trace_tool() == NULL) {
		t_say_skip(test, "evc-trace is not built without jansson");
		return NULL;
	}
	draw(c, path);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	text = all_of(f);
	fclose(f);
	unlink(path);
	return text;
}

/* ---- what stands in the JSON ---- */

/* The number of the lane with that name, which ends with " (kind, path)"; 0:
   there is none. */
static MAYBE_UNUSED unsigned
lane_of(const char *text, const char *name)
{
	char key[256];
	const char *at;

	snprintf(key, sizeof(key),
		 "\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"", name);
	at = strstr(text, key);
	if (at == NULL)
		return 0;
	while (at > text && strncmp(at, "\"tid\":", 6) != 0)
		at--;
	return (unsigned)strtoul(at + 6, NULL, 10);
}

/* The next event of that name in that lane, from the line of `from` on. */
static MAYBE_UNUSED const char *
next_event(const char *from, unsigned lane, const char *name)
{
	char key[256];

	snprintf(key, sizeof(key), "\"tid\":%u,\"name\":\"%s\"", lane, name);
	return strstr(from, key);
}

static MAYBE_UNUSED const char *
event_of(const char *text, const char *lane, const char *name)
{
	unsigned n = lane_of(text, lane);
	const char *at;

	ck_assert_msg(n != 0, "no lane \"%s\" in %s", lane, text);
	at = next_event(text, n, name);
	ck_assert_msg(at != NULL, "no \"%s\" in lane \"%s\": %s", name, lane,
		      text);
	return at;
}

static MAYBE_UNUSED bool
has_event(const char *text, const char *lane, const char *name)
{
	unsigned n = lane_of(text, lane);

	return n != 0 && next_event(text, n, name) != NULL;
}

/* What stands behind a key on the line at. */
static MAYBE_UNUSED const char *
value_of(const char *at, const char *key)
{
	const char *end = strchr(at, '\n'), *v;
	char name[64];

	snprintf(name, sizeof(name), "\"%s\":", key);
	v = strstr(at, name);
	ck_assert_msg(v != NULL && (end == NULL || v < end),
		      "no %s in %.200s", name, at);
	return v + strlen(name);
}

static MAYBE_UNUSED uint64_t
number_of(const char *at, const char *key)
{
	return strtoull(value_of(at, key), NULL, 10);
}

/* A string without escapes. */
static MAYBE_UNUSED void
string_is(const char *at, const char *key, const char *what)
{
	const char *v = value_of(at, key);

	ck_assert_msg(*v == '"' && strncmp(v + 1, what, strlen(what)) == 0 &&
			      v[1 + strlen(what)] == '"',
		      "\"%s\" is not \"%s\" but %.60s", key, what, v);
}

/* The life of a member: its slice has its lane's name. */
struct life {
	uint64_t begin, end; /* end 0: alive */
	const char *at;
};

static MAYBE_UNUSED struct life
life_of(const char *text, const char *lane, const char *name)
{
	struct life l = { .at = event_of(text, lane, name) };

	l.begin = number_of(l.at, "ns");
	if (strncmp(value_of(l.at, "state"), "\"ended\"", 7) == 0)
		l.end = number_of(l.at, "end_ns");
	return l;
}

/* a, b, c ... came in this order. */
#define IN_ORDER(...) \
	do { \
		const uint64_t order_[] = { __VA_ARGS__ }; \
		size_t i_; \
		for (i_ = 1; i_ < sizeof(order_) / sizeof(order_[0]); i_++) \
			ck_assert_msg(order_[i_ - 1] <= order_[i_], \
				      "%s: number %zu came before its " \
				      "predecessor, by %llu ns", #__VA_ARGS__, \
				      i_, \
				      (unsigned long long)(order_[i_ - 1] - \
							   order_[i_])); \
	} while (0)

#endif
