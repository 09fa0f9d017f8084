/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The remotes in a value, during a fetch.
 */
#ifndef EVC_CLUSTER_FETCH_H
#define EVC_CLUSTER_FETCH_H

#include "cluster/core/cluster.h"
#include "wire/walk.h"

/* The references in values, in order. */
struct ref_list {
	struct walk_ref *at;
	unsigned n;
	size_t room;
	bool no_memory;
};

/* Add the references in v. 0, or refused; l->at is for sync_free in both
   cases. */
evc_status evc__refs_add(struct ref_list *l, const evc_value *v);

/* A reference of each remote, in the order of the value. */
struct fetched {
	evc_remote **remotes;
	size_t n;
};

/* Lock not held in all functions below. */

/* value NULL: nil. 0 and *ret; or refused, and nothing is kept. */
evc_status evc__fetched_find(evc_cluster *cl, const evc_value *value,
			     struct fetched *ret);
/* All remotes up to the first failure have outcomes: the error, or the value
   with the results in the places of the remotes. */
evc_status evc__fetched_take(const struct fetched *f, const evc_value *value,
			     evc_value *ret);
void evc__fetched_drop(evc_cluster *cl, struct fetched *f);

/* The remote is done: hand out its outcome. */
evc_status evc__remote_outcome(evc_remote *r, evc_value *ret);

#endif
