/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How lives end that do not end by themselves.
 *
 *     fence    asked of Redis, which takes the lease away and leaves a mark
 *     fenced   it has: no renewal comes any more, so when the lease is over is
 *              known
 *     marked   all that was said before the mark is read and counts; what comes
 *              behind it does not
 *     over     its workers are proven to be dead, or the lease is over
 *
 * A lease is over so long after its last renewal, by our own clock: the server's
 * may jump, and somebody may delete a lease whose node has been told that it has
 * a whole one.  A renewal was before we saw it, so what we wait is never too short;
 * and too long by the time between two looks, at most.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* ---- ids ---- */

static bool
id_parts(const char *id, uint64_t *ret_ms, uint64_t *ret_n)
{
	char *end;

	*ret_ms = strtoull(id, &end, 10);
	*ret_n = *end == '-' ? strtoull(end + 1, &end, 10) : 0;
	return *end == '\0';
}

bool
evc__id_is_upto(const char *a, const char *b)
{
	uint64_t a_ms, a_n, b_ms, b_n;

	return id_parts(a, &a_ms, &a_n) && id_parts(b, &b_ms, &b_n) &&
	       (a_ms < b_ms || (a_ms == b_ms && a_n <= b_n));
}

/* ---- the end ---- */

void
evc__lives_look(struct life *l)
{
	bool over = l->gone_ns != 0 && sync_mono() >= l->gone_ns;

	/* Nobody can leave a mark there. */
	if (!l->marked && over && !l->fenced)
		evc__lives_marked(l);
	else if (l->marked && (over || evc__lives_is_dead(l)))
		evc__lives_over(l, l->why, EVC_ENGINE_DIED);
}

void
evc__lives_marked(struct life *l)
{
	struct redis_engine *e = l->e;
	char text[REDIS_WHY_ROOM + NODE_NAME_ROOM];
	struct text t = evc__text_in(text, sizeof text);
	unsigned i;

	if (l->marked)
		return;
	evc__redis_tell(e);
	l->marked = true;
	/* Not before: one that has left in good order has said so before the
	   mark, and its end would be no surprise. */
	evc_log(e->scope, EVC_LOG_WARNING, NULL, "redis: node %s is fenced: %s",
		l->name, l->why);
	evc__text_fmt(&t, "node %s: %s", l->name, l->why);
	for (i = 0; i < l->n_workers; i++)
		if (l->workers[i] != NULL)
			evc__remote_worker_fenced(l->workers[i], text);
	evc__lives_look(l);
	redis_look_soon(e);
}

/* ---- asked of Redis ---- */

static void
is_over_after(struct life *l, uint64_t since_ns, uint64_t lease_ns)
{
	l->gone_ns = evc__redis_over_ns(since_ns, lease_ns);
	evc__redis_due(l->e, l->gone_ns);
}

static void
fenced(struct life *l, const char *mark)
{
	struct redis_engine *e = l->e;

	l->fenced = true;
	/* It may have forgotten some renewals. */
	if (e->server_anew)
		l->beat_ns = sync_mono();
	is_over_after(l, l->beat_ns, e->lease_ns);
	evc__copy(l->mark, sizeof l->mark, mark);
	if (mark[0] == '\0' ||
	    (list_empty(&e->held) && e->waits == NULL &&
	     evc__id_is_upto(mark, e->last)))
		evc__lives_marked(l);
	redis_look_soon(e);
}

/* The server may have forgotten that they were fenced, and renewed their leases
   until there was another generation. */
void
evc__redis_beats_anew(struct redis_engine *e)
{
	uint64_t now = sync_mono();
	struct list *n;

	for (n = e->lives.next; n != &e->lives; n = n->next) {
		struct life *l = LIST_OF(n, struct life, link);

		l->beat_ns = now;
		is_over_after(l, now, e->lease_ns);
	}
}

/* It was to be read long ago.  It may have gone with what the server has lost, or
   by hand: then another one is left. */
static bool
its_mark_is_late(const struct life *l)
{
	return l->fenced && !l->marked && sync_mono() >= l->gone_ns;
}

static void
on_fence(struct redis_client *cl, const redisReply *r, void *arg)
{
	struct fence_wait *w = arg;
	struct life *l = w->life;
	const char *word = evc__reply_word(r), *mark, *beat;
	char why[REDIS_WHY_ROOM];
	struct text t = evc__text_in(why, sizeof why);
	size_t n;

	(void)cl;
	sync_free(w);
	if (l == NULL)
		return;
	l->fence = NULL;
	if (r != NULL && word != NULL && strcmp(word, "ok") == 0 &&
	    (beat = evc__reply_bytes(r, 1, &n)) != NULL &&
	    (mark = evc__reply_bytes(r, 2, &n)) != NULL) {
		evc__lives_beat(l, beat);
		fenced(l, mark);
		return;
	}
	if (r == NULL)
		return;
	if (word != NULL && strcmp(word, "gen") == 0) {
		/* There is nothing any more that it could leave a mark in. */
		struct redis_engine *e = l->e;

		l->beat_ns = sync_mono();
		fenced(l, "");
		if (e->phase == PHASE_LIVE)
			redis_doubt_lock(e);
		return;
	}
	evc__reply_why(r, &t);
	evc__redis_trouble(l->e, "node %s cannot be fenced: %s", l->name, why);
	/* Either its lease cannot be renewed any more, or ours cannot either,
	   and then it ends for that. */
	if (l->gone_ns == 0)
		is_over_after(l, sync_mono(), l->e->lease_ns * 5 / 2);
	else if (its_mark_is_late(l))
		evc__lives_marked(l); /* there will be no other one */
}

static void
ask(struct life *l)
{
	struct redis_engine *e = l->e;
	struct redis_args a = { 0 };
	struct fence_wait *w;

	if (!e->up || (l->fenced && !its_mark_is_late(l)) || l->fence != NULL ||
	    (e->phase != PHASE_LIVE && e->phase != PHASE_RESTART))
		return;
	w = sync_alloc(1, sizeof *w);
	if (w == NULL)
		return; /* then at the next tick */
	w->life = l;
	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "lease:%s", l->name);
	evc__redis_own_key(e, &a, "ev");
	evc__redis_beat_key(l, &a);
	evc__args_text(&a, e->g_text);
	evc__args_fmt(&a, "%s %" PRIu64, e->g_text, l->inc);
	evc__args_text(&a, l->name);
	evc__args_fmt(&a, "%" PRIu64, l->inc);
	l->fence = w;
	if (!evc__redis_script(e->client, SCRIPT_FENCE, 4, on_fence, w, &a)) {
		l->fence = NULL;
		sync_free(w);
	}
}

/* ---- all of them ---- */

void
evc__redis_fence_all(struct redis_engine *e)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &e->lives) {
		struct life *l = LIST_OF(n, struct life, link);

		if (l->ending && l->g == e->g)
			ask(l);
	}
}

void
evc__redis_restart(struct redis_engine *e, const char *why)
{
	struct list *n, *tmp;

	e->phase = PHASE_RESTART;
	e->counted = false;
	if (why != e->why_restart)
		evc__copy(e->why_restart, sizeof e->why_restart, why);
	evc__redis_trouble(e, "%s: workers of %s register anew", why,
			   e->address.ns);
	LIST_EACH(n, tmp, &e->lives)
		evc__lives_fence(LIST_OF(n, struct life, link), "%s", why);
	redis_look_soon(e);
}
