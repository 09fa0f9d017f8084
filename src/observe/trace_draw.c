/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lanes of the picture.
 *
 * A lane says by data- attributes what it shows, in nanoseconds of the
 * monotonic clock, so that a program can read the picture as well.
 */
#include "base/text.h"
#include "observe/trace_picture.h"

struct lane {
	struct evc__picture *p;
	const struct evc__lane *l;
	int y;    /* of its bar */
	int end;  /* how far its bars reach */
	int told; /* where they begin to say "stop"; 0: nowhere */
	bool late, will_be_late;
};

/* ---- bars ---- */

static void
bar(struct lane *d, const char *what, uint64_t from, uint64_t to, int inset)
{
	struct out *o = d->p->o;
	bool on = d->p->unfinished && to == d->p->t->now &&
		  (d->l->alive || d->l->kind == TRACE_JOINER);
	int x = evc__picture_x(d->p, from);
	int end = evc__picture_x(d->p, on ? d->p->to : to);

	if (to < d->p->from || from > d->p->to)
		return;
	/* A moment is to be seen as well. */
	if (end < x + PX)
		end = x + PX;
	evc__out_fmt(o, "<rect class=\"%s\" data-from=\"%llu\" data-to=\"%llu\"",
		     what, (unsigned long long)from, (unsigned long long)to);
	evc__out_add(o, " x=\"");
	evc__picture_px(o, x);
	evc__out_fmt(o, "\" y=\"%d\" width=\"", d->y + inset);
	evc__picture_px(o, end - x);
	evc__out_fmt(o, "\" height=\"%d\"/>", BAR - 2 * inset);
	d->end = end > d->end ? end : d->end;
}

static void
add_part(enum evc__part what, uint64_t from, uint64_t to, void *arg)
{
	static const char *const name[] = {
		[PART_RUNS] = "runs",
		[PART_AFTER] = "after",
		[PART_LATE] = "late",
		[PART_ENDED] = "ended",
	};
	struct lane *d = arg;

	if (d->l->kind == TRACE_JOINER)
		bar(d, "join", from, to, 3);
	else if (what == PART_AFTER && d->will_be_late)
		bar(d, "after too-long", from, to, 0);
	else
		bar(d, name[what], from, to, what == PART_ENDED ? 4 : 0);
	if (d->told == 0 && (what == PART_AFTER || what == PART_LATE))
		d->told = evc__picture_x(d->p, from);
	d->late |= what == PART_LATE;
}

static void
look_ahead(enum evc__part what, uint64_t from, uint64_t to, void *arg)
{
	(void)from;
	(void)to;
	*(bool *)arg |= what == PART_LATE;
}

/* What its functions took, and what was done to it; what would stand in the
   same place is left out. */
static void
add_events(struct lane *d)
{
	const struct evc__lane *l = d->l;
	const struct evc__record *r, *called = NULL;
	int x, last_call = 0, last_kick = 0;
	size_t i;

	for (i = 0; i < l->n; i++) {
		r = &l->rec[i];
		x = evc__picture_x(d->p, r->ns);
		if (r->what == TRACE_CALL || r->what == TRACE_TELL)
			called = r;
		if ((r->what == TRACE_RETURN || r->what == TRACE_TOLD) &&
		    called != NULL) {
			if (x > last_call + PX)
				bar(d, "call", called->ns, r->ns, 4);
			last_call = x > last_call + PX ? x : last_call;
			called = NULL;
		}
		if ((r->what != TRACE_KICK && r->what != TRACE_UNBLOCK) ||
		    r->ns < d->p->from || r->ns > d->p->to ||
		    x < last_kick + 4 * PX)
			continue;
		last_kick = x;
		evc__out_fmt(d->p->o, "<path class=\"%s\" data-ns=\"%llu\" "
			     "d=\"M",
			     r->what == TRACE_KICK ? "kick" : "unblock",
			     (unsigned long long)r->ns);
		evc__picture_px(d->p->o, x);
		evc__out_fmt(d->p->o, " %dv%d\"/>", d->y + 2, BAR - 4);
	}
	if (called != NULL)
		bar(d, "call", called->ns, d->p->t->now, 4);
}

/* ---- words ---- */

/* Is there room in its bar for where it said last that it was? */
static bool
fits(const struct lane *d)
{
	return d->told > 0 && d->l->last[0] != '\0' &&
	       d->end - d->told > PX * (16 + 7 * (int)strlen(d->l->last));
}

static void
say_inside(struct lane *d)
{
	struct out *o = d->p->o;

	if (!fits(d))
		return;
	evc__out_add(o, "<text class=\"inside\" x=\"");
	evc__picture_px(o, d->told + 6 * PX);
	evc__out_fmt(o, "\" y=\"%d\">", d->y + 10);
	evc__out_xml(o, d->l->last);
	evc__out_add(o, "</text>");
}

/* When its end came, and why it may have been so late. */
static void
say_end(struct lane *d, char *buf, size_t room)
{
	const struct evc__lane *l = d->l;
	struct text t = evc__text_in(buf, room);
	char time[32];
	size_t i;

	if (l->kind == TRACE_JOINER) {
		const struct evc__record *r = &l->rec[l->n - 1];

		evc__text_add(&t, r->what == TRACE_VERDICT ?
					  evc_status_name(r->kind) :
					  "waits still");
		return;
	}
	evc__picture_time(d->p, l->done, time, sizeof time);
	if (l->alive)
		evc__text_add(&t, "still running");
	else if (l->done >= d->p->zero)
		evc__text_add(&t, time);
	if (l->last[0] != '\0' && l->done >= d->p->zero && !fits(d)) {
		evc__text_add(&t, ", ");
		evc__text_add(&t, l->last);
	}
	for (i = 0; i < l->n; i++)
		if (l->rec[i].what == TRACE_VETO) {
			evc__text_add(&t, ", veto: ");
			evc__text_add(&t, l->rec[i].name);
		}
}

static void
add_title(struct lane *d)
{
	struct evc__picture *p = d->p;
	const struct evc__lane *l = d->l;
	char from[32], to[32], text[96];
	struct text t = evc__text_in(text, sizeof text);

	evc__picture_time(p, l->begin, from, sizeof from);
	evc__picture_time(p, l->done, to, sizeof to);
	evc__out_add(p->o, "<title>");
	evc__out_xml(p->o, l->name);
	evc__text_fmt(&t, ": %s", evc__lane_kind(l->kind));
	if (l->kind < TRACE_LOOP)
		evc__text_fmt(&t, " %llu", (unsigned long long)l->id);
	if (l->tid != 0)
		evc__text_fmt(&t, ", tid %d", l->tid);
	evc__text_fmt(&t, ", %s to %s", from, l->alive ? "now" : to);
	evc__out_add(p->o, text);
	if (l->last[0] != '\0') {
		evc__out_add(p->o, ", last said: ");
		evc__out_xml(p->o, l->last);
	}
	evc__out_add(p->o, "</title>");
}

static void
begin_lane(struct lane *d)
{
	struct out *o = d->p->o;
	const struct evc__lane *l = d->l;

	evc__out_add(o, "<g class=\"lane\" data-name=\"");
	evc__out_xml(o, l->name);
	evc__out_add(o, "\" data-scope=\"");
	evc__out_xml(o, l->group->name);
	evc__out_fmt(o, "\" data-kind=\"%s\" data-id=\"%llu\"",
		     evc__lane_kind(l->kind), (unsigned long long)l->id);
	evc__out_fmt(o, " data-begin=\"%llu\"", (unsigned long long)l->begin);
	if (l->alive)
		evc__out_add(o, " data-alive=\"1\"");
	else if (l->kind < TRACE_LOOP)
		evc__out_fmt(o, " data-end=\"%llu\"",
			     (unsigned long long)l->end);
	if (l->kind == TRACE_LOOP || l->kind == EVC_HOOK)
		evc__out_fmt(o, " data-done=\"%llu\"",
			     (unsigned long long)l->done);
	evc__out_add(o, ">");
	add_title(d);
	evc__out_fmt(o, "<text class=\"name%s\" x=\"30\" y=\"%d\">",
		     d->will_be_late ? " was-late" : "", d->y + 10);
	evc__out_xml(o, l->name);
	evc__out_fmt(o, "<tspan class=\"kind\" dx=\"6\">%s</tspan></text>",
		     evc__lane_kind(l->kind));
}

/* At most n characters, of which the last one says that there were more. */
static void
shorten(char *s, int n)
{
	char *cut = s;

	for (; *s != '\0'; s++) {
		if (((unsigned char)*s & 0xc0) == 0x80)
			continue;
		if (n-- == 0) {
			memcpy(cut, "\xe2\x80\xa6", 4);
			return;
		}
		if (n >= 0)
			cut = s;
	}
}

static void
draw_lane(struct evc__picture *p, const struct evc__lane *l)
{
	struct lane d = { .p = p, .l = l, .y = p->y + (ROW - BAR) / 2 };
	char text[96 + 4];

	evc__lane_parts(p->t, l, look_ahead, &d.will_be_late);
	begin_lane(&d);
	if (l->kind == TRACE_LOOP)
		evc__out_fmt(p->o, "<path class=\"quiet\" d=\"M%d %dh%d\"/>",
			     PLOT_X, d.y + BAR / 2, PLOT_W);
	evc__lane_parts(p->t, l, add_part, &d);
	add_events(&d);
	say_inside(&d);
	say_end(&d, text, sizeof text - 4);
	shorten(text, (WIDTH - 14 - d.end / PX) / 7);
	if (text[0] != '\0' && d.end > 0) {
		evc__out_fmt(p->o, "<text class=\"end%s\" x=\"",
			     d.late ? " was-late" : "");
		evc__picture_px(p->o, d.end + 5 * PX);
		evc__out_fmt(p->o, "\" y=\"%d\">", d.y + 10);
		evc__out_xml(p->o, text);
		evc__out_add(p->o, "</text>");
	}
	evc__out_add(p->o, "</g>\n");
	p->y += ROW;
}

/* ---- groups ---- */

static void
heading(struct evc__picture *p, const struct evc__group *g)
{
	char path[160], time[32];
	const struct evc__stop *s = NULL;

	evc__group_path(g, path, sizeof path);
	evc__out_fmt(p->o, "<rect class=\"band\" x=\"12\" y=\"%d\" "
		     "width=\"%d\" height=\"%d\"/>",
		     p->y + 3, WIDTH - 24, HEADING - 6);
	evc__out_fmt(p->o, "<text class=\"group\" x=\"20\" y=\"%d\">",
		     p->y + 17);
	evc__out_xml(p->o, path);
	evc__out_add(p->o, "</text>");
	if (g != p->of && g->n_stops > 0)
		s = &p->t->stop[g->first_stop + g->n_stops - 1];
	if (s != NULL && s->from >= p->from && s->from <= p->to) {
		evc__picture_time(p, s->from, time, sizeof time);
		evc__out_add(p->o, "<path class=\"told\" d=\"M");
		evc__picture_px(p->o, evc__picture_x(p, s->from));
		evc__out_fmt(p->o, " %dv%d\"/>", p->y + 5, HEADING - 10);
		evc__out_add(p->o, "<text class=\"note\" x=\"");
		evc__picture_px(p->o, evc__picture_x(p, s->from) + 5 * PX);
		evc__out_fmt(p->o, "\" y=\"%d\">told %s</text>", p->y + 17,
			     time);
	}
	evc__out_add(p->o, "\n");
	p->y += HEADING;
}

/* g, and then what is below it. */
static void
draw_group(struct evc__picture *p, const struct evc__group *g)
{
	const struct evc__group *below;
	unsigned i;

	if (!evc__picture_has(p, g))
		return;
	heading(p, g);
	for (i = 0; i < p->n_lanes; i++)
		if (p->lane[i]->group == g)
			draw_lane(p, p->lane[i]);
	for (below = g->below; below != NULL; below = below->beside)
		draw_group(p, below);
}

void
evc__groups_draw(struct evc__picture *p)
{
	draw_group(p, p->t->group);
}
