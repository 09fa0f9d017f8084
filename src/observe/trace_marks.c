/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes through all lanes of the picture: the stop, phases, rungs,
 * verdicts; and the axis.
 */
#include "base/text.h"
#include "observe/trace_picture.h"

/* About what a character of a label takes. */
#define CHAR_W 6

/* ---- which, and where their labels stand ---- */

static struct evc__mark_line *
add(struct evc__picture *p, uint64_t ns, const char *what)
{
	struct evc__mark_line *m;

	if (p->n_marks == MARKS_MOST || ns < p->from || ns > p->to)
		return NULL;
	m = &p->mark[p->n_marks++];
	m->ns = ns;
	m->what = what;
	m->row = -1;
	return m;
}

static void
add_labelled(struct evc__picture *p, uint64_t ns, const char *what,
	     const char *label, const char *more)
{
	struct evc__mark_line *m = add(p, ns, what);
	struct text t;

	if (m == NULL)
		return;
	t = evc__text_in(m->label, sizeof m->label);
	evc__text_add(&t, label);
	evc__text_add(&t, more);
}

/* What concerns no member, of the coordinator that the picture is about, and
   phases and rungs of all. */
static void
add_own(struct evc__picture *p, const struct evc__group *g,
	const struct evc__record *r)
{
	char n[24];
	struct text t = evc__text_in(n, sizeof n);

	switch (r->what) {
	case TRACE_REQUEST:
		if (g == p->of && TRACE_ASKED_WON(r->arg))
			add_labelled(p, r->ns, "stop", "stop", "");
		break;
	case TRACE_DRAIN:
		if (g == p->of)
			add_labelled(p, r->ns, "drain", "drain", "");
		break;
	case TRACE_CLEAR:
		if (g == p->of)
			add_labelled(p, r->ns, "clear", "cleared", "");
		break;
	case TRACE_PHASE:
		evc__text_int(&t, (int64_t)r->arg);
		if (r->arg >= INT_MAX)
			add_labelled(p, r->ns, "phase", "all phases", "");
		else
			add_labelled(p, r->ns, "phase", "phase ", n);
		break;
	case TRACE_RUNG:
		/* Told: that is the stop. */
		if (r->arg != 0)
			add_labelled(p, r->ns, "rung",
				     evc__rung_name(r->arg), "");
		break;
	default:
		break;
	}
}

static void
add_verdict(struct evc__picture *p, const struct evc__record *r)
{
	struct evc__mark_line *m;
	struct text t;

	m = add(p, r->ns, r->arg > 0 ? "verdict late" : "verdict");
	if (m == NULL)
		return;
	t = evc__text_in(m->label, sizeof m->label);
	if (r->arg > 0)
		evc__text_fmt(&t, "join: %llu late",
			      (unsigned long long)r->arg);
	else
		evc__text_add(&t, "join: all ended");
}

static void
sort(struct evc__picture *p)
{
	unsigned i, k;

	for (i = 1; i < p->n_marks; i++) {
		struct evc__mark_line m = p->mark[i];

		for (k = i; k > 0 && p->mark[k - 1].ns > m.ns; k--)
			p->mark[k] = p->mark[k - 1];
		p->mark[k] = m;
	}
}

/* Each label in the first row where it has room; one that stands there already,
   in nearly the same place, is not said again. */
static void
place(struct evc__picture *p)
{
	int end[MARK_ROWS] = { 0 }, x, row;
	const struct evc__mark_line *last = NULL;
	unsigned i;

	for (i = 0; i < p->n_marks; i++) {
		struct evc__mark_line *m = &p->mark[i];

		x = evc__picture_x(p, m->ns) / PX;
		if (last != NULL && strcmp(last->label, m->label) == 0 &&
		    x < evc__picture_x(p, last->ns) / PX + 12)
			continue;
		for (row = 0; row < MARK_ROWS && end[row] > x; row++)
			;
		if (row == MARK_ROWS)
			continue;
		end[row] = x + 12 + CHAR_W * (int)strlen(m->label);
		m->row = row;
		last = m;
		if (row >= p->mark_rows)
			p->mark_rows = row + 1;
	}
}

void
evc__marks_plan(struct evc__picture *p)
{
	const struct evc__timeline *t = p->t;
	const struct evc__group *g;
	size_t i;

	for (g = t->group; g < t->group + t->n_groups; g++)
		for (i = g->first; i < g->first + g->n; i++) {
			if (i < g->first + g->n_own)
				add_own(p, g, &t->rec[i]);
			else if (t->rec[i].what == TRACE_VERDICT &&
				 g == p->of)
				add_verdict(p, &t->rec[i]);
		}
	sort(p);
	place(p);
}

/* ---- drawing ---- */

void
evc__marks_draw(struct evc__picture *p)
{
	char time[32];
	unsigned i;

	for (i = 0; i < p->n_marks; i++) {
		const struct evc__mark_line *m = &p->mark[i];
		int x = evc__picture_x(p, m->ns), row = m->row < 0 ? 0 : m->row;
		int y = MARKS_Y + row * MARK_ROW;

		evc__picture_time(p, m->ns, time, sizeof time);
		evc__out_fmt(p->o, "<g class=\"mark %s\" data-ns=\"%llu\">",
			     m->what, (unsigned long long)m->ns);
		evc__out_fmt(p->o, "<title>%s, %s</title>", m->label, time);
		evc__out_add(p->o, "<path d=\"M");
		evc__picture_px(p->o, x);
		evc__out_fmt(p->o, " %dV%d\"/>", y, p->bottom);
		if (m->row >= 0) {
			evc__out_add(p->o, "<text x=\"");
			evc__picture_px(p->o, x + 4 * PX);
			evc__out_fmt(p->o, "\" y=\"%d\">%s</text>", y + 9,
				     m->label);
		}
		evc__out_add(p->o, "</g>\n");
	}
}

/* 1, 2 or 5 times a power of ten, so that labels have room. */
static uint64_t
step_for(uint64_t span)
{
	static const unsigned of[] = { 2, 5, 10 };
	uint64_t least = span / 9, step = 1, ten = 1;
	unsigned i;

	while (step < least) {
		for (i = 0; i < 3 && step < least; i++)
			step = ten * of[i];
		ten *= 10;
	}
	return step;
}

static void
tick(struct evc__picture *p, int64_t at, uint64_t step)
{
	uint64_t unit = step >= 1000000000u ? 1000000000u :
			step >= 1000000u    ? 1000000u :
			step >= 1000u	    ? 1000u :
					      1u;
	const char *name = unit == 1000000000u ? "s" :
			   unit == 1000000u    ? "ms" :
			   unit == 1000u       ? "\xc2\xb5s" :
						 "ns";
	uint64_t n = (uint64_t)(at < 0 ? -at : at) / unit;
	int x = evc__picture_x(p, p->zero + (uint64_t)at);

	evc__out_add(p->o, "<path class=\"grid\" d=\"M");
	evc__picture_px(p->o, x);
	evc__out_fmt(p->o, " %dV%d\"/>", p->top, p->bottom);
	evc__out_add(p->o, "<text class=\"tick\" x=\"");
	evc__picture_px(p->o, x);
	evc__out_fmt(p->o, "\" y=\"%d\">%s%llu%s%s</text>\n", p->bottom + 15,
		     at < 0 ? "\xe2\x88\x92" :
		     at > 0 ? "+" :
			      "",
		     (unsigned long long)n, n > 0 ? " " : "",
		     n > 0 ? name : "");
}

void
evc__axis_draw(struct evc__picture *p)
{
	uint64_t step = step_for(p->to - p->from);
	int64_t first = -(int64_t)((p->zero - p->from) / step);
	int64_t at = first * (int64_t)step;

	for (; p->zero + (uint64_t)at <= p->to; at += (int64_t)step)
		tick(p, at, step);
	evc__out_fmt(p->o, "<path class=\"axis\" d=\"M%d %dH%d\"/>\n", PLOT_X,
		     p->bottom, PLOT_X + PLOT_W);
	evc__out_fmt(p->o,
		     "<text class=\"note\" x=\"%d\" y=\"%d\">%s</text>\n",
		     PLOT_X + PLOT_W + 24, p->bottom + 15,
		     p->stop != NULL ? "since the stop" : "since the start");
}
