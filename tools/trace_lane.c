/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One lane of the picture.  The data- attributes give the lane's facts in
 * nanoseconds of the monotonic clock, so a program can read the picture as
 * well.
 * Called by: trace_draw.c, for each lane.
 * Locks: none; one thread.
 */
#include "trace_tool.h"

struct bars {
	const struct picture *p;
	const struct lane *l;
	bool words;  /* nothing is drawn: the words want to know the places */
	int y;       /* the top of the bar */
	double end;  /* x at the end of the last bar */
	double told; /* the beginning of the first bar in a stop, or 0 */
	bool late;   /* a join has given up the member */
	bool taken[PLOT_W + 2]; /* pixels of the plot with a stroke */
};

/* No words between x and end, and none that touch. */
static void
take_place(struct bars *b, double x, double end)
{
	int at = (int)x - PLOT_X - 3, stop = (int)end - PLOT_X + 3;

	for (at = at < 0 ? 0 : at; at <= stop && at <= PLOT_W; at++)
		b->taken[at] = true;
}

/* The first place between x and end for a text, free of strokes; 0: there is
   none. */
static double
free_place(const struct bars *b, const char *text, double x, double end)
{
	int width = 8 + 6 * (int)strlen(text), at, n = 0;

	for (at = (int)x - PLOT_X + 1; at < (int)end - PLOT_X - 1; at++) {
		n = b->taken[at] ? 0 : n + 1;
		if (n == width)
			return PLOT_X + at - width + 5;
	}
	return 0;
}

/* ---- bars ---- */

static void
draw_bar(struct bars *b, const char *class, long long from, long long to,
	 int inset)
{
	const struct picture *p = b->p;
	bool on = p->unfinished && to == p->t->now &&
		  (b->l->alive || b->l->kind == JOIN);
	double x = x_of(p, from), end = x_of(p, on ? p->to : to);

	if (to < p->from || from > p->to)
		return;
	/* A moment is to be visible as well. */
	if (end < x + 1)
		end = x + 1;
	b->end = end > b->end ? end : b->end;
	if (b->words)
		return;
	printf("<rect class=\"%s\" data-from=\"%lld\" data-to=\"%lld\" "
	       "x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
	       class, from, to, x, b->y + inset, end - x, BAR - 2 * inset);
}

/* The states of the member; between them the member ran. */
static void
draw_states(struct bars *b)
{
	const struct lane *l = b->l;
	const struct event *e;
	long long at = l->begin;

	for (e = l->ev; e < l->ev + l->n; e++) {
		if (strcmp(e->cat, "state") != 0)
			continue;
		if (l->kind == MEMBER && e->ns > at)
			draw_bar(b, "runs", at, e->ns, 0);
		at = e->to;
		if (strcmp(e->name, "join") == 0)
			draw_bar(b, "join", e->ns, e->to, 3);
		else if (strncmp(e->name, "ended", 5) == 0)
			draw_bar(b, "ended", e->ns, e->to, 4);
		else {
			draw_bar(b,
				 strcmp(e->name, "late") == 0 ? "late"
				 : b->late                    ? "after too-long"
							      : "after",
				 e->ns, e->to, 0);
			b->told = b->told > 0 ? b->told : x_of(b->p, e->ns);
		}
	}
	if (l->kind == MEMBER && l->end > at)
		draw_bar(b, "runs", at, l->end, 0);
}

/* The calls of the member's functions, and its kicks.  A mark in the place of
   the mark before is left out. */
static void
draw_events(struct bars *b)
{
	const struct picture *p = b->p;
	const struct lane *l = b->l;
	const struct event *e;
	double x, last = 0;

	for (e = l->calls->ev; e < l->calls->ev + l->calls->n; e++) {
		x = x_of(p, e->to);
		if (x <= last + 1 &&
		    !json_is_true(json_object_get(e->args, "in_progress")))
			continue;
		draw_bar(b, "call", e->ns, e->to, 4);
		take_place(b, x_of(p, e->ns), x);
		last = x;
	}
	for (e = l->ev, last = 0; e < l->ev + l->n; e++) {
		x = x_of(p, e->ns);
		if ((!is(e, "event", "kick") && !is(e, "event", "unblock")) ||
		    e->ns < p->from || e->ns > p->to || x < last + 4)
			continue;
		if (!b->words)
			printf("<path class=\"%s\" data-ns=\"%lld\" "
			       "d=\"M%.1f %dv%d\"/>", e->name, e->ns, x,
			       b->y + 2, BAR - 4);
		take_place(b, x, x);
		last = x;
	}
}

/* ---- words ---- */

/* Where the last progress text fits into the bar, or 0. */
static double
last_text_fits(const struct bars *b)
{
	return b->told > 0 && b->l->last[0] != '\0' ?
		       free_place(b, b->l->last, b->told, b->end) :
		       0;
}

/* For what a join waits, or has waited: the members that live, or the last one
   to end. */
static void
say_awaited(const struct bars *b, char *buf, size_t size)
{
	const struct lane *l, *last = NULL;
	const char *word = ", waited for ";
	bool alive = false;

	for (l = b->p->t->lane; l < b->p->t->end; l++) {
		if (l->kind != MEMBER || !l->shown)
			continue;
		if (l->alive) {
			append(buf, size, "%s%s", word, l->name);
			word = ", ";
			alive = true;
		} else if (l->done >= b->p->zero && l->done <= b->p->to &&
			   (last == NULL || l->done > last->done))
			last = l;
	}
	if (!alive && last != NULL)
		append(buf, size, ", last to end: %s", last->name);
}

/* The last answer of a join. */
static const char *
last_answer(const struct lane *l)
{
	const struct event *e, *verdict = NULL;
	long long asked = 0;

	for (e = l->ev; e < l->ev + l->n; e++)
		if (is(e, "event", "verdict"))
			verdict = e;
		else
			asked = e->ns;
	return verdict != NULL && verdict->ns > asked ?
		       text_of(verdict->args, "code") :
		       "waits still";
}

/* The words behind the bar: when the member ended, and perhaps why so late. */
static void
say_end(const struct bars *b, char *buf, size_t size)
{
	const struct lane *l = b->l;
	const struct event *e;

	if (l->kind == JOIN) {
		append(buf, size, "%s", last_answer(l));
		if (b->p->stop != NULL)
			say_awaited(b, buf, size);
	} else if (l->alive)
		append(buf, size, "still running");
	else if (l->done >= b->p->zero)
		append(buf, size, "%s", when(b->p, l->done));
	if (l->last[0] != '\0' && l->done >= b->p->zero && last_text_fits(b) <= 0)
		append(buf, size, ", %s", l->last);
	for (e = l->ev; e < l->ev + l->n; e++)
		if (is(e, "event", "extend"))
			append(buf, size, ", extended: %s",
			       text_of(e->args, "reason"));
}

/* At most n characters; the last shows that the text was cut. */
static void
shorten_text(char *s, int n)
{
	char *cut = s;

	for (; *s != '\0'; s++) {
		if (((unsigned char)*s & 0xc0) == 0x80)
			continue;
		if (n-- == 0) {
			strcpy(cut, "\xe2\x80\xa6");
			return;
		}
		cut = s;
	}
}

/* ---- all of it ---- */

static void
begin_lane(const struct bars *b)
{
	const struct picture *p = b->p;
	const struct lane *l = b->l;
	bool is_member = l->kind == MEMBER || l->kind == HOOK;

	printf("<g class=\"lane\" data-name=\"%s\" data-scope=\"%s\"",
	       xml(l->name), xml(l->of->name));
	printf(" data-kind=\"%s\" data-id=\"%lld\" data-begin=\"%lld\"",
	       xml(l->kind_name), l->id, l->begin);
	if (l->alive)
		printf(" data-alive=\"1\"");
	else if (is_member)
		printf(" data-end=\"%lld\"", l->end);
	if (l->kind == LOOP || l->kind == HOOK)
		printf(" data-done=\"%lld\"", l->done);
	printf("><title>%s: %s", xml(l->name), xml(l->kind_name));
	if (is_member && l->id != 0)
		printf(" %lld", l->id);
	if (l->tid != 0)
		printf(", tid %lld", l->tid);
	printf(", %s to %s", when(p, l->begin),
	       l->alive ? "now" : when(p, l->done));
	if (l->last[0] != '\0')
		printf(", last said: %s", xml(l->last));
	printf("</title><text class=\"name%s\" x=\"30\" y=\"%d\">%s"
	       "<tspan class=\"kind\" dx=\"6\">%s</tspan></text>",
	       b->late ? " was-late" : "", b->y + 10, xml(l->name),
	       xml(l->kind_name));
}

static void
set_bars(struct bars *b, const struct picture *p, const struct lane *l, int y)
{
	const struct event *e;

	*b = (struct bars){ .p = p, .l = l, .y = y + (ROW - BAR) / 2 };
	for (e = l->ev; e < l->ev + l->n; e++)
		b->late |= is(e, "state", "late");
}

void
lane_draw(const struct picture *p, const struct lane *l, int y)
{
	struct bars b;

	set_bars(&b, p, l, y);
	begin_lane(&b);
	if (l->kind == LOOP)
		printf("<path class=\"quiet\" d=\"M%d %dh%d\"/>", PLOT_X,
		       b.y + BAR / 2, PLOT_W);
	draw_states(&b);
	draw_events(&b);
	printf("</g>\n");
}

/* Words in a bar, or none when there is no place for them. */
static void
say_inside(const struct bars *b, const char *text, double x, double end)
{
	x = text[0] != '\0' ? free_place(b, text, x, end) : 0;
	if (x > 0)
		printf("<text class=\"inside\" x=\"%.1f\" y=\"%d\">%s</text>",
		       x, b->y + 10, xml(text));
}

/* Has the loop turned since the last stop? */
static bool
heard_stop(const struct lane *l)
{
	const struct event *e, *stop = l->of->stop;

	for (e = l->ev; e < l->ev + l->n; e++)
		if (stop != NULL && e->ns >= stop->ns &&
		    is(e, "event", "heard the stop"))
			return true;
	return false;
}

void
lane_say(const struct picture *p, const struct lane *l, int y)
{
	const struct event *stop = l->of->stop;
	const char *after = told_after(p, l->of);
	char text[96 + 4] = "";
	struct bars b;
	int i;

	set_bars(&b, p, l, y);
	b.words = true;
	draw_states(&b);
	draw_events(&b);
	for (i = 0; i < p->n_marks; i++)
		take_place(&b, x_of(p, p->mark[i].ns), x_of(p, p->mark[i].ns));
	if (b.told > 0)
		say_inside(&b, l->kind != LOOP ? l->last :
			   heard_stop(l)       ?
				   "until its tasks and loopers have ended" :
				   "has not turned since the stop",
			   b.told, b.end);
	if (l->kind == MEMBER && after[0] != '\0' && l->begin < p->zero) {
		append(text, sizeof text - 4, "is told after %s", after);
		say_inside(&b, text, x_of(p, p->zero), x_of(p, stop->ns));
	}
	text[0] = '\0';
	say_end(&b, text, sizeof text - 4);
	shorten_text(text, (WIDTH - 14 - (int)b.end) / 7);
	if (text[0] != '\0' && b.end > 0)
		printf("<text class=\"end%s\" x=\"%.1f\" y=\"%d\">%s</text>\n",
		       b.late ? " was-late" : "", b.end + 5, b.y + 10,
		       xml(text));
}
