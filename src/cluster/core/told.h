/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The workers of a cluster at one moment, for the parts of reports.
 */
#ifndef EVC_CLUSTER_TOLD_H
#define EVC_CLUSTER_TOLD_H

#include "cluster/core/cluster.h"

#define TOLD_MOST 100 /* workers that a report names */

struct told_workers {
	evc_cluster_worker_info *at;
	unsigned n;      /* workers in `at` */
	unsigned n_all;  /* workers there are */
	unsigned n_busy; /* of all; n_down: neither busy nor up */
	unsigned n_down;
};

/* ---- told.c ---- */

#define WORKER_STATES (EVC_WORKER_LEAVING + 1)

/* "up", "hung" and so on. */
const char *evc__worker_state_name(unsigned state);
/* The workers at one moment: busy ones first, the longest of them in front, then
   those that are not up; a line about the queue goes to t.  Without memory none
   is told, and t has a line about all.  ret->at is for sync_free. */
void evc__told_copy(evc_cluster *cl, struct text *t, struct told_workers *ret);
/* The stacks of the busy workers, which stand first: *ret_n of them.  NULL: no
   memory, or no worker is busy. */
struct worker_stack *evc__told_stacks(evc_cluster *cl,
				      const struct told_workers *told,
				      unsigned *ret_n);

/* ---- describe_json.c ---- */

void evc__cluster_json(evc_cluster *cl, const evc_cluster_info *info,
		       bool stacks, struct text *t);
void evc__cluster_metrics(evc_cluster *cl, const evc_cluster_info *info,
			  struct text *t);

#endif
