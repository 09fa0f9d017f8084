/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * References of remotes, held by the cluster, by functions and by the program;
 * and edges.
 * Called by: core, calls and open; the program (evc_remote_ref, _free).
 * Locks: the cluster's lock: held in hold and drop, given up by
 * evc__cluster_unlock; remote.refs is atomic.
 */
#include "cluster/core/cluster.h"

/* bytes: the engine hears of larger results that a worker may have kept, at the
   price of the lock */
#define FORGET_LEAST 1024

/* ---- references ---- */

/* Free all but the reference of the cluster. */
static void
destroy_remote(evc_remote *r)
{
	struct held_value value = { r->value, r->value_at };

	held_free(&value);
	sync_free(r->text);
	if (r->more != NULL) {
		sync_free(r->more->own);
		sync_free(r->more->inputs);
		sync_free(r->more->values);
		sync_free(r->more->uses);
		sync_free(r->more);
	}
	sync_free(r);
}

/* Lock not held. */
static void
free_garbage(evc_remote *garbage)
{
	evc_cluster *cl;
	evc_remote *next;
	uint32_t n = 0;

	if (garbage == NULL)
		return;
	cl = garbage->cl;
	for (; garbage != NULL; garbage = next, n++) {
		next = garbage->more_garbage;
		destroy_remote(garbage);
	}
	/* All references in one step: every thread uses this word. */
	if (n > 1)
		sync_sub(&cl->refs, n - 1);
	evc__cluster_unref(cl);
}

/* Has a worker perhaps kept the result?  A small one does not matter. */
static bool
is_kept(const evc_remote *r)
{
	return r->value.size >= FORGET_LEAST &&
	       r->cl->engine.ops->forget != NULL;
}

/* Lock held: no later function will have r among its arguments. */
static void
forget_remote(evc_remote *r)
{
	evc_cluster *cl = r->cl;

	evc__remote_unname(r);
	if (is_kept(r) && cl->engine.at != NULL && !cl->engine.left)
		cl->engine.ops->forget(cl->engine.at, r->id);
}

void
evc__remote_drop(evc_remote *r)
{
	/* Pairs with the drops of other owners: the destroyer sees their
	   work. */
	if (sync_sub(&r->refs, 1) != 1)
		return;
	forget_remote(r);
	r->more_garbage = r->cl->remotes.garbage;
	r->cl->remotes.garbage = r;
}

void
evc__cluster_unlock(evc_cluster *cl)
{
	evc_remote *garbage = cl->remotes.garbage;

	if (cl->q.alone_news)
		evc__alone_news(cl);
	cl->remotes.garbage = NULL;
	sync_unlock(&cl->q.lock);
	/* The last remote may free the cluster. */
	free_garbage(garbage);
}

bool
evc__remote_hold(evc_remote *r)
{
	uint32_t n = sync_load(&r->refs);

	while (n > 0)
		if (sync_cas(&r->refs, &n, n + 1))
			return true;
	return false;
}

evc_remote *
evc_remote_ref(evc_remote *r)
{
	if (r != NULL)
		sync_add(&r->refs, 1);
	return r;
}

void
evc_remote_free(evc_remote *r)
{
	evc_cluster *cl;

	/* In a fork child the memory is a copy, which nobody needs back. */
	if (r == NULL || cluster_inherited(r->cl) ||
	    sync_sub(&r->refs, 1) != 1)
		return;
	/* The last reference: a look-up by id now finds a count of 0, and
	   leaves the remote alone. */
	cl = r->cl;
	if (sync_load(&r->named) || is_kept(r)) {
		sync_lock(&cl->q.lock);
		forget_remote(r);
		sync_unlock(&cl->q.lock);
	}
	destroy_remote(r);
	evc__cluster_unref(cl);
}

void
evc__remote_count_fetch(evc_remote *r)
{
	if (sync_xchg(&r->fetched, 1) == 0)
		sync_add(&r->cl->remotes.n_fetched, 1);
}

/* ---- edges ---- */

void
evc__edge_add(evc_remote *r, struct cluster_edge *e)
{
	e->next = r->edges;
	if (e->next != NULL)
		e->next->at = &e->next;
	r->edges = e;
	e->at = &r->edges;
}

void
evc__edge_remove(struct cluster_edge *e)
{
	*e->at = e->next;
	if (e->next != NULL)
		e->next->at = e->at;
	e->at = NULL;
}
