/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as one JSON object.
 * Called by: dump.c.
 * Locks: none; facts.c has copied the facts.
 */
/*
 * Every key is always there; a value that does not apply is null.  Times are
 * seconds, as numbers with nine places; "time" is since the epoch, all others
 * are ages or distances.
 *
 * The object itself:
 *	evcoord		string: the library's version
 *	pid		number
 *	stack_signal	number: the signal for stacks; 0: none
 *	stacks_left	number: stacks not taken, of too many
 *	coordinator	object: see below
 *	time		number: of this report
 * A coordinator:
 *	name		string
 *	path		string: the scopes from the root on, "db/pool"; of the
 *			root ""
 *	scope		boolean
 *	phase		number or null
 *	round		number
 *	state		"running", "draining" or "stopping"
 *	joined		boolean: a join has closed the round
 *	set_up		boolean: false until evc_scope_ready
 *	ended		number: members that have ended in this round
 *	not_joined	number: those of them that were not joined yet
 *	errors		number: of this round
 *	stop_age	number or null: since the stop was requested
 *	described	the scope's own part, or null: of a worker group an
 *			object with the key group (group/describe.c), of a
 *			cluster with the key cluster (cluster/core/describe.c),
 *			of a pool with the key pool (pool/describe.c)
 *	parts		array of: kind, name (strings), described; of a queue
 *			an object (queue/describe.c)
 *	reasons		array of: at (number, since the first reason), time,
 *			kind, code, code_name, who, by (a member's id or 0),
 *			tid, errno, text, file, func, line
 *	escalation	object or null (no stop): told, hooks, kicks, ending,
 *			abandoned (number since the stop, or null: not
 *			reached), hook_calls, kick_calls, kicks_lost (why they
 *			wake nobody, or null)
 *	extensions	array of: id, name, granted, reason
 *	members		array of: id (0: a task), kind, name, state, where, age
 *			(or null: of tasks on another thread's loop), round,
 *			flags (array of strings), tid (or null), runs and
 *			missed (loopers, else null), count (of tasks behind
 *			this entry, else null), progress (object with text and
 *			age, or null), unblocks, kicks, extension (object
 *			with granted and reason, or null), thread (below, or
 *			null)
 *	loops		array of: name, tid, state ("turning", "busy": in a
 *			callback of ours since the stop, "silent": has not
 *			turned since the stop, "held": has not turned for 0.1 s
 *			and does not wait for events, "destroyed"), since (age
 *			of the present iteration, or null: no iteration yet),
 *			at_least (boolean: of a hosted loop outside of a turn,
 *			the silence may be longer than since), in (the
 *			kind of its callback, or null), in_name (its name, or
 *			null), tasks, loopers, runners, turns, longest_turn,
 *			posts (not returned), progress, thread
 *	scopes		array of coordinators
 *	counters	object: stops, kicks, unblocks, stragglers, missed,
 *			stop_seconds
 *	lost		object: lost for lack of memory: reasons,
 *			extensions, loops, scopes (numbers), members, threads,
 *			described (booleans)
 * A thread, at the time of the look:
 *	tid		number
 *	state		string, as /proc has it: "S"; or null
 *	state_name	string: "sleeping"; or null
 *	wchan, syscall	string or null
 *	blocks_signal	boolean: blocks the signal for stacks; false beside a
 *			stack
 *	stack		array of strings, the innermost call first
 *	no_stack	string or null: why there is no stack
 */
#include "observe/facts.h"

#include "base/json_write.h"
#include "base/reason.h"

static void
add_reasons(struct evc__json *j, const struct evc__facts *f)
{
	const evc_reason *r = f->reasons;
	unsigned i;

	evc__json_begin(j, "reasons", "[");
	for (i = 0; i < f->n_reasons; i++, r++) {
		evc__json_begin(j, NULL, "{");
		evc__json_seconds(j, "at",
			((double)r->mono_ns - (double)f->reasons->mono_ns) /
				1e9);
		evc__json_key(j, "time");
		evc__text_ns(j->t, r->real_ns);
		evc__json_string(j, "kind", evc__reason_kind(r->kind));
		evc__json_integer(j, "code", r->code);
		evc__json_string(j, "code_name", evc_status_name(r->code));
		evc__json_string(j, "who", r->who);
		evc__json_number(j, "by", r->by);
		evc__json_integer(j, "tid", r->tid);
		evc__json_integer(j, "errno", r->err);
		evc__json_string(j, "text", r->text);
		evc__json_string(j, "file", r->file);
		evc__json_string(j, "func", r->func);
		evc__json_integer(j, "line", r->line);
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
}

static void
add_escalation(struct evc__json *j, const struct evc__facts *f)
{
	if (!(f->word & WORD_FLAG)) {
		evc__json_null(j, "escalation");
		return;
	}
	evc__json_begin(j, "escalation", "{");
	evc__json_seconds_if(j, "told", f->step[STEP_TOLD]);
	evc__json_seconds_if(j, "hooks", f->step[STEP_HOOKS]);
	evc__json_seconds_if(j, "kicks", f->step[STEP_KICKS]);
	evc__json_seconds_if(j, "ending", f->step[STEP_ENDING]);
	evc__json_seconds_if(j, "abandoned", f->step[STEP_ABANDONED]);
	evc__json_number(j, "hook_calls", f->n_unblocks);
	evc__json_number(j, "kick_calls", f->n_kicks);
	evc__json_string(j, "kicks_lost", f->kicks_lost);
	evc__json_end(j, "}");
}

static void
add_extensions(struct evc__json *j, const struct evc__facts *f)
{
	unsigned i;

	evc__json_begin(j, "extensions", "[");
	for (i = 0; i < f->n_extensions; i++) {
		evc__json_begin(j, NULL, "{");
		evc__json_number(j, "id", f->extensions[i].id);
		evc__json_string(j, "name", f->extensions[i].name);
		evc__json_seconds(j, "granted", f->extensions[i].granted);
		evc__json_string(j, "reason", f->extensions[i].reason);
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
}

static void
add_progress(struct evc__json *j, const char *text, double age)
{
	if (text == NULL) {
		evc__json_null(j, "progress");
		return;
	}
	evc__json_begin(j, "progress", "{");
	evc__json_string(j, "text", text);
	evc__json_seconds(j, "age", age > 0 ? age : 0);
	evc__json_end(j, "}");
}

static void
add_thread(struct evc__json *j, const struct evc__facts_thread *t)
{
	char one[2] = { '\0', '\0' }, frame[256];
	unsigned i;

	if (t == NULL) {
		evc__json_null(j, "thread");
		return;
	}
	one[0] = t->proc.state;
	evc__json_begin(j, "thread", "{");
	evc__json_integer(j, "tid", t->tid);
	evc__json_string_if(j, "state", one);
	evc__json_string_if(j, "state_name", evc__proc_state(t->proc.state));
	evc__json_string_if(j, "wchan", t->proc.wchan);
	evc__json_string_if(j, "syscall", t->proc.syscall);
	if (t->known)
		evc__json_boolean(j, "blocks_signal", t->deaf);
	else
		evc__json_null(j, "blocks_signal");
	evc__json_begin(j, "stack", "[");
	for (i = 0; i < t->n_frames; i++) {
		evc__stack_name(t->frame[i], frame, sizeof frame);
		evc__json_string(j, NULL, frame);
	}
	evc__json_end(j, "]");
	evc__json_string(j, "no_stack", t->no_stack);
	evc__json_end(j, "}");
}

static void
add_flags(struct evc__json *j, unsigned flags)
{
	static const struct {
		unsigned bit;
		const char *name;
	} known[] = {
		{ EVC_BACKGROUND, "background" },
		{ EVC_END_STOPS, "end_stops" },
		{ EVC_AFTER_STOP, "late" },
		{ EVC_WATCHED, "watched" },
		{ EVC_OWN_THREAD, "own_thread" },
		{ EVC_PAUSED, "paused" },
		{ EVC_FLUSH, "flush" },
		{ EVC_ON_DRAIN, "on_drain" },
		{ EVC_KICK, "kick" },
	};
	unsigned i;

	evc__json_begin(j, "flags", "[");
	for (i = 0; i < sizeof known / sizeof known[0]; i++)
		if (flags & known[i].bit)
			evc__json_string(j, NULL, known[i].name);
	evc__json_end(j, "]");
}

static void
add_member(struct evc__json *j, const struct evc__seen *s)
{
	const evc_member_info *m = &s->info;

	evc__json_begin(j, NULL, "{");
	evc__json_number(j, "id", m->id);
	evc__json_string(j, "kind", evc__member_kind(m->kind));
	evc__json_string(j, "name", m->name);
	evc__json_string(j, "state", evc__seen_state(s));
	evc__json_string(j, "where", m->where);
	evc__json_seconds_if(j, "age", m->age > 0	     ? m->age :
				       m->kind == EVC_TASK ? -1 :
							     0);
	evc__json_number(j, "round", m->round);
	add_flags(j, m->flags);
	evc__json_number_if(j, "tid", s->tid != 0, (uint64_t)s->tid);
	evc__json_number_if(j, "runs", m->kind == EVC_LOOPER, m->ticks);
	evc__json_number_if(j, "missed", m->kind == EVC_LOOPER, m->missed);
	evc__json_number_if(j, "count", m->kind == EVC_TASK, m->ticks);
	add_progress(j, s->progress, s->progress_age);
	evc__json_number(j, "unblocks", s->unblocks);
	evc__json_number(j, "kicks", s->kicks);
	if (s->extension != NULL) {
		evc__json_begin(j, "extension", "{");
		evc__json_seconds(j, "granted", s->extension->granted);
		evc__json_string(j, "reason", s->extension->reason);
		evc__json_end(j, "}");
	} else
		evc__json_null(j, "extension");
	add_thread(j, s->thread);
	evc__json_end(j, "}");
}

static void
add_loop(struct evc__json *j, const struct evc__facts_loop *l)
{
	static const char *const state[] = { "turning", "busy", "silent",
					     "destroyed", "held" };
	bool there = l->state != LOOP_DESTROYED;

	evc__json_begin(j, NULL, "{");
	evc__json_string(j, "name", l->name);
	evc__json_integer(j, "tid", l->tid);
	evc__json_string(j, "state", state[l->state]);
	evc__json_seconds_if(j, "since", there ? l->silence.since_s : -1);
	evc__json_boolean(j, "at_least", there && l->silence.least);
	evc__json_string(j, "in",
			 there && l->state != LOOP_TURNS ?
				 evc__busy_text(l->silence.kind) :
				 NULL);
	evc__json_string_if(j, "in_name", l->silence.name);
	evc__json_number(j, "tasks", l->n_tasks);
	evc__json_number(j, "loopers", l->n_loopers);
	evc__json_number(j, "runners", l->n_runners);
	evc__json_number(j, "turns", l->n_turns);
	evc__json_seconds(j, "longest_turn", l->longest);
	evc__json_number(j, "posts", l->n_posts);
	add_progress(j, l->progress, l->progress_age);
	add_thread(j, l->thread);
	evc__json_end(j, "}");
}

static void
add_counters(struct evc__json *j, const struct evc__facts *f)
{
	evc__json_begin(j, "counters", "{");
	evc__json_number(j, "stops", f->stats.stops);
	evc__json_number(j, "kicks", f->stats.kicks);
	evc__json_number(j, "unblocks", f->stats.unblocks);
	evc__json_number(j, "stragglers", f->stats.stragglers);
	evc__json_number(j, "missed", f->stats.missed);
	evc__json_seconds(j, "stop_seconds", f->stats.took_sum);
	evc__json_end(j, "}");
	evc__json_begin(j, "lost", "{");
	evc__json_number(j, "reasons", f->lost_reasons);
	evc__json_number(j, "extensions", f->lost_extensions);
	evc__json_number(j, "loops", f->lost_loops);
	evc__json_number(j, "scopes", f->lost_scopes);
	evc__json_boolean(j, "members", f->lost_members);
	evc__json_boolean(j, "threads", f->lost_threads);
	evc__json_boolean(j, "described", f->lost_described);
	evc__json_end(j, "}");
}

static void
add_described(struct evc__json *j, const struct evc__facts_part *p)
{
	evc__json_key(j, "described");
	evc__text_add(j->t, p != NULL && p->text != NULL && p->n > 0 ?
				    p->text : "null");
}

static void
add_parts(struct evc__json *j, const struct evc__facts_part *p)
{
	bool own = p != NULL && p->kind[0] == '\0';

	add_described(j, own ? p : NULL);
	evc__json_begin(j, "parts", "[");
	for (p = own ? p->next : p; p != NULL; p = p->next) {
		evc__json_begin(j, NULL, "{");
		evc__json_string(j, "kind", p->kind);
		evc__json_string(j, "name", p->name);
		add_described(j, p);
		evc__json_end(j, "}");
	}
	evc__json_end(j, "]");
}

static void
add_head(struct evc__json *j, const struct evc__facts *f)
{
	/* 32 names, each cut to 47 bytes, and the numbers of twins. */
	char path[2048];
	struct text t = evc__text_in(path, sizeof path);

	evc__facts_path(&t, f);
	evc__json_string(j, "name", f->name);
	evc__json_string(j, "path", path);
	evc__json_boolean(j, "scope", f->scope);
	evc__json_key(j, "phase");
	if (f->phased)
		evc__text_int(j->t, f->phase);
	else
		evc__text_add(j->t, "null");
	evc__json_number(j, "round", WORD_ROUND(f->word));
	evc__json_string(j, "state", evc__facts_state(f));
	evc__json_boolean(j, "joined", f->word & WORD_JOINED);
	evc__json_boolean(j, "set_up", !f->held);
	evc__json_number(j, "ended", f->n_ended);
	evc__json_number(j, "not_joined", f->n_unjoined);
	evc__json_number(j, "errors", f->n_errors);
	evc__json_seconds_if(j, "stop_age", f->stop_age);
	add_parts(j, f->parts);
}

static void
add_coord(struct evc__json *j, const char *key, const struct evc__facts *f)
{
	const struct evc__facts *s;
	unsigned i;

	evc__json_begin(j, key, "{");
	add_head(j, f);
	add_reasons(j, f);
	add_escalation(j, f);
	add_extensions(j, f);
	evc__json_begin(j, "members", "[");
	for (i = 0; i < f->n_members; i++)
		if (f->members[i].info.kind != EVC_SCOPE)
			add_member(j, &f->members[i]);
	evc__json_end(j, "]");
	evc__json_begin(j, "loops", "[");
	for (i = 0; i < f->n_loops; i++)
		add_loop(j, &f->loops[i]);
	evc__json_end(j, "]");
	evc__json_begin(j, "scopes", "[");
	for (s = f->below; s != NULL; s = s->next)
		add_coord(j, NULL, s);
	evc__json_end(j, "]");
	add_counters(j, f);
	evc__json_end(j, "}");
}

void
evc__json_write(struct text *t, const struct evc__facts *f)
{
	struct evc__json j = { t, false };

	evc__json_begin(&j, NULL, "{");
	evc__json_string(&j, "evcoord", evc_version());
	evc__json_integer(&j, "pid", getpid());
	evc__json_integer(&j, "stack_signal", evc__stack_signal());
	evc__json_number(&j, "stacks_left", f->stacks_left);
	add_coord(&j, "coordinator", f);
	evc__json_key(&j, "time");
	evc__text_ns(t, f->real_ns);
	evc__json_end(&j, "}");
	evc__text_add(t, "\n");
}
