/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The count of all that is alive in a coordinator and in the scopes below.
 *
 * Called by: the register, tasks, loopers, posts, wakers and scopes, for each
 * begin and each end.
 * Locks: none; the count `alive` is atomic, its partner is the word (CLOSING).
 */
#include "core/core.h"

void
evc__alive_add(evc_coord *c)
{
	uint32_t n = sync_load_sc(&c->stop.alive);

	/* This thread raises the count, then reads the word (in evc__reopen); a
	   closing thread sets CLOSING, then reads the count.  So at least one
	   thread sees the other.  When the count was 0, the count of the parent
	   is raised first, so that a join above always finds something alive
	   while a member lives here. */
	for (;;) {
		if (n > 0 || c->parent == NULL) {
			if (sync_cas(&c->stop.alive, &n, n + 1))
				break;
			continue;
		}
		sync_add(&c->parent->stop.n_live_scopes, 1);
		evc__alive_add(c->parent);
		if (sync_cas(&c->stop.alive, &n, 1))
			break;
		/* Another thread was first, and has counted this scope in the
		   parent. */
		sync_sub(&c->parent->stop.n_live_scopes, 1);
		evc__alive_sub(c->parent);
	}
	evc__reopen(c);
}

void
evc__reopen(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word);

	while (w & (WORD_CLOSING | WORD_JOINED))
		if (sync_cas(&c->word, &w, w & ~(WORD_CLOSING | WORD_JOINED)))
			break;
}

void
evc__alive_sub(evc_coord *c)
{
	/* The parent's count is lowered after the count of c.  The caller keeps
	   c, and so all coordinators above c, and rings afterwards. */
	while (sync_sub(&c->stop.alive, 1) == 1 && c->parent != NULL) {
		c = c->parent;
		sync_sub(&c->stop.n_live_scopes, 1);
	}
}
