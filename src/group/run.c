/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker's life: run after run, until the worker hears a stop, is retired, or
 * has ended by itself or with an error.
 * Called by: start.c starts threads with evc__worker_main.
 * Locks: the group's, taken; retire, paused, n_runs and run_began are atomic.
 */
#include "group/group.h"

#include <math.h>

#include "base/self.h"
#include "base/unwind.h"
#include "group/metrics.h"

/* ---- one run ---- */

/* The start holds the lock until all workers are there.  The first workers wait
   here, so none ends, or stops the group, before the last is there.  false: the
   start has failed, and no worker runs. */
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

/* A stop above is on its way to the scope: a worker may have waited for the
   stop above, and hear the stop first. */
static bool
is_stopped(const evc_coord *c)
{
	while (c != NULL && !evc_should_stop(c))
		c = evc_scope_parent(c);
	return c != NULL;
}

/* The meaning of a run's result. */
static enum evc__next
judge_run(struct evc__worker *w, evc_status returned, uint64_t run,
	  uint64_t *ret_pause_ns)
{
	evc_group *g = w->group;
	evc_status code = evc__code_of(returned);

	if (code == 0)
		return EVC__AGAIN;
	if (evc__group_is_clean(g, code))
		return EVC__CLEAN;
	/* The worker may wait on another coordinator than the group's. */
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
	/* Readers take each value by itself; this thread is the only writer. */
	sync_store_relaxed(&w->n_runs, run);
	sync_store_relaxed(&w->run_began, began);
	st = call_fn(w);
	if (evc__group_inherited(g))
		return EVC__OVER;
	sync_store_relaxed(&w->run_began, 0);
	now = sync_mono();
	(void)evc__metrics_put(g->metrics, "worker_time",
			       (double)(now - began) / 1e9, true);
	/* The error before the loggers: a stop should not wait for loggers. */
	next = judge_run(w, st, run, ret_pause_ns);
	evc__loggers_run(w, now);
	evc__worker_set_self(NULL);
	(void)evc__tally_enter(NULL);
	return next;
}

/* ---- the end ---- */

/* The worker lives no more in this start of the group; the last worker stops
   the group.  for_good: after EVC__CLEAN and EVC__OVER.  Otherwise at a stop
   or for a retired worker; false: neither holds any more, and the worker
   goes on. */
static bool
worker_ended(struct evc__worker *w, bool for_good)
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
	/* Under the lock, so no thread adds a worker to a group that is about
	   to stop; the request takes no lock of ours.  Also after a stop above,
	   which may be cleared before the hook is called. */
	if (last)
		(void)evc_request_stop_at(g->scope, 0,
					  "the last worker has ended", NULL,
					  0, NULL);
	evc__group_changed(g);
	sync_unlock(&g->lock);
	return true;
}

/* pthread_exit or cancellation: the thread ends, inside a run or between
   two. */
static void
worker_lost(void *arg)
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
	(void)worker_ended(w, true);
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

/* Wait while the group is paused or, for is_retired, this long; a stop ends the
   wait. */
static void
rest_worker(struct evc__worker *w, bool (*is_over)(void *arg), double seconds)
{
	evc_group *g = w->group;

	sync_lock(&g->lock);
	(void)evc_cond_wait(g->cond, &g->lock, is_over, w, seconds);
	sync_unlock(&g->lock);
}

/* false: the worker has ended. */
static bool
next_run(struct evc__worker *w)
{
	evc_group *g = w->group;

	for (;;) {
		/* Hints only: worker_ended() looks again under the lock. */
		if ((evc_should_stop(g->scope) ||
		     sync_load_relaxed(&w->retire)) &&
		    worker_ended(w, false))
			return false;
		if (!sync_load_relaxed(&g->paused))
			return true;
		rest_worker(w, may_go_on, INFINITY);
	}
}

static void
begin_again(struct evc__worker *w, uint64_t pause_ns)
{
	evc_group *g = w->group;

	rest_worker(w, is_retired, (double)pause_ns / 1e9);
	sync_lock(&g->lock);
	evc__restart_began(&w->restart, sync_mono());
	sync_unlock(&g->lock);
}

static void
run_worker(struct evc__worker *w)
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
				(void)worker_ended(w, true);
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
	pthread_cleanup_push(worker_lost, w);
	run_worker(w);
	/* The worker is counted out. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cleanup_pop(0);
	return 0;
}
