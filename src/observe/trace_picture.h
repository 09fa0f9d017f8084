/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline as a picture: what its parts share.
 *
 * From left to right: names, the plot, what is to be said of each end.  Places
 * are tenths of a pixel, so that no number needs a decimal point of the
 * locale's.
 */
#ifndef EVC_OBSERVE_TRACE_PICTURE_H
#define EVC_OBSERVE_TRACE_PICTURE_H

#include "observe/trace_lanes.h"
#include "observe/trace_out.h"

#define PX 10
#define WIDTH 1200
#define PLOT_X 250
#define PLOT_W 740
#define ROW 20
#define BAR 12
#define HEADING 26
#define MARKS_Y 96
#define MARK_ROW 15
#define MARK_ROWS 4
#define LANES_MOST 200

/* A line through all lanes. */
struct evc__mark_line {
	uint64_t ns;
	const char *what; /* its class */
	char label[64];
	int row;          /* where the label stands; -1: nowhere */
};
#define MARKS_MOST 48

struct evc__picture {
	struct out *o;
	const struct evc__timeline *t;
	const struct evc__stop *stop; /* NULL: none */
	const struct evc__group *of;  /* whose */
	uint64_t zero;                /* what times are told from */
	uint64_t from, to;            /* what the plot shows */
	bool unfinished;              /* somebody runs on at its end */
	/* the lanes that are shown, the latest first; how many are not */
	const struct evc__lane *lane[LANES_MOST];
	unsigned n_lanes, n_hidden, n_before;
	struct evc__mark_line mark[MARKS_MOST];
	unsigned n_marks;
	int mark_rows;
	int top, bottom, height;      /* pixels: lanes from top to bottom */
	int y;                        /* where the next lane goes */
};

/* ---- trace_picture.c ---- */

/* What is shown, and where. */
void evc__picture_plan(struct evc__picture *p);
/* Tenths of a pixel from the left edge; cut to the plot. */
int evc__picture_x(const struct evc__picture *p, uint64_t ns);
/* "12.3" */
void evc__picture_px(struct out *o, int tenths);
/* "+12.3 ms" into buf. */
void evc__picture_time(const struct evc__picture *p, uint64_t ns, char *buf,
		       size_t room);
/* Is something of g, or of scopes below it, shown? */
bool evc__picture_has(const struct evc__picture *p,
		      const struct evc__group *g);

/* ---- trace_marks.c ---- */

void evc__marks_plan(struct evc__picture *p);
void evc__marks_draw(struct evc__picture *p);
void evc__axis_draw(struct evc__picture *p);

/* ---- trace_draw.c ---- */

void evc__groups_draw(struct evc__picture *p);

#endif
