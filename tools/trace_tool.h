/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of evc-trace, and their shared types and calls.
 *
 *   evc-trace.c     the command line
 *   trace_read.c    the JSON of evc_trace_write, as lanes
 *   trace_plan.c    the lanes and lines of the picture, and their places
 *   trace_draw.c    the picture, as SVG on standard output
 *   trace_lane.c    one lane of the picture
 *
 * Times are nanoseconds of the monotonic clock.  Names and texts belong to the
 * JSON, which stays until the end of the program.
 */
#ifndef TOOLS_TRACE_TOOL_H
#define TOOLS_TRACE_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- evc-trace.c ---- */

_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Zeroed memory; without memory the program ends. */
void *room_for(size_t n, size_t size);
/* Adds to the string in buf as many whole characters as fit. */
void append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- trace_read.c ---- */

struct event {
	long long ns, to; /* both the same: an instant */
	const char *name, *cat;
	const json_t *args;
};

/* COORD: a coordinator or scope.  OTHER: a lane that no picture shows: of a
   thread that waits for the stop, or of calls of another lane. */
enum kind { COORD, MEMBER, HOOK, LOOP, JOIN, OTHER };

struct lane {
	enum kind kind;
	const char *kind_name; /* "thread" */
	const char *name, *last; /* last: the last progress text, or "" */
	struct lane *of;    /* the coordinator of a member; the parent of a scope;
			       the member of calls; NULL: the root */
	const struct lane *calls; /* of the member's functions */
	unsigned depth;     /* number of lanes above */
	const struct event *ev;
	size_t n;
	const struct event *stop; /* COORD: the last stop, or NULL */
	long long id, tid;
	long long begin, end;
	long long gone; /* accounted for: at the member's end, or later */
	long long done; /* HOOK, LOOP: the last stop is done; others: end */
	bool alive;     /* when the timeline was written */
	bool shared;    /* a loop of several coordinators */
	bool shown;
};

struct timeline {
	long long zero, now, lost;
	long long real;     /* the wall clock at zero, or 0 */
	const char *writer; /* "evcoord 1.2.3" */
	struct lane *lane, *end; /* the root first; members of a coordinator
				    follow it */
	struct event *event;
};

/* Read t from f; name: for messages.  An error ends the program. */
void timeline_read(struct timeline *t, FILE *f, const char *name);
/* The value of a key: "" or 0 if there is no usable value. */
const char *text_of(const json_t *o, const char *key);
long long number_of(const json_t *o, const char *key);
bool is(const struct event *e, const char *cat, const char *name);

/* ---- trace_plan.c ---- */

/* Pixels; from left to right: names, the plot, words on each end. */
#define WIDTH 1200
#define PLOT_X 250
#define PLOT_W 740
#define ROW 20
#define BAR 12
#define HEADING 26
#define MARKS_Y 96
#define MARK_ROW 15
#define MARK_ROWS 4
#define LEGEND_H 74
#define LANES_MOST 200
#define MARKS_MOST 48

/* A line through all lanes. */
struct mark {
	long long ns;
	const char *class;
	char label[64];
	int row; /* row of the label; -1: no label */
};

/* A picture is about one stop: a fifth of the plot is for the time before, the
   rest for the stop until its last event. */
struct picture {
	struct timeline *t;
	const struct lane *of;    /* the coordinator with the stop */
	const struct event *stop; /* NULL: there was no stop */
	const struct event *verdict; /* the last verdict in the stop, or NULL */
	long long stop_to;        /* end of the stop, or now */
	long long zero;           /* zero of all shown times */
	long long from, to;       /* range of the plot */
	bool unfinished;          /* a member runs on at the end of the plot */
	unsigned n_hidden, n_before, n_alive; /* lanes */
	struct mark mark[MARKS_MOST];
	int n_marks, mark_rows;
	int top, bottom;          /* of all lanes */
};

void picture_plan(struct picture *p, struct timeline *t);
/* Pixels from the left edge; cut to the plot. */
double x_of(const struct picture *p, long long ns);

/* The scope whose end a scope has waited for, in phases, before it was told;
   "" without a wait that can be seen. */
const char *told_after(const struct picture *p, const struct lane *scope);

/* ---- trace_draw.c ---- */

void picture_draw(const struct picture *p);
/* Text as legal in an element or an attribute; the next call but three reuses
   the memory. */
const char *xml(const char *s);
/* "+12.3 ms"; the next call but three reuses the memory. */
const char *when(const struct picture *p, long long ns);

/* ---- trace_lane.c ---- */

void lane_draw(const struct picture *p, const struct lane *l, int y);
/* The words of the lane, over everything else. */
void lane_say(const struct picture *p, const struct lane *l, int y);

#endif
