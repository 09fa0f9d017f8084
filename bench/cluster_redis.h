/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the groups of the cluster over Redis share: a server of their own, nodes,
 * and the bare pair that they are measured beside.
 */
#ifndef BENCH_CLUSTER_REDIS_H
#define BENCH_CLUSTER_REDIS_H

#include <hiredis/hiredis.h>

#include "cluster.h"

/* A server that keeps nothing, on a free port of 127.0.0.1. */
struct bench_server {
	pid_t pid;
	int port;
	char folder[64];
};

/* Start one.  false: there is none on this machine, which was said. */
bool
bench_server_start(struct bench_server *s, const char *metric);

/* The same for so many connections, which may come by FOLDER/socket: more than a
   port has room for. */
bool
bench_server_start_for(struct bench_server *s, const char *metric,
		       unsigned clients);

/* Start a program that ends with this process; quiet: without its standard
   error. */
pid_t
bench_start(char **argv, bool quiet);

/* A connection to it. */
redisContext *
bench_server_connect(const struct bench_server *s);

void
bench_server_end(struct bench_server *s);

/* Open a cluster in that namespace, as bench_cluster_open does. */
void
bench_server_open(const struct bench_server *s, const char *ns,
		  struct bench_cluster *b, struct ev_loop *loop);

/* Start a node of that namespace: this program once more, with so many
   workers. */
pid_t
bench_node_start(const struct bench_server *s, const char *ns,
		 unsigned n_workers);

/* End it, and wait until it has gone. */
void
bench_node_end(pid_t node);

/* main of that process. */
int
bench_node_main(int argc, char **argv);

/* main of a process of simulated nodes, and of a run with numbers of nodes:
   cluster_redis_nodes.c. */
int
bench_sim_main(int argc, char **argv);
int
bench_redis_nodes_main(int argc, char **argv);

/* ---- cluster_redis_bare.c ---- */

#define BENCH_BARE_MOST 8

/* A coordinator, the caller, and forked workers, all blocking hiredis.  Each
   task takes six commands: XADD to the queue, XREADGROUP, XADD to the events,
   XREAD, XACK, XDEL; all but the first and the third for as many tasks as there
   are. */
struct bench_bare {
	unsigned n;
	pid_t pid[BENCH_BARE_MOST];
	redisContext *say, *listen;
	unsigned long long next, settled;
	char last[64]; /* the id of the last event */
};

/* While the caller is the only thread.  Each worker takes prefetch tasks at
   most at a time. */
void
bench_bare_start(struct bench_bare *b, const struct bench_server *s,
		 unsigned n, unsigned prefetch);

/* So many tasks, window of them in flight: seconds. */
double
bench_bare_work(struct bench_bare *b, unsigned tasks, unsigned window);

/* One task there and back: seconds.  It is acknowledged when they are over. */
double
bench_bare_ping(struct bench_bare *b);

void
bench_bare_end(struct bench_bare *b);

#endif
