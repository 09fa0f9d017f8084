/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A progress bar: what has its outcome, of what was scheduled.
 */
#include "cluster/core/cluster.h"

#define WIDTH_LEAST 4 /* a shorter one says nothing */

static void
put_words(const evc_cluster_info *i, uint64_t over, struct text *t)
{
	evc__text_fmt(t, "%llu/%llu, %llu running", (unsigned long long)over,
		      (unsigned long long)i->n_scheduled,
		      (unsigned long long)i->n_running);
	if (i->n_failed > 0)
		evc__text_fmt(t, ", %llu failed",
			      (unsigned long long)i->n_failed);
	if (i->rate >= 10)
		evc__text_fmt(t, ", %.0f/s", i->rate);
	else
		evc__text_fmt(t, ", %.1f/s", i->rate);
}

static void
put_bar(uint64_t over, uint64_t whole, size_t width, struct text *t)
{
	size_t full = 0, i;

	if (whole > 0)
		full = (size_t)((double)over / (double)whole * (double)width);
	/* It is full when all is over, and not before. */
	if (over < whole && full >= width)
		full = width - 1;
	evc__text_add(t, "[");
	for (i = 0; i < width; i++)
		evc__text_add(t, i < full ? "#" : ".");
	evc__text_add(t, "] ");
}

size_t
evc_cluster_bar(const evc_cluster *cluster, unsigned columns, char *buf,
		size_t n)
{
	struct text t = evc__text_in(buf, n);
	char words[160];
	struct text w = evc__text_in(words, sizeof words);
	evc_cluster_info i;
	uint64_t over;

	if (evc_cluster_get(cluster, &i) < 0)
		return 0;
	over = i.n_done + i.n_failed + i.n_cancelled;
	put_words(&i, over, &w);
	/* "[", "] " */
	if (columns >= w.len + 3 + WIDTH_LEAST)
		put_bar(over, i.n_scheduled, columns - w.len - 3, &t);
	else if (columns < w.len)
		words[columns] = '\0';
	evc__text_add(&t, words);
	return t.len;
}
