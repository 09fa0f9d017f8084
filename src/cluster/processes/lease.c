/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases: a worker without a sign of life for the lease is lost, though its
 * process is there - stopped, swapped out, or hung in the kernel.  One timer
 * asks all workers by their control streams, which a thread of the worker reads
 * during a function.  Each byte of a worker is an answer.
 * An engine under a lease of its own tells its workers the end of that lease,
 * and they end by then in any case.
 * A worker told to leave has the grace.
 * Deadlines of functions: a timer of each worker, because a worker runs one
 * function at a time.
 * Called by: turn.c, spawn.c and processes.c; the loop's timers.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

/* The longest time from the start of a program to evc_worker_main. */
#define START_NS UINT64_C(60000000000)
/* The longest time from the end of the streams to the end of the process. */
#define EXIT_NS UINT64_C(10000000000)

static void
send_ping(struct process *w, uint64_t now)
{
	if (evc__frame_put_bare(&w->control.out.own, FRAME_PING) < 0)
		return; /* the next tick tries again */
	evc__link_flush(&w->control);
	w->ping_ns = now;
}

static bool
is_closed(const struct process *w)
{
	return link_is_shut(&w->data) || link_is_shut(&w->control);
}

/* The worker completes nothing more, and should end. */
static void
look_at_end(struct process *w, uint64_t now)
{
	uint64_t limit = w->p->lease_ns;
	char why[WHY_SIZE];

	if (w->closed_ns == 0)
		w->closed_ns = now;
	/* The end may take its time, unless functions wait for the worker. */
	if (w->n_taken == 0 && limit < EXIT_NS)
		limit = EXIT_NS;
	if (now - w->closed_ns < limit)
		return;
	evc__link_read(&w->data, true);
	if (w->state == PROCESS_FENCED)
		return;
	/* The worker has perhaps said a reason. */
	evc__copy(why, sizeof why, w->why);
	if (why[0] != '\0')
		evc__process_fence(w, "%s", why);
	else
		evc__process_fence(w,
				   "closed its streams, did not end within "
				   "%.1f s and was killed",
				   (double)limit / 1e9);
}

static void
look_at_lease(struct process *w, uint64_t now)
{
	struct processes *p = w->p;
	uint64_t limit = p->lease_ns;

	if (is_closed(w)) {
		look_at_end(w, now);
		return;
	}
	if (w->ping_ns == 0) {
		send_ping(w, now);
		return;
	}
	/* Before evc_worker_main no thread reads the control stream. */
	if (!w->talks && limit < START_NS)
		limit = START_NS;
	if (now - w->ping_ns < limit)
		return;
	/* An answer may have come while this loop was busy. */
	evc__link_read(&w->data, true);
	evc__link_read(&w->control, true);
	if (w->ping_ns == 0 || w->state == PROCESS_FENCED)
		return;
	if (w->talks)
		evc__process_fence(w,
				   "gave no sign of life for %.1f s (its "
				   "lease is %.1f s) and was killed",
				   (double)(now - w->ping_ns) / 1e9,
				   (double)p->lease_ns / 1e9);
	else
		evc__process_fence(w,
				   "did not call evc_worker_main within %.0f "
				   "s and was killed",
				   (double)limit / 1e9);
}

static void
give_time(uint64_t *since, uint64_t more, uint64_t now)
{
	if (*since != 0)
		*since += more < now - *since ? more : now - *since;
}

static void
on_lease_tick(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct processes *p = timer->data;
	uint64_t now = sync_mono(), late = now - p->tick_ns;
	/* Before the last tick or the one before that. */
	uint64_t soon = p->lease_ns / 4 + evc__grace_last(p->grace_ns);
	unsigned i, n_looks = 0;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&p->on))
		return;
	p->tick_ns = now;
	/* After such a pause this process was perhaps stopped together with its
	   workers: they get their time anew. */
	late = late > p->lease_ns / 2 ? late : 0;
	for (i = 0; i < p->n; i++) {
		struct process *w = p->workers[i];

		if (w->state != PROCESS_STARTING && w->state != PROCESS_UP)
			continue;
		give_time(&w->ping_ns, late, now);
		give_time(&w->closed_ns, late, now);
		if (w->dismissed && now + soon >= w->leave_ns &&
		    n_looks < LOOKS_MOST)
			n_looks += evc__process_look(w);
		if (w->dismissed && now >= w->leave_ns)
			evc__process_fence(w, "was killed: it did not end"
					      " within %.1f s",
					   (double)p->grace_ns / 1e9);
		else
			look_at_lease(w, now);
	}
}

void
evc__processes_lease_start(struct processes *p)
{
	double every = (double)p->lease_ns / 4e9;

	p->tick_ns = sync_mono();
	ev_timer_init(&p->lease, on_lease_tick, every, every);
	p->lease.data = p;
	ev_timer_start(p->ev, &p->lease);
}

/* ---- the end of our own lease ---- */

/* Without memory the worker hears of the next time, or ends too soon. */
void
evc__process_until(struct process *w)
{
	struct processes *p = w->p;

	if (p->until_ns != 0 &&
	    evc__frame_put_number(&w->control.out.own, FRAME_UNTIL, p->until_ns) ==
		    0)
		evc__link_flush(&w->control);
}

void
evc__processes_until(struct processes *p, uint64_t mono_ns)
{
	unsigned i;

	if (mono_ns <= p->until_ns)
		return;
	p->until_ns = mono_ns;
	for (i = 0; i < p->n; i++) {
		struct process *w = p->workers[i];

		if ((w->state == PROCESS_STARTING || w->state == PROCESS_UP) &&
		    !is_closed(w))
			evc__process_until(w);
	}
}

/* ---- deadlines ---- */

void
evc__process_overdue(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct process *w = timer->data;
	struct processes *p = w->p;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&p->on))
		return;
	/* The function may have ended while this loop was busy, and the next
	   function have begun. */
	evc__link_read(&w->data, true);
	if (!w->begun || ev_is_active(timer) || w->state != PROCESS_UP)
		return;
	p->sink->overdue(p->core, w->index, process_taken(w, 0)->n);
	w->settled = true;
	evc__process_fence(w, "was killed: its function took longer than its "
			      "deadline");
}
