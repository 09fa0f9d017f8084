/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A turn of the loop: work that has come due is done, callbacks are made, a
 * timer is set for the next turn.
 * A thread that changes something asks for a turn; many requests become one
 * post.  Nothing wakes the loop while nothing is due.
 * Called by: the loop, by the message and the timer; cluster/open for the init.
 * Locks: the cluster's lock, taken, and given up for callbacks; turn.asked is
 * atomic.
 */
#include "cluster/core/cluster.h"

#include "base/self.h"
#include "base/unwind.h"

/* seconds: the longest timer */
#define FAR 1e6
/* seconds: the timer is late on purpose, so that a second one is not needed */
#define LATER 0.0002

/* ---- what is due; lock held ---- */

/* Release functions that are due for a retry; errors are kept until then. */
static uint64_t
release_due(evc_cluster *cl, uint64_t now)
{
	uint64_t due;
	struct list *n, *tmp;
	evc_remote *r;

	/* The list may be long: walk it only for a new retry, or a due one. */
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

/* Returns the time of the next look. */
static uint64_t
look_at_cluster(evc_cluster *cl)
{
	uint64_t now = sync_mono(), next, t;

	next = release_due(cl, now);
	t = evc__mind_workers(cl, now);
	next = t < next ? t : next;
	/* Later, because mind_workers may have asked functions to stop. */
	t = evc__give_up(cl, now);
	next = t < next ? t : next;
	t = evc__alone_look(cl, now);
	next = t < next ? t : next;
	evc__leave_if_idle(cl);
	return next;
}

/* ---- callbacks ---- */

/* The next event that this turn tells; false: none.  Workers with such events
   stand before all others in the list. */
static bool
next_event(evc_cluster *cl, evc_cluster_worker_info *ret)
{
	struct cluster_worker *w;

	if (list_empty(&cl->workers.news))
		return false;
	w = LIST_OF(cl->workers.news.next, struct cluster_worker, news);
	if (w->n_due == 0)
		return false;
	w->n_due--;
	evc__worker_info(cl, w, sync_mono(), ret);
	ret->state = w->events[0];
	w->n_events--;
	memmove(&w->events[0], &w->events[1],
		w->n_events * sizeof w->events[0]);
	if (w->n_due > 0)
		return true;
	list_remove(&w->news);
	if (w->n_events > 0)
		list_append(&cl->workers.news, &w->news);
	return true;
}

WALLED_VOID(call_worker, (evc_cluster *cl,
			  const evc_cluster_worker_info *info),
	    cl->config.worker(cl, info, cl->config.arg))

/* Events that come during these calls have the next turn; else a callback that
   causes events would keep the loop for ever.  Each of them asks for it. */
static void
tell_workers(evc_cluster *cl)
{
	evc_cluster_worker_info info;
	struct cluster_worker *w;
	struct list *at;
	bool is_one;

	if (cl->config.worker == NULL)
		return;
	sync_lock(&cl->q.lock);
	for (at = cl->workers.news.next; at != &cl->workers.news;
	     at = at->next) {
		w = LIST_OF(at, struct cluster_worker, news);
		w->n_due = w->n_events;
	}
	sync_unlock(&cl->q.lock);
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

/* A schedule that was refused would be accepted now, or raise, or hear of the
   stop. */
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
	/* libev has stopped the timer, and taken a reference that was ours. */
	ev_ref(loop);
	cl->turn.timer_on = false;
	/* In a post, which keeps the scope during the turn. */
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
	/* libev counts from its last look at the clock. */
	ev_now_update(loop);
	ev_timer_init(&cl->turn.timer, on_timer, in + LATER, 0);
	cl->turn.timer.data = cl;
	ev_timer_start(loop, &cl->turn.timer);
	ev_unref(loop);
	cl->turn.timer_on = true;
}

static void
detach_loop(struct on_loop *on, struct ev_loop *loop)
{
	evc_cluster *cl = LIST_OF(on, evc_cluster, loop.on);

	set_timer(cl, loop, SYNC_FOREVER);
	evc__turn_hold(cl, loop, false);
	ev_cleanup_stop(loop, &cl->loop.cleanup);
}

/* ---- the turn ---- */

static void
turn_cluster(evc_cluster *cl)
{
	struct ev_loop *loop = evc_reactor_loop(cl->loop.reactor);
	uint64_t next = SYNC_FOREVER, due;
	bool hold, closed, any_stuck;

	sync_lock(&cl->q.lock);
	evc__scope_watch(cl, loop);
	/* Later steps of this turn see these changes. */
	cl->turn.looking = true;
	if (cl->engine.at != NULL && !cl->engine.closed)
		next = look_at_cluster(cl);
	cl->turn.looking = false;
	any_stuck = cl->stacks.n_stuck > 0;
	evc__cluster_unlock(cl);

	evc__checkpoint_turn(cl);
	if (any_stuck)
		evc__stuck_tell(cl);
	evc__missing_tell(cl);
	due = evc__deaths_tell(cl);
	next = due < next ? due : next;
	tell_workers(cl);
	if (!cluster_inherited(cl))
		tell_writable(cl);
	if (!cluster_inherited(cl))
		(void)evc__turn_answers(cl);
	/* A callback may have forked. */
	if (on_loop_inherited(&cl->loop.on))
		return;
	due = evc__scope_errors(cl, false);
	next = due < next ? due : next;

	sync_lock(&cl->q.lock);
	closed = cl->engine.closed && cl->engine.at != NULL;
	hold = cl->turn.n_waiting > 0 || !list_empty(&cl->turn.fetches) ||
	       !list_empty(&cl->turn.joins) ||
	       (cl->turn.want_writable && cl->config.writable != NULL) ||
	       sync_load(&cl->turn.asked) != 0;
	sync_unlock(&cl->q.lock);
	set_timer(cl, loop, closed ? SYNC_FOREVER : next);
	evc__turn_hold(cl, loop, hold);
	if (closed && !cl->turn.closed_told) {
		cl->turn.closed_told = true;
		evc__scope_closed(cl);
	}
}

static void
on_turn_message(evc_message *m, evc_status why)
{
	evc_cluster *cl = LIST_OF(m, evc_cluster, turn.message);

	/* Before the look.  A later request posts anew.  An earlier request
	   found `asked` set; this exchange reads its mark, so its changes are
	   seen. */
	(void)sync_xchg(&cl->turn.asked, 0);
	sync_add(&cl->turn.n_turns, 1);
	if (why != 0) {
		/* The loop is gone: answers come here. */
		evc__checkpoint_skip(cl);
		if (evc__turn_answers(cl))
			evc__scope_adrift(cl);
		return;
	}
	if (sync_load_relaxed(&cl->loop.tid) == 0)
		sync_store(&cl->loop.tid, evc__tid());
	turn_cluster(cl);
}

void
evc__turn_init(evc_cluster *cl)
{
	cl->turn.message.fn = on_turn_message;
	cl->turn.message.flags = EVC_AFTER_STOP;
	on_loop_init(&cl->loop.on, detach_loop);
	cl->turn.retry_due_ns = SYNC_FOREVER;
}
