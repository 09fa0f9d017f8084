/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scope of a cluster: its begin, and its runner, a member that stands for
 * the cluster.  The runner keeps joins waiting until the engine's last word,
 * hears the stop, and speaks in reports.
 * All this happens on the given loop or the home.  Without these the scope has
 * a loop on a thread, also a member, that turns as long as the runner lives.
 * Called by: cluster/open/open.c; the library, by the runner's operations.
 * Locks: the cluster's lock, taken.
 */

#include <math.h>

#include "base/self.h"
#include "cluster/core/cluster.h"

/* ---- the runner ---- */

static bool
is_running(void *arg)
{
	evc_cluster *cl = arg;
	bool closed;

	sync_lock(&cl->q.lock);
	closed = cl->engine.closed;
	sync_unlock(&cl->q.lock);
	return !closed;
}

static void
stop_cluster(void *arg)
{
	evc_cluster *cl = arg;

	sync_lock(&cl->q.lock);
	if (cl->engine.at == NULL)
		cl->life.stop_came = true;
	else if (!cl->stop.begun)
		evc__stop_all(cl);
	evc__cluster_unlock(cl);
	evc__scope_adrift(cl);
}

/* The last save, unless made before the engine left: on the cluster's loop
   thread or on another thread. */
static evc_status
save_at_end(void *arg)
{
	evc__checkpoint_last(arg);
	return 0;
}

/* Variables that are here can be saved without a loop, too. */
static bool
saves_at_end(const evc_cluster *cl)
{
	return cl->config.checkpoint != NULL && !cluster_asks(cl);
}

static void
describe_cluster(char *buf, size_t n, void *arg)
{
	char all[DESCRIBE_SIZE];
	struct text t = evc__text_in(all, sizeof all);
	evc_cluster *cl = arg;

	sync_lock(&cl->q.lock);
	evc__cluster_describe(cl, sync_mono(), &t);
	sync_unlock(&cl->q.lock);
	evc__copy_ends(buf, n, all);
}

static evc_status
add_runner(evc_cluster *cl, evc_reactor *r)
{
	evc_member_opts o = { .reactor = r };
	evc_runner_ops ops = {
		.is_running = is_running,
		.stop = stop_cluster,
		.join = saves_at_end(cl) ? save_at_end : NULL,
		.describe = describe_cluster,
	};

	return evc_runner_add(cl->scope, cl->name, &ops, cl, &o,
			      &cl->life.runner);
}

/* ---- the beginning ---- */

static evc_status
set_up_loop(evc_reactor *r, void *arg)
{
	evc_cluster *cl = arg;

	cl->loop.reactor = r;
	cl->loop.ref = evc_loop_of(r);
	/* The starter reads tid after this function's return, the callbacks
	   later. */
	sync_store(&cl->loop.tid, evc__tid());
	return add_runner(cl, r);
}

static evc_status
begin_on_home(evc_cluster *cl)
{
	cl->loop.reactor = evc_home(cl->scope);
	cl->loop.ref = evc_loop_of(cl->loop.reactor);
	if (evc_reactor_is_here(cl->loop.reactor))
		sync_store(&cl->loop.tid, evc__tid());
	return add_runner(cl, NULL);
}

evc_status
evc__scope_begin(evc_cluster *cl)
{
	/* The parent hears of a failed last save at once, and of other errors at
	   the end, because a failed open has errors, too. */
	evc_scope_opts o = { .on_error = cl->config.checkpoint != NULL ?
					 EVC_ON_ERROR_REPORT : EVC_ON_ERROR_IGNORE,
			     .home = cl->config.reactor,
			     .ended = evc__scope_ended,
			     .describe = evc__cluster_report,
			     .describe_stacks = true,
			     .no_join = true,
			     .arg = cl };
	evc_status st;

	cl->loop.own = o.home == NULL &&
		       (evc_home(cl->life.parent) == NULL ||
			evc__is_hosted(evc_home(cl->life.parent)));
	if (cl->loop.own)
		o.config.flags = EVC_NO_HOME;
	st = evc_scope_new(cl->life.parent, cl->name, &o, &cl->scope);
	if (st < 0)
		return st;
	/* From here on the scope keeps the memory. */
	evc__cluster_ref(cl);
	st = evc_cond_new(cl->scope, &cl->life.kept);
	if (st == 0 && cl->loop.own)
		st = evc_reactor_start(cl->scope, "cluster loop", set_up_loop,
				       cl, NULL, NULL);
	else if (st == 0)
		st = begin_on_home(cl);
	if (st < 0)
		evc__scope_undo(cl);
	return st;
}

void
evc__scope_opened(evc_cluster *cl, evc_engine *engine)
{
	sync_lock(&cl->q.lock);
	cl->engine.at = engine;
	if (cl->life.stop_came)
		evc__stop_all(cl);
	evc__cluster_unlock(cl);
	/* The turn finds out the loop's thread. */
	if (!evc__turn_ask(cl))
		evc__scope_adrift(cl);
	(void)evc_scope_ready(cl->scope);
}
