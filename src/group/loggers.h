/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * External loggers of a group: after a run, the worker calls them with all
 * metrics.
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
/* ls may be NULL. */
void evc__loggers_free(struct evc__loggers *ls);

/* Call the due loggers of w's group, on w's thread, after a run and its
   metrics; no lock held.  now: sync_mono(). */
void evc__loggers_run(struct evc__worker *w, uint64_t now);

#endif
