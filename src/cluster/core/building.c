/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds: definitions that a worker was given and has not answered for.  A
 * worker that is lost in a build is lost by the build, not by the function
 * behind.  A build that ends one worker after the other is given up, so only
 * functions that use it fail.
 * A worker builds and runs in the order in which it was given work, so it is in
 * the oldest of its builds and functions.
 * Called by: sink.c, workers.c and report.c.
 * Locks: the cluster's lock, held.
 */
#include "cluster/core/cluster.h"

void
evc__building_begins(evc_cluster *cl, struct cluster_worker *w,
		     const evc_engine_def *def)
{
	unsigned i = w->n_building < BUILDS_KEPT ? w->n_building :
						    BUILDS_KEPT - 1;

	if (def->kind == EVC_DEF_DROP)
		return;
	w->building_behind[i] = cl->q.last_n;
	if (w->n_building == 0 && worker_oldest(w) == NULL) {
		w->moved_ns = sync_mono();
		if (cl->q.n_taken == 0)
			cl->watchdog.moved_ns = w->moved_ns;
	}
	if (w->n_building++ > 0)
		return;
	w->building = def->id;
}

void
evc__building_ends(evc_cluster *cl, struct cluster_worker *w, uint64_t id)
{
	const evc_per_worker *next;

	if (w->n_building == 0)
		return;
	w->building = 0;
	w->moved_ns = sync_mono();
	if (--w->n_building == 0)
		return;
	memmove(&w->building_behind[0], &w->building_behind[1],
		(BUILDS_KEPT - 1) * sizeof w->building_behind[0]);
	/* The definition was dropped: nobody knows its name, and nobody is
	   blamed. */
	next = evc__per_worker_after(cl, id);
	if (next != NULL)
		w->building = next->def.id;
}

void
evc__building_forget(struct cluster_worker *w)
{
	w->n_building = 0;
	w->building = 0;
}

/* In a build: all functions that were given before have come back. */
bool
evc__building_is_it(const struct cluster_worker *w)
{
	const struct closure *oldest = worker_oldest(w);

	return w->n_building > 0 &&
	       (oldest == NULL || oldest->n > w->building_behind[0]);
}

const char *
evc__building_name(const evc_cluster *cl, const struct cluster_worker *w)
{
	const evc_per_worker *p = evc__per_worker_by_id((evc_cluster *)cl,
							w->building);

	return p != NULL ? p->def.name : "a per-worker value";
}

void
evc__building_blame(evc_cluster *cl, struct cluster_worker *w)
{
	evc_per_worker *p = evc__per_worker_by_id(cl, w->building);
	unsigned most = cl->config.deaths;
	char line[TEXT_SIZE];
	struct text t = evc__text_in(line, sizeof line);

	if (p == NULL || ++p->deaths < most || most >= UINT8_MAX ||
	    p->given_up)
		return;
	p->given_up = true;
	evc__text_fmt(&t, "%s is not built any more: its build has ended %u"
			  " worker%s",
		      p->def.name, (unsigned)p->deaths,
		      p->deaths == 1 ? "" : "s");
	evc__death_note(cl, line, NULL);
}
