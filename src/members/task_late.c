/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Late tasks: on_late of a class is called for each task that is left when the
 * class's grace is over.  A walk takes each task off the front of its list, so
 * a call may end any task: late tasks move to the list `over`, the others to
 * `pending` and, when the walk is over, back.  An ev_timer of the reactor turns
 * the loop for the next walk; it is active only while tasks are left after a
 * stop, and keeps no ev_run going.
 * Called by: task_tell.c, when all tasks are told; task.c.
 * Locks: none for the lists; the coordinator's for the grace of a stop.
 */
#include "base/deadline.h"
#include "base/unwind.h"
#include "core/core.h"
#include "core/join/join.h"
#include "members/task.h"

/* The longest time of the timer, in seconds; afterwards the timer is set
   again. */
#define FAR 1e6

SHUT_VOID(call_on_late, (evc_task *t), t->class_->on_late(t, t->class_->arg))

/* ---- the timer ---- */

void
evc__tasks_disarm(evc_reactor *r, struct ev_loop *loop)
{
	if (!r->late.armed)
		return;
	r->late.armed = false;
	evc__stand_end(&r->late.stand);
	ev_ref(loop);
	evc__timer_stop(r->waker, loop, &r->late.timer);
}

/* In a fork child. */
static void
leave_loop(struct evc__stand *s, struct ev_loop *loop)
{
	ev_ref(loop);
	evc__timer_stop(s->waker, loop,
			&LIST_OF(s, struct evc__task_late, stand)->timer);
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	evc_reactor *r = w->data;

	(void)revents;
	if (evc__loop_waker_inherited(r->late.stand.waker))
		return;
	evc__tasks_disarm(r, loop);
	evc__loop_waker_turn(r);
}

static void
start_timer(evc_reactor *r, double wait)
{
	struct evc__task_late *l = &r->late;

	ev_init(&l->timer.ev, on_timer);
	ev_set_priority(&l->timer.ev, EV_MAXPRI);
	l->timer.ev.data = r;
	evc__timer_start(r->waker, &l->timer, wait < FAR ? wait : FAR);
}

/* Turn the loop at l->due. */
static void
arm_timer(evc_reactor *r, uint64_t now)
{
	struct evc__task_late *l = &r->late;
	uint64_t wait = l->due > now ? l->due - now : 0;

	if (l->armed && l->armed_for == l->due)
		return;
	evc__tasks_disarm(r, r->loop);
	if (l->due == SYNC_FOREVER)
		return;
	l->armed = true;
	l->armed_for = l->due;
	l->stand.leave = leave_loop;
	evc__stand_begin(&l->stand, r->waker);
	start_timer(r, (double)evc__real_ns(r->c, wait) / 1e9);
	ev_unref(r->loop);
}

void
evc__tasks_want_late(evc_reactor *r)
{
	r->late.wanted = true;
	/* libev makes room for the timer now, and not at a stop. */
	start_timer(r, FAR);
	evc__timer_stop(r->waker, r->loop, &r->late.timer);
}

/* ---- a stop ---- */

/* The time at which a task of this class is late. */
static uint64_t
due_of(const struct evc__task_late *l, const evc_task_class *cls)
{
	uint64_t ns = l->most, due;

	if (cls->grace == EVC_NO_GRACE)
		ns = 0;
	else if (cls->grace > 0 && evc__ns(cls->grace) < ns)
		ns = evc__ns(cls->grace);
	due = evc__after(l->begin, ns);
	return l->cut != 0 && l->cut < due ? l->cut : due;
}

/* The first look of this stop. */
static void
begin_stop(evc_reactor *r, uint64_t w)
{
	double budget = evc__escalation(r->c)->budget, grace;
	struct evc__task_late *l = &r->late;

	sync_lock(&r->c->lock);
	l->begin = evc__stop_time(r->c, w);
	grace = evc__grace(r->c, 0, w);
	sync_unlock(&r->c->lock);
	l->most = evc__ns(budget > 0 && budget < grace ? budget : grace);
	l->stop = WORD_STOP_NUMBER(w);
	l->cut = 0;
	l->due = 0;
	l->walking = false;
}

static void
move_task(evc_task *t, evc_task *head)
{
	t->prev_->next_ = t->next_;
	t->next_->prev_ = t->prev_;
	evc__task_append(head, t);
}

/* Move t, and call on_late if t is late. */
static void
look_at_task(evc_reactor *r, evc_task *t, uint64_t now)
{
	const evc_task_class *cls = t->class_;
	uint64_t due;

	if (cls->on_late == NULL) {
		move_task(t, &r->over);
		return;
	}
	due = due_of(&r->late, cls);
	if (due > now) {
		r->late.next = due < r->late.next ? due : r->late.next;
		move_task(t, &r->pending);
		return;
	}
	move_task(t, &r->over);
	/* A class and its name are static. */
	evc__busy_enter(r, cls->name);
	call_on_late(t);
}

static bool
same_stop(const evc_reactor *r)
{
	uint64_t w = sync_load(&r->c->word);

	return (w & WORD_FLAG) && WORD_STOP_NUMBER(w) == r->late.stop;
}

/* The next task of the walk; NULL: the walk is over, or tasks have begun that
   are to be told first. */
static evc_task *
next_task(evc_reactor *r)
{
	if (r->cursor != &r->tasks)
		return NULL;
	if (r->tasks.next_ != &r->tasks)
		return r->tasks.next_;
	return r->after.next_ != &r->after ? r->after.next_ : NULL;
}

/* The walk is over: tasks that are not late yet go back. */
static void
end_walk(evc_reactor *r)
{
	r->late.walking = false;
	r->late.due = r->late.next;
	while (r->pending.next_ != &r->pending)
		move_task(r->pending.next_, &r->tasks);
}

/* false: r is gone. */
static bool
walk_tasks(evc_reactor *r, const struct evc__frame *f, uint64_t now)
{
	struct evc__task_late *l = &r->late;
	struct evc__busy busy;
	evc_task *t;
	unsigned n;

	if (!l->walking)
		l->next = SYNC_FOREVER;
	l->walking = true;
	evc__busy_begin(r, r->c, BUSY_LATE, NULL, &busy);
	for (n = 0; !f->gone && n < TASK_SLICE && same_stop(r); n++) {
		t = next_task(r);
		if (t == NULL)
			break;
		if (!evc__task_intact(r, t)) {
			evc__tasks_broken(r);
			break;
		}
		look_at_task(r, t, now);
	}
	evc__busy_end(&busy);
	if (f->gone)
		return false;
	if (r->cursor == &r->tasks && next_task(r) == NULL)
		end_walk(r);
	else
		evc__reactor_poke(r);
	return true;
}

/* When a second signal cut the grace of this stop of c, or of a stop above; 0:
   none did. */
static uint64_t
first_cut(const evc_coord *c, uint32_t stop)
{
	uint64_t cut = evc__grace_cut_at(c, stop), w, above;

	for (c = c->parent; c != NULL; c = c->parent) {
		w = sync_load_sc(&c->word);
		above = w & WORD_FLAG ?
				evc__grace_cut_at(c, WORD_STOP_NUMBER(w)) :
				0;
		if (above != 0 && (cut == 0 || above < cut))
			cut = above;
	}
	return cut;
}

bool
evc__tasks_late(evc_reactor *r, const struct evc__frame *f)
{
	struct evc__task_late *l = &r->late;
	uint64_t w, now, cut;

	if (!l->wanted || r->n_live == 0 ||
	    (sync_load_relaxed(&r->tasks_wrong) & TASKS_BROKEN))
		return true;
	w = sync_load(&r->c->word);
	if (!(w & WORD_FLAG))
		return true;
	if (l->stop != WORD_STOP_NUMBER(w))
		begin_stop(r, w);
	now = evc__now(r->c);
	cut = first_cut(r->c, l->stop);
	if (now >= l->due || cut != l->cut || l->walking) {
		l->cut = cut;
		if (!walk_tasks(r, f, now))
			return false;
	}
	if (r->n_live > 0 && !l->walking && same_stop(r))
		arm_timer(r, now);
	return true;
}

void
evc__task_after_stop(evc_reactor *r, evc_task *t)
{
	const evc_task_class *cls = t->class_;
	struct evc__task_late *l = &r->late;
	bool tell = cls->flags & EVC_TELL_AFTER_STOP;
	uint64_t due;

	/* The texts about tasks are stale. */
	sync_store_relaxed(&r->n_after, sync_load_relaxed(&r->n_after) + 1);
	if (tell && r->cursor == &r->tasks)
		r->cursor = t;
	if (cls->on_late != NULL && same_stop(r)) {
		due = due_of(l, cls);
		l->due = due < l->due ? due : l->due;
		l->next = due < l->next ? due : l->next;
	}
	if (tell || cls->on_late != NULL)
		evc__reactor_poke(r);
}
