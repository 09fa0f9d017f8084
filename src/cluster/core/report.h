/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers, and reports in words.  Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_REPORT_H
#define EVC_CLUSTER_REPORT_H

/* Counts since the cluster was opened.  All fields: lock. */
struct counts {
	uint64_t scheduled, done, failed, cancelled;
	uint64_t executions;     /* results that workers have sent */
	uint64_t late;           /* results of functions that were settled
				    before */
	uint64_t lost;           /* functions that a worker has taken with it */
	uint64_t retries, conflicts, builds, worker_failures;
	double build_time, run_time; /* seconds */
	uint64_t per_second[8];  /* functions done in a second: a ring */
	uint64_t second;         /* the latest second in the ring */
};

/* ---- describe.c ---- */

/* The describe of a cluster's scope. */
size_t evc__cluster_report(unsigned format, char *buf, size_t n, void *cl);

/* ---- info.c, report.c: lock held ---- */

void evc__worker_info(const evc_cluster *cl, const struct cluster_worker *w,
		      uint64_t now, evc_cluster_worker_info *ret);
/* "count on worker 2 (pid 7) for 3.1 s", or "worker 2 (pid 7) builds model for
   3.1 s": a worker that is busy. */
void evc__run_describe(const evc_cluster_worker_info *i, struct text *t);
/* "9 queued until sum has run alone, which others have overtaken, 1 waiting for
   inputs or a retry", or a part, or nothing. */
void evc__queue_describe(const evc_cluster *cl, struct text *t);
/* The oldest function of a worker. */
void evc__worker_describe(const evc_cluster *cl, const struct cluster_worker *w,
			  uint64_t now, struct text *t);
/* Room for the next line; a smaller place leaves out the middle. */
#define DESCRIBE_SIZE (4 * TEXT_SIZE)
/* One line: the longest function, the number of others, the queue. */
void evc__cluster_describe(const evc_cluster *cl, uint64_t now,
			   struct text *t);

#endif
