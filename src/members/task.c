/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks: work in flight on a loop, in memory of the caller.  Begin and end
 * touch only the loop's lists and counters; the coordinator's count of live
 * members moves with a loop's first and last task.  task_tell.c tells the tasks
 * of a stop, task_late.c those that are late.  Tasks begun after the stop that
 * are not to be told have a list of their own, which the first walk leaves
 * out.
 * Called by: the program, on the loop's thread; core, by `ops`.
 * Locks: none; the lists are the loop thread's, the counters atomic.
 */
#include "base/reserved.h"
#include "base/self.h"
#include "core/core.h"
#include "core/status/trace.h"
#include "members/task.h"

_Static_assert(sizeof(evc_task) <= 64, "documented, and for ever");

#define TASK_FLAGS ((unsigned)EVC_AFTER_STOP | (unsigned)EVC_TELL_AFTER_STOP)

static void
drop_tasks(evc_reactor *r)
{
	evc_task *heads[TASK_LISTS] = TASK_HEADS(r), *t, *next;
	unsigned i;

	if (r->n_live == 0)
		return;
	evc__tasks_disarm(r, r->waker->loop);
	for (i = 0; i < TASK_LISTS; i++) {
		for (t = heads[i]->next_;
		     t != heads[i] && evc__task_intact(r, t); t = next) {
			next = t->next_;
			t->reactor_ = NULL;
		}
		heads[i]->next_ = heads[i]->prev_ = heads[i];
	}
	for (i = 0; i <= TASK_CLASSES; i++)
		sync_store_relaxed(&r->count[i].n, 0);
	r->cursor = &r->tasks;
	r->n_live = 0;
	sync_store(&r->tasks_wrong, 0);
	sync_store(&r->n_tasks, 0);
	evc__alive_sub(r->c);
	evc__ring(r->c);
}

static const struct evc__task_ops ops = { .tell = evc__tasks_tell,
					  .describe = evc__tasks_describe,
					  .drop = drop_tasks };

/* The counter of a class on this loop; the last counter is for all classes
   beyond TASK_CLASSES. */
static struct evc__task_count *
count_of(evc_reactor *r, const evc_task_class *cls)
{
	unsigned i;

	r->task_ops = &ops;
	if (cls->on_late != NULL && !r->late.wanted)
		evc__tasks_want_late(r);
	for (i = 0; i < TASK_CLASSES; i++) {
		const evc_task_class *k =
			sync_load_relaxed(&r->count[i].cls);

		if (k == NULL)
			sync_store(&r->count[i].cls, cls);
		if (k == NULL || k == cls)
			break;
	}
	r->last_class = cls;
	return r->last_count = &r->count[i];
}

static void
add_plain(_Atomic uint32_t *n, uint32_t change)
{
	/* Only the loop's thread writes. */
	sync_store_relaxed(n, sync_load_relaxed(n) + change);
}

/* What a class of one loop after the other is asked for once. */
static bool
is_valid(const evc_task_class *cls)
{
	return (cls->grace >= 0 || cls->grace == EVC_NO_GRACE) &&
	       evc__reserved_is_zero(cls->reserved_, 8);
}

static evc_status
why_refused(evc_reactor *r, const evc_task *t, const evc_task_class *cls)
{
	evc_status st;

	if (r == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_task_begin: no reactor, or no home");
	st = evc__check(r->c, "evc_task_begin");
	if (st < 0)
		return st;
	if (t == NULL || cls == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_task_begin: no task, or no class");
	if (cls->flags & ~TASK_FLAGS)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_task_begin: unknown flags %#x",
				   cls->flags);
	st = evc__check_grace(cls->grace, "evc_task_begin");
	if (st == 0)
		st = evc__check_reserved(cls->reserved_, "evc_task_begin");
	if (st < 0)
		return st;
	st = evc__reactor_usable(r, "evc_task_begin");
	if (st < 0)
		return st;
	if (r->tid != evc__tid())
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_task_begin: another thread's loop");
	if (t->reactor_ != NULL)
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "evc_task_begin: this task has begun");
	return evc__refuse(-EVC_CANCELLED,
			   "evc_task_begin: a stop was requested");
}

/* t is the only task: move t to the list of tasks that the walk tells. */
static void
requeue_task(evc_reactor *r, evc_task *t)
{
	r->after.next_ = r->after.prev_ = &r->after;
	r->tasks.next_ = r->tasks.prev_ = &r->tasks;
	evc__task_append(&r->tasks, t);
}

evc_status
evc_task_begin(evc_reactor *r, evc_task *t, const evc_task_class *cls)
{
	evc_task *head;
	uint64_t w;

	if (__builtin_expect(r == NULL || t == NULL || cls == NULL ||
				     (cls->flags & ~TASK_FLAGS) ||
				     r->loop == NULL || r->tid != evc__tid() ||
				     t->reactor_ != NULL ||
				     !evc__same_process(r->c),
			     0))
		return why_refused(r, t, cls);
	w = sync_load(&r->c->word);
	if (((w & WORD_FLAG) && !(cls->flags & TASK_FLAGS)) ||
	    (r->last_class != cls && !is_valid(cls)))
		return why_refused(r, t, cls);
	head = (w & WORD_FLAG) && !(cls->flags & EVC_TELL_AFTER_STOP) ?
		       &r->after :
		       &r->tasks;
	evc__task_append(head, t);
	t->reactor_ = r;
	t->class_ = cls;
	t->since_ = evc__reactor_now(r);
	t->count_ = r->last_class == cls ? r->last_count : count_of(r, cls);
	add_plain(&((struct evc__task_count *)t->count_)->n, 1);
	/* n_tasks changes before `alive`, by which it becomes visible. */
	add_plain(&r->n_tasks, 1);
	if (r->n_live++ == 0) {
		evc__alive_add(r->c);
		/* If the stop was cleared before the count, the task belongs to
		   the new round, and is not late. */
		if (WORD_STOPS(sync_load(&r->c->word)) != WORD_STOPS(w))
			requeue_task(r, t);
	}
	if (__builtin_expect(w & WORD_FLAG, 0))
		evc__task_after_stop(r, t);
	return 0;
}

/* A neighbour was overwritten: unlink t where the links are intact. */
static void
unlink_beside(evc_reactor *r, const evc_task *t)
{
	evc__tasks_broken(r);
	if (t->prev_->next_ == t)
		t->prev_->next_ = t->next_;
	if (t->next_->prev_ == t)
		t->next_->prev_ = t->prev_;
}

/* The last task has ended: inside the refgate, so that c still exists during
   the ring. */
static void
ended_last(evc_reactor *r)
{
	evc_coord *c = r->c;

	sync_store_relaxed(&r->tasks_wrong, 0);
	evc__tasks_disarm(r, r->loop);
	if (!evc__refgate_enter(&c->life.gate))
		return;
	evc__trace_idle(r);
	evc__alive_sub(c);
	evc__ring(c);
	evc__refgate_leave(&c->life.gate);
}

void
evc_task_end(evc_task *t)
{
	evc_reactor *r = t != NULL ? t->reactor_ : NULL;

	/* In a fork child the task has no loop. */
	if (r == NULL || !evc__same_process(r->c))
		return;
	if (r->tid != evc__tid()) {
		(void)sync_or(&r->tasks_wrong, TASKS_FOREIGN);
		evc__refuse(0, "evc_task_end: another thread's loop");
		return;
	}
	if (r->cursor == t)
		r->cursor = t->next_;
	if (__builtin_expect(t->prev_->next_ == t && t->next_->prev_ == t, 1)) {
		t->prev_->next_ = t->next_;
		t->next_->prev_ = t->prev_;
	} else
		unlink_beside(r, t);
	add_plain(&((struct evc__task_count *)t->count_)->n, (uint32_t)-1);
	add_plain(&r->n_tasks, (uint32_t)-1);
	t->reactor_ = NULL;
	if (--r->n_live == 0)
		ended_last(r);
}

evc_reactor *
evc_task_reactor(const evc_task *t)
{
	return t != NULL ? t->reactor_ : NULL;
}

evc_coord *
evc_task_coord(const evc_task *t)
{
	return t != NULL ? evc_reactor_coord(t->reactor_) : NULL;
}
