/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The death of a worker is a warning in the log, with the signal or exit status
 * and its last words.
 *
 * The engine tells of a death under the cluster's lock, where no log hook may
 * run: the texts are kept until the next turn of the loop.  A program that dies
 * at its start dies again and again, on many workers: a second has so many
 * lines, and one more that counts the rest.
 */
#include "cluster/core/cluster.h"

#define EVERY_NS UINT64_C(1000000000)

void
evc__death_note(evc_cluster *cl, const char *text)
{
	struct deaths *d = &cl->workers.deaths;

	if (d->n < DEATHS_KEPT)
		evc__copy(d->text[d->n++], sizeof d->text[0], text);
	else
		d->n_more++;
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
	/* At the stop nothing is put off: there may be no other turn. */
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
			"%u more workers have died", told.n_more);
	return SYNC_FOREVER;
}
