/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a cluster begins and ends.
 *
 *     evc__scope_begin   a scope of the coordinator, and a loop
 *     engine opened
 *     evc__scope_opened  from here on the program may close it
 *       ...              the scope's stop: all is cancelled, the engine leaves
 *     evc__scope_closed  on the loop, the engine's last word was heard: joins
 *                        wait for it no more
 *     `ended`            its members have ended, too: the engine is closed
 *     freed              by that, or by the last evc_cluster_close, whichever
 *                        comes later
 */
#ifndef EVC_CLUSTER_LIFE_H
#define EVC_CLUSTER_LIFE_H

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

/* scope.c */

/* 0; refused, and nothing is left of it. */
evc_status evc__scope_begin(evc_cluster *cl);
/* After it, when the opening fails.  The memory goes with the scope, which is
   now, or later when its loop has turned: not the caller's any more. */
void evc__scope_undo(evc_cluster *cl);
void evc__scope_opened(evc_cluster *cl, evc_engine *engine);
/* On the loop, once. */
void evc__scope_closed(evc_cluster *cl);
/* Lock not held.  If the program has destroyed the loop, and there was a stop:
   nobody will call `ended`, so a thread does what that would. */
void evc__scope_adrift(evc_cluster *cl);
/* The last handle is gone. */
void evc__scope_let_go(evc_cluster *cl);

#endif
