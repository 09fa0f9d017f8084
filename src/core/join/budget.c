/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a stop may take: the grace that holds, and the deadline that a scope
 * inherits from the coordinators above.
 *
 * Called by: joins, phases, the escalation, reports; the program and the rooms
 * above (evc_stop_left).
 * Locks: the coordinator's is held; evc__budget_end takes the parents' and
 * needs no lock held.
 */
#include "core/core.h"
#include "core/join/join.h"

#include <math.h>

#define SIGNAL_GRACE 8.0
#define DEFAULT_GRACE 120.0
/* So long an answered join may take to return: the log takes its lines, and
   release functions run. */
#define RETURN_NS (2 * UINT64_C(1000000000))

uint64_t
evc__stop_time(evc_coord *c, uint64_t w)
{
	const evc_reason *r;

	if (!(w & WORD_FLAG))
		return 0;
	r = evc__reason_peek(c, WORD_WIN_SLOT(w), w);
	if (r != NULL)
		return r->mono_ns != 0 ? r->mono_ns : 1;
	if (c->join.seen_ns == 0)
		c->join.seen_ns = evc__now(c) | 1; /* 0 would be "no stop" */
	return c->join.seen_ns;
}

/* The grace of a join with the option `asked`, or of the coordinators, or the
   budget; 0: none is set. */
static double
chosen_grace(evc_coord *c, double asked)
{
	const evc_coord *a;
	double g = asked;

	for (a = c; a != NULL && g == 0; a = a->parent)
		g = a->join.grace;
	return g != 0 ? g : evc__escalation(c)->budget;
}

bool
evc__grace_by_signal(evc_coord *c, double asked, uint64_t w)
{
	const evc_reason *r = NULL;

	if (w & WORD_FLAG)
		r = evc__reason_peek(c, WORD_WIN_SLOT(w), w);
	return r != NULL && r->kind == EVC_BY_SIGNAL &&
	       chosen_grace(c, asked) == 0;
}

double
evc__grace(evc_coord *c, double asked, uint64_t w)
{
	double g = chosen_grace(c, asked);

	if (g == EVC_NO_GRACE)
		return 0;
	if (g != 0)
		return g;
	/* Service managers kill after 10 s, or after 90 s. */
	return evc__grace_by_signal(c, asked, w) ? SIGNAL_GRACE : DEFAULT_GRACE;
}

double
evc__stop_grace(evc_coord *c, uint64_t w)
{
	double budget = sync_load(&c->wake.escalation) != NULL ?
				evc__escalation(c)->budget :
				0;

	return budget != 0 ? budget : evc__grace(c, 0, w);
}

uint64_t
evc__kept_time(const evc_coord *c)
{
	double time = evc__escalation(c)->budget;

	if (time == 0)
		time = c->join.grace;
	if (time == 0)
		time = SIGNAL_GRACE;
	return time > 0 ? evc__ns(time / 2) : 0;
}

uint64_t
evc__join_start_ns(const struct evc__join *j, uint64_t w)
{
	bool stop_alone = j->stepped ||
			  evc__grace_by_signal(j->c, j->opts.grace, w);

	return stop_alone ? 0 : j->start_ns;
}

uint64_t
evc__own_end(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word), end = 0, e;
	struct evc__view v = { .stop = evc__stop_time(c, w),
			       .longest = INFINITY };
	struct list *n, *tmp;

	if (v.stop == 0)
		return SYNC_FOREVER;
	v.grace_cut = evc__grace_cut_at(c, WORD_STOP_NUMBER(w));
	v.cut_grace = sync_load(&c->wake.cut_grace_ns);
	v.more = evc__more_time(c, v.stop);
	v.put_off = evc__put_off(c, v.grace_cut);
	LIST_EACH(n, tmp, &c->join.all) {
		struct evc__join *j = LIST_OF(n, struct evc__join, node);

		if (j->internal || j->answered)
			continue;
		v.start = evc__join_start_ns(j, w);
		v.grace = evc__grace(c, j->opts.grace, w);
		e = evc__deadline(&v);
		end = e > end ? e : end;
	}
	/* When the last join has given up, the scopes below have no time left
	   either: spent_ns. */
	end = end != 0 ? end : c->join.spent_ns;
	if (end != 0)
		return end;
	v.start = 0;
	v.grace = evc__stop_grace(c, w);
	return evc__deadline(&v);
}

uint64_t
evc__returns_end(const evc_coord *c, uint32_t stop)
{
	return c->join.decided == stop ?
		       evc__after(c->join.decided_ns, RETURN_NS) :
		       0;
}

uint64_t
evc__budget_end(evc_coord *c)
{
	uint64_t end = SYNC_FOREVER, e;
	evc_coord *p;

	for (p = c->parent; p != NULL; p = p->parent) {
		sync_lock(&p->lock);
		e = evc__own_end(p);
		sync_unlock(&p->lock);
		end = e < end ? e : end;
	}
	return end;
}

double
evc_stop_left(const evc_coord *coord)
{
	evc_coord *c = (evc_coord *)coord;
	uint64_t end, own, now;

	if (evc__check(c, __func__) < 0 ||
	    evc__enter(c, -EVC_FAILED_PRECONDITION, __func__) < 0)
		return 0;
	end = evc__budget_end(c);
	sync_lock(&c->lock);
	own = evc__own_end(c);
	now = evc__now(c);
	sync_unlock(&c->lock);
	evc__refgate_leave(&c->life.gate);
	end = own < end ? own : end;
	if (end == SYNC_FOREVER)
		return INFINITY;
	return end > now ? (double)(end - now) / 1e9 : 0;
}
