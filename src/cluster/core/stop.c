/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of functions and of the engine: after an error, without workers, by
 * the stop.  Each function here changes the state, tells the engine, and leaves
 * the rest to a turn of the loop.
 * Called by: core and calls.
 * Locks: the cluster's lock, held.
 */
#include "cluster/core/cluster.h"

/* ---- the engine leaves ---- */

/* The last save comes before the engine leaves: some engines keep the variables,
   and a function that hangs may never leave the others. */
static bool
last_save_is_over(evc_cluster *cl)
{
	if (cl->config.checkpoint == NULL || cl->checkpoint.first != FIRST_NONE)
		return true;
	if (cl->checkpoint.last == LAST_NONE) {
		cl->checkpoint.last = LAST_WANTED;
		/* Without a loop there is no answer. */
		if (!evc__turn_ask(cl))
			cl->checkpoint.last = LAST_SKIPPED;
	}
	return cl->checkpoint.last >= LAST_SKIPPED;
}

void
evc__leave_if_idle(evc_cluster *cl)
{
	if (!cl->stop.begun || cl->engine.left || cl->engine.at == NULL ||
	    cl->q.n_taken > 0 || !last_save_is_over(cl))
		return;
	/* A thread that is asking the engine calls this function again. */
	cl->asking.over = true;
	if (cl->asking.n > 0)
		return;
	cl->engine.left = true;
	cl->engine.ops->leave(cl->engine.at);
}

void
evc__tell(evc_cluster *cl)
{
	bool answer = cl->q.failed ? cl->q.n_taken == 0 :
				     closures_is_idle(&cl->q);

	if (!list_empty(&cl->turn.fetches) || cl->turn.want_writable ||
	    (answer && !list_empty(&cl->turn.joins)) ||
	    (cl->workers.n_up == 0 && cl->workers.alone_ns == 0 &&
	     !closures_is_idle(&cl->q)))
		evc__turn_ask(cl);
	if (cl->stop.begun)
		evc__leave_if_idle(cl);
}

/* ---- what runs ---- */

void
evc__stop_running(evc_cluster *cl)
{
	if (cl->q.n_taken == 0)
		return;
	if (cl->stop.asked_upto < cl->q.cancel_upto) {
		cl->stop.asked_upto = cl->q.cancel_upto;
		cl->stop.asked_ns = sync_mono();
		cl->stop.any_asked = true;
		if (cl->engine.at != NULL && !cl->engine.left)
			cl->engine.ops->cancel(cl->engine.at,
					       cl->q.cancel_upto);
		evc__turn_ask(cl);
	}
}

void
evc__end_all(evc_cluster *cl)
{
	evc__closures_cancel(&cl->q);
	evc__stop_running(cl);
}

/* ---- no worker ---- */

/* The reason of the worker that went last; NULL: none went. */
static const char *
last_reason(const evc_cluster *cl)
{
	const struct cluster_worker *w, *last = NULL;
	unsigned i;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (w->text != NULL &&
		    (last == NULL || w->since_ns > last->since_ns))
			last = w;
	}
	return last != NULL ? last->text : NULL;
}

/* The engine's words for the wait come first, because an operator can act on
   them. */
static void
put_no_worker(const evc_cluster *cl, struct text *t)
{
	const char *last = last_reason(cl);

	evc__text_fmt(t, "no worker for %g s", cl->config.worker_wait);
	cluster_add_trouble(cl, t);
	if (last != NULL) {
		evc__text_add(t, "; the last worker: ");
		evc__text_ends(t, last);
	} else if (cl->engine.trouble[0] == '\0')
		evc__text_add(t, "; none has ever been up");
}

void
evc__note_unavailable(evc_cluster *cl)
{
	evc_reason r = { .code = EVC_UNAVAILABLE, .kind = EVC_BY_ERROR };
	struct text t = evc__text_in(r.text, sizeof r.text);

	/* After the stop no function waits for a worker. */
	if (cl->q.failed || cl->stop.begun)
		return;
	r.mono_ns = sync_mono();
	r.real_ns = sync_real();
	if (cl->engine.down[0] != '\0')
		evc__text_add(&t, cl->engine.down);
	else
		put_no_worker(cl, &t);
	evc__closures_note(&cl->q, &r);
	evc__end_all(cl);
}

/* ---- the stop ---- */

void
evc__stop_all(evc_cluster *cl)
{
	if (cl->stop.begun)
		return;
	cl->stop.begun = true;
	cl->stop.begun_ns = sync_mono();
	evc__stacks_hurry(cl);
	evc__closures_stop(&cl->q);
	evc__stop_running(cl);
	evc__tell(cl);
}
