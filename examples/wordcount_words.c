/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wordcount_words.c - the sums, when all is counted.
 */
#include "wordcount.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collected {
	struct wordcount *w;
	struct words *names; /* that begin with the prefix */
	const char *prefix;
	bool is_short; /* of memory */
};

static bool
add(struct words *words, const char *text, double count)
{
	struct word *w;

	/* A power of two has no room left. */
	if ((words->n & (words->n - 1)) == 0) {
		w = realloc(words->words, (words->n ? 2 * words->n : 1) *
			    sizeof(*w));
		if (w == NULL)
			return false;
		words->words = w;
	}
	w = &words->words[words->n];
	w->text = strdup(text);
	w->count = (uint64_t)count;
	if (w->text == NULL)
		return false;
	words->n++;
	return true;
}

static bool
begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* One variable; they come in the order of their names. */
static bool
collect(const char *name, const evc_value *value, void *arg)
{
	struct collected *c = arg;
	char text[PATH_MAX + 100];
	double count;

	if (begins(name, UNREAD ":") &&
	    evc_unpack(value, "s", text, sizeof(text)) == 0)
		c->is_short = !add(&c->w->unread, text, 0);
	else if (evc_unpack(value, "d", &count) < 0)
		return true;
	else if (strcmp(name, UNREAD) == 0)
		c->w->n_unread = (uint64_t)count;
	else if (begins(name, WORD_PREFIX))
		c->is_short = !add(&c->w->words, name + strlen(WORD_PREFIX),
				   count);
	return !c->is_short;
}

evc_status
words_collect(struct wordcount *w)
{
	struct collected c = { .w = w };
	evc_status st = evc_variable_each(w->cluster, collect, &c);

	return st == 0 && c.is_short ? -EVC_RESOURCE_EXHAUSTED : st;
}

/* Any variable, under its whole name. */
static bool
name_it(const char *name, const evc_value *value, void *arg)
{
	struct collected *c = arg;

	(void)value;
	c->is_short = begins(name, c->prefix) && !add(c->names, name, 0);
	return !c->is_short;
}

evc_status
words_forget(evc_cluster *cluster, const char *prefix)
{
	struct words names = { .n = 0 };
	struct collected c = { .names = &names, .prefix = prefix };
	const evc_value nil = { 0 };
	evc_status st = evc_variable_each(cluster, name_it, &c);
	size_t i;

	if (st == 0 && c.is_short)
		st = -EVC_RESOURCE_EXHAUSTED;
	for (i = 0; i < names.n && st == 0; i++)
		st = evc_variable_set(cluster, names.words[i].text, &nil);
	words_free(&names);
	return st;
}

/* The more frequent first, then in the order of the words. */
static int
compare(const void *a, const void *b)
{
	const struct word *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->text, y->text);
}

int
words_print(struct words *words, unsigned top)
{
	size_t i, n = words->n;

	if (top > 0 && n > 0)
		qsort(words->words, n, sizeof(*words->words), compare);
	if (top > 0 && top < n)
		n = top;
	for (i = 0; i < n; i++)
		printf("%" PRIu64 " %s\n", words->words[i].count,
		       words->words[i].text);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : errno;
}

void
words_free(struct words *words)
{
	size_t i;

	for (i = 0; i < words->n; i++)
		free(words->words[i].text);
	free(words->words);
}
