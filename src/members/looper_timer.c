/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ev_timer of the loopers on a loop.  The timer is set for the looper that
 * is due first.  A batch then runs each looper that was due at the begin of the
 * batch once, at most 4096 loopers; afterwards other watchers have their turn.
 * libev re-arms the timer before the callback: when a looper's function runs
 * the loop, the timer fires there and serves the other loopers.  An active
 * timer keeps ev_run going, but only foreground loopers may do so.  So the
 * timer is always ev_unref'd, and foreground loopers have an ev_ref.
 * Called by: the loop's thread; core, at a stop and a detach; looper_loop.c.
 * Locks: the coordinator's lock, and the refgate around the callback.
 */
#include "members/looper_loop.h"

#include "base/self.h"
#include "core/join/join.h"

/* Runs in a batch; then other watchers have their turn. */
#define SLICE 4096
/* A batch reads the precise clock at every eighth run. */
#define PRECISE 8
/* The longest time of the timer, in seconds; afterwards the timer is set
   again. */
#define FAR 1e6
/* Not 0, so that libev re-arms the timer; too short to matter. */
#define AT_ONCE 1e-9

/* ---- runs; lock held, released around the functions of loopers ---- */

/* Called before each run, when the run has used up its boundary: put the looper
   at its new place in the heap. */
TICK_PATH static void
place_before_run(struct evc__body *b)
{
	evc__loop_looper_place(LIST_OF(b, struct evc__looper, body));
}

/* End a looper: call opts.stop, report the result, remove the looper. */
static void
finish_looper(struct evc__looper *l, const struct evc__looper_who *w,
	      bool reported)
{
	l->body.bits |= LOOPER_RUNNING;
	evc__looper_finish(w, &l->body, reported);
	evc__loop_looper_end(l);
}

/* The time for the next run of a batch.  A read of the clock costs as much as
   the rest of a run.  So the returned time may be old: by a few short runs, or
   by the few milliseconds of the coarse clock. */
TICK_PATH static uint64_t
now_in_batch(struct evc__loopers *t, const struct evc__looper *l, unsigned nth)
{
	const struct evc__looper_more *more = l->body.more;
	uint64_t coarse;

	if (nth == 0)
		return t->now;
	/* With EVC_MISSED_DELAY the next boundary counts from the begin of this
	   run, so the time must be precise. */
	if (t->c->status.clock == NULL &&
	    (more == NULL || more->policy.missed != EVC_MISSED_DELAY)) {
		coarse = sync_mono_coarse();
		if (nth % PRECISE != 1 && coarse == t->coarse)
			return t->now;
		t->coarse = coarse;
	}
	return t->now = evc__now(t->c);
}

/* Serve a due looper, as number nth of the batch. */
TICK_PATH static void
serve_looper(struct evc__loopers *t, struct evc__looper *l, unsigned nth)
{
	struct evc__looper_who w = evc__loop_looper_who(l);
	bool reported = false, goes_on;

	/* ADRIFT: the place in the heap is out of date, until place_before_run.
	   If the looper is due inside its own run (a function has run the
	   loop), the looper waits for the end of that run. */
	l->body.bits |= LOOPER_ADRIFT;
	if (l->body.bits & LOOPER_RUNNING) {
		evc__heap_set(&t->heap, l, SCHEDULE_NEVER);
		return;
	}
	l->body.bits |= LOOPER_RUNNING;
	w.before_run = place_before_run;
	goes_on = !(l->body.bits & LOOPER_REMOVED) &&
		  evc__looper_serve(&w, &l->body, now_in_batch(t, l, nth),
				    &reported);
	if (!goes_on) {
		finish_looper(l, &w, reported);
		evc__ring(w.c);
		return;
	}
	l->body.bits &= ~(uint32_t)LOOPER_RUNNING;
	if (l->body.bits & LOOPER_ADRIFT)
		evc__loop_looper_place(l);
	/* evc__loopers_stop does not end a looper that runs, so the reactor
	   needs another turn. */
	if (evc_should_stop(w.c))
		evc__reactor_poke(evc__looper_reactor(l));
}

/* Put the loopers that were due again in the last batch back to their due
   times. */
TICK_PATH static void
place_again(struct evc__loopers *t)
{
	struct evc__looper *l, *next;

	l = t->again;
	t->again = NULL;
	for (; l != NULL; l = next) {
		next = l->again;
		l->body.bits &= ~(uint32_t)LOOPER_AGAIN;
		evc__heap_set(&t->heap, l, evc__looper_due(&l->body));
	}
}

TICK_PATH static void
batch(struct evc__loopers *t)
{
	unsigned n;

	place_again(t);
	t->now = evc__now(t->c);
	t->horizon = t->now < SCHEDULE_NEVER ? t->now : t->now - 1;
	t->depth++;
	for (n = 0; n < SLICE && evc__heap_first_due(&t->heap) <= t->horizon &&
		    !evc_should_stop(t->c) && evc__same_process(t->c);
	     n++) {
		/* Prefetch: memory delivers the second looper during this
		   run. */
		evc__heap_fetch_second(&t->heap);
		serve_looper(t, evc__heap_at(&t->heap, 0), n);
	}
	t->depth--;
}

static void
timer_stop(struct evc__loopers *t)
{
	if (!evc__timer_is_set(&t->timer))
		return;
	ev_ref(t->loop);
	evc__timer_stop(t->stand.waker, t->loop, &t->timer);
}

TICK_PATH static void
on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct evc__loopers *t = w->data;
	struct evc__busy busy;

	(void)loop;
	(void)revents;
	/* A shut refgate means: another thread detaches the reactor, and may
	   free c.  The loop's thread will free t. */
	if (evc__loop_waker_inherited(t->stand.waker) ||
	    !evc__refgate_enter(&t->gate))
		return;
	sync_lock(&t->c->lock);
	t->fired = true;
	evc__busy_begin(t->reactor, t->c, BUSY_LOOPER, NULL, &busy);
	batch(t);
	evc__busy_end(&busy);
	evc__loopers_arm(t);
	sync_unlock(&t->c->lock);
	evc__later_run(t->c);
	evc__refgate_leave(&t->gate);
}

/* ---- the timer; loop thread, lock held ---- */

/* Set the timer for a time of c's clock. */
TICK_PATH static void
timer_set(struct evc__loopers *t, uint64_t due)
{
	uint64_t now = evc__now(t->c);
	double wait = AT_ONCE;

	if (due > now) {
		wait += (double)evc__real_ns(t->c, due - now) / 1e9;
		/* The timer counts from the loop's time, which is stale after a
		   long callback.  The update comes after evc__now, so that the
		   timer never fires early. */
		ev_now_update(t->loop);
	}
	if (!evc__timer_is_set(&t->timer))
		ev_unref(t->loop);
	evc__timer_again(t->stand.waker, &t->timer, wait < FAR ? wait : FAR,
			 AT_ONCE);
	t->armed = due;
	t->fired = false;
}

/* yes: add the ev_ref of the foreground loopers; no: remove the ev_ref. */
TICK_PATH static void
set_ref(struct evc__loopers *t, bool yes)
{
	if (yes == t->has_ref)
		return;
	t->has_ref = yes;
	if (yes)
		ev_ref(t->loop);
	else
		ev_unref(t->loop);
}

static void
leave_loop(struct evc__stand *s, struct ev_loop *loop)
{
	struct evc__loopers *t = LIST_OF(s, struct evc__loopers, stand);

	(void)loop;
	timer_stop(t);
	set_ref(t, false);
	evc__stand_end(s);
}

TICK_PATH void
evc__loopers_arm(struct evc__loopers *t)
{
	const evc_reactor *r = t->reactor;
	uint64_t due = evc__heap_first_due(&t->heap);

	if (t->lost || !evc__same_process(t->c))
		return;
	if (list_empty(&t->stand.node))
		evc__stand_begin(&t->stand, r->waker);
	set_ref(t, r->n_loopers > r->n_loopers_background);
	if (t->again != NULL)
		due = 0;
	/* After a stop no looper runs: evc__loopers_stop ends the loopers, in
	   turns of the reactor. */
	if (due == SCHEDULE_NEVER || evc_should_stop(t->c))
		timer_stop(t);
	else if (!evc__timer_is_set(&t->timer) || t->fired || t->armed != due)
		timer_set(t, due);
}

void
evc__loopers_turn(evc_reactor *r)
{
	sync_lock(&r->c->lock);
	if (r->loopers != NULL)
		evc__loopers_arm(r->loopers);
	sync_unlock(&r->c->lock);
}

struct evc__loopers *
evc__loopers_new(evc_reactor *r)
{
	struct evc__loopers *t = sync_alloc(1, sizeof *t);

	if (t == NULL)
		return NULL;
	t->c = r->c;
	t->loop = r->loop;
	t->reactor = r;
	ev_init(&t->timer.ev, on_timer);
	t->timer.ev.data = t;
	t->stand.leave = leave_loop;
	list_init(&t->stand.node);
	return t;
}

/* ---- the stop ---- */

/* Lock held, released around the functions: end a looper because of the
   stop. */
static void
stop_one(struct evc__looper *l)
{
	struct evc__looper_who w = evc__loop_looper_who(l);
	bool reported = false;

	if (l->body.bits & LOOPER_DORMANT) {
		evc__loop_looper_vanish(l);
		return;
	}
	l->body.bits |= LOOPER_RUNNING;
	evc__looper_flush(&w, &l->body, &reported);
	finish_looper(l, &w, reported);
}

bool
evc__loopers_stop(evc_reactor *r, const struct evc__frame *f)
{
	evc_coord *c = r->c;
	struct evc__looper *l = NULL;
	struct evc__busy busy;
	unsigned n;

	/* No thread detaches r while a looper on r is alive. */
	sync_lock(&c->lock);
	if (r->loopers == NULL || r->loopers->heap.n == 0) {
		sync_unlock(&c->lock);
		return true;
	}
	evc__busy_begin(r, c, BUSY_LOOPER, NULL, &busy);
	for (n = 0; n < SLICE; n++) {
		/* A running looper sees the stop at the end of the run. */
		l = evc__loop_looper_next(r->loopers, 0, LOOPER_RUNNING);
		if (l == NULL)
			break;
		stop_one(l);
		if (f->gone) /* a function has forked, this is the child */
			break;
	}
	evc__busy_end(&busy);
	/* A single ring for all loopers that have ended.  Without one there is
	   none: a ring turns r again, if a join is in progress on r. */
	if (n > 0)
		evc__ring(c);
	if (l != NULL)
		evc__reactor_poke(r);
	sync_unlock(&c->lock);
	return !f->gone;
}

/* ---- the end of the loop, or of the reactor ---- */

/* Lock held, released around the functions: the loop was destroyed.  End all
   loopers, and call opts.stop of each.  Dormant loopers stay, so that a later
   resume can report why the resume fails. */
static void
loop_is_lost(struct evc__loopers *t)
{
	struct evc__looper *l;
	struct evc__busy busy;

	evc__busy_begin(t->reactor, t->c, BUSY_LOOPER, NULL, &busy);
	while ((l = evc__loop_looper_next(
			t, 0, LOOPER_RUNNING | LOOPER_DORMANT)) != NULL) {
		struct evc__looper_who w = evc__loop_looper_who(l);

		finish_looper(l, &w, false);
	}
	evc__busy_end(&busy);
	leave_loop(&t->stand, t->loop);
	t->lost = true;
	evc__ring(t->c);
}

static void
end_leftover(struct evc__leftover *l)
{
	struct evc__loopers *t = LIST_OF(l, struct evc__loopers, leftover);

	leave_loop(&t->stand, t->loop);
	sync_free(t);
}

/* Lock held: r is being detached, and no looper on r is alive.  here: on the
   loop's thread. */
static void
detach_loopers(evc_reactor *r, bool here)
{
	struct evc__loopers *t = r->loopers;

	evc__loopers_forget(r);
	r->loopers = NULL;
	evc__heap_free(&t->heap);
	t->leftover.end = end_leftover;
	/* Only the loop's thread may stop an active timer.  Without a loop,
	   loop_is_lost has stopped the timer. */
	if (here || r->loop == NULL)
		end_leftover(&t->leftover);
	else
		evc__loop_waker_leave_behind(r, &t->leftover);
}

void
evc__loopers_drop(evc_reactor *r)
{
	bool here = r->tid == evc__tid();
	evc_coord *c = r->c;
	struct evc__loopers *t;

	sync_lock(&c->lock);
	t = r->loopers;
	if (t != NULL && !here) {
		/* Wait for the timer's callback, which takes the lock and uses
		   c. */
		sync_unlock(&c->lock);
		evc__refgate_close(&t->gate);
		sync_lock(&c->lock);
	}
	if (t != NULL && r->loop == NULL && !t->lost)
		loop_is_lost(t);
	else if (t != NULL)
		detach_loopers(r, here);
	sync_unlock(&c->lock);
}
