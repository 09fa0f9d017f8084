/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number of a group's workers, and whether they go on: resize, pause,
 * resume.  Of all workers ever made, in the order of their ids, the first
 * n_threads are wanted; the others are retired, and come back in the same
 * order.
 * Called by: the program (evc_group_resize, _pause, _resume).
 * Locks: the registry's, then the group's; retire and paused are atomic.
 */
#include "group/group.h"

/* Take the group's lock when no thread starts the group.  A thread inside a
   function of a group, and a log hook of the start, do not wait: the start
   waits for these threads. */
static void
lock_started(evc_group *g)
{
	bool waits = evc__inside_of() == NULL && !evc__starts(g->reg);

	sync_lock(&g->lock);
	while (waits && g->state == EVC_GROUP_STARTING) {
		sync_unlock(&g->lock);
		evc__worker_waits(true);
		sync_lock(&g->lock);
		while (g->state == EVC_GROUP_STARTING)
			(void)evc__group_wait(g, SYNC_FOREVER);
		sync_unlock(&g->lock);
		evc__worker_waits(false);
		sync_lock(&g->lock);
	}
}

/* ---- resize ---- */

/* Lock held: workers that wait between two runs look again. */
static void
wake_workers(evc_group *g)
{
	evc_cond_broadcast(g->cond);
	evc__group_changed(g);
}

/* Lock held. */
static void
retire_workers(evc_group *g, unsigned first, unsigned end, bool yes)
{
	unsigned i;

	for (i = first; i < end; i++)
		sync_store(&g->worker[i]->retire, yes);
}

/* Lock held: threads for all workers from first on, up to end, or for none.
   Each starts as retired, so none runs before all are there: an end would need
   the lock, and when the lock is free the worker is retired no more. */
static evc_status
call_in(evc_group *g, unsigned first, unsigned end)
{
	evc_status st = 0;
	unsigned i;

	retire_workers(g, first, end, true);
	for (i = first; st == 0 && i < end; i++) {
		struct evc__worker *w = g->worker[i];

		if (!w->live && !w->done)
			st = evc__worker_spawn(g, w);
	}
	if (st == 0)
		retire_workers(g, first, end, false);
	return st;
}

static evc_status
is_stopping(const evc_group *g, const char *func)
{
	return evc_refuse(-EVC_FAILED_PRECONDITION,
			  "%s: %s is being started or stopped", func, g->name);
}

/* Lock held. */
static evc_status
resize_group(evc_group *g, unsigned n, const char *func)
{
	bool runs = g->state == EVC_GROUP_RUNNING;
	evc_status st = 0;

	if (g->state == EVC_GROUP_STOPPING || g->state == EVC_GROUP_STARTING ||
	    (runs && evc_should_stop(g->scope)))
		return is_stopping(g, func);
	if (!evc__group_make(g, n))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "%s: no memory for %u workers", func, n);
	if (n < g->n_threads)
		retire_workers(g, n, g->n_threads, true);
	else if (runs)
		st = call_in(g, g->n_threads, n);
	else
		retire_workers(g, g->n_threads, n, false);
	/* On failure the workers that have come leave again. */
	if (st == 0)
		g->n_threads = n;
	wake_workers(g);
	/* A stop that has just been asked for. */
	return st == -EVC_CANCELLED ? is_stopping(g, func) : st;
}

evc_status
evc_group_resize(evc_group *group, unsigned n_threads)
{
	evc_status st = evc__group_check(group, __func__);

	if (st < 0)
		return st;
	if (n_threads == 0 || n_threads > EVC__WORKERS_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: %u workers, not 1 to %d", __func__,
				  n_threads, EVC__WORKERS_MOST);
	st = evc__not_inside(__func__);
	if (st < 0)
		return st;
	lock_started(group);
	st = resize_group(group, n_threads, __func__);
	sync_unlock(&group->lock);
	return st;
}

/* ---- pause ---- */

static evc_status
pause_or_resume(evc_group *g, bool paused, const char *func)
{
	evc_status st = evc__group_check(g, func);

	if (st < 0)
		return st;
	lock_started(g);
	if (g->state != EVC_GROUP_RUNNING || evc_should_stop(g->scope))
		st = evc_refuse(-EVC_FAILED_PRECONDITION, "%s: %s does not run",
				func, g->name);
	else if (sync_load(&g->paused) != paused) {
		sync_store(&g->paused, paused);
		wake_workers(g);
	}
	sync_unlock(&g->lock);
	return st;
}

evc_status
evc_group_pause(evc_group *group)
{
	return pause_or_resume(group, true, __func__);
}

evc_status
evc_group_resume(evc_group *group)
{
	return pause_or_resume(group, false, __func__);
}
