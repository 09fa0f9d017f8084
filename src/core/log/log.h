/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines for the log hook.
 */
#ifndef EVC_CORE_LOG_H
#define EVC_CORE_LOG_H

#include <evcoord.h>

#include "base/sync.h"

/* This part of a coordinator. */
struct evc__coord_log {
	/* set at creation */
	void (*fn)(int level, const char *line, const evc_reason *r, void *arg);
	void *arg;
	/* lock */
	unsigned n_lost; /* errors without a slot that the hook was told of */
	/* atomic, changed under the lock: numbers of the last stop with a line
	   for its begin, and of the last stop with a line for its end */
	_Atomic uint32_t begun, over;
};

/* Tell the log hook the news: a stop was requested, errors, the stop is over.
   No lock. */
void evc__log_errors(evc_coord *c);
/* Lock held: must the hook still be told of the end of the stop of w?  The call
   marks the end as told. */
bool evc__log_over_due(evc_coord *c, uint64_t w);
/* The stop is over, with verdict v. */
void evc__log_over(evc_coord *c, const evc_verdict *v);
/* The line for the result of a stop hook, when the stop was cleared while the
   hook ran. */
void evc__log_hook(evc_coord *c, const char *name, evc_status st);
/* No lock: the line for members that are late; ignored: a join with
   EVC_JOIN_IGNORE_LIVE. */
void evc__log_late(evc_coord *c, const evc_verdict *v, bool ignored);
/* The end of the stop is near, with these members alive.  No lock. */
void evc__log_ending(evc_coord *c, const char *names);
/* A member has asked for more time.  No lock. */
void evc__log_extend(evc_coord *c, const char *name, double granted,
		     const char *reason);

#endif
