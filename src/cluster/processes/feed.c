/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions and definitions go to the workers, as many as the worker's window
 * (engine/flow.h) allows: a few milliseconds of work.  (back.c takes long waits
 * back.)
 * Definitions go the same way.  A worker that builds is given no function, because
 * another worker can run it sooner.
 * Called by: turn.c, hear.c and back.c.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

#define QUICK 0.001        /* seconds: of longer functions one waits, or none */
#define AHEAD 0.004        /* seconds of work in a window, at most */
#define BATCH 32
#define OUT_MOST ((size_t)1 << 20) /* bytes that wait to be written, roughly */

static bool
may_be_fed(const struct process *w)
{
	return w->state == PROCESS_UP && !w->leaving &&
	       !link_is_shut(&w->data);
}

static uint64_t
bytes_waiting(const struct process *w)
{
	return outgoing_size(&w->data.out);
}

/* ---- the window ---- */

static unsigned
window_left(const struct process *w)
{
	return w->n_taken < w->flow.window && bytes_waiting(w) < OUT_MOST &&
			       w->back_upto == 0 && w->n_building == 0 ?
		       w->flow.window - w->n_taken :
		       0;
}

void
evc__process_ended_one(struct process *w, double took)
{
	evc__process_deadline_stop(w);
	w->first_taken = (w->first_taken + 1) % WINDOW_MOST;
	w->n_taken--;
	w->moved = ev_now(w->p->ev);
	if (took >= 0)
		flow_ended(&w->flow, took, QUICK, AHEAD, 0,
			   WINDOW_MOST);
}

/* ---- to build ---- */

/* A definition may be large, and the worker busy for long: a definition that
   cannot be written yet stays with the cluster, where a drop may remove it. */
static bool
can_write(struct process *w)
{
	if (may_be_fed(w) && bytes_waiting(w) >= OUT_MOST)
		evc__link_flush(&w->data);
	return may_be_fed(w) && bytes_waiting(w) < OUT_MOST;
}

static void
put_defs(struct process *w)
{
	struct processes *p = w->p;
	evc_engine_def d;

	while (can_write(w) && p->sink->defs(p->core, w->index, &d))
		if (evc__frame_put_def(&w->data.out.own, p->max_frame, &d) == 0)
			w->n_building += d.kind != EVC_DEF_DROP;
		else if (d.kind != EVC_DEF_DROP)
			p->sink->built(p->core, w->index, d.id,
				       EVC_RESOURCE_EXHAUSTED, 0);
}

/* ---- to run ---- */

static evc_status
put_task(struct process *w, const evc_engine_task *t)
{
	size_t max_frame = w->p->max_frame;
	bool few[16], *is_kept = NULL;
	evc_status st;
	unsigned i;

	if (t->n_inputs > 0 && w->kept.by_id.n > 0) {
		is_kept = t->n_inputs <= sizeof few ?
				  few :
				  sync_alloc(t->n_inputs, sizeof *is_kept);
		/* Without memory all inputs are sent. */
		for (i = 0; is_kept != NULL && i < t->n_inputs; i++)
			is_kept[i] = evc__kept_find(&w->kept,
						    t->inputs[i].id) != NULL;
	}
	st = evc__frame_lend_task(&w->data.out, max_frame, t, is_kept);
	if (is_kept != few)
		sync_free(is_kept);
	return st;
}

/* back.c looks at a worker with several functions. */
static void
watch_back(struct processes *p)
{
	if (!ev_is_active(&p->back))
		ev_timer_again(p->ev, &p->back);
}

/* false: the cluster has no function for the worker. */
static bool
feed_batch(struct process *w, unsigned most)
{
	struct processes *p = w->p;
	evc_engine_task tasks[BATCH];
	unsigned i, n;

	n = p->sink->take(p->core, w->index, tasks, most < BATCH ? most : BATCH);
	if (n > 0 && w->n_taken == 0)
		w->moved = ev_now(p->ev);
	for (i = 0; i < n; i++) {
		evc_engine_result r;
		struct taken *t;

		if (put_task(w, &tasks[i]) < 0) {
			r = flow_refused(tasks[i].n);
			p->sink->finished(p->core, w->index, &r, 1);
			continue;
		}
		t = process_taken(w, w->n_taken++);
		t->n = tasks[i].n;
		t->id = tasks[i].id;
		t->deadline = tasks[i].deadline;
		t->end = w->data.sent + bytes_waiting(w);
		t->asked = false;
	}
	if (w->n_taken > 1)
		watch_back(p);
	return n > 0;
}

void
evc__process_feed(struct process *w)
{
	if (may_be_fed(w)) {
		put_defs(w);
		while (window_left(w) > 0 && feed_batch(w, window_left(w)))
			;
	}
	evc__process_try_leave(w);
	/* Answers go out even to a worker that takes no functions. */
	if (w->data.fd >= 0)
		evc__link_flush(&w->data);
}

void
evc__processes_feed(struct processes *p)
{
	unsigned i;

	if (p->left)
		return;
	/* First one function for each idle worker, then the others: a few long
	   functions should not all go to the first worker. */
	for (i = 0; i < p->n; i++) {
		struct process *w = p->workers[(p->next + i) % p->n];

		if (!may_be_fed(w) || w->n_taken > 0 || w->flow.window == 1 ||
		    window_left(w) == 0)
			continue;
		put_defs(w);
		if (window_left(w) > 0)
			feed_batch(w, 1);
	}
	for (i = 0; i < p->n; i++)
		evc__process_feed(p->workers[(p->next + i) % p->n]);
	p->next = (p->next + 1) % p->n;
}
