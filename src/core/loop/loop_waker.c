/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The waker of a loop: rings the loop, and turns the reactors that are marked
 * in its notify_set.
 *
 * Called by: attach.c, post.c, the tell() of reactors, joins; libev's
 * callbacks.
 * Locks: the loop_waker's own, a leaf; the loop's thread alone touches libev.
 * Atomics: `turning` of a reactor, `busy`, `marked`.
 */
#include "core/core.h"
#include "core/loop/post.h"

#include "base/self.h"

/* libev aborts when there is no descriptor left for the loop's wake-up: look
   beforehand. */
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

/* Loop thread. */
static void
end_leftovers(struct evc__loop_waker *b)
{
	struct evc__leftover *l, *next;

	sync_lock(&b->lock);
	l = b->leftovers;
	b->leftovers = NULL;
	sync_unlock(&b->lock);
	for (; l != NULL; l = next) {
		next = l->next;
		l->end(l);
	}
}

void
evc__loop_waker_turn(evc_reactor *r)
{
	struct evc__loop_waker *b = r->waker;

	sync_lock(&b->lock);
	evc__loop_waker_pin(r);
	sync_unlock(&b->lock);
	if (!r->c->tree->upper->turn(r))
		return;
	/* r is still there, and so is the loop_waker. */
	sync_lock(&b->lock);
	evc__loop_waker_unpin(r);
	sync_unlock(&b->lock);
}

/* Loop thread: turn all marked reactors.  false: the loop_waker is gone. */
static bool
turn_marked(struct evc__loop_waker *b, struct evc__loop_waker_frame *f)
{
	struct notify_cursor at = { NULL, 0 };
	evc_reactor *r;

	sync_lock(&b->lock);
	while ((r = evc__notify_set_next(&b->reactors, &at)) != NULL) {
		evc__loop_waker_pin(r);
		sync_unlock(&b->lock);
		f->r = r;
		evc__loop_waker_watch_nested(b);
		if (!r->c->tree->upper->turn(r))
			r = NULL;
		if (f->gone)
			return false;
		f->r = NULL;
		sync_lock(&b->lock);
		if (r != NULL)
			evc__loop_waker_unpin(r);
	}
	sync_unlock(&b->lock);
	return true;
}

static void
on_async(struct ev_loop *loop, ev_async *w, int revents)
{
	struct evc__loop_waker *b = w->data;
	struct evc__loop_waker_frame f = { b->frames, false, NULL };
	bool watched = ev_is_active(&b->nested);

	(void)loop;
	(void)revents;
	if (evc__loop_waker_inherited(b))
		return;
	b->frames = &f;
	end_leftovers(b);
	/* Posts after the stop, which has the highest priority. */
	if (!turn_marked(b, &f))
		return;
	evc__loop_waker_watch_nested(b);
	if (!evc__inboxes_serve(b, &f))
		return;
	if (!watched)
		evc__loop_waker_unwatch_nested(b);
	b->frames = f.up;
}

/* Loop thread: the reactor after *at in the notify_set, pinned; the reactor
   before, unless gone, is unpinned. */
static evc_reactor *
next_on(struct evc__loop_waker *b, struct notify_place *at, evc_reactor *before)
{
	evc_reactor *r = NULL;

	sync_lock(&b->lock);
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
	sync_unlock(&b->lock);
	return r;
}

bool
evc__loop_waker_any(struct evc__loop_waker *b, bool (*fn)(evc_reactor *r))
{
	struct notify_place at = { sync_load(&b->reactors.first), 0 };
	evc_reactor *r = NULL;
	bool any = false;

	while ((r = next_on(b, &at, r)) != NULL)
		any = any || fn(r);
	return any;
}

/* Loop thread: the loop is gone for all reactors, or for all but the owner. */
static void
lose(struct evc__loop_waker *b, const struct evc__loop_waker_frame *f,
     bool owner)
{
	struct notify_place at = { sync_load(&b->reactors.first), 0 };
	evc_reactor *r = NULL;

	while ((r = next_on(b, &at, r)) != NULL) {
		if (r->owner == owner && r->loop != NULL &&
		    !evc__reactor_lost(r))
			r = NULL;
		if (f->gone)
			return;
	}
}

/* ev_loop_destroy was called: all that lived on the loop has ended. */
static void
on_cleanup(struct ev_loop *loop, ev_cleanup *w, int revents)
{
	struct evc__loop_waker *b = w->data;
	struct evc__loop_waker_frame f = { b->frames, false, NULL };
	evc_reactor *owner = b->owner;

	(void)loop;
	(void)revents;
	if (evc__loop_waker_inherited(b))
		return;
	b->frames = &f;
	sync_lock(&b->lock);
	b->lost = true;
	sync_unlock(&b->lock);
	/* The owner last: its coordinator outlives the others'. */
	lose(b, &f, false);
	if (!f.gone)
		lose(b, &f, true);
	if (f.gone)
		return;
	end_leftovers(b);
	/* No thread sends any more. */
	evc__loop_waker_unwatch(b);
	b->frames = f.up;
	/* The last touch of the loop_waker: another thread may now free b. */
	evc__reactor_left(owner);
}

void
evc__loop_waker_strand(evc_reactor *owner)
{
	struct evc__loop_waker *b = owner->waker;
	struct evc__loop_waker_frame f = { b->frames, false, NULL };

	b->frames = &f;
	sync_lock(&b->lock);
	b->lost = true;
	sync_unlock(&b->lock);
	lose(b, &f, false);
	if (!f.gone)
		b->frames = f.up;
}

void
evc__loop_waker_abandon(struct evc__loop_waker *b)
{
	evc_reactor *owner = b->owner;

	evc__loop_waker_strand(owner);
	(void)evc__reactor_lost(owner);
	evc__loop_waker_stop(b);
	evc__reactor_left(owner);
}

struct evc__loop_waker *
evc__loop_waker_new(struct ev_loop *loop)
{
	struct evc__loop_waker *b = sync_alloc(1, sizeof *b);

	if (b == NULL)
		return NULL;
	b->tid = evc__tid();
	evc__self_has_loop = true;
	b->fork_generation = sync_load_relaxed(&evc__fork_generation);
	b->loop = loop;
	b->inboxes_end = &b->inboxes;
	list_init(&b->stands);
	sync_lock_init(&b->lock);
	return b;
}

bool
evc__loop_waker_start(struct evc__loop_waker *b)
{
	struct ev_loop *loop = b->loop;

	if (!descriptor_left())
		return false;
	evc__loop_waker_watch(b, on_async);
	/* Grow libev's list of pending events now, so that no dispatch that a
	   stop causes allocates. */
	ev_feed_event(loop, &b->beat, EV_CHECK);
	ev_feed_event(loop, &b->async, EV_ASYNC);
	ev_clear_pending(loop, &b->async);
	ev_clear_pending(loop, &b->beat);
	ev_cleanup_init(&b->cleanup, on_cleanup);
	b->cleanup.data = b;
	ev_cleanup_start(loop, &b->cleanup);
	return true;
}

void
evc__loop_waker_stop(struct evc__loop_waker *b)
{
	struct evc__loop_waker_frame *f;

	for (f = b->frames; f != NULL; f = f->up)
		f->gone = true;
	b->frames = NULL;
	if (b->loop == NULL)
		return;
	end_leftovers(b);
	ev_cleanup_stop(b->loop, &b->cleanup);
	evc__loop_waker_unwatch(b);
}

void
evc__loop_waker_free(struct evc__loop_waker *b)
{
	evc__inboxes_drop(b);
	evc__notify_set_free(&b->reactors);
	sync_lock_destroy(&b->lock);
	sync_free(b);
}

bool
evc__loop_waker_join(struct evc__loop_waker *b, evc_reactor *r)
{
	bool in;

	sync_lock(&b->lock);
	in = !b->lost && evc__notify_set_add(&b->reactors, r, &r->at);
	if (in) {
		r->waker = b;
		b->owner = r->owner ? r : b->owner;
		r->loop = b->loop;
		r->tid = b->tid;
		b->n++;
	}
	sync_unlock(&b->lock);
	return in;
}

void
evc__loop_waker_leave(evc_reactor *r)
{
	struct evc__loop_waker *b = r->waker;
	struct evc__loop_waker_frame *f;
	uint32_t n;
	bool last;

	sync_lock(&b->lock);
	while (b->tid != evc__tid() && (n = sync_load_sc(&r->turning)) > 0) {
		r->awaited = true;
		sync_unlock(&b->lock);
		sync_futex_wait(&r->turning, n, SYNC_FOREVER);
		sync_lock(&b->lock);
	}
	/* Stretches of other threads have let go of r. */
	for (f = b->tid == evc__tid() ? b->frames : NULL; f != NULL; f = f->up)
		f->r = f->r == r ? NULL : f->r;
	/* Not earlier: a turn in progress may ring r once more. */
	evc__notify_set_remove(&b->reactors, &r->at);
	r->inbox->r = NULL;
	last = --b->n == 0;
	sync_unlock(&b->lock);
	if (last)
		evc__loop_waker_free(b);
}

bool
evc__loop_waker_shared(struct evc__loop_waker *b)
{
	bool yes;

	sync_lock(&b->lock);
	yes = b->n > 1 && !b->lost;
	sync_unlock(&b->lock);
	return yes;
}

void
evc__loop_waker_send(struct evc__loop_waker *b)
{
	int old;

	/* A fork child would ring its parent's loop. */
	if (sync_load_relaxed(&evc__fork_generation) != b->fork_generation)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	ev_async_send(b->loop, &b->async);
	pthread_setcancelstate(old, NULL);
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
	struct evc__loop_waker *b = r->waker;

	sync_lock(&b->lock);
	l->next = b->leftovers;
	b->leftovers = l;
	sync_unlock(&b->lock);
	evc__loop_waker_send(b);
}
