/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster in the hands of the program: its close, its scope, and which of its
 * calls are allowed where.
 */
#include "cluster/core/life.h"

#include "base/self.h"

evc_status
evc__cluster_check(const evc_cluster *cl)
{
	if (cl == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT, "cluster is NULL");
	if (cluster_inherited(cl))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "this is a fork child, cluster %s is its"
				  " parent's",
				  cl->name);
	return 0;
}

/* Nobody has seen that thread yet: is it this one? */
static bool
is_loop_here(evc_cluster *cl)
{
	bool here;

	if (!evc__gate_enter(&cl->loop_gate))
		return false;
	here = evc_reactor_is_here(cl->reactor);
	evc__gate_leave(&cl->loop_gate);
	if (here)
		sync_store(&cl->loop_tid, evc__tid());
	return here;
}

bool
evc__cluster_on_loop(const evc_cluster *cl)
{
	/* Each thread compares with itself alone: it has stored what it finds,
	   or it finds another one's. */
	int tid = sync_load_relaxed(&cl->loop_tid);

	if (tid == 0)
		return is_loop_here((evc_cluster *)cl);
	/* The number may have another thread when its loop is gone. */
	return tid == evc__tid() && evc_loop_reactor(cl->loop) != NULL;
}

/* What the program has not heard of: no checkpoint, or an error. */
static evc_status
untold(evc_cluster *cl)
{
	char buf[TEXT_ROOM + 64] = "";
	struct text t = evc__text_in(buf, sizeof buf);
	const evc_reason *r;
	evc_status st = 0;

	sync_lock(&cl->q.lock);
	if (cl->unsaved.n > 0) {
		st = cl->unsaved.code;
		evc__checkpoint_describe(cl, sync_mono(), &t);
	} else if (cl->q.n_errors > 0) {
		r = &cl->q.errors[0];
		st = r->code;
		evc__text_fmt(&t, "%s%s%s", r->func,
			      r->func[0] != '\0' ? ": " : "", r->text);
	}
	cl->n_said = cl->q.n_errors;
	sync_unlock(&cl->q.lock);
	return st == 0 ? 0 : evc_refuse(st, "%s", buf);
}

void
evc__cluster_tell_rest(evc_cluster *cl)
{
	evc_reason r;
	bool more;

	do {
		sync_lock(&cl->q.lock);
		more = cl->n_said < cl->q.n_errors;
		if (more)
			r = cl->q.errors[cl->n_said++];
		sync_unlock(&cl->q.lock);
		if (more)
			evc_log(cl->scope, EVC_LOG_ERROR, &r,
				"after the close: %s%s%s%s%s: %s", r.func,
				r.who[0] != '\0' ? " on " : "", r.who,
				r.func[0] != '\0' ? ": " : "",
				evc_status_name(r.code), r.text);
	} while (more && !cluster_inherited(cl));
}

evc_status
evc_cluster_close(evc_cluster *cl)
{
	evc_status st = cl != NULL ? evc__cluster_check(cl) : 0;

	if (cl == NULL || st < 0)
		return st;
	st = untold(cl);
	if (!evc__names_leave(cl))
		return st;
	evc__scope_let_go(cl);
	/* That of the handles. */
	evc__cluster_unref(cl);
	return st;
}

evc_coord *
evc_cluster_scope(const evc_cluster *cl)
{
	return cl != NULL ? cl->scope : NULL;
}
