/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests to the engine, done on the loop: from the first message to the
 * last word.
 * Called by: engine/notes.c's message; engine/on_loop.h in a fork child.
 * Locks: none here; the sink takes the cluster's.  The loop's thread.
 */
#include "cluster/processes/processes.h"

#include "base/proc.h"

#define KILLED_NS UINT64_C(1000000000) /* the longest wait at the loop's end */

static bool
is_alive(const struct process *w)
{
	return w->state == PROCESS_STARTING || w->state == PROCESS_UP;
}

static void
send_number(struct process *w, enum frame_type type, uint64_t number)
{
	if (evc__frame_put_number(&w->control.out.own, type, number) < 0)
		evc__process_fence(w, "could not be told to stop: %s",
				   evc_last_error());
	else
		evc__link_flush(&w->control);
}

static void
do_cancel(struct processes *p, uint64_t upto)
{
	unsigned i;

	if (upto <= p->cancelled_upto)
		return;
	p->cancelled_upto = upto;
	for (i = 0; i < p->n; i++) {
		struct process *w = p->workers[i];

		if (is_alive(w) && w->n_taken > 0 &&
		    process_taken(w, 0)->n <= upto)
			send_number(w, FRAME_CANCEL, upto);
	}
}

/* NULL: the worker does not have this attempt. */
static struct taken *
taken_at(struct process *w, uint64_t n)
{
	unsigned i;

	for (i = 0; i < w->n_taken; i++) {
		struct taken *t = process_taken(w, i);

		if (t->n == n)
			return t;
	}
	return NULL;
}

static void
do_ones(struct processes *p, const uint64_t *ones, size_t n)
{
	size_t i;

	for (i = 0; i + 1 < n; i += 2) {
		struct process *w = ones[i] < p->n ? p->workers[ones[i]] :
						     NULL;
		struct taken *t = w != NULL && is_alive(w) ?
					  taken_at(w, ones[i + 1]) :
					  NULL;

		if (t == NULL)
			continue;
		t->asked = true;
		send_number(w, FRAME_CANCEL_ONE, t->n);
	}
}

static void
do_forgets(struct processes *p, const uint64_t *ids, size_t n)
{
	unsigned i;
	size_t k;

	for (i = 0; i < p->n; i++)
		for (k = 0; k < n && p->workers[i]->kept.by_id.n > 0; k++) {
			struct process *w = p->workers[i];

			if (!evc__kept_drop(&w->kept, ids[k]))
				continue;
			evc__frame_put_number(&w->data.out.own, FRAME_FORGET,
					      ids[k]);
		}
}

/* NULL: there is no such worker. */
static struct process *
process_at(const struct processes *p, uint32_t i)
{
	return i < p->n ? p->workers[i] : NULL;
}

static void
do_kills(struct processes *p, const struct noted_workers *kills)
{
	size_t i;

	for (i = 0; i < kills->n; i++) {
		struct process *w = process_at(p, kills->at[i]);

		if (w == NULL || !is_alive(w))
			continue;
		/* The function may have ended just now. */
		evc__link_read(&w->data, true);
		w->settled = true;
		evc__process_fence(w, evc__proc_process_state(w->pid) == 'T' ?
					      "was killed: it was stopped, as by "
					      "SIGSTOP, when its function was "
					      "to stop" :
					      "was killed: its function did not "
					      "stop when it was asked to");
	}
}

/* A missing or deaf worker is said to be so at once. */
static void
ask_stacks(struct processes *p, const struct noted_workers *stacks)
{
	struct process *w;
	size_t i;

	if (p->sink->stack == NULL)
		return;
	for (i = 0; i < stacks->n; i++) {
		w = process_at(p, stacks->at[i]);
		if (w != NULL)
			w->stack_due = evc__process_ask_stack(w);
		if (w != NULL && !w->stack_due)
			p->sink->stack(p->core, stacks->at[i], NULL);
	}
}

static void
look_at_last(struct processes *p)
{
	unsigned i, n = 0;

	p->looked = true;
	for (i = 0; i < p->n && n < LOOKS_MOST; i++)
		n += evc__process_look(p->workers[i]);
}

/* Those that have not left are killed after the grace.  The end of the stop,
   which limits the grace, may come nearer meanwhile. */
static void
on_grace(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	struct processes *p = timer->data;
	uint64_t now = sync_mono(), grace, due;
	double left;
	unsigned i;

	(void)events;
	if (on_loop_inherited(&p->on))
		return;
	left = evc_stop_left(p->scope);
	grace = evc__grace_within(p->grace_ns,
				  (double)(now - p->leave_ns) / 1e9 + left);
	due = evc__after(p->leave_ns, grace);
	if (due > now) {
		if (!p->looked && now + evc__grace_last(grace) >= due)
			look_at_last(p);
		if (!p->looked)
			due -= evc__grace_last(grace);
		due = evc__deadline_left_ns(evc__deadline_look(due, left));
		ev_now_update(ev);
		ev_timer_set(timer, (double)due / 1e9, 0.);
		ev_timer_start(ev, timer);
		return;
	}
	for (i = 0; i < p->n; i++) {
		if (!is_alive(p->workers[i]))
			continue;
		evc__link_read(&p->workers[i]->data, true);
		evc__process_fence(p->workers[i],
				   "was killed: it did not end within %.1f s",
				   (double)grace / 1e9);
	}
}

static void
do_leave(struct processes *p)
{
	unsigned i;

	if (p->left)
		return;
	p->left = true;
	ev_timer_stop(p->ev, &p->spawn);
	for (i = 0; i < p->n; i++) {
		struct process *w = p->workers[i];

		if (is_alive(w)) {
			if (!w->leaving)
				evc__process_send_leave(w);
		} else if (w->state == PROCESS_WAITS)
			evc__process_over(w);
	}
	p->leave_ns = sync_mono();
	ev_timer_set(&p->grace, 0., 0.);
	ev_timer_start(p->ev, &p->grace);
}

/* ---- the end ---- */

/* All timers, not the cleanup. */
static void
stop_timers(struct processes *p)
{
	ev_timer_stop(p->ev, &p->lease);
	ev_timer_stop(p->ev, &p->spawn);
	ev_timer_stop(p->ev, &p->grace);
	ev_timer_stop(p->ev, &p->back);
}

void
evc__processes_off(struct on_loop *on, struct ev_loop *loop)
{
	struct processes *p = LIST_OF(on, struct processes, on);
	unsigned i;

	stop_timers(p);
	ev_cleanup_stop(loop, &p->cleanup);
	for (i = 0; i < p->n; i++) {
		struct process *w = p->workers[i];

		evc__process_deadline_stop(w);
		if (w->pid == 0)
			continue;
		ev_io_stop(loop, &w->end);
		ev_timer_stop(loop, &w->ask);
		ev_child_stop(loop, &w->reaped);
		ev_io_stop(loop, &w->data.io);
		ev_io_stop(loop, &w->control.io);
		ev_io_stop(loop, &w->output.io);
		ev_timer_stop(loop, &w->output.rest);
	}
}

static void
finish_processes(struct processes *p)
{
	const evc_engine_sink *sink = p->sink;
	void *core = p->core;

	/* A message on its way comes back to this function. */
	if (!evc__notes_shut(&p->notes))
		return;
	if (p->running) {
		stop_timers(p);
		ev_cleanup_stop(p->ev, &p->cleanup);
		on_loop_end(&p->on);
		evc_task_end(&p->task);
	}
	/* p may be freed from here on. */
	sink->closed(core);
}

/* The loop is being destroyed, or was before the first message. */
static void
lose_loop(struct processes *p)
{
	uint64_t until = evc__deadline_in_ns(KILLED_NS);
	unsigned i;

	p->lost = true;
	p->sink->down(p->core, "the loop of the cluster was destroyed");
	for (i = 0; i < p->n; i++)
		if (p->workers[i]->state != PROCESS_OVER)
			evc__process_end_now(p->workers[i], until);
}

static void
on_processes_cleanup(struct ev_loop *ev, struct ev_cleanup *cleanup, int events)
{
	struct processes *p = cleanup->data;

	(void)ev;
	(void)events;
	if (on_loop_inherited(&p->on))
		return;
	lose_loop(p);
	finish_processes(p);
}

/* ---- the message ---- */

static evc_task_class task_class = { .name = "cluster processes",
				     .flags = EVC_AFTER_STOP };

/* The first message. */
static bool
begin_turns(struct processes *p)
{
	p->ev = evc_reactor_loop(p->reactor);
	if (p->ev == NULL ||
	    evc_task_begin(p->reactor, &p->task, &task_class) < 0)
		return false;
	p->running = true;
	on_loop_begin(&p->on, p->ev);
	ev_init(&p->spawn, NULL);
	ev_init(&p->grace, on_grace);
	p->grace.data = p;
	evc__processes_back_init(p);
	ev_cleanup_init(&p->cleanup, on_processes_cleanup);
	p->cleanup.data = p;
	ev_cleanup_start(p->ev, &p->cleanup);
	evc__processes_lease_start(p);
	return true;
}

static void
do_resize(struct processes *p, const struct asked *now)
{
	if (p->left || p->lost)
		return;
	evc__processes_resize(p, now->n_wanted, now->n_most);
	evc__processes_spawn(p);
}

static void
serve_asked(struct processes *p, const struct asked *now)
{
	do_cancel(p, now->cancel_upto);
	do_ones(p, now->ones, now->n_ones);
	do_kills(p, &now->kills);
	do_forgets(p, now->forgets, now->n_forgets);
	ask_stacks(p, &now->stacks);
	if (now->leave)
		do_leave(p);
	if (now->n_wanted > 0)
		do_resize(p, now);
	notes_look(&p->notes);
	evc__processes_feed(p);
}

void
evc__processes_message(evc_message *m, evc_status why)
{
	struct processes *p = LIST_OF(m, struct processes, notes.message);
	struct asked now = evc__notes_asked(&p->notes);
	bool first = !p->running;

	if (why == 0 && !p->lost && (!first || begin_turns(p))) {
		serve_asked(p, &now);
		if (first)
			evc__processes_spawn(p);
	} else if (!p->running)
		lose_loop(p);
	evc__asked_free(&now);
	/* Last, because p is gone after it. */
	if (p->ended)
		finish_processes(p);
}
