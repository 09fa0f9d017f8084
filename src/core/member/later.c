/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of release functions that became due under the lock: they are made
 * here, without the lock, in the order in which they became due.  Then scopes
 * of ended threads are freed.
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
	evc_coord *left;

	if (!sync_load(&c->member.has_later) || !evc__same_process(c))
		return;
	sync_lock(&c->lock);
	l = c->member.later;
	c->member.later = NULL;
	left = c->member.left;
	c->member.left = NULL;
	sync_store(&c->member.has_later, false);
	sync_unlock(&c->lock);
	for (; l != NULL && evc__same_process(c); l = next) {
		next = l->next;
		call_release(l);
		sync_free(l);
	}
	if (left != NULL && evc__same_process(c))
		c->tree->upper->own_scopes_free(left);
}
