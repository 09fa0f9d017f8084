/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The waker of a loop: a ring marks a reactor in the notify_set and sends the
 * ev_async, and the callback of the ev_async turns the marked reactors.
 *
 * Called by: attach.c, post.c, the tell() of reactors, joins; libev's
 * callbacks.
 * Locks: the loop_waker's own, a leaf; the loop's thread alone touches libev.
 * Atomics: `turning` of a reactor, `busy`, `marked`.
 */
#include "core/core.h"
#include "core/loop/host.h"
#include "core/loop/post.h"

#include "base/self.h"

/* Is a descriptor left?  libev needs a descriptor for the wake-up of the loop,
   and aborts without. */
static bool
descriptor_left(void)
{
	int fd = sync_eventfd();

	if (fd < 0)
		return false;
	sync_fd_close(fd);
	return true;
}

void
evc__loop_waker_pin(evc_reactor *r)
{
	sync_add(&r->turning, 1);
}

void
evc__loop_waker_unpin(evc_reactor *r)
{
	if (sync_sub(&r->turning, 1) == 1 && r->awaited)
		sync_futex_wake(&r->turning);
}

/* Loop thread: end the remains of reactors that other threads have detached. */
static void
end_leftovers(struct evc__loop_waker *lw)
{
	struct evc__leftover *l, *next;

	sync_lock(&lw->lock);
	l = lw->leftovers;
	lw->leftovers = NULL;
	sync_unlock(&lw->lock);
	for (; l != NULL; l = next) {
		next = l->next;
		l->end(l);
	}
}

void
evc__loop_waker_turn(evc_reactor *r)
{
	struct evc__loop_waker *lw = r->waker;

	sync_lock(&lw->lock);
	evc__loop_waker_pin(r);
	sync_unlock(&lw->lock);
	if (!r->c->tree->upper->turn(r))
		return;
	/* turn() was true, so r and the loop_waker still exist. */
	sync_lock(&lw->lock);
	evc__loop_waker_unpin(r);
	sync_unlock(&lw->lock);
}

/* Loop thread: turn all marked reactors.  false: the loop_waker is gone. */
static bool
turn_marked(struct evc__loop_waker *lw, struct evc__loop_waker_frame *f)
{
	struct notify_cursor at = { NULL, 0 };
	evc_reactor *r;

	sync_lock(&lw->lock);
	while ((r = evc__notify_set_next(&lw->reactors, &at)) != NULL) {
		evc__loop_waker_pin(r);
		sync_unlock(&lw->lock);
		f->r = r;
		/* If turn() runs the loop, on_nested makes the inner run do the
		   rest of this pass. */
		evc__loop_waker_watch_nested(lw);
		if (!r->c->tree->upper->turn(r))
			r = NULL;
		if (f->gone)
			return false;
		f->r = NULL;
		sync_lock(&lw->lock);
		if (r != NULL)
			evc__loop_waker_unpin(r);
	}
	sync_unlock(&lw->lock);
	return true;
}

/* Loop thread: the loop turns, and the watchdog has asked whether it does. */
static void
answer(struct evc__loop_waker *lw)
{
	evc_coord *c = lw->owner->c;

	if (!sync_xchg(&lw->asked, false))
		return;
	while (c->parent != NULL)
		c = c->parent;
	evc__helper_ring(c);
}

static void
on_async(struct ev_loop *loop, ev_async *w, int revents)
{
	struct evc__loop_waker *lw = w->data;
	struct evc__loop_waker_frame f = { lw->frames, false, NULL };
	bool watched = ev_is_active(&lw->nested);

	(void)loop;
	(void)revents;
	if (evc__loop_waker_inherited(lw))
		return;
	lw->frames = &f;
	if (sync_load_relaxed(&lw->asked))
		answer(lw);
	end_leftovers(lw);
	/* Posts come after the reactors, because a stop has the highest
	   priority. */
	if (!turn_marked(lw, &f))
		return;
	evc__loop_waker_watch_nested(lw);
	if (!evc__inboxes_serve(lw, &f))
		return;
	if (!watched)
		evc__loop_waker_unwatch_nested(lw);
	lw->frames = f.up;
}

/* Loop thread: pin and return the first reactor from *at on, and move *at;
   NULL: none is left.  The reactor before, if not NULL, is unpinned; the caller
   passes NULL when that reactor is gone. */
static evc_reactor *
next_reactor(struct evc__loop_waker *lw, struct notify_place *at,
	     evc_reactor *before)
{
	evc_reactor *r = NULL;

	sync_lock(&lw->lock);
	if (before != NULL)
		evc__loop_waker_unpin(before);
	while (at->k != NULL && r == NULL)
		if (at->i < at->k->n) {
			r = sync_load(&at->k->slot[at->i]);
			at->i++;
		} else {
			at->k = sync_load(&at->k->next);
			at->i = 0;
		}
	if (r != NULL)
		evc__loop_waker_pin(r);
	sync_unlock(&lw->lock);
	return r;
}

bool
evc__loop_waker_any(struct evc__loop_waker *lw, bool (*fn)(evc_reactor *r))
{
	struct notify_place at = { sync_load(&lw->reactors.first), 0 };
	evc_reactor *r = NULL;
	bool any = false;

	while ((r = next_reactor(lw, &at, r)) != NULL)
		any = any || fn(r);
	return any;
}

/* Loop thread: the owner loses the loop, or, with owner false, all other
   reactors lose the loop. */
static void
lose_loop(struct evc__loop_waker *lw, const struct evc__loop_waker_frame *f,
	  bool owner)
{
	struct notify_place at = { sync_load(&lw->reactors.first), 0 };
	evc_reactor *r = NULL;

	while ((r = next_reactor(lw, &at, r)) != NULL) {
		if (r->owner == owner && r->loop != NULL &&
		    !evc__reactor_lost(r))
			r = NULL;
		if (f->gone)
			return;
	}
}

/* ev_loop_destroy is running: all that lived on the loop has ended. */
static void
on_loop_destroy(struct ev_loop *loop, ev_cleanup *w, int revents)
{
	struct evc__loop_waker *lw = w->data;
	struct evc__loop_waker_frame f = { lw->frames, false, NULL };
	evc_reactor *owner = lw->owner;

	(void)loop;
	(void)revents;
	if (evc__loop_waker_inherited(lw))
		return;
	lw->frames = &f;
	sync_lock(&lw->lock);
	lw->lost = true;
	sync_unlock(&lw->lock);
	/* The owner comes last, because its coordinator outlives the
	   coordinators of the other reactors. */
	lose_loop(lw, &f, false);
	if (!f.gone)
		lose_loop(lw, &f, true);
	if (f.gone)
		return;
	end_leftovers(lw);
	/* All reactors have lost the loop, so no thread sends the ev_async any
	   more. */
	evc__loop_waker_unwatch(lw);
	lw->frames = f.up;
	/* The last use of the loop_waker: another thread may free lw
	   afterwards. */
	evc__reactor_left(owner);
}

void
evc__loop_waker_strand(evc_reactor *owner)
{
	struct evc__loop_waker *lw = owner->waker;
	struct evc__loop_waker_frame f = { lw->frames, false, NULL };

	lw->frames = &f;
	sync_lock(&lw->lock);
	lw->lost = true;
	sync_unlock(&lw->lock);
	lose_loop(lw, &f, false);
	if (!f.gone)
		lw->frames = f.up;
}

void
evc__loop_waker_abandon(struct evc__loop_waker *lw)
{
	evc_reactor *owner = lw->owner;

	evc__loop_waker_strand(owner);
	(void)evc__reactor_lost(owner);
	evc__loop_waker_stop(lw);
	evc__reactor_left(owner);
}

struct evc__loop_waker *
evc__loop_waker_new(struct ev_loop *loop, struct evc__host *host)
{
	struct evc__loop_waker *lw = sync_alloc(1, sizeof *lw);

	if (lw == NULL)
		return NULL;
	lw->tid = evc__tid();
	evc__self_has_loop = true;
	lw->fork_generation = sync_load_relaxed(&evc__fork_generation);
	lw->loop = loop;
	lw->host = host;
	if (host != NULL)
		host->waker = lw;
	lw->inboxes_end = &lw->inboxes;
	list_init(&lw->stands);
	sync_lock_init(&lw->lock);
	return lw;
}

bool
evc__loop_waker_start(struct evc__loop_waker *lw)
{
	struct ev_loop *loop = lw->loop;

	if (lw->host == NULL && !descriptor_left())
		return false;
	evc__loop_waker_watch(lw, on_async);
	/* Grow libev's list of pending events now, so that no dispatch that a
	   stop causes allocates. */
	ev_feed_event(loop, &lw->check, EV_CHECK);
	ev_feed_event(loop, &lw->async, EV_ASYNC);
	ev_feed_event(loop, &lw->rest, EV_PREPARE);
	ev_clear_pending(loop, &lw->rest);
	ev_clear_pending(loop, &lw->async);
	ev_clear_pending(loop, &lw->check);
	ev_cleanup_init(&lw->cleanup, on_loop_destroy);
	lw->cleanup.data = lw;
	ev_cleanup_start(loop, &lw->cleanup);
	return true;
}

void
evc__loop_waker_stop(struct evc__loop_waker *lw)
{
	struct evc__loop_waker_frame *f;

	for (f = lw->frames; f != NULL; f = f->up)
		f->gone = true;
	lw->frames = NULL;
	if (lw->loop == NULL)
		return;
	end_leftovers(lw);
	ev_cleanup_stop(lw->loop, &lw->cleanup);
	evc__loop_waker_unwatch(lw);
}

void
evc__loop_waker_free(struct evc__loop_waker *lw)
{
	evc__inboxes_drop(lw);
	evc__notify_set_free(&lw->reactors);
	sync_lock_destroy(&lw->lock);
	sync_free(lw);
}

bool
evc__loop_waker_join(struct evc__loop_waker *lw, evc_reactor *r)
{
	bool in;

	sync_lock(&lw->lock);
	in = !lw->lost && evc__notify_set_add(&lw->reactors, r, &r->at);
	if (in) {
		r->waker = lw;
		lw->owner = r->owner ? r : lw->owner;
		r->loop = lw->loop;
		r->hosted = lw->host != NULL;
		r->tid = lw->tid;
		lw->n++;
	}
	sync_unlock(&lw->lock);
	return in;
}

void
evc__loop_waker_leave(evc_reactor *r)
{
	struct evc__loop_waker *lw = r->waker;
	struct evc__loop_waker_frame *f;
	uint32_t n;
	bool last;

	sync_lock(&lw->lock);
	while (lw->tid != evc__tid() && (n = sync_load_sc(&r->turning)) > 0) {
		r->awaited = true;
		sync_unlock(&lw->lock);
		sync_futex_wait(&r->turning, n, SYNC_FOREVER);
		sync_lock(&lw->lock);
	}
	/* Frames belong to the loop's thread.  Another thread has waited above
	   until no frame has r. */
	for (f = lw->tid == evc__tid() ? lw->frames : NULL; f != NULL;
	     f = f->up)
		f->r = f->r == r ? NULL : f->r;
	/* The removal comes after the wait, because a turn in progress may mark
	   r once more. */
	evc__notify_set_remove(&lw->reactors, &r->at);
	r->inbox->r = NULL;
	last = --lw->n == 0;
	sync_unlock(&lw->lock);
	if (last)
		evc__loop_waker_free(lw);
}

bool
evc__loop_waker_shared(struct evc__loop_waker *lw)
{
	bool yes;

	sync_lock(&lw->lock);
	yes = lw->n > 1 && !lw->lost;
	sync_unlock(&lw->lock);
	return yes;
}

void
evc__loop_waker_send(struct evc__loop_waker *lw)
{
	int old;

	/* In a fork child the ev_async shares a descriptor with the parent
	   process, so a send would wake the parent's loop. */
	if (sync_load_relaxed(&evc__fork_generation) != lw->fork_generation)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	if (lw->host != NULL)
		evc__host_ring(lw->host);
	else
		ev_async_send(lw->loop, &lw->async);
	pthread_setcancelstate(old, NULL);
}

void
evc__loop_waker_ask(struct evc__loop_waker *lw)
{
	sync_store_sc(&lw->asked, true);
	evc__loop_waker_send(lw);
}

void
evc__loop_waker_ring(evc_reactor *r)
{
	evc__notify_mark(&r->at);
	evc__loop_waker_send(r->waker);
}

void
evc__loop_waker_leave_behind(evc_reactor *r, struct evc__leftover *l)
{
	struct evc__loop_waker *lw = r->waker;

	sync_lock(&lw->lock);
	l->next = lw->leftovers;
	lw->leftovers = l;
	sync_unlock(&lw->lock);
	evc__loop_waker_send(lw);
}
