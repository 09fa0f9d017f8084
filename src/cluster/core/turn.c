/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop's turn: what has come due is done, whoever is to be called is
 * called, and a timer is set for what comes next.
 *
 * Who changes something asks for a turn, which is one post however many ask.
 * Nothing wakes the loop while nothing is due.
 */
#include "cluster/core/cluster.h"

#include "base/self.h"
#include "base/unwind.h"

/* A timer is set for a million seconds at most, and then again. */
#define FAR 1e6
/* Later than asked, so that one timer is enough. */
#define LATER 0.0002

/* ---- what is due; lock held ---- */

/* Those that wait to be tried again: an error of theirs is kept until then. */
static uint64_t
release_due(evc_cluster *cl, uint64_t now)
{
	uint64_t due;
	struct list *n, *tmp;
	evc_remote *r;

	/* Held for their inputs may be many: walk when one has come. */
	if (cl->turn.retries_seen == cl->count.retries &&
	    now < cl->turn.retry_due_ns)
		return cl->turn.retry_due_ns;
	cl->turn.retries_seen = cl->count.retries;
	cl->turn.retry_due_ns = SYNC_FOREVER;
	LIST_EACH(n, tmp, &cl->q.held) {
		r = LIST_OF(n, evc_remote, closure.link);
		due = r->more->due_ns;
		if (due == 0)
			continue;
		if (due > now) {
			if (due < cl->turn.retry_due_ns)
				cl->turn.retry_due_ns = due;
			continue;
		}
		r->more->due_ns = 0;
		evc__closures_release(&cl->q, &r->closure);
		evc__remote_queued(r);
	}
	return cl->turn.retry_due_ns;
}

/* Returns when to look again. */
static uint64_t
look(evc_cluster *cl)
{
	uint64_t now = sync_mono(), next, t;

	next = release_due(cl, now);
	t = evc__mind_workers(cl, now);
	next = t < next ? t : next;
	/* After that: it may have asked functions to stop. */
	t = evc__give_up(cl, now);
	next = t < next ? t : next;
	evc__leave_if_idle(cl);
	return next;
}

/* ---- who is to be called ---- */

/* One event of one worker, the first that is found; false: there is none. */
static bool
next_event(evc_cluster *cl, evc_cluster_worker_info *ret)
{
	struct cluster_worker *w;
	unsigned i;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (w->n_events == 0)
			continue;
		evc__worker_info(w, sync_mono(), ret);
		ret->state = w->events[0].state;
		w->n_events--;
		memmove(&w->events[0], &w->events[1],
			w->n_events * sizeof w->events[0]);
		return true;
	}
	return false;
}

WALLED_VOID(call_worker, (evc_cluster *cl,
			  const evc_cluster_worker_info *info),
	    cl->config.worker(cl, info, cl->config.arg))

static void
tell_workers(evc_cluster *cl)
{
	evc_cluster_worker_info info;
	bool is_one;

	if (cl->config.worker == NULL)
		return;
	for (;;) {
		sync_lock(&cl->q.lock);
		is_one = next_event(cl, &info);
		sync_unlock(&cl->q.lock);
		if (!is_one)
			return;
		call_worker(cl, &info);
		if (cluster_inherited(cl))
			return;
	}
}

/* A schedule that was refused would not be now: it is accepted, or raises, or
   hears of the stop. */
static bool
is_writable(const evc_cluster *cl)
{
	const struct closures *q = &cl->q;

	if (cl->stop.begun)
		return true;
	if (q->failed)
		return q->n_taken == 0 && q->n_unsettled == 0;
	return q->n_held + q->n_queued < q->most;
}

WALLED_VOID(call_writable, (evc_cluster *cl),
	    cl->config.writable(cl, cl->config.arg))

static void
tell_writable(evc_cluster *cl)
{
	bool yes;

	sync_lock(&cl->q.lock);
	yes = cl->turn.want_writable && is_writable(cl);
	if (yes)
		cl->turn.want_writable = false;
	sync_unlock(&cl->q.lock);
	if (yes && cl->config.writable != NULL)
		call_writable(cl);
}

/* ---- the timer ---- */

static void
on_timer(struct ev_loop *loop, ev_timer *t, int revents)
{
	evc_cluster *cl = t->data;

	(void)revents;
	if (on_loop_inherited(&cl->loop.on))
		return;
	/* libev has stopped it, and taken a reference that we had taken. */
	ev_ref(loop);
	cl->turn.timer_on = false;
	/* In a post, which keeps the scope while it runs. */
	(void)evc__turn_ask(cl);
}

static void
set_timer(evc_cluster *cl, struct ev_loop *loop, uint64_t next)
{
	uint64_t left;
	double in;

	if (cl->turn.timer_on) {
		ev_ref(loop);
		ev_timer_stop(loop, &cl->turn.timer);
		cl->turn.timer_on = false;
	}
	if (next == SYNC_FOREVER)
		return;
	left = evc__deadline_left_ns(next);
	in = left < (uint64_t)(FAR * 1e9) ? (double)left / 1e9 : FAR;
	/* libev counts from the time of its last look. */
	ev_now_update(loop);
	ev_timer_init(&cl->turn.timer, on_timer, in + LATER, 0);
	cl->turn.timer.data = cl;
	ev_timer_start(loop, &cl->turn.timer);
	ev_unref(loop);
	cl->turn.timer_on = true;
}

/* Whoever is to be called keeps a plain ev_run from returning. */
static void
hold_loop(evc_cluster *cl, struct ev_loop *loop, bool hold)
{
	if (hold == cl->turn.holds_loop)
		return;
	if (hold)
		ev_ref(loop);
	else
		ev_unref(loop);
	cl->turn.holds_loop = hold;
}

static void
leave(struct on_loop *on, struct ev_loop *loop)
{
	evc_cluster *cl = LIST_OF(on, evc_cluster, loop.on);

	set_timer(cl, loop, SYNC_FOREVER);
	hold_loop(cl, loop, false);
	ev_cleanup_stop(loop, &cl->loop.cleanup);
}

/* ---- the turn ---- */

static void
turn(evc_cluster *cl)
{
	struct ev_loop *loop = evc_reactor_loop(cl->loop.reactor);
	uint64_t next = SYNC_FOREVER, due;
	bool hold, closed;

	sync_lock(&cl->q.lock);
	evc__scope_watch(cl, loop);
	/* What this changes is seen by what follows here. */
	cl->turn.looking = true;
	if (cl->engine.at != NULL && !cl->engine.closed)
		next = look(cl);
	cl->turn.looking = false;
	evc__cluster_unlock(cl);

	evc__checkpoint_turn(cl);
	due = evc__deaths_tell(cl);
	next = due < next ? due : next;
	tell_workers(cl);
	if (!cluster_inherited(cl))
		tell_writable(cl);
	if (!cluster_inherited(cl))
		(void)evc__turn_answers(cl);
	/* One of these may have forked. */
	if (on_loop_inherited(&cl->loop.on))
		return;

	sync_lock(&cl->q.lock);
	closed = cl->engine.closed && cl->engine.at != NULL;
	hold = cl->turn.n_waiting > 0 || !list_empty(&cl->turn.fetches) ||
	       !list_empty(&cl->turn.joins) ||
	       (cl->turn.want_writable && cl->config.writable != NULL);
	sync_unlock(&cl->q.lock);
	set_timer(cl, loop, closed ? SYNC_FOREVER : next);
	hold_loop(cl, loop, hold);
	if (closed && !cl->turn.closed_told) {
		cl->turn.closed_told = true;
		evc__scope_closed(cl);
	}
}

static void
on_mail(evc_message *m, evc_status why)
{
	evc_cluster *cl = LIST_OF(m, evc_cluster, turn.mail);

	/* Before the look.  Who asks after this posts anew; who has asked
	   before it and found the turn asked for is read by this exchange, and
	   what it has changed is seen. */
	(void)sync_xchg(&cl->turn.asked, 0);
	if (why != 0) {
		/* The loop is gone.  Who has its answer gets it here. */
		if (evc__turn_answers(cl))
			evc__scope_adrift(cl);
		return;
	}
	if (sync_load_relaxed(&cl->loop.tid) == 0)
		sync_store(&cl->loop.tid, evc__tid());
	turn(cl);
}

void
evc__turn_init(evc_cluster *cl)
{
	cl->turn.mail.fn = on_mail;
	cl->turn.mail.flags = EVC_AFTER_STOP;
	on_loop_init(&cl->loop.on, leave);
	cl->turn.retry_due_ns = SYNC_FOREVER;
}
