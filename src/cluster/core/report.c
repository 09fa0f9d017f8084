/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports in words: what runs, and where.
 * Called by: the program (evc_cluster_report); join.c, scope.c and
 * cluster/calls for lines of text.
 * Locks: the cluster's lock: held for lines of text, taken for the report.
 */
#include "cluster/core/cluster.h"

/* ---- one worker, one cluster; lock held ---- */

/* "count on worker 2 (pid 7) for 3.1 s" */
static void
put_run(const evc_cluster_worker_info *i, struct text *t)
{
	evc__text_fmt(t, "%s on %s", i->function, i->name);
	if (i->where[0] != '\0')
		evc__text_fmt(t, " (%s)", i->where);
	evc__text_fmt(t, " for %.1f s", i->busy);
	if (i->n_running > 1)
		evc__text_fmt(t, ", and %u more that it has taken",
			      i->n_running - 1);
}

void
evc__worker_describe(const struct cluster_worker *w, uint64_t now,
		     struct text *t)
{
	evc_cluster_worker_info info;

	evc__worker_info(w, now, &info);
	if (info.busy >= 0)
		put_run(&info, t);
	else
		evc__text_add(t, w->name);
}

static bool
is_busy(const struct cluster_worker *w)
{
	return w->n_running + w->n_given_up > 0;
}

static void
put_queued(const evc_cluster *cl, struct text *t)
{
	if (cl->q.n_queued > 0)
		evc__text_fmt(t, "%llu queued",
			      (unsigned long long)cl->q.n_queued);
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
	const evc_per_worker *p;
	unsigned i;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (evc__building_is_it(w) &&
		    (longest == NULL || w->building_ns < longest->building_ns))
			longest = w;
	}
	if (longest == NULL)
		return;
	p = evc__per_worker_by_id((evc_cluster *)cl, longest->building);
	evc__text_fmt(t, "%s%s builds %s for %.1f s", t->len > 0 ? "; " : "",
		      longest->name,
		      p != NULL ? p->def.name : "a per-worker value",
		      (double)(now - longest->building_ns) / 1e9);
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

void
evc__cluster_describe(const evc_cluster *cl, uint64_t now, struct text *t)
{
	const struct cluster_worker *w, *longest = NULL;
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
		evc__worker_describe(longest, now, t);
	put_building(cl, now, t);
	if (n_busy > 1)
		evc__text_fmt(t, n_busy == 2 ?
					 "; %u more worker runs something" :
					 "; %u more workers run something",
			      n_busy - 1);
	if (n_fenced > 0)
		evc__text_fmt(t, "; %u fenced, perhaps still running", n_fenced);
	if (cl->q.n_held + cl->q.n_queued > 0) {
		evc__text_add(t, t->len > 0 ? "; " : "");
		put_queued(cl, t);
		if (cl->workers.n_up == 0)
			evc__text_add(t, ", and no worker is up");
	}
	if (cl->engine.trouble[0] != '\0')
		evc__text_fmt(t, "%s%s", t->len > 0 ? "; " : "",
			      cl->engine.trouble);
	if (cl->checkpoint.n_failed > 0 && t->len > 0)
		evc__text_add(t, "; ");
	evc__checkpoint_describe(cl, now, t);
	if (t->len > 0)
		return;
	evc__text_fmt(t, "%s, %u of %u workers up",
		      cl->stop.begun ? "its workers are ending" :
				       "nothing runs",
		      cl->workers.n_up, cl->workers.n);
	if (cl->stop.begun)
		put_ending(cl, t);
}

/* ---- the report ---- */

static int
the_longest_first(const void *a, const void *b)
{
	const evc_cluster_worker_info *x = a, *y = b;

	if (x->busy != y->busy)
		return x->busy < y->busy ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static const char *
state_text(unsigned state)
{
	switch (state) {
	case EVC_WORKER_STARTING:
		return "is starting";
	case EVC_WORKER_HUNG:
		return "hangs";
	case EVC_WORKER_FENCED:
		return "is fenced";
	case EVC_WORKER_GONE:
		return "is gone";
	default:
		return "is up";
	}
}

static void
put_worker(const evc_cluster_worker_info *i, struct text *t)
{
	if (i->busy >= 0) {
		put_run(i, t);
		if (i->state != EVC_WORKER_UP)
			evc__text_fmt(t, "; it %s", state_text(i->state));
	} else if (i->state != EVC_WORKER_UP) {
		evc__text_fmt(t, "%s %s, for %.1f s", i->name,
			      state_text(i->state), i->since);
	} else {
		return;
	}
	if (i->state != EVC_WORKER_UP && i->text[0] != '\0')
		evc__text_fmt(t, ": %s", i->text);
	evc__text_fmt(t, "\n");
}

/* The workers at one moment; a line about the queue goes to t.  NULL: no
   workers, or no memory, and then t has a line about all. */
static evc_cluster_worker_info *
look(evc_cluster *cl, struct text *t, unsigned *ret_n)
{
	evc_cluster_worker_info *all = NULL;
	unsigned i, room = 0, n;
	uint64_t now;

	sync_lock(&cl->q.lock);
	/* Memory is asked for without the lock, and more workers may come
	   meanwhile. */
	while (room < cl->workers.n) {
		room = cl->workers.n;
		sync_unlock(&cl->q.lock);
		sync_free(all);
		all = sync_alloc(room, sizeof *all);
		sync_lock(&cl->q.lock);
		if (all == NULL)
			break;
	}
	now = sync_mono();
	n = all != NULL ? cl->workers.n : 0;
	for (i = 0; i < n; i++)
		evc__worker_info(cl->workers.all[i], now, &all[i]);
	if (all == NULL && cl->workers.n > 0)
		evc__cluster_describe(cl, now, t);
	else
		put_queued(cl, t);
	if (t->len > 0)
		evc__text_fmt(t, "\n");
	if (n == cl->workers.n && cl->engine.trouble[0] != '\0')
		evc__text_fmt(t, "%s\n", cl->engine.trouble);
	if (n == cl->workers.n && cl->engine.down[0] != '\0')
		evc__text_fmt(t, "%s\n", cl->engine.down);
	if (n == cl->workers.n && cl->checkpoint.n_failed > 0) {
		evc__checkpoint_describe(cl, now, t);
		evc__text_fmt(t, "\n");
	}
	sync_unlock(&cl->q.lock);
	*ret_n = n;
	return all;
}

size_t
evc_cluster_report(const evc_cluster *cluster, char *buf, size_t n)
{
	struct text t = evc__lines_in(buf, n);
	char queued[200 + 2 * TEXT_ROOM];
	struct text q = evc__lines_in(queued, sizeof queued);
	evc_cluster_worker_info *all;
	unsigned i, n_all;

	if (evc__cluster_check(cluster) < 0)
		return 0;
	all = look((evc_cluster *)cluster, &q, &n_all);
	if (n_all > 0)
		qsort(all, n_all, sizeof *all, the_longest_first);
	for (i = 0; i < n_all; i++)
		put_worker(&all[i], &t);
	/* `queued` consists of lines. */
	t.lines = false;
	evc__text_add(&t, queued);
	if (t.len == 0)
		evc__text_fmt(&t, "nothing runs, nothing is queued\n");
	sync_free(all);
	return t.len;
}
