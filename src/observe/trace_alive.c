/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members alive when the timeline is written: records of their beginnings may
 * have left the ring, or may never have been in the ring.
 * Called by: trace_lanes.c.
 * Locks: the lock of each coordinator of the tree, taken.
 */
#include "base/deadline.h"
#include "base/text.h"
#include "core/core.h"
#include "core/join/join.h"
#include "observe/trace_lanes.h"

struct walk {
	struct evc__timeline *t;
	uint64_t n_tasks; /* lines of tasks so far */
	const evc_coord *c;
	bool failed;
};

static void
add_record(struct walk *k, unsigned kind, uint64_t id, const char *name,
	   const char *last, int tid, uint64_t arg)
{
	struct evc__record *r = evc__timeline_add(k->t);

	if (r == NULL) {
		k->failed = true;
		return;
	}
	memset(r, 0, sizeof *r);
	r->ns = k->t->now;
	r->what = TRACE_ALIVE;
	r->kind = (uint8_t)kind;
	r->coord = k->c->number;
	r->id = id;
	r->tid = tid;
	r->arg = arg;
	memcpy(r->name, name, strnlen(name, sizeof r->name - 1));
	if (last != NULL)
		memcpy(r->more, last, strnlen(last, sizeof r->more - 1));
}

/* A clock of the user's says nothing of these times. */
static uint64_t
known_since(const evc_coord *c, uint64_t ns)
{
	return c->status.clock == NULL ? ns : 0;
}

static void
add_list(struct walk *k, const struct list *head)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, head) {
		const struct evc__member *m =
			LIST_OF(n, struct evc__member, node);

		if (sync_load(&m->state) == EVC_LIVE)
			add_record(k, m->e.kind, m->e.id, m->name,
				   sync_load_relaxed(&m->mark.text), m->tid,
				   known_since(k->c, m->since_ns));
	}
}

static void
add_live_looper(const struct evc__looper_view *v, void *arg)
{
	struct walk *k = arg;

	if (v->alive)
		add_record(k, EVC_LOOPER, v->e->id, v->name, NULL, 0,
			   known_since(k->c, v->since_ns));
}

/* The n tasks of a class: lines for those of which the loop has told, and a line
   for the others. */
static void
add_tasks(struct walk *k, const evc_reactor *r, const struct evc__task_count *of)
{
	const evc_task_class *cls = sync_load(&of->cls);
	const char *name = cls != NULL && cls->name != NULL ? cls->name :
							      "task";
	uint32_t n = sync_load(&of->n), left = n;
	char many[TRACE_MORE];
	struct text t = evc__text_in(many, sizeof many);
	const struct evc__task_text *x;
	unsigned i = 0;
	double age;

	while (left > 0 &&
	       (x = evc__task_text_next(r, &i, of, n, &age)) != NULL) {
		uint64_t ns = evc__ns(age);

		add_record(k, EVC_TASK, ++k->n_tasks, name, x->text, 0,
			   known_since(k->c, ns < k->t->now ? k->t->now - ns :
							      0));
		left--;
	}
	if (left > 1)
		evc__text_fmt(&t, "%u tasks", left);
	if (left > 0)
		add_record(k, EVC_TASK, ++k->n_tasks, name, many, 0, 0);
}

/* Lock of k->c held. */
static void
walk_coord(struct walk *k)
{
	const evc_coord *c = k->c;
	struct list *n, *tmp;
	unsigned i;

	add_record(k, EVC_SCOPE, 0, c->name, NULL, 0,
		   c->parent != NULL ? c->parent->number : 0);
	add_list(k, &c->member.all);
	add_list(k, &c->loop.hooks);
	LIST_EACH(n, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		/* A reactor on another's loop shows only when it has tasks. */
		if (r->owner)
			add_record(k, TRACE_LOOP, (uint64_t)r->tid, r->name,
				   sync_load_relaxed(&r->mark.text), r->tid, 0);
		for (i = 0; i <= TASK_CLASSES; i++)
			add_tasks(k, r, &r->count[i]);
		if (r->looper_ops != NULL)
			r->looper_ops->each(r, add_live_looper, k);
	}
	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		sync_lock(&s->lock);
		k->c = s;
		walk_coord(k);
		k->c = c;
		sync_unlock(&s->lock);
	}
}

bool
evc__timeline_alive(struct evc__timeline *t, const evc_coord *c)
{
	struct walk k = { .t = t };

	while (c->parent != NULL)
		c = c->parent;
	k.c = c;
	sync_lock(&((evc_coord *)c)->lock);
	walk_coord(&k);
	sync_unlock(&((evc_coord *)c)->lock);
	return !k.failed;
}
