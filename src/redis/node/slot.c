/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of the workers: what has come for each, until its engine takes it,
 * and what it has taken, until it has ended.
 *
 * What waits here behind a function that takes its time is given back: another
 * worker may be sooner, and it may even be what that one waits for.
 */
#include "redis/node/node.h"

#define EVERY 0.01 /* seconds between two looks */
#define PATIENCE 0.02

/* ---- queues ---- */

void
evc__node_queue_add(struct queue *q, struct work *w)
{
	w->next = NULL;
	if (q->last != NULL)
		q->last->next = w;
	else
		q->first = w;
	q->last = w;
	q->n++;
}

struct work *
evc__node_slot_first(struct queue *q)
{
	struct work *w = q->first;

	if (w == NULL)
		return NULL;
	q->first = w->next;
	if (q->first == NULL)
		q->last = NULL;
	q->n--;
	return w;
}

static bool
is_it(const struct work *w, bool is_def, uint64_t n)
{
	return w->is_def == is_def && (is_def ? w->def.id : w->task.n) == n;
}

struct work *
evc__node_slot_take(struct queue *q, bool is_def, uint64_t n)
{
	struct work *w = q->first, *before = NULL;

	while (w != NULL && !is_it(w, is_def, n)) {
		before = w;
		w = w->next;
	}
	if (w == NULL)
		return NULL;
	if (before == NULL)
		return evc__node_slot_first(q);
	before->next = w->next;
	if (q->last == w)
		q->last = before;
	q->n--;
	return w;
}

void
evc__node_slot_add(struct slot *s, struct work *w)
{
	evc__node_queue_add(&s->waits, w);
	if (s->waits.n > 1 || s->has.n > 0)
		evc__node_slots_back_watch(s->l);
}

void
evc__node_work_free(struct life *l, struct work *w)
{
	unsigned i;

	(void)l;
	if (w == NULL)
		return;
	if (!w->is_def) {
		for (i = 0; w->values != NULL && i < w->task.n_inputs; i++)
			evc__node_value_drop(w->values[i]);
		sync_free(w->values);
		sync_free((void *)w->task.inputs);
	}
	if (--w->entry->refs == 0)
		sync_free(w->entry);
	sync_free(w);
}

static void
clear(struct life *l, struct queue *q)
{
	struct work *w;

	while ((w = evc__node_slot_first(q)) != NULL)
		evc__node_work_free(l, w);
}

void
evc__node_slot_clear(struct slot *s)
{
	clear(s->l, &s->waits);
	clear(s->l, &s->has);
	clear(s->l, &s->builds);
	evc__node_work_free(s->l, s->drop);
	s->drop = NULL;
}

/* ---- given back ---- */

static void
give_back(struct slot *s, const struct work *w)
{
	const struct frame_result f = {
		.r = { .n = w->task.n,
		       .code = EVC_CANCELLED,
		       .kind = EVC_FAILED_FUNCTION,
		       .took = -1 },
	};
	struct bytes *b = life_says(s->l) ? evc__node_tell(s->l, s) : NULL;

	if (b != NULL && evc__frame_put_result(b, s->l->max_frame, &f) < 0)
		evc__node_life_no_memory(s->l);
}

void
evc__node_slot_back(struct slot *s, uint64_t upto)
{
	struct work *w, *back = NULL;
	struct queue stay = { 0 };

	while ((w = evc__node_slot_first(&s->waits)) != NULL) {
		if (w->is_def || w->task.n > upto) {
			evc__node_queue_add(&stay, w);
			continue;
		}
		/* The youngest first: each goes to the front of the
		   coordinator's queue. */
		w->next = back;
		back = w;
	}
	s->waits = stay;
	while ((w = back) != NULL) {
		back = w->next;
		give_back(s, w);
		evc__node_work_free(s->l, w);
	}
}

void
evc__node_slot_back_one(struct slot *s, uint64_t n)
{
	struct work *w = evc__node_slot_take(&s->waits, false, n);

	if (w == NULL)
		return;
	give_back(s, w);
	evc__node_work_free(s->l, w);
}

/* Also when the clock was set back: nobody knows for how long it has then. */
static bool
has_waited(const struct slot *s, double now)
{
	return s->state == SLOT_UP && s->waits.n > 0 && s->has.n > 0 &&
	       (now - s->moved > PATIENCE || now < s->moved);
}

static void
on_look(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct life *l = timer->data;
	double now = ev_now(ev);
	bool any = false;
	unsigned i;

	(void)events;
	for (i = 0; i < l->node->n_workers && life_says(l); i++) {
		struct slot *s = &l->slots[i];

		if (has_waited(s, now))
			evc__node_slot_back(s, UINT64_MAX);
		any |= s->waits.n > 0;
	}
	if (!any)
		ev_timer_stop(ev, timer);
}

void
evc__node_slots_back_init(struct life *l)
{
	ev_timer_init(&l->back, on_look, EVERY, EVERY);
	l->back.data = l;
}

void
evc__node_slots_back_watch(struct life *l)
{
	if (!ev_is_active(&l->back) && life_says(l))
		ev_timer_again(l->node->ev, &l->back);
}
