/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scope that a cluster is: how it begins, is told of the stop, and ends.
 *
 * One member of it, a runner, stands for the whole: it keeps joins waiting
 * until the engine's last word, hears the stop, and says in reports what runs.
 * With a home, or a loop that was given, all happens there.  Without one the
 * scope has a loop of its own, on a thread that is a member too; that loop turns
 * as long as the runner lives, because the runner is bound to it.
 *
 * `ended` comes when the scope was stopped and its members have ended: then the
 * engine is closed, and the scope freed, if the program has closed the cluster;
 * else that does it.
 *
 * When `ended` comes because the grace is over, members live still, such as a
 * thread in a function that hangs, and nothing is freed: they use all of it.
 * When the engine is closed after all, there is another look, on a thread of
 * the parent's, which waits for those that are just ending.  Such a thread does it
 * all when the program has destroyed the loop under the cluster, where `ended` does
 * not come.
 */
#include "cluster/core/scope.h"

#include <math.h>

#include "base/self.h"
#include "cluster/core/variable_ask.h"

#define NAP_FIRST UINT64_C(1000000)
#define NAP_MOST UINT64_C(100000000)

/* ---- the end ---- */

static void
nap(uint64_t ns)
{
	_Atomic uint32_t never = 0;

	sync_futex_wait(&never, 0, ns);
}

/* Nobody but us has the scope any more.  false: it may not be freed yet. */
static bool
free_scope(evc_cluster *cl)
{
	if (!evc__gate_is_shut(&cl->loop_gate))
		evc__gate_close(&cl->loop_gate);
	evc__cluster_tell_rest(cl);
	if (evc_free(cl->scope) < 0)
		return false;
	/* On a loop that is gone they have had no turn. */
	if (!evc__turn_answers(cl))
		return true;
	/* The last touch of the parent: a join of it goes on, and may free
	   it. */
	if (cl->hold != 0)
		(void)evc_hold_end(cl->parent, cl->hold);
	evc__cluster_unref(cl);
	return true;
}

static void
close_engine(evc_cluster *cl)
{
	evc_engine *engine;

	sync_lock(&cl->q.lock);
	engine = cl->engine;
	cl->engine = NULL;
	/* An engine whose loop is gone has not waited for `leave`. */
	while (cl->kept.n_asking > 0) {
		sync_unlock(&cl->q.lock);
		nap(NAP_FIRST);
		sync_lock(&cl->q.lock);
	}
	sync_unlock(&cl->q.lock);
	if (engine != NULL)
		cl->ops->close(engine);
}

/* All members have ended.  true: whoever asks has to free the scope. */
static bool
set_over(evc_cluster *cl)
{
	bool free_it;

	close_engine(cl);
	sync_lock(&cl->q.lock);
	/* A later round of the scope, which has begun nothing, is over too. */
	free_it = cl->let_go && !cl->over;
	cl->over = true;
	sync_unlock(&cl->q.lock);
	return free_it;
}

/* The thread that does it may be in what this cluster has there. */
static bool
is_being_destroyed(evc_cluster *cl)
{
	bool gone;

	sync_lock(&cl->q.lock);
	gone = cl->loop_gone;
	sync_unlock(&cl->q.lock);
	return gone && evc_loop_reactor(cl->loop) != NULL;
}

/* On a thread of the parent's: until its members have ended. */
static evc_status
look_again(evc_coord *parent, void *arg)
{
	evc_cluster *cl = arg;
	uint64_t ns = NAP_FIRST;
	bool over;

	(void)parent;
	while (is_being_destroyed(cl) || !evc_all_stopped(cl->scope)) {
		nap(ns);
		ns = ns < NAP_MOST ? ns * 2 : ns;
	}
	sync_lock(&cl->q.lock);
	over = cl->over;
	sync_unlock(&cl->q.lock);
	if (over || set_over(cl))
		while (!free_scope(cl)) {
			nap(ns);
			ns = ns < NAP_MOST ? ns * 2 : ns;
		}
	return 0;
}

static void
begin_to_look(evc_cluster *cl)
{
	evc_member_opts o = { .flags = EVC_LATE | EVC_BACKGROUND };

	if (evc_thread_start(cl->parent, "cluster's end", look_again, cl, &o,
			     NULL) < 0)
		evc_log(cl->parent, EVC_LOG_ERROR, NULL,
			"cluster %s is not freed: %s", cl->name,
			evc_last_error());
}

/* `ended` has come and gone with members alive, and now the engine is closed:
   once. */
static void
look_if_late(evc_cluster *cl)
{
	bool yes;

	sync_lock(&cl->q.lock);
	yes = cl->late && cl->closed && !cl->looks_again;
	cl->looks_again |= yes;
	sync_unlock(&cl->q.lock);
	if (!yes)
		return;
	evc__turn_unwatch(cl);
	begin_to_look(cl);
}

/* Lock held.  true: whoever asks has to begin to look, and until that looks nobody
   else frees the scope. */
static bool
is_adrift(evc_cluster *cl)
{
	bool yes;

	cl->loop_gone |= !cl->own_loop && cl->watched == NULL &&
			 evc_loop_reactor(cl->loop) == NULL;
	yes = cl->loop_gone && cl->stopping && cl->engine != NULL &&
	      !cl->over && !cl->looks_again;
	cl->looks_again |= yes;
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
		begin_to_look(cl);
}

/* It should be possible; but somebody may be joining the scope, say. */
static void
free_or_look(evc_cluster *cl)
{
	if (!free_scope(cl))
		begin_to_look(cl);
}

static void
ended(evc_coord *scope, const evc_verdict *v, void *arg)
{
	evc_cluster *cl = arg;
	bool late, mine;

	(void)scope;
	sync_lock(&cl->q.lock);
	/* A loop that is being destroyed calls this when a join stood there. */
	mine = !cl->undone && !cl->looks_again;
	late = mine && !cl->over && (!cl->closed || v->n_stragglers > 0);
	cl->late |= late;
	sync_unlock(&cl->q.lock);
	if (late) {
		look_if_late(cl);
	} else if (mine) {
		evc__turn_unwatch(cl);
		if (set_over(cl))
			free_or_look(cl);
	}
}

void
evc__scope_let_go(evc_cluster *cl)
{
	evc_member_opts o = { .flags = EVC_LATE };
	bool free_it, look;

	/* A join of the parent waits for `ended` after the parent's own stop
	   alone.  Without memory for this it may return a moment before the
	   scope is freed. */
	(void)evc_hold_begin(cl->parent, cl->name, &o, &cl->hold);
	/* Before let_go is set nobody else frees the scope. */
	sync_lock(&cl->q.lock);
	if (!cl->stopping)
		evc__stop_all(cl);
	evc__cluster_unlock(cl);
	(void)evc_request_stop_at(cl->scope, 0, "evc_cluster_close", NULL, 0,
				  NULL);
	sync_lock(&cl->q.lock);
	cl->let_go = true;
	free_it = cl->over;
	/* If it is neither of both, the loop's thread may free it from here on. */
	look = is_adrift(cl);
	sync_unlock(&cl->q.lock);
	if (free_it)
		free_or_look(cl);
	else if (look)
		begin_to_look(cl);
}

/* ---- the runner ---- */

static bool
is_running(void *arg)
{
	evc_cluster *cl = arg;
	bool closed;

	sync_lock(&cl->q.lock);
	closed = cl->closed;
	sync_unlock(&cl->q.lock);
	return !closed;
}

static void
stop(void *arg)
{
	evc_cluster *cl = arg;

	sync_lock(&cl->q.lock);
	if (cl->engine == NULL)
		cl->stop_came = true;
	else if (!cl->stopping)
		evc__stop_all(cl);
	evc__cluster_unlock(cl);
	evc__scope_adrift(cl);
}

/* The last save: on the cluster's own loop thread, or a thread of its own. */
static evc_status
save(void *arg)
{
	evc__checkpoint_last(arg);
	return 0;
}

/* An engine that keeps the variables is asked before it leaves. */
static bool
saves_at_end(const evc_cluster *cl)
{
	return cl->config.checkpoint != NULL && !cluster_asks(cl);
}

static void
describe(char *buf, size_t n, void *arg)
{
	struct text t = evc__text_in(buf, n);
	evc_cluster *cl = arg;

	sync_lock(&cl->q.lock);
	evc__cluster_describe(cl, sync_mono(), &t);
	sync_unlock(&cl->q.lock);
}

static evc_status
add_runner(evc_cluster *cl, evc_reactor *r)
{
	evc_member_opts o = { .reactor = r };
	evc_runner_ops ops = {
		.is_running = is_running,
		.stop = stop,
		.join = saves_at_end(cl) ? save : NULL,
		.describe = describe,
	};

	return evc_runner_add(cl->scope, cl->name, &ops, cl, &o, &cl->runner);
}

void
evc__scope_closed(evc_cluster *cl)
{
	/* Whoever looks waits for us as well: a post is alive until it has
	   returned. */
	look_if_late(cl);
	(void)evc_runner_done(cl->scope, cl->runner, 0);
}

/* ---- the beginning ---- */

static evc_status
set_up_loop(evc_reactor *r, void *arg)
{
	evc_cluster *cl = arg;

	cl->reactor = r;
	cl->loop = evc_loop_of(r);
	/* Its starter reads it after this has returned; later the callbacks of
	   this thread do. */
	sync_store(&cl->loop_tid, evc__tid());
	return add_runner(cl, r);
}

static evc_status
begin_on_home(evc_cluster *cl)
{
	cl->reactor = evc_home(cl->scope);
	cl->loop = evc_loop_of(cl->reactor);
	if (evc_reactor_is_here(cl->reactor))
		sync_store(&cl->loop_tid, evc__tid());
	return add_runner(cl, NULL);
}

evc_status
evc__scope_begin(evc_cluster *cl)
{
	/* The parent hears of a last save that has failed. */
	evc_scope_opts o = { .on_error = cl->config.checkpoint != NULL ?
					 EVC_ON_ERROR_REPORT : EVC_ON_ERROR_IGNORE,
			     .home = cl->config.reactor,
			     .ended = ended,
			     .arg = cl };
	evc_status st;

	cl->own_loop = o.home == NULL && evc_home(cl->parent) == NULL;
	if (cl->own_loop)
		o.config.flags = EVC_NO_HOME;
	st = evc_scope_new(cl->parent, cl->name, &o, &cl->scope);
	if (st < 0)
		return st;
	/* Now there is something that keeps the memory. */
	evc__cluster_ref(cl);
	if (cl->own_loop)
		st = evc_reactor_start(cl->scope, "cluster loop", set_up_loop,
				       cl, NULL, NULL);
	else
		st = begin_on_home(cl);
	if (st < 0)
		evc__scope_undo(cl);
	return st;
}

/* The loop's thread has to go first. */
static void
end_loop(evc_cluster *cl)
{
	evc_join_opts o = { .grace = INFINITY, .flags = EVC_JOIN_IGNORE_LIVE };

	(void)evc_request_stop_at(cl->scope, 0, "evc_cluster_open", NULL, 0,
				  NULL);
	(void)evc_scope_ready(cl->scope);
	/* Refused when it finds nobody, which is as good. */
	if (evc_join(cl->scope, &o, NULL) < 0)
		return;
}

static bool
is_ours(const evc_member_info *m, void *arg)
{
	evc_id *id = arg;

	if (m->kind == EVC_RUNNER || m->kind == EVC_LOOPER)
		*id = m->id;
	return *id == 0;
}

/* The runner, and what saves checkpoints. */
static void
remove_members(evc_cluster *cl)
{
	evc_id id;

	do {
		id = 0;
		(void)evc_member_each(cl->scope, is_ours, &id);
	} while (id != 0 && evc_member_remove(cl->scope, id) == 0);
}

void
evc__scope_undo(evc_cluster *cl)
{
	char why[160];

	evc__copy(why, sizeof why, evc_last_error());
	sync_lock(&cl->q.lock);
	cl->closed = cl->stopping = cl->undone = true;
	sync_unlock(&cl->q.lock);
	remove_members(cl);
	if (cl->own_loop)
		end_loop(cl);
	/* The parent may have been stopped meanwhile, and another thread's loop
	   be about to call `ended`. */
	if (!free_scope(cl)) {
		sync_lock(&cl->q.lock);
		cl->over = cl->let_go = true;
		sync_unlock(&cl->q.lock);
		(void)evc_scope_ready(cl->scope);
		begin_to_look(cl);
	}
	(void)evc_refuse(0, "%s", why);
}

void
evc__scope_opened(evc_cluster *cl, evc_engine *engine)
{
	sync_lock(&cl->q.lock);
	cl->engine = engine;
	if (cl->stop_came)
		evc__stop_all(cl);
	evc__cluster_unlock(cl);
	/* It finds out whose thread the loop is. */
	if (!evc__turn_ask(cl))
		evc__scope_adrift(cl);
	(void)evc_scope_ready(cl->scope);
}
