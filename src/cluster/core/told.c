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

/* ---- which of them ---- */

/* The place of a worker in the order: busy ones first, the longest of them in
   front; then those that are not up. */
struct place {
	enum { PLACE_BUSY, PLACE_DOWN, PLACE_UP } rank;
	uint64_t since; /* of a busy one */
	unsigned index;
};

struct places {
	struct place at[TOLD_MOST];
	unsigned n;
};

static bool
is_before(const struct place *a, const struct place *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank;
	if (a->since != b->since)
		return a->since < b->since;
	return a->index < b->index;
}

/* Lock held. */
static struct place
place_of(const struct cluster_worker *w)
{
	struct place p = { .rank = PLACE_UP, .index = w->index };

	if (evc__building_is_it(w) || worker_oldest(w) != NULL) {
		p.rank = PLACE_BUSY;
		p.since = w->moved_ns;
	} else if (worker_told_state(w) != EVC_WORKER_UP) {
		p.rank = PLACE_DOWN;
	}
	return p;
}

/* Keep the first TOLD_MOST. */
static void
note_place(struct places *all, const struct place *p)
{
	unsigned i = all->n;

	if (i == TOLD_MOST && !is_before(p, &all->at[i - 1]))
		return;
	all->n += i < TOLD_MOST;
	for (i = all->n - 1; i > 0 && is_before(p, &all->at[i - 1]); i--)
		all->at[i] = all->at[i - 1];
	all->at[i] = *p;
}

/* Lock held. */
static void
pick_workers(evc_cluster *cl, uint64_t now, struct told_workers *ret)
{
	struct places all = { .n = 0 };
	unsigned i;

	for (i = 0; i < cl->workers.n; i++) {
		const struct place p = place_of(cl->workers.all[i]);

		ret->n_busy += p.rank == PLACE_BUSY;
		ret->n_down += p.rank == PLACE_DOWN;
		note_place(&all, &p);
	}
	ret->n_all = cl->workers.n;
	if (ret->at == NULL)
		return;
	ret->n = all.n;
	for (i = 0; i < all.n; i++)
		evc__worker_info(cl, cl->workers.all[all.at[i].index], now,
				 &ret->at[i]);
}

struct worker_stack *
evc__told_stacks(evc_cluster *cl, const struct told_workers *told,
		 unsigned *ret_n)
{
	unsigned i, most = told->n_busy < told->n ? told->n_busy : told->n;
	struct worker_stack *s;

	most = most < STACKS_MOST ? most : STACKS_MOST;
	s = most > 0 ? sync_alloc(most, sizeof *s) : NULL;
	*ret_n = s != NULL ? most : 0;
	for (i = 0; i < *ret_n; i++)
		s[i].index = told->at[i].index;
	if (s != NULL)
		evc__stacks_take(cl, s, most);
	return s;
}

void
evc__told_copy(evc_cluster *cl, struct text *t, struct told_workers *ret)
{
	uint64_t now;
	bool some;

	*ret = (struct told_workers){
		.at = sync_alloc(TOLD_MOST, sizeof *ret->at),
	};
	sync_lock(&cl->q.lock);
	now = sync_mono();
	pick_workers(cl, now, ret);
	some = ret->n > 0 || ret->n_all == 0;
	if (some)
		evc__queue_describe(cl, t);
	else
		evc__cluster_describe(cl, now, t);
	if (t->len > 0)
		evc__text_fmt(t, "\n");
	if (some && cl->engine.trouble[0] != '\0')
		evc__text_fmt(t, "%s\n", cl->engine.trouble);
	if (some && cl->engine.down[0] != '\0')
		evc__text_fmt(t, "%s\n", cl->engine.down);
	if (some && evc__checkpoint_is_due(cl)) {
		evc__checkpoint_describe(cl, now, t);
		evc__text_fmt(t, "\n");
	}
	sync_unlock(&cl->q.lock);
}
