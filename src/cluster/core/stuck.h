/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a function hangs whose worker is about to be killed, for the log.
 * Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_STUCK_H
#define EVC_CLUSTER_STUCK_H

/* ---- lock held ---- */

/* The oldest function of w was asked to stop at `since`, and w is killed at
   `due`: ask w for its stack when it is time.  Returns when to look again. */
uint64_t evc__stuck_ask(evc_cluster *cl, struct cluster_worker *w,
			uint64_t since, uint64_t due, uint64_t now);
/* w is killed now, and is not waited for any more. */
void evc__stuck_silent(evc_cluster *cl, struct cluster_worker *w, uint64_t now);

/* ---- lock not held, loop thread ---- */

/* The log gets the answers. */
void evc__stuck_tell(evc_cluster *cl);

#endif
