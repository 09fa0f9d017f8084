/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the groups of the cluster share: functions that do next to nothing, on
 * any engine, and the limit beside those that are processes.
 */
#ifndef BENCH_CLUSTER_H
#define BENCH_CLUSTER_H

#include <evcoord/cluster.h>

#include "bench.h"

#define NOTHING "nothing" /* returns at once */
#define BLOCK "block"     /* on a thread: blocks until bench_gate is 1 */
#define NAP "nap"         /* [SECONDS] */
#define MOVE "move"       /* [FROM, TO, AMOUNT] between the variables aN */
#define ADDS "adds"       /* [N]: adds 1 to the variable "n", N times */
#define HANG "hang"       /* its first attempt takes a minute */
#define SINK "sink"       /* [BINARY]: looks at each page */
#define SOURCE "source"   /* returns BENCH_LARGE bytes */

struct bench_cluster {
	evc_coord *c;
	evc_cluster *cluster;
};

/* Threads that run BLOCK -> main, and back; reset by the close. */
extern uint32_t bench_blocked, bench_gate;

/* main of a worker process. */
int
bench_cluster_worker(void);

/* main of a node, which is the same in its workers. */
int
bench_cluster_node(const char *uri, unsigned n_workers);

/* Open a cluster; loop NULL: one on a thread of its own.  config may be NULL;
   the functions are filled in. */
void
bench_cluster_open(struct bench_cluster *b, const char *uri,
		   const evc_cluster_config *config, struct ev_loop *loop);

/* Wait until so many workers take functions; for a cluster without a loop of
   the caller's. */
void
bench_cluster_until_up(const struct bench_cluster *b, unsigned n);

/* Close it, and wait until all has ended. */
void
bench_cluster_close(struct bench_cluster *b);

/* Schedule n functions that do nothing, as fast as they are taken, and wait for
   all: seconds. */
double
bench_cluster_work(const struct bench_cluster *b, unsigned n);

/* The process of a worker that is one of this machine; -1: there is none. */
pid_t
bench_cluster_pid(const evc_cluster_worker_info *w);

/* Seconds of processor time that a process has used; 0: this one. */
double
bench_cpu_time(pid_t pid);
/* The same of all workers that are processes. */
double
bench_cluster_cpu_time(const struct bench_cluster *b);

/* cluster_trip.c: one function there and back, again and again. */

struct bench_trip {
	struct bench_cluster cluster;
	struct ev_loop *loop; /* of the caller's, and the cluster's */
	/* its own */
	ev_timer begin, guard;
	uint64_t t0;
	unsigned ended, n;
	double *each;
};

/* n figures, in microseconds. */
void
bench_trips(struct bench_trip *t, double *each, unsigned n);

/* cluster_large.c: large values, one after the other. */

#define BENCH_LARGE (4u << 20)

struct bench_large {
	struct bench_cluster cluster;
	evc_value args; /* [BINARY] */
};

/* Megabytes a second of arguments and of results on the one worker of an open
   cluster, beside the bare way; then the cluster is closed. */
void
bench_large_compare(struct bench_large *l, const char *args_metric,
		    const char *result_metric, const struct bench_side *bare,
		    unsigned rounds);

/* Look at a byte of each page. */
unsigned
bench_large_look(const void *bytes, size_t n);

/* cluster_echo.c: processes that send back what they get, over socketpairs. */

#define BENCH_FRAME 32 /* bytes: about what a call of nothing takes */

struct bench_echo {
	unsigned n;
	int fd[4];
	pid_t pid[4];
};

/* Fork n of them, each on that cpu (< 0: wherever the caller may run).  While
   the caller is the only thread. */
void
bench_echo_start(struct bench_echo *e, unsigned n, int cpu);

/* Send so many frames there and back, window of them in flight: seconds. */
double
bench_echo_work(struct bench_echo *e, unsigned frames, unsigned window);

/* One frame to the first one and back. */
void
bench_echo_ping(struct bench_echo *e);

/* Seconds of processor time that they have used. */
double
bench_echo_cpu_time(const struct bench_echo *e);

void
bench_echo_end(struct bench_echo *e);

#endif
