/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rooms above all engines: a program becomes a coordinator of workers, or a
 * worker.
 */
#ifndef EVC_CLUSTER_OPEN_H
#define EVC_CLUSTER_OPEN_H

#include "cluster/core/cluster.h"

/* config.c */

/* A checked copy of the config, with defaults; its strings and arrays stay the
   caller's. config may be NULL. */
evc_status evc__config_fill(const evc_cluster_config *config,
			    evc_cluster_config *ret);

/* engine_find.c */

/* 0, or refused: the engine is incomplete or of another release. who: its name
   in the text. */
evc_status evc__engine_check(const evc_engine_ops *ops, const char *who);
/* The engine for an address. uri may be any text; a text that is no address has
   no engine. */
evc_status evc__engine_find(const evc_cluster_config *config, const char *uri,
			    const evc_engine_ops **ret);
/* 0, or refused: the engine does not know an option. */
evc_status evc__engine_knows(const evc_engine_ops *ops,
			     const struct cluster_uri *u);

/* names_open.c: clusters of this process with a name */

/* Take the name for a cluster that is about to be opened; or *ret_there, an
   open cluster, with one more handle.  Waits while another thread opens this
   name. */
evc_status evc__names_enter(evc_cluster *cl, evc_cluster **ret_there);
/* The opening has ended, with a cluster or without. */
void evc__names_opened(evc_cluster *cl, bool open);
/* One handle less: was it the last?  For clusters without a name, too. */
bool evc__names_leave(evc_cluster *cl);
/* A fork child begins with an empty list, and knows that it is a child. false:
   no memory. */
bool evc__names_fork_watch(void);

/* node.c */

/* evc_worker_main in a process that no cluster has started: a node of
   opts->uri. */
evc_status evc__worker_node(const evc_function *functions, unsigned n,
			    const evc_worker_opts *opts);

#endif
