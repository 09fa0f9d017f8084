/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors: a loop as one coordinator knows it.
 *
 * The watcher is a doorbell (bell.c): what a ring means stands in the
 * coordinator's word and lists, and evc__reactor_turn does whatever they ask
 * for.  A ring before the watcher was started is lost, so attach starts it,
 * stands in the table, and then looks at the word.
 */
#include "core/keeper.h"
#include "core/scope.h"
#include "core/trace.h"

#include "base/self.h"
#include "base/text.h"

/* Any thread, inside the walkers. */
static void
tell(struct evc__listener *l)
{
	evc__bell_ring((evc_reactor *)l);
}

void
evc__reactor_poke(evc_reactor *r)
{
	if (r->loop != NULL)
		evc__bell_ring(r);
}

void
evc__reactor_hear(evc_reactor *r, bool yes)
{
	uint32_t d = yes ? 1 : (uint32_t)-1;

	/* Heard first: the look that follows misses nothing. */
	sync_add(&r->listener.n_joins, d);
	sync_add(&r->c->n_loop_joins, d);
	if (yes) {
		ev_ref(r->loop);
		evc__reactor_poke(r);
	} else if (r->loop != NULL)
		ev_unref(r->loop);
}

static bool
loopers_turn(evc_reactor *r, const struct evc__frame *f, bool stopped)
{
	const struct evc__looper_ops *ops;

	/* The first one may just be coming, from another thread. */
	sync_lock(&r->c->lock);
	ops = r->looper_ops;
	sync_unlock(&r->c->lock);
	if (ops == NULL)
		return true;
	if (stopped && !ops->stop(r, f))
		return false;
	ops->turn(r);
	return true;
}

static void
log_errors(evc_reactor *r)
{
	struct evc__busy busy;

	if (r->c->log == NULL)
		return;
	evc__busy_begin(r, r->c, BUSY_LOG, NULL, &busy);
	evc__log_errors(r->c);
	evc__busy_end(&busy);
}

static bool
same_stop(const evc_coord *c, uint64_t w)
{
	uint64_t now = sync_load(&c->word);

	return (now & WORD_FLAG) && WORD_STOPS(now) == WORD_STOPS(w);
}

uint64_t
evc__reactor_heard(evc_reactor *r)
{
	uint64_t w;

	evc__trace_heard(r);
	w = sync_load(&r->c->word);
	sync_store(&r->heard, WORD_STOP_NUMBER(w));
	return w;
}

static bool
turn(evc_reactor *r)
{
	struct evc__frame f = { r->frames, false };
	evc_coord *c = r->c;
	bool stopped;
	uint64_t w;

	r->frames = &f;
	w = evc__reactor_heard(r);
	log_errors(r);
	evc__hooks_run(c, r);
	evc__runners_turn(c, r);
	/* A stop that came after the hooks were looked for has rung: its turn
	   is the next. */
	stopped = (w & WORD_FLAG) && same_stop(c, w);
	if (stopped && r->task_ops != NULL && !r->task_ops->tell(r, &f))
		return false;
	if (!loopers_turn(r, &f, stopped))
		return false;
	if (r == c->home && !evc__keeper_turn(c, &f))
		return false;
	if (!evc__joins_turn(r, &f))
		return false;
	evc__driver_turn(r);
	r->frames = f.up;
	return true;
}

bool
evc__reactor_turn(evc_reactor *r)
{
	struct evc__busy busy;
	bool stays;

	evc__busy_begin(r, r->c, BUSY_TURN, NULL, &busy);
	stays = turn(r);
	evc__busy_end(&busy);
	return stays;
}

bool
evc__reactor_lost(evc_reactor *r)
{
	evc_coord *c = r->c;
	struct evc__frame f = { r->frames, false };
	struct ev_loop *loop = r->loop;

	sync_lock(&c->lock);
	evc__unlisten(c, &r->listener);
	evc__hooks_drop(c, r);
	if (c->runners != NULL)
		c->runners->orphan(c, r);
	r->loop = NULL;
	/* Until we are done, no other thread may free c. */
	r->leaving = true;
	sync_unlock(&c->lock);
	if (r->task_ops != NULL)
		r->task_ops->drop(r);
	if (r->looper_ops != NULL)
		r->looper_ops->drop(r);
	r->frames = &f;
	evc__joins_cancel(r, loop, &f);
	if (f.gone)
		return false;
	r->frames = f.up;
	if (!r->owner)
		evc__reactor_left(r);
	return true;
}

void
evc__reactor_left(evc_reactor *r)
{
	evc_coord *c = r->c;

	sync_lock(&c->lock);
	r->leaving = false;
	sync_unlock(&c->lock);
}

/* Lock held. */
static evc_reactor *
find(const evc_coord *c, const struct ev_loop *loop)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->reactors)
		if (LIST_OF(n, evc_reactor, node)->loop == loop)
			return LIST_OF(n, evc_reactor, node);
	return NULL;
}

static evc_reactor *
reactor_new(evc_coord *c, const char *name)
{
	evc_reactor *r = sync_alloc(1, sizeof *r);

	if (r == NULL)
		return NULL;
	r->listener.tell = tell;
	r->c = c;
	r->mark.c = c;
	evc__copy(r->name, sizeof r->name, name);
	list_init(&r->node);
	list_init(&r->joins);
	r->tasks.next_ = r->tasks.prev_ = &r->tasks;
	r->late.next_ = r->late.prev_ = &r->late;
	r->cursor = &r->tasks;
	return r;
}

/* Stand in c's table and list, on its bell; with a bell of its own the loop is
   watched from now on.  All that can fail comes before the loop is touched. */
static evc_status
enlist(evc_reactor *r)
{
	evc_coord *c = r->c;
	const char *why = NULL;

	sync_lock(&c->lock);
	if (r->loop == NULL)
		why = "the loop was destroyed";
	else if (!evc__board_room(&c->listeners))
		why = "no memory for a listener";
	else if (r->owner && !evc__bell_start(r->bell))
		why = "no descriptor for the loop's wake-up";
	else {
		evc__listen(c, &r->listener); /* there is room */
		list_append(&c->reactors, &r->node);
	}
	sync_unlock(&c->lock);
	if (why != NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s", why);
	/* In the table first, then look: a stop that came before is not
	   missed, one that comes from here on tells us. */
	if (sync_load_sc(&c->word) & (WORD_FLAG | WORD_DRAIN))
		evc__reactor_poke(r);
	return 0;
}

/* r goes on b and into the table, or is freed. */
static evc_status
settle_on(evc_reactor *r, struct evc__bell *b, evc_reactor **ret)
{
	evc_status st;

	if (!evc__bell_join(b, r)) {
		st = evc__refuse(b->lost ? -EVC_FAILED_PRECONDITION :
					   -EVC_RESOURCE_EXHAUSTED,
				 b->lost ? "the loop was destroyed" :
					   "no memory for a reactor");
		if (r->owner)
			evc__bell_free(b);
		sync_free(r);
		return st;
	}
	st = enlist(r);
	if (st < 0) {
		evc__bell_leave(r);
		sync_free(r);
		return st;
	}
	if (r->owner)
		*ret = r;
	return 0;
}

evc_status
evc__reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		    evc_reactor **ret)
{
	struct evc__bell *b;
	evc_reactor *r;

	sync_lock(&c->lock);
	r = find(c, loop);
	sync_unlock(&c->lock);
	if (r != NULL)
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "this loop is attached as %s", r->name);
	r = reactor_new(c, name);
	b = r != NULL ? evc__bell_new(loop) : NULL;
	if (b == NULL) {
		sync_free(r);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no memory for a reactor");
	}
	r->owner = true;
	return settle_on(r, b, ret);
}

evc_status
evc__reactor_share(evc_coord *c, const char *name, evc_reactor *with,
		   evc_reactor **ret)
{
	evc_reactor *r = reactor_new(c, name);
	evc_status st;

	if (r == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "no memory for a reactor");
	/* Before it is on the bell: from then on its loop may turn it, on
	   another thread, and look whether it is the home. */
	*ret = r;
	st = settle_on(r, with->bell, ret);
	if (st < 0)
		*ret = NULL;
	return st;
}

void
evc__reactor_release(evc_reactor *r)
{
	evc_coord *c = r->c;
	struct evc__frame *f;

	sync_lock(&c->lock);
	if (r->loop != NULL)
		evc__unlisten(c, &r->listener);
	evc__hooks_drop(c, r);
	if (c->runners != NULL)
		c->runners->orphan(c, r);
	list_remove(&r->node);
	evc__mark_leaves(c, &r->mark);
	sync_unlock(&c->lock);
	if (r->looper_ops != NULL)
		r->looper_ops->drop(r); /* those that never started */
	evc__busy_forget(r);
	if (r->owner)
		evc__bell_stop(r->bell);
	evc__bell_leave(r);
	/* A thread that is not the loop's has waited until there are none. */
	for (f = r->frames; f != NULL; f = f->up)
		f->gone = true;
	/* c is being freed then, and looked at from above. */
	sync_lock(&c->lock);
	if (c->home == r)
		c->home = NULL;
	sync_unlock(&c->lock);
	sync_free(r);
}

evc_reactor *
evc__reactor_here(const evc_coord *c, evc_reactor *preferred)
{
	evc_reactor *r, *found = NULL;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->reactors) {
		r = LIST_OF(n, evc_reactor, node);
		if (r->tid != evc__tid() || r->loop == NULL)
			continue;
		if (r == preferred || (preferred == NULL && r == c->home))
			return r;
		if (preferred == NULL && found == NULL)
			found = r;
	}
	return found;
}

unsigned
evc__reactor_loopers(const evc_reactor *r)
{
	unsigned n;

	sync_lock(&r->c->lock);
	n = r->n_loopers;
	sync_unlock(&r->c->lock);
	return n;
}

evc_status
evc__reactor_usable(const evc_reactor *r, const char *func)
{
	if (r->loop == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: loop %s was destroyed", func, r->name);
	return 0;
}

evc_status
evc_reactor_attach(evc_coord *c, const char *name, struct ev_loop *loop,
		   evc_reactor **ret_reactor)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0 && (loop == NULL || ret_reactor == NULL))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_reactor_attach: no loop, or no place for "
				 "the reactor");
	if (st == 0)
		st = evc__check_name(name, __func__);
	if (st == 0)
		st = evc__reactor_attach(c, name != NULL ? name : "loop", loop,
					 ret_reactor);
	return evc__refuse_setup(c, __func__, st);
}

evc_status
evc_reactor_detach(evc_reactor *r)
{
	evc_status st;
	const char *why = NULL;

	if (r == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_reactor_detach: no reactor");
	st = evc__check(r->c, __func__);
	if (st < 0)
		return st;
	if (r->tid != evc__tid())
		why = "another thread's loop";
	else if (r == r->c->home)
		why = "the home stays until evc_free";
	else if (r->frames != NULL)
		why = "inside one of its own callbacks";
	else if (r->n_live > 0)
		why = "it has live tasks";
	else if (evc__reactor_loopers(r) > 0)
		why = "it has live loopers";
	else if (!list_empty(&r->joins) || r->driver != NULL)
		why = "a join runs on it";
	else if (evc__bell_shared(r->bell))
		why = "scopes live on it";
	if (why != NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_reactor_detach: %s", why);
	evc__reactor_release(r);
	return 0;
}

evc_reactor *
evc_home(const evc_coord *c)
{
	return c != NULL ? c->home : NULL;
}

struct ev_loop *
evc_reactor_loop(const evc_reactor *r)
{
	return r != NULL ? r->loop : NULL;
}

evc_coord *
evc_reactor_coord(const evc_reactor *r)
{
	return r != NULL ? r->c : NULL;
}
