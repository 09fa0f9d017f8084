/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_member_remove: a member leaves the register before its end.  Only the
 * kind of a member knows how to end the member early: kinds with this ability
 * have evc__member_ops.remove; loopers on a loop, which are no struct
 * evc__member, have evc__looper_ops.remove.  This file has the common part: a
 * caller that must wait for another thread sleeps until a ring, as a join does,
 * and asks again.
 *
 * Called by: the public call; evc__dormant_drop by the end of a round.
 * Locks: the coordinator's, given up while the caller sleeps; inside the
 * refgate.
 */
#include "core/core.h"

int
evc__refuse_removal(evc_id id)
{
	return evc__refuse(-EVC_NOT_FOUND, "evc_member_remove: no member %llu",
			   (unsigned long long)id);
}

/* Lock held, perhaps given up meanwhile.  0: done; 1: wait for a ring and try
   again; < 0: refused. */
static int
try_remove(evc_coord *c, struct evc__entry *e, bool waited)
{
	struct evc__member *m;

	if (e->on_loop)
		return c->member.looper_ops->remove(e);
	m = LIST_OF(e, struct evc__member, e);
	if (m->ops == NULL || m->ops->remove == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_member_remove: %s is not removed, it "
				   "ends",
				   m->name);
	if (!evc__is_thread(m) || sync_load(&m->state) == EVC_LIVE)
		return m->ops->remove(m);
	/* The thread has ended.  If this call has waited for the end, the join
	   of the thread completes the removal. */
	if (!waited)
		return evc__refuse_removal(e->id);
	evc__members_reap(c, BACKOFF_MOST_NS);
	return 0;
}

/* Inside the refgate, lock held. */
static evc_status
remove_waiting(evc_coord *c, evc_id id)
{
	struct evc__entry *e;
	bool waited = false;
	uint32_t seq;
	int st;

	for (;;) {
		/* join_seq is read before the look: a later change moves
		   join_seq, and ends the sleep. */
		seq = sync_load_sc(&c->stop.join_seq);
		e = evc__id_find(c, id);
		if (e == NULL && !waited)
			return evc__refuse_removal(id);
		st = e != NULL ? try_remove(c, e, waited) : 0;
		/* A waker of the member may be running: its end rings. */
		if (st == 0 && evc__echoes(c, id))
			st = 1;
		if (st <= 0)
			return st;
		waited = true;
		sync_unlock(&c->lock);
		sync_futex_wait(&c->stop.join_seq, seq, SYNC_FOREVER);
		sync_lock(&c->lock);
	}
}

evc_status
evc_member_remove(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = evc__enter(c, -EVC_NOT_FOUND, __func__);
	if (st < 0)
		return st;
	sync_add(&c->stop.n_sleepers, 1);
	sync_lock(&c->lock);
	st = remove_waiting(c, id);
	sync_unlock(&c->lock);
	sync_sub(&c->stop.n_sleepers, 1);
	evc__later_run(c);
	evc__refgate_leave(&c->life.gate);
	return st;
}

void
evc__dormant_drop(evc_coord *c)
{
	struct list *n, *tmp;

	if (c->member.looper_ops == NULL)
		return;
	LIST_EACH(n, tmp, &c->member.dormant) {
		struct evc__member *m = LIST_OF(n, struct evc__member, node);

		evc__ended_add(c);
		evc__wakers_drop(m);
		evc__id_remove(c, &m->e);
		list_remove(&m->node);
		evc__release_due(c, m->e.id, m->release);
		sync_free(m);
	}
	LIST_EACH(n, tmp, &c->loop.reactors) {
		evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->looper_ops != NULL)
			r->looper_ops->forget(r);
	}
}
