/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues: how they are made, looked at, ended, opened again and freed.
 *
 * The end of input and the cancel are flags in the words that pushes and pops
 * swap: so each of them comes before that, or finds it.
 */
#include "queue/queue.h"

#include "base/reported.h"
#include "base/room.h"
#include "base/text.h"
#include "queue/queue_ring.h"

#define MOST (UINT64_C(1) << 30)

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
		why = "a stop was asked for";
	} else if (st == -EVC_CANCELLED)
		why = "it was cancelled";
	else if (st == -EVC_DEADLINE_EXCEEDED)
		why = "the time is over";
	return evc_refuse(st, "%s: queue %s: %s", func, q->name, why);
}

/* ---- how they come and go ---- */

static void
conds_free(evc_queue *q)
{
	unsigned i;

	for (i = 0; i < SIDES; i++)
		evc_cond_free(q->side[i].cond);
	evc_cond_free(q->drained);
}

static evc_status
conds_new(evc_queue *q)
{
	evc_status st = evc_cond_new(q->c, &q->drained);
	unsigned i;

	for (i = 0; st == 0 && i < SIDES; i++)
		st = evc_cond_new(q->c, &q->side[i].cond);
	if (st < 0)
		conds_free(q);
	return st;
}

static evc_status
make(evc_coord *c, const char *name, size_t capacity, unsigned flags,
     evc_queue **ret)
{
	evc_queue *q = sync_alloc_aligned(128, sizeof *q);
	evc_status st;

	if (q != NULL)
		q->place = sync_alloc(capacity, sizeof *q->place);
	if (q == NULL || q->place == NULL) {
		sync_free(q);
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_queue_new: no memory for %zu places",
				  capacity);
	}
	q->c = c;
	q->capacity = capacity;
	while ((UINT64_C(1) << q->shift) < capacity)
		q->shift++;
	q->mask = (UINT64_C(1) << q->shift) - 1;
	q->flags = flags;
	q->fork_generation = sync_load(&evc__fork_generation);
	evc__copy(q->name, sizeof q->name, name != NULL ? name : "queue");
	list_init(&q->watches);
	list_init(&q->armed);
	list_init(&q->ears);
	sync_store_relaxed(&q->next_end, EAR_OPEN);
	st = conds_new(q);
	if (st < 0) {
		sync_free(q->place);
		sync_free(q);
		return st;
	}
	sync_lock_init(&q->lock);
	*ret = q;
	return 0;
}

evc_status
evc_queue_new(evc_coord *c, const char *name, size_t capacity,
	      const evc_queue_opts *opts, evc_queue **ret_queue)
{
	unsigned flags = opts != NULL ? opts->flags : 0;
	const char *why = NULL;

	if (c == NULL)
		why = "no coordinator";
	else if (ret_queue == NULL)
		why = "no place for the queue";
	else if (capacity == 0)
		why = "it would hold nothing";
	else if (capacity > MOST)
		why = "it would hold more than 2^30";
	else if (flags & ~(unsigned)EVC_QUEUE_DRAIN)
		why = "unknown flags";
	else if (opts != NULL && !ROOM_IS_ZERO(opts->reserved_))
		why = "reserved room is not zero";
	else if (name != NULL && strlen(name) >= sizeof (*ret_queue)->name)
		why = "its name is too long";
	return evc_refuse_setup(
		c, __func__,
		why == NULL ? make(c, name, capacity, flags, ret_queue) :
			      evc_refuse(-EVC_INVALID_ARGUMENT,
					 "evc_queue_new: %s", why));
}

/* Lock held: who uses it still?  NULL: nobody. */
static const char *
in_use(evc_queue *q)
{
	if (!ring_is_empty(q))
		return "there are items in it";
	if (q->side[ITEMS].n_in > 0 || q->side[ROOM].n_in > 0 ||
	    q->n_draining > 0)
		return "threads wait on it";
	if (q->n_feeders > 0)
		return "it is being fed";
	if (!list_empty(&q->watches))
		return "a loop watches it";
	return NULL;
}

evc_status
evc_queue_free(evc_queue *queue)
{
	const char *why;
	evc_status st;

	if (queue == NULL)
		return 0;
	st = evc__queue_check(queue, __func__);
	if (st < 0)
		return st;
	sync_lock(&queue->lock);
	why = in_use(queue);
	sync_unlock(&queue->lock);
	if (why != NULL)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "evc_queue_free: queue %s: %s", queue->name,
				  why);
	conds_free(queue);
	sync_lock_destroy(&queue->lock);
	sync_free(queue->place);
	sync_free(queue);
	return 0;
}

evc_status
evc_queue_get(const evc_queue *queue, evc_queue_info *ret_info)
{
	evc_queue *q = (evc_queue *)queue;
	evc_status st = evc__queue_check(q, __func__);
	uint64_t h, t;

	if (st == 0 && ret_info == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_queue_get: no place for the answer");
	if (st < 0)
		return st;
	memset(ret_info, 0, sizeof *ret_info);
	/* Head first: then there are never fewer than none in it; nor do we
	   say more than fit when it moved on meanwhile. */
	h = sync_load_sc(&q->head);
	t = sync_load_sc(&q->tail);
	ret_info->capacity = (size_t)q->capacity;
	ret_info->n_pushed = ring_count(q, t);
	ret_info->n_popped = ring_count(q, h);
	ret_info->n = (size_t)(ret_info->n_pushed - ret_info->n_popped);
	if (ret_info->n > q->capacity)
		ret_info->n = (size_t)q->capacity;
	ret_info->closed = (t & RING_CLOSED) != 0;
	ret_info->cancelled = (t & RING_CANCELLED) != 0;
	sync_lock(&q->lock);
	ret_info->n_pushing = q->side[ROOM].n_in;
	ret_info->n_popping = q->side[ITEMS].n_in;
	sync_unlock(&q->lock);
	return 0;
}

/* ---- their state ---- */

evc_status
evc__queue_barred(evc_queue *q, uint64_t *pos)
{
	uint64_t was = *pos;

	if ((was & RING_CANCELLED) || evc_should_stop(q->c))
		return -EVC_CANCELLED;
	if (was & RING_CLOSED)
		return -EVC_OUT_OF_RANGE;
	/* Sealed for a stop that was taken back since.  In a step of its own,
	   so that the stop is asked for anew behind it: a pop that sealed it
	   again meanwhile has swapped tail, and this fails or comes first. */
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
		/* Nothing may go in behind our back: a push that has read tail
		   before fails to swap it, and then sees the stop.  A swap of
		   ours, not a look, also when the flag is there: a push that
		   takes it away reads what we wrote, and what we have seen. */
		now = sync_or(&q->tail, RING_SEALED);
		if (((now ^ tail) & RING_POS) == 0)
			return -EVC_CANCELLED;
	}
}

/* ---- who hears of it; lock held ---- */

void
evc__ear_open(evc_queue *q, struct evc__ear *ear)
{
	sync_store_relaxed(&ear->cancelled, false);
	sync_store_relaxed(&ear->end, EAR_OPEN);
	list_append(&q->ears, &ear->node);
}

/* All who wait; the first end that one misses is its own, a cancel comes before
   it. */
static void
hear(evc_queue *q, uint64_t end, bool cancelled)
{
	struct evc__ear *ear;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &q->ears) {
		ear = LIST_OF(n, struct evc__ear, node);
		if (cancelled)
			sync_store(&ear->cancelled, true);
		if (cancelled || sync_load_relaxed(&ear->end) == EAR_OPEN)
			sync_store(&ear->end, end);
	}
}

void
evc__ear_waits(evc_queue *q, struct evc__ear *ear)
{
	uint64_t tail = sync_load_sc(&q->tail);

	/* Who comes to a closed queue may have to wait as well, for a push that
	   was in time.  Nothing moves tail before it is opened again. */
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
	/* Those whose end is another one sleep again, and say so. */
	sync_store(&q->next_end, EAR_OPEN);
	evc_cond_broadcast(q->side[ITEMS].cond);
	evc__watch_send_all(q);
}

/* ---- the two ends ---- */

void
evc__queue_close(evc_queue *q)
{
	uint64_t was = sync_or(&q->tail, RING_CLOSED);

	if (was & RING_CLOSED)
		return;
	hear(q, was & RING_POS, false);
	evc__queue_tell_all(q);
}

evc_status
evc_queue_close(evc_queue *queue)
{
	evc_status st = evc__queue_check(queue, __func__);

	if (st < 0)
		return st;
	sync_lock(&queue->lock);
	evc__queue_close(queue);
	sync_unlock(&queue->lock);
	return 0;
}

evc_status
evc_queue_cancel(evc_queue *queue)
{
	evc_status st = evc__queue_check(queue, __func__);

	if (st < 0)
		return st;
	sync_lock(&queue->lock);
	if (!(sync_or(&queue->tail, RING_CANCELLED) & RING_CANCELLED)) {
		sync_or(&queue->head, RING_CANCELLED);
		hear(queue, 0, true);
		evc__queue_tell_all(queue);
	}
	sync_unlock(&queue->lock);
	return 0;
}

evc_status
evc_queue_reopen(evc_queue *queue)
{
	evc_status st = evc__queue_check(queue, __func__);

	if (st < 0)
		return st;
	sync_lock(&queue->lock);
	if (queue->n_feeders > 0)
		st = evc_refuse(-EVC_FAILED_PRECONDITION,
				"evc_queue_reopen: queue %s: it is being fed",
				queue->name);
	else {
		sync_and(&queue->head, ~RING_CANCELLED);
		sync_and(&queue->tail, ~(RING_CLOSED | RING_CANCELLED));
	}
	sync_unlock(&queue->lock);
	return st;
}
