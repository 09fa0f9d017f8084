/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a namespace: a key with a lease, which makes this engine the
 * coordinator.  Each new owner of the lock begins a generation.
 * Called by: turn.c, restart.c; the connection's replies.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/*
 *     AWAY --up--> TAKING --ok--> LIVE --down--> AWAY --up, LOCK ok--> LIVE
 *                                  |               |
 *                                  +--lost, or another run of the server
 *                                  |               |
 *                                  |            RESTART --TAKE ok--> LIVE
 *                            another owner
 *                                  |
 *                                LOST --leases over--> DOWN
 */

/* ---- the count of changes ---- */

bool
evc__redis_changes(struct redis_engine *e, int64_t n,
		   enum variables_gone gone)
{
	static const char *const fewer[] = { "changes", "variables",
					     "counts of changes" };
	char how_many[64] = "";
	struct text t = evc__text_in(how_many, sizeof how_many);
	uint64_t is = n > 0 ? (uint64_t)n : 0;

	if (is < e->lock.changes)
		gone = GONE_NOTHING;
	e->lock.variables_used |= gone != GONE_NOTHING || is > e->lock.changes;
	if ((is < e->lock.changes || gone != GONE_NOTHING) &&
	    e->lock.variables_used && e->lock.fewer == NULL) {
		e->lock.fewer = fewer[gone];
		if (gone == GONE_NOTHING)
			evc__text_fmt(&t, ": %" PRIu64 ", and not %" PRIu64, is,
				      e->lock.changes);
		evc_log(e->scope, EVC_LOG_ERROR, NULL,
			"redis: the server at %s has fewer %s%s than before%s",
			e->where, e->lock.fewer,
			gone == GONE_NOTHING ? " of variables" : "", how_many);
		e->lock.changes = is;
		e->lock.server_anew = true;
		evc__redis_restart(e, "the server has lost data");
	}
	e->lock.changes = is;
	return e->lock.fewer == NULL;
}

/* ---- taking the lock ---- */

static void
begin_generation(struct redis_engine *e, int64_t g)
{
	struct text t = evc__text_in(e->lock.g_text, sizeof e->lock.g_text);

	e->lock.g = (uint64_t)g;
	evc__text_fmt(&t, "%" PRIu64, e->lock.g);
	e->lock.phase = PHASE_LIVE;
	evc__trouble_over(&e->trouble.told, TROUBLE_TAKE);
	evc__trouble_over(&e->trouble.told, TROUBLE_RESTART);
	e->detect.looked_ns = sync_mono();
	if (e->lock.server_anew)
		evc__redis_beats_anew(e);
	e->lock.server_anew = false;
	evc__copy(e->reader.last, sizeof e->reader.last, "0-0");
	/* The key is there, so that its life can be limited.  A node may have
	   registered by now, so nothing is trimmed. */
	evc__redis_begun(e, NULL);
	evc__redis_keys_refresh(e);
	evc__redis_state_write(e);
	evc_log(e->scope, EVC_LOG_INFO, NULL,
		"redis: coordinator of the namespace %s at %s, generation %s",
		e->address.ns, e->where, e->lock.g_text);
	evc__redis_well(e);
	redis_look_soon(e);
}

static void
lose_to_other(struct redis_engine *e, const char *who)
{
	evc__redis_lose(e, false,
			"another coordinator, %.100s, has taken the namespace "
			"%s",
			who[0] != '\0' ? who : "without a name",
			e->address.ns);
}

static void
on_take(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	const char *who;
	int64_t g, changes;
	size_t n;

	e->lock.taking = false;
	if (e->lock.phase == PHASE_LOST || e->lock.phase == PHASE_DOWN)
		redis_look_soon(e);
	if (r == NULL || e->lock.phase == PHASE_LOST ||
	    e->lock.phase == PHASE_DOWN)
		return;
	if (evc__reply_is(r, "ok") && evc__reply_number(r, 1, &g) && g > 0 &&
	    evc__reply_number(r, 2, &changes)) {
		/* Changes before the first generation are not this
		   cluster's. */
		if (e->lock.g == 0)
			e->lock.changes = (uint64_t)changes;
		if (evc__redis_changes(e, changes, GONE_NOTHING))
			begin_generation(e, g);
		return;
	}
	who = evc__reply_bytes(r, 1, &n);
	if (who != NULL && evc__reply_is(r, "version")) {
		evc__redis_lose(e, false,
				"the namespace %s is of version \"%.40s\" of "
				"the protocol, and only version %s is known "
				"here",
				e->address.ns, who, PROTOCOL_VERSION);
		return;
	}
	if (who != NULL && evc__reply_is(r, "taken") && e->lock.g != 0) {
		lose_to_other(e, who);
		return;
	}
	if (who != NULL && evc__reply_is(r, "taken"))
		evc__redis_trouble(e, TROUBLE_TAKE,
				   "the namespace %s is in use by %.100s",
				   e->address.ns, who);
	else
		evc__redis_trouble(e, TROUBLE_TAKE,
				   "the namespace %s cannot be taken: %s",
				   e->address.ns, evc__reply_why(r));
	e->lock.refused = true;
	redis_look_soon(e);
}

void
evc__redis_take(struct redis_engine *e, uint64_t least)
{
	struct redis_args a = { 0 };

	if (e->lock.taking || !e->up)
		return;
	/* Generations grow even when all data was deleted, because nodes know
	   older ones.  A repeated TAKE asks for the same generation. */
	if (e->lock.least <= least) {
		e->lock.least = sync_real() / 1000000;
		if (e->lock.least < least)
			e->lock.least = least;
	}
	e->lock.asked_ns = sync_mono();
	evc__args_key(&a, &e->address, "coord");
	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "ver");
	evc__args_key(&a, &e->address, "count");
	evc__args_key(&a, &e->address, "var");
	evc__args_key(&a, &e->address, "pre");
	evc__args_key(&a, &e->address, "new");
	evc__args_text(&a, e->id);
	evc__args_fmt(&a, "%llu", redis_ms(e->lease_ns));
	evc__args_text(&a, PROTOCOL_VERSION);
	evc__args_fmt(&a, "%" PRIu64, e->lock.least);
	evc__args_text(&a, e->lock.g != 0     ? e->lock.g_text
			   : e->address.fresh ? "1"
					      : "0");
	e->lock.taking =
		evc__redis_script(e->client, SCRIPT_TAKE, 7, on_take, e, &a);
}

/* ---- keeping the lock ---- */

/* The connection is there again, and the lock was not lost. */
static void
resume_generation(struct redis_engine *e)
{
	e->lock.phase = PHASE_LIVE;
	evc__redis_well(e);
	evc__redis_chunks_again(e);
	redis_look_soon(e);
}

static void
on_generation(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	const char *why = "the data is gone";

	e->lock.asking = false;
	if (r == NULL || r->type == REDIS_REPLY_ERROR ||
	    (e->lock.phase != PHASE_LIVE && e->lock.phase != PHASE_AWAY))
		return; /* The next LOCK asks again. */
	/* Without this loss the server's data is as it was. */
	if (r->type != REDIS_REPLY_STRING ||
	    strcmp(r->str, e->lock.g_text) != 0)
		e->lock.server_anew = true;
	if (!e->lock.server_anew)
		why = "the coordinator has lost its lock";
	else if (r->type == REDIS_REPLY_STRING &&
		 strtoull(r->str, NULL, 10) > e->lock.g)
		why = "another coordinator has had the namespace meanwhile";
	evc__redis_restart(e, why);
}

static void
ask_who_took_lock(struct redis_engine *e, const char *to)
{
	struct redis_args a = { 0 };

	if (to[0] != '\0' && strcmp(to, e->id) != 0) {
		lose_to_other(e, to);
		return;
	}
	evc__args_text(&a, "GET");
	evc__args_key(&a, &e->address, "gen");
	e->lock.asking =
		evc__redis_send(e->client, REDIS_SAY, on_generation, e, &a);
}

static void
on_lock(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;
	const char *to, *gone;
	int64_t changes;
	size_t n;

	e->lock.asking = false;
	if (r == NULL ||
	    (e->lock.phase != PHASE_LIVE && e->lock.phase != PHASE_AWAY))
		return;
	if (evc__reply_is(r, "ok")) {
		evc__trouble_over(&e->trouble.told, TROUBLE_LOCK);
		gone = evc__reply_bytes(r, 2, &n);
		if (evc__reply_number(r, 1, &changes) &&
		    !evc__redis_changes(e, changes,
					gone == NULL || n == 0 ? GONE_NOTHING :
					*gone == 'c' ? GONE_COUNTS :
						       GONE_VARIABLES))
			return;
		if (e->lock.phase == PHASE_AWAY)
			resume_generation(e);
		else
			evc__redis_well(e);
		evc__redis_questions(e);
		return;
	}
	to = evc__reply_bytes(r, 1, &n);
	if (to != NULL && evc__reply_is(r, "lost")) {
		ask_who_took_lock(e, to);
		return;
	}
	/* No answer says that another coordinator has the lock.  Each command
	   may be refused, and leases are watched. */
	if (e->lock.phase == PHASE_AWAY)
		resume_generation(e);
	evc__redis_trouble(e, TROUBLE_LOCK,
			   "the lock of the namespace %s cannot be "
			   "renewed: %s",
			   e->address.ns, evc__reply_why(r));
}

void
evc__redis_lock_again(struct redis_engine *e)
{
	struct redis_args a = { 0 };

	if (e->lock.asking || !e->up)
		return;
	e->lock.asked_ns = sync_mono();
	evc__args_key(&a, &e->address, "coord");
	evc__args_key(&a, &e->address, "gen");
	evc__args_key(&a, &e->address, "count");
	evc__args_key(&a, &e->address, "var");
	evc__args_text(&a, e->id);
	evc__args_text(&a, e->lock.g_text);
	evc__args_fmt(&a, "%llu", redis_ms(e->lease_ns));
	if (e->lock.variables_used)
		evc__args_text(&a, "");
	else
		evc__args_fmt(&a, "%" PRIu64, e->lock.changes);
	e->lock.asking =
		evc__redis_script(e->client, SCRIPT_LOCK, 4, on_lock, e, &a);
}

/* ---- losing the lock ---- */

void
evc__redis_lose(struct redis_engine *e, bool leases_are_over, const char *fmt,
		...)
{
	struct text t = evc__text_in(e->lock.why_down, sizeof e->lock.why_down);
	uint64_t now = sync_mono();
	struct node_session *s, *tmp;
	va_list ap;

	if (e->lock.phase == PHASE_LOST || e->lock.phase == PHASE_DOWN)
		return;
	va_start(ap, fmt);
	evc__text_vfmt(&t, fmt, ap);
	va_end(ap);
	evc_log(e->scope, EVC_LOG_ERROR, NULL, "redis: %s", e->lock.why_down);
	e->lock.phase = PHASE_LOST;
	evc__redis_questions_end(e, e->lock.why_down);
	EACH_SESSION(s, tmp, e) {
		if (leases_are_over)
			s->gone_ns = now;
		else if (s->gone_ns == 0)
			s->gone_ns = evc__redis_over_ns(now, e->lease_ns);
		evc__redis_due(e, s->gone_ns);
		evc__session_ends(s);
		if (s->why[0] == '\0')
			evc__copy(s->why, sizeof s->why, e->lock.why_down);
		evc__session_marked(s);
	}
	redis_look_soon(e);
}

/* While this process was frozen, nobody could find out that the server was there
   again. */
static void
forgive_pause(struct redis_engine *e, uint64_t now)
{
	uint64_t pause = now - e->lock.ticked_ns, *of[] = {
		&e->lock.unserved_ns, &e->questions.waits_ns
	};
	unsigned i;

	if (e->lock.ticked_ns == 0 || pause < e->lease_ns)
		pause = 0;
	e->lock.ticked_ns = now;
	if (e->away_ns == 0 || e->lock.unserved_ns < e->away_ns)
		e->lock.unserved_ns = e->away_ns;
	for (i = 0; i < 2; i++)
		if (*of[i] != 0)
			*of[i] = *of[i] + pause < now ? *of[i] + pause : now;
}

void
evc__redis_lock_tick(struct redis_engine *e, uint64_t now)
{
	forgive_pause(e, now);
	if (e->lock.g != 0 && !e->up && e->away_ns != 0 &&
	    now - e->lock.unserved_ns > e->lease_ns * 3 &&
	    (e->lock.phase == PHASE_AWAY || e->lock.phase == PHASE_RESTART)) {
		evc__redis_lose(
			e, true,
			"there was no connection for %.1f s, and the cluster "
			"was given up; another one may be opened: %s",
			(double)(now - e->away_ns) / 1e9, e->trouble.now);
		return;
	}
	if (e->lock.phase == PHASE_LIVE && e->up && e->lock.refresh_soon > 0) {
		e->lock.refresh_soon--;
		evc__redis_keys_refresh(e);
	}
	if (now - e->lock.asked_ns + 1000000 < e->lease_ns / 4 || !e->up)
		return;
	if (e->lock.phase == PHASE_TAKING)
		evc__redis_take(e, e->lock.g);
	else if (e->lock.phase == PHASE_RESTART) {
		e->lock.refused = false;
		redis_look_soon(e);
	} else if (e->lock.phase == PHASE_AWAY && e->lock.g != 0)
		evc__redis_lock_again(e);
	else if (e->lock.phase == PHASE_LIVE) {
		evc__redis_lock_again(e);
		e->lock.refresh_soon = 1;
		evc__redis_streams_refresh(e);
		evc__redis_state_write(e);
	}
}
