/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of text: what runs, and where.
 * Called by: join.c, scope.c, describe.c and cluster/calls.
 * Locks: the cluster's lock, held.
 */
#include "cluster/core/cluster.h"

/* ---- one worker, one cluster; lock held ---- */

void
evc__run_describe(const evc_cluster_worker_info *i, struct text *t)
{
	bool builds = i->builds[0] != '\0';

	if (!builds)
		evc__text_fmt(t, "%s on ", i->function);
	evc__text_add(t, i->name);
	if (i->where[0] != '\0')
		evc__text_fmt(t, " (%s)", i->where);
	if (builds)
		evc__text_fmt(t, " builds %s", i->builds);
	evc__text_fmt(t, " for %.1f s", i->busy);
	if (builds && i->n_running > 0)
		evc__text_fmt(t, i->n_running == 1 ?
					 ", and %u function waits behind that" :
					 ", and %u functions wait behind that",
			      i->n_running);
	else if (!builds && i->n_running > 1)
		evc__text_fmt(t, ", and %u more that it has taken",
			      i->n_running - 1);
}

void
evc__worker_describe(const evc_cluster *cl, const struct cluster_worker *w,
		     uint64_t now, struct text *t)
{
	evc_cluster_worker_info info;

	evc__worker_info(cl, w, now, &info);
	if (info.busy >= 0)
		evc__run_describe(&info, t);
	else
		evc__text_add(t, w->name);
}

/* The functions of a worker that builds have not begun. */
static bool
is_busy(const struct cluster_worker *w)
{
	return w->n_running + w->n_given_up > 0 && !evc__building_is_it(w);
}

void
evc__queue_describe(const evc_cluster *cl, struct text *t)
{
	const evc_remote *missing;

	if (cl->q.n_queued > 0)
		evc__text_fmt(t, "%llu queued",
			      (unsigned long long)cl->q.n_queued);
	if (cl->q.n_queued > 0 && closures_hold_back(&cl->q))
		evc__text_fmt(t, " until %s has run alone, which others have "
			      "overtaken",
			      remote_name(REMOTE_OF(
				      closures_first_alone(&cl->q))));
	if (cl->q.n_queued > 0 && cl->q.fits != NULL && cl->workers.n_up > 0) {
		missing = evc__missing_find((evc_cluster *)cl);
		evc__text_add(t, missing != NULL ? ", but " : "");
		if (missing != NULL)
			evc__missing_describe(cl, missing, t);
	}
	if (cl->q.n_held > 0)
		evc__text_fmt(t, "%s%llu waiting for inputs or a retry",
			      cl->q.n_queued > 0 ? ", " : "",
			      (unsigned long long)cl->q.n_held);
}

/* The longest build. */
static void
put_building(const evc_cluster *cl, uint64_t now, struct text *t)
{
	const struct cluster_worker *w, *longest = NULL;
	unsigned i, n = 0;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (!evc__building_is_it(w))
			continue;
		n++;
		if (longest == NULL || w->moved_ns < longest->moved_ns)
			longest = w;
	}
	if (longest == NULL)
		return;
	evc__text_add(t, t->len > 0 ? "; " : "");
	evc__worker_describe(cl, longest, now, t);
	if (n > 1)
		evc__text_fmt(t, n == 2 ? "; %u more worker builds something" :
					  "; %u more workers build something",
			      n - 1);
}

/* Workers that have not ended. */
static void
put_ending(const evc_cluster *cl, struct text *t)
{
	const struct cluster_worker *w, *first = NULL;
	unsigned i, n = 0;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (w->state == EVC_WORKER_GONE)
			continue;
		if (n++ == 0)
			first = w;
	}
	if (n == 0)
		return;
	evc__text_fmt(t, ": %s", first->name);
	if (first->where[0] != '\0')
		evc__text_fmt(t, " (%s)", first->where);
	if (n > 1)
		evc__text_fmt(t, ", and %u more", n - 1);
}

static void
put_cluster(const evc_cluster *cl, uint64_t now, struct text *t)
{
	const struct cluster_worker *w, *longest = NULL;
	unsigned n_leaving = evc__workers_count(&cl->workers) -
			     cl->workers.n_wanted;
	unsigned i, n_busy = 0, n_fenced = 0;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		n_fenced += w->state == EVC_WORKER_FENCED;
		if (!is_busy(w))
			continue;
		n_busy++;
		if (longest == NULL || w->moved_ns < longest->moved_ns)
			longest = w;
	}
	if (longest != NULL)
		evc__worker_describe(cl, longest, now, t);
	put_building(cl, now, t);
	if (n_busy > 1)
		evc__text_fmt(t, n_busy == 2 ?
					 "; %u more worker runs something" :
					 "; %u more workers run something",
			      n_busy - 1);
	if (n_fenced > 0)
		evc__text_fmt(t, "%s%u fenced, perhaps still running",
			      t->len > 0 ? "; " : "", n_fenced);
	if (cl->q.n_held + cl->q.n_queued > 0) {
		evc__text_add(t, t->len > 0 ? "; " : "");
		evc__queue_describe(cl, t);
		if (cl->workers.n_up == 0)
			evc__text_add(t, ", and no worker is up");
	}
	if (cl->engine.trouble[0] != '\0')
		evc__text_fmt(t, "%s%s", t->len > 0 ? "; " : "",
			      cl->engine.trouble);
	if (evc__checkpoint_is_due(cl) && t->len > 0)
		evc__text_add(t, "; ");
	evc__checkpoint_describe(cl, now, t);
	if (t->len > 0)
		return;
	evc__text_fmt(t, "%s, %u of %u workers up",
		      cl->stop.begun ? "its workers are ending" :
				       "nothing runs",
		      cl->workers.n_up, cl->workers.n_wanted);
	if (n_leaving > 0 && !cl->stop.begun)
		evc__text_fmt(t, ", %u more leave%s", n_leaving,
			      n_leaving == 1 ? "s" : "");
	if (cl->stop.begun)
		put_ending(cl, t);
}

void
evc__cluster_describe(const evc_cluster *cl, uint64_t now, struct text *t)
{
	/* The parts are set apart from each other, not from the words before. */
	size_t at = t->len < t->room ? t->len : t->room - 1;
	struct text own = evc__text_in(t->buf + at, t->room - at);

	own.lines = t->lines;
	put_cluster(cl, now, &own);
	t->len += own.len;
}
