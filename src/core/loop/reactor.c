/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reactors: a loop as one coordinator knows the loop.  The watcher is a hint
 * only (loop_waker.c): the meaning of a ring is in the coordinator's word and
 * lists, and evc__turn does the work that these ask for.  attach.c has the way
 * loops come and go.
 *
 * Called by: joins, runs and members, on the loop's thread or with the lock
 * held.
 * Locks: the coordinator's, where reactor.h says so.  Atomics:
 * listener.n_joins, heard.
 */
#include "core/core.h"
#include "core/status/trace.h"

#include "base/backoff.h"
#include "base/probe.h"
#include "base/self.h"
#include "base/text.h"

void
evc__reactor_poke(evc_reactor *r)
{
	if (r->loop != NULL)
		evc__loop_waker_ring(r);
}

void
evc__reactor_hear(evc_reactor *r, bool yes)
{
	uint32_t d = yes ? 1 : (uint32_t)-1;

	/* The count first: the look that follows misses no ring. */
	sync_add(&r->listener.n_joins, d);
	sync_add(&r->c->stop.n_loop_joins, d);
	if (yes) {
		evc__loop_waker_ref(r->waker, true);
		evc__reactor_poke(r);
	} else if (r->loop != NULL)
		evc__loop_waker_ref(r->waker, false);
}

uint64_t
evc__reactor_heard(evc_reactor *r)
{
	uint64_t w;

	evc__trace_heard(r);
	w = sync_load(&r->c->word);
	if (sync_load_relaxed(&r->heard) != WORD_STOP_NUMBER(w))
		PROBE3(heard, &r->c->name[0], &r->name[0], r->tid);
	sync_store(&r->heard, WORD_STOP_NUMBER(w));
	return w;
}

evc_reactor *
evc__reactor_here(const evc_coord *c, evc_reactor *preferred)
{
	evc_reactor *r, *found = NULL;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.reactors) {
		r = LIST_OF(n, evc_reactor, node);
		if (r->tid != evc__tid() || r->loop == NULL)
			continue;
		if (r == preferred || (preferred == NULL && r == evc__home(c)))
			return r;
		if (preferred == NULL && found == NULL)
			found = r;
	}
	return found;
}

/* A run inside the host's run may have taken the end for its own: the host turns
   again, seldom in the long run, so that the program ends it again. */
static void
turn_again(evc_reactor *r)
{
	r->again_ns = evc__backoff_next(r->again_ns, BACKOFF_FIRST_NS,
					BACKOFF_RARE_NS);
	evc__timer_start(r->waker, &r->again, (double)r->again_ns / 1e9);
}

static void
on_again(struct ev_loop *loop, ev_timer *t, int revents)
{
	evc_reactor *r = t->data;

	(void)loop;
	(void)revents;
	if (evc_should_stop(r->c))
		turn_again(r);
}

void
evc__reactor_answered(evc_reactor *r)
{
	r->again_ns = 0;
	if (r->host_runs)
		turn_again(r);
}

void
evc__reactor_host_runs(evc_reactor *r, bool runs)
{
	evc_coord *c = r->c;
	uint32_t stop;

	if (runs == r->host_runs)
		return;
	r->host_runs = runs;
	sync_add(&c->stop.n_host_runs, runs ? 1 : (uint32_t)-1);
	if (runs) {
		ev_init(&r->again.ev, on_again);
		r->again.ev.data = r;
		return;
	}
	evc__timer_stop(r->waker, r->loop, &r->again);
	sync_lock(&c->lock);
	stop = c->join.decided;
	sync_unlock(&c->lock);
	evc__stop_returned(c, stop);
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
				   "%s: loop %s was detached or destroyed",
				   func, r->name);
	return 0;
}

evc_reactor *
evc_home(const evc_coord *c)
{
	return c != NULL ? evc__home(c) : NULL;
}

struct ev_loop *
evc_reactor_loop(const evc_reactor *r)
{
	return r != NULL && !r->hosted ? r->loop : NULL;
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
