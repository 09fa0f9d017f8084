/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of the picture: which lanes, which time, how high.
 *
 * It is about one stop: a fifth of the plot shows what came before, the rest
 * goes on until the last thing that had to do with it.
 */
#include "base/text.h"
#include "observe/trace_picture.h"

#define LEGEND_H 74

int
evc__picture_x(const struct evc__picture *p, uint64_t ns)
{
	double part;

	ns = ns < p->from ? p->from : ns > p->to ? p->to : ns;
	part = (double)(ns - p->from) / (double)(p->to - p->from);
	return PLOT_X * PX + (int)(part * PLOT_W * PX + 0.5);
}

void
evc__picture_px(struct out *o, int tenths)
{
	evc__out_fmt(o, "%d.%d", tenths / PX, tenths % PX);
}

void
evc__picture_time(const struct evc__picture *p, uint64_t ns, char *buf,
		  size_t room)
{
	static const struct {
		uint64_t ns;
		const char *name;
		unsigned digits; /* behind the point */
	} unit[] = { { 1000000000u, "s", 3 },
		     { 1000000u, "ms", 1 },
		     { 1000u, "\xc2\xb5s", 1 },
		     { 1u, "ns", 0 } };
	struct text t = evc__text_in(buf, room);
	bool before = ns < p->zero;
	uint64_t d = before ? p->zero - ns : ns - p->zero, part;
	unsigned i = 0;

	while (i < 3 && d < unit[i].ns)
		i++;
	evc__text_add(&t, before ? "\xe2\x88\x92" : "+");
	evc__text_fmt(&t, "%llu", (unsigned long long)(d / unit[i].ns));
	part = d % unit[i].ns * (unit[i].digits == 3 ? 1000 : 10) / unit[i].ns;
	if (unit[i].digits > 0)
		evc__text_fmt(&t, ".%0*u", (int)unit[i].digits, (unsigned)part);
	evc__text_add(&t, " ");
	evc__text_add(&t, unit[i].name);
}

/* ---- the time ---- */

static void
further(const struct evc__picture *p, uint64_t *end, uint64_t ns)
{
	if (ns > *end && ns <= p->stop->to)
		*end = ns;
}

static bool
is_member(const struct evc__lane *l)
{
	return l->kind < TRACE_LOOP && l->kind != EVC_HOOK;
}

/* The last thing that had to do with the stop. */
static uint64_t
last_of_stop(struct evc__picture *p)
{
	const struct evc__timeline *t = p->t;
	uint64_t end = p->stop->from;
	size_t i, k;

	for (i = 0; i < t->n_lanes; i++) {
		const struct evc__lane *l = &t->lane[i];

		if (l->begin > p->stop->to || l->kind == TRACE_WAITER)
			continue;
		if (l->alive && is_member(l)) {
			p->unfinished = p->stop->to == t->now;
			return p->stop->to;
		}
		further(p, &end, l->reaped);
		if (l->kind != TRACE_JOINER)
			further(p, &end, l->done);
		for (k = 0; l->kind == TRACE_JOINER && k < l->n; k++)
			further(p, &end, l->rec[k].ns);
	}
	for (i = 0; i < t->n; i++)
		if (t->rec[i].what == TRACE_RUNG ||
		    t->rec[i].what == TRACE_PHASE)
			further(p, &end, t->rec[i].ns);
	return end;
}

static void
plan_time(struct evc__picture *p)
{
	const struct evc__timeline *t = p->t;
	uint64_t end, span, before;

	p->stop = evc__stop_shown(t, &p->of);
	if (p->stop == NULL) {
		p->zero = p->from = t->since;
		p->to = t->now > p->from ? t->now : p->from + 1;
		return;
	}
	end = last_of_stop(p);
	span = end > p->stop->from ? end - p->stop->from : 0;
	span = span > 1000 ? span : 1000;
	p->zero = p->stop->from;
	before = p->zero > t->since ? p->zero - t->since : 0;
	before = before < span / 5 ? before : span / 5;
	before = before > span / 20 ? before : span / 20;
	p->from = p->zero > before ? p->zero - before : 0;
	/* Who runs on is seen to run out of the picture. */
	p->to = p->zero + span + span / (p->unfinished ? 9 : 40);
}

/* ---- the lanes ---- */

/* Does a come before b, were there no groups? */
static bool
more_late(const struct evc__lane *a, const struct evc__lane *b)
{
	if ((a->kind >= TRACE_JOINER) != (b->kind >= TRACE_JOINER))
		return a->kind < TRACE_JOINER;
	if (a->alive != b->alive)
		return a->alive;
	return a->done > b->done;
}

static bool
overlaps(const struct evc__picture *p, const struct evc__lane *l)
{
	uint64_t end = l->reaped > l->end ? l->reaped : l->end;

	if (l->kind == TRACE_JOINER)
		end = l->rec[l->n - 1].ns;
	else if (l->kind == TRACE_LOOP)
		end = p->to;
	return l->begin <= p->to && end >= p->from;
}

/* The latest ones are kept. */
static void
plan_lane(struct evc__picture *p, const struct evc__lane *l)
{
	unsigned i = p->n_lanes;

	if (i == LANES_MOST) {
		p->n_hidden++;
		if (!more_late(l, p->lane[i - 1]))
			return;
		i--;
	} else
		p->n_lanes++;
	for (; i > 0 && more_late(l, p->lane[i - 1]); i--)
		p->lane[i] = p->lane[i - 1];
	p->lane[i] = l;
}

bool
evc__picture_has(const struct evc__picture *p, const struct evc__group *g)
{
	const struct evc__group *up;
	unsigned i;

	for (i = 0; i < p->n_lanes; i++)
		for (up = p->lane[i]->group; up != NULL; up = up->parent)
			if (up == g)
				return true;
	return false;
}

void
evc__picture_plan(struct evc__picture *p)
{
	const struct evc__timeline *t = p->t;
	int groups = 0;
	size_t i;

	plan_time(p);
	for (i = 0; i < t->n_lanes; i++) {
		const struct evc__lane *l = &t->lane[i];

		/* Who only waits for the stop is not waited for. */
		if (l->kind == TRACE_WAITER ||
		    (l->kind == TRACE_LOOP && !l->loop))
			continue;
		if (overlaps(p, l))
			plan_lane(p, l);
		else if (is_member(l))
			p->n_before++;
	}
	for (i = 0; i < t->n_groups; i++)
		groups += evc__picture_has(p, &t->group[i]);
	evc__marks_plan(p);
	p->top = MARKS_Y + p->mark_rows * MARK_ROW + 4;
	p->bottom = p->top + groups * HEADING + (int)p->n_lanes * ROW + 6;
	p->height = p->bottom + LEGEND_H;
	p->y = p->top;
}
