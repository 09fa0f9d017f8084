/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster on processes: functions that do nothing, over sockets.
 *
 *	cluster-processes-4  many at once; beside it raw frames over the
 *	                     same kind of sockets, 256 in flight
 *	cluster-trip         one in flight, from a callback to a callback;
 *	                     beside it a ping over a socketpair; on one
 *	                     cpu, and with the loop and the worker each on
 *	                     its own
 *
 * The limits do no more than move bytes: no queue, no names, no outcomes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

#define JOBS 50000
#define FRAMES 200000
#define WINDOW 256
#define ROUNDS 11
#define TRIP_ROUNDS 21
#define TRIPS 500

/* ---- many ---- */

struct sides {
	struct bench_cluster ours;
	struct bench_echo raw;
};

/* Thousand a second. */
static double
sample_ours(void *arg)
{
	struct sides *s = arg;

	return JOBS / bench_cluster_work(&s->ours, JOBS) / 1e3;
}

static double
sample_raw(void *arg)
{
	struct sides *s = arg;

	return FRAMES / bench_echo_work(&s->raw, FRAMES, WINDOW) / 1e3;
}

static void
cpu_times(struct sides *s)
{
	double here = -bench_cpu_time(0);
	double there = -bench_cluster_cpu_time(&s->ours);

	(void)sample_ours(s);
	here += bench_cpu_time(0);
	there += bench_cluster_cpu_time(&s->ours);
	bench_count("cluster-processes-4-cpu", BENCH_OURS "/coordinator",
		    here / JOBS * 1e6, "us-a-function");
	bench_count("cluster-processes-4-cpu", BENCH_OURS "/workers",
		    there / JOBS * 1e6, "us-a-function");
	here = -bench_cpu_time(0);
	there = -bench_echo_cpu_time(&s->raw);
	(void)sample_raw(s);
	here += bench_cpu_time(0);
	there += bench_echo_cpu_time(&s->raw);
	bench_count("cluster-processes-4-cpu", "raw/bare-frames",
		    here / FRAMES * 1e6, "us-a-frame");
	bench_count("cluster-processes-4-cpu", "raw/echoes",
		    there / FRAMES * 1e6, "us-a-frame");
}

void
bench_cluster_processes(void)
{
	struct sides s;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &s, 0 },
		{ "raw/bare-frames", sample_raw, &s, 0.25 },
	};
	int cpu[2], n = bench_cpus(cpu);
	double took = INFINITY, once;
	unsigned i;

	if (n < 2) {
		bench_skip("cluster-processes-4", "one cpu only");
		return;
	}
	bench_pin(cpu[0], cpu[1]);
	bench_echo_start(&s.raw, 4, -1);
	bench_cluster_open(&s.ours, "processes://4", NULL, NULL);
	bench_cluster_until_up(&s.ours, 4);
	bench_compare_rates("cluster-processes-4", "k/s", sides, 2, ROUNDS);
	for (i = 0; i < 5; i++) {
		once = bench_cluster_work(&s.ours, JOBS);
		if (once < took)
			took = once;
	}
	bench_goal("cluster-processes-4", "best-of-5", took / JOBS * 1e6,
		   "us-a-function", 5);
	cpu_times(&s);
	bench_cluster_close(&s.ours);
	bench_echo_end(&s.raw);
}

/* ---- one ---- */

struct trip {
	struct bench_trip ours;
	struct bench_echo raw;
};

static void
trips_raw(struct trip *t, double *each)
{
	uint64_t t0;
	unsigned i;

	for (i = 0; i < TRIPS; i++) {
		t0 = bench_now();
		bench_echo_ping(&t->raw);
		each[i] = (double)(bench_now() - t0) / 1e3;
	}
}

static void
trips(const char *where, int loop_cpu, int work_cpu)
{
	const unsigned n = TRIP_ROUNDS * TRIPS;
	double *ours = bench_array(n, sizeof(*ours));
	double *raw = bench_array(n, sizeof(*raw));
	struct bench_taken sides[] = {
		{ BENCH_OURS, ours, 0 },
		{ "raw/bare-ping", raw, 2 },
	};
	struct trip t = { .ours.loop = ev_loop_new(EVFLAG_AUTO) };
	char metric[64];
	unsigned r;

	if (!t.ours.loop)
		bench_must(-EVC_RESOURCE_EXHAUSTED, "ev_loop_new");
	/* Workers may run where their parent may. */
	bench_pin(work_cpu, work_cpu);
	bench_echo_start(&t.raw, 1, work_cpu);
	bench_cluster_open(&t.ours.cluster, "processes://1", NULL,
			   t.ours.loop);
	/* The first ones pay for the start of the worker. */
	bench_trips(&t.ours, ours, TRIPS);
	bench_pin(loop_cpu, loop_cpu);
	bench_trips(&t.ours, ours, TRIPS);
	trips_raw(&t, raw);
	for (r = 0; r < TRIP_ROUNDS; r++) {
		if (r % 2)
			trips_raw(&t, raw + r * TRIPS);
		bench_trips(&t.ours, ours + r * TRIPS, TRIPS);
		if (r % 2 == 0)
			trips_raw(&t, raw + r * TRIPS);
	}
	snprintf(metric, sizeof(metric), "cluster-trip-%s", where);
	bench_compare_taken(metric, "us", sides, 2, TRIP_ROUNDS, TRIPS,
			    BENCH_COST);
	snprintf(metric, sizeof(metric), "cluster-trip-%s-p99", where);
	sides[1].goal = 0;
	bench_compare_taken(metric, "us", sides, 2, TRIP_ROUNDS, TRIPS,
			    BENCH_TAIL);
	bench_cluster_close(&t.ours.cluster);
	ev_loop_destroy(t.ours.loop);
	bench_echo_end(&t.raw);
	free(ours);
	free(raw);
}

void
bench_cluster_trip(void)
{
	int cpu[2], n = bench_cpus(cpu);

	trips("one-cpu", cpu[0], cpu[0]);
	if (n < 2)
		bench_skip("cluster-trip-two-cpus", "one cpu only");
	else
		trips("two-cpus", cpu[0], cpu[1]);
}
