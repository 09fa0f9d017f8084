/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetches on the loop.  A fetch waits for a single remote at a time, the first
 * in the order of the value without an outcome: an edge of this remote leads to
 * the fetch.  A fetch with its answer has no edge.
 * Called by: the program (evc_fetch_start); outcome.c; join.c on the loop.
 * Locks: the cluster's lock, for `at`, `edge` and the list.
 */
#include "cluster/core/fetch.h"

#include "base/unwind.h"

struct cluster_fetch {
	struct list link; /* lock: cl->turn.fetches, with an answer */
	evc_cluster *cl;
	evc_fetch_fn *fn;
	void *arg;
	evc_value value;
	struct fetched f;
	size_t at;        /* lock: remotes before this one have results */
	struct cluster_edge edge; /* lock: of the remote at `at` */
};

static void
destroy_fetch(struct cluster_fetch *k)
{
	evc_value_free(&k->value);
	evc__fetched_drop(k->cl, &k->f);
	sync_free(k);
}

/* Lock held: wait for the next remote without an outcome, or have the
   answer. */
void
evc__fetch_tell(struct cluster_fetch *k)
{
	evc_remote *r = NULL;

	for (; k->at < k->f.n; k->at++) {
		r = k->f.remotes[k->at];
		if (sync_load(&r->done) == 0 || r->code != 0)
			break;
	}
	if (k->at < k->f.n && sync_load(&r->done) == 0) {
		k->edge.fetches = k;
		evc__edge_add(r, &k->edge);
		return;
	}
	k->cl->turn.n_waiting--;
	list_append(&k->cl->turn.fetches, &k->link);
	(void)evc__turn_ask(k->cl);
}

/* ---- begin ---- */

static evc_status
fill_fetch(struct cluster_fetch *k, const evc_value *value)
{
	evc_status st = evc__fetched_find(k->cl, value, &k->f);

	if (st == 0 && value != NULL)
		st = evc_value_copy(&k->value, value);
	return st;
}

evc_status
evc_fetch_start(evc_cluster *cl, const evc_value *value, evc_fetch_fn *fn,
		void *arg)
{
	evc_status st = evc__cluster_check(cl);
	struct cluster_fetch *k;

	if (st == 0 && fn == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_fetch_start: fn is NULL");
	if (st < 0)
		return st;
	k = sync_alloc(1, sizeof *k);
	if (k == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	list_init(&k->link);
	k->cl = cl;
	k->fn = fn;
	k->arg = arg;
	st = fill_fetch(k, value);
	if (st == 0) {
		sync_lock(&cl->q.lock);
		/* The request for a turn shows whether a loop is there, before
		   the fetch counts on it. */
		if (evc__turn_ask(cl)) {
			cl->turn.n_waiting++;
			evc__fetch_tell(k);
		} else {
			st = evc_refuse(-EVC_FAILED_PRECONDITION,
					"evc_fetch_start: the loop is gone");
		}
		sync_unlock(&cl->q.lock);
	}
	if (st < 0)
		destroy_fetch(k);
	return st;
}

/* ---- end ---- */

WALLED_VOID(call, (const struct cluster_fetch *k, evc_status st,
		   const evc_value *value),
	    k->fn(k->cl, st, value, k->arg))

static void
answer_fetch(struct cluster_fetch *k)
{
	evc_value value = { NULL, 0 };
	evc_status st = evc__fetched_take(&k->f, &k->value, &value);

	call(k, st, &value);
	evc_value_free(&value);
	destroy_fetch(k);
}

static struct cluster_fetch *
next_due(evc_cluster *cl)
{
	struct list *n = NULL;

	sync_lock(&cl->q.lock);
	if (!list_empty(&cl->turn.fetches)) {
		n = cl->turn.fetches.next;
		list_remove(n);
	}
	sync_unlock(&cl->q.lock);
	return n != NULL ? LIST_OF(n, struct cluster_fetch, link) : NULL;
}

void
evc__fetch_turn(evc_cluster *cl)
{
	struct cluster_fetch *k;
	struct list *n, *tmp;
	size_t left = 0;

	/* Fetches that become due by these calls have the next turn. */
	sync_lock(&cl->q.lock);
	LIST_EACH(n, tmp, &cl->turn.fetches)
		left++;
	sync_unlock(&cl->q.lock);
	while (left-- > 0 && !cluster_inherited(cl) &&
	       (k = next_due(cl)) != NULL)
		answer_fetch(k);
}
