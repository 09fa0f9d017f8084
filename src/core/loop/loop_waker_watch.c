/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that the library has on a loop: the watchers of its loop_waker,
 * references, and the watchers that other rooms have there for a time.  All is
 * known here, because a fork child that keeps the loop must take all of it off
 * without help: the child has copies of coordinators that other threads may
 * have been changing.
 *
 * Called by: loop_waker.c, joins, runs, members with watchers; libev.
 * Locks: none; the lists belong to the loop's thread.
 */
#include "core/core.h"

void
evc__loop_waker_ref(struct evc__loop_waker *b, bool yes)
{
	if (b->loop == NULL)
		return; /* a fork child has given the references back */
	b->refs += yes ? 1 : -1;
	if (yes)
		ev_ref(b->loop);
	else
		ev_unref(b->loop);
}

void
evc__stand_begin(struct evc__stand *s, struct evc__loop_waker *b)
{
	s->b = b;
	list_append(&b->stands, &s->node);
}

void
evc__stand_end(struct evc__stand *s)
{
	list_remove(&s->node);
}

/* Stored at each iteration, when its events are known and none was served: so a
   silence of the loop is measured from its begin. */
static void
on_beat(struct ev_loop *loop, ev_check *w, int revents)
{
	struct evc__loop_waker *b = w->data;

	(void)revents;
	if (evc__loop_waker_inherited(b))
		return;
	sync_store_relaxed(&b->turned, (uint64_t)(ev_now(loop) * 1e9));
}

/* In a child, at the loop's first turn after ev_loop_fork: before any wait. */
static void
on_fork(struct ev_loop *loop, ev_fork *w, int revents)
{
	(void)loop;
	(void)revents;
	/* A loop that was attached in the child gets the event, too. */
	(void)evc__loop_waker_inherited(w->data);
}

void
evc__loop_waker_watch_nested(struct evc__loop_waker *b)
{
	if (ev_is_active(&b->nested))
		return;
	ev_prepare_start(b->loop, &b->nested);
	ev_unref(b->loop);
}

void
evc__loop_waker_unwatch_nested(struct evc__loop_waker *b)
{
	if (!ev_is_active(&b->nested))
		return;
	ev_ref(b->loop);
	ev_prepare_stop(b->loop, &b->nested);
}

/* Work that the present stretches have taken and not done yet is for the new
   run as well: ring for all such work again.  Later work rings by itself. */
static void
on_nested(struct ev_loop *loop, ev_prepare *w, int revents)
{
	struct evc__loop_waker *b = w->data;
	struct evc__loop_waker_frame *f;

	(void)loop;
	(void)revents;
	if (evc__loop_waker_inherited(b))
		return;
	evc__loop_waker_unwatch_nested(b);
	for (f = b->frames; f != NULL; f = f->up)
		if (f->r != NULL)
			evc__notify_mark(&f->r->at);
	evc__loop_waker_send(b);
}

/* Three watchers that keep no ev_run alive; ev_cleanup, the fourth, keeps none
   anyway. */
void
evc__loop_waker_watch(struct evc__loop_waker *b,
		      void (*on_async)(struct ev_loop *loop, ev_async *w,
				       int revents))
{
	struct ev_loop *loop = b->loop;

	evc__depth_watch();
	ev_async_init(&b->async, on_async);
	ev_set_priority(&b->async, EV_MAXPRI);
	b->async.data = b;
	ev_async_start(loop, &b->async);
	ev_unref(loop);
	ev_check_init(&b->beat, on_beat);
	ev_set_priority(&b->beat, EV_MAXPRI);
	b->beat.data = b;
	ev_check_start(loop, &b->beat);
	ev_unref(loop);
	ev_fork_init(&b->forked, on_fork);
	b->forked.data = b;
	ev_fork_start(loop, &b->forked);
	ev_unref(loop);
	ev_prepare_init(&b->nested, on_nested);
	ev_set_priority(&b->nested, EV_MAXPRI);
	b->nested.data = b;
	/* Once now, so that libev has the memory at a stop. */
	evc__loop_waker_watch_nested(b);
	evc__loop_waker_unwatch_nested(b);
}

void
evc__loop_waker_unwatch(struct evc__loop_waker *b)
{
	struct ev_loop *loop = b->loop;

	evc__loop_waker_unwatch_nested(b);
	ev_ref(loop);
	ev_fork_stop(loop, &b->forked);
	ev_ref(loop);
	ev_check_stop(loop, &b->beat);
	ev_ref(loop);
	ev_async_stop(loop, &b->async);
	b->loop = NULL;
}

/* ---- fork children ---- */

bool
evc__loop_waker_inherited(struct evc__loop_waker *b)
{
	struct ev_loop *loop = b->loop;
	struct list *n, *tmp;

	if (sync_load_relaxed(&evc__fork_generation) == b->fork_generation)
		return false;
	b->frames = NULL;
	if (loop == NULL)
		return true;
	LIST_EACH(n, tmp, &b->stands)
	{
		list_remove(n);
		LIST_OF(n, struct evc__stand, node)
			->leave(LIST_OF(n, struct evc__stand, node), loop);
	}
	while (b->refs > 0)
		evc__loop_waker_ref(b, false);
	ev_cleanup_stop(loop, &b->cleanup);
	evc__loop_waker_unwatch(b);
	return true;
}
