/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs of the helper thread.  In a pass the helper runs all jobs of a
 * coordinator once; each job returns how long the helper may sleep until the
 * next pass.
 *
 * Called by: the wakers and other rooms that have a job; the helper thread.
 * Locks: the coordinator's; given up while a job runs.
 */
#include "core/core.h"
#include "core/helper/job.h"

#include "base/deadline.h"

/* Jobs that the calling thread is in. */
static __thread unsigned inside;

bool
evc__helper_jobs_inside(void)
{
	return inside > 0;
}

void
evc__helper_jobs_inherited(void)
{
	inside = 0;
}

bool
evc__helper_job_add(evc_coord *c, struct evc__helper_job *job)
{
	if (!evc__helper_need(c, false))
		return false;
	if (list_empty(&job->node))
		list_append(&c->helper.jobs, &job->node);
	evc__helper_ring(c);
	return true;
}

void
evc__helper_job_remove(evc_coord *c, struct evc__helper_job *job)
{
	list_remove(&job->node);
	/* The end of a job rings. */
	sync_add(&c->stop.n_sleepers, 1);
	while (job->running > 0)
		evc__await_change(&c->lock, &c->stop.join_seq, SYNC_FOREVER);
	sync_sub(&c->stop.n_sleepers, 1);
}

/* Lock held: a job that was not run in this pass. */
static struct evc__helper_job *
next_job(evc_coord *c, uint32_t pass)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->helper.jobs)
	{
		struct evc__helper_job *job =
			LIST_OF(n, struct evc__helper_job, node);

		if ((int32_t)(job->pass - pass) < 0 &&
		    (job->running == 0 || job->overlaps))
			return job;
	}
	return NULL;
}

uint64_t
evc__helper_jobs_run(evc_coord *c)
{
	uint64_t wait = SYNC_FOREVER, w;
	struct evc__helper_job *job;
	uint32_t pass;

	sync_lock(&c->lock);
	pass = ++c->helper.job_pass;
	while (!c->life.dying && (job = next_job(c, pass)) != NULL) {
		job->pass = pass;
		job->running++;
		sync_unlock(&c->lock);
		inside++;
		w = job->run(c, job);
		/* The job has forked: the child has no helper. */
		if (!evc__same_process(c))
			pthread_exit(NULL);
		inside--;
		wait = w < wait ? w : wait;
		sync_lock(&c->lock);
		job->running--;
		if (list_empty(&job->node)) /* the job was removed meanwhile */
			evc__ring(c);
	}
	sync_unlock(&c->lock);
	return wait;
}
