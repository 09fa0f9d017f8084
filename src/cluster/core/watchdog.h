/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog of a cluster.  Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_WATCHDOG_H
#define EVC_CLUSTER_WATCHDOG_H

struct watchdog {
	uint64_t moved_ns;       /* lock: the last end of a function or build,
				    or the first begin after a time in which no
				    function ran */
	uint64_t told_ns;        /* lock: the begin of the last silence with a
				    report; 0: none */
	/* The looper's own. */
	uint64_t looked_ns;      /* the last look, or the begin */
	uint32_t turns;          /* cl->turn.n_turns at the last look */
	uint64_t turned_ns;      /* a look at which the loop had turned
				    since the look before */
};

/* Before any thread of the cluster, which would block the signal for stacks. */
void evc__watchdog_prepare(const evc_cluster *cl);
/* Before the engine is opened: 0, or refused. */
evc_status evc__watchdog_begin(evc_cluster *cl);

#endif
