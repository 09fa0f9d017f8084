/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends a generation: the server was restarted or was a replica, and its last
 * data may be lost; or the lock was lost to nobody.  A loss is proven if the
 * server has counted fewer changes of variables than before, or has fewer
 * variables than after the last change.
 *
 * All sessions are fenced, and their entries before the marks are read, as far
 * as they are there, so that functions that have ended need not run again.
 * Then a greater generation is taken, and nodes register anew.
 * Called by: turn.c.
 * Locks: none; loop thread only.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

static bool
all_sessions_are_read(const struct redis_engine *e)
{
	struct node_session *s, *tmp;

	EACH_SESSION(s, tmp, e) {
		/* gone_ns has to be known now: nothing asks for it in the next
		   generation. */
		if (!s->marked || s->gone_ns == 0)
			return false;
	}
	return true;
}

/* Delete the keys of the old generation. */
static void
delete_generation(struct redis_engine *e)
{
	struct redis_args a = { 0 };
	struct node_session *s, *tmp;

	/* This entry answers the question for further ones. */
	if (e->reader.reading)
		evc__redis_begun(e, NULL);
	evc__args_text(&a, "UNLINK");
	(void)evc__redis_last_keys(e, &a);
	EACH_SESSION(s, tmp, e) {
		evc__redis_to_key(s, &a);
		evc__redis_beat_key(s, &a);
		evc__session_chunks_drop(s);
	}
	evc__redis_unlink(e, &a);
	sync_free(e->trouble.state);
	e->trouble.state = NULL;
}

static void
on_changes(const redisReply *r, void *arg)
{
	struct redis_engine *e = arg;

	e->lock.counting = false;
	if (r == NULL)
		return;
	if (r->type == REDIS_REPLY_ERROR) {
		evc__redis_trouble(e, TROUBLE_COUNTS,
				   "the counts of the variables cannot be "
				   "read: %s",
				   evc__reply_why(r));
		return; /* The next look asks again. */
	}
	evc__trouble_over(&e->trouble.told, TROUBLE_COUNTS);
	e->lock.counted = true;
	(void)evc__redis_changes(e, r->type == REDIS_REPLY_STRING ?
					    strtoll(r->str, NULL, 10) :
					    0,
				 GONE_NOTHING);
	evc__redis_restart_go_on(e);
}

/* true: variables that programs have used may be older than they were, and the
   engine is lost. */
static bool
variables_are_lost(struct redis_engine *e)
{
	if (e->lock.fewer != NULL)
		evc__redis_lose(e, false,
				"%s, and variables are lost: the server at %s "
				"has fewer %s than it had",
				e->lock.why_restart, e->where, e->lock.fewer);
	else if (e->lock.server_anew && e->lock.variables_used &&
		 !e->address.trust_aof)
		evc__redis_lose(e, false,
				"%s, and variables may be lost: those of %s "
				"(the option trust-aof says that none are)",
				e->lock.why_restart, e->where);
	else
		return false;
	return true;
}

/* Ask how many changes the server has counted since the last LOCK. */
static void
count_changes(struct redis_engine *e)
{
	struct redis_args a = { 0 };

	if (e->lock.counting || e->lock.counted || !e->up)
		return;
	evc__args_text(&a, "HGET");
	evc__args_key(&a, &e->address, "count");
	evc__args_text(&a, "changes");
	e->lock.counting =
		evc__redis_send(e->client, REDIS_SAY, on_changes, e, &a);
}

void
evc__redis_restart_go_on(struct redis_engine *e)
{
	if (e->lock.phase != PHASE_RESTART || !e->up || e->lock.taking)
		return;
	count_changes(e);
	if (!all_sessions_are_read(e) || !e->lock.counted ||
	    variables_are_lost(e) || e->lock.refused || e->turn.left)
		return;
	delete_generation(e);
	evc__redis_questions_again(e, true);
	evc__redis_take(e, e->lock.g);
}
