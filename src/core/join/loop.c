/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins on a running loop: an ev_timer is the alarm, the reactor's ev_async the
 * ring; the result goes to a callback, or ends an ev_run of the library.  A
 * timer counts from the loop's ev_now, which is stale after a long callback, so
 * the timer may fire early: then the join looks, decides to wait, and arms the
 * timer again.
 *
 * Called by: evc_join_start, block.c, turn.c; libev.
 * Locks: the coordinator's, given up for a callback; the list `here` belongs to
 * the loop's thread.
 */
#include "core/core.h"
#include "core/join/scope_join.h"

#include "base/self.h"
#include "base/text.h"
#include "base/unwind.h"

/* The timer of a join is always active, if only for a far time: so a stop needs
   no memory for the timer in libev's heap. */
#define FAR 1e6

static void
on_timer(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct evc__join *j = t->data;

	(void)loop;
	(void)revents;
	if (!evc__loop_waker_inherited(j->stand.waker))
		evc__loop_waker_turn(j->reactor);
}

static void
arm_timer(struct evc__join *j, uint64_t wait_ns)
{
	struct evc__loop_waker *lw = j->reactor->waker;
	double wait = wait_ns == SYNC_FOREVER ? FAR : (double)wait_ns / 1e9;

	evc__timer_stop(lw, lw->loop, &j->timer);
	evc__timer_start(lw, &j->timer, wait < FAR ? wait : FAR);
}

static void
leave_loop(struct evc__stand *s, struct ev_loop *loop)
{
	evc__timer_stop(s->waker, loop,
			&LIST_OF(s, struct evc__join, stand)->timer);
}

void
evc__join_enter(struct evc__join *j)
{
	evc_reactor *r = j->reactor;

	ev_init(&j->timer.ev, on_timer);
	j->timer.ev.data = j;
	/* The timer of a join comes before all other timers. */
	ev_set_priority(&j->timer.ev, EV_MAXPRI);
	j->stand.leave = leave_loop;
	evc__stand_begin(&j->stand, r->waker);
	evc__reactor_hear(r, true);
	list_append(&r->joins, &j->here);
}

void
evc__join_leave(struct evc__join *j)
{
	evc_reactor *r = j->reactor;

	list_remove(&j->here);
	evc__join_end(j);
	if (r->loop != NULL)
		evc__timer_stop(r->waker, r->loop, &j->timer);
	evc__reactor_hear(r, false);
	evc__stand_end(&j->stand);
}

SHUT_VOID(call, (evc_join_fn *fn, evc_coord *c, const evc_verdict *v,
		 void *arg),
	  fn(c, v, arg))

/* Loop thread, lock held on entry and given up: give j's verdict to the
   callback.  The callback may free c, so this function does not use c
   afterwards. */
static void
deliver_verdict(struct evc__join *j)
{
	evc_coord *c = j->c;
	evc_join_fn *fn = j->fn;
	evc_reactor *r = j->reactor;
	void *arg = j->arg;
	bool internal = j->internal;
	struct evc__busy busy;
	evc_verdict v;

	evc__join_leave(j);
	sync_unlock(&c->lock);
	if (j->until_stop)
		evc__reactor_answered(r);
	/* This may wait for the report, which must not blame the loop. */
	evc__join_result(j, &v);
	if (!internal)
		sync_free(j);
	evc__busy_begin(r, c, internal ? BUSY_ENDED : BUSY_JOIN, c->name,
			&busy);
	call(fn, c, &v, arg);
	evc__busy_end(&busy);
}

bool
evc__joins_turn(evc_reactor *r, const struct evc__frame *f)
{
	evc_coord *c = r->c;
	struct list *n, *tmp;
	uint64_t wait_ns;
	bool answered, internal;

again:
	if (list_empty(&r->joins))
		return true;
	sync_lock(&c->lock);
	LIST_EACH(n, tmp, &r->joins) {
		struct evc__join *j = LIST_OF(n, struct evc__join, here);

		/* The join is inside a look: a runner that the join calls has
		   run this loop. */
		if (j->looking)
			continue;
		j->looking = true;
		answered = evc__join_look(j, &wait_ns);
		j->looking = false;
		tmp = n->next;
		if (!answered)
			arm_timer(j, wait_ns);
		else if (j->fn != NULL) {
			internal = j->internal;
			deliver_verdict(j);
			if (f->gone)
				return false;
			if (internal)
				evc__scope_join_called(c);
			goto again; /* the list may have changed */
		}
	}
	sync_unlock(&c->lock);
	return true;
}

void
evc__joins_cancel(evc_reactor *r, struct ev_loop *loop,
		  const struct evc__frame *f)
{
	evc_coord *c = r->c;
	struct list *n, *tmp;
	bool internal;

	LIST_EACH(n, tmp, &r->joins)
		evc__timer_stop(r->waker, loop,
				&LIST_OF(n, struct evc__join, here)->timer);
	while (!f->gone && !list_empty(&r->joins)) {
		struct evc__join *j =
			LIST_OF(r->joins.next, struct evc__join, here);

		sync_lock(&c->lock);
		if (!j->answered) {
			memset(&j->verdict, 0, sizeof j->verdict);
			j->verdict.code = EVC_CANCELLED;
			j->verdict.error.code = EVC_CANCELLED;
			j->verdict.round =
				WORD_ROUND(sync_load(&c->word));
			evc__copy(j->verdict.error.text,
				  sizeof j->verdict.error.text,
				  "the loop was detached or destroyed");
			j->answered = true;
		}
		internal = j->internal;
		deliver_verdict(j);
		if (internal && !f->gone)
			evc__scope_join_called(c);
	}
}

/* Is d's join answered, and is no other answered join of this loop waiting for
   its callback?  A later turn calls these callbacks: the answering thread has
   rung. */
static bool
is_answered(struct evc__driver *d)
{
	struct evc__join *j = d->arg;
	struct list *n, *tmp;
	bool yes;

	sync_lock(&j->c->lock);
	yes = j->answered;
	LIST_EACH(n, tmp, &d->r->joins) {
		struct evc__join *other = LIST_OF(n, struct evc__join, here);

		if (other->answered && other->fn != NULL)
			yes = false;
	}
	sync_unlock(&j->c->lock);
	return yes;
}

/* Lock held: an exception ends the join.  In this stop the next join has the rest
   of its time. */
static void
note_broken(struct evc__join *j)
{
	uint64_t w = sync_load_sc(&j->c->word);

	if (!(w & WORD_FLAG))
		return;
	j->c->join.broken = WORD_STOP_NUMBER(w);
	j->c->join.broken_ns = j->start_ns;
}

/* The end of evc__join_drive, also by an exception from a watcher of the
   program. */
static void
leave_join(struct evc__join **j)
{
	evc_coord *c = (*j)->c;

	if (!evc__same_process(c))
		return;
	sync_lock(&c->lock);
	if (!(*j)->answered)
		note_broken(*j);
	evc__join_leave(*j);
	sync_unlock(&c->lock);
}

bool
evc__join_drive(struct evc__join *j)
{
	struct evc__join *entered LEAVING(leave_join) = j;
	struct evc__driver d = { .r = j->reactor,
				 .over = is_answered,
				 .arg = j,
				 .stops_on_break = j->until_stop };

	evc__join_enter(entered);
	return evc__drive(&d);
}

static evc_status
join_start(evc_coord *c, evc_join_fn *fn, void *arg, const evc_join_opts *o)
{
	evc_reactor *r = o != NULL ? o->reactor : NULL;
	evc_status st = evc__join_check(c, o, "evc_join_start");
	struct evc__join *j;

	if (st < 0)
		return st;
	sync_lock(&c->lock);
	if (r == NULL)
		r = evc__reactor_here(c, NULL);
	if (r == NULL)
		r = evc__home(c);
	sync_unlock(&c->lock);
	if (fn == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_join_start: no function");
	if (r == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_join_start: no loop to run in");
	st = evc__reactor_usable(r, "evc_join_start");
	if (st < 0)
		return st;
	if (r->tid != evc__tid())
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_join_start: another thread's loop");
	j = sync_alloc(1, sizeof *j);
	if (j == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_join_start: no memory");
	st = evc__adopt_list(c, o);
	if (st < 0) {
		sync_free(j);
		return st;
	}
	j->fn = fn;
	j->arg = arg;
	j->reactor = r;
	j->reap_ns = BACKOFF_FIRST_NS;
	evc__join_begin(j, c, o);
	evc__join_enter(j);
	return 0;
}

evc_status
evc_join_start(evc_coord *c, evc_join_fn *fn, void *arg,
	       const evc_join_opts *opts)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = join_start(c, fn, arg, opts);
	return evc__refuse_setup(c, __func__, st);
}
