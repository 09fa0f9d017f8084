/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors: a loop as one coordinator knows it.
 *
 * The watcher is a doorbell (bell.c): what a ring means stands in the
 * coordinator's word and lists, and evc__reactor_turn does whatever they ask
 * for.  How loops come and go stands in attach.c.
 */
#include "core/join/keeper.h"
#include "core/join/scope.h"
#include "core/status/trace.h"

#include "base/self.h"
#include "base/text.h"

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
		evc__bell_ref(r->bell, true);
		evc__reactor_poke(r);
	} else if (r->loop != NULL)
		evc__bell_ref(r->bell, false);
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
	/* Gone for a fork child that one of them has made. */
	if (!f.gone)
		evc__runners_turn(c, r);
	if (f.gone)
		return false;
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

const char *
evc__tasks_wrong(const evc_reactor *r)
{
	uint32_t wrong = sync_load_relaxed(&r->tasks_wrong);

	return wrong & TASKS_BROKEN ? " (a task was freed or used again)" :
	       wrong != 0	    ? " (evc_task_end on another thread)" :
				      "";
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

bool
evc_reactor_is_here(const evc_reactor *r)
{
	return r != NULL && r->tid == evc__tid();
}
