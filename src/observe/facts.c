/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collects the facts of a report.
 * Called by: dump.c; report.c, json.c and metrics.c ask for names.
 * Locks: the lock of each coordinator in turn, its parent's for the place in
 * the tree; none while threads are looked at.
 */
#include "observe/facts.h"

#include "base/prometheus.h"
#include "base/self.h"
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"
#include "core/join/join.h"
#include "core/life/scope.h"

/* Bytes of memory for a scope's own part at first, and attempts to have
   more. */
#define DESCRIBED_FEW 2048
#define DESCRIBED_TRIES 8
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
	if (f->twin > 0 || evc__is_numbered(f->name))
		evc__text_fmt(t, "#%u", f->twin + 1);
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
	memcpy(l->name, r->name, sizeof l->name);
	l->tid = r->tid;
	l->n_tasks = sync_load(&r->n_tasks);
	l->n_loopers = r->n_loopers;
	l->n_runners = r->n_runners;
	l->progress = sync_load_relaxed(&r->mark.text);
	l->progress_ns = sync_load_relaxed(&r->mark.ns);
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

static void
copy_members(evc_coord *c, struct evc__facts *f)
{
	struct evc__snapshot s;

	f->lost_members = !evc__snapshot(c, &s);
	f->members = f->lost_members ? NULL : s.seen;
	f->n_members = f->lost_members ? 0 : s.n;
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
	unsigned n, i;

	f->reasons = &f->first;
	for (n = 0; evc_reason_get(c, n, n == 0 ? &f->first : NULL) == 0; n++)
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
	for (i = 0; i < n && evc_reason_get(c, i, &f->reasons[i]) == 0; i++)
		;
	f->n_reasons = i;
}

static void
describe_runners(evc_coord *c, struct evc__facts *f)
{
	unsigned i;

	for (i = 0; i < f->n_members; i++)
		evc__describe_runner(c, &f->members[i].info);
}

WALLED(size_t, call_describe,
       (const struct evc__coord_life *l, unsigned form, char *buf, size_t n),
       l->describe(form, buf, n, l->describe_arg))

/* The scope's own part, in the form of the report.  The part may grow from call
   to call. */
static void
take_described(evc_coord *c, unsigned form, struct evc__facts *f)
{
	size_t room = DESCRIBED_FEW;
	unsigned tries;
	char *s;

	if (c->life.describe == NULL)
		return;
	for (tries = 0; tries < DESCRIBED_TRIES; tries++) {
		f->described = sync_alloc(room, 1);
		if (f->described == NULL)
			break;
		f->n_described =
			call_describe(&c->life, form, f->described, room);
		if (f->n_described < room)
			break;
		sync_free(f->described);
		f->described = NULL;
		room = f->n_described + f->n_described / 4 + 1;
	}
	f->lost_described = f->described == NULL;
	s = form != EVC_REPORT_JSON ? f->described : NULL;
	while (s != NULL && (s = strchr(s, '\n')) != NULL)
		*s++ = '\0';
}

static void take_facts(evc_coord *c, unsigned form, struct evc__facts *f);

static int
by_name(const void *a, const void *b)
{
	const struct evc__facts *x = *(struct evc__facts *const *)a;
	const struct evc__facts *y = *(struct evc__facts *const *)b;
	int d = strcmp(x->name, y->name);

	return d != 0 ? d : (x->twin > y->twin) - (x->twin < y->twin);
}

/* Scopes may have the same name, but their counters need different labels:
   number such scopes, in the order in which they were made. */
static void
number_twins(struct evc__facts **below, unsigned n)
{
	unsigned i, nth = 0;

	for (i = 0; i < n; i++)
		below[i]->twin = i;
	qsort(below, n, sizeof *below, by_name);
	for (i = 0; i < n; i++) {
		nth = i > 0 && strcmp(below[i]->name, below[i - 1]->name) == 0 ?
			      nth + 1 :
			      0;
		below[i]->twin = nth;
	}
}

/* The scopes below, each kept by its refgate until it is copied. */
static void
take_scopes(evc_coord *c, unsigned form, struct evc__facts *f)
{
	struct evc__facts **end = &f->below, **all;
	unsigned n, i, k;
	evc_coord **below = evc__scopes_keep(c, &n);

	f->lost_scopes = below == NULL ? n : 0;
	for (i = k = 0; below != NULL && i < n; i++) {
		*end = sync_alloc(1, sizeof **end);
		if (*end != NULL) {
			(*end)->up = f;
			take_facts(below[i], form, *end);
			end = &(*end)->next;
			k++;
		} else
			f->lost_scopes++;
		evc__refgate_leave(&below[i]->life.gate);
	}
	/* The same memory, as many pointers, of another kind. */
	all = (struct evc__facts **)(void *)below;
	if (k > 0) {
		struct evc__facts *s = f->below;

		for (i = 0; s != NULL; s = s->next)
			all[i++] = s;
		number_twins(all, k);
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
take_facts(evc_coord *c, unsigned form, struct evc__facts *f)
{
	uint64_t now;
	unsigned i;

	memcpy(f->name, c->name, sizeof f->name);
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
	copy_loops(c, f);
	sync_unlock(&c->lock);
	copy_reasons(c, f);
	describe_runners(c, f);
	find_extensions(f);
	now = sync_mono_coarse();
	for (i = 0; i < f->n_members; i++)
		f->members[i].progress_age =
			((double)now - (double)f->members[i].progress_ns) / 1e9;
	for (i = 0; i < f->n_loops; i++)
		f->loops[i].progress_age =
			((double)now - (double)f->loops[i].progress_ns) / 1e9;
	take_described(c, form, f);
	take_scopes(c, form, f);
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
	take_facts(c, REPORT_FORM(format), f);
	if (format != EVC_REPORT_METRICS)
		evc__facts_look(f, format & EVC_REPORT_STACKS);
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
	sync_free(f->described);
	if (f->reasons != &f->first)
		sync_free(f->reasons);
}
