/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors of a cluster that no call has raised: the parent's verdict gets them.
 * Called by: turn.c and scope_end.c.
 * Locks: the cluster's lock, taken.
 */
#include "cluster/core/cluster.h"

/* After this part of a stop errors that no call has raised are told, so that a
   join of the parent finds them. */
#define TELL_AT 0.95

/* Lock held: the time when the parent is to hear of an error.  0: now;
   SYNC_FOREVER: there is no error, or a call may still raise it. */
static uint64_t
untold_due(evc_cluster *cl, bool last)
{
	double age, left;

	if (cl->life.n_told >= cl->q.n_errors)
		return SYNC_FOREVER;
	if (last)
		return 0;
	if (!cl->stop.begun || cl->q.n_taken > 0 || cl->q.n_quiet > 0 ||
	    !list_empty(&cl->turn.joins))
		return SYNC_FOREVER;
	if (cl->engine.closed)
		return 0;
	left = evc__cluster_left(cl);
	age = (double)(sync_mono() - cl->stop.begun_ns) / 1e9;
	return evc__deadline_look(
		evc__after(cl->stop.begun_ns, evc__ns((age + left) * TELL_AT)),
		left);
}

/* An error stands in the verdict of a coordinator without a stop when a scope
   reports it.  The cluster's own scope does not. */
void
evc__cluster_tell_parent(evc_cluster *cl, const evc_reason *r)
{
	const char *when = cl->life.let_go ? "after the close: " : "";
	evc_scope_opts o = { .on_error = EVC_ON_ERROR_REPORT,
			     .config.flags = EVC_NO_HOME,
			     .no_log = true };
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);
	evc_coord *s;

	evc__text_fmt(&t, "%s: %s", cl->name, when);
	if (r->func[0] != '\0')
		evc__text_fmt(&t, "%s%s%s: ", r->func,
			      r->who[0] != '\0' ? " on " : "", r->who);
	evc__text_ends(&t, r->text);
	if (evc_scope_new(cl->life.parent, cl->name, &o, &s) < 0) {
		evc_log(cl->scope, EVC_LOG_ERROR, r, "%s%s: %s", when, r->func,
			r->text);
		return;
	}
	(void)evc_fail_at(s, r->code, r->err, NULL, 0, NULL, "%s", text);
	(void)evc_scope_ready(s);
	(void)evc_free(s);
}

uint64_t
evc__scope_errors(evc_cluster *cl, bool last)
{
	uint64_t due;
	bool now;
	evc_reason r;

	do {
		sync_lock(&cl->q.lock);
		due = untold_due(cl, last);
		now = evc__deadline_left_ns(due) == 0;
		if (now)
			r = cl->q.errors[cl->life.n_told++];
		sync_unlock(&cl->q.lock);
		if (now)
			evc__cluster_tell_parent(cl, &r);
	} while (now && !cluster_inherited(cl));
	return due;
}
