/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The escalation of a stop: when each step is due, and the reasons to move the
 * end of the stop.
 *
 * Called by: joins, the helper job that wakes members, reports.
 * Locks: the coordinator's lock is held; last_mark takes the locks of the
 * scopes below.  The escalation itself is atomic and needs none.
 */
#include "base/deadline.h"
#include "core/core.h"
#include "core/stop/scopes.h"
#include "core/status/trace.h"

/* When the log names the members alive: this fraction of a stop's time. */
#define ENDING 0.9

const double evc__took_bounds[TOOK_BUCKETS] = { 0.001, 0.01, 0.1, 0.5, 1,
						5,     10,   30,  120 };

const evc_escalation_opts *
evc__escalation(const evc_coord *c)
{
	static const evc_escalation_opts none;
	const struct evc__escalation *l = NULL;

	for (; c != NULL && l == NULL; c = c->parent)
		l = sync_load(&c->wake.escalation);
	return l != NULL ? &l->o : &none;
}

uint64_t
evc__step_due(const evc_coord *c, enum evc__escalation_step r, uint64_t stop,
	      uint64_t end)
{
	const evc_escalation_opts *o = evc__escalation(c);
	double part = r == STEP_HOOKS   ? o->hooks
		      : r == STEP_KICKS ? o->kicks
					: ENDING;
	uint64_t first = stop, due;

	/* Kicks begin a moment after the hooks, because a kick must not disturb
	   a thread that is already reacting to the stop or to a hook. */
	if (r == STEP_KICKS) {
		due = evc__step_due(c, STEP_HOOKS, stop, end);
		first = evc__after(due != SYNC_FOREVER ? due : stop,
				   BACKOFF_FIRST_NS);
	}
	if (part == 0)
		return first;
	if (part >= 1 || end == SYNC_FOREVER)
		return SYNC_FOREVER;
	due = stop + (end > stop ? (uint64_t)((double)(end - stop) * part) : 0);
	return due > first ? due : first;
}

_Static_assert(sizeof((evc_coord *)0)->wake.step_ns ==
		       N_STEPS * sizeof((evc_coord *)0)->wake.step_ns[0],
	       "one for each");

bool
evc__step_reached(evc_coord *c, enum evc__escalation_step r)
{
	if (c->wake.step_ns[r] != 0)
		return false;
	c->wake.step_ns[r] = evc__now(c) | 1;
	evc__trace(c, TRACE_STEP, 0, TRACE_COORD, NULL, r);
	return true;
}

/* ---- progress ---- */

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void
evc__mark_leaves(evc_coord *c, const struct evc__mark *m)
{
	c->wake.last_mark = later(c->wake.last_mark, sync_load_relaxed(&m->ns));
}

/* Lock held: the time of the last progress in c or below, by evc__mark_now; 0:
   none.  Progress of members that have ended meanwhile counts, too, for members
   that wait for their results. */
static uint64_t
last_mark(evc_coord *c)
{
	uint64_t last = c->wake.last_mark;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->member.all)
	{
		const struct evc__member *m =
			LIST_OF(n, struct evc__member, node);

		last = later(last, sync_load_relaxed(&m->mark.ns));
	}
	LIST_EACH(n, tmp, &c->loop.reactors)
	{
		evc_reactor *r = LIST_OF(n, evc_reactor, node);

		last = later(last, sync_load_relaxed(&r->mark.ns));
	}
	LIST_EACH(n, tmp, &c->scopes)
	{
		evc_coord *s = SCOPE_OF(n);

		if (!evc__lock_tree(s))
			continue;
		last = later(last, last_mark(s));
		sync_unlock(&s->lock);
	}
	return last;
}

/* Lock held: the end that progress gives; 0: no progress since the stop. */
static uint64_t
progress_end(evc_coord *c, const evc_escalation_opts *o, uint64_t stop)
{
	uint64_t mark = last_mark(c), age, now;

	if (mark == 0)
		return 0;
	age = evc__mark_now(c);
	age = age > mark ? age - mark : 0;
	now = evc__now(c);
	/* Progress before the stop does not count. */
	if (now < age || now - age <= stop)
		return 0;
	return evc__after(now - age, evc__ns(o->step));
}

struct evc__more_time
evc__more_time(evc_coord *c, uint64_t stop)
{
	const evc_escalation_opts *o = evc__escalation(c);
	struct evc__more_time e = { 0 };
	struct list *n, *tmp;

	if (stop == 0)
		return e;
	if (o->budget > 0)
		e.budget = evc__after(stop, evc__ns(o->budget));
	if (!(o->hard_end > 0))
		return e;
	e.hard = evc__after(stop, evc__ns(o->hard_end));
	LIST_EACH(n, tmp, &c->wake.extensions)
	e.asked = evc__after(e.asked,
			     LIST_OF(n, struct evc__extension, node)->ns);
	if (o->step > 0)
		e.progress = progress_end(c, o, stop);
	return e;
}

/* ---- the end of a stop ---- */

void
evc__took(evc_coord *c, double seconds)
{
	unsigned i = 0;

	while (i < TOOK_BUCKETS && seconds > evc__took_bounds[i])
		i++;
	c->wake.stats.took[i]++;
	c->wake.stats.took_sum += seconds;
	c->wake.stats.stops++;
}

static void
forget_extensions(evc_coord *c)
{
	while (!list_empty(&c->wake.extensions)) {
		struct evc__extension *e = LIST_OF(c->wake.extensions.next,
						   struct evc__extension, node);

		list_remove(&e->node);
		sync_free(e);
	}
}

void
evc__escalation_forget(evc_coord *c)
{
	memset(c->wake.step_ns, 0, sizeof c->wake.step_ns);
	c->wake.n_kicks = c->wake.n_unblocks = 0;
	c->wake.kicks_lost = NULL;
	c->wake.kick_error = 0;
	c->wake.last_mark = 0;
	forget_extensions(c);
}

void
evc__escalation_free(evc_coord *c)
{
	struct evc__escalation *l = sync_load(&c->wake.escalation), *before;

	for (; l != NULL; l = before) {
		before = l->before;
		sync_free(l);
	}
	forget_extensions(c);
	sync_free(c->wake.wake_blocked);
	sync_free(c->wake.ending);
	sync_free(c->life.owner);
}
