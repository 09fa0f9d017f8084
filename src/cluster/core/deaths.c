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
   that counts the others. */

#define EVERY_NS UINT64_C(1000000000)

void
evc__death_note(evc_cluster *cl, const char *text)
{
	struct deaths *d = &cl->workers.deaths;
	char line[sizeof d->text[0]];

	evc__copy_ends(line, sizeof line, text);
	/* All workers of a node end with the same text. */
	if (d->n == DEATHS_KEPT ||
	    (d->n > 0 && strcmp(d->text[d->n - 1], line) == 0))
		d->n_more++;
	else
		evc__copy(d->text[d->n++], sizeof line, line);
	evc__turn_ask(cl);
}

uint64_t
evc__deaths_tell(evc_cluster *cl)
{
	struct deaths told;
	uint64_t now = sync_mono();
	unsigned i;

	sync_lock(&cl->q.lock);
	told = cl->workers.deaths;
	/* At the stop nothing is delayed, because no other turn may come. */
	if (told.n == 0 || (told.told_ns != 0 && !cl->stop.begun &&
			    now < told.told_ns + EVERY_NS)) {
		sync_unlock(&cl->q.lock);
		return told.n == 0 ? SYNC_FOREVER : told.told_ns + EVERY_NS;
	}
	cl->workers.deaths.n = cl->workers.deaths.n_more = 0;
	cl->workers.deaths.told_ns = now;
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
	return SYNC_FOREVER;
}
