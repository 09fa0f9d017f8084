/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remotes: references of the cluster, of functions and of the program.
 */
#include "cluster/core/cluster.h"

/* Bytes: engines are told of results that they may have kept, at the price of
   the lock. */
#define FORGET_LEAST 1024

/* ---- references ---- */

/* But for its reference of the cluster. */
static void
destroy(evc_remote *r)
{
	evc_value value = r->value;

	evc_value_free(&value);
	sync_free(r->text);
	if (r->more != NULL) {
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
		destroy(garbage);
	}
	/* Their references at once: this word is everybody's. */
	if (n > 1)
		sync_sub(&cl->refs, n - 1);
	evc__cluster_unref(cl);
}

/* Has a worker perhaps kept its result?  A small one is not worth it. */
static bool
is_kept(const evc_remote *r)
{
	return r->value.size >= FORGET_LEAST &&
	       r->cl->engine.ops->forget != NULL;
}

/* Lock held: nobody will have it among its arguments any more. */
static void
forget(evc_remote *r)
{
	evc_cluster *cl = r->cl;

	evc__remote_unname(r);
	if (is_kept(r) && cl->engine.at != NULL && !cl->engine.left)
		cl->engine.ops->forget(cl->engine.at, r->id);
}

void
evc__remote_drop(evc_remote *r)
{
	/* Pairs with the free of whoever else had one: what that one has done
	   to it is seen by who destroys it. */
	if (sync_sub(&r->refs, 1) != 1)
		return;
	forget(r);
	r->more_garbage = r->cl->remotes.garbage;
	r->cl->remotes.garbage = r;
}

void
evc__cluster_unlock(evc_cluster *cl)
{
	evc_remote *garbage = cl->remotes.garbage;

	cl->remotes.garbage = NULL;
	sync_unlock(&cl->q.lock);
	/* The last of them may take the cluster with it. */
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
	/* The last one; a look-up by id that comes now finds a count of 0 and
	   leaves it alone. */
	cl = r->cl;
	if (sync_load(&r->named) || is_kept(r)) {
		sync_lock(&cl->q.lock);
		forget(r);
		sync_unlock(&cl->q.lock);
	}
	destroy(r);
	evc__cluster_unref(cl);
}

void
evc__remote_count_fetch(evc_remote *r)
{
	if (sync_xchg(&r->fetched, 1) == 0)
		sync_add(&r->cl->remotes.n_fetched, 1);
}

/* ---- edges ---- */

bool
evc__edges_make(evc_remote *const *r, size_t n, struct cluster_edge **ret)
{
	struct cluster_edge *e;
	size_t i;

	for (i = 0; i < n; i++) {
		if (sync_load(&r[i]->done))
			continue;
		e = sync_alloc(1, sizeof *e);
		if (e == NULL) {
			evc__edges_free(*ret);
			*ret = NULL;
			return false;
		}
		e->next = *ret;
		*ret = e;
	}
	return true;
}

void
evc__edges_free(struct cluster_edge *e)
{
	struct cluster_edge *next;

	for (; e != NULL; e = next) {
		next = e->next;
		sync_free(e);
	}
}
