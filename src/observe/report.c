/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report as text: the scope's own part, all kept reasons, the steps, and all
 * live members, then the scopes below, indented.  For a late member: its place,
 * its act, and since when.
 * Called by: dump.c.
 * Locks: none; facts.c has copied the facts.
 */
#include "observe/facts.h"

#include "base/kick.h"
#include "base/reason.h"
#include "base/text.h"
#include "observe/trace_lanes.h"

/* One coordinator's part. */
struct part {
	struct text *t;
	const struct evc__facts *f;
	int indent;
};

static void
begin_line(const struct part *p, int more)
{
	evc__text_fmt(p->t, "%*s", p->indent + more, "");
}

static void
add_line(const struct part *p, int more, const char *line)
{
	begin_line(p, more);
	evc__text_add(p->t, line);
	evc__text_fmt(p->t, "\n");
}

static const char *
plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- the coordinator itself ---- */

static void
add_head(const struct part *p)
{
	const struct evc__facts *f = p->f;

	begin_line(p, 0);
	evc__text_fmt(p->t, "%s \"%s\"", f->scope ? "scope" : "coordinator",
		      f->name);
	if (f->phased)
		evc__text_fmt(p->t, ", phase %d", f->phase);
	evc__text_fmt(p->t, ", round %u: %s%s%s, %u ended",
		      WORD_ROUND(f->word), evc__facts_state(f),
		      f->word & WORD_JOINED ? ", joined" : "",
		      f->held ? ", set-up not finished" : "", f->n_ended);
	if (f->n_unjoined > 0)
		evc__text_fmt(p->t, ", %u of them not joined yet",
			      f->n_unjoined);
	evc__text_fmt(p->t, "\n");
}

static void
add_described(const struct part *p)
{
	const struct evc__facts *f = p->f;
	const struct evc__facts_part *part;
	const char *line;

	if (f->lost_described)
		add_line(p, 2, "no memory to describe it");
	FACTS_EACH_LINE(line, part, f)
		add_line(p, 2, line);
}

static void
add_reasons(const struct part *p)
{
	const struct evc__facts *f = p->f;
	const evc_reason *r = f->reasons;
	unsigned i;

	begin_line(p, 0);
	evc__text_fmt(p->t, "reasons (errors: %u):\n", f->n_errors);
	for (i = 0; i < f->n_reasons; i++, r++) {
		begin_line(p, 2);
		evc__text_fmt(p->t,
			      "%2u %+.6f s  %s %s (%d) by \"%s\" (tid %d)",
			      i,
			      ((double)r->mono_ns -
			       (double)f->reasons->mono_ns) /
				      1e9,
			      evc__reason_kind(r->kind),
			      evc_status_name(r->code), r->code, r->who,
			      r->tid);
		if (r->text[0] != '\0')
			evc__text_fmt(p->t, ": %s", r->text);
		evc__text_errno(p->t, r->text, r->err);
		evc__text_place(p->t, r->file, r->line, r->func);
		evc__text_fmt(p->t, "\n");
	}
	if (i == 0)
		add_line(p, 2, "none");
	if (f->lost_reasons > 0) {
		begin_line(p, 2);
		evc__text_fmt(p->t, "no memory to list %u more\n",
			      f->lost_reasons);
	}
}

/* "escalation: told +0.000 s, hooks +0.000 s (14 calls), kicks +0.001 s (12)" */
static void
add_escalation(const struct part *p)
{
	const struct evc__facts *f = p->f;
	unsigned i, n = 0;

	if (!(f->word & WORD_FLAG))
		return;
	for (i = 0; i < N_STEPS; i++) {
		if (f->step[i] < 0)
			continue;
		if (n++ == 0) {
			begin_line(p, 0);
			evc__text_add(p->t, "escalation: ");
		} else
			evc__text_add(p->t, ", ");
		evc__text_fmt(p->t, "%s +%.3f s", evc__step_name(i),
			      f->step[i]);
		if (i == STEP_HOOKS)
			evc__text_fmt(p->t, " (%u call%s)", f->n_unblocks,
				      plural(f->n_unblocks));
		else if (i == STEP_KICKS)
			evc__text_fmt(p->t, f->kick_error != 0 ?
						    " (%u; others could not be "
						    "sent: %s)" :
						    " (%u)",
				      f->n_kicks, strerror(f->kick_error));
	}
	if (n > 0)
		evc__text_fmt(p->t, "\n");
	if (f->kicks_lost != NULL) {
		begin_line(p, 0);
		evc__text_fmt(p->t, "kicks wake nobody: signal %d %s\n",
			      evc__kick_signo(), f->kicks_lost);
	}
}

static bool
is_member(const struct evc__facts *f, const struct evc__extension *e)
{
	unsigned i;

	for (i = 0; i < f->n_members; i++)
		if (f->members[i].extension == e)
			return true;
	return false;
}

/* Extensions that no member's line will show. */
static void
add_extensions(const struct part *p)
{
	const struct evc__facts *f = p->f;
	const struct evc__extension *e = f->extensions;
	unsigned i;

	for (i = 0; i < f->n_extensions; i++, e++) {
		if (is_member(f, e))
			continue;
		begin_line(p, 0);
		evc__text_add(p->t, "extended by ");
		if (e->id != 0)
			evc__text_fmt(p->t, "#%llu \"%s\", which has ended",
				      (unsigned long long)e->id, e->name);
		else
			evc__text_fmt(p->t, "\"%s\" of a scope", e->name);
		evc__text_fmt(p->t, ": %.3f s more: %s\n", e->granted,
			      e->reason);
	}
	if (f->lost_extensions > 0) {
		begin_line(p, 0);
		evc__text_fmt(p->t, "no memory to list %u extensions\n",
			      f->lost_extensions);
	}
}

static void
add_counters(const struct part *p)
{
	const struct evc__stats *s = &p->f->stats;

	if (s->stops + s->kicks + s->unblocks + s->stragglers + s->missed == 0)
		return;
	begin_line(p, 0);
	evc__text_fmt(p->t,
		      "so far: %llu stop%s in %.3f s, %llu unblock call%s, "
		      "%llu kick%s, %llu straggler%s, %llu missed run%s\n",
		      (unsigned long long)s->stops, plural(s->stops),
		      s->took_sum, (unsigned long long)s->unblocks,
		      plural(s->unblocks), (unsigned long long)s->kicks,
		      plural(s->kicks), (unsigned long long)s->stragglers,
		      plural(s->stragglers), (unsigned long long)s->missed,
		      plural(s->missed));
}

/* ---- threads ---- */

/* Each thread once, with the thread's owner. */
static void
add_thread(const struct part *p, const struct evc__facts_thread *t,
	   const void *of, unsigned kicks)
{
	if (t == NULL)
		return;
	if (t->told) {
		add_line(p, 5, "its stack stands in another part");
		return;
	}
	if (t->owner == of) {
		evc__thread_write(p->t, p->indent + 5, t, kicks);
		return;
	}
	begin_line(p, 5);
	if (t->id != 0)
		evc__text_fmt(p->t, "its thread is #%llu of \"%s\"\n",
			      (unsigned long long)t->id, t->in->name);
	else
		evc__text_fmt(p->t, "its thread is the loop's\n");
}

static void
add_progress_text(const struct part *p, const char *text, double age)
{
	evc__text_fmt(p->t, "at \"%s\", %.3f s ago", text, age > 0 ? age : 0);
}

/* ---- members ---- */

/* "at "flushing", 3.204 s ago; unblocked 14 times, kicked 12 times" */
static void
add_progress(const struct part *p, const struct evc__seen *m)
{
	const char *sep = "";

	if (m->progress == NULL && m->unblocks == 0 && m->kicks == 0)
		return;
	begin_line(p, 5);
	if (m->progress != NULL) {
		add_progress_text(p, m->progress, m->progress_age);
		sep = "; ";
	}
	if (m->unblocks > 0) {
		evc__text_fmt(p->t, "%sunblocked %u time%s", sep, m->unblocks,
			      plural(m->unblocks));
		sep = ", ";
	}
	if (m->kicks > 0)
		evc__text_fmt(p->t, "%skicked %u time%s", sep, m->kicks,
			      plural(m->kicks));
	evc__text_fmt(p->t, "\n");
}

static void
add_member(const struct part *p, const struct evc__seen *s)
{
	const evc_member_info *m = &s->info;

	begin_line(p, 2);
	if (m->kind == EVC_TASK && m->ticks != 1) {
		evc__text_fmt(p->t, "%llu tasks \"%s\" %s\n",
			      (unsigned long long)m->ticks, m->name, m->where);
		return;
	}
	if (m->id != 0)
		evc__text_fmt(p->t, "#%llu ", (unsigned long long)m->id);
	evc__text_fmt(p->t, "%s \"%s\"", evc__member_kind(m->kind), m->name);
	if (m->where[0] != '\0')
		evc__text_fmt(p->t, " %s", m->where);
	evc__text_fmt(p->t, ", %s%s", evc__seen_state(s),
		      m->state == EVC_DONE ? ", not joined yet" : "");
	/* Only the loop's own thread knows the age of a task. */
	if (m->id != 0 || m->age > 0)
		evc__text_fmt(p->t, ", for %.3f s", m->age);
	if (m->kind == EVC_LOOPER)
		evc__text_fmt(p->t, ", %llu runs, %llu missed",
			      (unsigned long long)m->ticks,
			      (unsigned long long)m->missed);
	evc__text_fmt(p->t, "\n");
	add_progress(p, s);
	if (s->extension != NULL) {
		begin_line(p, 5);
		evc__text_fmt(p->t, "extended: %.3f s more: %s\n",
			      s->extension->granted, s->extension->reason);
	}
	add_thread(p, s->thread, s, s->kicks);
}

static void
add_members(const struct part *p)
{
	unsigned i, n = p->f->ended.tid != 0;

	add_line(p, 0, "members:");
	if (n > 0)
		add_member(p, &p->f->ended);
	for (i = 0; i < p->f->n_members; i++)
		/* Scopes have parts of their own. */
		if (p->f->members[i].info.kind != EVC_SCOPE) {
			add_member(p, &p->f->members[i]);
			n++;
		}
	if (p->f->lost_members)
		add_line(p, 2, "no memory to list them");
	else if (n == 0)
		add_line(p, 2, "none");
}

/* ---- loops ---- */

/* Loops that the stop did not reach, that are in a callback of ours, or that
   hang elsewhere: members of the loop hang there. */
static void
add_loop(const struct part *p, const struct evc__facts_loop *l)
{
	if ((l->state == LOOP_TURNS || l->state == LOOP_HELD) &&
	    l->thread == NULL)
		return;
	begin_line(p, 0);
	evc__loop_text(p->t, l);
	evc__text_fmt(p->t, "\n");
	if (l->progress != NULL) {
		begin_line(p, 5);
		add_progress_text(p, l->progress, l->progress_age);
		evc__text_fmt(p->t, "\n");
	}
	add_thread(p, l->thread, l, 0);
}

static void
add_loops(const struct part *p)
{
	unsigned i;

	for (i = 0; i < p->f->n_loops; i++)
		add_loop(p, &p->f->loops[i]);
	if (p->f->lost_loops > 0) {
		begin_line(p, 0);
		evc__text_fmt(p->t, "no memory to list %u loops\n",
			      p->f->lost_loops);
	}
}

/* ---- all of it ---- */

static void
add_part(struct text *t, const struct evc__facts *f, int indent)
{
	struct part p = { t, f, indent };
	const struct evc__facts *s;

	add_head(&p);
	add_described(&p);
	add_reasons(&p);
	add_escalation(&p);
	add_extensions(&p);
	add_members(&p);
	add_loops(&p);
	add_counters(&p);
	if (f->lost_scopes > 0) {
		begin_line(&p, 2);
		evc__text_fmt(t, "no memory to list %u scopes\n",
			      f->lost_scopes);
	}
	for (s = f->below; s != NULL; s = s->next)
		add_part(t, s, indent + 2);
}

void
evc__report_write(struct text *t, const struct evc__facts *f)
{
	t->lines = true;
	add_part(t, f, 0);
	/* Facts of the whole report, once. */
	if (f->stacks_left > 0)
		evc__text_fmt(t, "(%u more stacks not taken)\n",
			      f->stacks_left);
	if (f->no_signal)
		evc__text_fmt(t, "(no stacks: evc_stack_signal was not "
				 "called)\n");
	if (f->lost_threads)
		evc__text_fmt(t, "(no memory to look at all threads)\n");
}
