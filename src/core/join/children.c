/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work of a join for the scopes below its coordinator: reap in the scopes that
 * have rung, and probe members that cannot ring.  Reports without a join reap
 * and probe threads alone.  A scope that rings is marked in its parent's
 * notify_set, the parent in the set of the next parent, up to the root.  So a
 * join with ten thousand scopes below visits only the scopes that have rung.
 * During a visit no other lock is held, and the scope's refgate keeps the
 * scope.
 *
 * Called by: list.c, end.c, turn.c, verdict.c; clear, free, abandon; reports.
 * Locks: the coordinator's, given up meanwhile; then the scope's.
 */
#include "core/core.h"
#include "core/join/join.h"

/* RUNG: reap in the scopes that have rung.  PROBE: reap and probe in all
   scopes.  FORCE: also end runners by force.  THREADS: reap and probe, but
   leave runners out. */
enum mode { RUNG, PROBE, FORCE, THREADS };

static bool attend_below(evc_coord *c, enum mode mode, uint64_t reap_ns);

/* Lock of s held, given up meanwhile: the work of a mode in s and below. */
static bool
visit_scope(evc_coord *s, enum mode mode, uint64_t reap_ns)
{
	while (evc__members_reap(s, reap_ns))
		;
	if (mode != RUNG)
		evc__members_probe(s);
	return attend_below(s, mode, reap_ns);
}

/* Each loop asks its own runners. */
static void
probe_loops(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.reactors)
	{
		evc_reactor *r = LIST_OF(n, evc_reactor, node);

		sync_store_sc(&r->probe_runners, true);
		evc__reactor_poke(r);
	}
}

static bool
attend_runners(evc_coord *c, enum mode mode)
{
	if (c->member.n_runners == 0 || mode == THREADS)
		return false;
	if (mode == FORCE)
		return c->member.driver->force(c);
	if (mode == PROBE)
		probe_loops(c);
	return c->member.driver->attend(c, NULL, mode == PROBE);
}

static void
mark_scopes(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->scopes)
	if (sync_load_sc(&SCOPE_OF(n)->stop.alive) > 0)
		evc__notify_mark(&SCOPE_OF(n)->stop.up.at);
}

/* Lock of c held, given up meanwhile: visit the scopes below c.  true: the lock
   was given up; in mode FORCE: force was used. */
static bool
attend_below(evc_coord *c, enum mode mode, uint64_t reap_ns)
{
	struct notify_cursor at = { NULL, 0 };
	bool any = attend_runners(c, mode);
	struct evc__listener *l;

	if (list_empty(&c->scopes))
		return any;
	if (mode != RUNG)
		mark_scopes(c);
	while ((l = evc__notify_set_next(&c->stop.listeners[LISTENS_SCOPE],
					 &at)) != NULL) {
		evc_coord *s = l->scope;

		if (!evc__refgate_enter(&s->life.gate))
			continue;
		sync_unlock(&c->lock);
		sync_lock(&s->lock);
		any |= visit_scope(s, mode, reap_ns) || mode != FORCE;
		sync_unlock(&s->lock);
		evc__refgate_leave(&s->life.gate);
		sync_lock(&c->lock);
	}
	/* A scope may have rung for a runner, which only a join serves: the
	   scope stays marked. */
	if (mode == THREADS)
		mark_scopes(c);
	return any;
}

bool
evc__children_attend(evc_coord *c, uint64_t reap_ns)
{
	return attend_below(c, RUNG, reap_ns);
}

bool
evc__probe_all(evc_coord *c)
{
	evc__members_probe(c);
	return attend_below(c, PROBE, 0);
}

/* How long evc__members_refresh waits for a thread that has rung, until the
   thread has ended. */
#define GOING_NS UINT64_C(1000000000)

void
evc__members_refresh(evc_coord *c)
{
	evc__members_reap(c, GOING_NS);
	evc__probe_all(c);
}

void
evc__bury_threads(evc_coord *c, uint64_t reap_ns)
{
	evc__members_reap(c, reap_ns);
	evc__members_probe(c);
	attend_below(c, THREADS, 0);
}

bool
evc__force_all(evc_coord *c)
{
	return attend_below(c, FORCE, 0);
}

void
evc__runners_turn(evc_coord *c, evc_reactor *r)
{
	bool probe = sync_xchg(&r->probe_runners, false);

	sync_lock(&c->lock);
	if (c->member.n_runners > 0)
		c->member.driver->attend(c, r, probe);
	sync_unlock(&c->lock);
}
