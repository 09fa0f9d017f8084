/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker does: run after run, until it hears a stop, is one too many,
 * has ended by itself or with an error.
 */
#include "group/group.h"

#include <math.h>

#include "base/reported.h"
#include "base/unwind.h"
#include "group/loggers.h"
#include "group/metrics.h"

/* ---- one run ---- */

/* Who starts workers holds the lock until all of them are there: the first ones
   wait, so that none has ended, or stopped them all, before the last one is.
   false: not all could be had, and none of them runs. */
static bool
await_others(struct evc__worker *w)
{
	evc_group *g = w->group;
	bool all;

	sync_lock(&g->lock);
	w->fresh = false;
	all = g->state == EVC_GROUP_RUNNING;
	sync_unlock(&g->lock);
	return all;
}

/* A stop above is on its way to the scope: a worker may have waited for that
   one, and hear it first. */
static bool
is_stopped(const evc_coord *c)
{
	while (c != NULL && !evc_should_stop(c))
		c = evc_scope_parent(c);
	return c != NULL;
}

/* What its result means. */
static enum evc__next
judge(struct evc__worker *w, evc_status returned, uint64_t run,
      uint64_t *ret_pause_ns)
{
	evc_group *g = w->group;
	evc_status code = evc__code_of(returned);

	if (code == 0)
		return EVC__AGAIN;
	if (evc__group_is_clean(g, code))
		return EVC__CLEAN;
	/* What it waits on may be another coordinator's than the group. */
	if (code == EVC_CANCELLED &&
	    (evc__reported.heard_stop || is_stopped(g->scope)))
		return EVC__OVER;
	return evc__worker_failed(w, returned, run, false, ret_pause_ns);
}

WALLED(evc_status, call_fn, (struct evc__worker *w),
       w->group->fn(w->group, w->id, w->group->arg))

/* *ret_pause_ns is set with EVC__LATER. */
static enum evc__next
run_once(struct evc__worker *w, uint64_t *ret_pause_ns)
{
	evc_group *g = w->group;
	uint64_t began, now;
	uint64_t run = sync_load_relaxed(&w->n_runs) + 1;
	enum evc__next next;
	evc_status st;

	if (w->fresh && !await_others(w))
		return EVC__OVER;
	(void)evc__tally_enter(w->tally);
	w->said.code = 0;
	if (w->restarts)
		sync_add(&w->n_restarts, 1);
	w->restarts = false;
	evc__reported_forget();
	evc__reported.heard_stop = false;
	began = sync_mono();
	evc__worker_set_self(w);
	/* Each by itself, for whoever looks; we alone write. */
	sync_store_relaxed(&w->n_runs, run);
	sync_store_relaxed(&w->run_began, began);
	st = call_fn(w);
	if (evc__group_inherited(g))
		return EVC__OVER;
	sync_store_relaxed(&w->run_began, 0);
	now = sync_mono();
	(void)evc__metrics_put(g->metrics, "worker_time",
			       (double)(now - began) / 1e9, true);
	/* The error before the loggers: what it stops should not wait for
	   them. */
	next = judge(w, st, run, ret_pause_ns);
	evc__loggers_run(w, now);
	evc__worker_set_self(NULL);
	(void)evc__tally_enter(NULL);
	return next;
}

/* ---- the end ---- */

/* The worker lives no more in this start of the group; the last one stops it.
   for_good: after EVC__CLEAN and EVC__OVER; else at a stop, or because it was
   to be retired, and false says that neither holds any more: it goes on. */
static bool
ended(struct evc__worker *w, bool for_good)
{
	evc_group *g = w->group;
	bool last;

	sync_lock(&g->lock);
	if (!for_good && !sync_load_relaxed(&w->retire) &&
	    !evc_should_stop(g->scope)) {
		sync_unlock(&g->lock);
		return false;
	}
	w->live = false;
	w->done = for_good;
	w->member = 0;
	g->n_live--;
	last = g->n_live == 0 && g->state == EVC_GROUP_RUNNING;
	/* Under the lock, so that nobody adds a worker to a group that is about
	   to stop; it takes no lock itself.  Also when what is above has been
	   stopped: that may be cleared before the hook was called. */
	if (last)
		(void)evc_request_stop_at(g->scope, 0,
					  "the last worker has ended", NULL,
					  0, NULL);
	evc__group_changed(g);
	sync_unlock(&g->lock);
	return true;
}

/* pthread_exit or cancellation: its thread goes, inside a run or between two. */
static void
lost(void *arg)
{
	struct evc__worker *w = arg;
	uint64_t pause;

	sync_unwound();
	if (evc__group_inherited(w->group))
		return;
	sync_store_relaxed(&w->run_began, 0);
	if (!evc_should_stop(w->group->scope))
		(void)evc__worker_failed(w, EVC_ABORTED,
					 sync_load_relaxed(&w->n_runs), true,
					 &pause);
	(void)ended(w, true);
	evc__worker_set_self(NULL);
	(void)evc__tally_enter(NULL);
}

/* ---- between two runs ---- */

static bool
may_go_on(void *arg)
{
	const struct evc__worker *w = arg;

	return sync_load_relaxed(&w->retire) ||
	       !sync_load_relaxed(&w->group->paused);
}

static bool
is_retired(void *arg)
{
	const struct evc__worker *w = arg;

	return sync_load_relaxed(&w->retire);
}

/* Wait, while it is paused or, for is_retired, that long; not through a stop. */
static void
rest(struct evc__worker *w, bool (*is_over)(void *arg), double seconds)
{
	evc_group *g = w->group;

	sync_lock(&g->lock);
	(void)evc_cond_wait(g->cond, &g->lock, is_over, w, seconds);
	sync_unlock(&g->lock);
}

/* false: it has ended. */
static bool
next_run(struct evc__worker *w)
{
	evc_group *g = w->group;

	for (;;) {
		/* Only hints: what they are about is looked at under the
		   lock. */
		if ((evc_should_stop(g->scope) ||
		     sync_load_relaxed(&w->retire)) &&
		    ended(w, false))
			return false;
		if (!sync_load_relaxed(&g->paused))
			return true;
		rest(w, may_go_on, INFINITY);
	}
}

static void
begin_again(struct evc__worker *w, uint64_t pause_ns)
{
	evc_group *g = w->group;

	rest(w, is_retired, (double)pause_ns / 1e9);
	sync_lock(&g->lock);
	evc__restart_began(&w->restart, sync_mono());
	sync_unlock(&g->lock);
}

static void
work(struct evc__worker *w)
{
	uint64_t pause_ns = 0;

	while (next_run(w)) {
		switch (run_once(w, &pause_ns)) {
		case EVC__AGAIN:
			continue;
		case EVC__LATER:
			begin_again(w, pause_ns);
			continue;
		case EVC__CLEAN:
		case EVC__OVER:
			if (!evc__group_inherited(w->group))
				(void)ended(w, true);
			return;
		}
	}
}

evc_status
evc__worker_main(evc_coord *scope, void *worker)
{
	struct evc__worker *w = worker;
	int old;

	(void)scope;
	pthread_cleanup_push(lost, w);
	work(w);
	/* It is counted out. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cleanup_pop(0);
	return 0;
}
