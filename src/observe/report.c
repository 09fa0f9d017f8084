/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_report: all kept reasons and all members alive, a line each, and the same
 * of the scopes below, indented.
 */
#include "observe/observe.h"

#include "core/scope.h"

static const char *
reason_kind(unsigned kind)
{
	static const char *const name[] = {
		"?",	  "request", "error",	    "member end",
		"signal", "empty",   "loop broken", "parent",
	};

	return name[kind < sizeof name / sizeof name[0] ? kind : 0];
}

static const char *
member_kind(unsigned kind)
{
	static const char *const name[] = {
		"?",	  "thread", "registered thread", "looper", "task",
		"runner", "hold",   "hook",		 "scope",
	};

	return name[kind < sizeof name / sizeof name[0] ? kind : 0];
}

static const char *
state_name(unsigned state)
{
	static const char *const name[] = { "?", "live", "ended",
					    "being joined", "joined" };

	return name[state <= EVC_REAPED ? state : 0];
}

/* One coordinator's part. */
struct part {
	struct text *t;
	int indent;
	unsigned n;
};

static void
begin_line(const struct part *p, int more)
{
	evc__text_fmt(p->t, "%*s", p->indent + more, "");
}

static void
add_reasons(const struct part *p, const evc_coord *c)
{
	evc_reason r;
	uint64_t zero = 0;
	unsigned i;

	for (i = 0; evc_reason_get(c, i, &r) == 0; i++) {
		if (i == 0)
			zero = r.mono_ns;
		begin_line(p, 2);
		evc__text_fmt(p->t,
			      "%2u %+.6f s  %s %s (%d) by \"%s\" (tid %d)",
			      i, ((double)r.mono_ns - (double)zero) / 1e9,
			      reason_kind(r.kind), evc_status_name(r.code),
			      r.code, r.who, r.tid);
		if (r.text[0] != '\0')
			evc__text_fmt(p->t, ": %s", r.text);
		evc__add_errno_and_place(p->t, &r);
		evc__text_add(p->t, "\n");
	}
	if (i == 0) {
		begin_line(p, 2);
		evc__text_add(p->t, "none\n");
	}
}

static bool
add_member(const evc_member_info *m, void *arg)
{
	struct part *p = arg;

	if (m->kind == EVC_SCOPE)
		return true; /* has a part of its own */
	p->n++;
	begin_line(p, 2);
	if (m->kind == EVC_TASK && m->ticks != 1) {
		evc__text_fmt(p->t, "%llu tasks \"%s\" %s\n",
			      (unsigned long long)m->ticks, m->name, m->where);
		return true;
	}
	if (m->id != 0)
		evc__text_fmt(p->t, "#%llu ", (unsigned long long)m->id);
	evc__text_fmt(p->t, "%s \"%s\"", member_kind(m->kind), m->name);
	if (m->where[0] != '\0')
		evc__text_fmt(p->t, " %s", m->where);
	evc__text_fmt(p->t, ", %s, for %.3f s", state_name(m->state), m->age);
	if (m->kind == EVC_LOOPER)
		evc__text_fmt(p->t, ", %llu runs, %llu missed",
			      (unsigned long long)m->ticks,
			      (unsigned long long)m->missed);
	evc__text_add(p->t, "\n");
	return true;
}

/* Loops that a stop did not reach: their members hang there. */
static void
add_loops(const struct part *p, evc_coord *c)
{
	struct list *n, *tmp;
	uint64_t w;

	sync_lock(&c->lock);
	w = sync_load(&c->word);
	LIST_EACH(n, tmp, &c->reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);
		const char *what = NULL;

		if (r->loop == NULL)
			what = "was destroyed";
		else if ((w & WORD_FLAG) &&
			 sync_load(&r->heard) != WORD_STOP_NUMBER(w))
			what = "has not turned since the stop";
		if (what == NULL)
			continue;
		begin_line(p, 0);
		evc__text_fmt(p->t, "loop \"%s\" (tid %d) %s\n", r->name,
			      r->tid, what);
	}
	sync_unlock(&c->lock);
}

static void
add_head(const struct part *p, evc_coord *c)
{
	unsigned n_ended;
	bool held, phased = false;
	uint64_t w;

	if (c->parent != NULL) {
		sync_lock(&c->parent->lock);
		phased = c->parent->n_phased > 0;
		sync_unlock(&c->parent->lock);
	}
	sync_lock(&c->lock);
	w = sync_load(&c->word);
	n_ended = c->n_ended;
	held = c->held;
	sync_unlock(&c->lock);
	begin_line(p, 0);
	evc__text_fmt(p->t, "%s \"%s\"",
		      c->parent != NULL ? "scope" : "coordinator", c->name);
	if (phased)
		evc__text_fmt(p->t, ", phase %d", c->phase);
	evc__text_fmt(p->t, ", round %u: %s%s%s, %u ended\n", WORD_ROUND(w),
		      w & WORD_FLAG  ? "stopping" :
		      w & WORD_DRAIN ? "draining" :
				       "running",
		      w & WORD_JOINED ? ", joined" : "",
		      held ? ", set-up not finished" : "", n_ended);
	begin_line(p, 0);
	evc__text_fmt(p->t, "reasons (errors: %u):\n", evc__n_errors(c, w));
}

static void add_part(struct text *t, evc_coord *c, int indent);

/* Those below, each kept by its gate. */
static void
add_scopes(const struct part *p, evc_coord *c)
{
	evc_coord **below = NULL;
	struct list *l, *tmp;
	unsigned n = 0, i = 0;

	sync_lock(&c->lock);
	LIST_EACH(l, tmp, &c->scopes)
		n++;
	if (n > 0)
		below = sync_alloc(n, sizeof *below);
	LIST_EACH(l, tmp, &c->scopes)
		if (below != NULL && evc__gate_enter(&SCOPE_OF(l)->gate))
			below[i++] = SCOPE_OF(l);
	sync_unlock(&c->lock);
	if (n > 0 && below == NULL) {
		begin_line(p, 2);
		evc__text_fmt(p->t, "no memory to list %u scopes\n", n);
	}
	for (n = i, i = 0; i < n; i++) {
		add_part(p->t, below[i], p->indent + 2);
		evc__gate_leave(&below[i]->gate);
	}
	sync_free(below);
}

static void
add_part(struct text *t, evc_coord *c, int indent)
{
	struct part p = { t, indent, 0 };

	add_head(&p, c);
	add_reasons(&p, c);
	begin_line(&p, 0);
	evc__text_add(t, "members:\n");
	if (evc_member_each(c, add_member, &p) < 0) {
		begin_line(&p, 2);
		evc__text_add(t, "no memory to list them\n");
	} else if (p.n == 0) {
		begin_line(&p, 2);
		evc__text_add(t, "none\n");
	}
	add_loops(&p, c);
	add_scopes(&p, c);
}

size_t
evc_report(const evc_coord *c, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, buf != NULL ? n : 0);

	if (evc__check(c, __func__) < 0)
		evc__text_add(&t, evc_last_error());
	else
		add_part(&t, (evc_coord *)c, 0);
	return t.len;
}
