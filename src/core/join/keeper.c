/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What others ask of the keeper (keeper_run.c), and the record that it is.
 *
 * Called by: scopes, drains, joins, censuses and phases.
 * Locks: the coordinator's, held by the caller where the header says so.
 */
#include "core/core.h"
#include "core/join/keeper.h"

#include "base/self.h"

void
evc__keeper_called(evc_coord *c)
{
	sync_lock(&c->lock);
	sync_load(&c->join.keeper)->calling = 0;
	sync_unlock(&c->lock);
	/* Joins above wait for it. */
	evc__ring(c);
}

bool
evc__keeper_due(const evc_coord *c, int not_of)
{
	const struct evc__keeper *k = sync_load(&c->join.keeper);
	uint64_t w = sync_load_sc(&c->word);

	if (k == NULL || k->ended == NULL ||
	    (c->loop.home != NULL && c->loop.home->loop == NULL &&
	     k->calling == 0))
		return false; /* or nobody is left to tell it */
	if (k->calling != 0)
		return k->calling != not_of;
	return k->pending || ((w & WORD_FLAG) &&
			      (k->active || k->done != WORD_STOP_NUMBER(w)));
}

bool
evc__keeper_need(evc_coord *c)
{
	struct evc__keeper *k = sync_load(&c->join.keeper);

	if (c->loop.home != NULL && c->loop.home->loop == NULL)
		return false;
	if (c->loop.home == NULL && !evc__helper_need(c, false))
		return false;
	if (k != NULL)
		return true;
	k = sync_alloc(1, sizeof *k);
	if (k == NULL)
		return false;
	list_init(&k->j.node);
	list_init(&k->j.here);
	sync_store(&c->join.keeper, k);
	return true;
}

evc_status
evc__keeper_for(evc_coord *c,
		void (*ended)(evc_coord *c, const evc_verdict *v, void *arg),
		void *arg)
{
	bool had;

	sync_lock(&c->lock);
	had = evc__keeper_need(c);
	if (had) {
		sync_load(&c->join.keeper)->ended = ended;
		sync_load(&c->join.keeper)->arg = arg;
	}
	sync_unlock(&c->lock);
	return had ? 0 :
		     evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_scope_new: nobody to call `ended`");
}

void
evc__keeper_wake(evc_coord *c)
{
	if (sync_load(&c->join.keeper) == NULL)
		return;
	if (c->loop.home != NULL)
		evc__reactor_poke(c->loop.home);
	else
		evc__helper_ring(c);
}

bool
evc__keeper_tells(const evc_coord *c)
{
	const struct evc__keeper *k = sync_load(&c->join.keeper);

	return k != NULL && k->ended != NULL;
}

void
evc__keeper_cancel(evc_coord *c)
{
	struct evc__keeper *k = sync_load(&c->join.keeper);

	if (k == NULL || !k->active || k->j.answered)
		return;
	k->quiet = true;
	k->j.answered = true;
	evc__keeper_wake(c);
}

const char *
evc__keeper_why_not(const evc_coord *c)
{
	const struct evc__keeper *k = sync_load(&c->join.keeper);

	if (k == NULL || !k->active || c->loop.home == NULL ||
	    c->loop.home->tid == evc__tid() || c->loop.home->loop == NULL)
		return NULL;
	return "its end is to be told on another thread's loop";
}
