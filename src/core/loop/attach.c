/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How loops come and go: attach, share, detach, and loops that are destroyed.
 * A ring without a watcher would be lost.  So attach starts the watcher first,
 * then puts the listener into the table, and then looks at the word.
 *
 * Called by: the public attach and detach, scopes with a home, libev's cleanup
 * watcher, abandon and evc_free.
 * Locks: the coordinator's is taken and given up; the loop_waker's inside the
 * calls of loop_waker.h.  Atomics: the word.
 */
#include "core/core.h"
#include "core/loop/post.h"

#include "base/self.h"
#include "base/text.h"

/* tell() of a reactor.  Any thread, as a reader inside c->stop.readers. */
static void
ring_loop(struct evc__listener *l)
{
	evc__loop_waker_ring((evc_reactor *)l);
}

/* ---- attach ---- */

/* Lock held. */
static evc_reactor *
find_reactor(const evc_coord *c, const struct ev_loop *loop)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.reactors)
		if (LIST_OF(n, evc_reactor, node)->loop == loop)
			return LIST_OF(n, evc_reactor, node);
	return NULL;
}

static void
reactor_free(evc_reactor *r)
{
	if (r != NULL)
		evc__inbox_drop(r->inbox);
	sync_free(r);
}

static evc_reactor *
reactor_new(evc_coord *c, const char *name)
{
	evc_reactor *r = sync_alloc(1, sizeof *r);
	evc_task *heads[TASK_LISTS];
	unsigned i;

	if (r == NULL)
		return NULL;
	r->inbox = evc__inbox_new(r);
	if (r->inbox == NULL) {
		sync_free(r);
		return NULL;
	}
	r->listener.tell = ring_loop;
	r->listener.joins = true;
	r->c = c;
	r->mark.c = c;
	evc__copy_dots(r->name, sizeof r->name, name);
	list_init(&r->node);
	list_init(&r->joins);
	memcpy(heads, (evc_task *[TASK_LISTS])TASK_HEADS(r), sizeof heads);
	for (i = 0; i < TASK_LISTS; i++)
		heads[i]->next_ = heads[i]->prev_ = heads[i];
	r->cursor = &r->tasks;
	return r;
}

/* Put r into c's table and list, and on its loop_waker; the owner of a
   loop_waker watches the loop from now on.  All that can fail comes before the
   loop is touched. */
static evc_status
enlist_reactor(evc_reactor *r)
{
	evc_coord *c = r->c;
	const char *why = NULL;

	sync_lock(&c->lock);
	if (r->loop == NULL)
		why = "the loop was detached or destroyed";
	else if (!evc__notify_set_reserve(&c->stop.listeners[LISTENS_JOINS]))
		why = "no memory for a listener";
	else if (r->owner && !evc__loop_waker_start(r->waker))
		why = "no descriptor for the loop's wake-up";
	else {
		evc__listen(c, &r->listener); /* there is room */
		list_append(&c->loop.reactors, &r->node);
	}
	sync_unlock(&c->lock);
	if (why != NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s", why);
	/* The listener is in the table before this look at the word.  So this
	   thread sees an earlier stop, and the walk of a later stop calls
	   tell(). */
	if (sync_load_sc(&c->word) & (WORD_FLAG | WORD_DRAIN))
		evc__reactor_poke(r);
	return 0;
}

/* Put r on lw and into the table, or free r. */
static evc_status
enlist_or_free(evc_reactor *r, struct evc__loop_waker *lw, evc_reactor **ret)
{
	evc_status st;

	if (!evc__loop_waker_join(lw, r)) {
		st = evc__refuse(lw->lost ? -EVC_FAILED_PRECONDITION :
					   -EVC_RESOURCE_EXHAUSTED,
				 lw->lost ? "the loop was detached or destroyed" :
					   "no memory for a reactor");
		if (r->owner)
			evc__loop_waker_free(lw);
		reactor_free(r);
		return st;
	}
	st = enlist_reactor(r);
	if (st < 0) {
		evc__loop_waker_leave(r);
		reactor_free(r);
		return st;
	}
	if (ret != NULL)
		*ret = r;
	return 0;
}

evc_status
evc__reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		    struct evc__host *host, evc_reactor **ret)
{
	struct evc__loop_waker *lw;
	evc_reactor *r;

	sync_lock(&c->lock);
	r = find_reactor(c, loop);
	sync_unlock(&c->lock);
	if (r != NULL)
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "this loop is attached as %s", r->name);
	r = reactor_new(c, name);
	lw = r != NULL ? evc__loop_waker_new(loop, host) : NULL;
	if (lw == NULL) {
		reactor_free(r);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no memory for a reactor");
	}
	r->owner = true;
	return enlist_or_free(r, lw, ret);
}

evc_status
evc__reactor_share(evc_coord *c, evc_reactor *with,
		   _Atomic(evc_reactor *) *ret)
{
	evc_reactor *r = reactor_new(c, with->name);
	evc_status st;

	if (r == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no memory for a reactor");
	/* *ret is set before r is on the loop_waker: afterwards the loop may
	   turn r on another thread, and look whether r is the home. */
	sync_store(ret, r);
	st = enlist_or_free(r, with->waker, NULL);
	if (st < 0)
		sync_store(ret, NULL);
	return st;
}

evc_status
evc_reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		   evc_reactor **ret_reactor)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0 && (loop == NULL || ret_reactor == NULL))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_reactor_attach: no loop, or no place for "
				 "the reactor");
	if (st == 0)
		st = evc__reactor_attach(c, name != NULL ? name : "loop", loop,
					 NULL, ret_reactor);
	return evc__refuse_setup(c, __func__, st);
}

/* ---- detach ---- */

bool
evc__reactor_lost(evc_reactor *r)
{
	evc_coord *c = r->c;
	struct evc__frame f = { r->frames, false };
	struct ev_loop *loop = r->loop;

	sync_lock(&c->lock);
	evc__unlisten(c, &r->listener);
	evc__hooks_drop(c, r);
	if (c->member.driver != NULL)
		c->member.driver->orphan(c, r);
	r->loop = NULL;
	/* While r is leaving, no other thread can free c. */
	r->leaving = true;
	sync_unlock(&c->lock);
	evc__inbox_shut(r->inbox);
	r->frames = &f;
	evc__inbox_empty(r->inbox, c);
	if (f.gone)
		return false;
	if (r->task_ops != NULL)
		r->task_ops->drop(r);
	if (r->looper_ops != NULL)
		r->looper_ops->drop(r);
	c->tree->upper->cancel_joins(r, loop, &f);
	if (f.gone)
		return false;
	r->frames = f.up;
	if (!r->owner)
		evc__reactor_left(r);
	return true;
}

void
evc__reactor_left(evc_reactor *r)
{
	evc_coord *c = r->c;

	sync_lock(&c->lock);
	r->leaving = false;
	sync_unlock(&c->lock);
}

void
evc__reactor_release(evc_reactor *r)
{
	evc_coord *c = r->c;
	struct evc__frame *f;

	evc__reactor_host_runs(r, false);
	evc__inbox_shut(r->inbox);
	sync_lock(&c->lock);
	if (r->loop != NULL)
		evc__unlisten(c, &r->listener);
	evc__hooks_drop(c, r);
	if (c->member.driver != NULL)
		c->member.driver->orphan(c, r);
	list_remove(&r->node);
	evc__mark_leaves(c, &r->mark);
	sync_unlock(&c->lock);
	if (r->looper_ops != NULL)
		r->looper_ops->drop(r); /* loopers that never started */
	evc__busy_forget(r);
	if (r->owner)
		evc__loop_waker_stop(r->waker);
	evc__loop_waker_leave(r);
	/* If this is not the loop's thread, evc__loop_waker_leave has waited
	   until r has no frames. */
	for (f = r->frames; f != NULL; f = f->up)
		f->gone = true;
	/* The home goes only when c is being freed; coordinators above may
	   still look at c. */
	sync_lock(&c->lock);
	if (evc__home(c) == r)
		sync_store(&c->loop.home, NULL);
	sync_unlock(&c->lock);
	evc__inbox_empty(r->inbox, c);
	reactor_free(r);
}

/* The helper calls `ended`, and ends drains, in place of the home.  false: no
   helper. */
static bool
leave_home(evc_coord *c)
{
	bool left;

	sync_lock(&c->lock);
	left = sync_load(&c->join.scope_join) == NULL ||
	       evc__helper_need(c, false);
	sync_unlock(&c->lock);
	return left;
}

evc_status
evc_reactor_detach(evc_reactor *r)
{
	evc_status st;
	const char *why = NULL;
	evc_coord *c;

	if (r == NULL)
		return 0;
	st = evc__check(r->c, __func__);
	if (st < 0)
		return st;
	if (r->tid != evc__tid())
		why = "another thread's loop";
	else if (r == evc__home(r->c) && !r->hosted)
		why = "the home stays until evc_free";
	else if (r->frames != NULL)
		why = "inside one of its own callbacks";
	else if (r->n_live > 0)
		why = "it has live tasks";
	else if (evc__reactor_loopers(r) > 0)
		why = "it has live loopers";
	else if (!list_empty(&r->joins) || r->driver != NULL)
		why = "a join runs on it";
	else if (evc__loop_waker_shared(r->waker))
		why = "scopes live on it";
	if (why != NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_reactor_detach: %s", why);
	c = r->c;
	if (r == evc__home(c) && !leave_home(c))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_reactor_detach: no memory or no helper "
				   "thread");
	evc__reactor_release(r);
	evc__later_run(c);
	return 0;
}
