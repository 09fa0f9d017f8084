/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transactional functions overtaken too often run alone: while no other function
 * runs, their reads still hold at their end.
 * Nobody waits for ever: a function taken before may wait for a queued one, and
 * so may the function alone.  After a patience, which is longer when the function
 * was overtaken again, all others go on beside the function.
 * Called by: remote.c when the lock is given up, turn.c.
 * Locks: the cluster's lock, held.
 */
#include "cluster/core/cluster.h"

#define PATIENCE_NS UINT64_C(1000000000)
#define DOUBLINGS_MOST 6

static uint64_t
patience_of(const evc_remote *r)
{
	unsigned times = r->conflicts > CONFLICTS_MOST ?
				 r->conflicts - CONFLICTS_MOST :
				 0;

	return PATIENCE_NS
	       << (times < DOUBLINGS_MOST ? times : DOUBLINGS_MOST);
}

static void
wake_all(evc_cluster *cl)
{
	unsigned i;

	for (i = 0; cl->q.n_queued > 0 && i < cl->workers.n; i++)
		evc__wake(cl, (int)i);
}

void
evc__alone_news(evc_cluster *cl)
{
	struct closures *q = &cl->q;
	const struct closure *first = q->alone_taken;

	q->alone_news = q->impatient = false;
	if (first == NULL && !list_empty(&q->alone))
		first = LIST_OF(q->alone.next, struct closure, link);
	if (first != NULL) {
		cl->turn.alone_due_ns =
			evc__after(sync_mono(), patience_of(REMOTE_OF(first)));
		evc__turn_ask(cl);
	}
	if (first == NULL || q->n_taken == 0)
		wake_all(cl);
}

uint64_t
evc__alone_look(evc_cluster *cl, uint64_t now)
{
	if (!closures_hold_back(&cl->q))
		return SYNC_FOREVER;
	if (now < cl->turn.alone_due_ns)
		return cl->turn.alone_due_ns;
	cl->q.impatient = true;
	wake_all(cl);
	return SYNC_FOREVER;
}
