/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs: what rooms above have the helper thread do for a coordinator, again
 * and again, whenever it is step or the time that they named is over.
 */
#ifndef EVC_CORE_JOB_H
#define EVC_CORE_JOB_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

struct evc__helper_job {
	/* set at creation: on the helper thread, no lock, c kept by its gate.
	   Returns how long it may sleep: SYNC_FOREVER, until it is step. */
	uint64_t (*run)(evc_coord *c, struct evc__helper_job *k);
	/* lock */
	struct list node; /* in c->jobs; a list of its own: in none */
	unsigned running; /* threads of the helper that are in it */
	uint32_t pass;    /* the latest in which it was run */
	/* set at creation: while one thread of the helper hangs in it, another
	   may run it as well */
	bool again;
};

/* Lock held: from now on it is run, at once for a first time; false: there is
   no helper thread to be had.  One that stands there already stays. */
bool evc__helper_job_add(evc_coord *c, struct evc__helper_job *k);
/* Lock held, given up while it runs: afterwards it does not run.  Not by the
   helper thread. */
void evc__helper_job_remove(evc_coord *c, struct evc__helper_job *k);
/* Is the calling thread in one? */
bool evc__helper_jobs_inside(void);
/* In a fork child: it is in none. */
void evc__helper_jobs_inherited(void);
/* Helper thread, no lock: run all; how long to sleep then. */
uint64_t evc__helper_jobs_run(evc_coord *c);

#endif
