/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The workers of a cluster at one moment, for the parts of reports.
 */
#ifndef EVC_CLUSTER_TOLD_H
#define EVC_CLUSTER_TOLD_H

#include "cluster/core/cluster.h"

/* A worker at one moment. */
struct told {
	evc_cluster_worker_info i;
	char builds[NAME_SIZE]; /* the per-worker value that it builds; "" */
	double busy;            /* seconds in a function or a build; < 0: in
				   none */
};

/* ---- told.c ---- */

#define WORKER_STATES (EVC_WORKER_LEAVING + 1)

/* "up", "hung" and so on. */
const char *evc__worker_state_name(unsigned state);
/* The workers at one moment, the longest first; a line about the queue goes to
   t.  NULL: no workers, or no memory, and then t has a line about all. */
struct told *evc__told_copy(evc_cluster *cl, struct text *t, unsigned *ret_n);
/* How many of them are busy. */
unsigned evc__told_busy(const struct told *all, unsigned n);
/* The stacks of the busy workers, which stand first in `all`: *ret_n of them.
   NULL: no memory, or no worker is busy. */
struct worker_stack *evc__told_stacks(evc_cluster *cl, const struct told *all,
				      unsigned n, unsigned *ret_n);

/* ---- describe_json.c ---- */

void evc__cluster_json(evc_cluster *cl, const evc_cluster_info *info,
		       bool stacks, struct text *t);
void evc__cluster_metrics(evc_cluster *cl, const evc_cluster_info *info,
			  struct text *t);

#endif
