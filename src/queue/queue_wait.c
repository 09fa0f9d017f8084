/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Push, pop and drain: the short way, which takes no lock, and the wait.  A
 * waiter looks at the ring under the lock, as the condition of evc_cond_wait,
 * which hears the stop and knows the time.  A thread sends for a sleeper by a
 * number, n_sent, and a signal; the first sleeper to come takes one off the
 * number and looks.  evc_cond_wait looks a last time before it says that the
 * time is over, so no sleeper that was sent for leaves without a look.
 * Called by: the program (evc_queue_push, _pop, _try_pop, _drain).
 * Locks: q->lock, taken for a wait; wanted is atomic.
 */
#include <math.h>

#include "base/deadline.h"
#include "base/self.h"
#include "base/text.h"
#include "queue/queue_ring.h"

/* Looks at an empty or full ring before the sleep.  Few: the other side may
   need our cpu. */
#define SPINS 30
/* Time between looks for a push that was taken off its cpu between its two
   steps, when nothing would wake us after it. */
#define NAP_NS 100000u

struct wait {
	evc_queue *q;
	unsigned side;
	void *item;
	int st;
	bool counted; /* the wait counts in wanted or n_sent */
	struct evc__ear ear;
};

/* ---- the looks of a waiter; lock held ---- */

static int
look_once(struct wait *w)
{
	evc_queue *q = w->q;
	int st;

	if (w->side == ITEMS) {
		evc__ear_waits(q, &w->ear);
		st = evc__queue_pop_once(q, &w->item, &w->ear);
		if (st > 0)
			evc__ear_sleeps(q, &w->ear);
		return st;
	}
	if (sync_load(&w->ear.cancelled))
		return -EVC_CANCELLED;
	return sync_load(&w->ear.end) != EAR_OPEN ? -EVC_OUT_OF_RANGE :
						    ring_push(q, w->item);
}

static void
uncount_waiter(struct wait *w)
{
	struct evc__side *s = &w->q->side[w->side];

	w->counted = false;
	if (s->n_sent > 0) {
		s->n_sent--;
		return;
	}
	s->n_idle--;
	sync_sub(&w->q->wanted[w->side], 1);
}

/* For evc_cond_wait: called before the sleep and after each wake-up. */
static bool
look_at_side(void *arg)
{
	struct wait *w = arg;
	struct evc__side *s = &w->q->side[w->side];

	if (w->side == ITEMS)
		evc__ears_tell(w->q);
	if (w->counted && s->n_sent > 0)
		uncount_waiter(w);
	/* The count first, then the second look: see queue.h. */
	if (!w->counted) {
		w->counted = true;
		s->n_idle++;
		sync_add(&w->q->wanted[w->side], 1);
	}
	w->st = look_once(w);
	return w->st <= 0;
}

/* After a stop pops hand out the rest.  No condition sleeps while a stop
   stands, so the thread naps while a push is between its two steps; but not
   beyond the end of the stop, for the pushing thread may be gone. */
static int
pop_rest(struct wait *w, double timeout)
{
	evc_queue *q = w->q;
	double left = evc_stop_left(q->c);
	int st;

	timeout = left < timeout ? left : timeout;
	for (;;) {
		st = evc__queue_pop_once(q, &w->item, &w->ear);
		if (st == RING_EMPTY) /* the stop was taken back */
			return -EVC_CANCELLED;
		if (st != RING_BUSY)
			return st;
		if (!(timeout > 0))
			return -EVC_DEADLINE_EXCEEDED;
		evc__nap(NAP_NS);
		timeout -= NAP_NS / 1e9;
	}
}

static int
wait_for(struct wait *w, double timeout, const char *func)
{
	evc_queue *q = w->q;
	struct evc__side *s = &q->side[w->side];
	int st;

	sync_lock(&q->lock);
	s->n_in++;
	evc__ear_open(q, &w->ear);
	st = evc_cond_wait(s->cond, &q->lock, look_at_side, w, timeout);
	if (st == 0)
		st = w->st;
	if (w->counted)
		uncount_waiter(w);
	if (st == -EVC_CANCELLED && w->side == ITEMS &&
	    (q->flags & EVC_QUEUE_DRAIN)) {
		sync_unlock(&q->lock);
		st = pop_rest(w, timeout);
		sync_lock(&q->lock);
	}
	list_remove(&w->ear.node);
	evc__queue_pass_on(q, w->side);
	if (st < 0)
		evc__queue_refuse(q, st, func);
	/* A thread that got nothing may find the queue freed from here on. */
	s->n_in--;
	sync_unlock(&q->lock);
	return st;
}

/* The looks before the sleep; > 0: the thread may sleep. */
static int
spin_looks(struct wait *w)
{
	unsigned i;
	int st = RING_FULL;

	for (i = 0; i < SPINS && st > 0; i++)
		st = w->side == ROOM ? ring_push(w->q, w->item) :
				       evc__queue_pop_once(w->q, &w->item,
							   NULL);
	return st;
}

/* The first look has failed; w->st says why.  0: a later look has succeeded;
   else refused. */
static evc_status
try_on(struct wait *w, double timeout, const char *func)
{
	if (w->st > 0 && timeout > 0) {
		w->st = spin_looks(w);
		if (w->st > 0)
			return wait_for(w, timeout, func);
	}
	if (w->st == 0)
		return 0;
	return evc__queue_refuse(w->q,
				 w->st > 0 ? -EVC_DEADLINE_EXCEEDED : w->st,
				 func);
}

/* ---- the calls ---- */

/* Refuses wrong arguments and a call on the wrong thread; 0: all is right. */
static evc_status
check_wait(const evc_queue *q, const void *p, const char *what, double timeout,
	   const char *func)
{
	evc_status st = evc__queue_check(q, func);

	if (st < 0)
		return st;
	if (p == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no %s", func,
				  what);
	if (isnan(timeout))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: NaN is not a time", func);
	return timeout > 0 ? evc_may_wait(q->c, func) : 0;
}

/* The short way: would check_wait find nothing wrong? */
static inline bool
is_right(const evc_queue *q, const void *p, double timeout)
{
	return q != NULL && p != NULL && !isnan(timeout) &&
	       !evc__queue_inherited(q) &&
	       !(evc__self_has_loop && timeout > 0);
}

evc_status
evc_queue_push(evc_queue *queue, void *item, double timeout)
{
	struct wait w = { .q = queue, .side = ROOM, .item = item };

	if (RARE(!is_right(queue, item, timeout))) {
		w.st = check_wait(queue, item, "item", timeout, __func__);
		if (w.st < 0)
			return w.st;
	}
	w.st = ring_push(queue, item);
	if (RARE(w.st != 0)) {
		w.st = try_on(&w, timeout, __func__);
		if (w.st < 0)
			return w.st;
	}
	if (RARE(sync_load_sc(&queue->wanted[ITEMS]) > 0))
		evc__queue_send(queue, ITEMS);
	return 0;
}

evc_status
evc_queue_pop(evc_queue *queue, void **ret_item, double timeout)
{
	struct wait w = { .q = queue, .side = ITEMS };

	if (RARE(!is_right(queue, ret_item, timeout))) {
		w.st = check_wait(queue, ret_item, "place for the item",
				  timeout, __func__);
		if (w.st < 0)
			return w.st;
	}
	w.st = evc__queue_pop_once(queue, &w.item, NULL);
	if (RARE(w.st != 0)) {
		w.st = try_on(&w, timeout, __func__);
		if (w.st < 0)
			return w.st;
	}
	*ret_item = w.item;
	if (RARE(sync_load_sc(&queue->wanted[ROOM]) > 0))
		evc__queue_popped(queue);
	return 0;
}

evc_status
evc_queue_try_pop(evc_queue *queue, void **ret_item)
{
	evc_status st =
		check_wait(queue, ret_item, "place for the item", 0, __func__);
	void *item;
	uint64_t tail;

	if (st < 0)
		return st;
	if (ring_pop(queue, &item, true, &tail, NULL) != 0)
		return evc_refuse(-EVC_NOT_FOUND,
				  "evc_queue_try_pop: queue %s is empty",
				  queue->name);
	*ret_item = item;
	if (sync_load_sc(&queue->wanted[ROOM]) > 0)
		evc__queue_popped(queue);
	return 0;
}

/* ---- until it is empty ---- */

struct drain {
	evc_queue *q;
	struct evc__ear ear;
};

static bool
is_drained(void *arg)
{
	const struct drain *d = arg;

	return ring_is_empty(d->q) || sync_load(&d->ear.cancelled);
}

static evc_status
drain_queue(evc_queue *q, double timeout)
{
	struct drain d = { .q = q };
	char said[160];
	evc_status st;

	evc__copy(said, sizeof said, evc_last_error());
	sync_lock(&q->lock);
	evc__ear_open(q, &d.ear);
	q->n_draining++;
	/* The count first, then the look of evc_cond_wait; a pop looks at the
	   count. */
	sync_add(&q->wanted[ROOM], DRAINER);
	st = sync_load_sc(&q->tail) & RING_CANCELLED
		     ? -EVC_CANCELLED
		     : evc_cond_wait(q->drained, &q->lock, is_drained, &d,
				     timeout);
	sync_sub(&q->wanted[ROOM], DRAINER);
	list_remove(&d.ear.node);
	/* An empty ring is drained, also if an end came. */
	if (ring_is_empty(q)) {
		st = evc_refuse(0, "%s", said);
	} else if (st == 0)
		st = -EVC_CANCELLED;
	if (st < 0)
		evc__queue_refuse(q, st, "evc_queue_drain");
	q->n_draining--;
	sync_unlock(&q->lock);
	return st;
}

evc_status
evc_queue_drain(evc_queue *queue, double timeout)
{
	evc_status st = check_wait(queue, queue, "queue", timeout, __func__);

	return st < 0 ? st : drain_queue(queue, timeout);
}
