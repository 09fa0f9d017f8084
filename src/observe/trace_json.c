/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline in Chrome's trace format, for trace viewers and for
 * evc-trace(1), which draws the timeline.  evcoord-trace(3) describes each
 * field.  A lane is a "thread" of this format, with a number of its own.
 * Slices of a lane have to nest, and a call may have begun before the stop: so
 * calls have a lane of their own beneath their member's.
 * Called by: trace_write.c.
 * Locks: none; the timeline is the caller's.
 */
#include <unistd.h>

#include "base/text.h"
#include "observe/trace_lanes.h"
#include "observe/trace_out.h"

#define PATH_SIZE 256

struct json {
	struct out *o;
	const struct evc__timeline *t;
	int pid;
	unsigned lane;  /* the lane that is being written */
	bool any;       /* an event is written already */
};

/* ---- events ---- */

static void
begin_event(struct json *j, const char *ph, const char *name)
{
	evc__out_add(j->o, j->any ? ",\n" : "\n");
	j->any = true;
	evc__out_fmt(j->o, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%u,\"name\":", ph,
		     j->pid, j->lane);
	evc__out_json(j->o, name);
}

/* Time since the timeline began; an earlier begin counts as 0. */
static uint64_t
offset_of(const struct json *j, uint64_t ns)
{
	return ns > j->t->since ? ns - j->t->since : 0;
}

static void
add_timestamp(struct json *j, const char *cat, uint64_t ns)
{
	evc__out_fmt(j->o, ",\"cat\":\"%s\",\"ts\":", cat);
	evc__out_us(j->o, offset_of(j, ns));
}

static void
add_number(struct json *j, const char *key, uint64_t v)
{
	evc__out_fmt(j->o, ",\"%s\":%llu", key, (unsigned long long)v);
}

static void
add_string(struct json *j, const char *key, const char *s)
{
	evc__out_fmt(j->o, ",\"%s\":", key);
	evc__out_json(j->o, s);
}

/* An event with a length, and the first of its args; the caller adds args and
   ends the event. */
static void
begin_slice(struct json *j, const char *cat, const char *name, uint64_t from,
	    uint64_t to)
{
	begin_event(j, "X", name);
	add_timestamp(j, cat, from);
	evc__out_add(j->o, ",\"dur\":");
	evc__out_us(j->o, offset_of(j, to) - offset_of(j, from));
	evc__out_fmt(j->o, ",\"args\":{\"ns\":%llu",
		     (unsigned long long)from);
	add_number(j, "to_ns", to);
}

/* An event without a length; the caller adds args and ends the event. */
static void
begin_instant(struct json *j, const char *cat, const char *scope,
	      const char *name, uint64_t ns)
{
	begin_event(j, "i", name);
	evc__out_fmt(j->o, ",\"s\":\"%s\"", scope);
	add_timestamp(j, cat, ns);
	evc__out_fmt(j->o, ",\"args\":{\"ns\":%llu",
		     (unsigned long long)ns);
}

static void
end_event(struct json *j)
{
	evc__out_add(j->o, "}}");
}

/* ---- names of lanes ---- */

/* Begin a lane: its name for viewers, and the parts of the name for programs;
   of: the number of the lane to which this lane belongs, 0: none. */
static void
name_lane(struct json *j, const char *name, const char *kind,
	  const struct evc__group *g, unsigned of, uint64_t id)
{
	char path[PATH_SIZE], text[PATH_SIZE + 96];
	struct text t = evc__text_in(text, sizeof text);

	evc__group_path(g, path, sizeof path);
	evc__text_fmt(&t, "%s (%s, %s)", name[0] != '\0' ? name : "?", kind,
		      path);
	j->lane++;
	begin_event(j, "M", "thread_name");
	evc__out_add(j->o, ",\"args\":{\"name\":");
	evc__out_json(j->o, text);
	add_string(j, "label", name);
	add_string(j, "kind", kind);
	add_number(j, "of", of);
	add_number(j, "id", id);
	end_event(j);
	begin_event(j, "M", "thread_sort_index");
	evc__out_fmt(j->o, ",\"args\":{\"sort_index\":%u}}", j->lane);
}

/* ---- a coordinator ---- */

static void
write_request(struct json *j, const struct evc__group *g,
	      const struct evc__record *r)
{
	static const char *const by[] = {
		"?",	  "request", "error",	    "member end",
		"signal", "empty",   "loop broken", "parent",
	};
	bool won = TRACE_ASKED_WON(r->arg);

	/* The stop of the root is a line through all lanes. */
	begin_instant(j, "request", won && g->parent == NULL ? "g" : "t",
		      won ? "stop" : "request", r->ns);
	add_number(j, "code", (uint64_t)TRACE_ASKED_CODE(r->arg));
	add_string(j, "status", evc_status_name(TRACE_ASKED_CODE(r->arg)));
	add_string(j, "by",
		   by[r->kind < sizeof by / sizeof by[0] ? r->kind : 0]);
	add_string(j, "who", r->more);
	add_string(j, "text", r->name);
	evc__out_fmt(j->o, ",\"asked_by_tid\":%d", r->tid);
	end_event(j);
}

static void
own_event(struct json *j, const struct evc__group *g,
	  const struct evc__record *r)
{
	char text[64];
	struct text t = evc__text_in(text, sizeof text);

	switch (r->what) {
	case TRACE_REQUEST:
		write_request(j, g, r);
		return;
	case TRACE_DRAIN:
		evc__text_add(&t, "drain");
		break;
	case TRACE_CLEAR:
		evc__text_add(&t, "clear");
		break;
	case TRACE_PHASE:
		if (r->arg >= INT_MAX)
			evc__text_add(&t, "all phases");
		else
			evc__text_fmt(&t, "phase %u", (unsigned)r->arg);
		break;
	case TRACE_STEP:
		evc__text_fmt(&t, "step: %s", evc__step_name(r->arg));
		break;
	case TRACE_UNBLOCK:
		evc__text_add(&t, "cancel hook");
		break;
	case TRACE_KICK:
		evc__text_add(&t, "kick");
		break;
	default:
		return; /* the lane has the same beginning and end */
	}
	begin_instant(j, "stop", "t", text, r->ns);
	if (r->name[0] != '\0')
		add_string(j, "text", r->name);
	end_event(j);
}

static void
write_group(struct json *j, struct evc__group *g)
{
	size_t i;

	name_lane(j, g->name, g->parent != NULL ? "scope" : "coordinator", g,
		  g->parent != NULL ? g->parent->lane : 0, g->number);
	g->lane = j->lane;
	for (i = g->first_stop; i < g->first_stop + g->n_stops; i++) {
		const struct evc__stop *s = &j->t->stop[i];

		begin_slice(j, "stop", "stopping", s->from,
			    s->over < s->to ? s->over : s->to);
		if (s->to != j->t->now)
			add_number(j, "cleared_ns", s->to);
		end_event(j);
	}
	for (i = g->first; i < g->first + g->n_own; i++)
		own_event(j, g, &j->t->rec[i]);
}

/* ---- a lane ---- */

static void
add_part(enum evc__part what, uint64_t from, uint64_t to, void *arg)
{
	static const char *const name[] = {
		[PART_JOIN] = "join",
		[PART_AFTER] = "after the stop",
		[PART_LATE] = "late",
		[PART_ENDED] = "ended, not joined yet",
	};
	struct json *j = arg;

	begin_slice(j, "state", name[what], from, to);
	end_event(j);
}

/* In a lane of tasks the number is only the lane's. */
static uint64_t
id_of(const struct evc__lane *l)
{
	return l->kind == EVC_TASK ? 0 : l->id;
}

static void
write_life(struct json *j, const struct evc__lane *l)
{
	uint64_t to = l->reaped > l->end ? l->reaped : l->end;

	begin_slice(j, "member", l->name, l->begin, to);
	add_number(j, "id", id_of(l));
	add_string(j, "kind", evc__lane_kind(l->kind));
	add_string(j, "scope", l->group->name);
	add_string(j, "state", l->alive || l->there ? "alive" : "ended");
	if (l->kind == TRACE_LOOP && !l->loop)
		evc__out_add(j->o, ",\"shared\":true");
	if (!l->alive && !l->there)
		add_number(j, "end_ns", l->end);
	if (l->tid != 0)
		add_number(j, "tid", (uint64_t)l->tid);
	if (l->last[0] != '\0')
		add_string(j, "progress", l->last);
	end_event(j);
}

static const char *
instant_name(const struct evc__record *r)
{
	switch (r->what) {
	case TRACE_HEARD:
		return "heard the stop";
	case TRACE_AWAKE:
		return "awake";
	case TRACE_IDLE:
		return "no tasks left";
	case TRACE_UNBLOCK:
		return "unblock";
	case TRACE_KICK:
		return "kick";
	case TRACE_EXTEND:
		return "extend";
	case TRACE_VERDICT:
		return "verdict";
	default:
		return NULL;
	}
}

static void
lane_instant(struct json *j, const struct evc__record *r)
{
	const char *name = instant_name(r);

	if (name == NULL)
		return;
	begin_instant(j, "event", "t", name, r->ns);
	if (r->what == TRACE_VERDICT) {
		add_string(j, "code", evc_status_name((evc_status)r->kind));
		add_number(j, "stragglers", r->arg);
	} else if (r->what == TRACE_EXTEND) {
		add_string(j, "reason", r->name);
		add_number(j, "granted_ns", r->arg);
	} else if (r->what == TRACE_KICK || r->what == TRACE_UNBLOCK)
		add_number(j, "times", r->arg);
	end_event(j);
}

static bool
begins_call(const struct evc__record *r)
{
	return r->what == TRACE_CALL || r->what == TRACE_TELL;
}

static bool
ends_call(const struct evc__record *r)
{
	return r->what == TRACE_RETURN || r->what == TRACE_TOLD;
}

static void
write_call(struct json *j, const struct evc__lane *l, size_t i)
{
	static const char *const of[] = {
		[TRACE_FN] = "call", [TRACE_STOP] = "stop", [TRACE_REAP] = "join"
	};
	const struct evc__record *r = &l->rec[i];
	size_t k = i + 1;

	while (k < l->n && !ends_call(&l->rec[k]) && !begins_call(&l->rec[k]))
		k++;
	if (k < l->n && begins_call(&l->rec[k]))
		return; /* the record of the return is lost */
	begin_slice(j, "call",
		    r->what == TRACE_TELL  ? "tells its tasks"
		    : r->arg <= TRACE_REAP ? of[r->arg]
					   : "call",
		    r->ns, k < l->n ? l->rec[k].ns : j->t->now);
	if (r->what == TRACE_TELL)
		add_number(j, "tasks", r->arg);
	if (k == l->n)
		evc__out_add(j->o, ",\"in_progress\":true");
	end_event(j);
}

static void
write_lane(struct json *j, const struct evc__lane *l)
{
	bool calls = false;
	size_t i;

	name_lane(j, l->name, evc__lane_kind(l->kind), l->group,
		  l->group->lane, id_of(l));
	if (l->kind < TRACE_JOINER)
		write_life(j, l);
	evc__lane_parts(j->t, l, add_part, j);
	for (i = 0; i < l->n; i++) {
		lane_instant(j, &l->rec[i]);
		calls |= begins_call(&l->rec[i]);
	}
	if (!calls)
		return;
	name_lane(j, l->name, "its calls", l->group, j->lane, l->id);
	for (i = 0; i < l->n; i++)
		if (begins_call(&l->rec[i]))
			write_call(j, l, i);
}

void
evc__trace_json(struct out *o, struct evc__timeline *t)
{
	struct json j = { .o = o, .t = t, .pid = (int)getpid() };
	struct evc__group *g;
	size_t i;

	evc__out_add(o, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{");
	evc__out_fmt(o, "\"writer\":\"evcoord %s\",\"clock\":\"CLOCK_MONOTONIC\"",
		     evc_version());
	add_number(&j, "zero_ns", t->since);
	add_number(&j, "written_ns", t->now);
	/* The wall clock may have been set since the beginning; the number is
	   by the present clock. */
	add_number(&j, "zero_real_ns", sync_real() - (sync_mono() - t->since));
	add_number(&j, "lost", t->lost);
	evc__out_add(o, "},\n\"traceEvents\":[");
	begin_event(&j, "M", "process_name");
	evc__out_add(o, ",\"args\":{\"name\":");
	evc__out_json(o, t->group[0].name);
	evc__out_add(o, "}}");
	for (g = t->group; g < t->group + t->n_groups; g++) {
		write_group(&j, g);
		for (i = g->first_lane; i < g->first_lane + g->n_lanes; i++)
			write_lane(&j, &t->lane[i]);
	}
	evc__out_add(o, "\n]}\n");
}
