/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that are given one by one: 1,024 workers, and functions that sleep
 * for 10 ms, so 102,400 a second would be all.  Each result is a trip of its
 * own.  Beside the rate stands the processor time of a function, which is what
 * counts on a machine with few cpus: of the program, of the workers with it
 * where they are threads, of nodes, and of the server.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cluster.h"
#ifdef HAVE_REDIS
#include "cluster_redis.h"
#endif

#define WORKERS 1024
#define NODES 4
#define NAP_TIME 0.01
#define FUNCTIONS 20000
#define ROUNDS 3
#define FILES (16 * WORKERS)
#define LEASE 60. /* a busy machine is no dead one */

struct crowd {
	struct bench_cluster ours;
	pid_t others[NODES + 1]; /* whose time is counted */
	unsigned n_others;
};

/* Some descriptors for each worker. */
static void
have_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		bench_must_sys(errno, "getrlimit");
	if (files.rlim_cur < FILES)
		files.rlim_cur = files.rlim_max < FILES ? files.rlim_max :
							  FILES;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		bench_must_sys(errno, "setrlimit");
}

/* Thousand a second. */
static double
naps(void *arg)
{
	const struct crowd *c = arg;
	uint64_t t0 = bench_now();
	evc_status st = 0;
	unsigned i;

	for (i = 0; i < FUNCTIONS && st == 0; i++)
		st = evc_schedule_pack(c->ours.cluster, NAP, NULL, NULL, "[d]",
				       NAP_TIME);
	if (st == 0)
		st = evc_cluster_join(c->ours.cluster, INFINITY);
	bench_must(st > 0 ? -st : st, "a function that sleeps");
	return FUNCTIONS / ((double)(bench_now() - t0) / 1e9) / 1e3;
}

static void
cpu_times(struct crowd *c, const char *metric)
{
	static const char *const names[NODES + 1] = {
		BENCH_OURS "/node-0", BENCH_OURS "/node-1",
		BENCH_OURS "/node-2", BENCH_OURS "/node-3",
		BENCH_OURS "/server",
	};
	const char *unit = "us-a-function";
	double here = -bench_cpu_time(0), others[NODES + 1], workers;
	char name[64];
	unsigned i;

	workers = -bench_cluster_cpu_time(&c->ours);
	for (i = 0; i < c->n_others; i++)
		others[i] = -bench_cpu_time(c->others[i]);
	(void)naps(c);
	here += bench_cpu_time(0);
	workers += bench_cluster_cpu_time(&c->ours);
	for (i = 0; i < c->n_others; i++)
		others[i] += bench_cpu_time(c->others[i]);
	snprintf(name, sizeof(name), "%s-cpu", metric);
	bench_count(name, BENCH_OURS "/coordinator", here / FUNCTIONS * 1e6,
		    unit);
	if (workers > 0)
		bench_count(name, BENCH_OURS "/workers",
			    workers / FUNCTIONS * 1e6, unit);
	for (i = 0; i < c->n_others; i++)
		bench_count(name, names[i], others[i] / FUNCTIONS * 1e6, unit);
}

static void
measure(struct crowd *c, const char *metric)
{
	const struct bench_side sides[] = { { BENCH_OURS, naps, c, 0 } };

	bench_cluster_until_up(&c->ours, WORKERS);
	(void)naps(c);
	bench_compare_rates(metric, "k/s", sides, 1, ROUNDS);
	cpu_times(c, metric);
	bench_cluster_close(&c->ours);
}

void
bench_cluster_one_by_one(void)
{
	const evc_cluster_config config = { .lease = LEASE };
	struct crowd c = { .n_others = 0 };

	have_files();
	bench_cluster_open(&c.ours, "threads://1024", &config, NULL);
	measure(&c, "one-by-one-1024-threads");
	bench_cluster_open(&c.ours, "processes://1024", &config, NULL);
	measure(&c, "one-by-one-1024-processes");
}

#ifdef HAVE_REDIS
void
bench_redis_one_by_one(void)
{
	const evc_cluster_config config = { .lease = LEASE };
	struct crowd c = { .n_others = NODES + 1 };
	struct bench_server s;
	char uri[64];
	unsigned i;

	have_files();
	if (!bench_server_start(&s, "one-by-one-4-nodes-of-256"))
		return;
	for (i = 0; i < NODES; i++)
		c.others[i] = bench_node_start(&s, "crowd", WORKERS / NODES);
	c.others[NODES] = s.pid;
	snprintf(uri, sizeof(uri), "redis://127.0.0.1:%d/crowd", s.port);
	bench_cluster_open(&c.ours, uri, &config, NULL);
	measure(&c, "one-by-one-4-nodes-of-256");
	for (i = 0; i < NODES; i++)
		bench_node_end(c.others[i]);
	bench_server_end(&s);
}
#endif
