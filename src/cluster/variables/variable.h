/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables of a cluster, if its engine keeps none: names and values in the
 * coordinator's memory, under a lock of their own.  In comments `lock` is
 * variables.lock.
 */
#ifndef EVC_CLUSTER_VARIABLE_H
#define EVC_CLUSTER_VARIABLE_H

#include <evcoord/unstable/engine.h>
#include <evcoord/value.h>

#include "base/sync.h"
#include "base/table.h"

#define VARIABLE_NAME_MOST 255
#define VARIABLE_NAME_NOT 0x01 /* first byte of the engines' own names */

struct variables {
	pthread_mutex_t lock;
	struct table by_name;      /* lock */
	uint64_t finished;         /* lock: functions that succeeded, with those
				      of a loaded checkpoint; moved together
				      with their updates */
	uint64_t changes;          /* lock: counts changes of all that is
				      saved */
	bool sealed;               /* lock: the last save has begun, and changes
				      are refused */
	/* Held during a save (core/checkpoint.c), so saves come one after the
	   other.  The checkpoint has the changes up to `saved`. */
	pthread_mutex_t saving;
	uint64_t saved;
};

/* All variables at one moment, in the order of their names. */
struct variable_list {
	evc_engine_entry *entries; /* NULL: n is 0 */
	size_t n;
	char *tail;                /* memory of the names and values */
	uint64_t finished, changes;
};

/* Variables as they come, perhaps some of them twice.  Zeroed before the first
   use; for a single thread at a time. */
struct pile {
	struct pile_block *first, *last;
	size_t n_blocks;
	size_t n;                /* entries */
	size_t size;             /* their bytes, after evc__pile_settle */
	unsigned char head[32];  /* the first part of a file */
};

bool evc__variables_init(struct variables *v);
void evc__variables_destroy(struct variables *v);
/* Free all variables.  Nobody makes one from here on. */
void evc__variables_clear(struct variables *v);

/* 0, or refused: the name or the value is impossible for every variable. */
evc_status evc__variable_check(const evc_engine_update *u);
evc_status evc__variable_no_memory(void);
evc_status evc__variable_missing(const char *name);
/* -EVC_INVALID_ARGUMENT */
evc_status evc__variable_no_place(void);
evc_status evc__variable_wrong(const char *name, const char *is);
#define VARIABLE_NO_NUMBER "is no number"
#define VARIABLE_NO_VECTOR "is no vector"
/* The sum of two numbers for this variable: refused unless finite. */
evc_status evc__variable_sum(const char *name, double a, double b, double *ret);
/* A comparison has failed: -EVC_ABORTED. */
evc_status evc__variable_is_other(const char *name);
/* One operation, with all checks.  Statuses as of the evc_variable_ calls in
   cluster.h. */
evc_status evc__variable_do(struct variables *v, const evc_engine_update *u,
			    double *ret_now, evc_value *ret_value);
/* A transactional function has ended, with code 0 or not, after these reads and
   updates.  If all reads hold and the code is 0, all updates are made, and
   finished + 1.  EVC_ABORTED: a read does not hold, and nothing is made.  If an
   update is impossible (no number, no memory) none is made, and the status,
   < 0, says why. */
evc_status evc__variables_commit(struct variables *v, evc_status code,
				 const evc_engine_update *updates, unsigned n);
/* n functions without updates have succeeded; "-n": n fewer. */
void evc__variables_finished(struct variables *v, uint64_t n);
uint64_t evc__variables_n_finished(struct variables *v);

uint64_t evc__variables_n_changes(struct variables *v);
/* From here on changes are refused. */
void evc__variables_seal(struct variables *v);
/* EVC_CANCELLED, refused: what changes after the last save is lost. */
evc_status evc__variables_refuse_sealed(void);
/* `by`, a private table, swaps its variables and its `finished` with those of
   v. 0, or refused. */
evc_status evc__variables_replace(struct variables *v, struct variables *by);

/* Numbers compare as numbers, all other values by their bytes. */
bool evc__value_is_equal(const evc_value *a, const evc_value *b);

/* pack.c */

evc_status evc__variables_list(struct variables *v, struct variable_list *ret);
void evc__variables_list_free(struct variable_list *l);
/* All variables at one moment, as one MessagePack value [finished, {name:
   value}] in the order of the names.  Each value stands there as the binary of
   its bytes, so its depth does not count. ret_changes (may be NULL): the last
   change in the value. */
evc_status evc__variables_pack(struct variables *v, evc_value *ret,
			       uint64_t *ret_changes);
/* Read such a value, in place of all variables. -EVC_INVALID_ARGUMENT: nothing
   is changed. */
evc_status evc__variables_unpack(struct variables *v, const evc_value *value);

/* Such a value as a list: each name once, in the order of the value.  The list
   has the value, which was allocated, in any case.  Statuses as of
   evc__variables_unpack. */
evc_status evc__variables_read(evc_value *value, struct variable_list *ret);
/* Put a list into the order of its names. */
void evc__variables_sort(struct variable_list *l);

/* pile.c */

/* Add entries, with all checks; an entry without bytes takes its name out. */
evc_status evc__pile_add(struct pile *p, const evc_engine_entry *entries,
			 size_t n);
/* No more entries come: of each name the last entry stays. */
evc_status evc__pile_settle(struct pile *p);
/* A settled pile as such a value, in parts, in no order of the names.  *ret is
   for sync_free, before the pile. */
evc_status evc__pile_parts(struct pile *p, uint64_t finished, evc_value **ret,
			   size_t *ret_n);
/* A settled pile as a list in no order of the names, which points into the
   pile.  No other function but evc__pile_free may have the pile afterwards. */
evc_status evc__pile_list(struct pile *p, struct variable_list *ret);
void evc__pile_free(struct pile *p);
/* 0, or refused: a name stands twice in the list. */
evc_status evc__variables_check_names(const struct variable_list *l);

/* The identity of the file at a path: each save makes a new file.  Of a file that
   cannot be opened all but `is` are 0. */
struct snapshot_file {
	bool is; /* false: there is no file */
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec at;
};
struct snapshot_file evc__snapshot_file(const char *path);
static inline struct snapshot_file
snapshot_file_of(const struct stat *st)
{
	return (struct snapshot_file){ true, st->st_dev, st->st_ino,
				       st->st_size, st->st_mtim };
}
static inline bool
snapshot_file_is(const struct snapshot_file *a, const struct snapshot_file *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->at.tv_sec == b->at.tv_sec && a->at.tv_nsec == b->at.tv_nsec;
}

/* The place of a file that is written. */
struct snapshot_place {
	/* NULL, or asked when the disk has the new file: 0, or refused, and the
	   old file stays */
	evc_status (*is_free)(struct snapshot_place *p);
	struct snapshot_file file; /* result: the new file */
};

/* snapshot*.c: such a value, in n parts, to a file, whole or not at all, and
   back; statuses as evc_cluster_save and _restore say. */
evc_status evc__snapshot_write(const char *path, const evc_value *parts,
			       size_t n, struct snapshot_place *place);
evc_status evc__snapshot_read(const char *path, evc_value *ret_value);

#endif
