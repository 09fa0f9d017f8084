/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Per-worker values, datasets and iterators at the coordinator: what each
 * worker has to build, in this order, and to drop.  Included by
 * cluster/core/cluster.h.
 *
 * The list is workers.defs, the oldest first: `seq` is even and grows.  A
 * dropped definition gets a new place at the end, as a drop, and leaves the
 * list when no living worker has to see it.
 *
 * defs_seen is the position of a worker: s + 1, the worker was given the entry
 * s and may be reading it; s + 2, the worker has asked for more since;
 * DEFS_ALL, the worker does not live, and delays nothing.  So an entry may go
 * when no living worker is at s + 1 or before.  A drop may go earlier, if the
 * workers before it never had the dropped definition: so a busy worker does not
 * keep entries that come and go.
 */
#ifndef EVC_CLUSTER_PER_WORKER_H
#define EVC_CLUSTER_PER_WORKER_H

struct evc_per_worker {
	struct list link;        /* lock: workers.defs */
	evc_cluster *cl;         /* creation: stays as long as this object */
	uint64_t seq;            /* lock: place as a definition, then as a
				    drop */
	bool dropped;
	uint64_t was;            /* lock: place as a definition, of a drop */
	/* lock: references of the program, of functions, of iterators; the last
	   one drops the definition */
	unsigned refs;
	bool named;              /* lock: the program has its handle, so values
				    may name it */
	unsigned deaths;         /* lock: workers that were lost in this
				    build */
	bool given_up;           /* lock: too many deaths: the definition is
				    built no more */
	evc_engine_def def;      /* creation: its data is in `tail` */
	/* creation: names of the functions that build it; NULL: none */
	const struct cluster_name *function, *map;
	evc_per_worker *dataset; /* creation: a reference, of an iterator */
	char tail[];
};

#define DEFS_ALL UINT64_MAX

/* Lock held in all functions below. */

/* Add a definition with a reference for the program's handle: it gets its id
   and place, and all workers hear of it. */
void evc__per_worker_add(evc_cluster *cl, evc_per_worker *p);
/* The definition with this id that a value may name; NULL: none. */
evc_per_worker *evc__per_worker_find(evc_cluster *cl, uint64_t id);
/* The definition with this id that is not dropped; NULL: none. */
evc_per_worker *evc__per_worker_by_id(evc_cluster *cl, uint64_t id);
/* The definition that a worker is given after this one; NULL: none, or `id` was
   dropped. */
evc_per_worker *evc__per_worker_after(evc_cluster *cl, uint64_t id);
void evc__per_worker_ref(evc_per_worker *p);
void evc__per_worker_unref(evc_per_worker *p);
/* The next definition or drop for the worker; false: none. */
bool evc__per_worker_next_def(evc_cluster *cl, struct cluster_worker *w,
			      evc_engine_def *ret);
/* Has the worker seen all entries? */
bool evc__per_worker_is_ready(const evc_cluster *cl,
			      const struct cluster_worker *w);
/* A life begins, and the worker has to see all entries; or it ends. */
void evc__per_worker_life(evc_cluster *cl, struct cluster_worker *w,
			  bool begins);
/* For evc__pack.  The lock is not needed. */
void evc__per_worker_ref_of(const evc_per_worker *p, uint32_t *ret_serial,
			    uint64_t *ret_id);
/* The memory of the cluster is about to go. */
void evc__per_workers_destroy(evc_cluster *cl);

#endif
