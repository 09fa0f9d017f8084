/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of release functions that became due under the lock: they are made
 * here, without the lock, in the order in which they became due.  Then scopes
 * of ended threads are freed.  A join leaves the calls to the helper thread, and
 * waits for their return as for a member: a call that hangs does not hang the
 * join.
 *
 * Called by: evc__log_errors, so by joins, loop turns, clear and free; the
 * helper thread, by the table struct evc__upper; evc_member_remove.
 * Locks: the coordinator's, to take the list.  Atomics: has_later.
 */
#include "base/unwind.h"
#include "core/core.h"

SHUT_VOID(call_release, (const struct evc__later *l), l->release(l->arg))

void
evc__later_run(evc_coord *c)
{
	struct evc__later *l, *next;
	unsigned n_left;
	evc_coord *left;

	if (!sync_load(&c->member.has_later) || !evc__same_process(c))
		return;
	sync_lock(&c->lock);
	l = c->member.later;
	c->member.later = NULL;
	left = c->member.left;
	c->member.left = NULL;
	n_left = c->member.n_left;
	c->member.n_left = 0;
	sync_store(&c->member.has_later, false);
	sync_unlock(&c->lock);
	for (; l != NULL && evc__same_process(c); l = next) {
		next = l->next;
		call_release(l);
		sync_free(l);
	}
	if (n_left > 0 && evc__same_process(c)) {
		sync_lock(&c->lock);
		c->member.n_awaited -= n_left;
		sync_unlock(&c->lock);
		evc__ring(c);
	}
	if (left != NULL && evc__same_process(c))
		c->tree->upper->own_scopes_free(left);
}

void
evc__later_leave(evc_coord *c)
{
	const struct evc__later *l;
	unsigned n = 0;

	if (!sync_load(&c->member.has_later))
		return;
	sync_lock(&c->lock);
	/* Scopes of threads are freed by this thread, because evc_free may
	   follow the join. */
	if (c->helper.client != NULL && c->member.left == NULL)
		for (l = c->member.later; l != NULL; l = l->next)
			n++;
	c->member.n_awaited += n - c->member.n_left;
	c->member.n_left = n;
	sync_unlock(&c->lock);
	if (n > 0)
		evc__helper_ring(c);
	else
		evc__later_run(c);
}
