/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Per-worker values, datasets and iterators at the coordinator: what each worker
 * is to build, in this order, and what it is to drop.  Included by
 * cluster/core/cluster.h.
 *
 * They stand in cl->defs, the oldest first: `seq` is even and grows.  A dropped
 * one gets a place anew at the end, as a drop, and leaves the list when no
 * worker that lives has to see it any more.
 *
 * defs_seen of a worker says how far it is: s + 1, it was given the entry s and
 * may be reading it; s + 2, it has asked for more since; DEFS_ALL, it does not
 * live, and holds nothing up.  So an entry may go when no worker that lives is
 * at s + 1 or before.  A drop may go earlier, when those that are were never
 * given what is dropped: who is busy for long does not keep what comes and goes
 * meanwhile.
 */
#ifndef EVC_CLUSTER_PER_WORKER_H
#define EVC_CLUSTER_PER_WORKER_H

struct evc_per_worker {
	struct list link;        /* under the lock: cl->defs */
	evc_cluster *cl;         /* alive as long as this */
	uint64_t seq;            /* its place: as a definition, then as a drop */
	bool dropped;
	uint64_t was;            /* then: its place as a definition */
	/* under the lock: the program's handle, functions that use it,
	   iterators of it; then it is dropped */
	unsigned refs;
	bool named;              /* the program has its handle still: values
				    may name it */
	unsigned deaths;         /* workers that were lost while they built it */
	bool given_up;           /* too many: it is not built any more */
	evc_engine_def def;      /* what it points to stands in tail */
	/* What it is built by; NULL: nothing of that kind. */
	const struct cluster_name *function, *map;
	evc_per_worker *dataset; /* of an iterator: a reference */
	char tail[];
};

#define DEFS_ALL UINT64_MAX

/* Lock held, all of these. */

/* A new one, with the program's handle as its first reference: it gets its id
   and its place, and all workers hear of it. */
void evc__per_worker_add(evc_cluster *cl, evc_per_worker *p);
/* The one with this id that a value may name, NULL: there is none (any more). */
evc_per_worker *evc__per_worker_find(evc_cluster *cl, uint64_t id);
/* The same, named or not, as long as it is not dropped. */
evc_per_worker *evc__per_worker_by_id(evc_cluster *cl, uint64_t id);
/* The one that a worker is given next after this one; NULL: there is none, or
   this one was dropped. */
evc_per_worker *evc__per_worker_after(evc_cluster *cl, uint64_t id);
void evc__per_worker_ref(evc_per_worker *p);
void evc__per_worker_unref(evc_per_worker *p);
/* What this worker has to build or drop next; false: nothing. */
bool evc__per_worker_next_def(evc_cluster *cl, struct cluster_worker *w,
			      evc_engine_def *ret);
/* Has it seen all? */
bool evc__per_worker_is_ready(const evc_cluster *cl,
			      const struct cluster_worker *w);
/* It begins a life, or has none: it has to see all, or nothing. */
void evc__per_worker_life(evc_cluster *cl, struct cluster_worker *w,
			  bool begins);
/* For evc__pack.  The lock is not needed. */
void evc__per_worker_ref_of(const evc_per_worker *p, uint32_t *ret_serial,
			    uint64_t *ret_id);
/* The memory is about to go. */
void evc__per_workers_destroy(evc_cluster *cl);

#endif
