/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of a scope join, and the calls of other files for the scope join.
 * scope_join_run.c drives the join.
 *
 * Called by: scopes, drains, joins, counts and phases.
 * Locks: the coordinator's, held by the caller where the header says so.
 */
#include "core/core.h"
#include "core/join/scope_join.h"

#include "base/self.h"

void
evc__scope_join_called(evc_coord *c)
{
	sync_lock(&c->lock);
	sync_load(&c->join.scope_join)->calling = 0;
	sync_unlock(&c->lock);
	/* Joins above wait for the return of `ended`. */
	evc__ring(c);
}

evc_reactor *
evc__scope_join_reactor(const evc_coord *c)
{
	const struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	return sj != NULL && sj->active ? sj->j.reactor : evc__home(c);
}

bool
evc__scope_join_due(const evc_coord *c, int not_of)
{
	const struct evc__scope_join *sj = sync_load(&c->join.scope_join);
	uint64_t w = sync_load_sc(&c->word);

	if (sj == NULL || sj->ended == NULL ||
	    (evc__home(c) != NULL && evc__home(c)->loop == NULL &&
	     sj->calling == 0))
		return false; /* no `ended`, or no loop is left to call
				 `ended` */
	if (sj->calling != 0)
		return sj->calling != not_of;
	return sj->pending || ((w & WORD_FLAG) &&
			       (sj->active || sj->told != WORD_STOP_NUMBER(w)));
}

bool
evc__scope_join_need(evc_coord *c)
{
	struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	if (evc__home(c) != NULL && evc__home(c)->loop == NULL)
		return false;
	if (evc__home(c) == NULL && !evc__helper_need(c, false))
		return false;
	if (sj != NULL)
		return true;
	sj = sync_alloc(1, sizeof *sj);
	if (sj == NULL)
		return false;
	list_init(&sj->j.node);
	list_init(&sj->j.here);
	sync_store(&c->join.scope_join, sj);
	return true;
}

evc_status
evc__scope_join_for(evc_coord *c,
		    void (*ended)(evc_coord *c, const evc_verdict *v,
				  void *arg),
		    void *arg)
{
	bool had;

	sync_lock(&c->lock);
	had = evc__scope_join_need(c);
	if (had) {
		sync_load(&c->join.scope_join)->ended = ended;
		sync_load(&c->join.scope_join)->arg = arg;
	}
	sync_unlock(&c->lock);
	return had ? 0
		   : evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_scope_new: nobody to call `ended`");
}

void
evc__scope_join_wake(evc_coord *c)
{
	if (sync_load(&c->join.scope_join) == NULL)
		return;
	if (evc__scope_join_reactor(c) != NULL)
		evc__reactor_poke(evc__scope_join_reactor(c));
	else
		evc__helper_ring(c);
}

bool
evc__scope_join_tells(const evc_coord *c)
{
	const struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	return sj != NULL && sj->ended != NULL;
}

void
evc__scope_join_cancel(evc_coord *c)
{
	struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	if (sj == NULL || !sj->active || sj->j.answered)
		return;
	sj->quiet = true;
	sj->j.answered = true;
	evc__scope_join_wake(c);
}

const char *
evc__scope_join_why_not(const evc_coord *c)
{
	const struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	if (sj == NULL || !sj->active || sj->j.reactor == NULL ||
	    sj->j.reactor->tid == evc__tid() || sj->j.reactor->loop == NULL)
		return NULL;
	return "its end is to be told on another thread's loop";
}
