/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON of evc_trace_write, as lanes.  The input may have any values.  This
 * file checks values that lanes are built of; text_of and number_of read all
 * others.
 * Called by: evc-trace.c; the other files read fields with text_of and
 * number_of.
 * Locks: none; one thread.
 */
#include "trace_tool.h"

#include <errno.h>

/* 146 years: the sum of two such times fits. */
#define TIME_MOST (1LL << 62)
/* Most levels of scopes. */
#define DEPTH_MOST 1000

static json_t *root; /* owns all names and texts */
static const char *input;

const char *
text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "";
}

long long
number_of(const json_t *o, const char *key)
{
	long long v = json_integer_value(json_object_get(o, key));

	return v > 0 && v < TIME_MOST ? v : 0;
}

bool
is(const struct event *e, const char *cat, const char *name)
{
	return strcmp(e->cat, cat) == 0 && strcmp(e->name, name) == 0;
}

static _Noreturn void
refuse_event(size_t i, const char *why)
{
	die("%s: event %zu: %s", input, i + 1, why);
}

/* ---- lanes ---- */

static enum kind
kind_of(const char *name)
{
	static const struct {
		const char *name;
		enum kind kind;
	} of[] = { { "coordinator", COORD }, { "scope", COORD },
		   { "hook", HOOK },	     { "loop", LOOP },
		   { "join", JOIN },	     { "waiting thread", OTHER },
		   { "its calls", OTHER } };
	size_t i;

	for (i = 0; i < sizeof of / sizeof of[0]; i++)
		if (strcmp(of[i].name, name) == 0)
			return of[i].kind;
	return MEMBER;
}

/* Members follow their coordinator, calls follow their member. */
static void
begin_lane(struct timeline *t, struct lane *coord, const json_t *args, size_t i)
{
	static const struct lane none;
	long long of = number_of(args, "of");
	struct lane *l = t->end++;

	l->kind_name = text_of(args, "kind");
	l->kind = kind_of(l->kind_name);
	l->name = text_of(args, "label");
	l->last = "";
	l->calls = &none;
	l->id = number_of(args, "id");
	if (of > 0 && of <= l - t->lane)
		l->of = &t->lane[of - 1];
	if (l->of == NULL ? coord != NULL || l->kind != COORD :
	    l->kind == COORD ? l->of->kind != COORD :
			       l->of != coord &&
			       (l->of != l - 1 || l->kind != OTHER))
		refuse_event(i, "its lane belongs to none before it");
	if (l->of != NULL && l->of->kind != COORD)
		l->of->calls = l;
	l->depth = l->of != NULL ? l->of->depth + 1 : 0;
	if (l->depth > DEPTH_MOST)
		refuse_event(i, "a scope in too many others");
}

static void
read_life(struct lane *l, const struct event *e)
{
	l->begin = e->ns;
	l->gone = e->to;
	l->alive = strcmp(text_of(e->args, "state"), "alive") == 0;
	l->end = number_of(e->args, "end_ns");
	l->tid = number_of(e->args, "tid");
	l->last = text_of(e->args, "progress");
	l->shared = json_is_true(json_object_get(e->args, "shared"));
}

/* The events of a lane say when the member began and ended. */
static void
end_lane(const struct timeline *t, struct lane *l)
{
	const struct event *e;

	l->begin = l->n > 0 ? l->ev->ns : t->now;
	for (e = l->ev; e < l->ev + l->n; e++)
		if (strcmp(e->cat, "member") == 0)
			read_life(l, e);
		else if (is(e, "stop", "stopping"))
			l->stop = e;
		else if (l->kind == JOIN)
			l->gone = e->to > l->gone ? e->to : l->gone;
		else if (is(e, "state", "after the stop") ||
			 is(e, "state", "late"))
			l->done = e->to;
	/* A loop stays; it is late while its part of a stop is not done. */
	if (l->kind == LOOP && l->done < t->now)
		l->alive = false;
	if (l->alive || l->end == 0)
		l->end = t->now;
	if (l->kind == MEMBER || l->kind == JOIN)
		l->done = l->end;
	else if (l->done == 0)
		l->done = l->begin;
}

/* ---- events ---- */

static void
read_event(const json_t *o, const json_t *args, size_t i, struct event *e)
{
	e->name = text_of(o, "name");
	e->cat = text_of(o, "cat");
	e->args = args;
	e->ns = number_of(args, "ns");
	e->to = number_of(args, "to_ns");
	if (e->ns == 0)
		refuse_event(i, "it has no time, or one that no clock says");
	if (e->to < e->ns)
		e->to = e->ns;
}

/* The events of a lane come together, the lane's name first. */
static void
read_events(struct timeline *t, const json_t *events)
{
	struct event *e = t->event;
	struct lane *coord = NULL;
	const json_t *args;
	json_t *o;
	size_t i;

	json_array_foreach (events, i, o) {
		long long tid = json_integer_value(json_object_get(o, "tid"));
		bool names = strcmp(text_of(o, "name"), "thread_name") == 0;

		args = json_object_get(o, "args");
		if (!json_is_object(args) || tid != t->end - t->lane + names)
			refuse_event(i, "it is none of evc_trace_write, or out "
					"of place");
		if (names) {
			begin_lane(t, coord, args, i);
			t->end[-1].ev = e;
			coord = t->end[-1].kind == COORD ? &t->end[-1] : coord;
		} else if (strcmp(text_of(o, "ph"), "M") != 0) {
			if (coord == NULL)
				refuse_event(i, "it belongs to no lane");
			read_event(o, args, i, e++);
			t->end[-1].n++;
		}
	}
	if (coord == NULL)
		die("%s: a timeline without a coordinator", input);
}

/* ---- all of it ---- */

void
timeline_read(struct timeline *t, FILE *f, const char *name)
{
	const json_t *other, *events;
	json_error_t e;
	struct lane *l;
	size_t n;

	input = name;
	errno = 0;
	root = json_loadf(f, JSON_REJECT_DUPLICATES, &e);
	if (root == NULL && ferror(f))
		die("%s: cannot be read: %s", name, strerror(errno));
	if (root == NULL)
		die("%s: line %d: %s", name, e.line, e.text);
	other = json_object_get(root, "otherData");
	events = json_object_get(root, "traceEvents");
	t->writer = text_of(other, "writer");
	t->zero = number_of(other, "zero_ns");
	t->now = number_of(other, "written_ns");
	t->real = number_of(other, "zero_real_ns");
	t->lost = number_of(other, "lost");
	if (strncmp(t->writer, "evcoord ", 8) != 0 || !json_is_array(events))
		die("%s: JSON, but no timeline of evc_trace_write", name);
	/* There are no more lanes than events. */
	n = json_array_size(events) + 1;
	t->event = room_for(n, sizeof *t->event);
	t->lane = t->end = room_for(n, sizeof *t->lane);
	read_events(t, events);
	for (l = t->lane; l < t->end; l++)
		end_lane(t, l);
}
