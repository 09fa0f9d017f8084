/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a program becomes a coordinator of workers, or a worker: what stands above
 * all engines.
 */
#ifndef EVC_CLUSTER_OPEN_H
#define EVC_CLUSTER_OPEN_H

#include "cluster/core/cluster.h"

/* config.c */

/* Checked, and copied with its defaults filled in; what it points to is the
   caller's still.  config may be NULL. */
evc_status evc__config_fill(const evc_cluster_config *config,
			    evc_cluster_config *ret);

/* engine_find.c */

/* Is this a whole engine, of this release?  0, or refused: who says which one it
   is. */
evc_status evc__engine_check(const evc_engine_ops *ops, const char *who);
/* Who serves this address?  It may be any text: if it is no address nobody
   does. */
evc_status evc__engine_find(const evc_cluster_config *config, const char *uri,
			    const evc_engine_ops **ret);
/* Does it know all options? */
evc_status evc__engine_knows(const evc_engine_ops *ops,
			     const struct cluster_uri *u);

/* names_open.c: the clusters of this process that have names */

/* A cluster that is about to be opened under its name, as the only one; or
   *ret_there, which is open already, with one more handle.  Waits while another
   thread opens that name. */
evc_status evc__names_enter(evc_cluster *cl, evc_cluster **ret_there);
/* It is open, or will not be. */
void evc__names_opened(evc_cluster *cl, bool open);
/* One handle less: was it the last?  Also of a cluster without a name. */
bool evc__names_leave(evc_cluster *cl);
/* A fork child begins with none of them, and knows that it is one.  false: no
   memory. */
bool evc__names_fork_watch(void);

/* node.c */

/* evc_worker_main in a process that no cluster has started: be a node of
   opts->uri. */
evc_status evc__worker_node(const evc_function *functions, unsigned n,
			    const evc_worker_opts *opts);

#endif
