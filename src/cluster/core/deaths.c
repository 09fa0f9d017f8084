/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of workers that die, and of errors: kept whole, up to a limit, once
 * for each worker; the log has them shorter.  A text without room keeps its
 * beginning and its end.
 * Called by: workers.c, timeouts.c and outcome.c; turn.c for the log.
 * Locks: the cluster's lock, held; taken in evc__deaths_tell.
 */
#include "cluster/core/cluster.h"

char *
evc__text_kept(const char *text, size_t most)
{
	size_t n = text != NULL ? strnlen(text, most - 1) : 0;
	char *s = n > 0 ? sync_alloc(1, n + 1) : NULL;

	if (s != NULL)
		evc__copy_ends(s, n + 1, text);
	return s;
}

void
evc__worker_says(struct cluster_worker *w, const char *why)
{
	char *text = evc__text_kept(why, DEATH_SIZE);

	sync_free(w->text);
	w->text = text;
}

/* ---- the log ---- */

/* An engine tells a death under the lock, where no log hook may run: texts are
   kept until the next turn.  A program that dies at its start dies again and
   again, on many workers: a second has a limited number of lines, and a line
   at its end that counts the others. */

#define EVERY_NS UINT64_C(1000000000)

static bool
is_same_second(const struct deaths *d, uint64_t now)
{
	return d->told_ns != 0 && now < d->told_ns + EVERY_NS;
}

void
evc__death_note(evc_cluster *cl, const char *text, const char *ran)
{
	struct deaths *d = &cl->workers.deaths;
	bool same = is_same_second(d, sync_mono());
	char line[sizeof d->text[0]], tail[NAME_SIZE + 16] = "", *to;
	struct text t = evc__text_in(tail, sizeof tail);

	evc__copy_ends(line, sizeof line, text);
	/* All workers of a node end with the same text. */
	if (d->n + (same ? d->n_told : 0) >= DEATHS_KEPT ||
	    ((d->n > 0 || same) && strcmp(d->last, line) == 0))
		d->n_more++;
	else {
		evc__copy(d->last, sizeof d->last, line);
		if (ran != NULL)
			evc__text_fmt(&t, "; it ran %s", ran);
		to = d->text[d->n++];
		evc__copy_ends(to, sizeof d->text[0] - strlen(tail), text);
		evc__copy(to + strlen(to), sizeof tail, tail);
	}
	evc__turn_ask(cl);
}

uint64_t
evc__deaths_tell(evc_cluster *cl)
{
	struct deaths *d = &cl->workers.deaths, told;
	uint64_t now = sync_mono(), due = SYNC_FOREVER;
	unsigned i;

	sync_lock(&cl->q.lock);
	if (d->n + d->n_more == 0) {
		sync_unlock(&cl->q.lock);
		return SYNC_FOREVER;
	}
	/* At the stop nothing is delayed, because no other turn may come. */
	if (d->n_more > 0 && !cl->stop.begun && is_same_second(d, now))
		due = d->told_ns + EVERY_NS;
	told = *d;
	if (due != SYNC_FOREVER)
		told.n_more = 0;
	if (!is_same_second(d, now)) {
		d->told_ns = now;
		d->n_told = 0;
	}
	d->n_told += told.n;
	d->n_more -= told.n_more;
	d->n = 0;
	sync_unlock(&cl->q.lock);
	for (i = 0; i < told.n; i++)
		evc_log(cl->scope, EVC_LOG_WARNING, NULL, "%s", told.text[i]);
	if (told.n_more > 0)
		evc_log(cl->scope, EVC_LOG_WARNING, NULL,
			told.n_more == 1 ? "%u more worker has died, or "
					   "did not come up" :
					   "%u more workers have died, or "
					   "did not come up",
			told.n_more);
	return due;
}
