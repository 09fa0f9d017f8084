/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remotes by their ids, if a value names them.  A value does not keep its
 * remotes, so a look-up may find none, and never touches freed memory.  Other
 * remotes cost nothing here.
 * Called by: the program (evc_pack); fetched.c, remote.c; cluster/calls.
 * Locks: the cluster's lock: held, but taken for a packed remote; remote.named
 * is atomic.
 */
#include "cluster/core/cluster.h"
#include "wire/walk.h"

struct entry {
	struct entry *next;
	evc_remote *r;
};

struct remote_table {
	struct entry **buckets;
	size_t n_buckets, n; /* n_buckets is a power of two */
};

static struct entry **
bucket_of(struct remote_table *t, uint64_t id)
{
	/* Ids count up, so their low bits spread evenly. */
	return &t->buckets[id & (t->n_buckets - 1)];
}

static void
grow(struct remote_table *t)
{
	struct entry **old = t->buckets, *e, *next, **to;
	size_t i, n = t->n_buckets;

	t->buckets = sync_alloc(n * 2, sizeof *t->buckets);
	if (t->buckets == NULL) {
		/* Without memory the chains get longer. */
		t->buckets = old;
		return;
	}
	t->n_buckets = n * 2;
	for (i = 0; i < n; i++)
		for (e = old[i]; e != NULL; e = next) {
			next = e->next;
			to = bucket_of(t, e->r->id);
			e->next = *to;
			*to = e;
		}
	sync_free(old);
}

static struct remote_table *
table_of(evc_cluster *cl)
{
	struct remote_table *t = cl->remotes.named;

	if (t != NULL)
		return t;
	t = sync_alloc(1, sizeof *t);
	if (t == NULL)
		return NULL;
	t->n_buckets = 64;
	t->buckets = sync_alloc(t->n_buckets, sizeof *t->buckets);
	if (t->buckets == NULL) {
		sync_free(t);
		return NULL;
	}
	return cl->remotes.named = t;
}

static evc_status
ref_of(evc_remote *r, uint32_t *ret_serial, uint64_t *ret_id)
{
	evc_cluster *cl = r->cl;
	struct remote_table *t;
	struct entry *e, **to;
	bool done;

	if (cluster_inherited(cl))
		return -EVC_FAILED_PRECONDITION;
	sync_lock(&cl->q.lock);
	done = sync_load_relaxed(&r->named);
	if (!done && (t = table_of(cl)) != NULL &&
	    (e = sync_alloc(1, sizeof *e)) != NULL) {
		if (t->n >= t->n_buckets)
			grow(t);
		e->r = r;
		to = bucket_of(t, r->id);
		e->next = *to;
		*to = e;
		t->n++;
		sync_store(&r->named, 1);
		done = true;
	}
	sync_unlock(&cl->q.lock);
	*ret_serial = cl->serial;
	*ret_id = r->id;
	return done ? 0 : -EVC_RESOURCE_EXHAUSTED;
}

evc_remote *
evc__remote_find(evc_cluster *cl, uint64_t id)
{
	struct entry *e;

	if (cl->remotes.named == NULL)
		return NULL;
	for (e = *bucket_of(cl->remotes.named, id); e != NULL; e = e->next)
		if (e->r->id == id)
			return e->r;
	return NULL;
}

void
evc__remote_unname(evc_remote *r)
{
	struct remote_table *t = r->cl->remotes.named;
	struct entry **at, *e;

	if (!sync_load_relaxed(&r->named))
		return;
	for (at = bucket_of(t, r->id); (e = *at)->r != r; at = &e->next)
		;
	*at = e->next;
	sync_free(e);
	t->n--;
	sync_store(&r->named, 0);
}

void
evc__remotes_destroy(evc_cluster *cl)
{
	/* Each remote has kept the cluster, so the table is empty. */
	if (cl->remotes.named != NULL) {
		sync_free(cl->remotes.named->buckets);
		sync_free(cl->remotes.named);
	}
}

/* ---- packing ---- */

const struct pack_refs evc__pack_refs = { ref_of, evc__per_worker_ref_of };

evc_status
evc_pack(evc_value *ret_value, const char *format, ...)
{
	evc_status st;
	va_list ap;

	va_start(ap, format);
	st = evc__pack(ret_value, &evc__pack_refs, format, ap);
	va_end(ap);
	return st;
}
