/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a session ends that does not end by itself.
 * Called by: turn.c, events.c, lock.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/*
 *     fence    Redis is asked to delete the lease and to leave a mark in ev
 *     fenced   Redis has done so: no renewal comes any more
 *     marked   all entries before the mark are read; later ones do not count
 *     over     the workers are proven to be dead, or the lease is over
 *
 * The lease is over a whole lease after its last renewal, by the coordinator's
 * own clock: the server's clock may jump, and anybody may delete a key.  A
 * renewal is older than its answer, so this time is never too short, and too
 * long by the time between two questions at most.
 */

/* ---- the end ---- */

void
evc__session_look(struct node_session *s)
{
	bool over = s->gone_ns != 0 && sync_mono() >= s->gone_ns;

	/* No mark can be left any more. */
	if (!s->marked && over && !s->fenced)
		evc__session_marked(s);
	else if (s->marked && (over || evc__session_is_dead(s)))
		evc__session_over(s, s->why, EVC_ENGINE_DIED);
}

void
evc__session_marked(struct node_session *s)
{
	struct redis_engine *e = s->e;
	char text[REDIS_WHY_SIZE + NODE_NAME_SIZE];
	struct text t = evc__text_in(text, sizeof text);
	unsigned i;

	if (s->marked)
		return;
	evc__redis_tell(e);
	if ((e->lock.phase == PHASE_LIVE || e->lock.phase == PHASE_RESTART) &&
	    evc__session_lost_changes(s)) {
		evc__copy(e->detect.lost_of, sizeof e->detect.lost_of, s->name);
		redis_look_soon(e);
		return;
	}
	s->marked = true;
	/* Not logged earlier, because a node that leaves in good order says so
	   before the mark. */
	evc_log(e->scope, EVC_LOG_WARNING, NULL, "redis: node %s is fenced: %s",
		s->name, s->why);
	evc__text_fmt(&t, "node %s: %s", s->name, s->why);
	for (i = 0; i < s->n_workers; i++)
		if (s->workers[i] != NULL)
			evc__remote_worker_fenced(s->workers[i], text);
	evc__session_look(s);
	redis_look_soon(e);
}

/* ---- asked of Redis ---- */

static void
count_lease_from(struct node_session *s, uint64_t since_ns, uint64_t lease_ns)
{
	s->gone_ns = evc__redis_over_ns(since_ns, lease_ns);
	evc__redis_due(s->e, s->gone_ns);
}

static void
note_fenced(struct node_session *s, const char *mark)
{
	struct redis_engine *e = s->e;

	s->fenced = true;
	/* The server may have forgotten some renewals. */
	if (e->lock.server_anew)
		s->beat_ns = sync_mono();
	count_lease_from(s, s->beat_ns, e->lease_ns);
	evc__copy(s->mark, sizeof s->mark, mark);
	s->mark_ns = sync_mono();
	if (mark[0] == '\0' || evc__id_is_upto(mark, e->reader.last))
		evc__session_marked(s);
	redis_look_soon(e);
}

/* The number of the last entry with updates.  When nobody knows, because the key
   with the numbers has ended or was lost, the session lacks an entry. */
static uint64_t
sent_of(const struct node_session *s, const redisReply *r, size_t i)
{
	const char *text;
	int64_t sent;
	size_t n;

	if (evc__reply_number(r, i, &sent) && sent > 0)
		return (uint64_t)sent;
	text = evc__reply_bytes(r, i, &n);
	return text != NULL && strcmp(text, "?") == 0 &&
			       s->e->lock.marked_g == s->g ?
		       UINT64_MAX : 0;
}

/* The server may have forgotten the fences, and renewed leases until the new
   generation. */
void
evc__redis_beats_anew(struct redis_engine *e)
{
	uint64_t now = sync_mono();
	struct node_session *s, *tmp;

	EACH_SESSION(s, tmp, e) {
		s->beat_ns = now;
		count_lease_from(s, now, e->lease_ns);
	}
}

/* true: the mark should have been read.  The mark may be lost with the server's
   data, or deleted; then another mark is needed, but not more than one in a
   lease: perhaps nothing can be read. */
static bool
mark_is_late(const struct node_session *s)
{
	uint64_t now = sync_mono();

	return s->fenced && !s->marked && now >= s->gone_ns &&
	       now >= evc__after(s->mark_ns, s->e->lease_ns);
}

static void
on_fence(const redisReply *r, void *arg)
{
	struct fence_wait *w = arg;
	struct node_session *s = w->session;
	struct redis_engine *e;
	const char *mark, *beat;
	size_t n;

	sync_free(w);
	if (s == NULL)
		return;
	e = s->e;
	s->fence = NULL;
	if (evc__reply_is(r, "ok") &&
	    (beat = evc__reply_bytes(r, 1, &n)) != NULL &&
	    (mark = evc__reply_bytes(r, 2, &n)) != NULL && evc__id_is(mark)) {
		evc__trouble_over(&e->trouble.told, TROUBLE_FENCE);
		evc__session_beat(s, beat);
		s->sent = sent_of(s, r, 3);
		note_fenced(s, mark);
		return;
	}
	if (r == NULL)
		return;
	if (evc__reply_is(r, "gen")) {
		s->beat_ns = sync_mono();
		s->sent = sent_of(s, r, 1);
		mark = evc__reply_bytes(r, 2, &n);
		note_fenced(s, mark != NULL && evc__id_is(mark) ? mark : "");
		if (e->lock.phase == PHASE_LIVE)
			redis_doubt_lock(e);
		return;
	}
	s->fence_rests = true;
	evc__redis_trouble(e, TROUBLE_FENCE, "node %s cannot be fenced: %s",
			   s->name, evc__reply_why(r));
	/* Either the node cannot renew its lease any more, or the coordinator
	   cannot, and the node ends for that. */
	if (s->gone_ns == 0)
		count_lease_from(s, sync_mono(), e->lease_ns * 5 / 2);
	else if (mark_is_late(s))
		evc__session_marked(s); /* the next mark would be refused,
					   too */
	/* s may be gone. */
	if (evc__reply_has_no_id(r) && e->lock.phase == PHASE_LIVE)
		evc__redis_restart(e, NO_ID_LEFT);
}

static void
ask_for_fence(struct node_session *s)
{
	struct redis_engine *e = s->e;
	struct redis_args a = { 0 };
	struct fence_wait *w;

	if (!e->up || (s->fenced && !mark_is_late(s)) || s->fence != NULL ||
	    s->fence_rests ||
	    (e->lock.phase != PHASE_LIVE && e->lock.phase != PHASE_RESTART))
		return;
	w = sync_alloc(1, sizeof *w);
	if (w == NULL)
		return; /* tried at the next tick */
	w->session = s;
	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "lease:%s", s->name);
	evc__redis_own_key(e, &a, "ev");
	evc__redis_beat_key(s, &a);
	evc__redis_own_key(e, &a, "seqs");
	evc__args_text(&a, e->lock.g_text);
	evc__args_fmt(&a, "%s %" PRIu64, e->lock.g_text, s->inc);
	evc__args_text(&a, s->name);
	evc__args_fmt(&a, "%" PRIu64, s->inc);
	s->fence = w;
	if (!evc__redis_script(e->client, SCRIPT_FENCE, 5, on_fence, w, &a)) {
		s->fence = NULL;
		sync_free(w);
	}
}

/* ---- all of them ---- */

void
evc__redis_fence_again(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	EACH_ENDING(s, tmp, e)
		s->fence_rests = false;
}

void
evc__redis_fence_all(struct redis_engine *e)
{
	struct node_session *s, *tmp;

	EACH_ENDING(s, tmp, e) {
		if (s->g == e->lock.g)
			ask_for_fence(s);
	}
}

void
evc__redis_restart(struct redis_engine *e, const char *why)
{
	struct node_session *s, *tmp;

	e->lock.phase = PHASE_RESTART;
	e->lock.counted = e->lock.refused = false;
	if (why != e->lock.why_restart)
		evc__copy(e->lock.why_restart, sizeof e->lock.why_restart, why);
	evc__redis_trouble(e, TROUBLE_RESTART, "%s: workers of %s register anew",
			   e->lock.why_restart, e->address.ns);
	EACH_SESSION(s, tmp, e)
		evc__session_fence(s, "%s", why);
	redis_look_soon(e);
}
