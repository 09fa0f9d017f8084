/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of a generation end some time after their coordinator.  A coordinator
 * that works has them end later.
 * Called by: lock.c; the connection's replies.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

/* Quarters of a lease in which all streams to nodes are refreshed, a fifth of
   their life at most; and streams that are refreshed at a time, at least. */
#define STREAM_ROUND 8
#define STREAMS_LEAST 64

/* The answer of this command reports first that the server has no memory
   left. */
static void
on_refreshed(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	bool none;

	if (r == NULL)
		return;
	none = evc__reply_is_error(r, "OOM");
	if (r->type == REDIS_REPLY_ERROR && !none) {
		evc__redis_trouble(e, TROUBLE_KEYS,
				   "keys of the generation cannot be written: "
				   "%s",
				   evc__reply_why(r));
		return;
	}
	evc__trouble_over(&e->trouble.told, TROUBLE_KEYS);
	if (none == e->lock.no_memory)
		return;
	e->lock.no_memory = none;
	if (none)
		evc_log(e->scope, EVC_LOG_WARNING, NULL,
			"redis: the server at %s has no memory left: %s",
			e->where, r->str);
	else
		evc_log(e->scope, EVC_LOG_INFO, NULL,
			"redis: the server at %s has memory again", e->where);
}

/* ---- the numbers of the nodes' updates ---- */

static void
on_mark(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;

	if (r == NULL || e->lock.phase != PHASE_LIVE)
		return;
	if (evc__reply_is_error(r, "WRONGTYPE"))
		evc__redis_restart(e, "the numbers of the nodes' updates were "
				      "replaced by another key");
	else if (r->type == REDIS_REPLY_INTEGER)
		e->lock.marked_g = e->lock.g;
	else if (r->type == REDIS_REPLY_NIL) {
		/* Perhaps renewals are gone, too. */
		evc__redis_beats_anew(e);
		evc__redis_restart(e, "the numbers of the nodes' updates are "
				      "gone");
	}
}

/* The key begins with a mark: without the mark, the numbers have been lost since.
   So the key also is there, and its life can be limited. */
static void
look_at_mark(struct redis_engine *e)
{
	bool made = e->lock.marked_g == e->lock.g;
	struct redis_args a = { 0 };

	evc__args_text(&a, made ? "HGET" : "HSET");
	evc__redis_own_key(e, &a, "seqs");
	evc__args_text(&a, "");
	if (!made)
		evc__args_text(&a, "");
	evc__redis_send(e->client, REDIS_SAY, on_mark, e, &a);
}

/* ---- all keys ---- */

void
evc__redis_keys_refresh(struct redis_engine *e)
{
	static const char *const names[] = { "ev", "seqs", "runs" };
	unsigned long long px = KEYS_PX(redis_ms(e->lease_ns));
	struct redis_args a = { 0 };
	size_t i;

	evc__args_text(&a, "SET");
	evc__redis_own_key(e, &a, "opts");
	evc__args_fmt(&a, "%llu %zu", redis_ms(e->lease_ns), e->max_frame);
	evc__args_text(&a, "PX");
	evc__args_fmt(&a, "%llu", px);
	evc__redis_send(e->client, REDIS_SAY, on_refreshed, e, &a);
	look_at_mark(e);
	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		a = (struct redis_args){ 0 };
		evc__args_text(&a, "PEXPIRE");
		evc__redis_own_key(e, &a, names[i]);
		evc__args_fmt(&a, "%llu", px);
		evc__redis_send(e->client, REDIS_SAY, NULL, NULL, &a);
	}
}

void
evc__redis_streams_refresh(struct redis_engine *e)
{
	size_t n = e->sessions.by_name.n, some = n / STREAM_ROUND + 1, i;
	struct node_session *s;

	some = some < STREAMS_LEAST ? STREAMS_LEAST : some;
	for (i = 0; i < some && i < n; i++) {
		s = evc__session_next(e, &e->sessions.refreshed);
		if (s != NULL && s->has_stream)
			evc__redis_to_ends(s);
	}
}
