/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scope join at work: a join that the library itself keeps in progress, for
 * `ended` of a scope, and for a drain, which has to become a stop.  The home
 * loop or, without a home, the helper thread begins the join when there is a
 * need.  The scope join looks and decides as any join does; but this join
 * closes no round, drives no phases, and is waited for by no other join.
 *
 * Called by: turn.c, the helper through struct evc__upper.
 * Locks: the coordinator's, given up for `ended`.
 */
#include "core/core.h"
#include "core/join/scope_join.h"

#include "base/self.h"
#include "base/unwind.h"

#include "core/join/join.h"

/* Lock held. */
static bool
wanted(const evc_coord *c, const struct evc__scope_join *k)
{
	uint64_t w = sync_load_sc(&c->word);

	if (k->active || c->life.dying)
		return false;
	if (w & WORD_FLAG)
		return k->ended != NULL && k->done != WORD_STOP_NUMBER(w);
	return sync_load_sc(&c->join.drain_end) != 0;
}

SHUT_VOID(call,
	  (evc_join_fn * fn, evc_coord *c, const evc_verdict *v, void *arg),
	  fn(c, v, arg))

/* The scope join is answered; no lock. The last touch of c: ended may free
   c. */
static void
finished(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct evc__scope_join *k = arg;
	void (*ended)(evc_coord *, const evc_verdict *, void *) = k->ended;
	void *ended_arg = k->arg;
	bool quiet;

	sync_lock(&c->lock);
	quiet = k->quiet;
	k->quiet = false;
	if (!quiet)
		k->done = v->round;
	k->active = false;
	k->calling = evc__tid();
	/* There may be a later stop already. */
	evc__scope_join_wake(c);
	sync_unlock(&c->lock);
	if (ended != NULL && !quiet)
		call(ended, c, v, ended_arg);
}

/* Lock held, given up: deliver the verdict of a stop that was cleared before
   its loop turned.  false: there is none, the lock is held. */
static bool
deliver_cleared(evc_coord *c, struct evc__scope_join *k)
{
	struct evc__busy busy;
	evc_verdict v;

	if (!k->pending)
		return false;
	k->pending = false;
	k->calling = evc__tid();
	v = k->cleared;
	sync_unlock(&c->lock);
	evc__busy_begin(c->loop.home, c, BUSY_ENDED, c->name, &busy);
	call(k->ended, c, &v, k->arg);
	evc__busy_end(&busy);
	return true;
}

/* Lock held, given up meanwhile. */
static void
begin_scope_join(evc_coord *c, struct evc__scope_join *k)
{
	struct evc__join *j = &k->j;

	memset(j, 0, sizeof *j);
	k->active = true;
	j->internal = true;
	j->until_stop = true;
	j->reactor = c->loop.home;
	j->fn = finished;
	j->arg = k;
	sync_unlock(&c->lock);
	evc__join_begin(j, c, NULL);
	if (c->loop.home != NULL)
		evc__join_enter(j);
	sync_lock(&c->lock);
}

bool
evc__scope_join_turn(evc_coord *c, const struct evc__frame *f)
{
	struct evc__scope_join *k = sync_load(&c->join.scope_join);

	if (k == NULL)
		return true;
	sync_lock(&c->lock);
	if (deliver_cleared(c, k)) {
		if (f->gone)
			return false;
		evc__scope_join_called(c);
		sync_lock(&c->lock);
	}
	if (wanted(c, k))
		begin_scope_join(c, k);
	sync_unlock(&c->lock);
	return true;
}

bool
evc__scope_join_serve(evc_coord *c, const bool *gone, uint64_t *ret_wait_ns)
{
	struct evc__scope_join *k = sync_load(&c->join.scope_join);
	evc_verdict v;

	*ret_wait_ns = SYNC_FOREVER;
	if (k == NULL || c->loop.home != NULL)
		return true;
	evc__log_errors(c);
	sync_lock(&c->lock);
	if (deliver_cleared(c, k)) {
		if (*gone)
			return false;
		evc__scope_join_called(c);
		sync_lock(&c->lock);
	}
	if (wanted(c, k)) {
		begin_scope_join(c, k);
		evc__helper_hear(c, true);
	}
	if (k->active && evc__join_look(&k->j, ret_wait_ns)) {
		evc__join_end(&k->j);
		evc__helper_hear(c, false);
		v = k->j.verdict;
		*ret_wait_ns = SYNC_FOREVER;
		sync_unlock(&c->lock);
		finished(c, &v, k);
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
	struct evc__scope_join *k = sync_load(&c->join.scope_join);

	if (k != NULL && k->ended != NULL && k->done != WORD_STOP_NUMBER(w))
		evc__verdict_now(c, w, &k->cleared);
}

void
evc__scope_join_cleared(evc_coord *c, uint32_t stop)
{
	struct evc__scope_join *k = sync_load(&c->join.scope_join);

	if (k == NULL)
		return;
	if (k->active && !k->j.answered) {
		k->j.verdict = k->cleared;
		k->j.verdict.round = stop;
		k->j.answered = true;
	} else if (!k->active && k->ended != NULL && k->done != stop) {
		k->pending = true;
		k->done = stop;
	}
	evc__scope_join_wake(c);
}

void
evc__scope_join_drop(evc_coord *c)
{
	struct evc__scope_join *k = sync_load(&c->join.scope_join);

	if (k == NULL)
		return;
	sync_lock(&c->lock);
	if (k->active && c->loop.home != NULL)
		evc__join_leave(&k->j);
	else if (k->active)
		evc__join_end(&k->j);
	k->active = false;
	sync_unlock(&c->lock);
}
