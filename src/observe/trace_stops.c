/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stops of a timeline, and the parts that they make of each lane.
 * Called by: trace_lanes.c finds stops; trace_json.c asks for parts.
 * Locks: none; the timeline is the caller's.
 */
#include "core/core.h"
#include "observe/trace_lanes.h"

/* ---- stops ---- */

static bool
made_stop(const struct evc__record *r)
{
	return r->what == TRACE_REQUEST && TRACE_ASKED_WON(r->arg);
}

/* The coordinator's own stops in order, each until its clear. */
static void
read_own(struct evc__timeline *t, struct evc__group *g)
{
	struct evc__stop *s = NULL;
	size_t i;

	g->first_stop = t->n_stops;
	for (i = g->first; i < g->first + g->n_own; i++) {
		const struct evc__record *r = &t->rec[i];

		if (made_stop(r)) {
			if (s != NULL && s->to == t->now)
				/* the record of the clear is lost */
				s->to = r->ns;
			s = &t->stop[t->n_stops++];
			g->n_stops++;
			s->from = r->ns;
			s->to = t->now;
			s->late = s->over = SYNC_FOREVER;
			s->asked = r;
		} else if (s != NULL && s->to == t->now &&
			   r->what == TRACE_CLEAR)
			s->to = r->ns;
	}
}

static void
sooner(uint64_t *t, uint64_t ns)
{
	if (ns < *t)
		*t = ns;
}

/* The stop of g at this time, or NULL. */
static struct evc__stop *
stop_at(const struct evc__timeline *t, const struct evc__group *g, uint64_t ns)
{
	size_t lo = g->first_stop, hi = lo + g->n_stops;

	/* The last stop that began before. */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->stop[mid].from <= ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == g->first_stop || t->stop[lo - 1].to < ns)
		return NULL;
	return &t->stop[lo - 1];
}

/* Times when joins gave up, or found no live member. */
static void
read_ends(struct evc__timeline *t, const struct evc__group *g)
{
	size_t i;

	for (i = g->first; i < g->first + g->n; i++) {
		const struct evc__record *r = &t->rec[i];
		bool step = r->what == TRACE_STEP && r->arg == STEP_ABANDONED;
		struct evc__stop *s;

		if (r->what != TRACE_VERDICT && !step)
			continue;
		s = stop_at(t, g, r->ns);
		if (s == NULL)
			continue;
		if (r->what == TRACE_VERDICT && r->arg == 0)
			sooner(&s->over, r->ns);
		else
			sooner(&s->late, r->ns);
	}
}

/* A stop above is a stop below. */
static void
inherit_stops(struct evc__timeline *t, const struct evc__group *g)
{
	size_t i;

	for (i = g->first_stop; i < g->first_stop + g->n_stops; i++) {
		struct evc__stop *s = &t->stop[i];
		const struct evc__stop *up = stop_at(t, g->parent, s->from);

		if (up == NULL)
			continue;
		sooner(&s->late, up->late);
		sooner(&s->over, up->over);
	}
}

bool
evc__timeline_stops(struct evc__timeline *t)
{
	struct evc__group *g;
	size_t i, n = 0;

	for (i = 0; i < t->n; i++)
		n += made_stop(&t->rec[i]);
	t->stop = sync_alloc(n > 0 ? n : 1, sizeof *t->stop);
	if (t->stop == NULL)
		return false;
	for (g = t->group; g < t->group + t->n_groups; g++) {
		read_own(t, g);
		read_ends(t, g);
		if (g->parent != NULL)
			inherit_stops(t, g);
	}
	return true;
}

/* ---- parts ---- */

struct parts {
	evc__part_fn *fn;
	void *arg;
};

static void
tell_part(const struct parts *p, enum evc__part what, uint64_t from,
	  uint64_t to)
{
	if (from < to)
		p->fn(what, from, to, p->arg);
}

/* The parts in a stop, from..to. */
static void
tell_stopped(const struct parts *p, const struct evc__stop *s, uint64_t from,
	     uint64_t to)
{
	uint64_t late = s->late > from ? s->late : from;

	tell_part(p, PART_AFTER, from, late < to ? late : to);
	tell_part(p, PART_LATE, late, to);
}

/* The time at which a loop or a hook had done its part in a stop. */
static uint64_t
done_with(const struct evc__lane *l, const struct evc__stop *s)
{
	uint64_t done = 0, to = s->over < s->to ? s->over : s->to;
	bool tasks = false;
	size_t i;

	for (i = 0; i < l->n; i++) {
		const struct evc__record *r = &l->rec[i];

		if (r->ns < s->from || r->ns > s->to)
			continue;
		if (r->what == TRACE_RETURN || r->what == TRACE_HEARD ||
		    r->what == TRACE_TOLD || r->what == TRACE_IDLE)
			done = r->ns;
		if (r->what == TRACE_TELL)
			tasks = true;
		else if (r->what == TRACE_IDLE)
			tasks = false;
	}
	return done == 0 || tasks || done > to ? to : done;
}

/* The parts of joins: answered or not. */
static void
join_parts(const struct evc__timeline *t, const struct evc__lane *l,
	   const struct parts *p)
{
	uint64_t from = 0;
	size_t i;

	for (i = 0; i < l->n; i++) {
		const struct evc__record *r = &l->rec[i];

		if (r->what == TRACE_JOIN && from == 0)
			from = r->ns;
		else if (r->what == TRACE_VERDICT) {
			tell_part(p, PART_JOIN, from != 0 ? from : t->since,
				  r->ns);
			from = 0;
		}
	}
	if (from != 0)
		tell_part(p, PART_JOIN, from, t->now);
}

void
evc__lane_parts(const struct evc__timeline *t, const struct evc__lane *l,
		evc__part_fn *fn, void *arg)
{
	/* Loops and hooks work only at a stop, and stay after the stop. */
	bool stays = l->kind == TRACE_LOOP || l->kind == EVC_HOOK;
	const struct parts p = { fn, arg };
	const struct evc__group *g = l->group;
	size_t i;

	if (l->kind == TRACE_JOINER)
		join_parts(t, l, &p);
	if (l->kind >= TRACE_JOINER)
		return;
	for (i = g->first_stop; i < g->first_stop + g->n_stops; i++) {
		const struct evc__stop *s = &t->stop[i];
		uint64_t from = s->from > l->begin ? s->from : l->begin;
		uint64_t to = l->end < s->to ? l->end : s->to;

		if (from < l->end)
			tell_stopped(&p, s, from, stays ? done_with(l, s) : to);
	}
	if (!stays && !l->alive && l->reaped > l->end)
		tell_part(&p, PART_ENDED, l->end, l->reaped);
}
