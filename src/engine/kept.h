/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results that a worker process keeps, so that they need not come back as
 * inputs.  The worker has the values; the coordinator decides which to forget,
 * and knows their sizes.  Both use this table.
 */
#ifndef EVC_CLUSTER_WORKER_KEPT_H
#define EVC_CLUSTER_WORKER_KEPT_H

#include <evcoord/value.h>

#include "base/list.h"
#include "base/sync.h"
#include "base/table.h"

#define KEEP_LEAST 4096              /* bytes: smaller results are not kept */
#define KEEP_MOST ((size_t)64 << 20) /* bytes on one worker */

/* Zeroed before the first use. */
struct kept {
	/* atomic: the values of several tables, as in struct notes; NULL: not
	   counted */
	_Atomic uint32_t *n_all;
	struct table by_id;
	struct list age; /* the oldest first; set by the first add */
	size_t bytes;
};

/* false: no memory, or a value with this id is there; the value stays the
   caller's. true: the table owns the value. */
bool evc__kept_add(struct kept *k, uint64_t id, evc_value value);
/* NULL: no value with this id. */
const evc_value *evc__kept_find(const struct kept *k, uint64_t id);
/* false: no value with this id; else *ret is the caller's. */
bool evc__kept_take(struct kept *k, uint64_t id, evc_value *ret);
bool evc__kept_drop(struct kept *k, uint64_t id);
/* k->by_id.n > 0. */
uint64_t evc__kept_oldest(const struct kept *k);
void evc__kept_clear(struct kept *k);

#endif
