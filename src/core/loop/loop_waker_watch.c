/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that the library has on a loop: the watchers of the loop_waker,
 * references, and the watchers that other rooms have on the loop for a time.
 * This file knows all of them, because a fork child that keeps the loop must
 * take all off without other data: other threads may have been changing the
 * coordinators that the child has copies of.
 *
 * Called by: loop_waker.c, joins, runs, members with watchers; libev.
 * Locks: none; the lists belong to the loop's thread.
 */
#include "core/core.h"
#include "core/loop/host.h"
#include "core/loop/reaped.h"

void
evc__loop_waker_ref(struct evc__loop_waker *lw, bool yes)
{
	if (lw->loop == NULL)
		return; /* a fork child has given the references back */
	lw->refs += yes ? 1 : -1;
	if (yes)
		ev_ref(lw->loop);
	else
		ev_unref(lw->loop);
}

void
evc__stand_begin(struct evc__stand *s, struct evc__loop_waker *lw)
{
	s->waker = lw;
	list_append(&lw->stands, &s->node);
}

void
evc__stand_end(struct evc__stand *s)
{
	list_remove(&s->node);
}

/* Store the time of each iteration, when libev knows its events and has served
   none.  A report then measures the silence of the loop from the begin of the
   iteration. */
static void
on_check(struct ev_loop *loop, ev_check *w, int revents)
{
	struct evc__loop_waker *lw = w->data;

	(void)revents;
	if (evc__loop_waker_inherited(lw))
		return;
	sync_store_relaxed(&lw->turned, (uint64_t)(ev_now(loop) * 1e9));
	sync_store_relaxed(&lw->rests, false);
	sync_store_relaxed(&lw->n_turns, sync_load_relaxed(&lw->n_turns) + 1);
	lw->began = sync_mono_coarse();
	if (lw->host != NULL)
		evc__host_feed(lw->host, &lw->async);
}

/* The coarse clock moves once in so long, or more often. */
#define TICK_NS UINT64_C(10000000)

/* A turn during which the coarse clock has not moved is short, and is not
   measured.  Other turns are measured from ev_now, which costs no look at a
   clock at their begin; the coarse clock shows whether the wall clock was set
   meanwhile. */
void
evc__loop_waker_measure(struct evc__loop_waker *lw)
{
	uint64_t coarse, took;

	if (lw->began == 0)
		return;
	coarse = sync_mono_coarse() - lw->began;
	if (coarse == 0)
		return;
	took = sync_real() - sync_load_relaxed(&lw->turned);
	/* Below 0 is above, too. */
	if (took > coarse + TICK_NS || took + TICK_NS < coarse)
		took = coarse;
	if (took > sync_load_relaxed(&lw->longest))
		sync_store_relaxed(&lw->longest, took);
}

/* The loop is about to wait for events. */
static void
on_rest(struct ev_loop *loop, ev_prepare *w, int revents)
{
	struct evc__loop_waker *lw = w->data;

	(void)loop;
	(void)revents;
	if (evc__loop_waker_inherited(lw))
		return;
	evc__loop_waker_measure(lw);
	sync_store_relaxed(&lw->rests, true);
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

static void
on_child(struct ev_loop *loop, ev_child *w, int revents)
{
	struct evc__loop_waker *lw =
		LIST_OF(w, struct evc__loop_waker, reaped);

	(void)loop;
	(void)revents;
	if (!evc__loop_waker_inherited(lw))
		evc__reaped_note(w);
}

void
evc__loop_waker_watch_nested(struct evc__loop_waker *lw)
{
	if (ev_is_active(&lw->nested))
		return;
	ev_prepare_start(lw->loop, &lw->nested);
	ev_unref(lw->loop);
}

void
evc__loop_waker_unwatch_nested(struct evc__loop_waker *lw)
{
	if (!ev_is_active(&lw->nested))
		return;
	ev_ref(lw->loop);
	ev_prepare_stop(lw->loop, &lw->nested);
}

/* A function of the user's has run the loop.  The present calls (frames) have
   cleared the marks of reactors with work that is not done yet; the new run has
   to do this work, so mark and send again.  Later work sends the ev_async
   itself. */
static void
on_nested(struct ev_loop *loop, ev_prepare *w, int revents)
{
	struct evc__loop_waker *lw = w->data;
	struct evc__loop_waker_frame *f;

	(void)loop;
	(void)revents;
	if (evc__loop_waker_inherited(lw))
		return;
	evc__loop_waker_unwatch_nested(lw);
	for (f = lw->frames; f != NULL; f = f->up)
		if (f->r != NULL)
			evc__notify_mark(&f->r->at);
	evc__loop_waker_send(lw);
}

/* Start the watchers without a reference, so that they keep no ev_run going.
   ev_cleanup, which is started elsewhere, needs no ev_unref.  On a hosted loop
   the host takes the place of the ev_async, and tells the end of a turn. */
void
evc__loop_waker_watch(struct evc__loop_waker *lw,
		      void (*on_async)(struct ev_loop *loop, ev_async *w,
				       int revents))
{
	struct ev_loop *loop = lw->loop;

	evc__depth_watch();
	ev_async_init(&lw->async, on_async);
	ev_set_priority(&lw->async, EV_MAXPRI);
	lw->async.data = lw;
	if (lw->host == NULL) {
		ev_async_start(loop, &lw->async);
		ev_unref(loop);
	}
	ev_check_init(&lw->check, on_check);
	ev_set_priority(&lw->check, EV_MAXPRI);
	lw->check.data = lw;
	ev_check_start(loop, &lw->check);
	ev_unref(loop);
	ev_fork_init(&lw->forked, on_fork);
	lw->forked.data = lw;
	ev_fork_start(loop, &lw->forked);
	ev_unref(loop);
	evc__reaped_watch(&lw->reaped, loop, on_child);
	ev_prepare_init(&lw->rest, on_rest);
	ev_set_priority(&lw->rest, EV_MINPRI);
	lw->rest.data = lw;
	if (lw->host == NULL) {
		ev_prepare_start(loop, &lw->rest);
		ev_unref(loop);
	}
	ev_prepare_init(&lw->nested, on_nested);
	ev_set_priority(&lw->nested, EV_MAXPRI);
	lw->nested.data = lw;
	/* A start and a stop now make libev allocate; at a stop no memory is
	   needed. */
	evc__loop_waker_watch_nested(lw);
	evc__loop_waker_unwatch_nested(lw);
}

/* A host that a fork child has inherited stays, and does nothing. */
static void
end_host(struct evc__loop_waker *lw)
{
	struct evc__host *h = lw->host;

	(void)ev_clear_pending(h->loop, &lw->async);
	lw->host = NULL;
	if (!evc__forked_since(h->fork_generation))
		evc__host_end(h);
}

void
evc__loop_waker_unwatch(struct evc__loop_waker *lw)
{
	struct ev_loop *loop = lw->loop;

	evc__loop_waker_unwatch_nested(lw);
	evc__reaped_unwatch(&lw->reaped, loop,
			    evc__forked_since(lw->fork_generation));
	ev_ref(loop);
	ev_fork_stop(loop, &lw->forked);
	ev_ref(loop);
	ev_check_stop(loop, &lw->check);
	if (lw->host != NULL) {
		end_host(lw);
	} else {
		ev_ref(loop);
		ev_prepare_stop(loop, &lw->rest);
		ev_ref(loop);
		ev_async_stop(loop, &lw->async);
	}
	lw->loop = NULL;
}

/* ---- fork children ---- */

bool
evc__loop_waker_inherited(struct evc__loop_waker *lw)
{
	struct ev_loop *loop = lw->loop;
	struct list *n, *tmp;

	if (sync_load_relaxed(&evc__fork_generation) == lw->fork_generation)
		return false;
	lw->frames = NULL;
	if (loop == NULL)
		return true;
	LIST_EACH(n, tmp, &lw->stands)
	{
		list_remove(n);
		LIST_OF(n, struct evc__stand, node)
			->leave(LIST_OF(n, struct evc__stand, node), loop);
	}
	while (lw->refs > 0)
		evc__loop_waker_ref(lw, false);
	ev_cleanup_stop(loop, &lw->cleanup);
	evc__loop_waker_unwatch(lw);
	return true;
}
