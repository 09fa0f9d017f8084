/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline as one picture that needs nothing else.
 */
#include "base/text.h"
#include "observe/trace_picture.h"

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

static void
begin(struct evc__picture *p)
{
	struct out *o = p->o;

	evc__out_fmt(o, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" "
		     "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\"",
		     WIDTH, p->height, WIDTH, p->height);
	if (p->stop != NULL)
		evc__out_fmt(o, " data-stop=\"%llu\"",
			     (unsigned long long)p->stop->from);
	evc__out_fmt(o, " data-from=\"%llu\" data-to=\"%llu\"",
		     (unsigned long long)p->from, (unsigned long long)p->to);
	evc__out_fmt(o, " data-lost=\"%llu\" data-hidden=\"%u\">\n",
		     (unsigned long long)p->t->lost, p->n_hidden);
	evc__out_add(o, style);
	evc__out_fmt(o, "<clipPath id=\"names\"><rect x=\"0\" y=\"0\" "
		     "width=\"%d\" height=\"%d\"/></clipPath>\n",
		     PLOT_X - 6, p->height);
	/* Its own ground, whatever page it stands on. */
	evc__out_fmt(o, "<rect x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" "
		     "rx=\"8\" fill=\"#fff\" stroke=\"#cbd2d9\"/>\n",
		     WIDTH - 1, p->height - 1);
}

/* ---- what happened, in words ---- */

/* The last join that was answered in this stop. */
static const struct evc__record *
verdict(const struct evc__picture *p)
{
	const struct evc__record *last = NULL;
	size_t i;

	for (i = p->of->first; i < p->of->first + p->of->n; i++) {
		const struct evc__record *r = &p->t->rec[i];

		if (r->what == TRACE_VERDICT && r->ns >= p->stop->from &&
		    r->ns <= p->stop->to && (last == NULL || r->ns > last->ns))
			last = r;
	}
	return last;
}

static void
say_asked(struct evc__picture *p)
{
	const struct evc__record *r = p->stop->asked;
	struct out *o = p->o;

	evc__out_add(o, "<text class=\"sub\" x=\"20\" y=\"52\">The stop was "
		     "asked for by ");
	evc__out_xml(o, r->more);
	evc__out_fmt(o, " (tid %d)", r->tid);
	if (r->name[0] != '\0') {
		evc__out_add(o, ": \xe2\x80\x9c");
		evc__out_xml(o, r->name);
		evc__out_add(o, "\xe2\x80\x9d");
	}
	if (TRACE_ASKED_CODE(r->arg) != 0)
		evc__out_fmt(o, " [%s]",
			     evc_status_name(TRACE_ASKED_CODE(r->arg)));
	evc__out_add(o, "</text>\n");
}

static void
say_outcome(struct evc__picture *p)
{
	const struct evc__record *r = verdict(p);
	unsigned alive = 0, i;
	char time[32];

	for (i = 0; i < p->n_lanes; i++)
		alive += p->lane[i]->alive;
	evc__out_fmt(p->o, "<text class=\"sub %s\" x=\"20\" y=\"72\">",
		     (r != NULL && (r->arg > 0 || r->kind != 0)) ||
				     (r == NULL && alive > 0) ?
			     "bad" :
			     "good");
	if (r == NULL && alive > 0)
		evc__out_fmt(p->o, "Still running when this was written: %u.",
			     alive);
	else if (r != NULL) {
		evc__picture_time(p, r->ns, time, sizeof time);
		evc__out_fmt(p->o, "The join returned %s at %s",
			     evc_status_name(r->kind), time);
		if (r->arg > 0)
			evc__out_fmt(p->o, ": %llu late.",
				     (unsigned long long)r->arg);
		else
			evc__out_add(p->o, ": all had ended.");
	}
	evc__out_add(p->o, "</text>\n");
}

static void
headline(struct evc__picture *p)
{
	evc__out_add(p->o, "<text class=\"title\" x=\"20\" y=\"28\">");
	evc__out_xml(p->o, p->of->name);
	evc__out_add(p->o, "</text>\n");
	if (p->stop == NULL) {
		evc__out_add(p->o, "<text class=\"sub\" x=\"20\" y=\"52\">");
		evc__out_add(p->o, p->t->lost > 0 ?
					   "The beginning was lost; nothing "
					   "that is left tells of a stop." :
					   "No stop was asked for.");
		evc__out_add(p->o, "</text>\n");
		return;
	}
	say_asked(p);
	say_outcome(p);
}

/* ---- what the colours mean ---- */

static int
key(struct evc__picture *p, int x, const char *what, int inset,
    const char *text)
{
	int y = p->bottom + 30;

	evc__out_fmt(p->o, "<rect class=\"%s\" x=\"%d\" y=\"%d\" "
		     "width=\"22\" height=\"%d\"/>",
		     what, x, y + inset, BAR - 2 * inset);
	evc__out_fmt(p->o, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 28,
		     y + 10, text);
	return x + 44 + 6 * (int)strlen(text);
}

static int
key_line(struct evc__picture *p, int x, const char *what, const char *text)
{
	int y = p->bottom + 30;

	evc__out_fmt(p->o, "<path class=\"%s\" d=\"M%d %dv%d\"/>", what, x + 8,
		     y + 2, BAR - 4);
	evc__out_fmt(p->o, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 16,
		     y + 10, text);
	return x + 32 + 6 * (int)strlen(text);
}

static void
legend(struct evc__picture *p)
{
	int x = 20;

	x = key(p, x, "runs", 0, "before the stop");
	x = key(p, x, "after", 0, "told to stop");
	x = key(p, x, "after too-long", 0, "and will be late");
	x = key(p, x, "late", 0, "late: a join gave up");
	x = key(p, x, "ended", 4, "ended, not joined yet");
	x = key(p, x, "call", 4, "in a call");
	x = key(p, x, "join", 3, "a join waits");
	x = key_line(p, x, "unblock", "unblock");
	key_line(p, x, "kick", "kick");
}

/* The wall clock may have been set meanwhile: as it stands now. */
static void
add_date(struct evc__picture *p, struct text *t)
{
	uint64_t ns = sync_real() - (sync_mono() - p->zero);
	time_t s = (time_t)(ns / 1000000000u);
	struct tm tm;

	if (gmtime_r(&s, &tm) == NULL)
		return;
	evc__text_fmt(t, "0 is %04d-%02d-%02d %02d:%02d:%02d.%03u UTC.",
		      tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
		      tm.tm_min, tm.tm_sec,
		      (unsigned)(ns / 1000000u % 1000u));
}

static void
footnote(struct evc__picture *p)
{
	char text[256];
	struct text t = evc__text_in(text, sizeof text);

	if (p->n_hidden > 0)
		evc__text_fmt(&t, "%u more lanes, which ended earlier. ",
			      p->n_hidden);
	if (p->n_before > 0)
		evc__text_fmt(&t, "%u members outside of this time. ",
			      p->n_before);
	if (p->t->lost > 0)
		evc__text_fmt(&t, "%llu older events were lost. ",
			      (unsigned long long)p->t->lost);
	add_date(p, &t);
	evc__out_fmt(p->o,
		     "<text class=\"note\" x=\"20\" y=\"%d\">%s</text>\n",
		     p->bottom + 60, text);
	evc__out_fmt(p->o, "<text class=\"note\" x=\"%d\" y=\"%d\" "
		     "text-anchor=\"end\">evcoord %s</text>\n",
		     WIDTH - 20, p->bottom + 60, evc_version());
}

void
evc__trace_svg(struct out *o, const struct evc__timeline *t)
{
	struct evc__picture p = { .o = o, .t = t };

	evc__picture_plan(&p);
	begin(&p);
	headline(&p);
	evc__axis_draw(&p);
	evc__groups_draw(&p);
	evc__marks_draw(&p);
	legend(&p);
	footnote(&p);
	evc__out_add(o, "</svg>\n");
}
