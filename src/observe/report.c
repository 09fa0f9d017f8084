/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_report: all kept reasons and all members alive, a line each.
 */
#include "observe/observe.h"

#include "core/core.h"

static const char *
reason_kind(unsigned kind)
{
	static const char *const name[] = {
		"?",	  "request", "error",	      "member end",
		"signal", "empty",   "loop broken",
	};

	return name[kind < sizeof name / sizeof name[0] ? kind : 0];
}

static const char *
member_kind(unsigned kind)
{
	switch (kind) {
	case EVC_THREAD:
		return "thread";
	case EVC_REGISTERED:
		return "registered thread";
	case EVC_TASK:
		return "task";
	case EVC_HOLD:
		return "hold";
	default:
		return "hook";
	}
}

static const char *
state_name(unsigned state)
{
	static const char *const name[] = { "?", "live", "ended",
					    "being joined", "joined" };

	return name[state <= EVC_REAPED ? state : 0];
}

static void
add_reasons(struct text *t, const evc_coord *c)
{
	evc_reason r;
	uint64_t zero = 0;
	unsigned i;

	for (i = 0; evc_reason_get(c, i, &r) == 0; i++) {
		if (i == 0)
			zero = r.mono_ns;
		evc__text_fmt(t, "  %2u %+.6f s  %s %s (%d) by \"%s\" (tid %d)",
			      i, ((double)r.mono_ns - (double)zero) / 1e9,
			      reason_kind(r.kind), evc_status_name(r.code),
			      r.code, r.who, r.tid);
		if (r.text[0] != '\0')
			evc__text_fmt(t, ": %s", r.text);
		evc__add_errno_and_place(t, &r);
		evc__text_add(t, "\n");
	}
	if (i == 0)
		evc__text_add(t, "  none\n");
}

struct lines {
	struct text *t;
	unsigned n;
};

static bool
add_member(const evc_member_info *m, void *arg)
{
	struct lines *l = arg;

	l->n++;
	if (m->kind == EVC_TASK && m->ticks != 1) {
		evc__text_fmt(l->t, "  %llu tasks \"%s\" %s\n",
			      (unsigned long long)m->ticks, m->name, m->where);
		return true;
	}
	evc__text_add(l->t, "  ");
	if (m->id != 0)
		evc__text_fmt(l->t, "#%llu ", (unsigned long long)m->id);
	evc__text_fmt(l->t, "%s \"%s\"", member_kind(m->kind), m->name);
	if (m->where[0] != '\0')
		evc__text_fmt(l->t, " %s", m->where);
	evc__text_fmt(l->t, ", %s, for %.3f s\n", state_name(m->state),
		      m->age);
	return true;
}

size_t
evc_report(const evc_coord *c, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, buf != NULL ? n : 0);
	evc_status st = evc__check(c, __func__);
	struct lines l = { &t, 0 };
	pthread_mutex_t *lock;
	unsigned n_ended;
	uint64_t w;

	if (st < 0) {
		evc__text_add(&t, evc_last_error());
		return t.len;
	}
	lock = &((evc_coord *)c)->lock;
	sync_lock(lock);
	w = sync_load(&c->word);
	n_ended = c->n_ended;
	sync_unlock(lock);
	evc__text_fmt(&t, "coordinator \"%s\", round %u: %s%s, %u ended\n",
		      c->name, WORD_ROUND(w),
		      w & WORD_FLAG ? "stopping" : "running",
		      w & WORD_JOINED ? ", joined" : "", n_ended);
	evc__text_fmt(&t, "reasons (errors: %u):\n", evc__n_errors(c, w));
	add_reasons(&t, c);
	evc__text_add(&t, "members:\n");
	if (evc_member_each(c, add_member, &l) < 0)
		evc__text_add(&t, "  no memory to list them\n");
	else if (l.n == 0)
		evc__text_add(&t, "  none\n");
	return t.len;
}
