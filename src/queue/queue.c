/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues: how they are made, looked at, ended, opened again and freed.  The end
 * of input and the cancel are flags in the words that pushes and pops swap, so
 * each push or pop comes before the flag or finds the flag.
 * Called by: the program; queue_feed.c at the end of the last feeder.
 * Locks: q->lock, taken; evc__queue_close needs the lock held.  head and tail
 * are atomic.
 */
#include "queue/queue.h"

#include "base/reserved.h"
#include "base/text.h"
#include "queue/queue_ring.h"

#define MOST (UINT64_C(1) << 30)

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

static void
queue_destroy(evc_queue *q)
{
	sync_lock_destroy(&q->lock);
	sync_free(q->place);
	sync_free(q);
}

/* Lock held: why the queue cannot be freed; NULL: the queue is unused. */
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

static evc_status
queue_may_go(evc_queue *q, const char *func)
{
	const char *why;

	sync_lock(&q->lock);
	why = in_use(q);
	sync_unlock(&q->lock);
	return why == NULL ? 0 :
			     evc_refuse(-EVC_FAILED_PRECONDITION,
					"%s: queue %s: %s", func, q->name, why);
}

evc_status
evc_queue_free(evc_queue *queue)
{
	evc_status st;

	if (queue == NULL)
		return 0;
	st = evc__queue_check(queue, __func__);
	if (st == 0)
		st = queue_may_go(queue, __func__);
	if (st < 0)
		return st;
	/* Reports leave the queue first: its conditions keep the coordinator. */
	(void)evc_part_remove(&queue->part);
	conds_free(queue);
	queue_destroy(queue);
	return 0;
}

/* The end of main. */
static evc_status
may_free(evc_part *p)
{
	return queue_may_go(LIST_OF(p, evc_queue, part), "evc_finish");
}

static evc_status
free_part(evc_part *p)
{
	return evc_queue_free(LIST_OF(p, evc_queue, part));
}

static evc_status
add_part(evc_queue *q)
{
	q->part.may_free = may_free;
	q->part.free_object = free_part;
	q->part.n_conds = SIDES + 1;
	q->part.kind = "queue";
	q->part.name = q->name;
	q->part.describe = evc__queue_report;
	q->part.arg = q;
	return evc_part_add(q->c, &q->part);
}

static evc_status
make_queue(evc_coord *c, const char *name, size_t capacity, unsigned flags,
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
	evc__copy_dots(q->name, sizeof q->name, name != NULL ? name : "queue");
	list_init(&q->watches);
	list_init(&q->armed);
	list_init(&q->ears);
	sync_store_relaxed(&q->next_end, EAR_OPEN);
	sync_lock_init(&q->lock);
	st = conds_new(q);
	if (st == 0) {
		st = add_part(q);
		if (st < 0)
			conds_free(q);
	}
	if (st < 0) {
		queue_destroy(q);
		return st;
	}
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
	else if (opts != NULL && !RESERVED_IS_ZERO(opts->reserved_))
		why = "reserved room is not zero";
	return evc_refuse_setup(
		c, __func__,
		why == NULL ? make_queue(c, name, capacity, flags, ret_queue)
			    : evc_refuse(-EVC_INVALID_ARGUMENT,
					 "evc_queue_new: %s", why));
}

/* ---- the two ends ---- */

void
evc__queue_close(evc_queue *q)
{
	uint64_t was = sync_or(&q->tail, RING_CLOSED);

	if (was & RING_CLOSED)
		return;
	evc__queue_end(q, was & RING_POS, false);
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
		evc__queue_end(queue, 0, true);
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
