/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many workers there are: an engine announces them, or the program asks for
 * another number.
 * Of a smaller number the last workers leave.  Such a worker ends its functions,
 * takes those for this worker alone, and goes when there are none: the engine
 * asks (evc__sink_leave), and `gone` is the end.  The number and the counts stay
 * for a worker that comes later.
 * Called by: the program (evc_cluster_resize); engines, by evc__sink; info.c and
 * report.c.
 * Locks: the cluster's lock, taken by the program's and the engines' calls, held
 * by the others.
 */
#include "base/array.h"
#include "cluster/core/cluster.h"

#define WORKERS_MOST 1024 /* of the engines that can be resized */

/* ---- memory ---- */

static struct cluster_worker *
make_worker(unsigned index)
{
	struct cluster_worker *w = sync_alloc(1, sizeof *w);
	struct text t;

	if (w == NULL)
		return NULL;
	w->index = index;
	w->state = EVC_WORKER_STARTING;
	w->since_ns = w->down_ns = sync_mono();
	list_init(&w->running);
	list_init(&w->given_up);
	list_init(&w->news);
	t = evc__text_in(w->name, sizeof w->name);
	evc__text_fmt(&t, "worker %u", index);
	return w;
}

static bool
make_workers(evc_cluster *cl, unsigned n)
{
	struct workers *w = &cl->workers;

	if (n <= w->n_made)
		return true;
	if (!ARRAY_RESERVE(w->all, w->n_made, w->room, n - w->n_made) ||
	    !evc__closures_tags(&cl->q, n))
		return false;
	while (w->n_made < n) {
		w->all[w->n_made] = make_worker(w->n_made);
		if (w->all[w->n_made] == NULL)
			return false;
		w->n_made++;
	}
	return true;
}

/* ---- the engine's calls ---- */

bool
evc__sink_workers(void *core, unsigned n)
{
	evc_cluster *cl = core;
	bool fits;

	sync_lock(&cl->q.lock);
	fits = make_workers(cl, n);
	if (fits && n > cl->workers.n)
		cl->workers.n = cl->workers.n_wanted = n;
	sync_unlock(&cl->q.lock);
	return fits;
}

bool
evc__sink_leave(void *core, unsigned worker)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;
	bool yes;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	yes = w == NULL || (w->leaves && w->n_own == 0 &&
			    w->n_running + w->n_given_up == 0);
	if (yes && w != NULL)
		w->dismissed = true;
	sync_unlock(&cl->q.lock);
	return yes;
}

/* ---- how many ---- */

unsigned
evc__workers_count(const struct workers *w)
{
	unsigned i, n = w->n_wanted;

	for (i = n; i < w->n; i++)
		n += !w->all[i]->left;
	return n;
}

/* ---- the program's call ---- */

static void
keep_worker(evc_cluster *cl, struct cluster_worker *w)
{
	if (!w->leaves)
		return;
	/* An end under way is no answer to a later, smaller number: functions
	   may have come meanwhile. */
	w->leaves = w->dismissed = false;
	if (w->left) {
		w->left = false;
		w->state = EVC_WORKER_STARTING;
		w->since_ns = w->down_ns = sync_mono();
		evc__worker_says(w, NULL);
	} else if (w->state == EVC_WORKER_UP) {
		cl->workers.n_up++;
		w->since_ns = sync_mono();
		evc__worker_event(cl, w, EVC_WORKER_UP);
	}
}

static void
lose_worker(evc_cluster *cl, struct cluster_worker *w)
{
	if (w->leaves)
		return;
	w->leaves = true;
	if (w->state != EVC_WORKER_UP)
		return;
	cl->workers.n_up--;
	w->since_ns = sync_mono();
	evc__worker_event(cl, w, EVC_WORKER_LEAVING);
}

static void
set_wanted(evc_cluster *cl, unsigned n)
{
	struct workers *w = &cl->workers;
	unsigned i;

	w->n_wanted = n;
	if (w->n < n)
		w->n = n;
	cl->q.leaving = n;
	for (i = 0; i < w->n; i++)
		if (i < n)
			keep_worker(cl, w->all[i]);
		else
			lose_worker(cl, w->all[i]);
	if (w->n_up > 0) {
		w->alone_ns = 0;
		w->unavailable = false;
	}
	workers_forget_left(w);
}

/* Lock held. */
static evc_status
resize_cluster(evc_cluster *cl, unsigned n)
{
	evc_status st;

	/* The loop may not have seen the stop yet. */
	if (cl->stop.begun || evc_should_stop(cl->scope) ||
	    cl->engine.at == NULL || cl->engine.left)
		return evc_refuse(-EVC_CANCELLED, "the cluster was stopped");
	if (cl->engine.down[0] != '\0')
		return evc_refuse(-EVC_UNAVAILABLE, "%s", cl->engine.down);
	if (!make_workers(cl, n))
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for %u workers", n);
	st = cl->engine.ops->resize(cl->engine.at, n);
	if (st < 0)
		return st;
	set_wanted(cl, n);
	/* Functions that wait may have a worker, or none, from now on. */
	evc__turn_ask(cl);
	evc__tell(cl);
	return 0;
}

evc_status
evc_cluster_resize(evc_cluster *cl, unsigned n)
{
	evc_status st = evc__cluster_check(cl);
	const evc_engine_ops *ops;

	if (st < 0)
		return st;
	ops = cl->engine.ops;
	if (ops->resize == NULL)
		return evc_refuse(-EVC_UNIMPLEMENTED,
				  "evc_cluster_resize: the workers of %s come "
				  "and go by themselves%s",
				  ops->scheme,
				  ops->serve != NULL ? ", with their nodes" :
						       "");
	if (n == 0 || n > WORKERS_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_cluster_resize: a cluster has 1 to %d "
				  "workers, not %u",
				  WORKERS_MOST, n);
	sync_lock(&cl->q.lock);
	st = resize_cluster(cl, n);
	evc__cluster_unlock(cl);
	return st;
}
