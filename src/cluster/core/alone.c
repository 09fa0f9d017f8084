/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transactional functions overtaken too often run alone: while no other function
 * runs, their reads still hold at their end.
 * Nobody waits for ever: a function taken before may wait for a queued one, and
 * so may the function alone.  After a patience, which is longer when the function
 * was overtaken again, all others go on beside the function.  They rest from
 * waiting for as long as they have waited, so a function that waits for others
 * costs them half of their time at most.
 * Called by: remote.c when the lock is given up, turn.c.
 * Locks: the cluster's lock, held.
 */
#include "cluster/core/cluster.h"

#define PATIENCE_NS UINT64_C(1000000000)
#define DOUBLINGS_MOST 6

/* There is a function to run alone. */
static uint64_t
patience_of_first(const struct closures *q)
{
	const evc_remote *r = REMOTE_OF(closures_first_alone(q));
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
	bool any = closures_any_alone(q);
	uint64_t now = any ? sync_mono() : 0;

	q->alone_news = cl->turn.alone_expired = false;
	q->impatient = any && now < cl->turn.alone_rest_ns;
	if (any) {
		cl->turn.alone_due_ns =
			q->impatient ? cl->turn.alone_rest_ns :
				       evc__after(now, patience_of_first(q));
		evc__turn_ask(cl);
	}
	if (!any || q->impatient || q->n_taken == 0)
		wake_all(cl);
}

uint64_t
evc__alone_look(evc_cluster *cl, uint64_t now)
{
	struct closures *q = &cl->q;

	if (!closures_any_alone(q) || cl->turn.alone_expired)
		return SYNC_FOREVER;
	if (now >= cl->turn.alone_due_ns && q->impatient)
		evc__alone_news(cl); /* The rest is over. */
	if (now < cl->turn.alone_due_ns)
		return cl->turn.alone_due_ns;
	q->impatient = cl->turn.alone_expired = true;
	cl->turn.alone_rest_ns = evc__after(now, patience_of_first(q));
	wake_all(cl);
	return SYNC_FOREVER;
}
