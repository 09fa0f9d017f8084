/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * External loggers of a group: called with all metrics by the worker that has
 * just run.
 */
#ifndef EVC_GROUP_LOGGERS_H
#define EVC_GROUP_LOGGERS_H

#include <evcoord.h>

#include "base/sync.h"

struct evc__loggers;
struct evc__worker; /* group.h */

/* 0 and *ret (NULL for n 0); -EVC_INVALID_ARGUMENT, -EVC_RESOURCE_EXHAUSTED,
   noted for evc_last_error. */
evc_status evc__loggers_new(const evc_logger *from, unsigned n,
			    struct evc__loggers **ret);
/* NULL is fine. */
void evc__loggers_free(struct evc__loggers *ls);

/* Call those of w's group that are due.  On the thread that runs w, after a run
   and what was put for it; with no lock held.  now: sync_mono(). */
void evc__loggers_run(struct evc__worker *w, uint64_t now);

#endif
