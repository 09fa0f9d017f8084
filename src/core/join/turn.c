/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The turn of a loop for one coordinator: do all due work of its hooks,
 * runners, tasks, loopers and joins, by the word and the lists.
 *
 * Called by: loop/loop_waker.c, through the table struct evc__upper.
 * Locks: none held; each part takes the coordinator's.
 */
#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/join/join.h"

static bool
loopers_turn(evc_reactor *r, const struct evc__frame *f, bool stopped)
{
	const struct evc__looper_ops *ops;

	/* Another thread may be adding the first looper. */
	sync_lock(&r->c->lock);
	ops = r->looper_ops;
	sync_unlock(&r->c->lock);
	if (ops == NULL)
		return true;
	if (stopped && !ops->stop(r, f))
		return false;
	ops->turn(r);
	return true;
}

static bool
same_stop(const evc_coord *c, uint64_t w)
{
	uint64_t now = sync_load(&c->word);

	return (now & WORD_FLAG) && WORD_STOPS(now) == WORD_STOPS(w);
}

static bool
run_turn(evc_reactor *r)
{
	struct evc__frame f = { r->frames, false };
	evc_coord *c = r->c;
	bool stopped;
	uint64_t w;

	r->frames = &f;
	w = evc__reactor_heard(r);
	evc__log_errors(c);
	evc__hooks_run(c, r);
	/* After a hook has forked, r is gone in the child. */
	if (!f.gone)
		evc__runners_turn(c, r);
	if (f.gone)
		return false;
	/* A stop that came after the load of w has rung: the next turn serves
	   this stop. */
	stopped = (w & WORD_FLAG) && same_stop(c, w);
	if (stopped && r->task_ops != NULL &&
	    (!r->task_ops->tell(r, &f) || !r->task_ops->describe(r, &f)))
		return false;
	if (!loopers_turn(r, &f, stopped))
		return false;
	if (r == evc__home(c) && !evc__scope_join_turn(c, &f))
		return false;
	if (!evc__joins_turn(r, &f))
		return false;
	evc__driver_turn(r);
	r->frames = f.up;
	return true;
}

bool
evc__turn(evc_reactor *r)
{
	struct evc__busy busy;
	bool stays;

	evc__busy_begin(r, r->c, BUSY_TURN, NULL, &busy);
	stays = run_turn(r);
	evc__busy_end(&busy);
	return stays;
}
