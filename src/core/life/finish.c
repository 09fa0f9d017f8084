/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of main: evc_finish frees a coordinator with its parts, all or none.
 * First each part and the coordinator are asked; nothing is freed when one of
 * them has a reason against.
 *
 * Called by: the program.
 * Locks: the coordinator's, given up while a part is asked or freed.
 */
#include "base/text.h"
#include "base/unwind.h"
#include "core/core.h"
#include "core/join/join.h"
#include "core/life/part.h"
#include "core/life/scope.h"

#define EXIT_LATE 124 /* the exit code of timeout(1) */

/* ---- all or none ---- */

static void
add_reason(struct text *t, const char *why)
{
	static const char func[] = "evc_finish: ";

	if (strncmp(why, func, sizeof func - 1) == 0)
		why += sizeof func - 1;
	evc__text_fmt(t, t->len > 0 ? "; %s" : "%s", why);
}

WALLED(evc_status, call_may_free, (evc_part *p), p->may_free(p))
WALLED(evc_status, call_free, (evc_part *p), p->free_object(p))

/* No lock: add the reasons of the parts, and of their scopes, against a free. */
static void
ask_parts(evc_coord *c, struct text *t)
{
	struct evc__gone gone = { 0 };
	evc_part *p = c->life.parts;
	const char *why;
	char buf[160];

	for (; p != NULL; p = p->next_) {
		if (call_may_free(p) < 0) {
			add_reason(t, evc_last_error());
			continue;
		}
		if (p->scope == NULL)
			continue;
		gone.members = p->ends_members;
		gone.n_conds = p->n_conds;
		sync_lock(&p->scope->lock);
		evc__members_refresh(p->scope);
		why = evc__free_why_not(p->scope, &gone, FREE_FLUSH_NS, buf,
					sizeof buf);
		sync_unlock(&p->scope->lock);
		if (why != NULL) {
			add_reason(t, p->scope->name);
			evc__text_fmt(t, ": %s", why);
		}
	}
}

/* No lock: add the reason of c itself against a free, once its parts have
   gone. */
static void
ask_rest(evc_coord *c, struct text *t)
{
	struct evc__gone gone = { .parts = true };
	const char *why = NULL;
	const evc_part *p;
	char buf[160];

	evc__log_end(c);
	if (!evc__log_flush(c, FREE_FLUSH_NS))
		why = "a log hook has not returned";
	sync_lock(&c->lock);
	evc__members_refresh(c);
	sync_unlock(&c->lock);
	/* A thread that has ended may have left its scope. */
	evc__later_run(c);
	sync_lock(&c->lock);
	for (p = c->life.parts; p != NULL; p = p->next_)
		gone.n_conds += p->scope == NULL ? p->n_conds : 0;
	if (why == NULL)
		why = evc__free_why_not(c, &gone, FREE_FLUSH_NS, buf,
					sizeof buf);
	sync_unlock(&c->lock);
	if (why != NULL)
		add_reason(t, why);
}

/* Free all parts of c, the newest first, or none. */
static evc_status
free_parts(evc_coord *c)
{
	char reasons[240];
	struct text t = evc__lines_in(reasons, sizeof reasons);
	evc_part *p;
	evc_status st = 0;

	if (c->life.parts == NULL)
		return 0;
	ask_parts(c, &t);
	ask_rest(c, &t);
	if (t.len > 0)
		return evc__refuse(-EVC_FAILED_PRECONDITION, "%s", reasons);
	/* A change by another thread meanwhile is an error of the program. */
	while (st == 0 && (p = c->life.parts) != NULL) {
		st = call_free(p);
		if (st == 0 && c->life.parts == p)
			st = evc__refuse(-EVC_INTERNAL,
					 "a part has not gone");
	}
	return st;
}

int
evc_finish(evc_coord *c, evc_status result)
{
	/* EVC_DEADLINE_EXCEEDED may also be the code of an error: then the exit
	   code is 1. */
	bool error = c != NULL && WORD_ERR_CODE(sync_load(&c->word)) != 0;
	bool ours = c != NULL && evc__same_process(c);
	bool kept = ours && (free_parts(c) < 0 || evc_free(c) < 0);

	if (kept) {
		evc_log(c, EVC_LOG_WARNING, NULL, "not freed at the end: %s",
			evc_last_error());
		evc__log_settle(c, LOG_FLUSH_NS);
		evc__coord_release_handlers(c);
	}
	if (result == 0)
		return kept ? 1 : 0;
	return result == EVC_DEADLINE_EXCEEDED && !error ? EXIT_LATE : 1;
}
