/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results that a worker process keeps, so that they need not travel back to it
 * as an input: the worker has the values, the coordinator, who decides what is
 * forgotten, knows their sizes.  Both count them in this table.
 */
#ifndef EVC_CLUSTER_WORKER_KEPT_H
#define EVC_CLUSTER_WORKER_KEPT_H

#include <evcoord/value.h>

#include "base/list.h"
#include "base/sync.h"

#define KEEP_LEAST 4096              /* bytes: smaller ones are not kept */
#define KEEP_MOST ((size_t)64 << 20) /* bytes on one worker */

/* Zeroed before the first use. */
struct kept {
	struct kept_value **buckets;
	struct list age; /* the oldest first; from the first one on */
	size_t n, bytes;
};

/* false: no memory, or there is one with this id; value is the caller's still.
   Else it is taken over. */
bool evc__kept_add(struct kept *k, uint64_t id, evc_value value);
/* NULL: it is not there. */
const evc_value *evc__kept_find(const struct kept *k, uint64_t id);
/* false: it is not there. */
bool evc__kept_drop(struct kept *k, uint64_t id);
/* k->n > 0. */
uint64_t evc__kept_oldest(const struct kept *k);
void evc__kept_clear(struct kept *k);

#endif
