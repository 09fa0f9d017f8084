/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scope join at work.  The library itself begins this join, to call `ended`
 * of a scope after a stop, and to turn a drain into a stop.  The home loop
 * drives the join; without a home, the helper thread does.  A scope join looks
 * and decides as any join does, but closes no round, drives no phases, and
 * keeps no other join waiting.
 *
 * Called by: turn.c, the helper through struct evc__upper.
 * Locks: the coordinator's, given up for `ended`.
 */
#include "core/core.h"
#include "core/join/scope_join.h"

#include "base/self.h"
#include "base/unwind.h"

#include "core/join/join.h"

/* Lock held: does c need a scope join that is not yet in progress? */
static bool
needs_join(const evc_coord *c, const struct evc__scope_join *sj)
{
	uint64_t w = sync_load_sc(&c->word);

	if (sj->active || c->life.dying)
		return false;
	if (w & WORD_FLAG)
		return sj->ended != NULL && sj->told != WORD_STOP_NUMBER(w);
	return sync_load_sc(&c->join.drain_end) != 0;
}

SHUT_VOID(call,
	  (evc_join_fn * fn, evc_coord *c, const evc_verdict *v, void *arg),
	  fn(c, v, arg))

/* No lock: the scope join has its answer: call `ended`, which may free c.  So
   this function does not use c after the call. */
static void
scope_join_answered(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct evc__scope_join *sj = arg;
	void (*ended)(evc_coord *, const evc_verdict *, void *) = sj->ended;
	void *ended_arg = sj->arg;
	bool quiet;

	sync_lock(&c->lock);
	quiet = sj->quiet;
	sj->quiet = false;
	if (!quiet)
		sj->told = v->round;
	sj->active = false;
	sj->calling = evc__tid();
	/* A later stop may need a new scope join. */
	evc__scope_join_wake(c);
	sync_unlock(&c->lock);
	if (ended != NULL && !quiet)
		call(ended, c, v, ended_arg);
}

/* Lock held, given up: call `ended` for a stop that was cleared while no scope
   join was in progress.  false: there is no such stop, and the lock is held. */
static bool
deliver_cleared(evc_coord *c, struct evc__scope_join *sj)
{
	struct evc__busy busy;
	evc_verdict v;

	if (!sj->pending)
		return false;
	sj->pending = false;
	sj->calling = evc__tid();
	v = sj->cleared;
	sync_unlock(&c->lock);
	evc__busy_begin(evc__home(c), c, BUSY_ENDED, c->name, &busy);
	call(sj->ended, c, &v, sj->arg);
	evc__busy_end(&busy);
	return true;
}

/* Lock held, given up meanwhile: begin a scope join. */
static void
begin_scope_join(evc_coord *c, struct evc__scope_join *sj)
{
	struct evc__join *j = &sj->j;

	memset(j, 0, sizeof *j);
	sj->active = true;
	j->internal = true;
	j->until_stop = true;
	j->reactor = evc__home(c);
	j->fn = scope_join_answered;
	j->arg = sj;
	sync_unlock(&c->lock);
	evc__join_begin(j, c, NULL);
	if (j->reactor != NULL)
		evc__join_enter(j);
	sync_lock(&c->lock);
}

bool
evc__scope_join_turn(evc_coord *c, const struct evc__frame *f)
{
	struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	if (sj == NULL)
		return true;
	sync_lock(&c->lock);
	if (deliver_cleared(c, sj)) {
		if (f->gone)
			return false;
		evc__scope_join_called(c);
		sync_lock(&c->lock);
	}
	if (needs_join(c, sj))
		begin_scope_join(c, sj);
	sync_unlock(&c->lock);
	return true;
}

bool
evc__scope_join_serve(evc_coord *c, const bool *gone, uint64_t *ret_wait_ns)
{
	struct evc__scope_join *sj = sync_load(&c->join.scope_join);
	evc_verdict v;

	*ret_wait_ns = SYNC_FOREVER;
	if (sj == NULL)
		return true;
	if (evc__home(c) == NULL)
		evc__log_errors(c);
	sync_lock(&c->lock);
	if (evc__home(c) == NULL && deliver_cleared(c, sj)) {
		if (*gone)
			return false;
		evc__scope_join_called(c);
		sync_lock(&c->lock);
	}
	if (evc__home(c) == NULL && needs_join(c, sj)) {
		begin_scope_join(c, sj);
		evc__helper_hear(c, true);
	}
	if (sj->active && sj->j.reactor == NULL &&
	    evc__join_look(&sj->j, ret_wait_ns)) {
		evc__join_end(&sj->j);
		evc__helper_hear(c, false);
		v = sj->j.verdict;
		*ret_wait_ns = SYNC_FOREVER;
		sync_unlock(&c->lock);
		scope_join_answered(c, &v, sj);
		if (*gone)
			return false;
		evc__scope_join_called(c);
		return true;
	}
	sync_unlock(&c->lock);
	return true;
}

void
evc__scope_join_clearing(evc_coord *c, uint64_t w)
{
	struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	if (sj != NULL && sj->ended != NULL && sj->told != WORD_STOP_NUMBER(w))
		evc__verdict_now(c, w, &sj->cleared);
}

void
evc__scope_join_cleared(evc_coord *c, uint32_t stop)
{
	struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	if (sj == NULL)
		return;
	if (sj->active && !sj->j.answered) {
		sj->j.verdict = sj->cleared;
		sj->j.verdict.round = stop;
		sj->j.answered = true;
	} else if (!sj->active && sj->ended != NULL && sj->told != stop) {
		sj->pending = true;
		sj->told = stop;
	}
	evc__scope_join_wake(c);
}

void
evc__scope_join_drop(evc_coord *c)
{
	struct evc__scope_join *sj = sync_load(&c->join.scope_join);

	if (sj == NULL)
		return;
	sync_lock(&c->lock);
	if (sj->active && sj->j.reactor != NULL)
		evc__join_leave(&sj->j);
	else if (sj->active)
		evc__join_end(&sj->j);
	sj->active = false;
	sync_unlock(&c->lock);
}
