/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collects the facts of a report.
 * Called by: dump.c; report.c, json.c and metrics.c ask for names.
 * Locks: the lock of each coordinator in turn, its parent's for the place in
 * the tree; none while threads are looked at.
 */
#include "observe/facts.h"

#include "base/self.h"
#include "base/text.h"
#include "core/core.h"
#include "core/join/join.h"
#include "core/join/scope_join.h"
#include "core/life/scope.h"
#include "core/loop/post.h"

#define LAST_ERROR_SIZE 160

/* ---- names ---- */

const char *
evc__member_kind(unsigned kind)
{
	static const char *const name[] = {
		"?",	  "thread", "registered thread", "looper", "task",
		"runner", "hold",   "hook",		 "scope",
	};

	return name[kind < sizeof name / sizeof name[0] ? kind : 0];
}

const char *
evc__state_name(unsigned state)
{
	static const char *const name[] = { "?", "live", "ended",
					    "being joined", "joined" };

	return name[state <= EVC_REAPED ? state : 0];
}

const char *
evc__seen_state(const struct evc__seen *m)
{
	return m->called ? "called" : evc__state_name(m->info.state);
}

const char *
evc__facts_state(const struct evc__facts *f)
{
	return f->word & WORD_FLAG  ? "stopping" :
	       f->word & WORD_DRAIN ? "draining" :
				      "running";
}

const char *
evc__facts_root_name(const struct evc__facts *f)
{
	const evc_coord *a;
	const char *name;

	while (f->up != NULL)
		f = f->up;
	name = f->name;
	for (a = f->above; a != NULL; a = a->parent)
		name = a->name;
	return name;
}

/* A slash or backslash inside a name is marked, so no name looks like two. */
static void
add_escaped(struct text *t, const char *name)
{
	char one[2] = { '\0', '\0' };

	for (; *name != '\0'; name++) {
		if (*name == '/' || *name == '\\')
			evc__text_add(t, "\\");
		one[0] = *name;
		evc__text_add(t, one);
	}
}

/* Coordinators above the first facts live as long as the first coordinator. */
static void
add_above(struct text *t, const evc_coord *a)
{
	if (a == NULL || a->parent == NULL)
		return;
	add_above(t, a->parent);
	add_escaped(t, a->name);
	evc__text_add(t, "/");
}

void
evc__facts_path(struct text *t, const struct evc__facts *f)
{
	if (!f->scope)
		return;
	if (f->up == NULL)
		add_above(t, f->above);
	else if (f->up->scope) {
		evc__facts_path(t, f->up);
		evc__text_add(t, "/");
	}
	add_escaped(t, f->name);
	evc__twin_add(t, &f->twin);
}

/* ---- one coordinator; lock held ---- */

static void
copy_escalation(evc_coord *c, struct evc__facts *f)
{
	uint64_t stop = evc__stop_time(c, f->word);
	unsigned i;

	f->stop_age = stop != 0 ? ((double)f->now - (double)stop) / 1e9 : -1;
	for (i = 0; i < N_STEPS; i++) {
		uint64_t at = i == STEP_TOLD ? stop : c->wake.step_ns[i];

		f->step[i] = -1;
		if (stop == 0 || at == 0)
			continue;
		f->step[i] = at > stop ? (double)(at - stop) / 1e9 : 0;
	}
	f->n_kicks = c->wake.n_kicks;
	f->n_unblocks = c->wake.n_unblocks;
	f->kicks_lost = c->wake.kicks_lost;
	f->kick_error = c->wake.kick_error;
}

static unsigned
list_length(const struct list *head)
{
	struct list *n, *tmp;
	unsigned k = 0;

	LIST_EACH(n, tmp, head)
		k++;
	return k;
}

static void
copy_extensions(evc_coord *c, struct evc__facts *f)
{
	unsigned many = list_length(&c->wake.extensions);
	struct list *n, *tmp;

	if (many == 0)
		return;
	f->extensions = sync_alloc(many, sizeof *f->extensions);
	if (f->extensions == NULL) {
		f->lost_extensions = many;
		return;
	}
	LIST_EACH(n, tmp, &c->wake.extensions)
		f->extensions[f->n_extensions++] =
			*LIST_OF(n, struct evc__extension, node);
}

static void
copy_loop(evc_reactor *r, uint64_t w, struct evc__facts_loop *l)
{
	struct list *n, *tmp;

	memcpy(l->name, r->name, sizeof l->name);
	l->tid = r->tid;
	l->n_tasks = sync_load(&r->n_tasks);
	l->n_loopers = r->n_loopers;
	l->n_runners = r->n_runners;
	l->progress = sync_load_relaxed(&r->mark.text);
	l->progress_ns = sync_load_relaxed(&r->mark.ns);
	l->owner = r->owner;
	l->n_turns = sync_load_relaxed(&r->waker->n_turns);
	l->longest = (double)sync_load_relaxed(&r->waker->longest) / 1e9;
	l->n_posts = sync_load(&r->inbox->n);
	l->awaited = l->n_tasks + l->n_loopers + l->n_runners + l->n_posts > 0;
	LIST_EACH(n, tmp, &r->c->join.all)
		l->awaited |= LIST_OF(n, struct evc__join, node)->reactor == r;
	if (r->loop == NULL) {
		l->state = LOOP_DESTROYED;
		return;
	}
	l->silence = evc__reactor_silence(r);
	if (l->silence.silent)
		l->state = LOOP_SILENT;
	/* A thread that asks for a report from inside a callback is not stuck
	   there. */
	else if ((w & WORD_FLAG) && r->tid != evc__tid() &&
		 l->silence.kind != BUSY_APPLICATION &&
		 l->silence.kind != BUSY_TURN)
		l->state = LOOP_BUSY;
	else if (r->tid != evc__tid() && !l->silence.rests &&
		 l->silence.since_s >= HELD_S && l->silence.kind != BUSY_TURN)
		l->state = LOOP_HELD;
}

static void
copy_loops(evc_coord *c, struct evc__facts *f)
{
	unsigned many = list_length(&c->loop.reactors);
	struct list *n, *tmp;

	if (many == 0)
		return;
	f->loops = sync_alloc(many, sizeof *f->loops);
	if (f->loops == NULL) {
		f->lost_loops = many;
		return;
	}
	LIST_EACH(n, tmp, &c->loop.reactors)
		copy_loop(LIST_OF(n, evc_reactor, node), f->word,
			  &f->loops[f->n_loops++]);
}

/* Loops may have the same name. */
static void
number_loops(struct evc__facts *f)
{
	unsigned i, n = f->n_loops;
	struct evc__twin **all = n > 0 ? sync_alloc(n, sizeof *all) : NULL;

	for (i = 0; all != NULL && i < n; i++) {
		f->loops[i].twin.kind = "";
		f->loops[i].twin.name = f->loops[i].name;
		all[i] = &f->loops[i].twin;
	}
	if (all != NULL) {
		evc__number_twins(all, n);
	} else {
		f->lost_loops += n;
		f->n_loops = 0;
	}
	sync_free(all);
}

static void
copy_members(evc_coord *c, struct evc__facts *f)
{
	struct evc__snapshot s;
	unsigned i;

	f->lost_members = !evc__snapshot(c, &s);
	f->members = f->lost_members ? NULL : s.seen;
	f->n_members = f->lost_members ? 0 : s.n;
	for (i = 0; i < f->n_members; i++)
		f->n_unjoined += f->members[i].info.state == EVC_DONE;
	f->n_ended += f->n_unjoined;
}

/* No member runs `ended` of a scope, but `ended` may hang. */
static void
copy_ended(evc_coord *c, struct evc__facts *f)
{
	const struct evc__scope_join *sj = sync_load(&c->join.scope_join);
	evc_member_info *i = &f->ended.info;
	struct text where;

	if (sj == NULL || sj->calling == 0)
		return;
	f->ended.tid = sj->calling;
	i->kind = EVC_HOOK;
	i->state = EVC_LIVE;
	strcpy(i->name, "ended");
	where = evc__text_in(i->where, sizeof i->where);
	evc__text_add(&where, "on ");
	evc__text_add(&where, evc__home(c) != NULL ? evc__home(c)->name :
						     "helper thread");
}

static void
copy_counters(evc_coord *c, struct evc__facts *f)
{
	f->word = sync_load(&c->word);
	f->now = evc__now(c);
	f->n_ended = c->member.n_ended;
	f->n_errors = evc__n_errors(c, f->word);
	f->held = c->life.held;
	f->stats = c->wake.stats;
	f->n_scopes = list_length(&c->scopes);
}

/* ---- without the lock ---- */

static void
copy_reasons(evc_coord *c, struct evc__facts *f)
{
	evc_reason r;
	unsigned n, i;

	f->reasons = &f->first;
	for (n = 0; evc__reason_nth(c, n, n == 0 ? &f->first : &r); n++)
		;
	if (n <= 1) {
		f->n_reasons = n;
		return;
	}
	f->reasons = sync_alloc(n, sizeof *f->reasons);
	if (f->reasons == NULL) {
		f->reasons = &f->first;
		f->n_reasons = 1;
		f->lost_reasons = n - 1;
		return;
	}
	for (i = 0; i < n && evc__reason_nth(c, i, &f->reasons[i]); i++)
		;
	f->n_reasons = i;
}

static void take_facts(evc_coord *c, struct evc__facts *f);

/* The scopes below, each kept by its refgate until it is copied. */
static void
take_scopes(evc_coord *c, struct evc__facts *f)
{
	struct evc__facts **end = &f->below;
	struct evc__twin **all;
	unsigned n, i, k;
	evc_coord **below = evc__scopes_keep(c, &n);

	f->lost_scopes = below == NULL ? n : 0;
	for (i = k = 0; below != NULL && i < n; i++) {
		*end = sync_alloc(1, sizeof **end);
		if (*end != NULL) {
			(*end)->up = f;
			take_facts(below[i], *end);
			end = &(*end)->next;
			k++;
		} else
			f->lost_scopes++;
		evc__refgate_leave(&below[i]->life.gate);
	}
	/* The same memory, as many pointers, of another kind.  Scopes may have
	   the same name, but their counters need different labels: such scopes
	   are numbered, in the order in which they were made. */
	all = (struct evc__twin **)(void *)below;
	if (k > 0) {
		struct evc__facts *s = f->below;

		for (i = 0; s != NULL; s = s->next)
			all[i++] = &s->twin;
		evc__number_twins(all, k);
	}
	sync_free(below);
}

static void
find_extensions(struct evc__facts *f)
{
	unsigned i, k;

	for (i = 0; i < f->n_members; i++)
		for (k = 0; k < f->n_extensions; k++)
			if (f->members[i].info.id == f->extensions[k].id &&
			    f->extensions[k].id != 0)
				f->members[i].extension = &f->extensions[k];
}

static void
take_facts(evc_coord *c, struct evc__facts *f)
{
	uint64_t now;
	unsigned i;

	f->number = c->number;
	memcpy(f->name, c->name, sizeof f->name);
	f->twin.kind = "";
	f->twin.name = f->name;
	f->scope = c->parent != NULL;
	f->phase = c->join.phase;
	if (f->scope) {
		sync_lock(&c->parent->lock);
		f->phased = c->parent->join.n_phased > 0;
		sync_unlock(&c->parent->lock);
	}
	sync_lock(&c->lock);
	copy_counters(c, f);
	copy_escalation(c, f);
	copy_extensions(c, f);
	copy_members(c, f);
	copy_ended(c, f);
	copy_loops(c, f);
	sync_unlock(&c->lock);
	copy_reasons(c, f);
	number_loops(f);
	find_extensions(f);
	now = sync_mono_coarse();
	for (i = 0; i < f->n_members; i++)
		f->members[i].progress_age =
			((double)now - (double)f->members[i].progress_ns) / 1e9;
	for (i = 0; i < f->n_loops; i++)
		f->loops[i].progress_age =
			((double)now - (double)f->loops[i].progress_ns) / 1e9;
	take_scopes(c, f);
}

void
evc__facts_take(evc_coord *c, unsigned format, struct evc__facts *f)
{
	char before[LAST_ERROR_SIZE];

	/* Calls below are refused at the end of each list; the text of the
	   thread's last refused call is the program's. */
	evc__copy(before, sizeof before, evc_last_error());
	memset(f, 0, sizeof *f);
	f->above = c->parent;
	f->real_ns = sync_real();
	take_facts(c, f);
	if (format != EVC_REPORT_METRICS)
		evc__facts_look(f, format & EVC_REPORT_STACKS);
	evc__described_take(c, format, f);
	(void)evc_refuse(0, "%s", before);
}

void
evc__facts_free(struct evc__facts *f)
{
	struct evc__facts_thread *t, *next_thread;
	struct evc__facts *s, *next;

	for (s = f->below; s != NULL; s = next) {
		next = s->next;
		evc__facts_free(s);
		sync_free(s);
	}
	for (t = f->threads; t != NULL; t = next_thread) {
		next_thread = t->next;
		sync_free(t);
	}
	sync_free(f->members);
	sync_free(f->loops);
	sync_free(f->extensions);
	evc__described_free(f);
	if (f->reasons != &f->first)
		sync_free(f->reasons);
}
