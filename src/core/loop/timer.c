/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timers of a hosted loop: a pairing heap by due time, which needs no
 * memory beside the timers, and the timerfd, which is set for the first.
 *
 * A timer that becomes the first sets the timerfd at once, because a function
 * that a turn calls may run the host.  A timer that is due later than the
 * timerfd is set for changes nothing during a turn, because the end of the turn
 * sets the timerfd.
 *
 * Called by: timers of joins, tasks and loopers, by timer.h; host.c.
 * Locks: none; all is the loop's thread alone.
 */
#include "core/loop/timer.h"

#include "base/deadline.h"
#include "base/fork.h"

/* ---- the heap ---- */

/* Two heaps, of which one may be empty, become one. */
static struct evc__timer *
meld(struct evc__timer *a, struct evc__timer *b)
{
	struct evc__timer *under;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (b->due < a->due) {
		under = a;
		a = b;
	} else
		under = b;
	under->next = a->child;
	if (a->child != NULL)
		a->child->before = under;
	under->before = a;
	a->child = under;
	return a;
}

/* The heaps in a list of siblings become one: first pair by pair, then from the
   last pair to the first. */
static struct evc__timer *
meld_siblings(struct evc__timer *t)
{
	struct evc__timer *pairs = NULL, *heap = NULL, *second, *next;

	for (; t != NULL; t = next) {
		second = t->next;
		next = second != NULL ? second->next : NULL;
		t->next = NULL;
		if (second != NULL)
			second->next = NULL;
		t = meld(t, second);
		t->before = pairs;
		pairs = t;
	}
	for (; pairs != NULL; pairs = next) {
		next = pairs->before;
		heap = meld(heap, pairs);
	}
	return heap;
}

static void
heap_remove(struct evc__host *h, struct evc__timer *t)
{
	struct evc__timer *rest = meld_siblings(t->child);

	if (t == h->first) {
		h->first = rest;
	} else {
		if (t->before->child == t)
			t->before->child = t->next;
		else
			t->before->next = t->next;
		if (t->next != NULL)
			t->next->before = t->before;
		h->first = meld(h->first, rest);
	}
	t->child = t->next = t->before = NULL;
	t->due = 0;
}

static void
heap_add(struct evc__host *h, struct evc__timer *t, uint64_t due)
{
	t->due = due;
	h->first = meld(h->first, t);
}

/* ---- the timerfd ---- */

static uint64_t
first_due(const struct evc__host *h)
{
	return h->first != NULL ? h->first->due : SYNC_FOREVER;
}

void
evc__host_arm(struct evc__host *h)
{
	uint64_t due = first_due(h);

	if (due == sync_load_relaxed(&h->armed) ||
	    evc__forked_since(h->fork_generation))
		return;
	sync_store_relaxed(&h->armed, due);
	sync_timerfd_set(h->clock, due);
}

/* The first timer may have changed. */
static void
look_at_first(struct evc__host *h)
{
	if (sync_load_relaxed(&h->turns) == 0 ||
	    first_due(h) < sync_load_relaxed(&h->armed))
		evc__host_arm(h);
}

bool
evc__host_timer_due(const struct evc__host *h)
{
	return h->first != NULL && h->first->due <= sync_mono();
}

void
evc__host_timer_set(struct evc__host *h, struct evc__timer *t, double wait)
{
	(void)ev_clear_pending(h->loop, &t->ev);
	if (t->due != 0)
		heap_remove(h, t);
	heap_add(h, t, evc__after(sync_mono(), evc__ns(wait)));
	look_at_first(h);
}

void
evc__host_timer_stop(struct evc__host *h, struct evc__timer *t)
{
	(void)ev_clear_pending(h->loop, &t->ev);
	if (t->due == 0)
		return;
	heap_remove(h, t);
	look_at_first(h);
}

void
evc__host_timers_feed(struct evc__host *h)
{
	struct evc__timer *t, *due = NULL;
	uint64_t now;

	if (h->first == NULL)
		return;
	now = sync_mono();
	while ((t = h->first) != NULL && t->due <= now) {
		heap_remove(h, t);
		t->next = due;
		due = t;
	}
	/* libev calls the last event that was fed first, so the timer that is
	   due first comes last. */
	while ((t = due) != NULL) {
		due = t->next;
		t->next = NULL;
		if (t->ev.repeat > 0)
			heap_add(h, t, evc__after(now, evc__ns(t->ev.repeat)));
		ev_feed_event(h->loop, &t->ev, EV_TIMER);
	}
}
