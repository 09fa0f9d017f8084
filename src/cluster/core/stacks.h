/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where workers stand: their stacks, for reports.  A worker that is a thread of
 * this process is looked at here; any other worker is asked by its engine, and
 * answers by a thread that runs no function.  A worker that is stopped, or does
 * not answer, costs a limited time for all workers together.
 * Included by cluster/core/cluster.h.
 */
#ifndef EVC_CLUSTER_STACKS_H
#define EVC_CLUSTER_STACKS_H

/* A report has the stacks of so many workers, at most. */
#define STACKS_MOST 100
/* Bytes and lines of one worker's stack, at most. */
#define STACK_SIZE 4096
#define STACK_LINES 48

/* Between reports and the engine. */
struct stacks {
	unsigned n_waiting;      /* lock: reports that wait for answers; without
				    one an answer is dropped */
	unsigned n_stuck;        /* lock: workers with lines for the log
				    (stuck.h) */
	unsigned n_second;       /* lock: questions for the log in the second
				    that began at second_ns */
	uint64_t second_ns;
	_Atomic uint32_t bell;   /* atomic: the sink -> reports, slept on: there
				    is an answer, or a worker has gone */
};

/* One worker in one report. */
struct worker_stack {
	unsigned index;          /* the worker */
	unsigned lives;          /* the life of the worker that was asked */
	int tid;                 /* the thread to look at; 0: none */
	bool waits;              /* for an answer */
	char *lines;             /* allocated, not trusted; NULL: none */
	char why[128];           /* why there are no lines, or "" */
};

/* Lock not held: fill in lines or why of n workers, in a limited time; those at
   the beginning come first.  On the loop nothing is waited for. */
void evc__stacks_take(evc_cluster *cl, struct worker_stack *s, unsigned n);
void evc__stacks_free(struct worker_stack *s, unsigned n);
/* The lines of a stack one by one, shortened in place: NULL at the end. */
char *evc__stack_line(char **at);

/* ---- lock held ---- */

/* The stop has begun: reports wait less. */
void evc__stacks_hurry(evc_cluster *cl);
/* The answer of a worker that was asked; lines: not trusted; NULL: none. */
void evc__stack_answer(evc_cluster *cl, struct cluster_worker *w,
		       const char *lines);
/* Why the worker, which was asked so long ago, has not answered. */
void evc__stack_silent(const struct cluster_worker *w, uint64_t waited,
		       char *buf, size_t n);
/* The worker's life is over, or another one begins. */
void evc__stack_forget(evc_cluster *cl, struct cluster_worker *w);

#endif
