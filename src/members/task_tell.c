/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stop, for the tasks of a loop.  A cursor in the reactor walks the tasks to
 * tell the stop: the cursor moves on before each call, and when its task ends,
 * so any task may be ended and freed meanwhile.  Reports get a copy of what the
 * oldest tasks say of themselves.
 * Called by: core, on the loop's thread, by the table of task.c.
 * Locks: none for the lists, which are the loop thread's; the coordinator's for
 * the copy.
 */
#include "base/probe.h"
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"
#include "core/status/trace.h"
#include "members/task.h"

SHUT_VOID(tell_one, (evc_task *t), t->class_->on_stop(t, t->class_->arg))

void
evc__tasks_broken(evc_reactor *r)
{
	(void)sync_or(&r->tasks_wrong, TASKS_BROKEN);
	r->cursor = &r->tasks;
}

bool
evc__tasks_tell(evc_reactor *r, const struct evc__frame *f)
{
	uint32_t stop = WORD_STOP_NUMBER(sync_load(&r->c->word));
	struct evc__busy busy;
	unsigned n;

	if (r->told != stop) {
		r->told = stop;
		r->cursor = sync_load_relaxed(&r->tasks_wrong) & TASKS_BROKEN ?
				    &r->tasks :
				    r->tasks.next_;
		if (r->n_live > 0)
			evc__trace(r->c, TRACE_TELL, (uint64_t)r->tid,
				   TRACE_LOOP, r->name, r->n_live);
	}
	if (r->cursor == &r->tasks)
		return evc__tasks_late(r, f);
	evc__busy_begin(r, r->c, BUSY_TASKS, NULL, &busy);
	for (n = 0; r->cursor != &r->tasks; n++) {
		evc_task *t = r->cursor;

		if (n == TASK_SLICE) {
			/* Not ev_feed_event, which would leave no turn to
			   watchers of lower priority. */
			evc__reactor_poke(r);
			break;
		}
		if (!evc__task_intact(r, t)) {
			evc__tasks_broken(r);
			break;
		}
		r->cursor = t->next_;
		if (t->class_->on_stop == NULL)
			continue;
		/* A class and its name are static. */
		evc__busy_enter(r, t->class_->name);
		PROBE4(told, &r->c->name[0], t->class_->name, EVC_TASK, t);
		tell_one(t);
		if (f->gone)
			break;
	}
	evc__busy_end(&busy);
	if (f->gone)
		return false;
	if (n > 0 && r->cursor == &r->tasks)
		evc__trace(r->c, TRACE_TOLD, (uint64_t)r->tid, TRACE_LOOP,
			   r->name, r->n_live);
	return r->cursor != &r->tasks || evc__tasks_late(r, f);
}

/* ---- what reports say ---- */

/* A copy is made again after this time, or when a task has ended. */
#define FRESH_NS UINT64_C(10000000)

SHUT_VOID(describe_one, (const evc_task *t, char *buf, size_t n),
	  t->class_->describe(t, buf, n, t->class_->arg))

/* The task with this number, from 0 on, in the order of begin; NULL: none. */
static evc_task *
nth_task(evc_reactor *r, unsigned nth)
{
	evc_task *const heads[TASK_LISTS] = TASK_HEADS(r);
	unsigned i;

	for (i = 0; i < TASK_LISTS; i++) {
		evc_task *t = heads[i]->next_;

		for (; t != heads[i] && evc__task_intact(r, t); t = t->next_)
			if (nth-- == 0)
				return t;
	}
	return NULL;
}

/* The function of the class may end any task, or take r away: then the text is
   lost.  false: r is gone. */
static bool
describe_task(evc_reactor *r, const struct evc__frame *f, const evc_task *t,
	      struct evc__task_text *to)
{
	struct evc__task_count *k = t->count_;
	struct evc__busy busy;

	memset(to, 0, sizeof *to);
	to->task = t;
	to->count = k;
	to->n = sync_load_relaxed(&k->n);
	to->age = evc__reactor_now(r) - t->since_;
	if (t->class_->describe == NULL)
		return true;
	r->describing = true;
	evc__busy_begin(r, r->c, BUSY_DESCRIBE, t->class_->name, &busy);
	describe_one(t, to->text, sizeof to->text);
	evc__busy_end(&busy);
	if (f->gone)
		return false;
	r->describing = false;
	to->text[sizeof to->text - 1] = '\0';
	return true;
}

/* Is the copy of this stop, young, and of the same tasks? */
static bool
is_fresh(const evc_reactor *r, uint32_t stop, uint64_t now, uint32_t n_tasks)
{
	const struct evc__task_texts *x = &r->texts;

	return x->stop == stop && x->ns >= r->asked_ns &&
	       x->n_tasks == n_tasks &&
	       x->n_after == sync_load_relaxed(&r->n_after) &&
	       now >= x->ns && now - x->ns < FRESH_NS;
}

bool
evc__tasks_describe(evc_reactor *r, const struct evc__frame *f)
{
	struct evc__task_texts x = { .ns = evc__now(r->c) };
	bool fresh;

	if (r->n_live == 0 || r->describing ||
	    (sync_load_relaxed(&r->tasks_wrong) & TASKS_BROKEN))
		return true;
	x.stop = WORD_STOP_NUMBER(sync_load(&r->c->word));
	x.n_tasks = sync_load_relaxed(&r->n_tasks);
	x.n_after = sync_load_relaxed(&r->n_after);
	sync_lock(&r->c->lock);
	fresh = is_fresh(r, x.stop, x.ns, x.n_tasks);
	sync_unlock(&r->c->lock);
	if (fresh)
		return true;
	for (; x.n < TASK_TEXTS; x.n++) {
		const evc_task *t = nth_task(r, x.n);

		if (t == NULL)
			break;
		if (!describe_task(r, f, t, &x.of[x.n]))
			return false;
	}
	sync_lock(&r->c->lock);
	r->texts = x;
	sync_unlock(&r->c->lock);
	return true;
}
