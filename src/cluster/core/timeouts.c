/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of time: functions that were asked to stop, functions without a
 * worker.  At the end of the limit such a function ends, so that no join hangs.
 * Called by: turn.c.
 * Locks: the cluster's lock, held.
 */
#include "cluster/core/cluster.h"

/* ---- a function that was asked to stop ---- */

/* The time of the request to stop; 0: none. */
static uint64_t
asked_since(const evc_cluster *cl, const evc_remote *r)
{
	uint64_t all = r->closure.n <= cl->stop.asked_upto ?
			       cl->stop.asked_ns : 0;
	uint64_t alone = (r->flags & REMOTE_ASKED) ? r->done_ns : 0;

	if (all == 0 || alone == 0)
		return all + alone;
	return all < alone ? all : alone;
}

/* The function does not return, as far as anybody knows: it gets its outcome,
   and the worker keeps it.  Functions behind that cannot begin are
   cancelled. */
static void
leave_behind(struct cluster_worker *w, evc_remote *r, uint64_t grace,
	     bool hangs)
{
	struct outcome o = { .code = EVC_CANCELLED,
			     .kind = EVC_FAILED_CANCEL,
			     .text = "it was cancelled before it began" };
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	list_remove(&r->closure.link);
	w->n_running--;
	if (hangs) {
		evc__text_fmt(&t, "%s on %s has not returned %.3g s after it"
				  " was asked to stop",
			      remote_name(r), w->name, (double)grace / 1e9);
		evc__worker_says(w, text);
		t = evc__text_in(text, sizeof text);
		evc__text_fmt(&t, "it did not return in %.3g s after it was"
				  " asked to stop, on %s",
			      (double)grace / 1e9, w->name);
		o.code = EVC_UNAVAILABLE;
		o.kind = EVC_FAILED_WORKER;
		o.text = text;
		o.raise = true;
	}
	/* A reference for the worker, which still reads arguments and
	   inputs. */
	sync_add(&r->refs, 1);
	r->flags |= REMOTE_LEFT;
	evc__taken_fails(r, &o);
	list_append(&w->given_up, &r->closure.link);
	w->n_given_up++;
}

/* The grace of functions that were asked to stop at `since`: the config's, or
   the time of the scope's stop, if there is less. */
static uint64_t
grace_since(evc_cluster *cl, uint64_t since, uint64_t now)
{
	double age = now > since ? (double)(now - since) / 1e9 : 0;

	return evc__grace_within(evc__ns(cl->config.grace),
				 age + evc__cluster_left(cl));
}

/* Was a function of the worker asked to stop? */
static bool
any_asked(const evc_cluster *cl, const struct cluster_worker *w)
{
	const struct list *n;

	for (n = w->running.next; n != &w->running; n = n->next)
		if (asked_since(cl, LIST_OF(n, evc_remote, closure.link)) != 0)
			return true;
	return false;
}

static uint64_t
give_up_in(evc_cluster *cl, struct cluster_worker *w, uint64_t now)
{
	uint64_t grace, since, due, look;
	evc_remote *r;
	bool hangs, kills;

	/* Behind a build none has begun. */
	for (hangs = !evc__building_is_it(w); !list_empty(&w->running);
	     hangs = false) {
		r = LIST_OF(w->running.next, evc_remote, closure.link);
		since = asked_since(cl, r);
		if (since == 0)
			return SYNC_FOREVER;
		grace = grace_since(cl, since, now);
		due = evc__after(since, grace);
		/* The end of the stop may come nearer. */
		kills = cl->engine.ops->caps & EVC_ENGINE_KILLS;
		if (due > now) {
			look = kills ? evc__stuck_ask(cl, w, since, due, now) :
				       due;
			return evc__deadline_look(look, evc__cluster_left(cl));
		}
		if (kills) {
			evc__stuck_silent(cl, w, now);
			if (!w->told_kill)
				cl->engine.ops->kill(cl->engine.at, w->index);
			w->told_kill = true;
			return SYNC_FOREVER;
		}
		leave_behind(w, r, grace, hangs && w->n_given_up == 0);
		sync_store(&cl->workers.any_given_up, 1);
		if (w->state == EVC_WORKER_UP)
			evc__worker_hangs(cl, w);
	}
	return SYNC_FOREVER;
}

uint64_t
evc__give_up(evc_cluster *cl, uint64_t now)
{
	uint64_t soonest = SYNC_FOREVER, due;
	struct cluster_worker *w;
	bool any = false;
	unsigned i;

	/* There may be many workers, and mostly none was asked. */
	if (cl->engine.at == NULL || !cl->stop.any_asked)
		return soonest;
	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (w->n_running == 0)
			continue;
		if (w->state == EVC_WORKER_UP || w->state == EVC_WORKER_HUNG) {
			due = give_up_in(cl, w, now);
			soonest = due < soonest ? due : soonest;
		}
		any = any || any_asked(cl, w);
	}
	cl->stop.any_asked = any;
	evc__tell(cl);
	return soonest;
}

/* ---- no worker ---- */

/* Functions for a worker that does not come fail. */
static void
give_up_own(evc_cluster *cl, const struct cluster_worker *w)
{
	struct outcome o = { .code = EVC_UNAVAILABLE,
			     .kind = EVC_FAILED_WORKER,
			     .raise = true };
	struct closure *c;
	char text[DEATH_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	evc__text_fmt(&t, "%s was not up for %g s", w->name,
		      cl->config.worker_wait);
	cluster_add_trouble(cl, &t);
	if (w->text != NULL) {
		evc__text_add(&t, ": ");
		evc__text_ends(&t, w->text);
	}
	o.text = text;
	while ((c = evc__closures_own(&cl->q, w->index)) != NULL)
		evc__waiting_fails(REMOTE_OF(c), &o);
	evc__end_all(cl);
	evc__tell(cl);
}

/* No worker that is up can run r. */
static void
give_up_missing(evc_cluster *cl, evc_remote *r)
{
	struct outcome o = { .code = EVC_UNAVAILABLE,
			     .kind = EVC_FAILED_WORKER,
			     .raise = true };
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	evc__missing_describe(cl, r, &t);
	evc__text_fmt(&t, " for %g s", cl->config.worker_wait);
	o.text = text;
	evc__waiting_fails(r, &o);
	evc__end_all(cl);
	evc__tell(cl);
}

static uint64_t
mind_names(evc_cluster *cl, uint64_t now)
{
	evc_remote *r;
	uint64_t due, tell;

	if (cl->q.fits == NULL || cl->q.failed || cl->q.n_queued == 0)
		return SYNC_FOREVER;
	r = evc__missing_find(cl);
	/* Functions behind many others are looked at later. */
	if (r == NULL)
		return cl->q.n_queued < MISSING_LOOKS ?
			       SYNC_FOREVER :
			       evc__after(now, UINT64_C(500000000));
	due = evc__after(evc__missing_since(cl, r),
			 evc__ns(cl->config.worker_wait));
	if (due > now) {
		tell = evc__missing_note(cl, r, now);
		return tell < due ? tell : due;
	}
	give_up_missing(cl, r);
	return SYNC_FOREVER;
}

/* Workers are up; functions may be for another worker. */
static uint64_t
mind_own(evc_cluster *cl, uint64_t now)
{
	uint64_t soonest = SYNC_FOREVER, since, due;
	const struct cluster_worker *w;
	const struct closure *c;
	unsigned i;

	soonest = mind_names(cl, now);
	for (i = 0; i < cl->workers.n && cl->q.n_tagged > 0 && !cl->q.failed;
	     i++) {
		w = cl->workers.all[i];
		if (w->state == EVC_WORKER_UP ||
		    (c = evc__closures_own(&cl->q, i)) == NULL)
			continue;
		since = REMOTE_OF(c)->queued_ns;
		since = w->down_ns > since ? w->down_ns : since;
		due = evc__after(since, evc__ns(cl->config.worker_wait));
		if (due <= now)
			give_up_own(cl, w);
		else if (due < soonest)
			soonest = due;
	}
	return soonest;
}

uint64_t
evc__mind_workers(evc_cluster *cl, uint64_t now)
{
	uint64_t due;

	if (cl->workers.n_up > 0 || cl->workers.unavailable || cl->stop.begun ||
	    cl->q.n_held + cl->q.n_queued == 0) {
		cl->workers.alone_ns = 0;
		return cl->workers.n_up > 0 && !cl->stop.begun ?
			       mind_own(cl, now) : SYNC_FOREVER;
	}
	if (cl->workers.alone_ns == 0)
		cl->workers.alone_ns = now;
	due = evc__after(cl->workers.alone_ns, evc__ns(cl->config.worker_wait));
	if (due > now)
		return due;
	cl->workers.unavailable = true;
	evc__note_unavailable(cl);
	evc__tell(cl);
	return SYNC_FOREVER;
}
