/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remotes by their ids, if a value names them.  A value does not keep its
 * remotes, so a look-up may find none, and never touches freed memory.  Other
 * remotes are not in the table.
 * Called by: the program (evc_pack); fetched.c, remote.c; cluster/calls.
 * Locks: the cluster's lock: held, but taken for a packed remote; remote.named
 * is atomic.
 */
#include "cluster/core/cluster.h"
#include "wire/walk.h"

static evc_status
name_remote(evc_remote *r, uint32_t *ret_serial, uint64_t *ret_id)
{
	evc_cluster *cl = r->cl;
	bool done;

	if (cluster_inherited(cl))
		return -EVC_FAILED_PRECONDITION;
	sync_lock(&cl->q.lock);
	done = sync_load_relaxed(&r->named);
	if (!done && evc__table_reserve(&cl->remotes.named, 1)) {
		evc__table_add(&cl->remotes.named, &r->node);
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
	return evc__table_find(&cl->remotes.named, id);
}

void
evc__remote_unname(evc_remote *r)
{
	if (!sync_load_relaxed(&r->named))
		return;
	evc__table_remove(&r->cl->remotes.named, &r->node);
	sync_store(&r->named, 0);
}

/* ---- packing ---- */

const struct pack_refs evc__pack_refs = { name_remote, evc__per_worker_ref_of };

evc_status
evc_pack(evc_value *ret_value, const char *format, ...)
{
	evc_status st;
	va_list ap;

	va_start(ap, format);
	st = evc__pack(ret_value, &evc__pack_refs, NULL, format, ap);
	va_end(ap);
	return st;
}
