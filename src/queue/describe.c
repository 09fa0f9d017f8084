/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue in numbers - its items, its capacity, its waits - for the program
 * and for reports.
 * Called by: the program (evc_queue_get); a report, as the function of the
 * queue's describer.
 * Locks: q->lock, taken; head and tail are atomic.
 */
/*
 * As JSON an object (every key is always there):
 *	capacity, items	number: of places, of items in the queue
 *	pushed, popped	number: since the queue was made
 *	pushing, popping
 *			number: threads that wait
 *	closed, cancelled
 *			boolean
 */
#include "queue/queue.h"

#include "base/json_write.h"
#include "base/prometheus.h"
#include "base/text.h"
#include "queue/queue_ring.h"

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
	/* The head first, so the difference is never below zero.  The head may
	   have moved on since, so the number is cut to the capacity. */
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

static void
write_text(struct text *t, const char *name, const evc_queue_info *i)
{
	evc__text_fmt(t, "queue \"%s\": %zu of %zu items", name, i->n,
		      i->capacity);
	if (i->n_pushing > 0)
		evc__text_fmt(t, ", %u wait to push", i->n_pushing);
	if (i->n_popping > 0)
		evc__text_fmt(t, ", %u wait to pop", i->n_popping);
	evc__text_fmt(t, ", %llu pushed, %llu popped%s%s\n",
		      (unsigned long long)i->n_pushed,
		      (unsigned long long)i->n_popped,
		      i->closed ? ", closed" : "",
		      i->cancelled ? ", cancelled" : "");
}

static void
write_json(struct text *t, const evc_queue_info *i)
{
	struct evc__json j = { .t = t };

	evc__json_begin(&j, NULL, "{");
	evc__json_number(&j, "capacity", i->capacity);
	evc__json_number(&j, "items", i->n);
	evc__json_number(&j, "pushed", i->n_pushed);
	evc__json_number(&j, "popped", i->n_popped);
	evc__json_number(&j, "pushing", i->n_pushing);
	evc__json_number(&j, "popping", i->n_popping);
	evc__json_boolean(&j, "closed", i->closed);
	evc__json_boolean(&j, "cancelled", i->cancelled);
	evc__json_end(&j, "}");
}

static void
write_metrics(struct text *t, const evc_queue_info *i)
{
	evc__prometheus_family(t, "queue", "items", "gauge",
			       "Items in the queue.", i->n);
	evc__prometheus_family(t, "queue", "capacity", "gauge",
			       "Places of the queue.", i->capacity);
	evc__prometheus_family(t, "queue", "pushes_waiting", "gauge",
			       "Threads that wait for a place.", i->n_pushing);
	evc__prometheus_family(t, "queue", "pops_waiting", "gauge",
			       "Threads that wait for an item.", i->n_popping);
	evc__prometheus_family(t, "queue", "pushed_total", "counter",
			       "Items pushed.", i->n_pushed);
	evc__prometheus_family(t, "queue", "popped_total", "counter",
			       "Items popped.", i->n_popped);
}

size_t
evc__queue_report(unsigned format, char *buf, size_t n, void *queue)
{
	const evc_queue *q = queue;
	struct text t = evc__text_in(buf, n);
	evc_queue_info i;

	if (evc_queue_get(q, &i) < 0)
		return 0;
	t.lines = format == EVC_REPORT_TEXT;
	if (format == EVC_REPORT_TEXT)
		write_text(&t, q->name, &i);
	else if (format == EVC_REPORT_JSON)
		write_json(&t, &i);
	else
		write_metrics(&t, &i);
	return t.len;
}
