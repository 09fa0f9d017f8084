/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds entries of a node, by their numbers, which somebody has deleted or the
 * server has lost: by a later entry, and the last entry by a renewal of the
 * node's lease, which has the number of the last entry on the server.
 * The node is fenced then, and its functions begin again; but when the fence says
 * that an entry with updates is missing, these were made, and the cluster ends.
 * Called by: events.c, detect.c and fence.c; turn.c ends the cluster.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

bool
evc__session_sees(struct node_session *s, uint64_t seq)
{
	uint64_t back;

	if (seq > s->seen) {
		back = seq - s->seen;
		s->seen_bits = back < 64 ? s->seen_bits << back : 0;
		s->seen_bits |= 1;
		s->seen = seq;
		return true;
	}
	back = s->seen - seq;
	if (back >= 64 || (s->seen_bits >> back & 1))
		return false;
	s->seen_bits |= UINT64_C(1) << back;
	return true;
}

/* Is an entry up to number n missing? */
static bool
lacks(const struct node_session *s, uint64_t n)
{
	uint64_t all = s->seen < 64 ? (UINT64_C(1) << s->seen) - 1 : UINT64_MAX;

	if (n > s->seen)
		return true;
	return s->seen - n < 64 && (~s->seen_bits & all) >> (s->seen - n) != 0;
}

bool
evc__session_may_have_changed(const struct node_session *s)
{
	struct remote_worker *w;
	unsigned i, k;

	for (i = 0; i < s->n_workers; i++)
		for (w = s->workers[i], k = 0; w != NULL && k < w->n; k++)
			if (worker_call(w, k)->changes)
				return true;
	return false;
}

bool
evc__session_lost_changes(const struct node_session *s)
{
	return lacks(s, s->sent) && evc__session_may_have_changed(s);
}

static const char lost[] = "an entry of it was lost";

bool
evc__session_end_is_doubted(struct node_session *s)
{
	if (!lacks(s, s->seen) || !evc__session_may_have_changed(s))
		return false;
	evc__session_fence(s, lost);
	return true;
}

/* A node does not send so many entries before the server has the first. */
void
evc__session_gaps(struct node_session *s)
{
	if (s->seen > UNANSWERED && lacks(s, s->seen - UNANSWERED))
		evc__session_fence(s, lost);
}

/* ---- the last entry ---- */

/* An entry of the coordinator's own comes behind all entries on the server at that
   time.  When the reader has passed the own entry, missing entries are gone. */
void
evc__redis_look_at_end(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	if (e->detect.end[0] == '\0' || e->lock.phase != PHASE_LIVE ||
	    !evc__id_is_upto(e->detect.end, e->reader.last))
		return;
	e->detect.end[0] = '\0';
	EACH_SESSION(s, tmp, e) {
		if (s->g == e->detect.end_g && lacks(s, s->had))
			evc__session_fence(s, lost);
	}
}

static void
on_end(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;

	e->detect.asking_end = false;
	if (r == NULL || r->type != REDIS_REPLY_STRING ||
	    e->lock.g != e->detect.end_g || !evc__id_is(r->str))
		return;
	evc__copy(e->detect.end, sizeof e->detect.end, r->str);
	evc__redis_look_at_end(e);
}

/* The end of the entries is not known yet, and may itself be lost. */
static bool
waits_for_end(const struct redis_engine *e)
{
	return e->detect.asking_end ||
	       (e->detect.end[0] != '\0' &&
		sync_mono() - e->detect.end_ns < e->lease_ns);
}

static void
ask_for_end(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	/* All known renewals came before. */
	EACH_SESSION(s, tmp, e)
		s->had = s->has;
	e->detect.end[0] = '\0';
	e->detect.end_g = e->lock.g;
	e->detect.end_ns = sync_mono();
	e->detect.asking_end = evc__redis_begun(e, on_end);
}

/* Entries come on another connection than renewals: an entry is late if the next
   renewal comes first. */
void
evc__session_has(struct node_session *s, const char *beat)
{
	const char *space = strchr(beat, ' ');

	if (!lacks(s, s->has))
		s->has = space != NULL ? strtoull(space + 1, NULL, 10) : 0;
	else if (!waits_for_end(s->e) && s->e->lock.phase == PHASE_LIVE)
		ask_for_end(s->e);
}
