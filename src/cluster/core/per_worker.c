/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of definitions and drops for the workers; see per_worker.h.
 * Called by: cluster/calls; sink.c, workers.c, building.c, outcome.c and
 * report.c.
 * Locks: the cluster's lock, held, but in evc__per_worker_ref_of.
 */
#include "cluster/core/cluster.h"

#include "wire/walk.h"

#define ENTRY(n) LIST_OF(n, evc_per_worker, link)
/* Up to so many workers each one sweeps; of more this many of all do. */
#define SWEEP_ALWAYS 1024
#define SWEEPS 64

static bool
uses_defs(const struct cluster_worker *w)
{
	return w->defs_seen != DEFS_ALL &&
	       (w->state == EVC_WORKER_UP || w->state == EVC_WORKER_HUNG);
}

static void
wake_workers(evc_cluster *cl)
{
	unsigned i;

	/* Every worker: a wake of any would be enough for functions only. */
	for (i = 0; i < cl->workers.n; i++)
		if (uses_defs(cl->workers.all[i]))
			evc__wake(cl, (int)i);
}

static void
append_entry(evc_cluster *cl, evc_per_worker *p)
{
	/* The next even number: entries differ by at least 2. */
	cl->remotes.last_id = (cl->remotes.last_id | 1) + 1;
	p->seq = cl->remotes.last_id;
	list_append(&cl->workers.defs, &p->link);
}

/* The position of the living worker that is the furthest behind. */
static uint64_t
seen_by_all(const evc_cluster *cl)
{
	const struct cluster_worker *w;
	uint64_t least = DEFS_ALL;
	unsigned i;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (uses_defs(w) && w->defs_seen < least)
			least = w->defs_seen;
	}
	return least;
}

static bool
seen_by_some(const evc_cluster *cl, uint64_t seq)
{
	const struct cluster_worker *w;
	unsigned i;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (uses_defs(w) && w->defs_seen > seq)
			return true;
	}
	return false;
}

/* Each worker that comes by would look at all others: of many workers most put
   the sweep off, and the entries stay for a little longer. */
static bool
is_put_off(evc_cluster *cl)
{
	if (list_empty(&cl->workers.defs))
		return true;
	if (cl->workers.n <= SWEEP_ALWAYS ||
	    ++cl->workers.n_swept > cl->workers.n / SWEEPS)
		cl->workers.n_swept = 0;
	return cl->workers.n_swept > 0;
}

/* Free dropped entries that no worker has to see or reads. */
static void
sweep_drops(evc_cluster *cl)
{
	struct list *n, *tmp;
	uint64_t seen;

	if (is_put_off(cl))
		return;
	seen = seen_by_all(cl);
	LIST_EACH(n, tmp, &cl->workers.defs)
	{
		if (ENTRY(n)->seq + 2 > seen)
			break;
		if (ENTRY(n)->dropped) {
			list_remove(n);
			sync_free(ENTRY(n));
		}
	}
}

/* Free a drop that all workers with the dropped definition have seen.  Other
   workers were at the definition or before when it left the list. */
static void
sweep_drop(evc_cluster *cl, evc_per_worker *p)
{
	const struct cluster_worker *w;
	unsigned i;

	for (i = 0; i < cl->workers.n; i++) {
		w = cl->workers.all[i];
		if (uses_defs(w) && w->defs_seen > p->was &&
		    w->defs_seen < p->seq + 2)
			return;
	}
	list_remove(&p->link);
	sync_free(p);
}

static void
drop_def(evc_per_worker *p)
{
	evc_cluster *cl = p->cl;
	evc_per_worker *dataset = p->dataset;
	bool seen = seen_by_some(cl, p->seq);

	p->dropped = true;
	p->named = false;
	p->dataset = NULL;
	list_remove(&p->link);
	if (seen) {
		p->was = p->seq;
		append_entry(cl, p);
		wake_workers(cl);
	} else {
		sync_free(p);
	}
	/* The dataset's drop comes later, so workers free an iterator first. */
	if (dataset != NULL)
		evc__per_worker_unref(dataset);
}

/* ---- what the cluster asks ---- */

void
evc__per_worker_add(evc_cluster *cl, evc_per_worker *p)
{
	p->cl = cl;
	p->refs = 1;
	p->named = true;
	p->def.id = ++cl->remotes.last_id;
	append_entry(cl, p);
	wake_workers(cl);
}

evc_per_worker *
evc__per_worker_by_id(evc_cluster *cl, uint64_t id)
{
	struct list *n;

	/* Recent entries are used the most.  The id of an entry that is not
	   dropped is older than its place. */
	for (n = cl->workers.defs.prev; n != &cl->workers.defs; n = n->prev) {
		if (ENTRY(n)->def.id == id)
			return ENTRY(n)->dropped ? NULL : ENTRY(n);
		if (ENTRY(n)->seq < id)
			break;
	}
	return NULL;
}

evc_per_worker *
evc__per_worker_find(evc_cluster *cl, uint64_t id)
{
	evc_per_worker *p = evc__per_worker_by_id(cl, id);

	return p != NULL && p->named ? p : NULL;
}

evc_per_worker *
evc__per_worker_after(evc_cluster *cl, uint64_t id)
{
	evc_per_worker *p = evc__per_worker_by_id(cl, id);
	struct list *n;

	for (n = p != NULL ? p->link.next : &cl->workers.defs;
	     n != &cl->workers.defs; n = n->next)
		if (!ENTRY(n)->dropped)
			return ENTRY(n);
	return NULL;
}

void
evc__per_worker_ref(evc_per_worker *p)
{
	p->refs++;
}

void
evc__per_worker_unref(evc_per_worker *p)
{
	if (--p->refs == 0)
		drop_def(p);
}

void
evc__per_worker_ref_of(const evc_per_worker *p, uint32_t *ret_serial,
		       uint64_t *ret_id)
{
	*ret_serial = p->cl->serial;
	*ret_id = p->def.id;
}

void
evc__per_workers_destroy(evc_cluster *cl)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &cl->workers.defs)
	sync_free(ENTRY(n));
	list_init(&cl->workers.defs);
}

/* ---- what workers see ---- */

/* The first entry that the worker was not given; the list's head: none. */
static struct list *
not_seen(const evc_cluster *cl, const struct cluster_worker *w)
{
	const struct list *n = &cl->workers.defs;

	/* From the end: mostly the worker lacks at most the last entry. */
	if (w->defs_seen > 0)
		while (n->prev != &cl->workers.defs &&
		       ENTRY(n->prev)->seq >= w->defs_seen)
			n = n->prev;
	else
		n = n->next;
	return (struct list *)(uintptr_t)n;
}

static void
fill_def(const evc_per_worker *p, evc_engine_def *ret)
{
	*ret = p->def;
	if (p->dropped)
		*ret = (evc_engine_def){ .id = p->def.id,
					 .kind = EVC_DEF_DROP,
					 .name = p->def.name };
	else if (p->given_up)
		ret->kind = EVC_DEF_GIVEN_UP;
}

bool
evc__per_worker_next_def(evc_cluster *cl, struct cluster_worker *w,
			 evc_engine_def *ret)
{
	bool dropped = false;
	struct list *n, *before;

	if (w->defs_seen == DEFS_ALL || list_empty(&cl->workers.defs))
		return false;
	n = not_seen(cl, w);
	/* The worker reads its former entry no more. */
	if (w->defs_seen & 1) {
		before = n->prev;
		dropped = before != &cl->workers.defs && ENTRY(before)->dropped;
		w->defs_seen++;
		if (dropped)
			sweep_drop(cl, ENTRY(before));
	}
	while (n != &cl->workers.defs && ENTRY(n)->dropped &&
	       ENTRY(n)->seq <= w->defs_born) {
		w->defs_seen = ENTRY(n)->seq + 2;
		dropped = true;
		n = n->next;
	}
	if (n != &cl->workers.defs) {
		w->defs_seen = ENTRY(n)->seq + 1;
		fill_def(ENTRY(n), ret);
	}
	if (dropped)
		sweep_drops(cl);
	return n != &cl->workers.defs;
}

bool
evc__per_worker_is_ready(const evc_cluster *cl, const struct cluster_worker *w)
{
	return list_empty(&cl->workers.defs) ||
	       ENTRY(cl->workers.defs.prev)->seq < w->defs_seen;
}

void
evc__per_worker_life(evc_cluster *cl, struct cluster_worker *w, bool begins)
{
	w->defs_seen = begins ? 0 : DEFS_ALL;
	w->defs_born = cl->remotes.last_id;
	if (!begins)
		sweep_drops(cl);
}
