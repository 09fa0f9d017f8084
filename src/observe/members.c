/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking at members: one by its id, or all that are alive.
 */
#include "base/self.h"
#include "base/text.h"
#include "core/core.h"

/* Lock held. */
static void
describe(const struct evc__member *m, uint64_t now, evc_member_info *to)
{
	struct text where;

	memset(to, 0, sizeof *to);
	where = evc__text_in(to->where, sizeof to->where);
	to->id = m->id;
	to->kind = m->kind;
	to->state = sync_load(&m->state);
	to->round = m->round;
	to->flags = m->flags;
	to->age = (double)(now - m->since_ns) / 1e9;
	memcpy(to->name, m->name, sizeof to->name);
	if (m->kind == EVC_HOOK) {
		const struct evc__hook *h =
			LIST_OF(m, const struct evc__hook, m);

		evc__text_add(&where, "on ");
		evc__text_add(&where, h->reactor != NULL ? h->reactor->name :
							   "helper thread");
	} else if (m->tid != 0) {
		evc__text_add(&where, "tid ");
		evc__text_int(&where, m->tid);
	}
}

evc_status
evc_member_get(const evc_coord *c, evc_id id, evc_member_info *ret_info)
{
	evc_coord *me = (evc_coord *)c;
	evc_status st = evc__check(c, __func__);
	const struct evc__member *m;

	if (st < 0)
		return st;
	sync_lock(&me->lock);
	m = evc__member_find(c, id);
	if (m == NULL)
		st = evc__refuse(-EVC_NOT_FOUND,
				 "evc_member_get: no member %llu",
				 (unsigned long long)id);
	else if (ret_info != NULL)
		describe(m, evc__now(c), ret_info);
	sync_unlock(&me->lock);
	return st;
}

/* ---- a copy of all, made under the lock ---- */

struct snapshot {
	evc_member_info *info;
	unsigned n, room;
};

static evc_member_info *
next_info(struct snapshot *s)
{
	return s->n < s->room ? &s->info[s->n++] : NULL;
}

static void
add_list(struct snapshot *s, struct list *head, uint64_t now)
{
	struct list *n, *tmp;
	evc_member_info *i;

	LIST_EACH(n, tmp, head) {
		i = next_info(s);
		if (i != NULL)
			describe(LIST_OF(n, struct evc__member, node), now, i);
	}
}

static void
name_task(evc_member_info *i, const evc_reactor *r, const evc_task_class *k,
	  unsigned round)
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
}

/* The loop's own thread: one by one. */
static void
add_own_tasks(struct snapshot *s, const evc_reactor *r, unsigned round)
{
	const evc_task *heads[2] = { &r->tasks, &r->late }, *t;
	evc_member_info *i;
	unsigned k;

	for (k = 0; k < 2; k++)
		for (t = heads[k]->next_; t != heads[k]; t = t->next_) {
			i = next_info(s);
			if (i == NULL)
				return;
			name_task(i, r, t->class_, round);
			i->flags = t->class_->flags;
			i->ticks = 1;
			i->age = ev_now(r->loop) - t->since_;
		}
}

/* Another thread: counters only. */
static void
add_counted_tasks(struct snapshot *s, const evc_reactor *r, unsigned round)
{
	evc_member_info *i;
	unsigned k;

	for (k = 0; k <= TASK_CLASSES; k++) {
		uint32_t n = sync_load(&r->count[k].n);

		if (n == 0)
			continue;
		i = next_info(s);
		if (i == NULL)
			return;
		name_task(i, r, sync_load(&r->count[k].cls), round);
		i->ticks = n;
	}
}

/* Lock held. */
static unsigned
room_needed(const evc_coord *c)
{
	unsigned n = c->n_entries;
	struct list *l, *tmp;

	LIST_EACH(l, tmp, &c->reactors) {
		const evc_reactor *r = LIST_OF(l, evc_reactor, node);

		n += r->tid == evc__tid() ? r->n_live : TASK_CLASSES + 1;
	}
	return n;
}

static bool
take(evc_coord *c, struct snapshot *s)
{
	unsigned round = WORD_ROUND(sync_load(&c->word));
	uint64_t now = evc__now(c);
	struct list *n, *tmp;

	s->n = 0;
	s->room = room_needed(c);
	s->info = sync_alloc(s->room > 0 ? s->room : 1, sizeof *s->info);
	if (s->info == NULL)
		return false;
	add_list(s, &c->members, now);
	add_list(s, &c->hooks, now);
	LIST_EACH(n, tmp, &c->reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->tid == evc__tid() && r->loop != NULL)
			add_own_tasks(s, r, round);
		else
			add_counted_tasks(s, r, round);
	}
	return true;
}

evc_status
evc_member_each(const evc_coord *c, evc_each_fn *fn, void *arg)
{
	evc_coord *me = (evc_coord *)c;
	evc_status st = evc__check(c, __func__);
	struct snapshot s;
	unsigned i;
	bool taken;

	if (st < 0)
		return st;
	if (fn == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_member_each: no function");
	sync_lock(&me->lock);
	taken = take(me, &s);
	sync_unlock(&me->lock);
	if (!taken)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_member_each: no memory");
	for (i = 0; i < s.n && fn(&s.info[i], arg); i++)
		;
	sync_free(s.info);
	return 0;
}
