/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster over Redis: functions that do nothing, on four workers of a node.
 *
 *	redis-tasks  many at once; beside it a bare pair that says six
 *	             commands a task
 *	redis-trip   one in flight, from a callback to a callback; beside
 *	             it one task of the bare pair
 *
 * The server, the workers of both sides and who schedules share two cpus.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster_redis.h"

#define WORKERS 4
#define PREFETCH 8
#define WINDOW 256
#define JOBS 40000
#define TASKS 20000
#define ROUNDS 11
#define TRIPS 200
#define TRIP_ROUNDS 21

/* ---- many ---- */

struct sides {
	struct bench_server server;
	struct bench_cluster ours;
	struct bench_bare bare;
	pid_t node;
};

/* Thousand a second. */
static double
sample_ours(void *arg)
{
	struct sides *s = arg;

	return JOBS / bench_cluster_work(&s->ours, JOBS) / 1e3;
}

static double
sample_bare(void *arg)
{
	struct sides *s = arg;

	return TASKS / bench_bare_work(&s->bare, TASKS, WINDOW) / 1e3;
}

static double
bare_cpu_time(const struct bench_bare *b)
{
	double sum = 0;
	unsigned i;

	for (i = 0; i < b->n; i++)
		sum += bench_cpu_time(b->pid[i]);
	return sum;
}

static void
cpu_times(struct sides *s)
{
	const char *metric = "redis-tasks-4-cpu", *unit = "us-a-function";
	double here = -bench_cpu_time(0);
	double node = -bench_cpu_time(s->node);
	double there = -bench_cluster_cpu_time(&s->ours);
	double server = -bench_cpu_time(s->server.pid);

	(void)sample_ours(s);
	here += bench_cpu_time(0);
	node += bench_cpu_time(s->node);
	there += bench_cluster_cpu_time(&s->ours);
	server += bench_cpu_time(s->server.pid);
	bench_count(metric, BENCH_OURS "/coordinator", here / JOBS * 1e6,
		    unit);
	bench_count(metric, BENCH_OURS "/node", node / JOBS * 1e6, unit);
	bench_count(metric, BENCH_OURS "/workers", there / JOBS * 1e6, unit);
	bench_count(metric, BENCH_OURS "/server", server / JOBS * 1e6, unit);
	here = -bench_cpu_time(0);
	there = -bare_cpu_time(&s->bare);
	server = -bench_cpu_time(s->server.pid);
	(void)sample_bare(s);
	here += bench_cpu_time(0);
	there += bare_cpu_time(&s->bare);
	server += bench_cpu_time(s->server.pid);
	bench_count(metric, "raw/coordinator", here / TASKS * 1e6, unit);
	bench_count(metric, "raw/workers", there / TASKS * 1e6, unit);
	bench_count(metric, "raw/server", server / TASKS * 1e6, unit);
}

void
bench_redis_tasks(void)
{
	struct sides s;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &s, 0 },
		{ "raw/six-commands", sample_bare, &s, 0.8 },
	};
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (!bench_server_start(&s.server, "redis-tasks-4"))
		return;
	bench_bare_start(&s.bare, &s.server, WORKERS, PREFETCH);
	s.node = bench_node_start(&s.server, "tasks", WORKERS);
	bench_server_open(&s.server, "tasks", &s.ours, NULL);
	bench_cluster_until_up(&s.ours, WORKERS);
	bench_compare_rates("redis-tasks-4", "k/s", sides, 2, ROUNDS);
	cpu_times(&s);
	bench_cluster_close(&s.ours);
	bench_node_end(s.node);
	bench_bare_end(&s.bare);
	bench_server_end(&s.server);
}

/* ---- one ---- */

static void
trips_bare(struct bench_bare *b, double *each)
{
	unsigned i;

	for (i = 0; i < TRIPS; i++)
		each[i] = bench_bare_ping(b) * 1e6;
}

static void
trips(struct bench_trip *t, struct bench_bare *bare)
{
	const unsigned n = TRIP_ROUNDS * TRIPS;
	double *ours = bench_array(n, sizeof(*ours));
	double *raw = bench_array(n, sizeof(*raw));
	struct bench_taken sides[] = {
		{ BENCH_OURS, ours, 0 },
		{ "raw/four-commands", raw, 2 },
	};
	unsigned r;

	/* The first ones wait for the workers. */
	bench_trips(t, ours, TRIPS);
	trips_bare(bare, raw);
	for (r = 0; r < TRIP_ROUNDS; r++) {
		if (r % 2)
			trips_bare(bare, raw + r * TRIPS);
		bench_trips(t, ours + r * TRIPS, TRIPS);
		if (r % 2 == 0)
			trips_bare(bare, raw + r * TRIPS);
	}
	bench_compare_taken("redis-trip", "us", sides, 2, TRIP_ROUNDS, TRIPS,
			    BENCH_COST);
	sides[1].goal = 0;
	bench_compare_taken("redis-trip-p99", "us", sides, 2, TRIP_ROUNDS,
			    TRIPS, BENCH_TAIL);
	free(ours);
	free(raw);
}

void
bench_redis_trip(void)
{
	struct bench_trip t = { .loop = ev_loop_new(EVFLAG_AUTO) };
	struct bench_server server;
	struct bench_bare bare;
	pid_t node;
	int cpu[2];

	if (!t.loop)
		bench_must(-EVC_RESOURCE_EXHAUSTED, "ev_loop_new");
	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (!bench_server_start(&server, "redis-trip"))
		return;
	bench_bare_start(&bare, &server, 1, PREFETCH);
	node = bench_node_start(&server, "trip", 1);
	bench_server_open(&server, "trip", &t.cluster, t.loop);
	trips(&t, &bare);
	bench_cluster_close(&t.cluster);
	ev_loop_destroy(t.loop);
	bench_node_end(node);
	bench_bare_end(&bare);
	bench_server_end(&server);
}
