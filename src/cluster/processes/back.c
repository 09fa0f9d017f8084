/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that wait in a worker behind a long function are taken back to run
 * elsewhere: the long function might even wait for them.  The worker's control
 * thread decides, under a lock that each function begins under there: an
 * attempt has begun, or is the cluster's again.
 * Called by: hear.c and turn.c; the loop's timer.
 * Locks: none; the loop's thread.
 */
#include "cluster/processes/processes.h"

#define EVERY 0.01   /* seconds between two looks */
#define PATIENCE 0.01
#define BATCH 32

static bool
has_waited(const struct process *w, double now)
{
	return w->state == PROCESS_UP && w->n_taken > 1 && w->back_upto == 0 &&
	       flow_is_stuck(w->moved, now, PATIENCE + 2 * w->flow.average);
}

static void
ask_tasks_back(struct process *w)
{
	const struct taken *last = process_taken(w, w->n_taken - 1);

	if (evc__frame_put_number(&w->control.out.own, FRAME_BACK, last->n) < 0)
		return; /* the next look tries again */
	w->back_upto = last->n;
	w->flow.window = 1;
	evc__link_flush(&w->control);
}

static void
on_back_timer(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct processes *p = timer->data;
	bool any = false;
	unsigned i;

	(void)events;
	if (on_loop_inherited(&p->on))
		return;
	for (i = 0; i < p->n; i++) {
		struct process *w = p->workers[i];

		/* This loop may be late itself. */
		if (has_waited(w, ev_now(ev))) {
			evc__link_read(&w->data, false);
			if (has_waited(w, ev_now(ev)))
				ask_tasks_back(w);
			evc__process_feed(w);
		}
		any |= w->state == PROCESS_UP && w->n_taken > 1;
	}
	if (!any)
		ev_timer_stop(ev, timer);
}

void
evc__processes_back_init(struct processes *p)
{
	ev_timer_init(&p->back, on_back_timer, EVERY, EVERY);
	p->back.data = p;
}

bool
evc__process_gave_back(struct process *w, const struct frame_backed *f)
{
	struct processes *p = w->p;
	evc_engine_result r[BATCH];
	const struct taken *last;
	unsigned n = 0;

	if (w->back_upto == 0 || f->upto != w->back_upto)
		return false;
	w->back_upto = 0;
	/* Their memory is the cluster's again. */
	if (!evc__outgoing_own(&w->data.out)) {
		evc__process_fence(w, "could not give functions back: there is "
				      "no memory for what it has not read");
		return true;
	}
	while (w->n_taken > 0) {
		last = process_taken(w, w->n_taken - 1);
		if (last->n <= f->begun)
			break;
		w->n_taken--;
		r[n++] = flow_given_back(last->n);
		if (n == BATCH) {
			p->sink->finished(p->core, w->index, r, n);
			n = 0;
		}
	}
	if (n > 0)
		p->sink->finished(p->core, w->index, r, n);
	evc__processes_feed(p);
	return true;
}
