/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stop of a group: the turn to call shutdown, state.stop and cleanup.  The
 * thread that moves the state from RUNNING to STOPPING, under the lock, calls
 * shutdown and state.stop: a thread that stops the group, or the scope's stop
 * hook, after a request to the scope itself.  The thread that finds STOPPING,
 * no live worker and no function running calls cleanup, and then the group is
 * STOPPED: a waiter for the group, or `ended` of the scope.  Each thread looks
 * after its own part, so the last thread finds the turn.
 * Called by: stop_api.c, start.c, await.c, hold.c; the scope's hook and
 * `ended`.
 * Locks: the group's, taken; budget_ends and paused are atomic.
 */
#include "group/group.h"

#include "base/self.h"
#include "base/unwind.h"

/* ---- claims ---- */

/* The scope gets a stop of its own beside an inherited stop: a clear of a scope
   above leaves the scope's own stop alone. */
static void
request_stop(evc_group *g, const char *text)
{
	evc_reason r;

	if (text == NULL && evc_reason_get(g->scope, 0, &r) == 0 &&
	    r.kind == EVC_BY_PARENT)
		text = "it stays stopped";
	if (text != NULL)
		(void)evc_request_stop_at(g->scope, 0, text, NULL, 0, NULL);
}

/* Log why.  unborn: the group had no worker yet, and its scope may be stopped
   since the last time. */
static void
log_stop(evc_group *g, const char *unborn)
{
	evc_reason r;

	if (unborn != NULL) {
		evc_log(g->scope, EVC_LOG_INFO, NULL, "stops: %s", unborn);
		return;
	}
	sync_lock(&g->lock);
	r = g->stop;
	sync_unlock(&g->lock);
	evc_log(g->scope, EVC_LOG_INFO, &r, "stops: %s%s%s, by \"%s\"",
		r.code != 0 ? evc_status_name(r.code) : "",
		r.code != 0 ? ": " : "", r.text, r.who);
}

/* Lock held: a thread that sees the stop sees the reason. */
static void
claim_stop(evc_group *g)
{
	g->state = EVC_GROUP_STOPPING;
	g->shutting = true;
	/* Functions of groups before this group cannot wait for later
	   steps. */
	g->inside_tid = evc__tid();
	sync_store(&g->paused, false);
	evc__group_changed(g);
}

/* Lock held: the workers hear of the stop; a request takes no lock of ours. */
static void
claim_born(evc_group *g, const char *text)
{
	evc_reason r = { .kind = EVC_BY_REQUEST };

	request_stop(g, text);
	(void)evc_reason_get(g->scope, 0, &r);
	g->stop = r;
	claim_stop(g);
}

void
evc__group_claim(struct evc__held_group *h, bool starting, const char *text)
{
	evc_group *g = h->g;

	sync_lock(&g->lock);
	h->unborn = starting && g->state == EVC_GROUP_STARTING;
	h->ours = h->unborn || g->state == EVC_GROUP_RUNNING;
	if (h->unborn)
		claim_stop(g);
	else if (h->ours)
		claim_born(g, text);
	h->awaits = g->state == EVC_GROUP_STOPPING;
	h->life = g->life;
	g->n_awaiting += h->awaits;
	sync_unlock(&g->lock);
}

void
evc__group_tell(struct evc__held_group *h, const char *text)
{
	if (h->unborn)
		request_stop(h->g, text);
	log_stop(h->g, h->unborn ? text : NULL);
}

/* For the hook: only if the scope was asked to stop. */
static bool
claim_asked(evc_group *g)
{
	bool mine;

	sync_lock(&g->lock);
	mine = g->state == EVC_GROUP_RUNNING && evc_should_stop(g->scope);
	if (mine)
		claim_born(g, NULL);
	sync_unlock(&g->lock);
	if (mine)
		log_stop(g, NULL);
	return mine;
}

/* ---- shutdown ---- */

WALLED_VOID(call_shutdown, (evc_group * g), g->opts.shutdown(g, g->arg))

static evc_status
shut_down(evc_coord *scope, void *group)
{
	evc_group *g = group;
	evc_group *was;
	bool init, state;

	(void)scope;
	sync_lock(&g->lock);
	init = g->init_done;
	state = g->state_begun;
	g->init_done = false;
	g->state_begun = false;
	sync_unlock(&g->lock);
	was = evc__inside_begin(g);
	if (init && g->opts.shutdown != NULL)
		call_shutdown(g);
	if (state && g->opts.state.stop != NULL)
		evc__call_walled(g->opts.state.stop, g->opts.state.arg);
	evc__inside_end(g, was);
	sync_lock(&g->lock);
	g->shutting = false;
	evc__group_changed(g);
	sync_unlock(&g->lock);
	if (g->opts.flags & EVC_GROUP_ASIDE)
		(void)evc__group_settle(g, 0);
	return 0;
}

/* A function of the group that runs longer is kicked. */
static void
store_end(evc_group *g, uint64_t until_ns)
{
	uint64_t end = evc__deadline_in(evc__group_left(g));

	sync_store(&g->budget_ends, end < until_ns ? end : until_ns);
}

void
evc__group_shut_down(evc_group *g, uint64_t until_ns)
{
	store_end(g, until_ns);
	/* inside_tid may be another thread's. */
	sync_lock(&g->lock);
	g->inside_tid = 0;
	sync_unlock(&g->lock);
	if (g->opts.shutdown == NULL && g->opts.state.stop == NULL)
		(void)shut_down(g->scope, g);
	else
		evc__group_call(g, "shutdown", shut_down);
}

/* ---- cleanup ---- */

static evc_status
clean_up(evc_coord *scope, void *group)
{
	evc_group *g = group;
	evc_group *was;
	bool due;

	(void)scope;
	sync_lock(&g->lock);
	due = g->cleanup_due;
	g->cleanup_due = false;
	sync_unlock(&g->lock);
	if (due && g->opts.state.cleanup != NULL) {
		was = evc__inside_begin(g);
		evc__call_walled(g->opts.state.cleanup, g->opts.state.arg);
		evc__inside_end(g, was);
	}
	sync_lock(&g->lock);
	g->cleaning = false;
	g->state = g->n_starts > 0 ? EVC_GROUP_STOPPED : EVC_GROUP_NEW;
	evc__group_changed(g);
	sync_unlock(&g->lock);
	return 0;
}

/* Lock held, given up meanwhile. */
static void
finish_stop(evc_group *g, uint64_t until_ns)
{
	g->cleaning = true;
	sync_unlock(&g->lock);
	evc_log(g->scope, EVC_LOG_INFO, NULL, "all workers have ended");
	store_end(g, until_ns != 0 ? until_ns : evc__registry_until(g->reg));
	if (g->opts.state.cleanup == NULL)
		(void)clean_up(g->scope, g);
	else
		evc__group_call(g, "cleanup", clean_up);
	sync_lock(&g->lock);
}

/* Lock held: is another thread bringing the group to rest? */
static bool
on_its_way(const evc_group *g)
{
	if (g->n_live > 0 || g->inside_tid == evc__tid())
		return false;
	/* Asked to stop, and the hook is due. */
	return g->state == EVC_GROUP_STOPPING ||
	       (g->state == EVC_GROUP_RUNNING && evc_should_stop(g->scope));
}

bool
evc__group_settle(evc_group *g, uint64_t until_ns)
{
	bool rests, in_time = true;

	sync_lock(&g->lock);
	while (!evc__group_rests(g) && on_its_way(g) && in_time) {
		if (g->state == EVC_GROUP_STOPPING && !g->shutting &&
		    !g->cleaning)
			finish_stop(g, until_ns);
		else
			in_time = evc__group_wait(g, until_ns);
	}
	rests = evc__group_rests(g);
	sync_unlock(&g->lock);
	return rests;
}

void
evc__group_bury(evc_group *g)
{
	evc_member_info m;
	unsigned i;

	sync_lock(&g->lock);
	for (i = 0; i < g->n_workers && g->n_live > 0; i++) {
		struct evc__worker *w = g->worker[i];

		/* A worker that ends normally is counted out before its
		   member. */
		if (!w->live || w->member == 0 ||
		    (evc_member_get(g->scope, w->member, &m) == 0 &&
		     m.state == EVC_LIVE))
			continue;
		w->live = false;
		w->member = 0;
		sync_store_relaxed(&w->run_began, 0);
		g->n_live--;
	}
	evc__group_changed(g);
	sync_unlock(&g->lock);
}

/* ---- what the scope calls ---- */

evc_status
evc__group_on_stop(evc_coord *scope, void *group)
{
	evc_group *g = group;

	(void)scope;
	if (claim_asked(g)) {
		evc__group_shut_down(g, evc__registry_until(g->reg));
		(void)evc__group_settle(g, 0);
	}
	return 0;
}

void
evc__group_on_ended(evc_coord *scope, const evc_verdict *v, void *group)
{
	evc_group *g = group;
	bool awaited;

	(void)scope;
	(void)v;
	evc__group_bury(g);
	/* A waiter for the stop cleans up, as many groups in their order. */
	sync_lock(&g->lock);
	awaited = g->n_awaiting > 0;
	sync_unlock(&g->lock);
	if (!awaited)
		(void)evc__group_settle(g, 0);
}
