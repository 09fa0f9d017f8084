/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The base of all other files here: references, the check of the program's
 * calls, the loop's thread, the request for a turn, the wake of a worker.
 * Called by: all files of core, calls and open.
 * Locks: evc__wake needs the cluster's lock; refs, loop.tid, loop.gate and
 * turn.asked are atomic.
 */
#include <math.h>

#include "cluster/core/cluster.h"

#include "base/self.h"

evc_status
evc__cluster_check(const evc_cluster *cl)
{
	if (cl == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "cluster is NULL");
	if (cluster_inherited(cl))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "this is a fork child, cluster %s is its"
				  " parent's",
				  cl->name);
	return 0;
}

void
evc__cluster_ref(evc_cluster *cl)
{
	sync_add(&cl->refs, 1);
}

void
evc__cluster_unref(evc_cluster *cl)
{
	/* The destroyer sees the work of all other owners. */
	if (sync_sub(&cl->refs, 1) == 1)
		cl->destroy(cl);
}

/* The loop's thread is not known yet: is it this one? */
static bool
is_loop_here(evc_cluster *cl)
{
	bool here;

	if (!evc__refgate_enter(&cl->loop.gate))
		return false;
	here = evc_reactor_is_here(cl->loop.reactor);
	evc__refgate_leave(&cl->loop.gate);
	if (here)
		sync_store(&cl->loop.tid, evc__tid());
	return here;
}

bool
evc__cluster_on_loop(const evc_cluster *cl)
{
	/* Each thread compares the word with itself alone: either the thread
	   has stored its own number, or the number is another's. */
	int tid = sync_load_relaxed(&cl->loop.tid);

	if (tid == 0)
		return is_loop_here((evc_cluster *)cl);
	/* After the loop another thread may have its number. */
	return tid == evc__tid() && evc_loop_reactor(cl->loop.ref) != NULL;
}

void
evc__turn_hold(evc_cluster *cl, struct ev_loop *loop, bool hold)
{
	if (hold == cl->turn.holds_loop)
		return;
	if (hold)
		ev_ref(loop);
	else
		ev_unref(loop);
	cl->turn.holds_loop = hold;
}

bool
evc__turn_ask(evc_cluster *cl)
{
	/* The loop's thread alone sees `looking`. */
	bool here = evc__cluster_on_loop(cl);

	if (here && cl->turn.looking)
		return true;
	/* The turn comes, and with it the callback that was asked for. */
	if (here)
		evc__turn_hold(cl, evc_reactor_loop(cl->loop.reactor), true);
	if (sync_xchg(&cl->turn.asked, 1) != 0)
		return true;
	/* A post keeps the scope, and so the cluster, until its call. */
	if (evc_post_message(cl->loop.ref, &cl->turn.message) == 0)
		return true;
	sync_store(&cl->turn.asked, 0);
	if (here)
		evc__turn_hold(cl, evc_reactor_loop(cl->loop.reactor), false);
	return false;
}

double
evc__cluster_left(evc_cluster *cl)
{
	double left;

	if (!evc__refgate_enter(&cl->loop.gate))
		return 0;
	left = evc_should_stop(cl->scope) ? evc_stop_left(cl->scope) : INFINITY;
	evc__refgate_leave(&cl->loop.gate);
	return left;
}

void
evc__wake(evc_cluster *cl, int worker)
{
	/* During the open no engine is known; a new engine looks by itself. */
	if (cl->engine.at != NULL && !cl->engine.left)
		cl->engine.ops->wake(cl->engine.at, worker);
}
