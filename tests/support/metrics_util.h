/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A strict reader of Prometheus's text: the order of its lines, names, labels,
 * escapes, no sample and no family twice, counters that are named as such,
 * names by the rules of promtool, histograms that add up.  promtool itself is
 * asked where there is one.
 */
#ifndef TESTS_SUPPORT_METRICS_UTIL_H
#define TESTS_SUPPORT_METRICS_UTIL_H

#include "api_util.h"

enum { MOST_SAMPLES = 1024 };

struct sample {
	char name[128];   /* with _bucket and the like */
	char labels[512]; /* as they stand between the brackets */
	double value;
};

static struct sample samples[MOST_SAMPLES];
static unsigned n_samples;

/* A name of a metric (colons) or of a label. */
static const char *
take_name(const char *at, char *name, size_t room, bool colons)
{
	size_t n = 0;

	for (; (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
	       *at == '_' || (colons && *at == ':') ||
	       (n > 0 && *at >= '0' && *at <= '9');
	     at++) {
		ck_assert_uint_lt(n + 1, room);
		name[n++] = *at;
	}
	ck_assert_uint_gt(n, 0);
	name[n] = '\0';
	return at;
}

/* {a="b",c="d"} */
static const char *
take_labels(const char *at, struct sample *s)
{
	const char *begin = at + 1;
	char name[64];

	ck_assert_int_eq(*at, '{');
	do {
		at = take_name(at + 1, name, sizeof(name), false);
		ck_assert_int_eq(*at++, '=');
		ck_assert_int_eq(*at++, '"');
		for (; *at != '"'; at++) {
			ck_assert_int_ne(*at, '\0');
			ck_assert_int_ne(*at, '\n');
			if (*at == '\\')
				ck_assert(strchr("\\\"n", *++at) != NULL);
		}
		at++;
	} while (*at == ',');
	ck_assert_int_eq(*at, '}');
	ck_assert_uint_lt((size_t)(at - begin), sizeof(s->labels));
	snprintf(s->labels, sizeof(s->labels), "%.*s", (int)(at - begin),
		 begin);
	return at + 1;
}

static const char *
take_sample(const char *at)
{
	struct sample *s = &samples[n_samples];
	unsigned i;
	char *end;

	ck_assert_uint_lt(n_samples, MOST_SAMPLES);
	at = take_name(at, s->name, sizeof(s->name), true);
	at = take_labels(at, s);
	ck_assert_int_eq(*at++, ' ');
	ck_assert((*at >= '0' && *at <= '9') || *at == '-');
	s->value = strtod(at, &end);
	ck_assert_int_eq(*end, '\n');
	for (i = 0; i < n_samples; i++)
		ck_assert_msg(strcmp(samples[i].name, s->name) != 0 ||
				      strcmp(samples[i].labels, s->labels) != 0,
			      "%s{%s} stands there twice", s->name, s->labels);
	n_samples++;
	return end + 1;
}

static bool
ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

/* Lower case, base units, no type and no end that is for histograms. */
static void
check_words(const char *name)
{
	static const char *const never[] = {
		"counter", "gauge", "histogram", "summary", "ms", "us", "ns",
		"s", "sec", "secs", "milliseconds", "minutes", "hours", "days",
		"kb", "mb", "kilobytes", "percent", "count", "sum", "bucket",
	};
	char copy[128], *word, *rest = copy;
	size_t i;

	snprintf(copy, sizeof(copy), "%s", name);
	while ((word = strsep(&rest, "_")) != NULL) {
		ck_assert_str_ne(word, "");
		ck_assert_uint_eq(strspn(word, "abcdefghijklmnopqrstuvwxyz"),
				  strlen(word));
		for (i = 0; i < sizeof(never) / sizeof(never[0]); i++)
			ck_assert_msg(strcmp(word, never[i]) != 0,
				      "%s has the word %s", name, word);
	}
}

/* "# HELP name words" and "# TYPE name type", in this order. */
static const char *
take_head(const char *at, char *name, char *type)
{
	char again[128], words[256];
	int n = 0;

	ck_assert_int_eq(sscanf(at, "# HELP %127s %255[^\n]%n", name, words,
				&n),
			 2);
	at += n;
	ck_assert_int_eq(*at++, '\n');
	n = 0;
	ck_assert_int_eq(sscanf(at, "# TYPE %127s %31[a-z]%n", again, type, &n),
			 2);
	ck_assert_str_eq(again, name);
	ck_assert_int_eq(at[n], '\n');
	ck_assert(strncmp(name, "evcoord_", 8) == 0);
	ck_assert_int_eq(strcmp(type, "counter") == 0,
			 ends_in(name, "_total"));
	check_words(name);
	return at + n + 1;
}

/* The buckets of one histogram, which stand one after the other: they only
   grow, the last one has no bound and is the count. */
static void
check_histogram(unsigned from, const char *name)
{
	unsigned i = from, buckets;
	char expected[160];
	double before, bound;

	while (i < n_samples) {
		before = bound = -1;
		snprintf(expected, sizeof(expected), "%s_bucket", name);
		for (buckets = 0; i < n_samples &&
				  strcmp(samples[i].name, expected) == 0;
		     i++, buckets++) {
			const char *le = strstr(samples[i].labels, "le=\"");

			ck_assert_ptr_nonnull(le);
			ck_assert_double_ge(samples[i].value, before);
			before = samples[i].value;
			/* strtod takes "+Inf", too */
			ck_assert(strtod(le + 4, NULL) > bound);
			bound = strtod(le + 4, NULL);
			if (isinf(bound)) {
				i++;
				break;
			}
		}
		ck_assert(isinf(bound));
		snprintf(expected, sizeof(expected), "%s_sum", name);
		ck_assert_str_eq(samples[i++].name, expected);
		snprintf(expected, sizeof(expected), "%s_count", name);
		ck_assert_str_eq(samples[i].name, expected);
		ck_assert(samples[i++].value == before);
	}
}

/* All samples of a family stand together. */
static void
is_new_family(const char *name, unsigned from)
{
	unsigned i;

	for (i = 0; i < from; i++)
		ck_assert_msg(strcmp(samples[i].name, name) != 0,
			      "the family %s stands there twice", name);
}

static MAYBE_UNUSED void
read_metrics(const char *at)
{
	char name[128], type[32];
	unsigned from;

	n_samples = 0;
	while (*at != '\0') {
		at = take_head(at, name, type);
		from = n_samples;
		while (*at != '#' && *at != '\0')
			at = take_sample(at);
		ck_assert_uint_gt(n_samples, from);
		is_new_family(name, from);
		if (strcmp(type, "histogram") == 0)
			check_histogram(from, name);
		else
			for (; from < n_samples; from++)
				ck_assert_str_eq(samples[from].name, name);
	}
}

/* promtool has nothing to say about the text; also true without promtool. */
static MAYBE_UNUSED void
ask_promtool(const char *text)
{
	FILE *f;

	if (system("command -v promtool >/dev/null 2>&1") != 0) {
		printf("SKIP: promtool was not asked, there is none\n");
		return;
	}
	f = popen("out=$(promtool check metrics 2>&1); st=$?; "
		  "echo \"$out\"; [ $st = 0 ] && [ -z \"$out\" ]",
		  "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(pclose(f), 0);
}

static MAYBE_UNUSED const struct sample *
find_sample(const char *name, const char *labels)
{
	unsigned i;

	for (i = 0; i < n_samples; i++)
		if (strcmp(samples[i].name, name) == 0 &&
		    strcmp(samples[i].labels, labels) == 0)
			return &samples[i];
	return NULL;
}

static MAYBE_UNUSED double
value(const char *name, const char *labels)
{
	const struct sample *s = find_sample(name, labels);

	ck_assert_msg(s != NULL, "no %s{%s}", name, labels);
	return s->value;
}

#endif
