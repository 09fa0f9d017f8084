/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs: functions of other rooms that the helper thread calls for a
 * coordinator, again and again, whenever the coordinator rings or the job's
 * time is over.
 */
#ifndef EVC_CORE_JOB_H
#define EVC_CORE_JOB_H

#include <evcoord.h>

#include "base/list.h"
#include "base/sync.h"

struct evc__helper_job {
	/* set at creation: called on the helper thread, without a lock, inside
	   the refgate of c.  Returns how long the helper may sleep;
	   SYNC_FOREVER: until a ring. */
	uint64_t (*run)(evc_coord *c, struct evc__helper_job *job);
	/* lock */
	struct list node; /* in c->jobs; a job in no list: a list of its own */
	unsigned running; /* helper threads inside the job */
	uint32_t pass;    /* number of the last pass that ran the job */
	/* true: while a thread of the helper hangs in the job, another thread
	   may run the job as well */
	bool overlaps;
};

/* Lock held: the job runs from now on, at once for a first time; false: no
   helper thread to be had.  A job that was added before stays. */
bool evc__helper_job_add(evc_coord *c, struct evc__helper_job *job);
/* Lock held, given up until the job has returned: the job does not run any
   more.  Not for the helper thread, which would wait for itself. */
void evc__helper_job_remove(evc_coord *c, struct evc__helper_job *job);
/* Is the calling thread in a job? */
bool evc__helper_jobs_inside(void);
/* In a fork child: the calling thread is in no job. */
void evc__helper_jobs_inherited(void);
/* Helper thread, no lock: run all jobs of c; returns how long to sleep then. */
uint64_t evc__helper_jobs_run(evc_coord *c);

#endif
