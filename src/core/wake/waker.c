/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakers: the records of the ways to wake members and threads.  The wakers of a
 * member go with the member.  A thread pops the hooks that it has pushed for a
 * piece of code; at the end of the thread the library pops the rest.  A pop
 * waits while the helper thread is inside the function.  A function that runs
 * for a member counts as alive until it returns: when a join is over, no
 * function is called any more.  In this file k is a waker.
 *
 * Called by: the register of members, loopers, evc_cancel_push, guards.
 * Locks: the coordinator's lock is held; the list of pushed hooks is
 * thread-local.
 */
#include "core/core.h"
#include "core/helper/job.h"

#include "base/deadline.h"
#include "base/kick.h"
#include "base/self.h"

/* Lock held: add the helper job that goes through the wakers at a stop; false:
   no memory, no helper. */
static bool
wake_blocked_need(evc_coord *c)
{
	if (c->wake.wake_blocked == NULL) {
		c->wake.wake_blocked =
			sync_alloc(1, sizeof *c->wake.wake_blocked);
		if (c->wake.wake_blocked == NULL)
			return false;
		c->wake.wake_blocked->run = c->tree->upper->wake_blocked;
		c->wake.wake_blocked->overlaps = true;
		list_init(&c->wake.wake_blocked->node);
		if (evc__helper_job_add(c, c->wake.wake_blocked))
			return true;
		sync_free(c->wake.wake_blocked);
		c->wake.wake_blocked = NULL;
		return false;
	}
	return true;
}

struct evc__waker *
evc__waker_add(evc_coord *c, void (*fn)(void *arg), void *arg, bool repeat)
{
	struct evc__waker *k;

	if (!wake_blocked_need(c))
		return NULL;
	k = sync_alloc(1, sizeof *k);
	if (k == NULL)
		return NULL;
	k->c = c;
	k->fn = fn;
	k->arg = arg;
	k->repeat = repeat || fn == NULL;
	k->thread = pthread_self();
	list_append(&c->wake.wakers, &k->node);
	/* The waker is in the list before this look at the flag: a later stop
	   rings the helper. */
	if (evc_should_stop(c))
		evc__helper_ring(c);
	return k;
}

/* Lock held: k is never called again. */
static void
close_waker(struct evc__waker *k)
{
	k->removed = true;
	list_remove(&k->node);
}

/* Lock held: the member of k is about to go.  A waker that runs goes to the
   list of echoes, and counts as alive until its function has returned. */
static void
drop_waker(struct evc__waker *k, evc_id id)
{
	evc_coord *c;

	if (k == NULL)
		return;
	c = k->c;
	close_waker(k);
	if (!k->running) {
		sync_free(k);
		return;
	}
	k->id = id;
	k->left = true;
	evc__alive_add(c);
	c->wake.n_echoes++;
	list_append(&c->wake.echoes, &k->node);
}

/* The lock is given up while the waker runs; afterwards the waker does not run,
   and its memory is gone.  Not by the helper thread. */
static void
remove_waker(struct evc__waker *k)
{
	evc_coord *c = k->c;

	close_waker(k);
	sync_add(&c->stop.n_sleepers, 1);
	while (k->running)
		evc__await_change(&c->lock, &c->stop.join_seq, SYNC_FOREVER);
	sync_sub(&c->stop.n_sleepers, 1);
	sync_free(k);
}

struct evc__waker *
evc__waker_push(evc_coord *c, void (*fn)(void *arg), void *arg, bool repeat)
{
	struct evc__waker *k = evc__waker_add(c, fn, arg, repeat);
	struct evc__self *self = evc__self();

	if (k == NULL)
		return NULL;
	k->tid = evc__tid();
	k->outer = self->pushed;
	self->pushed = k;
	c->wake.n_pushed++;
	return k;
}

void
evc__waker_pop(struct evc__waker *k)
{
	struct evc__self *self = evc__self();
	struct evc__waker **p = &self->pushed;

	while (*p != k)
		p = &(*p)->outer;
	*p = k->outer;
	/* A later report of this thread may still depend on how the thread was
	   woken. */
	if (sync_load(&k->woken) != 0) {
		self->woken_in = k->c;
		self->woken_stop = sync_load(&k->woken);
	}
	k->c->wake.n_pushed--;
	remove_waker(k);
}

void
evc__self_keep(struct evc__self *to)
{
	const struct evc__self *self = evc__self();

	to->pushed = self->pushed;
	to->woken_in = self->woken_in;
	to->woken_stop = self->woken_stop;
}

void
evc__wakers_left(evc_coord *c, const struct evc__member *m)
{
	struct list *n, *tmp;

	if (c->wake.n_pushed == 0)
		return;
	LIST_EACH(n, tmp, &c->wake.wakers) {
		struct evc__waker *k = LIST_OF(n, struct evc__waker, node);

		if (k->tid == 0 || k->tid != m->tid ||
		    !pthread_equal(k->thread, m->thread))
			continue;
		c->wake.n_pushed--;
		drop_waker(k, 0);
	}
}

void
evc__wakers_end(void)
{
	struct evc__self *self = evc__self();
	struct evc__waker *k;
	evc_coord *c;

	while ((k = self->pushed) != NULL) {
		c = k->c;
		self->pushed = k->outer;
		/* The hooks in a fork child belong to the parent. */
		if (!evc__same_process(c))
			continue;
		sync_lock(&c->lock);
		c->wake.n_pushed--;
		drop_waker(k, 0);
		sync_unlock(&c->lock);
	}
}

evc_status
evc__wakers_add(struct evc__member *m, const evc_member_opts *o, void *arg,
		const char *func)
{
	bool kicks = o != NULL && (o->flags & EVC_KICK), none = false;
	evc_coord *c = evc__heard_by(m);

	if (kicks && evc__kick_install(0) < 0)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "%s: no signal is free for kicks", func);
	if (kicks) {
		m->kick = evc__waker_add(c, NULL, NULL, true);
		none = m->kick == NULL;
	}
	if (o != NULL && o->unblock != NULL && !none) {
		m->unblock = evc__waker_add(c, o->unblock, arg, true);
		none = m->unblock == NULL;
	}
	if (m->kick != NULL)
		m->kick->m = m;
	if (m->unblock != NULL)
		m->unblock->m = m;
	if (!none)
		return 0;
	evc__wakers_drop(m);
	return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
			   "%s: no memory or no helper thread to wake it with",
			   func);
}

void
evc__wakers_drop(struct evc__member *m)
{
	drop_waker(m->kick, m->e.id);
	drop_waker(m->unblock, m->e.id);
	m->kick = m->unblock = NULL;
}

void
evc__waker_leave(struct evc__waker *k, evc_id id)
{
	drop_waker(k, id);
}

bool
evc__echoes(const evc_coord *c, evc_id id)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->wake.echoes)
		if (LIST_OF(n, const struct evc__waker, node)->id == id)
			return LIST_OF(n, const struct evc__waker, node)
				       ->running != evc__tid();
	return false;
}

void
evc__wakers_count(const struct evc__member *m, unsigned *ret_unblocks,
		  unsigned *ret_kicks)
{
	evc_coord *s = evc__heard_by(m);
	uint32_t stop = WORD_STOP_NUMBER(sync_load(&s->word));
	const struct evc__waker *u = m->unblock, *k = m->kick;

	if (s != m->c)
		sync_lock(&s->lock);
	*ret_unblocks = u != NULL && u->stop == stop ? u->calls : 0;
	*ret_kicks = k != NULL && k->stop == stop ? k->calls : 0;
	if (s != m->c)
		sync_unlock(&s->lock);
}
