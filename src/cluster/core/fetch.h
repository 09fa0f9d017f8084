/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The remotes that stand in a value, as long as somebody fetches them.
 */
#ifndef EVC_CLUSTER_FETCH_H
#define EVC_CLUSTER_FETCH_H

#include "cluster/core/cluster.h"
#include "wire/walk.h"

/* The references in values, in their order. */
struct ref_list {
	struct walk_ref *at;
	unsigned n, room;
	bool no_memory;
};

/* Those in a value are added.  0, or refused; l->at is for sync_free in both
   cases. */
evc_status evc__refs_add(struct ref_list *l, const evc_value *v);

/* In the order of the value, one for each place; a reference of each. */
struct fetched {
	evc_remote **remotes;
	size_t n;
};

/* Lock not held, all of these. */

/* value may be NULL, which is nil.  0 and *ret; or refused, and nothing is
   kept. */
evc_status evc__fetched_find(evc_cluster *cl, const evc_value *value,
			     struct fetched *ret);
/* All have their outcomes, up to the first that failed: its error, or the value
   with the results in it. */
evc_status evc__fetched_take(const struct fetched *f, const evc_value *value,
			     evc_value *ret);
void evc__fetched_drop(evc_cluster *cl, struct fetched *f);

/* It is done: its outcome is handed out. */
evc_status evc__remote_outcome(evc_remote *r, evc_value *ret);

#endif
