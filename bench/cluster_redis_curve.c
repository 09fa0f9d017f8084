/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster over Redis with 1, 2, 4 and 8 workers of one node: functions that
 * do nothing, beside the bare pair with as many; and functions that sleep, for
 * which twice as many workers should be twice as fast, however few cpus there
 * are.
 */
#include <math.h>
#include <stdio.h>

#include "cluster_redis.h"

#define SIZES 4
#define PREFETCH 8
#define WINDOW 256
#define TASKS 10000
#define ROUNDS 5
#define ADDS_EACH 4000
#define NAP_SECONDS 0.4 /* that the functions of one sample take */

static const unsigned sizes[SIZES] = { 1, 2, 4, 8 };

struct point {
	struct bench_cluster ours;
	struct bench_bare bare;
	pid_t node;
	unsigned n;
};

/* Thousand a second. */
static double
sample_ours(void *arg)
{
	struct point *p = arg;

	return TASKS / bench_cluster_work(&p->ours, TASKS) / 1e3;
}

static double
sample_bare(void *arg)
{
	struct point *p = arg;

	return TASKS / bench_bare_work(&p->bare, TASKS, WINDOW) / 1e3;
}

/* Functions a second that sleep so long. */
static double
naps(const struct point *p, double seconds)
{
	unsigned i, n = (unsigned)(NAP_SECONDS / seconds) * p->n;
	uint64_t t0 = bench_now();
	evc_status st = 0;

	for (i = 0; i < n && st == 0; i++)
		st = evc_schedule_pack(p->ours.cluster, NAP, NULL, NULL,
				       "[d]", seconds);
	if (st == 0)
		st = evc_cluster_join(p->ours.cluster, INFINITY);
	bench_must(st > 0 ? -st : st, "a function that sleeps");
	return n / ((double)(bench_now() - t0) / 1e9);
}

static void
point_start(struct point *p, const struct bench_server *s, unsigned n)
{
	char ns[16];

	snprintf(ns, sizeof(ns), "curve%u", n);
	p->n = n;
	p->node = bench_node_start(s, ns, n);
	bench_server_open(s, ns, &p->ours, NULL);
	bench_cluster_until_up(&p->ours, n);
}

static void
point_end(struct point *p)
{
	bench_cluster_close(&p->ours);
	bench_node_end(p->node);
}

static void
tasks(const struct bench_server *s, unsigned n)
{
	struct point p;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &p, 0 },
		{ "raw/six-commands", sample_bare, &p, 0 },
	};
	char metric[32];

	snprintf(metric, sizeof(metric), "redis-workers-%u", n);
	bench_bare_start(&p.bare, s, n, PREFETCH);
	point_start(&p, s, n);
	bench_compare_rates(metric, "k/s", sides, 2, ROUNDS);
	point_end(&p);
	bench_bare_end(&p.bare);
}

void
bench_redis_curve(void)
{
	struct bench_server s;
	unsigned i;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (!bench_server_start(&s, "redis-workers"))
		return;
	for (i = 0; i < SIZES; i++)
		tasks(&s, sizes[i]);
	bench_server_end(&s);
}

/* What a sleep takes by itself, of which one worker could do so many. */
static double
bare_naps(double seconds)
{
	unsigned i, n = (unsigned)(NAP_SECONDS / 4 / seconds);
	uint64_t t0 = bench_now();

	for (i = 0; i < n; i++)
		bench_sleep(seconds);
	return n / ((double)(bench_now() - t0) / 1e9);
}

/* How near to n times the rate of one worker, and to that of n who do nothing
   but sleep. */
static void
linear(const struct bench_server *s, const char *what, double seconds)
{
	double ours[SIZES][ROUNDS], one[SIZES][ROUNDS], bare[SIZES][ROUNDS];
	struct bench_taken sides[3] = {
		{ BENCH_OURS, NULL, 0 },
		{ "raw/n-times-one-worker", NULL, 0 },
		{ "raw/n-that-sleep", NULL, 0 },
	};
	struct point p[SIZES];
	char metric[32];
	unsigned i, r;

	for (i = 0; i < SIZES; i++) {
		point_start(&p[i], s, sizes[i]);
		(void)naps(&p[i], seconds);
	}
	for (r = 0; r < ROUNDS; r++) {
		bare[0][r] = bare_naps(seconds);
		for (i = 0; i < SIZES; i++) {
			ours[i][r] = naps(&p[i], seconds);
			one[i][r] = ours[0][r] * sizes[i];
			bare[i][r] = bare[0][r] * sizes[i];
		}
	}
	for (i = 0; i < SIZES; i++) {
		snprintf(metric, sizeof(metric), "redis-%s-%u", what,
			 sizes[i]);
		sides[0].figures = ours[i];
		sides[1].figures = one[i];
		sides[1].goal = i ? 0.9 : 0;
		sides[2].figures = bare[i];
		bench_compare_taken(metric, "a-second", sides, 3, ROUNDS, 1,
				    BENCH_RATE);
		point_end(&p[i]);
	}
}

void
bench_redis_naps(void)
{
	struct bench_server s;

	if (!bench_server_start(&s, "redis-sleep"))
		return;
	linear(&s, "sleep-1ms", 0.001);
	linear(&s, "sleep-10ms", 0.01);
	bench_server_end(&s);
}

/* Thousand additions a second, by functions with so many of them. */
static double
adds(const struct point *p, unsigned each, bool plain)
{
	const evc_schedule_opts txn = { .flags = EVC_TRANSACTIONAL };
	unsigned i, n = p->n * ADDS_EACH / each;
	uint64_t t0 = bench_now();
	evc_status st = 0;

	for (i = 0; i < n && st == 0; i++)
		st = evc_schedule_pack(p->ours.cluster, ADDS,
				       plain ? NULL : &txn, NULL, "[i]",
				       (int)each);
	if (st == 0)
		st = evc_cluster_join(p->ours.cluster, INFINITY);
	bench_must(st > 0 ? -st : st, "a function that adds");
	return n * each / ((double)(bench_now() - t0) / 1e9) / 1e3;
}

static double
sample_plain(void *arg)
{
	return adds(arg, 1, true);
}

static double
sample_many(void *arg)
{
	return adds(arg, ADDS_EACH / 10, true);
}

static double
sample_transactions(void *arg)
{
	return adds(arg, 1, false);
}

void
bench_redis_adds(void)
{
	struct bench_server s;
	struct point p;
	const struct bench_side sides[] = {
		{ BENCH_OURS "/plain", sample_plain, &p, 0 },
		{ BENCH_OURS "/transactional", sample_transactions, &p, 0 },
		{ BENCH_OURS "/plain-400-each", sample_many, &p, 0 },
	};
	char metric[32];
	unsigned i;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (!bench_server_start(&s, "redis-adds"))
		return;
	for (i = 0; i < SIZES; i++) {
		snprintf(metric, sizeof(metric), "redis-adds-%u", sizes[i]);
		point_start(&p, &s, sizes[i]);
		bench_compare_rates(metric, "k/s", sides, 3, ROUNDS);
		point_end(&p);
	}
	bench_server_end(&s);
}
