/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers on a loop: their start, changes and end.  Any thread changes the
 * heap; then the loop's thread sets the timer, at once or in a turn it is woken
 * for.
 * Called by: looper.c, for the program's calls; looper_timer.c; core and
 * observe, by evc__looper_ops.
 * Locks: the coordinator's lock.
 */
#include "members/looper_loop.h"

#include "core/core.h"
#include "core/status/trace.h"

#include "base/probe.h"
#include "base/self.h"

TICK_PATH struct evc__looper_who
evc__loop_looper_who(const struct evc__looper *l)
{
	return (struct evc__looper_who){
		.c = evc__looper_reactor(l)->c,
		.id = l->e.id,
		.name = l->name->text,
		.flags = l->e.flags,
		.reactor = evc__looper_reactor(l),
	};
}

static struct evc__looper *
looper_of(struct evc__entry *e)
{
	return LIST_OF(e, struct evc__looper, e);
}

struct evc__body *
evc__loop_looper_body(struct evc__entry *e)
{
	return &looper_of(e)->body;
}

/* ---- names ---- */

static struct evc__looper_name *
name_get(struct evc__loopers *t, const char *text)
{
	struct evc__looper_name *n = t->last_name;

	/* Loopers that are started together mostly share a name. */
	if (n == NULL || strcmp(n->text, text) != 0) {
		n = sync_alloc(1, sizeof *n + strlen(text) + 1);
		if (n == NULL)
			return NULL;
		n->reactor = t->reactor;
		memcpy(n->text, text, strlen(text) + 1);
		t->last_name = n;
	}
	n->users++;
	return n;
}

static void
name_put(struct evc__loopers *t, struct evc__looper_name *n)
{
	if (--n->users > 0)
		return;
	if (t->last_name == n)
		t->last_name = NULL;
	sync_free(n);
}

/* ---- places ---- */

TICK_PATH void
evc__loop_looper_place(struct evc__looper *l)
{
	struct evc__loopers *t = evc__looper_reactor(l)->loopers;
	uint64_t due = evc__looper_due(&l->body);

	l->body.bits &= ~(uint32_t)LOOPER_ADRIFT;
	if (l->body.bits & LOOPER_AGAIN)
		return; /* the next batch gives the looper its place */
	if (t->depth > 0 && due <= t->horizon) {
		l->body.bits |= LOOPER_AGAIN;
		l->again = t->again;
		t->again = l;
		due = SCHEDULE_NEVER;
	}
	evc__heap_set(&t->heap, l, due);
}

void
evc__loop_looper_changed(struct evc__entry *e)
{
	struct evc__looper *l = looper_of(e);
	evc_reactor *r = evc__looper_reactor(l);

	evc__loop_looper_place(l);
	if (r->tid == evc__tid())
		evc__loopers_arm(r->loopers);
	else
		evc__reactor_poke(r);
}

/* ---- the start ---- */

/* The reactor's counts change before `alive`, by which they become visible. */
static void
count_looper(struct evc__looper *l)
{
	evc_reactor *r = evc__looper_reactor(l);

	evc__trace(r->c, TRACE_BEGIN, l->e.id, EVC_LOOPER, l->name->text, 0);
	r->n_loopers++;
	r->n_loopers_background += (l->e.flags & EVC_BACKGROUND) != 0;
	r->n_loopers_own_grace += l->body.more != NULL &&
				  l->body.more->grace != 0;
	if (r->n_loopers_own_grace > 0)
		sync_store_sc(&r->c->tree->own_grace, true);
	evc__alive_add(r->c);
	/* The ring makes a join in progress count the new member. */
	evc__ring(r->c);
}

evc_status
evc__loop_looper_wake(struct evc__entry *e)
{
	struct evc__looper *l = looper_of(e);
	evc_reactor *r = evc__looper_reactor(l);
	evc_status st = evc__reactor_usable(r, "evc_member_resume");

	if (st < 0)
		return st;
	r->loopers->n_dormant--;
	if (l->body.more != NULL && l->body.more->unblock != NULL)
		l->body.more->unblock->idle = false;
	count_looper(l);
	return 0;
}

/* Lock held: allocate all that a looper needs.  NULL: no memory. */
static struct evc__looper_name *
reserve_looper(evc_reactor *r, const char *name)
{
	if (r->loopers == NULL)
		r->loopers = evc__loopers_new(r);
	if (r->loopers != NULL)
		r->looper_ops = &evc__looper_ops; /* its drop() frees
						     r->loopers */
	if (r->loopers == NULL || !evc__id_reserve(r->c, 1) ||
	    !evc__heap_room(&r->loopers->heap))
		return NULL;
	return name_get(r->loopers, name);
}

/* Lock held: count a looper that begins and ends during a stop. */
static void
count_passed(evc_coord *c, const evc_member_opts *o, evc_id *ret_id)
{
	c->member.ids.last++;
	if (!(o->flags & EVC_PAUSED))
		evc__ended_at_once(c);
	if (ret_id != NULL)
		*ret_id = c->member.ids.last;
}

/* Lock held: give the looper its id, and begin. */
static void
begin_looper(struct evc__looper *l, evc_id *ret_id)
{
	evc_reactor *r = evc__looper_reactor(l);
	evc_coord *c = r->c;

	/* Before the loop's thread can see the looper. */
	if (ret_id != NULL)
		*ret_id = c->member.ids.last + 1;
	evc__id_add(c, &l->e);
	l->since_ns = evc__now(c);
	evc__looper_begin(&l->body, l->e.id, l->since_ns);
	if (l->body.bits & LOOPER_DORMANT) {
		r->loopers->n_dormant++;
		return;
	}
	count_looper(l);
	evc__loop_looper_changed(&l->e);
}

/* Lock held: may a looper start on r now? */
static evc_status
may_start(evc_reactor *r, bool stopped, const evc_member_opts *o)
{
	evc_status st = evc__reactor_usable(r, "evc_looper_start");

	if (st == 0 && stopped && (o == NULL || !(o->flags & EVC_AFTER_STOP)))
		st = evc__refuse(-EVC_CANCELLED,
				 "evc_looper_start: a stop was requested");
	return st;
}

evc_status
evc__loop_looper_start(evc_reactor *r, const char *name, double interval,
		       evc_fn *fn, void *arg, const evc_member_opts *o,
		       evc_id *ret_id)
{
	struct evc__looper_more *more = NULL;
	struct evc__looper_name *n = NULL;
	evc_coord *c = r->c;
	struct evc__looper *l;
	bool stopped, starts;
	evc_status st;

	if (evc__looper_needs_more(o)) {
		more = sync_alloc(1, sizeof *more);
		if (more == NULL || !evc__release_new(o, arg, &more->release)) {
			sync_free(more);
			return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
					   "evc_looper_start: no memory");
		}
	}
	sync_lock(&c->lock);
	/* Read once, because a stop may come at any moment. */
	stopped = evc_should_stop(c);
	st = may_start(r, stopped, o);
	starts = st == 0 && !stopped;
	if (starts)
		n = reserve_looper(r, name);
	if (n != NULL && o != NULL && o->unblock != NULL) {
		more->unblock = evc__waker_add(c, o->unblock, arg, true);
		if (more->unblock == NULL) {
			name_put(r->loopers, n);
			n = NULL;
		} else
			more->unblock->idle = o->flags & EVC_PAUSED;
	}
	if (n != NULL) {
		l = evc__heap_new(&r->loopers->heap);
		l->e.kind = EVC_LOOPER;
		l->e.on_loop = true;
		l->e.flags = o != NULL ? (uint16_t)o->flags : 0;
		l->name = n;
		evc__looper_body(&l->body, interval, fn, arg, o, more);
		begin_looper(l, ret_id);
	} else if (starts)
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_looper_start: no memory");
	else if (st == 0) {
		count_passed(c, o, ret_id);
		if (more != NULL) {
			evc__release_due(c, 0, more->release);
			more->release = NULL;
		}
	}
	sync_unlock(&c->lock);
	if (n == NULL && more != NULL)
		sync_free(more->release);
	if (n == NULL)
		sync_free(more);
	evc__later_run(c);
	return st;
}

/* ---- the end ---- */

/* Take the looper from heap and chain, and free its memory. */
static void
remove_looper(struct evc__looper *l)
{
	struct evc__loopers *t = evc__looper_reactor(l)->loopers;
	struct evc__looper **p = &t->again;

	if (l->body.bits & LOOPER_AGAIN) {
		while (*p != l)
			p = &(*p)->again;
		*p = l->again;
	}
	name_put(t, l->name);
	if (l->body.more != NULL) {
		evc__waker_leave(l->body.more->unblock, l->e.id);
		evc__release_due(t->c, l->e.id, l->body.more->release);
	}
	sync_free(l->body.more);
	evc__heap_delete(&t->heap, l);
}

void
evc__loop_looper_end(struct evc__looper *l)
{
	evc_reactor *r = evc__looper_reactor(l);
	evc_coord *c = r->c;

	evc__trace(c, TRACE_REAPED, l->e.id, EVC_LOOPER, l->name->text,
		   c->status.clock == NULL ? l->since_ns : 0);
	PROBE4(member_end, &c->name[0], &l->name->text[0], EVC_LOOPER,
	       l->e.id);
	evc__id_remove(c, &l->e);
	r->n_loopers_background -= (l->e.flags & EVC_BACKGROUND) != 0;
	r->n_loopers_own_grace -= l->body.more != NULL &&
				  l->body.more->grace != 0;
	r->n_loopers--;
	c->wake.stats.missed += l->body.schedule.missed;
	remove_looper(l);
	evc__ended_add(c);
	evc__alive_sub(c);
}

void
evc__loop_looper_vanish(struct evc__looper *l)
{
	evc_reactor *r = evc__looper_reactor(l);

	evc__id_remove(r->c, &l->e);
	r->loopers->n_dormant--;
	remove_looper(l);
}

struct evc__looper *
evc__loop_looper_next(const struct evc__loopers *t, uint32_t with,
		      uint32_t without)
{
	uint32_t i;

	/* From the end, where a removal moves no other looper. */
	for (i = t->heap.n; i-- > 0;) {
		struct evc__looper *l = evc__heap_at(&t->heap, i);

		if ((l->body.bits & with) == with &&
		    !(l->body.bits & without))
			return l;
	}
	return NULL;
}

void
evc__loopers_forget(evc_reactor *r)
{
	struct evc__loopers *t = r->loopers;

	while (t != NULL && t->n_dormant > 0) {
		evc__loop_looper_vanish(
			evc__loop_looper_next(t, LOOPER_DORMANT, 0));
		evc__ended_add(r->c);
	}
}

/* ---- evc_member_remove ---- */

/* On the loop's thread: remove a looper at once, or, from inside its own
   function, at the return. */
static int
remove_here(struct evc__looper *l)
{
	struct evc__looper_who w = evc__loop_looper_who(l);

	if (l->body.bits & LOOPER_SILENT)
		return evc__refuse_removal(l->e.id);
	if (l->body.bits & LOOPER_RUNNING) {
		/* The looper's function is on the stack, and ends first. */
		evc__looper_remove_self(&w, &l->body);
		return 0;
	}
	l->body.bits |= LOOPER_RUNNING | LOOPER_REMOVED;
	evc__looper_finish(&w, &l->body, false);
	evc__loop_looper_end(l);
	evc__ring(w.c);
	return 0;
}

int
evc__loop_looper_remove(struct evc__entry *e)
{
	struct evc__looper *l = looper_of(e);
	evc_reactor *r = evc__looper_reactor(l);
	struct evc__looper_who w = evc__loop_looper_who(l);
	struct evc__busy busy;
	int st;

	if (l->body.bits & LOOPER_DORMANT) {
		evc__loop_looper_vanish(l);
		return 0;
	}
	if (r->tid == evc__tid()) {
		evc__busy_begin(r, r->c, BUSY_LOOPER, NULL, &busy);
		st = remove_here(l);
		evc__busy_end(&busy);
		evc__loopers_arm(r->loopers);
		return st;
	}
	if ((l->body.bits & LOOPER_RUNNING) ||
	    evc__looper_owes_stop(&l->body)) {
		/* The loop's thread removes the looper, and wakes the joins. */
		l->body.bits |= LOOPER_REMOVED;
		evc__loop_looper_place(l);
		evc__reactor_poke(r);
		return 1;
	}
	l->body.bits |= LOOPER_REMOVED;
	evc__looper_finish(&w, &l->body, false);
	evc__loop_looper_end(l);
	evc__ring(w.c);
	/* The timer may be set for this looper. */
	evc__reactor_poke(r);
	return 0;
}

/* ---- for reports ---- */

void
evc__loop_looper_view(const struct evc__entry *e, struct evc__looper_view *v)
{
	const struct evc__looper *l = LIST_OF(e, const struct evc__looper, e);

	v->e = e;
	v->reactor = evc__looper_reactor(l);
	v->name = l->name->text;
	v->alive = !(l->body.bits & LOOPER_DORMANT);
	v->grace = l->body.more != NULL ? l->body.more->grace : 0;
	v->since_ns = l->since_ns;
	v->ticks = l->body.schedule.ticks;
	v->missed = l->body.schedule.missed;
	v->state = evc__looper_state(&l->body);
}

void
evc__loopers_each(const evc_reactor *r,
		  void (*fn)(const struct evc__looper_view *v, void *arg),
		  void *arg)
{
	const struct evc__loopers *t = r->loopers;
	struct evc__looper_view v;
	uint32_t i;

	for (i = 0; t != NULL && i < t->heap.n; i++) {
		evc__loop_looper_view(&evc__heap_at(&t->heap, i)->e, &v);
		fn(&v, arg);
	}
}
