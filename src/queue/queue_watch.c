/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches: pops on a loop.  A watch that found nothing is armed, beside the
 * threads that wait for items; a push posts its message.  The message's
 * function, a turn, pops, arms and makes the last call.  A looper that runs
 * only once stands for an armed watch: the looper keeps the loop and the joins
 * waiting, and its opts.stop says on the loop that the stop has come or that
 * the loop goes.  opts.stop comes only to a looper that has run; before, and
 * after a stop, the message alone keeps the loop and the joins.
 * Called by: the program (evc_queue_watch, _watch_on, _unwatch); the loop.
 * Locks: q->lock, taken; watch.making; refs and tid are atomic.
 */
#include <math.h>

#include "base/self.h"
#include "queue/nested.h"
#include "queue/queue_ring.h"

/* Items in one turn; then other watchers have their turn. */
#define SLICE 64

/* ---- its end; loop thread ---- */

/* Takes the watch off the queue.  As a thread that leaves, the watch may have
   been sent for. */
static void
leave_queue(struct evc__watch *w)
{
	evc_queue *q = w->q;

	sync_lock(&q->lock);
	evc__watch_disarm(w);
	list_remove(&w->node);
	list_remove(&w->ear.node);
	evc__queue_pass_on(q, ITEMS);
	sync_unlock(&q->lock);
}

/* Ends the watch and its looper.  If the loop is being lost and the looper has
   run, opts.stop is still called, and drops the watch. */
static void
end_watch(struct evc__watch *w, bool lost)
{
	w->over = true;
	w->stop_drops = lost && w->owed;
	if (w->stop_drops)
		return;
	if (!lost && !w->alone)
		(void)evc_member_remove(w->c, w->looper);
	evc__watch_drop(w);
}

static void
last_call(struct evc__watch *w, evc_status why, bool lost)
{
	evc_queue_fn *fn = w->fn;
	evc_queue *q = w->q;
	void *arg = w->arg;

	leave_queue(w);
	end_watch(w, lost);
	/* fn may free the queue. */
	fn(q, NULL, why, arg);
}

/* ---- its turn; loop thread ---- */

/* The ring is empty.  > 0: the watch waits; else what has come meanwhile. */
static int
arm_watch(struct evc__watch *w, void **ret_item)
{
	evc_queue *q = w->q;
	int st;

	sync_lock(&q->lock);
	evc__ears_tell(q);
	w->is_armed = true;
	list_append(&q->armed, &w->armed);
	q->n_armed++;
	/* The count first, then the second look; see queue.h. */
	sync_add(&q->wanted[ITEMS], 1);
	evc__ear_waits(q, &w->ear);
	st = evc__queue_pop_once(q, ret_item, &w->ear);
	if (st <= 0)
		evc__watch_disarm(w);
	else
		evc__ear_sleeps(q, &w->ear);
	sync_unlock(&q->lock);
	return st;
}

/* Before its looper has run, and after a stop, the watch is not armed: then
   only its message keeps the loop and hears of the stop. */
static int
look_at_queue(struct evc__watch *w, void **ret_item)
{
	int st = evc__queue_pop_once(w->q, ret_item, &w->ear);

	return st <= 0 || !w->owed ? st : arm_watch(w, ret_item);
}

/* fn runs the loop: a turn inside that run does the rest. */
static bool
hand_turn_over(void *arg)
{
	return evc__watch_post(arg) == 0;
}

static void
pass_on(evc_queue *q)
{
	sync_lock(&q->lock);
	evc__ears_tell(q);
	sync_unlock(&q->lock);
}

static void
pop_some(struct evc__watch *w, const struct nested *nested)
{
	evc_queue *q = w->q;
	unsigned n;
	void *item;
	int st;

	for (n = 0; n < SLICE; n++) {
		st = look_at_queue(w, &item);
		if (st < 0)
			last_call(w, -st, false);
		if (st < 0 || (st > 0 && w->owed))
			return;
		if (st > 0) /* the next turn looks again */
			break;
		if (sync_load_sc(&q->wanted[ROOM]) > 0)
			evc__queue_popped(q);
		/* Other waiters may wait for the end behind this item, and fn
		   may take its time. */
		if (evc__ear_is_due(q))
			pass_on(q);
		w->fn(q, item, 0, w->arg);
		if (w->over || nested->handed || evc__queue_inherited(q))
			return;
	}
	(void)evc__watch_post(w);
}

static void
turn_watch(evc_message *m, evc_status why)
{
	struct evc__watch *w = (struct evc__watch *)m;
	struct nested nested;

	sync_lock(&w->making);
	sync_unlock(&w->making);
	sync_store(&w->tid, evc__tid());
	if (!w->over && why != 0)
		last_call(w, EVC_CANCELLED, true);
	else if (!w->over) {
		nested_begin(&nested, evc_reactor_inner_loop(w->r), hand_turn_over,
			     w);
		pop_some(w, &nested);
		nested_end(&nested);
	}
	evc__watch_drop(w); /* the message's reference */
}

/* ---- its looper ---- */

static evc_status
looper_run(evc_coord *c, void *arg)
{
	struct evc__watch *w = arg;

	(void)c;
	w->owed = true;
	return 0;
}

static evc_status
looper_stop(evc_coord *c, void *arg)
{
	struct evc__watch *w = arg;

	(void)c;
	w->owed = false;
	w->alone = true;
	if (w->stop_drops)
		evc__watch_drop(w);
	else if (!w->over && evc__watch_post(w) < 0)
		last_call(w, EVC_CANCELLED, true);
	return 0;
}

/* ---- the calls ---- */

static evc_status
refuse_watch(const evc_queue *q, evc_status st, const char *why)
{
	return evc_refuse(st, "evc_queue_watch: queue %s: %s", q->name, why);
}

static evc_status
check_watch(const evc_queue *q, evc_reactor *r, evc_queue_fn *fn,
	    unsigned flags)
{
	const char *why =
		r == NULL  ? "no reactor, or no home" :
		fn == NULL ? "no function" :
		evc_reactor_coord(r) != q->c ? "another coordinator's reactor" :
		flags & ~(unsigned)EVC_BACKGROUND ? "unknown flags" : NULL;

	return why != NULL ? refuse_watch(q, -EVC_INVALID_ARGUMENT, why) : 0;
}

static struct evc__watch *
make_watch(evc_queue *q, evc_reactor *r, evc_queue_fn *fn, void *arg)
{
	struct evc__watch *w = sync_alloc(1, sizeof *w);

	if (w == NULL)
		return NULL;
	w->message.fn = turn_watch;
	sync_store_relaxed(&w->refs, 2);
	sync_lock_init(&w->making);
	w->q = q;
	w->c = q->c;
	w->r = r;
	w->loop = evc_loop_of(r);
	w->fn = fn;
	w->arg = arg;
	list_init(&w->node);
	list_init(&w->armed);
	return w;
}

/* The message comes before the looper, as it is the first to hear what becomes
   of the loop.  This message is refused after a stop, later ones are not. */
static evc_status
start_watch(struct evc__watch *w, unsigned flags)
{
	evc_member_opts o = { .reactor = w->r,
			      .flags = flags,
			      .stop = looper_stop };
	evc_status st;

	sync_lock(&w->making);
	st = evc__watch_post(w);
	w->message.flags = EVC_AFTER_STOP;
	if (st == 0)
		st = evc_looper_start(w->c, w->q->name, INFINITY, looper_run,
				      w, &o, &w->looper);
	w->over = st < 0;
	sync_unlock(&w->making);
	return st < 0 ? refuse_watch(w->q, st, evc_last_error()) : 0;
}

static evc_status
begin_watch(evc_queue *queue, evc_reactor *r, evc_queue_fn *fn, void *arg,
	    unsigned flags, evc_id *ret_id)
{
	evc_status st = check_watch(queue, r, fn, flags);
	evc_id before = ret_id != NULL ? *ret_id : 0;
	struct evc__watch *w;

	if (st < 0)
		return st;
	w = make_watch(queue, r, fn, arg);
	if (w == NULL)
		return refuse_watch(queue, -EVC_RESOURCE_EXHAUSTED,
				    "no memory");
	sync_lock(&queue->lock);
	list_append(&queue->watches, &w->node);
	w->id = ++queue->last_watch;
	evc__ear_open(queue, &w->ear);
	if (ret_id != NULL) /* before fn is called */
		*ret_id = w->id;
	sync_unlock(&queue->lock);
	st = start_watch(w, flags);
	if (st < 0) {
		if (ret_id != NULL)
			*ret_id = before;
		leave_queue(w);
		evc__watch_drop(w);
	}
	evc__watch_drop(w);
	return st;
}

evc_status
evc_queue_watch(evc_queue *queue, evc_reactor *r, evc_queue_fn *fn, void *arg,
		unsigned flags, evc_id *ret_id)
{
	evc_status st = evc__queue_check(queue, __func__);

	if (st < 0)
		return st;
	return evc_refuse_setup(queue->c, __func__,
				begin_watch(queue, r, fn, arg, flags, ret_id));
}

evc_status
evc_queue_watch_on(evc_queue *queue, evc_loop_ref *loop, evc_queue_fn *fn,
		   void *arg, unsigned flags, evc_id *ret_id)
{
	evc_status st = evc__queue_check(queue, __func__);
	evc_reactor *r = loop != NULL ? evc_loop_enter(loop) : NULL;
	const char *why = loop != NULL ? "the loop is gone" : "no loop";
	evc_status code = loop != NULL ? EVC_NOT_FOUND : EVC_INVALID_ARGUMENT;

	if (st == 0 && r == NULL)
		st = evc_refuse_setup(queue->c, __func__,
				      refuse_watch(queue, -code, why));
	if (st == 0)
		st = evc_queue_watch(queue, r, fn, arg, flags, ret_id);
	if (r != NULL)
		evc_loop_leave(loop);
	return st;
}

/* Is this the thread of the watch's loop?  Before the first turn a task
   tells. */
static bool
is_here(struct evc__watch *w)
{
	static const evc_task_class probe = { .name = "watch",
					      .flags = EVC_AFTER_STOP };
	int tid = sync_load(&w->tid);
	evc_task t = { .next_ = NULL };
	evc_reactor *r;
	evc_status st;

	if (tid != 0)
		return tid == evc__tid();
	/* On another thread the loop may be about to go. */
	r = evc_loop_enter(w->loop);
	if (r == NULL)
		return false;
	st = evc_task_begin(r, &t, &probe);
	evc_task_end(&t);
	evc_loop_leave(w->loop);
	return st == 0;
}

evc_status
evc_queue_unwatch(evc_queue *queue, evc_id id)
{
	evc_status st = evc__queue_check(queue, __func__);
	struct evc__watch *w = NULL;
	struct list *n, *tmp;

	if (st < 0)
		return st;
	sync_lock(&queue->lock);
	LIST_EACH(n, tmp, &queue->watches)
		if (LIST_OF(n, struct evc__watch, node)->id == id)
			w = LIST_OF(n, struct evc__watch, node);
	if (w != NULL)
		sync_add(&w->refs, 1);
	sync_unlock(&queue->lock);
	if (w == NULL)
		return evc_refuse(-EVC_NOT_FOUND,
				  "evc_queue_unwatch: queue %s has no watch "
				  "%llu",
				  queue->name, (unsigned long long)id);
	if (!is_here(w))
		st = evc_refuse(-EVC_FAILED_PRECONDITION,
				"evc_queue_unwatch: another thread's loop");
	else {
		leave_queue(w);
		end_watch(w, false);
	}
	evc__watch_drop(w);
	return st;
}
