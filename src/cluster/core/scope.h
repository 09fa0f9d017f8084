/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The begin and the end of a cluster.
 *
 *     evc__scope_begin   a scope of the coordinator, and a loop
 *     engine opened
 *     evc__scope_opened  from here on the program may close the cluster
 *       ...              the scope's stop: all is cancelled, the engine leaves
 *     evc__scope_closed  on the loop, after the engine's last word: joins wait
 *                        for the cluster no more
 *     `ended`            the scope's members have ended: the engine is closed
 *     freed              by `ended` or the last evc_cluster_close, whichever is
 *                        later
 *
 * Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_SCOPE_H
#define EVC_CLUSTER_SCOPE_H

#include <evcoord/unstable/inner_loop.h>

struct cluster_life {
	evc_coord *parent;       /* creation */
	evc_id runner;           /* creation: the scope's member that stands for
				    the cluster */
	evc_cond *kept;          /* creation: no thread waits for the condition,
				    but an abandoned coordinator keeps the scope
				    of a condition; NULL: the scope may go */
	evc_id hold;             /* creation, and last close: a member of the
				    parent, from the last close until the scope
				    is freed */
	/* Not beside the flags below: they have another lock, and a compiler may
	   read neighbours in one word. */
	bool is_opening;         /* names: other threads that open this name
				    have to wait */
	struct list by_name;     /* names: the list of open clusters */
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
	unsigned n_told;         /* lock: errors that the last close, or the
				    parent, has heard of */
};

/* Clusters and engines have watchers of descriptors, so a hosted reactor is not
   enough for them. */
static inline bool
evc__is_hosted(const evc_reactor *r)
{
	return evc_reactor_inner_loop(r) != evc_reactor_loop(r);
}

/* 0; refused, and nothing is left of the scope. */
evc_status evc__scope_begin(evc_cluster *cl);
void evc__scope_opened(evc_cluster *cl, evc_engine *engine);

/* scope_errors.c; the lock is not held */

/* An error goes into the parent's verdict. */
void evc__cluster_tell_parent(evc_cluster *cl, const evc_reason *r);
/* So do errors that no call has raised by the end of the stop.  last: no call
   comes any more.  Returns the time of the next look. */
uint64_t evc__scope_errors(evc_cluster *cl, bool last);

/* scope_end.c */

/* After evc__scope_begin, when the open fails.  The scope frees the memory, now
   or when its loop has turned: the cluster is not the caller's any more. */
void evc__scope_undo(evc_cluster *cl);
/* `ended` of the scope. */
void evc__scope_ended(evc_coord *scope, const evc_verdict *v, void *cluster);
/* On the loop, once. */
void evc__scope_closed(evc_cluster *cl);
/* On the loop, lock held: watch for the loop's destruction.  The program cannot
   destroy the cluster's own loop.  Without an engine another thread may end the
   cluster. */
void evc__scope_watch(evc_cluster *cl, struct ev_loop *loop);
/* Lock not held.  After a stop on a destroyed loop nobody calls `ended`: a
   thread does its work. */
void evc__scope_adrift(evc_cluster *cl);
/* The last handle is gone. */
void evc__scope_let_go(evc_cluster *cl);

#endif
