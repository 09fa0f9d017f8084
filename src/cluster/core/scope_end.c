/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a cluster's scope.  `ended` comes after the stop, when all members
 * have ended: the engine is closed, and the scope freed if the program has
 * closed the cluster; else the close frees it.
 * `ended` may come at the end of the grace, with members alive that use the
 * cluster, such as a thread in a hanging function: nothing is freed.  When the
 * engine has closed after all, a thread of the parent waits for these members
 * and does the rest.  Such a thread does all when the program has destroyed the
 * loop, where `ended` does not come.
 * Called by: the scope (`ended`), turn.c, scope.c, cluster/open.
 * Locks: the cluster's lock, taken.
 */
#include "base/backoff.h"
#include "cluster/core/cluster.h"

#include <math.h>

#define NAP_FIRST UINT64_C(1000000)
#define NAP_MOST UINT64_C(100000000)

/* ---- freed ---- */

/* Sleep longer than the last time; *ns is 0 before the first time. */
static void
nap_longer(uint64_t *ns)
{
	*ns = evc__backoff_next(*ns, NAP_FIRST, NAP_MOST);
	evc__nap(*ns);
}

/* No other thread has the scope. false: it may not be freed yet. */
static bool
free_scope(evc_cluster *cl)
{
	if (!evc__refgate_is_shut(&cl->loop.gate))
		evc__refgate_close(&cl->loop.gate);
	(void)evc__scope_errors(cl, true);
	if (evc_cond_free(cl->life.kept) == 0)
		cl->life.kept = NULL;
	if (evc_free(cl->scope) < 0)
		return false;
	/* Remotes that the program keeps need the rest of the cluster. */
	evc__variables_clear(&cl->vars);
	/* On a destroyed loop there was no turn for these answers. */
	if (!evc__turn_answers(cl))
		return true;
	/* The last touch of the parent: a join of the parent goes on, and may
	   free it. */
	if (cl->life.hold != 0)
		(void)evc_hold_end(cl->life.parent, cl->life.hold);
	evc__cluster_unref(cl);
	return true;
}

static void
close_engine(evc_cluster *cl)
{
	evc_engine *engine;
	uint64_t ns = 0;

	sync_lock(&cl->q.lock);
	engine = cl->engine.at;
	cl->engine.at = NULL;
	/* On a destroyed loop the engine has not waited for `leave`. */
	while (cl->asking.n > 0) {
		sync_unlock(&cl->q.lock);
		nap_longer(&ns);
		sync_lock(&cl->q.lock);
	}
	sync_unlock(&cl->q.lock);
	if (engine != NULL)
		cl->engine.ops->close(engine);
}

/* All members have ended. true: the caller has to free the scope. */
static bool
end_scope(evc_cluster *cl)
{
	bool free_it, gone;

	close_engine(cl);
	sync_lock(&cl->q.lock);
	gone = cl->loop.gone;
	sync_unlock(&cl->q.lock);
	/* Before `over`, because then a close on another thread frees the
	   cluster.  A join of the parent waits for this thread. */
	if (gone && !evc__turn_answers(cl))
		return false;
	sync_lock(&cl->q.lock);
	/* A later round of the scope has begun nothing, and is over too. */
	free_it = cl->life.let_go && !cl->life.over;
	cl->life.over = true;
	sync_unlock(&cl->q.lock);
	return free_it;
}

/* The destroying thread may be inside the cluster's watcher. */
static bool
is_being_destroyed(evc_cluster *cl)
{
	bool gone;

	sync_lock(&cl->q.lock);
	gone = cl->loop.gone;
	sync_unlock(&cl->q.lock);
	return gone && evc_loop_reactor(cl->loop.ref) != NULL;
}

/* A join of the scope ends soon; a pool and the like, made by a function on the
   scope, is freed by the program or never. */
static void
free_until_done(evc_coord *parent, evc_cluster *cl)
{
	uint64_t ns = 0;
	bool told = false;

	while (!free_scope(cl)) {
		if (ns == NAP_MOST && !told) {
			told = true;
			evc_log(parent, EVC_LOG_WARNING, NULL,
				"cluster %s cannot end, because its scope is "
				"in use: %s", cl->name, evc_last_error());
		}
		nap_longer(&ns);
	}
}

/* On a thread of the parent: until the members have ended. */
static evc_status
free_when_stopped(evc_coord *parent, void *arg)
{
	evc_cluster *cl = arg;
	uint64_t ns = 0;
	bool over;

	while (is_being_destroyed(cl) || !evc_all_stopped(cl->scope))
		nap_longer(&ns);
	sync_lock(&cl->q.lock);
	over = cl->life.over;
	sync_unlock(&cl->q.lock);
	if (over || end_scope(cl))
		free_until_done(parent, cl);
	return 0;
}

static void
free_later(evc_cluster *cl)
{
	evc_member_opts o = { .flags = EVC_AFTER_STOP | EVC_BACKGROUND };

	if (evc_thread_start(cl->life.parent, "cluster's end",
			     free_when_stopped, cl, &o, NULL) < 0)
		evc_log(cl->life.parent, EVC_LOG_ERROR, NULL,
			"cluster %s is not freed: %s", cl->name,
			evc_last_error());
}

/* ---- the loop is watched ---- */

/* On the loop: its destruction does not matter from now on. */
static void
unwatch_scope(evc_cluster *cl)
{
	struct ev_loop *loop;

	/* This loop goes with its thread. */
	if (cl->loop.own)
		return;
	sync_lock(&cl->q.lock);
	loop = cl->loop.watched;
	cl->loop.watched = NULL;
	sync_unlock(&cl->q.lock);
	if (loop == NULL)
		return;
	ev_cleanup_stop(loop, &cl->loop.cleanup);
	on_loop_end(&cl->loop.on);
}

/* `ended` came with members alive, and now the engine is closed: once. */
static void
free_if_late(evc_cluster *cl)
{
	bool yes;

	sync_lock(&cl->q.lock);
	yes = cl->life.late && cl->engine.closed && !cl->life.looks_again;
	cl->life.looks_again |= yes;
	sync_unlock(&cl->q.lock);
	if (!yes)
		return;
	unwatch_scope(cl);
	free_later(cl);
}

/* Lock held. true: the caller has to call free_later, and until then nobody
   else frees the scope. */
static bool
is_adrift(evc_cluster *cl)
{
	bool yes;

	cl->loop.gone |= !cl->loop.own && cl->loop.watched == NULL &&
			 evc_loop_reactor(cl->loop.ref) == NULL;
	yes = cl->loop.gone && cl->stop.begun && cl->engine.at != NULL &&
	      !cl->life.over && !cl->life.looks_again;
	cl->life.looks_again |= yes;
	return yes;
}

void
evc__scope_adrift(evc_cluster *cl)
{
	bool yes;

	sync_lock(&cl->q.lock);
	yes = is_adrift(cl);
	sync_unlock(&cl->q.lock);
	if (yes)
		free_later(cl);
}

/* The free may be refused, for example during a join of the scope. */
static void
free_now_or_later(evc_cluster *cl)
{
	if (!free_scope(cl))
		free_later(cl);
}

static void
on_cluster_cleanup(struct ev_loop *loop, ev_cleanup *cleanup, int revents)
{
	evc_cluster *cl = cleanup->data;

	(void)revents;
	if (on_loop_inherited(&cl->loop.on))
		return;
	on_loop_end(&cl->loop.on);
	ev_cleanup_stop(loop, cleanup);
	sync_lock(&cl->q.lock);
	cl->loop.watched = NULL;
	cl->loop.gone = true;
	sync_unlock(&cl->q.lock);
	evc__scope_adrift(cl);
}

void
evc__scope_watch(evc_cluster *cl, struct ev_loop *loop)
{
	if (cl->loop.watched != NULL || cl->engine.at == NULL ||
	    cl->life.over || cl->life.looks_again)
		return;
	on_loop_begin(&cl->loop.on, loop);
	cl->loop.watched = loop;
	if (cl->loop.own)
		return;
	ev_cleanup_init(&cl->loop.cleanup, on_cluster_cleanup);
	cl->loop.cleanup.data = cl;
	ev_cleanup_start(loop, &cl->loop.cleanup);
}

/* ---- the end ---- */

void
evc__scope_closed(evc_cluster *cl)
{
	/* The thread of free_later waits for this call, because a post is alive
	   until its return. */
	free_if_late(cl);
	(void)evc_runner_done(cl->scope, cl->life.runner, 0);
}

void
evc__scope_ended(evc_coord *scope, const evc_verdict *v, void *arg)
{
	evc_cluster *cl = arg;
	bool late, mine, unsaved;

	(void)scope;
	sync_lock(&cl->q.lock);
	/* A join on a loop that is being destroyed calls this, too. */
	mine = !cl->life.undone && !cl->life.looks_again;
	late = mine && !cl->life.over &&
	       (!cl->engine.closed || v->n_stragglers > 0);
	cl->life.late |= late;
	unsaved = late && evc__checkpoint_waits(cl);
	sync_unlock(&cl->q.lock);
	/* Functions on threads may report errors on the scope. */
	if (mine && v->n_errors > 0 && cl->config.checkpoint == NULL)
		evc__cluster_tell_parent(cl, &v->error);
	if (unsaved)
		evc_log(cl->life.parent, EVC_LOG_ERROR, NULL,
			"cluster %s: the last checkpoint was not saved, because "
			"functions still ran",
			cl->name);
	if (late) {
		free_if_late(cl);
	} else if (mine) {
		unwatch_scope(cl);
		if (end_scope(cl))
			free_now_or_later(cl);
	}
}

void
evc__scope_let_go(evc_cluster *cl)
{
	evc_member_opts o = { .flags = EVC_AFTER_STOP };
	bool free_it, look;

	/* A join of the parent waits for `ended` only after the parent's own
	   stop.  Without memory for the hold a join may return a moment before
	   the scope is freed. */
	(void)evc_hold_begin(cl->life.parent, cl->name, &o, &cl->life.hold);
	/* Before let_go nobody else frees the scope.  The reason stands before
	   anything ends: a last checkpoint may fail. */
	(void)evc_request_stop_at(cl->scope, 0, "evc_cluster_close", NULL, 0,
				  NULL);
	sync_lock(&cl->q.lock);
	if (!cl->stop.begun)
		evc__stop_all(cl);
	evc__cluster_unlock(cl);
	sync_lock(&cl->q.lock);
	cl->life.let_go = true;
	free_it = cl->life.over;
	/* In other cases the loop's thread may free the scope from here on. */
	look = is_adrift(cl);
	sync_unlock(&cl->q.lock);
	if (free_it)
		free_now_or_later(cl);
	else if (look)
		free_later(cl);
}

/* ---- or no beginning ---- */

/* The loop's thread has to go first. */
static void
join_loop_thread(evc_cluster *cl)
{
	evc_join_opts o = { .grace = INFINITY, .flags = EVC_JOIN_IGNORE_LIVE };

	(void)evc_request_stop_at(cl->scope, 0, "evc_cluster_open", NULL, 0,
				  NULL);
	(void)evc_scope_ready(cl->scope);
	/* A refusal means that no member is left. */
	if (evc_join(cl->scope, &o, NULL) < 0)
		return;
}

static bool
is_own_member(const evc_member_info *m, void *arg)
{
	evc_id *id = arg;

	if (m->kind == EVC_RUNNER || m->kind == EVC_LOOPER)
		*id = m->id;
	return *id == 0;
}

/* The runner, and the looper of checkpoints. */
static void
remove_members(evc_cluster *cl)
{
	evc_id id;

	do {
		id = 0;
		(void)evc_member_each(cl->scope, is_own_member, &id);
	} while (id != 0 && evc_member_remove(cl->scope, id) == 0);
}

void
evc__scope_undo(evc_cluster *cl)
{
	char why[160];

	evc__copy(why, sizeof why, evc_last_error());
	sync_lock(&cl->q.lock);
	cl->engine.closed = cl->stop.begun = cl->life.undone = true;
	sync_unlock(&cl->q.lock);
	remove_members(cl);
	if (cl->loop.own)
		join_loop_thread(cl);
	/* After a stop of the parent another thread's loop may be about to call
	   `ended`. */
	if (!free_scope(cl)) {
		sync_lock(&cl->q.lock);
		cl->life.over = cl->life.let_go = true;
		sync_unlock(&cl->q.lock);
		(void)evc_scope_ready(cl->scope);
		free_later(cl);
	}
	(void)evc_refuse(0, "%s", why);
}
