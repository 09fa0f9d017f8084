/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of evc-trace, and the types and calls that they share.
 *
 *   evc-trace.c     the command line
 *   trace_read.c    the JSON of evc_trace_write, as lanes
 *   trace_plan.c    which lanes and lines the picture shows, and where
 *   trace_draw.c    the picture, as SVG on standard output
 *   trace_lane.c    one lane of it
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
/* Zeroed memory; the program ends when there is none. */
void *room_for(size_t n, size_t size);
/* To the string in buf, as much as there is room for whole characters. */
void append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- trace_read.c ---- */

struct event {
	long long ns, to; /* an instant: both are the same */
	const char *name, *cat;
	const json_t *args;
};

/* COORD: a coordinator or scope.  OTHER: a lane that no picture shows: of a
   thread that waits for the stop, or of the calls of another lane. */
enum kind { COORD, MEMBER, HOOK, LOOP, JOIN, OTHER };

struct lane {
	enum kind kind;
	const char *kind_name; /* "thread" */
	const char *name, *last; /* last: the last progress text, or "" */
	struct lane *of;    /* the coordinator of a member; the parent of a scope;
			       the member of calls; NULL: the root */
	const struct lane *calls; /* of the member's functions */
	unsigned depth;     /* how many lanes there are above */
	const struct event *ev;
	size_t n;
	const struct event *stop; /* COORD: the last one, or NULL */
	long long id, tid;
	long long begin, end;
	long long gone; /* the member is accounted for: at its end, or later */
	long long done; /* HOOK, LOOP: the last stop is done; others: end */
	bool alive;     /* when the timeline was written */
	bool shared;    /* a loop that belongs to another coordinator, too */
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

/* Read t from f, which is called name in messages; or end the program. */
void timeline_read(struct timeline *t, FILE *f, const char *name);
/* The value of a key: "" and 0 when there is none of use. */
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
	int row; /* where the label stands; -1: nowhere */
};

/* A picture is about one stop: a fifth of the plot is for the time before, the
   rest goes on until the last event that had to do with the stop. */
struct picture {
	struct timeline *t;
	const struct lane *of;    /* the coordinator with that stop */
	const struct event *stop; /* NULL: there was none */
	const struct event *verdict; /* the last one in that stop, or NULL */
	long long stop_to;        /* its end, or now */
	long long zero;           /* times are told from here on */
	long long from, to;       /* the time of the plot */
	bool unfinished;          /* a member runs on at the end of the plot */
	unsigned n_hidden, n_before, n_alive; /* lanes */
	struct mark mark[MARKS_MOST];
	int n_marks, mark_rows;
	int top, bottom;          /* of the lanes */
};

void picture_plan(struct picture *p, struct timeline *t);
/* Pixels from the left edge; cut to the plot. */
double x_of(const struct picture *p, long long ns);

/* ---- trace_draw.c ---- */

void picture_draw(const struct picture *p);
/* Text as it may stand in an element or an attribute; the next call but three
   uses its room. */
const char *xml(const char *s);
/* "+12.3 ms"; likewise. */
const char *when(const struct picture *p, long long ns);

/* ---- trace_lane.c ---- */

void lane_draw(const struct picture *p, const struct lane *l, int y);

#endif
