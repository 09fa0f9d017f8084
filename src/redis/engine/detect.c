/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks again and again for the leases of all sessions and for the numbers of
 * their last renewals.
 * Called by: turn.c at each tick; fence.c for a renewal.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* The argument of a question: the serial numbers of its sessions. */
struct look {
	struct redis_engine *e;
	unsigned n;
	uint64_t serials[];
};

void
evc__session_beat(struct node_session *s, const char *beat)
{
	if (strncmp(beat, s->beat, sizeof s->beat - 1) == 0)
		return;
	evc__copy(s->beat, sizeof s->beat, beat);
	s->beat_ns = sync_mono();
}

static void
check_lease(struct node_session *s, const redisReply *lease)
{
	char want[48];
	struct text t = evc__text_in(want, sizeof want);
	const char *space;
	uint64_t heard;

	evc__text_fmt(&t, "%s %" PRIu64, s->e->lock.g_text, s->inc);
	if (lease->type == REDIS_REPLY_STRING) {
		if (strcmp(lease->str, want) == 0)
			return;
		/* The node has registered anew, and the entry will be read
		   soon. */
		space = strchr(lease->str, ' ');
		if (space != NULL &&
		    strncmp(lease->str, want, strlen(s->e->lock.g_text) + 1) ==
			    0 &&
		    strtoull(space + 1, NULL, 10) > s->inc)
			return;
	}
	heard = sync_mono() - s->beat_ns;
	/* A node gives up when there is no coordinator for a lease; its
	   functions are not to blame. */
	if (s->e->detect.back_ns != 0 &&
	    sync_mono() - s->e->detect.back_ns < 2 * s->e->lease_ns) {
		evc__session_fence(s,
				   "its lease is gone: the coordinator stood "
				   "still, or had no server, for %.1f s",
				   (double)s->e->detect.stood_ns / 1e9);
		return;
	}
	s->blames = true;
	/* A node renews its lease four times in a lease. */
	if (heard >= s->e->lease_ns / 2)
		evc__session_fence(s,
				   "its lease is over: there was no renewal "
				   "for %.1f s",
				   (double)heard / 1e9);
	else
		evc__session_fence(
			s,
			"its lease is gone, %.1f s after a renewal: the key "
			"was deleted or replaced, or the server's clock was "
			"set",
			(double)heard / 1e9);
}

static void
take_lease(struct node_session *s, const redisReply *lease,
	   const redisReply *beat)
{
	evc__session_beat(s, beat->type == REDIS_REPLY_STRING ? beat->str : "");
	check_lease(s, lease);
}

static void
on_leases(const redisReply *r, void *arg)
{
	struct look *k = arg;
	struct redis_engine *e = k->e;
	struct node_session *s, *tmp;
	unsigned i = 0;

	e->detect.asking = false;
	/* Answers and sessions have the same order. */
	if (r != NULL && r->type == REDIS_REPLY_ARRAY &&
	    r->elements == 2 * k->n && e->lock.phase == PHASE_LIVE)
		EACH_SESSION(s, tmp, e) {
			while (i < k->n && k->serials[i] < s->serial)
				i++;
			if (i < k->n && k->serials[i] == s->serial &&
			    !s->ending && s->g == e->lock.g)
				take_lease(s, r->element[2 * i],
					   r->element[2 * i + 1]);
		}
	sync_free(k);
}

/* Note a gap between two questions. */
static void
note_question(struct redis_engine *e)
{
	uint64_t now = sync_mono();

	if (now - e->detect.looked_ns >= e->lease_ns) {
		e->detect.stood_ns = now - e->detect.looked_ns;
		e->detect.back_ns = now;
	}
	e->detect.looked_ns = now;
}

void
evc__redis_detect(struct redis_engine *e)
{
	struct redis_args a = { 0 };
	struct look *k = NULL;
	struct node_session *s, *tmp;
	unsigned count = 0;

	EACH_SESSION(s, tmp, e)
		count++;
	if (!e->detect.asking && e->up)
		note_question(e);
	if (count > 0 && !e->detect.asking && e->up)
		k = sync_alloc(1, sizeof *k + count * sizeof k->serials[0]);
	if (k == NULL)
		return;
	k->e = e;
	evc__args_text(&a, "MGET");
	EACH_SESSION(s, tmp, e) {
		k->serials[k->n++] = s->serial;
		evc__args_key(&a, &e->address, "lease:%s", s->name);
		evc__redis_beat_key(s, &a);
	}
	e->detect.asking =
		evc__redis_send(e->client, REDIS_SAY, on_leases, k, &a);
	if (!e->detect.asking)
		sync_free(k);
}
