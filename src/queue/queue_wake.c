/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What pushes, pops, waits and watches share: why a queue gives or takes
 * nothing, which waiters hear of its ends, and which waiter is woken.
 * Called by: queue_ring.h and all files of src/queue.
 * Locks: q->lock, held where queue.h says so; evc__queue_send and _popped
 * take the lock.  head, tail, wanted and next_end are atomic.
 */
#include "base/self.h"
#include "queue/queue_ring.h"

/* ---- why nothing goes in or out ---- */

evc_status
evc__queue_check(const evc_queue *q, const char *func)
{
	if (q == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "%s: no queue", func);
	if (evc__queue_inherited(q))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: this is a fork child, queue %s is its "
				  "parent's",
				  func, q->name);
	return 0;
}

evc_status
evc__queue_refuse(const evc_queue *q, evc_status st, const char *func)
{
	const char *why = "it is closed";

	if (st == -EVC_CANCELLED && evc_should_stop(q->c)) {
		evc__reported.heard_stop = true;
		why = "a stop was requested";
	} else if (st == -EVC_CANCELLED)
		why = "it was cancelled";
	else if (st == -EVC_DEADLINE_EXCEEDED)
		why = "the time is over";
	return evc_refuse(st, "%s: queue %s: %s", func, q->name, why);
}

evc_status
evc__queue_barred(evc_queue *q, uint64_t *pos)
{
	uint64_t was = *pos;

	if ((was & RING_CANCELLED) || evc_should_stop(q->c))
		return -EVC_CANCELLED;
	if (was & RING_CLOSED)
		return -EVC_OUT_OF_RANGE;
	/* Sealed for a stop that was taken back since.  The seal goes in a step
	   of its own, and the stop is looked at again afterwards: a pop that
	   has sealed tail again meanwhile has swapped tail, so this swap fails
	   or comes first. */
	if (sync_cas(&q->tail, pos, was & ~RING_SEALED))
		*pos = was & ~RING_SEALED;
	return 0;
}

int
evc__queue_pop_once(evc_queue *q, void **ret_item, const struct evc__ear *ear)
{
	uint64_t tail, now;
	int st;

	for (;;) {
		st = ring_pop(q, ret_item, false, &tail, ear);
		if (st == RING_END)
			return sync_load(&ear->cancelled) ? -EVC_CANCELLED :
							    -EVC_OUT_OF_RANGE;
		if (st != RING_EMPTY)
			return st;
		if (!evc_should_stop(q->c))
			return tail & RING_CLOSED ? -EVC_OUT_OF_RANGE :
						    RING_EMPTY;
		if (!(q->flags & EVC_QUEUE_DRAIN))
			return -EVC_CANCELLED;
		/* No push may come in behind our back: a push that has read
		   tail before fails to swap tail, and then sees the stop.  We
		   swap, not only look, also when the flag is there: a push that
		   takes the flag away reads our write, and so sees what we have
		   seen. */
		now = sync_or(&q->tail, RING_SEALED);
		if (((now ^ tail) & RING_POS) == 0)
			return -EVC_CANCELLED;
	}
}

/* ---- watches ---- */

void
evc__watch_drop(struct evc__watch *w)
{
	if (sync_sub(&w->refs, 1) > 1)
		return;
	evc_loop_release(w->loop);
	sync_lock_destroy(&w->making);
	sync_free(w);
}

evc_status
evc__watch_post(struct evc__watch *w)
{
	evc_status st;

	sync_add(&w->refs, 1);
	st = evc_post_message(w->loop, &w->message);
	if (st < 0)
		/* The caller has a reference, so this is not the last. */
		evc__watch_drop(w);
	return st == -EVC_ALREADY_EXISTS ? 0 : st;
}

void
evc__watch_disarm(struct evc__watch *w)
{
	if (!w->is_armed)
		return;
	w->is_armed = false;
	list_remove(&w->armed);
	w->q->n_armed--;
	sync_sub(&w->q->wanted[ITEMS], 1);
}

/* Lock held: send for the watch that waits longest; false: no watch waits. */
static bool
watch_send(evc_queue *q)
{
	while (!list_empty(&q->armed)) {
		struct evc__watch *w =
			LIST_OF(q->armed.next, struct evc__watch, armed);

		evc__watch_disarm(w);
		/* A watch on a loop about to go ends by itself. */
		if (evc__watch_post(w) == 0)
			return true;
	}
	return false;
}

/* ---- the ends reach waiters; lock held ---- */

void
evc__ear_open(evc_queue *q, struct evc__ear *ear)
{
	sync_store_relaxed(&ear->cancelled, false);
	sync_store_relaxed(&ear->end, EAR_OPEN);
	list_append(&q->ears, &ear->node);
}

void
evc__ear_waits(evc_queue *q, struct evc__ear *ear)
{
	uint64_t tail = sync_load_sc(&q->tail);

	/* A waiter at a closed queue may have to wait as well, for a push that
	   was in time.  tail does not move before the queue is opened again. */
	if ((tail & RING_CLOSED) && sync_load_relaxed(&ear->end) == EAR_OPEN)
		sync_store(&ear->end, tail & RING_POS);
}

void
evc__ear_sleeps(evc_queue *q, const struct evc__ear *ear)
{
	uint64_t end = sync_load_relaxed(&ear->end);

	if (end < sync_load_relaxed(&q->next_end))
		sync_store(&q->next_end, end);
}

bool
evc__ear_is_due(evc_queue *q)
{
	uint64_t next = sync_load(&q->next_end);

	return RARE(next != EAR_OPEN) &&
	       (sync_load_sc(&q->head) & RING_POS) >= next;
}

void
evc__ears_tell(evc_queue *q)
{
	if (!evc__ear_is_due(q))
		return;
	/* Waiters with another end sleep again, and leave a note again. */
	sync_store(&q->next_end, EAR_OPEN);
	evc_cond_broadcast(q->side[ITEMS].cond);
	while (watch_send(q))
		;
}

void
evc__queue_end(evc_queue *q, uint64_t end, bool cancelled)
{
	struct evc__ear *ear;
	struct list *n, *tmp;
	unsigned i;

	LIST_EACH(n, tmp, &q->ears) {
		ear = LIST_OF(n, struct evc__ear, node);
		if (cancelled)
			sync_store(&ear->cancelled, true);
		if (cancelled || sync_load_relaxed(&ear->end) == EAR_OPEN)
			sync_store(&ear->end, end);
	}
	for (i = 0; i < SIDES; i++)
		evc_cond_broadcast(q->side[i].cond);
	evc_cond_broadcast(q->drained);
	while (watch_send(q))
		;
}

/* ---- the wake-ups ---- */

/* Lock held: send for one waiter; true: signal the condition. */
static bool
send_one(evc_queue *q, unsigned side)
{
	struct evc__side *s = &q->side[side];

	/* Threads and loops take turns. */
	if (side == ITEMS && q->n_armed > 0 &&
	    (s->n_idle == 0 || (q->fair++ & 1)) && watch_send(q))
		return false;
	if (s->n_idle == 0)
		return false;
	s->n_idle--;
	s->n_sent++;
	sync_sub(&q->wanted[side], 1);
	return true;
}

void
evc__queue_pass_on(evc_queue *q, unsigned side)
{
	/* A thread that was sent for an item may have found the push before the
	   item unfinished, and sleeps again; that push, when finished, sends
	   for one waiter alone.  Also a watch may end while its message is on
	   the way. */
	if (side == ITEMS)
		evc__ears_tell(q);
	if (sync_load_sc(&q->wanted[side]) % DRAINER > 0 &&
	    ring_is_ready(q, side) && send_one(q, side))
		evc_cond_signal(q->side[side].cond);
}

void
evc__queue_send(evc_queue *q, unsigned side)
{
	bool signals;

	sync_lock(&q->lock);
	signals = send_one(q, side);
	sync_unlock(&q->lock);
	if (signals)
		evc_cond_signal(q->side[side].cond);
}

void
evc__queue_popped(evc_queue *q)
{
	uint32_t n = sync_load_sc(&q->wanted[ROOM]);

	if (n % DRAINER > 0)
		evc__queue_send(q, ROOM);
	if (n >= DRAINER && ring_is_empty(q))
		evc_cond_broadcast(q->drained);
}
