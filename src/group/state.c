/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a group: changes are told and awaited here; and what others see
 * of the group and its workers.
 * Called by: the program (evc_group_get, _is_active, _worker_get, _error_get,
 * _ids, _scope, _registry); all files of the room.
 * Locks: the public functions take the group's lock, the others need the lock
 * held; changed is atomic.
 */
#include "group/group.h"

#include <math.h>

#include "base/text.h"

evc_status
evc__group_check(const evc_group *g, const char *func)
{
	if (g == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no group", func);
	if (!evc__group_inherited(g))
		return 0;
	return evc_refuse(-EVC_FAILED_PRECONDITION,
			  "%s: %s is another process's, a fork ago", func,
			  g->name);
}

/* ---- changes ---- */

void
evc__group_changed(evc_group *g)
{
	sync_add(&g->changed, 1);
	sync_futex_wake(&g->changed);
}

double
evc__group_left(const evc_group *g)
{
	evc_coord *above = evc_scope_parent(g->scope);

	return evc_should_stop(above) ? evc_stop_left(above) : INFINITY;
}

bool
evc__group_wait(evc_group *g, uint64_t until_ns)
{
	return evc__await_change(&g->lock, &g->changed,
				 evc__deadline_look(until_ns,
						    evc__group_left(g)));
}

bool
evc__group_rests(const evc_group *g)
{
	return g->state == EVC_GROUP_NEW || g->state == EVC_GROUP_STOPPED;
}

/* ---- what others see ---- */

bool
evc_group_is_active(const evc_group *group)
{
	return group != NULL && !evc_should_stop(group->scope);
}

evc_coord *
evc_group_scope(const evc_group *group)
{
	return group != NULL ? group->scope : NULL;
}

evc_registry *
evc_group_registry(const evc_group *group)
{
	return group != NULL ? group->reg : NULL;
}

/* Lock held. */
static void
count_workers(const evc_group *g, evc_group_info *i)
{
	unsigned n;

	for (n = 0; n < g->n_workers; n++) {
		const struct evc__worker *w = g->worker[n];

		i->n_runs += sync_load_relaxed(&w->n_runs);
		i->n_restarts += sync_load_relaxed(&w->n_restarts);
	}
}

static unsigned
state_of(const evc_group *g)
{
	if (g->state != EVC_GROUP_RUNNING)
		return g->state;
	/* As evc_group_is_active: the hook is due. */
	if (evc_should_stop(g->scope))
		return EVC_GROUP_STOPPING;
	return sync_load(&g->paused) ? EVC_GROUP_PAUSED : EVC_GROUP_RUNNING;
}

/* Lock held: why the group stopped last, or stops. */
static evc_reason
stop_of(const evc_group *g)
{
	evc_reason r = g->stop, now;

	/* The stop is asked for, and the hook is due; the stop may have been
	   taken back since. */
	if (g->state == EVC_GROUP_RUNNING && evc_should_stop(g->scope) &&
	    evc_reason_get(g->scope, 0, &now) == 0)
		r = now;
	return r;
}

static evc_status
no_place(const char *func)
{
	return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no place for the result",
			  func);
}

evc_status
evc_group_get(const evc_group *group, evc_group_info *ret_info)
{
	evc_group *g = (evc_group *)group;
	evc_status st = evc__group_check(g, __func__);

	if (st < 0)
		return st;
	if (ret_info == NULL)
		return no_place(__func__);
	memset(ret_info, 0, sizeof *ret_info);
	sync_lock(&g->lock);
	evc__copy(ret_info->name, sizeof ret_info->name, g->name);
	ret_info->state = state_of(g);
	ret_info->n_threads = g->n_threads;
	ret_info->n_live = g->n_live;
	ret_info->n_starts = g->n_starts;
	ret_info->n_errors = g->n_errors;
	ret_info->stop = stop_of(g);
	count_workers(g, ret_info);
	sync_unlock(&g->lock);
	return 0;
}

/* Lock held. */
static void
describe_worker(const struct evc__worker *w, evc_worker_info *i)
{
	uint64_t began = sync_load_relaxed(&w->run_began);
	uint64_t now = sync_mono();

	i->id = w->id;
	i->live = w->live;
	i->retired = sync_load_relaxed(&w->retire);
	i->running = began != 0;
	/* The run may have begun after our look at the clock. */
	i->run_time = began != 0 && now > began ? (double)(now - began) / 1e9 :
						  0;
	i->n_runs = sync_load_relaxed(&w->n_runs);
	i->n_errors = sync_load_relaxed(&w->n_errors);
	i->n_restarts = sync_load_relaxed(&w->n_restarts);
}

evc_status
evc_group_worker_get(const evc_group *group, unsigned index,
		     evc_worker_info *ret_info)
{
	evc_group *g = (evc_group *)group;
	evc_status st = evc__group_check(g, __func__);

	if (st < 0)
		return st;
	sync_lock(&g->lock);
	if (index >= g->n_workers)
		st = evc_refuse(-EVC_NOT_FOUND, "%s: %s has %u workers",
				__func__, g->name, g->n_workers);
	else if (ret_info != NULL) {
		memset(ret_info, 0, sizeof *ret_info);
		describe_worker(g->worker[index], ret_info);
	}
	sync_unlock(&g->lock);
	return st;
}

evc_status
evc_group_error_get(const evc_group *group, unsigned index,
		    evc_worker_error *ret_error)
{
	evc_group *g = (evc_group *)group;
	evc_status st = evc__group_check(g, __func__);
	uint64_t oldest;

	if (st < 0)
		return st;
	sync_lock(&g->lock);
	oldest = g->n_errors > EVC__ERRORS_KEPT ?
			 g->n_errors - EVC__ERRORS_KEPT :
			 0;
	if (index >= g->n_errors - oldest || g->error == NULL)
		st = evc_refuse(-EVC_NOT_FOUND, "%s: %s has no error %u",
				__func__, g->name, index);
	else if (ret_error != NULL)
		*ret_error = g->error[(oldest + index) % EVC__ERRORS_KEPT];
	sync_unlock(&g->lock);
	return st;
}

size_t
evc_group_ids(const evc_group *group, unsigned *ids, size_t n)
{
	evc_group *g = (evc_group *)group;
	size_t i, have;

	if (evc__group_check(g, __func__) < 0)
		return 0;
	sync_lock(&g->lock);
	have = g->n_threads < g->n_workers ? g->n_threads : g->n_workers;
	for (i = 0; ids != NULL && i < n && i < have; i++)
		ids[i] = g->worker[i]->id;
	sync_unlock(&g->lock);
	return have;
}
