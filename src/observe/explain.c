/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_explain: one paragraph that says why the coordinator stopped, or why the
 * stop does not end.
 * Called by: the program.
 * Locks: the coordinator's, taken.
 */
#include "base/reason.h"
#include "base/text.h"
#include "core/core.h"
#include "core/join/join.h"

/* "2026-01-31T12:00:00.123Z" */
static void
add_time(struct text *t, uint64_t real_ns)
{
	time_t s = (time_t)(real_ns / 1000000000u);
	struct tm tm;
	char day[32];

	if (gmtime_r(&s, &tm) == NULL ||
	    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		return;
	evc__text_fmt(t, "%s.%03uZ", day,
		      (unsigned)(real_ns / 1000000u % 1000u));
}

static void
add_who(struct text *t, const evc_reason *r)
{
	if (r->kind == EVC_BY_PARENT)
		evc__text_fmt(t, "coordinator \"%s\" above it (tid %d)",
			      r->who, r->tid);
	else if (r->by != 0)
		evc__text_fmt(t, "member \"%s\" (id %llu, tid %d)", r->who,
			      (unsigned long long)r->by, r->tid);
	else
		evc__text_fmt(t, "thread \"%s\" (tid %d)", r->who, r->tid);
}

static void
add_code(struct text *t, const char *verb, const evc_reason *r)
{
	evc__text_fmt(t, "%s%s (%d)", verb, evc_status_name(r->code), r->code);
	if (r->text[0] != '\0')
		evc__text_fmt(t, ": %s", r->text);
}

/* The act of the asking thread; asked: the word for a plain request. */
static void
add_what(struct text *t, const evc_reason *r, const char *asked)
{
	switch (r->kind) {
	case EVC_BY_ERROR:
		add_code(t, "reported ", r);
		break;
	case EVC_BY_MEMBER_END:
		evc__text_add(t, r->text);
		break;
	case EVC_BY_PARENT:
		evc__text_add(t, "handed its own down");
		break;
	case EVC_BY_SIGNAL:
		evc__text_fmt(t, "took %s", r->text);
		break;
	default:
		if (r->code != 0) {
			evc__text_fmt(t, "%s with ", asked);
			add_code(t, "", r);
		} else if (r->text[0] != '\0')
			evc__text_fmt(t, "%s, saying: %s", asked, r->text);
		else
			evc__text_fmt(t, "%s without a word", asked);
		break;
	}
	evc__text_errno(t, r->text, r->err);
	evc__text_place(t, r->file, r->line, r->func);
}

static void
add_later(struct text *t, const evc_coord *c, const evc_reason *first)
{
	unsigned i, n = 0;
	evc_reason r;

	for (i = 1; evc__reason_nth(c, i, &r); i++, n++) {
		evc__text_add(t, n == 0 ? " After that: " : "; ");
		/* A request may have come in while the winner's was being
		   written, and may be a little older. */
		evc__text_fmt(t, "%+.6f s ",
			      ((double)r.mono_ns - (double)first->mono_ns) /
				      1e9);
		add_who(t, &r);
		evc__text_add(t, " ");
		add_what(t, &r, "asked too");
	}
	if (n > 0)
		evc__text_add(t, ".");
}

static void
add_alive(struct text *t, evc_coord *c)
{
	char names[512];
	unsigned n;

	sync_lock(&c->lock);
	evc__members_probe(c);
	n = evc__names(c, NULL, evc_should_stop(c), 0, names, sizeof names);
	sync_unlock(&c->lock);
	if (n == 0)
		evc__text_add(t, " No member is alive.");
	else
		evc__text_fmt(t, " Alive (%u): %s.", n, names);
}

static void
explain_coord(struct text *t, const evc_coord *c)
{
	evc_reason r = { 0 }, error;
	uint64_t w = sync_load(&c->word);

	evc__text_fmt(t, "%s \"%s\", round %u: ",
		      c->parent != NULL ? "Scope" : "Coordinator", c->name,
		      WORD_ROUND(w));
	if (!(w & WORD_FLAG)) {
		evc__text_add(t, w & WORD_DRAIN ?
					 "a drain was requested, and no stop." :
					 "no stop was requested.");
		if (w & WORD_JOINED)
			evc__text_add(t, " A join found nothing alive and "
					 "closed the round.");
	} else if (!evc__reason_nth(c, 0, &r)) {
		evc__text_add(t, "a stop was requested; there was no room "
				 "for its reason.");
	} else {
		evc__text_add(t, "the stop was requested by ");
		add_who(t, &r);
		evc__text_add(t, " at ");
		add_time(t, r.real_ns);
		evc__text_fmt(t, ", %.3f s ago: it ",
			      (double)(evc__now(c) - r.mono_ns) / 1e9);
		add_what(t, &r, "asked");
		evc__text_add(t, ".");
		add_later(t, c, &r);
	}
	if (evc_raise_requested(c, &error) > 0)
		evc__text_fmt(t, " Errors: %u; the verdict is %s (%d), by "
				 "\"%s\".",
			      evc__n_errors(c, w), evc_status_name(error.code),
			      error.code, error.who);
	else if (w & WORD_FLAG)
		evc__text_add(t, " No error was reported.");
	add_alive(t, (evc_coord *)c);
	if (r.kind == EVC_BY_PARENT) {
		evc__text_add(t, " ");
		explain_coord(t, c->parent);
	}
}

size_t
evc_explain(const evc_coord *c, char *buf, size_t n)
{
	struct text t = evc__lines_in(buf, buf != NULL ? n : 0);

	if (evc__check(c, __func__) < 0)
		evc__text_add(&t, evc_last_error());
	else
		explain_coord(&t, c);
	return t.len;
}
