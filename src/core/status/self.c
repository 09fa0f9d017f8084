/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread as coordinators see it: its member, the cancel hooks that
 * it has pushed, and the last hook that was called.
 *
 * Called by: requests, waits, the register, the wakers, reports.
 * Locks: none; all of the data is thread-local.
 */
#include "core/core.h"

static __thread struct evc__self self;

void
evc__self_inherited(void)
{
	struct evc__member *m = self.member;

	if (m != NULL)
		sync_lock_init(&m->c->lock);
	self = (struct evc__self){ .member = NULL };
}

struct evc__self *
evc__self(void)
{
	return &self;
}

void
evc__self_is(struct evc__member *m)
{
	self.member = m;
	self.mark = &m->mark;
}

bool
evc__woken(const evc_coord *c, uint32_t stop)
{
	const struct evc__waker *k;

	if (self.member != NULL && evc__heard_by(self.member) == c &&
	    sync_load(&self.member->woken) == stop)
		return true;
	for (k = self.pushed; k != NULL; k = k->outer)
		if (k->c == c && sync_load(&k->woken) == stop)
			return true;
	return self.woken_in == c && self.woken_stop == stop;
}
