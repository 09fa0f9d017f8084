/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of a stop.  The request itself tells scopes with phase 0.  The
 * later phases are told here, by the looks of the joins in progress.  A phase
 * has its turn when all members of the coordinator itself and of earlier phases
 * have ended, or have used up the grace of their scope.
 *
 * Called by: list.c, end.c, children.c, requests.
 * Locks: the lock of the coordinator with the scopes is held; the scopes' are
 * taken below.  Atomics: parent_stop.
 */
#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/loop/post.h"
#include "core/join/join.h"
#include "core/status/trace.h"

#include <limits.h>

/* Lock held: do members of c itself, not of its scopes, hold up later phases?
   Members that wait for others do not, because such a member may wait for a
   later phase; hooks do. */
static bool
own_busy(evc_coord *c)
{
	struct list *n, *tmp;

	if (c->life.held)
		return true;
	LIST_EACH(n, tmp, &c->member.all) {
		const struct evc__member *m =
			LIST_OF(n, struct evc__member, node);

		if (m->n_joining == 0 && m->n_waits == 0)
			return true;
	}
	LIST_EACH(n, tmp, &c->loop.reactors) {
		evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (sync_load(&r->n_tasks) > 0 || r->n_loopers > 0 ||
		    sync_load_sc(&r->inbox->n) > 0 || evc__hooks_due(c, r))
			return true;
	}
	return evc__hooks_due(c, NULL);
}

/* Does s, or a scope below s, hold up later phases? */
static bool
scope_busy(evc_coord *s)
{
	struct list *n, *tmp;
	bool busy;

	if (sync_load_sc(&s->stop.alive) == 0 &&
	    sync_load_sc(&s->loop.n_hooks) == 0 &&
	    sync_load_sc(&s->loop.n_hooks_below) == 0 &&
	    sync_load(&s->join.scope_join) == NULL)
		return false;
	sync_lock(&s->lock);
	busy = own_busy(s) || evc__scope_join_due(s, 0);
	if (!busy)
		LIST_EACH(n, tmp, &s->scopes)
			busy = busy || scope_busy(SCOPE_OF(n));
	sync_unlock(&s->lock);
	return busy;
}

/* How much longer s may hold up later phases. */
static uint64_t
limit_left(evc_coord *s, uint64_t now)
{
	uint64_t end, stop;

	if (!scope_busy(s))
		return 0;
	if (s->join.grace == 0)
		return SYNC_FOREVER;
	sync_lock(&s->lock);
	stop = evc__stop_time(s, sync_load_sc(&s->word));
	sync_unlock(&s->lock);
	end = evc__after(stop, evc__ns(s->join.grace));
	if (end == SYNC_FOREVER)
		return end;
	return end > now ? end - now : 0;
}

/* How much longer the phase `next` has to wait. */
static uint64_t
wait_for(evc_coord *c, int next, uint64_t now)
{
	uint64_t most = 0, left;
	struct list *n, *tmp;

	if (own_busy(c))
		return SYNC_FOREVER;
	LIST_EACH(n, tmp, &c->scopes) {
		if (SCOPE_OF(n)->join.phase >= next)
			continue;
		left = limit_left(SCOPE_OF(n), now);
		most = left > most ? left : most;
	}
	return most;
}

/* Tell the stop to all scopes up to the phase.  false: all of them were told
   before. */
static bool
tell_phase(evc_coord *c, int phase, uint32_t stop)
{
	struct list *n, *tmp;
	bool any = false;

	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		if (s->join.phase > phase ||
		    sync_load_sc(&s->stop.parent_stop) == stop)
			continue;
		evc__scope_tell(s);
		any = true;
	}
	if (any)
		evc__trace(c, TRACE_PHASE, 0, TRACE_COORD, NULL,
			   (uint64_t)phase);
	return any;
}

/* Lock held: tell the phases of c that have their turn.  Returns how long the
   next phase has to wait. */
static uint64_t
drive_phases(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word), wait;
	uint32_t stop = WORD_STOP_NUMBER(w);
	struct list *n, *tmp;
	int next, reached;
	bool untold;

	if (!(w & WORD_FLAG) || c->join.n_phased == 0 ||
	    c->join.phases_done == stop)
		return SYNC_FOREVER;
	for (;;) {
		next = INT_MAX;
		reached = 0;
		untold = false;
		LIST_EACH(n, tmp, &c->scopes) {
			evc_coord *s = SCOPE_OF(n);

			if (sync_load_sc(&s->stop.parent_stop) != stop) {
				untold = true;
				next = s->join.phase < next ? s->join.phase
							    : next;
			} else if (s->join.phase > reached)
				reached = s->join.phase;
		}
		if (!untold) {
			c->join.phases_done = stop;
			return SYNC_FOREVER;
		}
		/* A scope that was added after its phase was told does not
		   wait. */
		wait = next <= reached ? 0 : wait_for(c, next, evc__now(c));
		if (wait > 0)
			return wait;
		(void)tell_phase(c, next, stop);
	}
}

uint64_t
evc__phases_drive(evc_coord *c)
{
	uint64_t wait, below;
	struct list *n, *tmp;

	if (!sync_load_sc(&c->tree->phased))
		return SYNC_FOREVER;
	wait = drive_phases(c);
	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		/* s need not be stopped: a scope below s may be. */
		sync_lock(&s->lock);
		below = evc__phases_drive(s);
		sync_unlock(&s->lock);
		wait = below < wait ? below : wait;
	}
	return wait;
}

bool
evc__phases_wait(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word);
	bool stopped = (w & WORD_FLAG) && c->join.n_phased > 0, wait = false;
	struct list *n, *tmp;

	if (!sync_load_sc(&c->tree->phased))
		return false;
	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		if (stopped && sync_load_sc(&s->stop.parent_stop) !=
				       WORD_STOP_NUMBER(w))
			return true;
		sync_lock(&s->lock);
		wait = wait || evc__phases_wait(s);
		sync_unlock(&s->lock);
	}
	return wait;
}

/* Lock held: tell all scopes that were not told, at any depth.  A scope with a
   join in progress is left to that join.  false: all were told before. */
static bool
tell_rest(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word);
	struct list *n, *tmp;
	bool any = false;

	if ((w & WORD_FLAG) && c->join.n_phased > 0)
		any = tell_phase(c, INT_MAX, WORD_STOP_NUMBER(w));
	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		if (sync_load_sc(&s->stop.n_driving) > 0)
			continue;
		sync_lock(&s->lock);
		any |= tell_rest(s);
		sync_unlock(&s->lock);
	}
	return any;
}

bool
evc__phases_tell_in_time(evc_coord *c)
{
	return sync_load_sc(&c->tree->phased) &&
	       sync_load_sc(&c->stop.n_driving) <= 1 &&
	       !evc__driven(c->parent) && tell_rest(c);
}

void
evc__phases_tell_all(evc_coord *c)
{
	if (sync_load_sc(&c->tree->phased) && !evc__driven(c))
		(void)tell_rest(c);
}
