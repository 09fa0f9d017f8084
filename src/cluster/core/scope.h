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
 *
 * Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_SCOPE_H
#define EVC_CLUSTER_SCOPE_H

struct cluster_life {
	evc_coord *parent;       /* creation */
	evc_id runner;           /* creation: the scope's member that stands for
				    the cluster */
	evc_id hold;             /* creation, and last close: a member of the
				    parent, from the last close until the scope
				    is freed */
	struct list by_name;     /* names: the list of open clusters */
	bool is_opening;         /* names: other threads that open this name have
				    to wait */
	bool stop_came;          /* lock: the stop came before the engine was
				    open */
	bool over;               /* lock: the members have ended, the engine is
				    closed */
	bool late;               /* lock: members were alive when `ended` was
				    called */
	bool looks_again;        /* lock: a thread waits for the end of these
				    members */
	bool let_go;             /* lock: the last handle is gone */
	bool undone;             /* lock: the cluster could not be opened */
	unsigned n_told;         /* lock: errors that the last close, or the log,
				    has heard of */
};

/* 0; refused, and nothing is left of it. */
evc_status evc__scope_begin(evc_cluster *cl);
void evc__scope_opened(evc_cluster *cl, evc_engine *engine);

/* scope_end.c */

/* After evc__scope_begin, when the opening fails.  The memory goes with the scope,
   which is now, or later when its loop has turned: not the caller's any more. */
void evc__scope_undo(evc_cluster *cl);
/* Of the scope's options. */
void evc__scope_ended(evc_coord *scope, const evc_verdict *v, void *cluster);
/* On the loop, once. */
void evc__scope_closed(evc_cluster *cl);
/* On the loop, lock held: hear of its destruction.  One that is the cluster's own
   is not destroyed under it; before the engine is there another thread may end all
   of this. */
void evc__scope_watch(evc_cluster *cl, struct ev_loop *loop);
/* On the loop: it may be destroyed from now on, nobody has to hear of it. */
void evc__scope_unwatch(evc_cluster *cl);
/* Lock not held.  If the program has destroyed the loop, and there was a stop:
   nobody will call `ended`, so a thread does what that would. */
void evc__scope_adrift(evc_cluster *cl);
/* The last handle is gone. */
void evc__scope_let_go(evc_cluster *cl);

#endif
