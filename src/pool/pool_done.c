/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the threads back to the loop: a finished job; and the task that keeps
 * the loop's run waiting until all jobs are completed.  pool_turn.c completes
 * the jobs.
 * Called by: pool_job.c, pool_thread.c; the loop (on_wake, on_task_stop).
 * Locks: the pool's, held by callers of _activate and _expect; ending, active,
 * waking and n_foreign are atomic.
 */
#include "pool/pool.h"

#include "base/list.h"
#include "base/self.h"

static void on_task_stop(evc_task *t, void *arg);

static const evc_task_class jobs_class = {
	.name = "jobs of a pool",
	.on_stop = on_task_stop,
	.flags = EVC_AFTER_STOP,
};

/* The thread's own box; NULL: the thread has none. */
static struct pool_box *
box_of(struct pool_port *p, const struct pool_seat *s)
{
	struct pool_box *b;
	uint32_t n;

	if (s == NULL || s->index >= POOL_BOXES)
		return NULL;
	b = sync_load_relaxed(&p->box[s->index]);
	if (b != NULL)
		return b;
	b = sync_alloc_aligned(POOL_LINE, sizeof *b);
	if (b == NULL)
		return NULL;
	/* The box before the look at `called`, as in box_put. */
	sync_store_sc(&p->box[s->index], b);
	n = sync_load(&p->n_boxes);
	while (n <= s->index && !sync_cas(&p->n_boxes, &n, s->index + 1))
		;
	return b;
}

void
evc__port_finish(struct pool_port *p, struct pool_seat *seat, evc_job *job,
		 evc_status result)
{
	struct pool_box *b = box_of(p, seat);

	evc__job_over(job, result);
	/* From here on the job is the loop's. */
	if (b == NULL || !box_put(b, job))
		evc__port_push(p, job, job);
	evc__port_ring(p);
}

static void
stop_port(struct pool_port *p)
{
	/* The mark, then the sweep: a submitter puts the job into its ring,
	   then looks at the mark. */
	sync_or(&p->ending, PORT_STOPPED);
	if (!p->finish) {
		evc__port_sweep(p);
		evc__port_ring(p);
	}
	evc__ring_room(&p->foreign);
}

static void
on_task_stop(evc_task *t, void *arg)
{
	(void)arg;
	stop_port(LIST_OF(t, struct pool_port, task));
}

/* Loop thread. */
static evc_status
begin_task(struct pool_port *p)
{
	evc_status st = evc_task_begin(p->r, &p->task, &jobs_class);

	if (st < 0)
		return st;
	sync_store_relaxed(&p->tid, evc__tid());
	sync_add(&p->refs, 1);
	sync_store(&p->active, evc__tid());
	return 0;
}

evc_status
evc__port_activate(struct pool_port *p)
{
	int active = sync_load_relaxed(&p->active);
	evc_status st;

	/* The loop may have begun the task since the caller's look at tid. */
	if (active != 0)
		return active == evc__tid() ? 0 : -EVC_FAILED_PRECONDITION;
	st = begin_task(p);
	if (st < 0)
		return st;
	if (p->apart)
		st = evc__port_take_hold(p);
	if (st < 0) {
		evc__port_settle(p);
		return st;
	}
	if (sync_load_sc(&p->n_foreign) == 0)
		sync_and(&p->ending, ~(uint32_t)PORT_STOPPED);
	/* A task begun after the stop does not hear of the stop.  The job about
	   to be put in is refused; on_wake sees to jobs of other threads. */
	if (evc_should_stop(p->c))
		sync_or(&p->ending, PORT_STOPPED);
	return st;
}

static void
on_wake(evc_message *m, evc_status why)
{
	struct pool_port *p = LIST_OF(m, struct pool_port, wake);

	/* The exchange, then the look at n_foreign: a submitter that finds
	   `waking` set has moved n_foreign before. */
	sync_xchg(&p->waking, 0);
	sync_store_relaxed(&p->tid, evc__tid());
	if (why == 0 && sync_load_sc(&p->n_foreign) != 0) {
		if (sync_load_relaxed(&p->active) == 0 && begin_task(p) < 0)
			why = EVC_CANCELLED;
		else if (evc_should_stop(p->c))
			/* A task begun after the stop does not hear of the
			   stop, on whichever thread the task was begun. */
			stop_port(p);
	}
	if (why != 0) {
		evc__port_lost(p);
		evc__port_ring(p);
	}
	evc__port_settle(p);
	evc__port_drop(p);
}

/* Let the loop look at n_foreign, which has moved before. */
static evc_status
wake_loop(struct pool_port *p)
{
	evc_status st;

	if (sync_xchg(&p->waking, 1) != 0)
		return 0;
	sync_add(&p->refs, 1);
	p->wake.fn = on_wake;
	st = evc_post_message(p->loop, &p->wake);
	if (st < 0) {
		sync_store(&p->waking, 0);
		sync_sub(&p->refs, 1);
	}
	return st;
}

evc_status
evc__port_expect(struct pool_port *p)
{
	evc_status st = 0;

	if (sync_load_sc(&p->n_foreign) == 0 && sync_load_sc(&p->active) == 0)
		sync_and(&p->ending, ~(uint32_t)PORT_STOPPED);
	/* While n_foreign is not 0 the task does not end. */
	if (sync_add(&p->n_foreign, 1) == 0)
		st = wake_loop(p);
	if (st == 0 && p->apart)
		st = evc__port_take_hold(p);
	if (st < 0)
		sync_sub(&p->n_foreign, 1);
	return st;
}

void
evc__port_unexpect(struct pool_port *p)
{
	/* The loop may have begun the task for this job. */
	if (sync_sub(&p->n_foreign, 1) == 1)
		(void)wake_loop(p);
}
