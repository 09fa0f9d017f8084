/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics: sums by name that workers add to without meeting each other.
 *
 * Each worker has a tally of its own, which it alone writes; whoever reads adds
 * them up.  The names are the group's, each with a number, which is the place
 * of its sum in every tally.  A reset moves the group's epoch, and a tally that
 * is of another epoch counts as empty: so it is one store, and no sum can be
 * half of the time before it.
 */
#ifndef EVC_GROUP_METRICS_H
#define EVC_GROUP_METRICS_H

#include <evcoord.h>

#include "base/sync.h"

/* What a group has: NAME and NAME_count are two. */
#define METRIC_NAMES 256
#define METRIC_NAME_ROOM 56 /* of evc_metric.name */
#define METRIC_PUT_ROOM 48  /* of what is put, with its 0 byte */
#define TALLY_CHUNK 16
#define TALLY_CHUNKS (METRIC_NAMES / TALLY_CHUNK)
#define TALLY_CACHE 32

/* Sums, as the bits of a double; two cache lines. */
struct evc__cells {
	_Atomic uint64_t sum[TALLY_CHUNK]; /* the tally's writer -> readers */
};

/* Where a name stood when it was put last. */
struct evc__cached {
	const char *at;   /* the caller's pointer, never looked behind */
	const char *name; /* the group's copy */
	_Atomic uint64_t *value, *count; /* count NULL: not asked for yet */
};

struct evc__metrics;

/* The sums of one worker, on cache lines of its own.  All but `epoch` and the
   cells is for its writer alone. */
struct evc__tally {
	struct evc__metrics *of;
	/* atomic: the writer, after the cells are 0 -> readers */
	_Atomic uint64_t epoch;
	_Atomic(struct evc__cells *) chunk[TALLY_CHUNKS]; /* writer -> readers */
	struct evc__tally *next;
	evc_metric *scratch; /* for the loggers of this worker */
	unsigned room;
	struct evc__cached cache[TALLY_CACHE];
};

/* Of a group.  Names are added and never changed. */
struct evc__metrics {
	_Atomic uint64_t epoch; /* reset, under the lock -> each put */
	_Atomic unsigned n;     /* who adds a name, under the lock -> who looks
				   one up */
	pthread_mutex_t lock;   /* over new names, the list, resets, readers,
				   `shared` */
	unsigned fork_generation;
	struct evc__tally *tallies; /* all of them */
	struct evc__tally *shared;  /* whose writer is who holds the lock: for
				       all that are no worker of it */
	char name[METRIC_NAMES][METRIC_NAME_ROOM];
};

/* NULL: no memory. */
struct evc__metrics *evc__metrics_new(void);
/* Frees the tallies, too.  NULL is fine. */
void evc__metrics_free(struct evc__metrics *m);

/* One more worker's, for as long as m; NULL: no memory. */
struct evc__tally *evc__tally_new(struct evc__metrics *m);

/* From now on the calling thread puts into t (NULL: into none).  Returns whose
   it was before. */
struct evc__tally *evc__tally_enter(struct evc__tally *t);

/* As evc_group_put. */
evc_status evc__metrics_put(struct evc__metrics *m, const char *name,
			    double value, bool count);

/* As evc_group_metrics, _metric, _metrics_reset. */
size_t evc__metrics_read(struct evc__metrics *m, evc_metric *to, size_t n);
double evc__metrics_one(struct evc__metrics *m, const char *name);
void evc__metrics_reset(struct evc__metrics *m);

/* A name's number, or -1; takes no lock. */
int evc__metrics_find(struct evc__metrics *m, const char *name);

/* What the bits in a cell say. */
static inline double
evc__metric_number(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof d);
	return d;
}

/* All of them in memory of t, for its thread until the next call: NULL when
   there are none, or no memory. */
const evc_metric *evc__tally_read(struct evc__tally *t, unsigned *ret_n);

#endif
