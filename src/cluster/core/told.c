/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The workers of a cluster at one moment, the busy ones first, and where they
 * stand.
 * Called by: describe.c and describe_json.c.
 * Locks: the cluster's, taken.
 */
#include "cluster/core/told.h"

static const char *const states[WORKER_STATES] = {
	[EVC_WORKER_STARTING] = "starting", [EVC_WORKER_UP] = "up",
	[EVC_WORKER_HUNG] = "hung",	    [EVC_WORKER_FENCED] = "fenced",
	[EVC_WORKER_GONE] = "gone",	    [EVC_WORKER_LEAVING] = "leaving",
};

const char *
evc__worker_state_name(unsigned state)
{
	return states[state];
}

static int
the_longest_first(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	if (x->busy != y->busy)
		return x->busy < y->busy ? 1 : -1;
	return x->i.index < y->i.index ? -1 : x->i.index > y->i.index;
}

/* Lock held. */
static void
tell_worker(evc_cluster *cl, const struct cluster_worker *w, uint64_t now,
	    struct told *ret)
{
	const evc_per_worker *p;

	evc__worker_info(w, now, &ret->i);
	ret->busy = ret->i.busy;
	ret->builds[0] = '\0';
	if (!evc__building_is_it(w))
		return;
	p = evc__per_worker_by_id(cl, w->building);
	evc__copy(ret->builds, sizeof ret->builds,
		  p != NULL ? p->def.name : "a per-worker value");
	ret->busy = (double)(now - w->building_ns) / 1e9;
}

unsigned
evc__told_busy(const struct told *all, unsigned n)
{
	unsigned i = 0;

	while (i < n && all[i].busy >= 0)
		i++;
	return i;
}

struct worker_stack *
evc__told_stacks(evc_cluster *cl, const struct told *all, unsigned n,
	    unsigned *ret_n)
{
	unsigned i, most = evc__told_busy(all, n);
	struct worker_stack *s;

	most = most < STACKS_MOST ? most : STACKS_MOST;
	s = most > 0 ? sync_alloc(most, sizeof *s) : NULL;
	*ret_n = s != NULL ? most : 0;
	for (i = 0; i < *ret_n; i++)
		s[i].index = all[i].i.index;
	if (s != NULL)
		evc__stacks_take(cl, s, most);
	return s;
}

struct told *
evc__told_copy(evc_cluster *cl, struct text *t, unsigned *ret_n)
{
	struct told *all = NULL;
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
		tell_worker(cl, cl->workers.all[i], now, &all[i]);
	if (all == NULL && cl->workers.n > 0)
		evc__cluster_describe(cl, now, t);
	else
		evc__queue_describe(cl, t);
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
	if (n > 0)
		qsort(all, n, sizeof *all, the_longest_first);
	return all;
}
