/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases of nodes and their renewals, which are looked at again and again.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* What was asked for. */
struct look {
	struct redis_engine *e;
	unsigned n;
	uint64_t serials[];
};

void
evc__lives_beat(struct life *l, const char *beat)
{
	if (strncmp(beat, l->beat, sizeof l->beat - 1) == 0)
		return;
	evc__copy(l->beat, sizeof l->beat, beat);
	l->beat_ns = sync_mono();
}

static void
check(struct life *l, const redisReply *lease)
{
	char want[48];
	struct text t = evc__text_in(want, sizeof want);
	const char *space;
	uint64_t heard;

	evc__text_fmt(&t, "%s %" PRIu64, l->e->g_text, l->inc);
	if (lease->type == REDIS_REPLY_STRING) {
		if (strcmp(lease->str, want) == 0)
			return;
		/* It has registered anew, and that is about to be read. */
		space = strchr(lease->str, ' ');
		if (space != NULL &&
		    strncmp(lease->str, want,
			    strlen(l->e->g_text) + 1) == 0 &&
		    strtoull(space + 1, NULL, 10) > l->inc)
			return;
	}
	heard = sync_mono() - l->beat_ns;
	/* A node gives up when it sees no coordinator for a lease, and what it
	   ran is not to blame. */
	if (l->e->back_ns != 0 &&
	    sync_mono() - l->e->back_ns < 2 * l->e->lease_ns) {
		evc__lives_fence(l, "its lease is gone: its coordinator stood"
				    " still, or had no server, for %.1f s",
				 (double)l->e->stood_ns / 1e9);
		return;
	}
	l->blames = true;
	/* It renews its lease four times in a lease. */
	if (heard >= l->e->lease_ns / 2)
		evc__lives_fence(l, "its lease is over: nothing was heard of it"
				    " for %.1f s",
				 (double)heard / 1e9);
	else
		evc__lives_fence(l, "its lease is gone, %.1f s after it was"
				    " heard of: somebody has deleted or"
				    " replaced it, or the server's clock was set",
				 (double)heard / 1e9);
}

static void
look_at(struct life *l, const redisReply *lease, const redisReply *beat)
{
	evc__lives_beat(l, beat->type == REDIS_REPLY_STRING ? beat->str : "");
	check(l, lease);
}

static void
on_leases(struct redis_client *cl, const redisReply *r, void *arg)
{
	struct look *k = arg;
	struct redis_engine *e = k->e;
	struct list *n, *tmp;
	unsigned i = 0;

	(void)cl;
	e->detecting = false;
	/* Both are in the order in which lives have begun. */
	if (r != NULL && r->type == REDIS_REPLY_ARRAY &&
	    r->elements == 2 * k->n && e->phase == PHASE_LIVE)
		LIST_EACH(n, tmp, &e->lives) {
			struct life *l = LIST_OF(n, struct life, link);

			while (i < k->n && k->serials[i] < l->serial)
				i++;
			if (i < k->n && k->serials[i] == l->serial &&
			    !l->ending && l->g == e->g)
				look_at(l, r->element[2 * i],
					r->element[2 * i + 1]);
		}
	sync_free(k);
}

/* Do these looks come as they should? */
static void
note_look(struct redis_engine *e)
{
	uint64_t now = sync_mono();

	if (now - e->looked_ns >= e->lease_ns) {
		e->stood_ns = now - e->looked_ns;
		e->back_ns = now;
	}
	e->looked_ns = now;
}

void
evc__redis_detect(struct redis_engine *e)
{
	struct redis_args a = { 0 };
	struct look *k = NULL;
	struct list *n, *tmp;
	unsigned count = 0;

	LIST_EACH(n, tmp, &e->lives)
		count++;
	if (!e->detecting && e->up)
		note_look(e);
	if (count > 0 && !e->detecting && e->up)
		k = sync_alloc(1, sizeof *k + count * sizeof k->serials[0]);
	if (k == NULL)
		return;
	k->e = e;
	evc__args_text(&a, "MGET");
	LIST_EACH(n, tmp, &e->lives) {
		struct life *l = LIST_OF(n, struct life, link);

		k->serials[k->n++] = l->serial;
		evc__args_key(&a, &e->address, "lease:%s", l->name);
		evc__redis_beat_key(l, &a);
	}
	e->detecting = evc__redis_send(e->client, REDIS_SAY, on_leases, k,
				       &a);
	if (!e->detecting)
		sync_free(k);
}
