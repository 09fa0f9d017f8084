/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks at members: one by its id, or all that are alive.
 * Called by: facts.c; the program (evc_member_get, _each).
 * Locks: the coordinator's and, for scopes, the lock of each below; the static
 * functions need it held.
 */
#include "base/self.h"
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"
#include "core/loop/post.h"
#include "core/join/join.h"
#include "observe/facts.h"

/* Lock held.  The part that loopers on a loop and loopers on their own thread
   share. */
static void
describe_looper(const evc_coord *c, const struct evc__entry *e, uint64_t now,
		evc_member_info *to, struct text *where)
{
	struct evc__looper_view v = { .state = "" };

	c->member.looper_ops->view(e, &v);
	to->state = to->state != 0 ? to->state : EVC_LIVE;
	to->age = (double)(now - v.since_ns) / 1e9;
	to->ticks = v.ticks;
	to->missed = v.missed;
	evc__copy(to->name, sizeof to->name, v.name);
	if (v.reactor != NULL) {
		evc__text_add(where, "on ");
		evc__text_add(where, v.reactor->name);
	}
	if (v.state[0] != '\0') {
		evc__text_add(where, where->len > 0 ? ", " : "");
		evc__text_add(where, v.state);
	}
}

/* Lock held. */
static void
describe_member(const struct evc__member *m, uint64_t now,
		evc_member_info *to, struct text *where)
{
	to->state = sync_load(&m->state);
	to->age = (double)(now - m->since_ns) / 1e9;
	memcpy(to->name, m->name, sizeof to->name);
	if (m->e.kind == EVC_HOOK) {
		const struct evc__hook *h =
			LIST_OF(m, const struct evc__hook, m);

		evc__text_add(where, "on ");
		evc__text_add(where, h->reactor != NULL ? h->reactor->name :
							  "helper thread");
	} else if (m->tid != 0) {
		evc__text_add(where, "tid ");
		evc__text_int(where, m->tid);
	}
}

/* Lock held. */
static void
describe_entry(const evc_coord *c, const struct evc__entry *e, uint64_t now,
	       evc_member_info *to)
{
	struct text where;

	memset(to, 0, sizeof *to);
	where = evc__text_in(to->where, sizeof to->where);
	to->id = e->id;
	to->kind = e->kind;
	to->round = e->round;
	to->flags = e->flags;
	if (!e->on_loop)
		describe_member(LIST_OF(e, const struct evc__member, e), now,
				to, &where);
	if (e->kind == EVC_LOOPER)
		describe_looper(c, e, now, to, &where);
}

void
evc__describe_runner(evc_coord *c, evc_member_info *i)
{
	if (i->kind == EVC_RUNNER)
		c->member.driver->describe(c, i->id, i->where, sizeof i->where);
}

evc_status
evc_member_get(const evc_coord *c, evc_id id, evc_member_info *ret_info)
{
	evc_coord *me = (evc_coord *)c;
	evc_status st = evc__check(c, __func__);
	const struct evc__entry *e;

	if (st < 0)
		return st;
	sync_lock(&me->lock);
	e = evc__id_find(c, id);
	if (e == NULL)
		st = evc__refuse(-EVC_NOT_FOUND,
				 "evc_member_get: no member %llu",
				 (unsigned long long)id);
	else if (ret_info != NULL)
		describe_entry(c, e, evc__now(c), ret_info);
	sync_unlock(&me->lock);
	if (st == 0 && ret_info != NULL)
		evc__describe_runner(me, ret_info);
	return st;
}

/* ---- a copy of all, made under the lock ---- */

static evc_member_info *
next_info(struct evc__snapshot *s)
{
	return s->n < s->room ? &s->seen[s->n++].info : NULL;
}

/* What reports add for members with more than an entry. */
static void
look_closer(struct evc__seen *k, const struct evc__member *m)
{
	k->progress = sync_load_relaxed(&m->mark.text);
	k->progress_ns = sync_load_relaxed(&m->mark.ns);
	evc__wakers_count(m, &k->unblocks, &k->kicks);
	k->tid = m->tid;
	if (m->e.kind == EVC_HOOK) {
		const struct evc__hook *h =
			LIST_OF(m, const struct evc__hook, m);

		k->tid = h->running;
		k->called = evc__hook_called(h, sync_load(&m->c->word));
	}
}

static void
add_entry(struct evc__snapshot *s, const struct evc__entry *e)
{
	evc_member_info *i = next_info(s);

	if (i == NULL)
		return;
	describe_entry(s->c, e, s->now, i);
	if (!e->on_loop)
		look_closer(LIST_OF(i, struct evc__seen, info),
			    LIST_OF(e, const struct evc__member, e));
}

static void
add_looper_entry(const struct evc__looper_view *v, void *arg)
{
	add_entry(arg, v->e);
}

static void
add_list(struct evc__snapshot *s, const struct list *head)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, head)
		add_entry(s, &LIST_OF(n, struct evc__member, node)->e);
}

static int
by_id(const void *a, const void *b)
{
	evc_id x = ((const struct evc__seen *)a)->info.id;
	evc_id y = ((const struct evc__seen *)b)->info.id;

	return (x > y) - (x < y);
}

/* All members with an id. */
static void
add_entries(struct evc__snapshot *s)
{
	const evc_coord *c = s->c;
	struct list *n, *tmp;

	add_list(s, &c->member.all);
	add_list(s, &c->member.dormant);
	add_list(s, &c->loop.hooks);
	LIST_EACH(n, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->looper_ops != NULL)
			r->looper_ops->each(r, add_looper_entry, s);
	}
	qsort(s->seen, s->n, sizeof *s->seen, by_id);
}

static void
add_scope(struct evc__snapshot *s, evc_coord *below)
{
	evc_member_info *i = next_info(s);
	struct text where;

	if (i == NULL)
		return;
	memset(i, 0, sizeof *i);
	i->kind = EVC_SCOPE;
	i->state = EVC_LIVE;
	i->round = WORD_ROUND(sync_load(&s->c->word));
	i->age = (double)(s->now - below->life.ready_ns) / 1e9;
	memcpy(i->name, below->name, sizeof i->name);
	where = evc__text_in(i->where, sizeof i->where);
	if (s->c->join.n_phased > 0) {
		evc__text_add(&where, "phase ");
		evc__text_int(&where, below->join.phase);
	}
	sync_lock(&below->lock);
	i->ticks = evc__names(below, NULL, false, 0, NULL, 0);
	if (below->life.held) {
		evc__text_add(&where, where.len > 0 ? ", " : "");
		evc__text_add(&where, "set-up not finished");
	}
	sync_unlock(&below->lock);
}

static void
name_task(evc_member_info *i, const evc_reactor *r, const evc_task_class *k,
	  const char *described, unsigned round)
{
	struct text where;

	memset(i, 0, sizeof *i);
	i->kind = EVC_TASK;
	i->state = EVC_LIVE;
	i->round = round;
	evc__copy(i->name, sizeof i->name,
		  k != NULL && k->name != NULL ? k->name : "task");
	where = evc__text_in(i->where, sizeof i->where);
	evc__text_add(&where, "on ");
	evc__text_add(&where, r->name);
	if (described[0] != '\0') {
		evc__text_add(&where, " (");
		evc__text_add(&where, described);
		evc__text_add(&where, ")");
	}
	evc__text_add(&where, evc__tasks_wrong(r));
}

/* What the copy of r's texts says of this task of it. */
static const char *
text_of(const evc_reactor *r, const evc_task *t)
{
	const struct evc__task_count *k = t->count_;
	const struct evc__task_text *x;
	unsigned i = 0;
	double age;

	while (i < r->texts.n && r->texts.of[i].task != t)
		i++;
	if (i == r->texts.n)
		return "";
	x = evc__task_text_next(r, &i, k, sync_load_relaxed(&k->n), &age);
	return x != NULL && x->task == t ? x->text : "";
}

/* On the loop's own thread: each task. */
static void
add_own_tasks(struct evc__snapshot *s, const evc_reactor *r, unsigned round)
{
	const evc_task *heads[TASK_LISTS] = TASK_HEADS(r), *t;
	evc_member_info *i;
	unsigned k;

	for (k = 0; k < TASK_LISTS; k++)
		for (t = heads[k]->next_;
		     t != heads[k] && evc__task_intact(r, t); t = t->next_) {
			i = next_info(s);
			if (i == NULL)
				return;
			name_task(i, r, t->class_, text_of(r, t), round);
			i->flags = t->class_->flags;
			i->ticks = 1;
			i->age = evc__reactor_now(r) - t->since_;
		}
}

/* On another thread: in a stop the oldest tasks, by what the loop's thread has
   copied of them; the number of the others. */
static void
add_counted_tasks(struct evc__snapshot *s, const evc_reactor *r, unsigned round)
{
	const struct evc__task_count *k = r->count;

	for (; k < r->count + TASK_CLASSES + 1; k++) {
		const evc_task_class *cls = sync_load(&k->cls);
		uint32_t n = sync_load(&k->n), left = n;
		const struct evc__task_text *x;
		evc_member_info *to;
		unsigned i = 0;
		double age;

		while (left > 0 && (x = evc__task_text_next(r, &i, k, n,
							    &age)) != NULL) {
			to = next_info(s);
			if (to == NULL)
				return;
			name_task(to, r, cls, x->text, round);
			to->ticks = 1;
			to->age = age;
			left--;
		}
		to = left > 0 ? next_info(s) : NULL;
		if (to == NULL)
			continue;
		name_task(to, r, cls, "", round);
		to->ticks = left;
	}
}

/* Any thread: posts that are on their way, or run. */
static void
add_posts(struct evc__snapshot *s, const evc_reactor *r, unsigned round)
{
	static const evc_task_class posts = { .name = "posts" };
	uint32_t n = sync_load_sc(&r->inbox->n);
	evc_member_info *i = n > 0 ? next_info(s) : NULL;

	if (i == NULL)
		return;
	name_task(i, r, &posts, "", round);
	i->ticks = n;
}

/* Lock held. */
static unsigned
room_needed(const evc_coord *c)
{
	unsigned n = (unsigned)c->member.ids.table.n;
	struct list *l, *tmp;

	LIST_EACH(l, tmp, &c->scopes)
		n++;
	LIST_EACH(l, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(l, evc_reactor, node);

		n += 1 + (r->tid == evc__tid() ? r->n_live : TASK_CLASSES + 1 +
							      TASK_TEXTS);
	}
	return n;
}

bool
evc__snapshot(evc_coord *c, struct evc__snapshot *s)
{
	unsigned round = WORD_ROUND(sync_load(&c->word));
	struct list *n, *tmp;

	s->c = c;
	s->now = evc__now(c);
	s->n = 0;
	s->room = room_needed(c);
	s->seen = sync_alloc(s->room > 0 ? s->room : 1, sizeof *s->seen);
	if (s->seen == NULL)
		return false;
	add_entries(s);
	LIST_EACH(n, tmp, &c->scopes)
		add_scope(s, SCOPE_OF(n));
	LIST_EACH(n, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->tid == evc__tid() && r->loop != NULL &&
		    !(sync_load_relaxed(&r->tasks_wrong) & TASKS_BROKEN))
			add_own_tasks(s, r, round);
		else
			add_counted_tasks(s, r, round);
		add_posts(s, r, round);
	}
	return true;
}

WALLED(bool, see, (evc_each_fn *fn, const evc_member_info *m, void *arg),
       fn(m, arg))

evc_status
evc_member_each(const evc_coord *c, evc_each_fn *fn, void *arg)
{
	evc_coord *me = (evc_coord *)c;
	evc_status st = evc__check(c, __func__);
	struct evc__snapshot s;
	bool taken, go_on = true;
	unsigned i;

	if (st < 0)
		return st;
	if (fn == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_member_each: no function");
	sync_lock(&me->lock);
	taken = evc__snapshot(me, &s);
	sync_unlock(&me->lock);
	if (!taken)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_member_each: no memory");
	for (i = 0; i < s.n && go_on; i++) {
		evc__describe_runner(me, &s.seen[i].info);
		go_on = see(fn, &s.seen[i].info, arg);
	}
	sync_free(s.seen);
	return 0;
}
