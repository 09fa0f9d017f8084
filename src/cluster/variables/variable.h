/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables of a cluster whose engine keeps none: names and values in the
 * coordinator's memory, under a lock of their own.
 */
#ifndef EVC_CLUSTER_VARIABLE_H
#define EVC_CLUSTER_VARIABLE_H

#include <evcoord/unstable/engine.h>
#include <evcoord/value.h>

#include "base/sync.h"

#define VARIABLE_NAME_MOST 255

struct variables {
	pthread_mutex_t lock;
	struct variable **buckets; /* a power of two, grown */
	size_t n_buckets, n;
	uint64_t finished;         /* functions that succeeded, those of a
				      checkpoint included: moved together with
				      their updates */
	uint64_t changes;          /* of all that is saved */
	/* checkpoint.c: saves come one after the other; changes up to `saved`
	   are in the checkpoint */
	pthread_mutex_t saving;
	uint64_t saved;
};

/* All of them at one moment, in the order of their names. */
struct variable_list {
	evc_engine_entry *entries; /* NULL: n is 0 */
	size_t n;
	char *tail;                /* what they point to */
	uint64_t finished, changes;
};

bool evc__variables_init(struct variables *v);
void evc__variables_destroy(struct variables *v);

/* What is refused whatever the variable is: names and values that there cannot
   be. */
evc_status evc__variable_check(const evc_engine_update *u);
evc_status evc__variable_no_memory(void);
/* One operation, with all checks: statuses as the evc_variable_ calls of
   cluster.h say. */
evc_status evc__variable_do(struct variables *v, const evc_engine_update *u,
			    double *ret_now, evc_value *ret_value);
/* A function has succeeded: its updates, all at once, and finished + 1.
   Updates that cannot be made (no number, no memory): none is, and the status
   says why. */
evc_status evc__variables_commit(struct variables *v,
				 const evc_engine_update *updates, unsigned n);
/* The same for n functions without updates; "-n": that many less. */
void evc__variables_finished(struct variables *v, uint64_t n);
uint64_t evc__variables_n_finished(struct variables *v);

uint64_t evc__variables_n_changes(struct variables *v);
/* `by`, which nobody else has, gives its table and its finished for those of v,
   and has v's table then. */
void evc__variables_replace(struct variables *v, struct variables *by);

/* Numbers compare as numbers, all else by its bytes. */
bool evc__value_is_equal(const evc_value *a, const evc_value *b);

/* variable_pack.c */

evc_status evc__variables_list(struct variables *v, struct variable_list *ret);
void evc__variables_list_free(struct variable_list *l);
/* All of them at one moment, as one MessagePack value [finished, {name: value}]
   in the order of the names; each value as the binary of its bytes, so that it
   may be as deep there as it was.  ret_changes (may be NULL): up to where. */
evc_status evc__variables_pack(struct variables *v, evc_value *ret,
			       uint64_t *ret_changes);
/* And back, in place of all.  -EVC_INVALID_ARGUMENT, and nothing is changed. */
evc_status evc__variables_unpack(struct variables *v, const evc_value *value);

/* snapshot*.c: such a value to a file, whole or not at all, and
   back; statuses as evc_cluster_save and _restore say. */
evc_status evc__snapshot_write(const char *path, const evc_value *value);
evc_status evc__snapshot_read(const char *path, evc_value *ret_value);

#endif
