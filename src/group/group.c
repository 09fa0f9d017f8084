/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a group.  Workers are made with the group and by a resize, and
 * stay until the group is freed.
 * Called by: init.c, resize.c, hold.c and start.c.
 * Locks: evc__group_make needs the group's lock held; the others take no lock,
 * their group is not in use.
 */
#include "group/group.h"

#include "base/array.h"
#include "base/text.h"
#include "group/metrics.h"

/* The most time that a thread takes from the end of its function to its own
   end. */
#define TAIL 1.0

/* ---- its workers ---- */

static struct evc__worker *
worker_new(evc_group *g)
{
	struct evc__worker *w = sync_alloc(1, sizeof *w);

	if (w == NULL)
		return NULL;
	w->group = g;
	/* Tallies are freed with the metrics. */
	w->tally = evc__tally_new(g->metrics);
	if (w->tally != NULL)
		return w;
	sync_free(w);
	return NULL;
}

static void
worker_number(struct evc__worker *w, unsigned id)
{
	struct text t = evc__text_in(w->name, sizeof w->name);

	w->id = id;
	evc__text_fmt(&t, "%s/%u", w->group->name, id);
}

bool
evc__group_make(evc_group *g, unsigned n)
{
	unsigned i, id;

	if (n <= g->n_workers)
		return true;
	if (!ARRAY_RESERVE(g->worker, g->n_workers, g->room, n - g->n_workers))
		return false;
	for (i = g->n_workers; i < n; i++) {
		g->worker[i] = worker_new(g);
		if (g->worker[i] != NULL)
			continue;
		while (i > g->n_workers)
			sync_free(g->worker[--i]);
		return false;
	}
	/* Ids only for workers that were made, so no id is lost. */
	id = sync_add(&g->reg->next_id, n - g->n_workers);
	for (i = g->n_workers; i < n; i++)
		worker_number(g->worker[i], id++);
	g->n_workers = n;
	return true;
}

/* ---- its end ---- */

evc_status
evc__group_tails(evc_group *g)
{
	evc_join_opts j = { .grace = TAIL, .flags = EVC_JOIN_STRICT };
	evc_verdict v;

	return evc_join(g->scope, &j, &v);
}

void
evc__group_drop(evc_group *g)
{
	unsigned i;

	for (i = 0; i < g->n_workers; i++)
		sync_free(g->worker[i]);
	sync_free(g->worker);
	sync_free(g->error);
	evc__restart_drop(&g->restarts);
	evc__loggers_free(g->loggers);
	evc__metrics_free(g->metrics);
	sync_lock_destroy(&g->lock);
	sync_free(g);
}

evc_status
evc__group_destroy(evc_group *g)
{
	evc_status st;

	/* The last threads of the group may be on their way out. */
	(void)evc__group_tails(g);
	evc_cond_free(g->cond);
	g->cond = NULL;
	/* Refused when another part of the program has members in the scope, or
	   waits on the scope; the next start makes a new condition. */
	st = evc_free(g->scope);
	if (st == 0)
		evc__group_drop(g);
	return st;
}
