/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics: sums by name, to which workers add without meeting each other.
 *
 * Each worker has a tally of its own and is the only writer; a reader adds the
 * tallies up.  The names are the group's; the number of a name is the place of
 * its sum in every tally.  A reset moves the group's epoch, and a tally of
 * another epoch counts as empty.  So a reset is one store, and no sum is half
 * of the time before the reset.
 */
#ifndef EVC_GROUP_METRICS_H
#define EVC_GROUP_METRICS_H

#include <evcoord.h>

#include "base/sync.h"

/* Of a group; NAME and NAME_count are two names. */
#define METRIC_NAMES 256
#define METRIC_NAME_SIZE 56 /* of evc_metric.name */
#define METRIC_PUT_SIZE 48  /* of a name in a put, with its 0 byte */
#define TALLY_CHUNK 16
#define TALLY_CHUNKS (METRIC_NAMES / TALLY_CHUNK)
#define TALLY_CACHE 32

/* Sums, as the bits of a double; two cache lines. */
struct evc__cells {
	_Atomic uint64_t sum[TALLY_CHUNK]; /* the tally's writer -> readers */
};

/* Where a name was at its last put. */
struct evc__cached {
	const char *at;   /* the caller's pointer, never followed */
	const char *name; /* the group's copy */
	_Atomic uint64_t *value, *count; /* count NULL: not asked for yet */
};

struct evc__metrics;

/* The sums of one worker, on cache lines of its own.  Only its writer uses the
   fields other than `epoch` and the cells. */
struct evc__tally {
	struct evc__metrics *of;
	/* atomic: the writer, after it has zeroed the cells -> readers */
	_Atomic uint64_t epoch;
	/* atomic: the writer -> readers */
	_Atomic(struct evc__cells *) chunk[TALLY_CHUNKS];
	struct evc__tally *next;
	evc_metric *scratch; /* for the loggers of this worker */
	unsigned room;
	struct evc__cached cache[TALLY_CACHE];
};

/* Of a group.  Names are added and never changed. */
struct evc__metrics {
	_Atomic uint64_t epoch; /* atomic: a reset, lock held -> each put */
	/* atomic: a put that adds a name, lock held -> puts that look names
	   up */
	_Atomic unsigned n;
	/* over new names, the list, resets, readers, `shared` */
	pthread_mutex_t lock;
	unsigned fork_generation;
	struct evc__tally *tallies; /* all tallies */
	/* written under the lock: for threads that are no worker of the
	   group */
	struct evc__tally *shared;
	char name[METRIC_NAMES][METRIC_NAME_SIZE];
};

/* NULL: no memory. */
struct evc__metrics *evc__metrics_new(void);
/* Frees the tallies, too.  m may be NULL. */
void evc__metrics_free(struct evc__metrics *m);

/* A tally for one more worker, freed with m; NULL: no memory. */
struct evc__tally *evc__tally_new(struct evc__metrics *m);

/* From now on the calling thread puts into t (NULL: into none).  Returns the
   tally before. */
struct evc__tally *evc__tally_enter(struct evc__tally *t);

/* As evc_group_put. */
evc_status evc__metrics_put(struct evc__metrics *m, const char *name,
			    double value, bool count);

/* As evc_group_metrics, _metric, _metrics_reset. */
size_t evc__metrics_read(struct evc__metrics *m, evc_metric *to, size_t n);
/* The metric of number i; false: there is none. */
bool evc__metrics_get(struct evc__metrics *m, unsigned i, evc_metric *ret);
double evc__metrics_one(struct evc__metrics *m, const char *name);
void evc__metrics_reset(struct evc__metrics *m);

/* A name's number, or -1; takes no lock. */
int evc__metrics_find(struct evc__metrics *m, const char *name);

/* The number behind the bits in a cell. */
static inline double
evc__metric_number(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof d);
	return d;
}

/* All metrics, in memory of t, for t's thread until the next call; NULL: none,
   or no memory. */
const evc_metric *evc__tally_read(struct evc__tally *t, unsigned *ret_n);

#endif
