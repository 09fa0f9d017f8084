/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups on a loop: their turns, and what the rest of a group calls.
 */
#include "group/evented.h"

#include "base/self.h"
#include "base/text.h"

#define SLICE 0.001

void
evc__evented_unref(struct evc__evented *e)
{
	if (sync_sub(&e->refs, 1) != 1)
		return;
	evc_loop_release(e->loop);
	sync_lock_destroy(&e->lock);
	sync_free(e);
}

/* ---- turns ---- */

struct evc__turn *
evc__turn_take(struct evc__evented *e, evc__turn_fn *fits, uint64_t arg)
{
	struct list *l, *tmp;
	struct evc__turn *t;

	sync_lock(&e->lock);
	LIST_EACH(l, tmp, &e->turns) {
		t = LIST_OF(l, struct evc__turn, node);
		if (!fits(t, arg))
			continue;
		list_remove(l);
		sync_unlock(&e->lock);
		return t;
	}
	sync_unlock(&e->lock);
	return NULL;
}

void
evc__turn_give_back(struct evc__evented *e, struct evc__turn *t)
{
	sync_lock(&e->lock);
	list_append(&e->turns, &t->node);
	sync_unlock(&e->lock);
}

/* The hold goes last: with it may go the group. */
void
evc__turn_end(struct evc__evented *e, struct evc__turn *t, bool clean)
{
	evc_coord *scope = t->w->group->scope;
	evc_id member = t->member;

	if (!evc__worker_ended(t->w, clean)) {
		evc__turn_give_back(e, t);
		return;
	}
	sync_free(t);
	evc_hold_end(scope, member);
}

bool
evc__turn_is_over(const struct evc__turn *t, uint64_t unused)
{
	(void)unused;
	return evc_should_stop(t->w->group->scope) ||
	       sync_load(&t->w->retire);
}

void
evc__turns_end(struct evc__evented *e)
{
	struct evc__turn *t;

	while ((t = evc__turn_take(e, evc__turn_is_over, 0)) != NULL)
		evc__turn_end(e, t, false);
}

/* Let the loop look; under the lock, so that nobody counts on a mail that is
   refused. */
static evc_status
ring(struct evc__evented *e)
{
	evc_status st = 0;

	sync_lock(&e->lock);
	if (!e->rung)
		st = evc_post_mail(e->loop, &e->mail);
	if (st == 0 && !e->rung) {
		e->rung = true;
		sync_add(&e->refs, 1);
	}
	sync_unlock(&e->lock);
	return st;
}

/* ---- what groups call ---- */

static bool
is_above(const evc_coord *scope, const evc_coord *c)
{
	do
		scope = evc_scope_parent(scope);
	while (scope != NULL && scope != c);
	return scope != NULL;
}

/* Whose thread the loop is is known from the beginning, when the group is made
   on it: there alone a task can begin. */
static int
loop_thread(evc_reactor *r)
{
	char before[160];
	evc_task t = { 0 };

	evc__copy(before, sizeof before, evc_last_error());
	if (evc_task_begin(r, &t, &evc__evented_class) < 0) {
		(void)evc_refuse(0, "%s", before);
		return 0;
	}
	evc_task_end(&t);
	return evc__tid();
}

evc_status
evc__evented_new(evc_workers *g, const char *func)
{
	evc_reactor *r = g->opts.reactor;
	double slice = g->opts.slice > 0 ? g->opts.slice : SLICE;
	struct evc__evented *e;

	if (!is_above(g->scope, evc_reactor_coord(r)))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s: the reactor is none of the group's "
				  "parent, nor of one above", func);
	e = sync_alloc(1, sizeof *e);
	if (e == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				  func);
	sync_store_relaxed(&e->refs, 1);
	sync_lock_init(&e->lock);
	list_init(&e->turns);
	e->reactor = r;
	e->loop = evc_loop_of(r);
	e->slice = slice < 1e6 ? (uint64_t)(slice * 1e9) : UINT64_MAX / 2;
	e->fork_generation = g->fork_generation;
	e->tid = loop_thread(r);
	e->mail.fn = evc__evented_on_mail;
	e->mail.flags = EVC_LATE;
	g->evented = e;
	return 0;
}

void
evc__evented_drop(evc_workers *g)
{
	struct evc__evented *e = g->evented;

	/* Its turns have ended; its watchers perhaps not yet. */
	if (evc__evented_is_here(e))
		(void)evc__evented_attend(e);
	g->evented = NULL;
	evc__evented_unref(e);
}

static bool
is_one(const struct evc__turn *t, uint64_t which)
{
	return (uintptr_t)t == which;
}

evc_status
evc__evented_add(evc_workers *g, struct evc__worker *w, const char *func)
{
	evc_member_opts o = { .grace = g->opts.member.grace };
	struct evc__turn *t = sync_alloc(1, sizeof *t);
	struct evc__evented *e = g->evented;
	evc_status st;

	if (t == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				  func);
	t->w = w;
	st = evc_hold_begin(g->scope, w->name, &o, &t->member);
	if (st < 0) {
		sync_free(t);
		return st;
	}
	w->member = t->member;
	evc__turn_give_back(e, t);
	if (!evc__evented_is_here(e))
		st = ring(e);
	else if (!evc__evented_attend(e))
		st = -EVC_NOT_FOUND;
	if (st == -EVC_NOT_FOUND)
		st = evc_refuse(st, "%s: the loop of %s is gone", func,
				g->name);
	/* When the loop has taken it all the same, it runs. */
	if (st < 0 && evc__turn_take(e, is_one, (uintptr_t)t) == t) {
		evc_hold_end(g->scope, t->member);
		w->member = 0;
		sync_free(t);
		return st;
	}
	return 0;
}

/* Without watchers nobody is to be told: a mail that is on its way finds what
   there is.  And a loop that looks by itself gets no mail that outlives what it
   is about. */
static void
tell(struct evc__evented *e)
{
	bool asleep;

	sync_lock(&e->lock);
	asleep = e->watching && !e->looks;
	sync_unlock(&e->lock);
	if (asleep)
		(void)ring(e);
}

void
evc__evented_stop(evc_workers *g)
{
	struct evc__evented *e = g->evented;

	evc__turns_end(e);
	if (evc__evented_is_here(e))
		evc__evented_settle(e);
	else
		tell(e);
}

void
evc__evented_wake(evc_workers *g)
{
	struct evc__evented *e = g->evented;

	if (evc__evented_is_here(e))
		(void)evc__evented_attend(e);
	else
		tell(e);
}
