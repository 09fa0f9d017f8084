/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of the picture: its time, its lanes, the lines through all lanes,
 * and its height.
 * Called by: evc-trace.c; trace_draw.c and trace_lane.c ask for places.
 * Locks: none; one thread.
 */
#include "trace_tool.h"

#include <math.h>
#include <stdlib.h>

/* About the width of a character in a label. */
#define CHAR_W 6

double
x_of(const struct picture *p, long long ns)
{
	double part;

	ns = ns < p->from ? p->from : ns > p->to ? p->to : ns;
	part = (double)(ns - p->from) / (double)(p->to - p->from);
	/* Places are compared as printed: in tenths of a pixel. */
	return PLOT_X + round(part * PLOT_W * 10) / 10;
}

/* "kicks" of "step: kicks"; NULL: the event is no step. */
static const char *
step_of(const struct event *e)
{
	static const char before[] = "step: ";
	const size_t n = sizeof before - 1;

	return strcmp(e->cat, "stop") == 0 && strncmp(e->name, before, n) == 0 ?
		       e->name + n :
		       NULL;
}

static bool
is_phase(const struct event *e)
{
	return strcmp(e->cat, "stop") == 0 &&
	       (strncmp(e->name, "phase ", 6) == 0 ||
		strcmp(e->name, "all phases") == 0);
}

/* ---- the time ---- */

/* The last stop of the root, or else the last stop of any coordinator. */
static void
choose_stop(struct picture *p)
{
	const struct lane *l;
	const struct event *e;

	p->of = p->t->lane;
	for (l = p->of; l < p->t->end && p->t->lane->stop == NULL; l++)
		if (l->stop != NULL &&
		    (p->of->stop == NULL || l->stop->ns > p->of->stop->ns))
			p->of = l;
	p->stop = p->of->stop;
	if (p->stop == NULL)
		return;
	p->stop_to = number_of(p->stop->args, "cleared_ns");
	if (p->stop_to < p->stop->ns)
		p->stop_to = p->t->now;
	for (l = p->of; l < p->t->end; l++)
		for (e = l->ev; l->of == p->of && e < l->ev + l->n; e++)
			if (is(e, "event", "verdict") &&
			    e->ns >= p->stop->ns && e->ns <= p->stop_to &&
			    (p->verdict == NULL || e->ns > p->verdict->ns))
				p->verdict = e;
}

/* end, or ns if ns is later and in the stop. */
static long long
later(const struct picture *p, long long end, long long ns)
{
	return ns > end && ns <= p->stop_to ? ns : end;
}

/* The last event that had to do with the stop. */
static long long
last_of_stop(struct picture *p)
{
	long long end = p->stop->ns;
	const struct event *e;
	const struct lane *l;

	for (l = p->t->lane; l < p->t->end; l++) {
		if (l->begin > p->stop_to)
			continue;
		if (l->alive && !l->shared) {
			p->unfinished = p->stop_to == p->t->now;
			return p->stop_to;
		}
		if (l->kind == MEMBER || l->kind == HOOK || l->kind == LOOP)
			end = later(p, end, l->done);
		/* A hook that was not removed is gone only now. */
		if (l->kind == MEMBER ||
		    (l->kind == HOOK && l->gone < p->t->now))
			end = later(p, end, l->gone);
		for (e = l->ev; e < l->ev + l->n; e++)
			if (l->kind == JOIN || is_phase(e) || step_of(e) != NULL)
				end = later(p, end, e->ns);
	}
	return end;
}

static void
plan_time(struct picture *p)
{
	const struct timeline *t = p->t;
	long long span, before;

	choose_stop(p);
	if (p->stop == NULL) {
		p->zero = p->from = t->zero;
		p->to = t->now > p->from ? t->now : p->from + 1;
		return;
	}
	p->zero = p->stop->ns;
	span = last_of_stop(p) - p->zero;
	span = span > 1000 ? span : 1000;
	before = p->zero - t->zero;
	before = before < span / 5 ? before : span / 5;
	before = before > span / 20 ? before : span / 20;
	p->from = p->zero > before ? p->zero - before : 0;
	/* A member that runs on runs out of the picture. */
	p->to = p->zero + span + span / (p->unfinished ? 9 : 40);
}

/* ---- the lanes ---- */

/* The latest first, joins last. */
static int
by_end(const void *x, const void *y)
{
	const struct lane *a = *(struct lane *const *)x;
	const struct lane *b = *(struct lane *const *)y;

	if ((a->kind == JOIN) != (b->kind == JOIN))
		return a->kind == JOIN ? 1 : -1;
	if (a->alive != b->alive)
		return a->alive ? -1 : 1;
	if (a->done != b->done)
		return a->done > b->done ? -1 : 1;
	return a < b ? -1 : 1;
}

/* Choose the lanes; the result is the height of all of them. */
static int
plan_lanes(struct picture *p)
{
	struct timeline *t = p->t;
	struct lane **all, *l, *up;
	unsigned n = 0, i;
	int height = 0;

	all = room_for((size_t)(t->end - t->lane), sizeof(*all));
	for (l = t->lane; l < t->end; l++) {
		if (l->kind == COORD || l->kind == OTHER || l->shared)
			continue;
		if (l->begin <= p->to && (l->kind == LOOP || l->gone >= p->from))
			all[n++] = l;
		else if (l->kind == MEMBER)
			p->n_before++;
	}
	qsort(all, n, sizeof(*all), by_end);
	p->n_hidden = n > LANES_MOST ? n - LANES_MOST : 0;
	for (i = 0; i < n - p->n_hidden; i++) {
		p->n_alive += all[i]->alive;
		for (up = all[i]; up != NULL && !up->shown; up = up->of) {
			up->shown = true;
			height += up->kind == COORD ? HEADING : ROW;
		}
	}
	free(all);
	return height;
}

/* ---- the lines through all lanes ---- */

/* Add a mark; marks stand in the order of time. */
static void
add_mark(struct picture *p, const struct event *e, const char *class,
	 const char *label)
{
	struct mark *m = p->mark + p->n_marks;

	if (p->n_marks == MARKS_MOST || e->ns < p->from || e->ns > p->to)
		return;
	p->n_marks++;
	for (; m > p->mark && m[-1].ns > e->ns; m--)
		*m = m[-1];
	*m = (struct mark){ .ns = e->ns, .class = class, .row = -1 };
	append(m->label, sizeof m->label, "%s", label);
}

/* Events of the picture's coordinator get marks; of other coordinators only
   phases and steps. */
static void
mark_event(struct picture *p, const struct lane *l, const struct event *e)
{
	long long late = number_of(e->args, "stragglers");
	char label[64];

	/* The first step, "told", is the stop itself. */
	if (step_of(e) != NULL && strcmp(step_of(e), "told") != 0)
		add_mark(p, e, "step", step_of(e));
	else if (is_phase(e))
		add_mark(p, e, "phase", e->name);
	else if (l == p->of && is(e, "request", "stop"))
		add_mark(p, e, "stop", "stop");
	else if (l == p->of && is(e, "stop", "drain"))
		add_mark(p, e, "drain", "drain");
	else if (l == p->of && is(e, "stop", "clear"))
		add_mark(p, e, "clear", "cleared");
	else if (l->of == p->of && is(e, "event", "verdict") && late == 0)
		add_mark(p, e, "verdict", "join: all ended");
	else if (l->of == p->of && is(e, "event", "verdict")) {
		snprintf(label, sizeof label, "join: %lld late", late);
		add_mark(p, e, "verdict late", label);
	}
}

/* Each label goes into the first row with room.  A second label of the same
   text in nearly the same place is left out. */
static void
place_labels(struct picture *p)
{
	double end[MARK_ROWS] = { 0 }, x;
	const struct mark *last = NULL;
	struct mark *m;
	int row;

	for (m = p->mark; m < p->mark + p->n_marks; m++) {
		x = x_of(p, m->ns);
		if (last != NULL && strcmp(last->label, m->label) == 0 &&
		    x < x_of(p, last->ns) + 12)
			continue;
		for (row = 0; row < MARK_ROWS && end[row] > x; row++)
			;
		if (row == MARK_ROWS)
			continue;
		end[row] = x + 12 + CHAR_W * (double)strlen(m->label);
		m->row = row;
		last = m;
		if (row >= p->mark_rows)
			p->mark_rows = row + 1;
	}
}

const char *
told_after(const struct picture *p, const struct lane *scope)
{
	const struct lane *l, *last = NULL;
	const struct event *stop = scope->stop;

	if (scope == p->of || p->stop == NULL || stop == NULL ||
	    scope->of == NULL || scope->of->stop == NULL ||
	    stop->ns <= scope->of->stop->ns || stop->ns > p->to)
		return "";
	for (l = p->t->lane; l < p->t->end; l++)
		if ((l->kind == MEMBER || l->kind == LOOP) && l->of != scope &&
		    l->of->of == scope->of && l->done >= p->zero &&
		    l->done <= stop->ns &&
		    (last == NULL || l->done > last->done))
			last = l;
	return last != NULL && x_of(p, stop->ns) > x_of(p, p->zero) + 12 ?
		       last->of->name :
		       "";
}

void
picture_plan(struct picture *p, struct timeline *t)
{
	const struct event *e;
	struct lane *l;
	int height;

	p->t = t;
	plan_time(p);
	height = plan_lanes(p);
	for (l = t->lane; l < t->end; l++)
		for (e = l->ev; e < l->ev + l->n; e++)
			mark_event(p, l, e);
	place_labels(p);
	p->top = MARKS_Y + p->mark_rows * MARK_ROW + 4;
	p->bottom = p->top + height + 6;
}
