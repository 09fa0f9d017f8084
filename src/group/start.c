/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of groups: init of each in turn, then state.start and the workers
 * of each; after a failure all begun steps are taken back in reverse.  One
 * thread at a time starts groups of a registry.  Meanwhile this thread holds no
 * lock, only the mark `starting`, and waits for no worker before it gives up
 * the mark: so workers may wait for the start.
 * Called by: the program (evc_group_start, evc_registry_start); resize.c
 * spawns; stop_api.c waits for starts.
 * Locks: the registry's, then the group's; retire, paused and stops_of_all are
 * atomic.
 */
#include "group/group.h"

#include "base/self.h"
#include "base/text.h"
#include "base/unwind.h"

/* ---- one at a time ---- */

bool
evc__start_awaited(const struct evc__held *h, uint64_t until_ns)
{
	evc_registry *reg = h->reg;

	while (reg->starting && reg->starter != evc__tid())
		if (!evc__await_change(&reg->lock, &reg->changed,
				       evc__deadline_look(until_ns,
							  evc__held_left(h))))
			return false;
	return true;
}

bool
evc__starts(evc_registry *reg)
{
	bool ours;

	sync_lock(&reg->lock);
	ours = reg->starting && reg->starter == evc__tid();
	sync_unlock(&reg->lock);
	return ours;
}

static evc_status
begin_start(const struct evc__held *h, const char *func)
{
	evc_registry *reg = h->reg;
	bool in_time, again;

	sync_lock(&reg->lock);
	in_time = evc__start_awaited(h, SYNC_FOREVER);
	/* true in a log hook that the start calls, and when the time is over */
	again = reg->starting;
	if (!again) {
		reg->starting = true;
		reg->starter = evc__tid();
	}
	sync_unlock(&reg->lock);
	if (!again)
		return 0;
	return evc_refuse(in_time ? -EVC_FAILED_PRECONDITION :
				    -EVC_DEADLINE_EXCEEDED,
			  "%s: %s thread starts groups", func,
			  in_time ? "this" : "another");
}

static void
end_start(evc_registry *reg)
{
	sync_lock(&reg->lock);
	reg->starting = false;
	sync_add(&reg->changed, 1);
	sync_unlock(&reg->lock);
	sync_futex_wake(&reg->changed);
}

/* ---- the choice of groups ---- */

/* Lock held: only a stop of the group works on the group. */
static void
to_rest(evc_group *g)
{
	g->state = g->n_starts > 0 ? EVC_GROUP_STOPPED : EVC_GROUP_NEW;
	evc__group_changed(g);
}

/* Is the group to be started by us?  *ret_ours false: the group runs. */
static evc_status
choose_group(evc_group *g, uint64_t until, const char *func, bool *ret_ours)
{
	char names[160];
	struct text t = evc__text_in(names, sizeof names);
	unsigned live, state;
	bool joined;

	*ret_ours = false;
	sync_lock(&g->lock);
	state = g->state;
	live = g->n_live;
	(void)evc__group_names(g, &t, EVC__EVERYBODY);
	sync_unlock(&g->lock);
	if (state == EVC_GROUP_RUNNING && !evc_should_stop(g->scope))
		return 0;
	if (live > 0)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: workers of the last start of %s live "
				  "still: %s",
				  func, g->name, names);
	/* Another thread may be about to finish the stop. */
	if (!evc__group_settle(g, until))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: %s is being stopped", func, g->name);
	if (evc_should_stop(evc_scope_parent(g->scope)))
		return evc_refuse(-EVC_CANCELLED,
				  "%s: the coordinator above %s is stopped",
				  func, g->name);
	sync_lock(&g->lock);
	/* Joins of the last stop are over, but may not have returned. */
	while (g->n_joining > 0 && evc__group_wait(g, until))
		continue;
	joined = g->n_joining == 0;
	/* A group freed since our hold is no group of the registry. */
	*ret_ours = joined && !g->doomed;
	if (*ret_ours) {
		g->state = EVC_GROUP_STARTING;
		g->life++;
	}
	sync_unlock(&g->lock);
	return joined ? 0 :
			evc_refuse(-EVC_FAILED_PRECONDITION,
				   "%s: the stop of %s is not over", func,
				   g->name);
}

/* ---- one group ---- */

static evc_status
start_failed(evc_group *g, evc_status st, const char *what, const char *func)
{
	evc_log(g->scope, EVC_LOG_ERROR, NULL, "not started: %s returned %s",
		what, evc_status_name(st));
	return evc_refuse(st, "%s: %s of %s returned %s", func, what, g->name,
			  evc_status_name(st));
}

WALLED(evc_status, call_init, (evc_group * g), g->opts.init(g, g->reg, g->arg))
WALLED(evc_status, call_start, (evc_group * g),
       g->opts.state.start(g->opts.state.arg))

static evc_status
init_group(evc_group *g, const char *func)
{
	evc_group *was;
	evc_status st = 0;

	if (g->opts.init != NULL) {
		was = evc__inside_begin(g);
		st = evc__code_of(call_init(g));
		evc__inside_end(g, was);
	}
	if (st != 0)
		return start_failed(g, st, "init", func);
	sync_lock(&g->lock);
	g->init_done = true;
	sync_unlock(&g->lock);
	return 0;
}

static evc_status
start_state(evc_group *g, const char *func)
{
	evc_group *was;
	evc_status st = 0;

	if (g->opts.state.start != NULL) {
		was = evc__inside_begin(g);
		st = evc__code_of(call_start(g));
		evc__inside_end(g, was);
	}
	if (st != 0)
		return start_failed(g, st, "state.start", func);
	sync_lock(&g->lock);
	g->state_begun = true;
	g->cleanup_due = true;
	sync_unlock(&g->lock);
	return 0;
}

/* Take the scope's stop back.  all: how many errors had stopped all groups when
   the start began. */
static evc_status
open_scope(evc_group *g, uint32_t all, const char *func)
{
	evc_status st;

	/* Threads of the last start may still be on their way out. */
	(void)evc__group_tails(g);
	st = g->cond == NULL ? evc_cond_new(g->scope, &g->cond) : 0;
	if (st == 0)
		st = evc_clear_stop(g->scope);
	if (st < 0)
		return st;
	if (evc_should_stop(g->scope))
		return evc_refuse(-EVC_CANCELLED, "%s: %s was stopped "
						  "meanwhile",
				  func, g->name);
	if (sync_load(&g->reg->stops_of_all) != all)
		return evc_refuse(-EVC_CANCELLED,
				  "%s: an error of another group has stopped "
				  "all",
				  func);
	return 0;
}

static void
unblock_worker(void *arg)
{
	const struct evc__worker *w = arg;

	w->group->opts.member.unblock(w->group->arg);
}

evc_status
evc__worker_spawn(evc_group *g, struct evc__worker *w)
{
	evc_member_opts o = g->opts.member;
	evc_status st;

	if (o.unblock != NULL)
		o.unblock = unblock_worker;
	w->live = true;
	w->fresh = true;
	w->done = false;
	w->restarts = false;
	w->restart = (struct evc__restart_own){ 0 };
	g->n_live++;
	st = evc_thread_start(g->scope, w->name, evc__worker_main, w, &o,
			      &w->member);
	if (st < 0) {
		w->live = false;
		g->n_live--;
	}
	return st;
}

/* All under the lock: no worker ends before the last worker is there, so none
   takes itself for the last.  *ret_asked: a stop came in STARTING, when the
   hook had nothing to do; a later stop is the hook's. */
static evc_status
spawn_all(evc_group *g, bool *ret_asked)
{
	evc_status st = 0;
	unsigned i;

	sync_lock(&g->lock);
	g->n_starts++;
	evc__restart_forget(&g->restarts);
	sync_store(&g->paused, false);
	for (i = 0; i < g->n_workers; i++) {
		g->worker[i]->done = false;
		sync_store(&g->worker[i]->retire, i >= g->n_threads);
	}
	for (i = 0; st == 0 && i < g->n_threads; i++)
		st = evc__worker_spawn(g, g->worker[i]);
	if (st == 0) {
		g->state = EVC_GROUP_RUNNING;
		evc__group_changed(g);
	}
	*ret_asked = evc_should_stop(g->scope);
	sync_unlock(&g->lock);
	return st;
}

static evc_status
start_group(evc_group *g, uint32_t all, const char *func)
{
	evc_status st = open_scope(g, all, func);
	bool asked = false;

	if (st == 0)
		st = start_state(g, func);
	if (st == 0)
		st = spawn_all(g, &asked);
	if (st == 0 && asked)
		(void)evc__group_on_stop(g->scope, g);
	return st;
}

/* ---- all of them ---- */

static void
reverse_groups(struct evc__held *h)
{
	unsigned i;

	for (i = 0; i < h->n / 2; i++) {
		struct evc__held_group g = h->group[i];

		h->group[i] = h->group[h->n - 1 - i];
		h->group[h->n - 1 - i] = g;
	}
}

/* Shut down the groups that are ours, the last first, and give up the start. */
static void
take_back_start(struct evc__held *h, const char *why, const char *func)
{
	uint64_t until = evc__registry_until(h->reg);
	char text[192];
	struct text t = evc__text_in(text, sizeof text);
	unsigned i;

	evc__text_fmt(&t, "taken back: %s", why);
	reverse_groups(h);
	for (i = 0; i < h->n; i++) {
		evc_group *g = h->group[i].g;

		if (!h->group[i].ours)
			continue;
		sync_lock(&g->lock);
		if (g->state == EVC_GROUP_STARTING && !g->init_done) {
			to_rest(g);
			h->group[i].ours = false;
		}
		sync_unlock(&g->lock);
		if (!h->group[i].ours)
			continue;
		evc__group_claim(&h->group[i], true, text);
		if (h->group[i].ours)
			evc__group_tell(&h->group[i], text);
	}
	for (i = 0; i < h->n; i++)
		if (h->group[i].ours)
			evc__group_shut_down(h->group[i].g, until);
	end_start(h->reg);
	(void)evc__groups_await(h, until, false, func);
}

/* *ret_last: the group of the last step. */
static evc_status
start_all(struct evc__held *h, uint32_t all, uint64_t until, const char *func,
	  evc_group **ret_last)
{
	evc_status st = 0;
	unsigned i;

	for (i = 0; st == 0 && i < h->n; i++) {
		*ret_last = h->group[i].g;
		st = choose_group(*ret_last, until, func, &h->group[i].ours);
	}
	for (i = 0; st == 0 && i < h->n; i++)
		if (h->group[i].ours) {
			*ret_last = h->group[i].g;
			st = init_group(*ret_last, func);
		}
	for (i = 0; st == 0 && i < h->n; i++)
		if (h->group[i].ours) {
			*ret_last = h->group[i].g;
			st = start_group(*ret_last, all, func);
		}
	return st;
}

/* Stops under way come first.  We wait for them before the start is ours,
   because other threads wait for the start. */
static evc_status
begin_after_stops(const struct evc__held *h, uint64_t until, const char *func)
{
	bool in_time, again;
	evc_status st;

	evc__worker_waits(true);
	do {
		in_time = evc__starts(h->reg) || evc__stops_awaited(h, until);
		st = begin_start(h, func);
		again = st == 0 && in_time && !evc__stops_awaited(h, 0);
		if (again)
			end_start(h->reg);
	} while (again);
	evc__worker_waits(false);
	return st;
}

static evc_status
refuse_start(const evc_group *g, evc_status st, const char *func)
{
	return evc_refuse_setup(evc_scope_parent(g->scope), func, st);
}

static evc_status
groups_start(struct evc__held *h, const char *func)
{
	uint64_t until = evc__registry_until(h->reg);
	evc_status st = begin_after_stops(h, until, func);
	evc_group *last = h->group[0].g;
	uint32_t all;
	char why[192];

	if (st < 0)
		return refuse_start(last, st, func);
	all = sync_load(&h->reg->stops_of_all);
	st = start_all(h, all, until, func, &last);
	if (st == 0) {
		end_start(h->reg);
		return 0;
	}
	/* Keep the text: a refusal during the way back is not for the
	   caller. */
	evc__copy(why, sizeof why, evc_last_error());
	take_back_start(h, why, func);
	return refuse_start(last, evc_refuse(st, "%s", why), func);
}

evc_status
evc_group_start(evc_group *group)
{
	evc_status st = evc__group_check(group, __func__);
	struct evc__held h;

	if (st < 0)
		return st;
	st = evc__not_inside(__func__);
	if (st < 0)
		return refuse_start(group, st, __func__);
	evc__group_hold(group, &h);
	st = groups_start(&h, __func__);
	evc__groups_release(&h);
	return st;
}

evc_status
evc_registry_start(evc_registry *reg)
{
	evc_status st = evc__registry_check(&reg, __func__);
	struct evc__held h;

	if (st == 0)
		st = evc__not_inside(__func__);
	if (st == 0)
		st = evc__groups_hold(reg, NULL, &h, __func__);
	if (st < 0)
		return evc_refuse_setup(evc_registry_coord(reg), __func__, st);
	if (h.n > 0)
		st = groups_start(&h, __func__);
	evc__groups_release(&h);
	return st;
}
