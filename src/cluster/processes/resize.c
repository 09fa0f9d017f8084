/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number of workers changes.  A worker beyond it leaves when the cluster has
 * nothing for it: the worker is told to end as at the end of the engine, and
 * killed when it has not ended after the grace (lease.c).
 * Called by: turn.c, feed.c, spawn.c and end.c.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

/* ---- they come ---- */

/* As a worker never started. */
static void
wait_anew(struct process *w)
{
	w->state = PROCESS_WAITS;
	w->due_ns = w->backoff_ns = 0;
}

/* A worker without a process: true: nobody needs the worker, which is over. */
static bool
let_go(struct process *w)
{
	struct processes *p = w->p;

	if (w->index < p->n_wanted || !p->sink->leave(p->core, w->index))
		return false;
	evc__process_over(w);
	p->sink->gone(p->core, w->index, "it has left", EVC_ENGINE_LEFT);
	return true;
}

static void
come_if_needed(struct process *w)
{
	evc_status st;

	if (let_go(w))
		return;
	wait_anew(w);
	/* Without memory the worker has no member, and a report does not name
	   it. */
	st = evc__process_rank(w, w->index);
	(void)st;
}

void
evc__processes_resize(struct processes *p, unsigned n, unsigned most)
{
	unsigned i;

	p->n_wanted = n;
	if (p->n < most)
		p->n = most;
	for (i = 0; i < p->n; i++)
		if (!p->workers[i]->ranked ||
		    p->workers[i]->state == PROCESS_OVER)
			come_if_needed(p->workers[i]);
}

/* ---- they leave ---- */

void
evc__process_send_leave(struct process *w)
{
	w->leaving = true;
	if (evc__frame_put_bare(&w->data.out.own, FRAME_LEAVE) < 0)
		evc__process_fence(w, "was killed: %s", evc_last_error());
	evc__link_flush(&w->data);
}

void
evc__process_has_left(struct process *w)
{
	w->dismissed = false;
	/* Since the dismissal the number may have grown, and shrunk again. */
	if (!let_go(w))
		wait_anew(w);
}

/* Is the worker too many, and without a function? */
static bool
may_ask(const struct process *w)
{
	const struct processes *p = w->p;

	return w->index >= p->n_wanted && !w->dismissed && w->n_taken == 0 &&
	       w->state != PROCESS_FENCED && w->state != PROCESS_OVER &&
	       !p->left && !p->lost;
}

void
evc__process_try_leave(struct process *w)
{
	struct processes *p = w->p;

	if (!may_ask(w))
		return;
	if (w->state == PROCESS_WAITS) {
		(void)let_go(w);
		return;
	}
	if (!p->sink->leave(p->core, w->index))
		return;
	w->dismissed = true;
	w->leave_ns = evc__deadline_in_ns(p->grace_ns);
	evc__process_send_leave(w);
}
