/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The picture, as SVG on standard output.
 * Called by: evc-trace.c.
 * Locks: none; one thread.
 */
#include "trace_tool.h"

#include <stdlib.h>
#include <time.h>

static const char style[] =
	"<style>\n"
	"text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;"
	"font-size:11px;fill:#1f2933}\n"
	".title{font-size:17px;font-weight:bold}\n"
	".sub{font-size:12.5px}\n"
	".bad,.was-late{fill:#b3001b;font-weight:bold}\n"
	".good{fill:#1b7a3d;font-weight:bold}\n"
	".note,.kind,.tick{fill:#616e7c;font-size:10px}\n"
	".tick{text-anchor:middle}\n"
	".group{font-weight:bold}\n"
	".band{fill:#eef2f6}\n"
	".name{clip-path:url(#names)}\n"
	".end{paint-order:stroke;stroke:#fff;stroke-width:3px;"
	"stroke-linejoin:round}\n"
	".note.end{stroke:#eef2f6}\n"
	".inside{font-size:10px;fill:#40260a}\n"
	".runs{fill:#8db4de}\n"
	".after{fill:#f5b335}\n"
	".too-long{fill:#ee8434}\n"
	".late{fill:#d3203c}\n"
	".ended{fill:#b8c2cc}\n"
	".join{fill:none;stroke:#52606d}\n"
	".call{fill:#14213d;fill-opacity:.55}\n"
	".quiet{stroke:#cbd2d9;stroke-dasharray:2 3}\n"
	".kick{stroke:#14213d;stroke-width:1.6}\n"
	".unblock{stroke:#5a189a;stroke-width:1.6}\n"
	".told{stroke:#7b5800;stroke-width:2}\n"
	".grid{stroke:#e4e7eb}\n"
	".axis{stroke:#52606d}\n"
	".mark path{fill:none;stroke:#7b8794;stroke-dasharray:4 3}\n"
	".mark.stop path{stroke:#111;stroke-width:2;stroke-dasharray:none}\n"
	".mark.stop text{font-weight:bold}\n"
	".mark.verdict path{stroke:#1b7a3d;stroke-width:1.5;"
	"stroke-dasharray:none}\n"
	".mark.verdict text{fill:#1b7a3d}\n"
	".mark.late{fill:none}\n"
	".mark.late path{stroke:#b3001b}\n"
	".mark.late text{fill:#b3001b}\n"
	"</style>\n";

static const struct {
	long long ns;
	const char *name;
	int digits; /* digits behind the point */
} unit[] = { { 1000000000, "s", 3 }, { 1000000, "ms", 1 },
	     { 1000, "\xc2\xb5s", 1 }, { 1, "ns", 0 } };

const char *
xml(const char *s)
{
	static char *ring[4];
	static unsigned turn;
	char **room = &ring[turn++ % 4], *to;

	free(*room);
	*room = to = room_for(strlen(s) + 1, sizeof "&#34;");
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)s[0];
		unsigned char next = (unsigned char)s[1];

		/* XML has no characters for most controls, escaped or not, nor
		   for U+0080 to U+009F, U+FFFE and U+FFFF. */
		if (c == 0x7f || (c < 0x20 && !strchr("\t\n\r", c)) ||
		    (c == 0xc2 && next < 0xa0) ||
		    (c == 0xef && next == 0xbf && (s[2] & 0xfe) == 0xbe)) {
			to = stpcpy(to, "\xef\xbf\xbd");
			s += c == 0xc2 ? 1 : c == 0xef ? 2 : 0;
		} else if (strchr("\t\n\r&<>\"'", c) != NULL)
			to += sprintf(to, "&#%u;", c);
		else
			*to++ = (char)c;
	}
	return *room;
}

const char *
when(const struct picture *p, long long ns)
{
	static char ring[4][64];
	static unsigned turn;
	char *buf = ring[turn++ % 4];
	long long d = llabs(ns - p->zero);
	const char *sign = ns < p->zero ? "\xe2\x88\x92" : "+";
	int i = 0, n;

	while (i < 3 && d < unit[i].ns)
		i++;
	n = snprintf(buf, sizeof ring[0], "%s%lld", sign, d / unit[i].ns);
	if (unit[i].digits > 0) /* cut, not rounded */
		n += snprintf(buf + n, sizeof ring[0] - (size_t)n, ".%0*lld",
			      unit[i].digits,
			      d % unit[i].ns /
				      (unit[i].digits == 3 ? 1000000 :
							     unit[i].ns / 10));
	snprintf(buf + n, sizeof ring[0] - (size_t)n, " %s", unit[i].name);
	return buf;
}

/* ---- the headline ---- */

static void
say_asked(const struct picture *p)
{
	const struct event *e = p->of->ev;
	const json_t *args;

	/* The request that made the stop. */
	while (e < p->of->ev + p->of->n - 1 &&
	       !(is(e, "request", "stop") && e->ns == p->stop->ns))
		e++;
	args = e->args;
	printf("<text class=\"sub\" x=\"20\" y=\"52\">The stop was requested "
	       "by %s (tid %lld)", xml(text_of(args, "who")),
	       number_of(args, "asked_by_tid"));
	if (text_of(args, "text")[0] != '\0')
		printf(": \xe2\x80\x9c%s\xe2\x80\x9d",
		       xml(text_of(args, "text")));
	if (number_of(args, "code") != 0)
		printf(" [%s]", xml(text_of(args, "status")));
	printf("</text>\n");
}

static void
say_outcome(const struct picture *p)
{
	const json_t *answer = p->verdict != NULL ? p->verdict->args : NULL;
	const char *code = text_of(answer, "code");
	long long late = number_of(answer, "stragglers");
	bool bad = answer != NULL ? late > 0 || strcmp(code, "OK") != 0 :
				    p->n_alive > 0;

	printf("<text class=\"sub %s\" x=\"20\" y=\"72\">",
	       bad ? "bad" : "good");
	if (answer != NULL)
		printf("The join returned %s at %s: ", xml(code),
		       when(p, p->verdict->ns));
	if (late > 0)
		printf("%lld late.", late);
	else if (answer != NULL)
		printf("all had ended.");
	else if (p->n_alive > 0)
		printf("Still running when this was written: %u.", p->n_alive);
	printf("</text>\n");
}

static void
draw_headline(const struct picture *p)
{
	printf("<text class=\"title\" x=\"20\" y=\"28\">%s</text>\n",
	       xml(p->of->name));
	if (p->stop != NULL) {
		say_asked(p);
		say_outcome(p);
	} else
		printf("<text class=\"sub\" x=\"20\" y=\"52\">%s</text>\n",
		       p->t->lost > 0 ? "The beginning was lost; nothing that "
					"is left tells of a stop." :
					"No stop was requested.");
}

/* ---- the axis ---- */

/* 1, 2 or 5 times a power of ten, so that labels have room. */
static long long
step_for(long long span)
{
	long long ten = 1, i;

	for (;; ten *= 10)
		for (i = 1; i <= 5; i += i == 1 ? 1 : 3)
			if (ten * i >= span / 9)
				return ten * i;
}

static void
draw_axis(const struct picture *p)
{
	long long step = step_for(p->to - p->from);
	long long at = -((p->zero - p->from) / step) * step;
	int i = 0;

	while (step < unit[i].ns)
		i++;
	for (; p->zero + at <= p->to; at += step) {
		double x = x_of(p, p->zero + at);

		printf("<path class=\"grid\" d=\"M%.1f %dV%d\"/>"
		       "<text class=\"tick\" x=\"%.1f\" y=\"%d\">", x, p->top,
		       p->bottom, x, p->bottom + 15);
		if (at == 0)
			printf("0</text>\n");
		else
			printf("%s%lld %s</text>\n",
			       at < 0 ? "\xe2\x88\x92" : "+",
			       llabs(at) / unit[i].ns, unit[i].name);
	}
	printf("<path class=\"axis\" d=\"M%d %dH%d\"/>\n", PLOT_X, p->bottom,
	       PLOT_X + PLOT_W);
	printf("<text class=\"note\" x=\"%d\" y=\"%d\">since the %s</text>\n",
	       PLOT_X + PLOT_W + 24, p->bottom + 15,
	       p->stop != NULL ? "stop" : "start");
}

/* ---- coordinators ---- */

static void
append_path(char *buf, size_t size, const struct lane *l)
{
	if (l->of != NULL)
		append_path(buf, size, l->of);
	append(buf, size, "%s%s", l->of != NULL ? " / " : "", l->name);
}

/* A heading, and when it was told; or, over everything else, the words of that. */
static void
draw_heading(const struct picture *p, const struct lane *l, int y, bool words)
{
	const struct event *s = l != p->of ? l->stop : NULL;
	bool told = s != NULL && s->ns >= p->from && s->ns <= p->to;
	char path[160] = "";

	if (words && told)
		printf("<text class=\"note end\" x=\"%.1f\" y=\"%d\">told %s%s%s"
		       "</text>\n", x_of(p, s->ns) + 5, y + 17,
		       when(p, s->ns), told_after(p, l)[0] ? ", after " : "",
		       xml(told_after(p, l)));
	if (words)
		return;

	append_path(path, sizeof path, l);
	printf("<rect class=\"band\" x=\"12\" y=\"%d\" width=\"%d\" "
	       "height=\"%d\"/><text class=\"group\" x=\"20\" y=\"%d\">%s"
	       "</text>", y + 3, WIDTH - 24, HEADING - 6, y + 17, xml(path));
	if (told)
		printf("<path class=\"told\" d=\"M%.1f %dv%d\"/>",
		       x_of(p, s->ns), y + 5, HEADING - 10);
	printf("\n");
}

/* Draw a coordinator with its members, and then its scopes, or the words of all
   of them; the result is the place of the next one. */
static int
draw_coordinator(const struct picture *p, const struct lane *coord, int y,
		 bool words)
{
	const struct lane *l;

	draw_heading(p, coord, y, words);
	y += HEADING;
	for (l = coord + 1; l < p->t->end; l++)
		if (l->shown && l->of == coord && l->kind != COORD) {
			(words ? lane_say : lane_draw)(p, l, y);
			y += ROW;
		}
	for (l = coord + 1; l < p->t->end; l++)
		if (l->shown && l->of == coord && l->kind == COORD)
			y = draw_coordinator(p, l, y, words);
	return y;
}

/* ---- the lines through all lanes ---- */

static void
draw_marks(const struct picture *p)
{
	const struct mark *m;

	for (m = p->mark; m < p->mark + p->n_marks; m++) {
		int y = MARKS_Y + (m->row < 0 ? 0 : m->row) * MARK_ROW;
		double x = x_of(p, m->ns);

		printf("<g class=\"mark %s\" data-ns=\"%lld\"><title>%s, %s"
		       "</title><path d=\"M%.1f %dV%d\"/>", m->class, m->ns,
		       xml(m->label), when(p, m->ns), x, y, p->bottom);
		if (m->row >= 0)
			printf("<text x=\"%.1f\" y=\"%d\">%s</text>", x + 4,
			       y + 9, xml(m->label));
		printf("</g>\n");
	}
}

/* ---- below them ---- */

/* The colours and their meaning. */
static void
draw_legend(const struct picture *p)
{
	static const struct {
		const char *class, *text;
		int inset; /* -1: a line, not a bar */
	} key[] = {
		{ "runs", "before the stop", 0 },
		{ "after", "told to stop", 0 },
		{ "after too-long", "and will be late", 0 },
		{ "late", "late: a join gave up", 0 },
		{ "ended", "ended, not joined yet", 4 },
		{ "call", "in a call", 4 },
		{ "join", "a join waits", 3 },
		{ "unblock", "unblock", -1 },
		{ "kick", "kick", -1 },
	};
	int x = 20, y = p->bottom + 30;
	size_t i;

	for (i = 0; i < sizeof key / sizeof key[0]; i++) {
		if (key[i].inset >= 0)
			printf("<rect class=\"%s\" x=\"%d\" y=\"%d\" "
			       "width=\"22\" height=\"%d\"/>", key[i].class, x,
			       y + key[i].inset, BAR - 2 * key[i].inset);
		else
			printf("<path class=\"%s\" d=\"M%d %dv%d\"/>",
			       key[i].class, x + 8, y + 2, BAR - 4);
		x += key[i].inset >= 0 ? 28 : 16;
		printf("<text x=\"%d\" y=\"%d\">%s</text>\n", x, y + 10,
		       key[i].text);
		x += 16 + 6 * (int)strlen(key[i].text);
	}
}

static void
draw_footnote(const struct picture *p)
{
	long long ms = (p->t->real + p->zero - p->t->zero) / 1000000;
	time_t s = (time_t)(ms / 1000);
	char date[32];
	struct tm tm;

	printf("<text class=\"note\" x=\"20\" y=\"%d\">", p->bottom + 60);
	if (p->n_hidden > 0)
		printf("%u more lanes, which ended earlier. ", p->n_hidden);
	if (p->n_before > 0)
		printf("%u members outside of this time. ", p->n_before);
	if (p->t->lost > 0)
		printf("%lld older events were lost. ", p->t->lost);
	if (p->t->real != 0 && gmtime_r(&s, &tm) != NULL) {
		strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm);
		printf("0 is %s.%03d UTC.", date, (int)(ms % 1000));
	}
	printf("</text>\n<text class=\"note\" x=\"%d\" y=\"%d\" "
	       "text-anchor=\"end\">%s</text>\n", WIDTH - 20, p->bottom + 60,
	       xml(p->t->writer));
}

void
picture_draw(const struct picture *p)
{
	int height = p->bottom + LEGEND_H;

	printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
	       "height=\"%d\" viewBox=\"0 0 %d %d\"", WIDTH, height, WIDTH,
	       height);
	if (p->stop != NULL)
		printf(" data-stop=\"%lld\"", p->stop->ns);
	printf(" data-from=\"%lld\" data-to=\"%lld\" data-lost=\"%lld\" "
	       "data-hidden=\"%u\">\n%s", p->from, p->to, p->t->lost,
	       p->n_hidden, style);
	/* The picture has a background of its own, for any page. */
	printf("<clipPath id=\"names\"><rect x=\"0\" y=\"0\" width=\"%d\" "
	       "height=\"%d\"/></clipPath>\n"
	       "<rect x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"8\" "
	       "fill=\"#fff\" stroke=\"#cbd2d9\"/>\n", PLOT_X - 6, height,
	       WIDTH - 1, height - 1);
	draw_headline(p);
	draw_axis(p);
	if (p->t->lane->shown)
		draw_coordinator(p, p->t->lane, p->top, false);
	draw_marks(p);
	/* Over the lines, which would strike them out. */
	if (p->t->lane->shown)
		draw_coordinator(p, p->t->lane, p->top, true);
	draw_legend(p);
	draw_footnote(p);
	printf("</svg>\n");
}
