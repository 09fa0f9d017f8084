/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of functions, and the workers that have them.  Included by
 * cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_NAMES_H
#define EVC_CLUSTER_NAMES_H

#define MISSING_LOOKS 1024

/* One name, kept for the cluster's life; at.text is kept for ever.  All fields:
   lock. */
struct cluster_name {
	struct table_name at;
	bool known; /* a worker has a function of this name */
	uint64_t *has;  /* a bit for each worker that has told this name */
	size_t n_has;   /* words in `has`; workers behind have not told it */
	uint64_t lost_ns; /* time at which such a worker was replaced; 0:
			     never */
	uint64_t told_ns; /* time of the last line in the log about functions
			     of this name without a worker; 0: none */
};

/* All fields: lock. */
struct function_names {
	bool known; /* a worker has told its names: other names are refused */
	unsigned last; /* the worker that had the names of a function in the
			  last look, for the next one */
	struct table all;
	char line[TEXT_SIZE]; /* for the log: no worker has a function; "" */
};

/* ---- names.c: lock held ---- */

/* The entry of a name, made if need be; NULL: no memory. */
struct cluster_name *evc__name(evc_cluster *cl, const char *name);
/* The entry for a call that says the name: 0; refused also when no worker has
   such a function. */
evc_status evc__name_checked(evc_cluster *cl, const char *name,
			     const struct cluster_name **ret);
/* The memory is about to go. */
void evc__names_destroy(evc_cluster *cl);
/* In a fork child: another thread may have held the lock of all names. */
void evc__names_forked(void);
/* The function r was queued. */
void evc__names_note(evc_cluster *cl, const evc_remote *r);
/* The first function that no worker can run among those that are up; NULL: none
   in the first MISSING_LOOKS of each line. */
evc_remote *evc__missing_find(evc_cluster *cl);
/* The time from which on no worker could run r. */
uint64_t evc__missing_since(const evc_cluster *cl, const evc_remote *r);
/* Note a line for the log when no worker could run r for a while; returns the
   time of the next look. */
uint64_t evc__missing_note(evc_cluster *cl, const evc_remote *r, uint64_t now);
/* At a turn, lock not held: the log gets the line. */
void evc__missing_tell(evc_cluster *cl);
/* The same in words: "no worker has had a function called ...". */
void evc__missing_describe(const evc_cluster *cl, const evc_remote *r,
			   struct text *t);

#endif
