/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster as all others see it: whose it is, and whose thread its loop's is.
 */
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
	/* What the others have done to it is seen by who destroys it. */
	if (sync_sub(&cl->refs, 1) == 1)
		cl->destroy(cl);
}

/* Nobody has seen that thread yet: is it this one? */
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
	/* Each thread compares with itself alone: it has stored what it finds,
	   or it finds another one's. */
	int tid = sync_load_relaxed(&cl->loop.tid);

	if (tid == 0)
		return is_loop_here((evc_cluster *)cl);
	/* The number may have another thread when its loop is gone. */
	return tid == evc__tid() && evc_loop_reactor(cl->loop.ref) != NULL;
}

bool
evc__turn_ask(evc_cluster *cl)
{
	/* Only the loop's thread sees its own look. */
	if (evc__cluster_on_loop(cl) && cl->turn.looking)
		return true;
	if (sync_xchg(&cl->turn.asked, 1) != 0)
		return true;
	/* A post keeps the scope, and so all of this, until it was called. */
	if (evc_post_message(cl->loop.ref, &cl->turn.mail) == 0)
		return true;
	sync_store(&cl->turn.asked, 0);
	return false;
}

void
evc__wake(evc_cluster *cl, int worker)
{
	/* While it is being opened the engine is not known yet: it looks when
	   it is. */
	if (cl->engine.at != NULL && !cl->engine.left)
		cl->engine.ops->wake(cl->engine.at, worker);
}
