/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline as lanes.  All records are sorted once, by coordinator, lane and
 * time: then each coordinator, and each lane in a coordinator, is a stretch of
 * this array.
 * Called by: trace_write.c; trace_alive.c adds records.
 * Locks: none of its own; see trace_alive.c.
 */
#include "observe/trace_lanes.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"
#include "core/core.h"

/* ---- records ---- */

struct evc__record *
evc__timeline_add(struct evc__timeline *t)
{
	return ARRAY_RESERVE(t->rec, t->n, t->room, 1) ? &t->rec[t->n++] : NULL;
}

/* Records of the coordinator itself come before its lanes. */
static bool
is_own(const struct evc__record *r)
{
	switch (r->what) {
	case TRACE_REQUEST:
	case TRACE_DRAIN:
	case TRACE_CLEAR:
	case TRACE_PHASE:
	case TRACE_STEP:
		return true;
	case TRACE_VERDICT:
		return false;
	default:
		return r->kind == EVC_SCOPE || r->kind == TRACE_COORD;
	}
}

static unsigned
kind_of(const struct evc__record *r)
{
	/* In a verdict's record `kind` is a code. */
	return is_own(r) ? TRACE_COORD :
	       r->what == TRACE_VERDICT ? TRACE_JOINER :
					  r->kind;
}

static uint64_t
id_of(const struct evc__record *r)
{
	return is_own(r) ? 0 : r->id;
}

static int
order_of(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* 0: the same lane. */
static int
by_lane(const struct evc__record *a, const struct evc__record *b)
{
	int o = order_of(a->coord, b->coord);

	if (o == 0)
		o = order_of(kind_of(a), kind_of(b));
	return o != 0 ? o : order_of(id_of(a), id_of(b));
}

static int
by_all(const void *x, const void *y)
{
	const struct evc__record *a = x, *b = y;
	int o = by_lane(a, b);

	if (o == 0)
		o = order_of(a->ns, b->ns);
	return o != 0 ? o : order_of(a->number, b->number);
}

static bool
gather_records(const evc_coord *c, struct evc__timeline *t)
{
	struct evc__trace *ring = evc__trace_last(c);
	size_t i;

	t->since = evc__trace_since(ring);
	t->now = sync_mono();
	/* Live members first: a member that ends meanwhile is in the ring as
	   well. */
	if (!evc__timeline_alive(t, c) ||
	    !ARRAY_RESERVE(t->rec, t->n, t->room, evc__trace_room(ring)))
		return false;
	t->n += evc__trace_read(ring, t->rec + t->n, &t->lost);
	/* Records that came during the look are shown as well. */
	for (i = 0; i < t->n; i++)
		if (t->rec[i].ns > t->now)
			t->now = t->rec[i].ns;
	qsort(t->rec, t->n, sizeof *t->rec, by_all);
	return true;
}

/* ---- groups ---- */

static struct evc__group *
find_group(const struct evc__timeline *t, uint64_t number)
{
	size_t lo = 0, hi = t->n_groups;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->group[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n_groups && t->group[lo].number == number ?
		       &t->group[lo] :
		       NULL;
}

/* The name and parent from the records; false: there are none. */
static bool
name_group(const struct evc__timeline *t, struct evc__group *g)
{
	bool known = false;
	size_t i;

	for (i = g->first; i < g->first + g->n_own; i++) {
		const struct evc__record *r = &t->rec[i];

		if (r->kind != EVC_SCOPE ||
		    (r->what != TRACE_BEGIN && r->what != TRACE_END &&
		     r->what != TRACE_ALIVE))
			continue;
		memcpy(g->name, r->name, sizeof g->name);
		g->above = (uint32_t)r->arg;
		known = true;
	}
	return known;
}

static bool
make_groups(struct evc__timeline *t)
{
	struct evc__group *g = NULL;
	size_t i, n = 0;

	for (i = 0; i < t->n; i++)
		n += i == 0 || t->rec[i].coord != t->rec[i - 1].coord;
	t->group = sync_alloc(n, sizeof *t->group);
	if (t->group == NULL)
		return false;
	for (i = 0; i < t->n; i++) {
		if (i == 0 || t->rec[i].coord != t->rec[i - 1].coord) {
			g = &t->group[t->n_groups++];
			memset(g, 0, sizeof *g);
			g->number = t->rec[i].coord;
			g->first = i;
		}
		g->n++;
		g->n_own += is_own(&t->rec[i]);
		/* A scope that began during the read, and overwrote the whole
		   ring: its records are not complete. */
		if ((i + 1 == t->n ||
		     t->rec[i + 1].coord != t->rec[i].coord) &&
		    !name_group(t, g))
			t->n_groups--;
	}
	for (g = t->group; g < t->group + t->n_groups; g++) {
		if (g->number == 1)
			continue;
		g->parent = find_group(t, g->above);
		if (g->parent == NULL)
			g->parent = t->group;
	}
	return true;
}

void
evc__group_path(const struct evc__group *g, char *buf, size_t room)
{
	struct text t;

	if (g->parent == NULL) {
		evc__copy(buf, room, g->name);
		return;
	}
	evc__group_path(g->parent, buf, room);
	t = evc__text_in(buf + strlen(buf), room - strlen(buf));
	evc__text_add(&t, " / ");
	evc__text_add(&t, g->name);
}

/* ---- lanes ---- */

static bool
is_thread(unsigned kind)
{
	return kind == EVC_THREAD || kind == EVC_REGISTERED ||
	       kind == EVC_LOOPER;
}

/* The life of a lane, as far as records tell. */
static void
read_life(const struct evc__timeline *t, struct evc__lane *l)
{
	uint64_t began = 0, seen_alive = 0, end = 0;
	unsigned called = 0, returned = 0;
	size_t i;

	for (i = 0; i < l->n; i++) {
		const struct evc__record *r = &l->rec[i];

		if (r->what == TRACE_BEGIN)
			began = r->ns;
		else if (r->what == TRACE_ALIVE)
			seen_alive = r->ns;
		else if (r->what == TRACE_END)
			end = r->ns;
		else if (r->what == TRACE_REAPED)
			l->reaped = r->ns;
		if (r->what == TRACE_ALIVE || r->what == TRACE_END ||
		    r->what == TRACE_REAPED) {
			l->begin = r->arg != 0 ? r->arg : l->begin;
			l->last = r->more[0] != '\0' ? r->more : l->last;
		}
		if (r->what == TRACE_END ||
		    (r->what == TRACE_ALIVE && is_thread(l->kind)))
			l->tid = r->tid;
		called += r->what == TRACE_CALL;
		returned += r->what == TRACE_RETURN;
		/* A reactor on another's loop has no loop of its own. */
		if (l->kind == TRACE_LOOP)
			l->loop |= r->what == TRACE_ALIVE ||
				   r->what == TRACE_TELL || r->arg != 0;
		if (r->name[0] != '\0' && r->what != TRACE_EXTEND)
			l->name = r->name;
	}
	if (began != 0)
		l->begin = began;
	if (l->begin == 0)
		l->begin = l->kind == TRACE_JOINER || l->kind == TRACE_WAITER ?
				   l->rec[0].ns :
				   t->since;
	l->end = end != 0 ? end : l->reaped;
	l->alive = l->end == 0;
	/* The ring has lost the end: the member is not there any more. */
	if (l->alive && seen_alive == 0 && l->kind < TRACE_LOOP) {
		l->alive = began > t->now;
		l->end = l->rec[l->n - 1].ns;
	}
	if (l->alive || l->kind >= TRACE_LOOP)
		l->end = t->now;
	/* A hook's life is its calls. */
	l->there = l->kind == TRACE_LOOP && seen_alive != 0 && end == 0;
	l->alive = l->alive && l->kind < TRACE_LOOP &&
		   (l->kind != EVC_HOOK || called > returned);
}

static void
to_done(enum evc__part what, uint64_t from, uint64_t to, void *arg)
{
	(void)from;
	if (what == PART_AFTER || what == PART_LATE)
		*(uint64_t *)arg = to;
}

/* The latest end first; records of no member last. */
static int
by_end(const void *x, const void *y)
{
	const struct evc__lane *a = x, *b = y;
	int o = order_of(a->kind >= TRACE_JOINER, b->kind >= TRACE_JOINER);

	if (o == 0)
		o = order_of(b->alive, a->alive);
	if (o == 0)
		o = order_of(b->done, a->done);
	if (o == 0)
		o = order_of(a->kind, b->kind);
	return o != 0 ? o : order_of(a->id, b->id);
}

static void
make_lane(struct evc__timeline *t, struct evc__group *g, size_t first)
{
	struct evc__lane *l = &t->lane[t->n_lanes++];
	size_t i = first, end = g->first + g->n;

	while (i < end && by_lane(&t->rec[i], &t->rec[first]) == 0)
		i++;
	l->group = g;
	l->rec = &t->rec[first];
	l->n = i - first;
	l->kind = kind_of(l->rec);
	l->id = id_of(l->rec);
	l->name = l->last = "";
	g->n_lanes++;
	read_life(t, l);
	l->done = l->end;
	if (l->kind == TRACE_LOOP || l->kind == EVC_HOOK) {
		l->done = l->begin;
		evc__lane_parts(t, l, to_done, &l->done);
	}
	l->alive |= l->there && l->done == t->now;
}

static bool
make_lanes(struct evc__timeline *t)
{
	size_t i, n = 0;
	struct evc__group *g;

	for (i = 0; i < t->n; i++)
		n += i == 0 || by_lane(&t->rec[i], &t->rec[i - 1]) != 0;
	t->lane = sync_alloc(n, sizeof *t->lane);
	if (t->lane == NULL)
		return false;
	for (g = t->group; g < t->group + t->n_groups; g++) {
		size_t end = g->first + g->n;

		g->first_lane = t->n_lanes;
		i = g->first + g->n_own;
		while (i < end) {
			make_lane(t, g, i);
			i += t->lane[t->n_lanes - 1].n;
		}
		qsort(&t->lane[g->first_lane], g->n_lanes, sizeof *t->lane,
		      by_end);
	}
	return true;
}

const char *
evc__lane_kind(unsigned kind)
{
	static const char *const name[] = {
		"coordinator", "thread", "thread", "looper", "task",
		"runner",      "hold",	 "hook",   "scope",
	};

	return kind == TRACE_LOOP   ? "loop" :
	       kind == TRACE_JOINER ? "join" :
	       kind == TRACE_WAITER ? "waiting thread" :
	       kind < sizeof name / sizeof name[0] ? name[kind] :
						     "?";
}

const char *
evc__step_name(uint64_t step)
{
	static const char *const name[N_STEPS] = {
		[STEP_TOLD] = "told",           [STEP_HOOKS] = "hooks",
		[STEP_KICKS] = "kicks",         [STEP_ENDING] = "ending",
		[STEP_ABANDONED] = "abandoned",
	};

	return step < N_STEPS ? name[step] : "?";
}

/* ---- all of it ---- */

evc_status
evc__timeline_make(const evc_coord *c, struct evc__timeline *t)
{
	memset(t, 0, sizeof *t);
	if (evc__trace_last(c) == NULL)
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_trace_write: nothing was recorded");
	if (gather_records(c, t) && make_groups(t) && evc__timeline_stops(t) &&
	    make_lanes(t))
		return 0;
	return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
			   "evc_trace_write: no memory");
}

void
evc__timeline_free(struct evc__timeline *t)
{
	sync_free(t->rec);
	sync_free(t->group);
	sync_free(t->lane);
	sync_free(t->stop);
}
