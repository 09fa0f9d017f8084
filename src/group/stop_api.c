/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_registry_stop, _stop_name, evc_group_stop and _wait_finish: tell all
 * groups, shut them down in turn, wait for all, in one budget.  And exit(3)
 * while groups of the process's registry run: the thread that exits stops the
 * groups.  This may be any thread: a worker in a run, a thread in a function of
 * a group, a thread that starts or stops groups.  The stop waits neither for
 * this thread nor for its unfinished calls.
 * Each wait ends with the stop of the coordinator above, too.  exit(3) does not
 * wait again for a stop that another call has given up.
 * Called by: the program; exit(3); init.c registers for it.
 * Locks: the registry's, then the group's, both taken; off, over and registered
 * are atomic.
 */
#include "group/group.h"

#include "base/reserved.h"
#include "base/text.h"

/* The first error since the groups were started, or 0. */
static evc_status
first_error(const struct evc__held *h, const char *func)
{
	evc_reason r, first = { .code = 0 };
	unsigned i;

	for (i = 0; i < h->n; i++)
		if (evc_raise_requested(h->group[i].g->scope, &r) > 0 &&
		    (first.code == 0 || r.mono_ns < first.mono_ns))
			first = r;
	if (first.code == 0)
		return 0;
	return evc_refuse(first.code, "%s: %s: %s", func, first.who,
			  first.text);
}

/* Wait for starts, tell the groups to stop, shut them down, wait for them; text
   says why. */
static evc_status
stop_held(struct evc__held *h, const char *text, uint64_t until_ns,
	  bool exiting, const char *func)
{
	evc_status st;
	bool in_time;
	unsigned i;

	/* All claims under one lock, with no start in between: so a start comes
	   before this stop or after. */
	evc__worker_waits(true);
	sync_lock(&h->reg->lock);
	in_time = evc__start_awaited(h, until_ns);
	for (i = 0; i < h->n; i++)
		evc__group_claim(&h->group[i], false, text);
	sync_unlock(&h->reg->lock);
	evc__worker_waits(false);
	for (i = 0; i < h->n; i++)
		if (h->group[i].ours)
			evc__group_tell(&h->group[i], text);
	for (i = 0; i < h->n; i++)
		if (h->group[i].ours)
			evc__group_shut_down(h->group[i].g, until_ns);
	st = evc__groups_await(h, until_ns, exiting, func);
	/* Groups that ran already were stopped all the same. */
	if (st == 0 && !in_time)
		st = evc_refuse(EVC_DEADLINE_EXCEEDED,
				"%s: another thread is still starting groups",
				func);
	return st == 0 ? first_error(h, func) : st;
}

/* When is the budget over? */
static evc_status
budget_end(const evc_registry *reg, const evc_join_opts *o, const char *func,
	   uint64_t *ret_until)
{
	double grace = o != NULL ? o->grace : 0;
	evc_status st = evc__grace_check(grace, func);

	if (st < 0)
		return st;
	if (o != NULL && (o->reactor != NULL || o->threads != NULL ||
			  o->n_threads != 0 || o->flags != 0))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: only grace may be set", func);
	if (o != NULL && !RESERVED_IS_ZERO(o->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: reserved room is not 0", func);
	*ret_until = grace == 0 ? evc__registry_until(reg) :
				  evc__deadline_in(grace);
	return 0;
}

static evc_status
stop_groups(evc_registry *reg, const char *name, const evc_join_opts *o,
	    const char *func)
{
	evc_status st = evc__registry_check(&reg, func);
	uint64_t until = 0;
	struct evc__held h;

	if (st == 0)
		st = evc__not_inside(func);
	if (st == 0)
		st = budget_end(reg, o, func, &until);
	if (st == 0)
		st = evc__groups_hold(reg, name, &h, func);
	if (st < 0)
		return st;
	if (h.n > 0)
		st = stop_held(&h, func, until, false, func);
	else if (name != NULL)
		st = evc_refuse(-EVC_NOT_FOUND, "%s: no group named %s", func,
				name);
	evc__groups_release(&h);
	return st;
}

evc_status
evc_registry_stop(evc_registry *reg, const evc_join_opts *opts)
{
	return stop_groups(reg, NULL, opts, __func__);
}

evc_status
evc_registry_stop_name(evc_registry *reg, const char *name,
		       const evc_join_opts *opts)
{
	if (name == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no name",
				  __func__);
	return stop_groups(reg, name, opts, __func__);
}

evc_status
evc_group_stop(evc_group *group, const evc_join_opts *opts)
{
	evc_status st = evc__group_check(group, __func__);
	uint64_t until = 0;
	struct evc__held h;

	if (st == 0)
		st = evc__not_inside(__func__);
	if (st == 0)
		st = budget_end(group->reg, opts, __func__, &until);
	if (st < 0)
		return st;
	evc__group_hold(group, &h);
	st = stop_held(&h, __func__, until, false, __func__);
	evc__groups_release(&h);
	return st;
}

static void
refuse_late(evc_group *g, const char *func)
{
	char buf[400];
	struct text names = evc__text_in(buf, sizeof buf);

	sync_lock(&g->lock);
	(void)evc__group_names(g, &names, evc__whom());
	sync_unlock(&g->lock);
	(void)evc_refuse(-EVC_DEADLINE_EXCEEDED, "%s: still running: %s", func,
			 buf);
}

bool
evc_group_wait_finish(evc_group *group, double timeout)
{
	uint64_t until = evc__deadline_in(timeout);
	struct evc__held h;
	unsigned life;
	bool ended;

	if (evc__group_check(group, __func__) < 0 ||
	    (timeout > 0 &&
	     evc_may_wait(evc_scope_parent(group->scope), __func__) < 0))
		return false;
	evc__group_hold(group, &h);
	sync_lock(&group->lock);
	life = group->life;
	sync_unlock(&group->lock);
	evc__worker_waits(true);
	ended = evc__group_wait_for(group, life, evc__whom(), until);
	(void)evc__group_settle(group, until);
	ended = evc__group_calls_over(group, life, until) && ended;
	if (!ended)
		refuse_late(group, __func__);
	evc__worker_waits(false);
	evc__groups_release(&h);
	return ended;
}

/* ---- exit(3) ---- */

/* atomic: evc_registry_atexit -> the thread that exits */
static _Atomic bool off;
/* atomic: between threads that exit: the stop has begun */
static _Atomic bool over;
/* atomic: between makers of groups; after a failure the next group tries
   again */
static _Atomic bool registered;

/* The end of the longest of these stops; a stop that was given up has none. */
static uint64_t
stops_end(const struct evc__held *h)
{
	double most = 0, left;
	unsigned i;
	bool rests;

	for (i = 0; i < h->n; i++) {
		evc_group *g = h->group[i].g;

		sync_lock(&g->lock);
		rests = evc__group_rests(g);
		sync_unlock(&g->lock);
		left = rests ? 0 : evc_stop_left(g->scope);
		most = left > most ? left : most;
	}
	return evc__deadline_in(most);
}

static void
at_exit(void)
{
	uint64_t until, end;
	evc_registry *reg = NULL;
	struct evc__held h;

	/* In a fork child the groups belong to the parent. */
	if (sync_load(&off) || sync_xchg(&over, true) ||
	    evc__registry_check(&reg, "exit") < 0)
		return;
	evc__inside_forget();
	if (evc__groups_hold(reg, NULL, &h, "exit") < 0)
		return;
	until = evc__registry_until(reg);
	end = stops_end(&h);
	(void)stop_held(&h, "exit", end < until ? end : until, true, "exit");
	evc__groups_release(&h);
}

void
evc__atexit_register(void)
{
	if (!sync_xchg(&registered, true) && atexit(at_exit) != 0)
		sync_store(&registered, false);
}

evc_status
evc_registry_atexit(bool on)
{
	sync_store(&off, !on);
	return 0;
}
