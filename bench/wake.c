/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Request until all threads that wait for the stop are awake, against a bare
 * futex broadcast.  The same threads serve both sides: before each turn all
 * of them are seen to sleep where they wait, then the clock starts; each one
 * looks at the clock as soon as it is back.  The figure is that of the last.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define STACK (64 * 1024)
#define MOST 1000

struct waiter {
	struct crowd *crowd;
	pthread_t thread;
	int tid;
	uint64_t awake; /* waiter -> main, by crowd.left */
	/* A line for each, so that nobody waits for another's clock. */
	char pad[64];
};

struct crowd {
	unsigned n;
	int cpu, or_cpu; /* where the waiters are */
	bool ours, quit; /* main -> waiters, by turn */
	uint32_t turn;   /* main -> waiters: wait once more */
	uint32_t here;   /* waiters -> main: how many are about to wait */
	uint32_t left;   /* waiters -> main: how many are not back */
	evc_coord *c;
	struct waiter *w;
	/* The word of the bare side. */
	uint32_t bare __attribute__((aligned(64)));
};

static void *
run_waiter(void *arg)
{
	struct waiter *w = arg;
	struct crowd *k = w->crowd;
	uint32_t turn = 0;

	bench_pin(k->cpu, k->or_cpu);
	w->tid = bench_tid();
	for (;;) {
		bench_wait_until(&k->turn, ++turn);
		if (k->quit)
			return NULL;
		if (__atomic_add_fetch(&k->here, 1, __ATOMIC_ACQ_REL) == k->n)
			bench_futex_wake(&k->here, 1);
		if (k->ours)
			(void)evc_wait_for_stop(k->c, INFINITY);
		else
			bench_wait_until(&k->bare, 1);
		w->awake = bench_now();
		if (__atomic_sub_fetch(&k->left, 1, __ATOMIC_ACQ_REL) == 0)
			bench_futex_wake(&k->left, 1);
	}
}

/* Send all waiters to sleep on one of the sides. */
static void
send_to_wait(struct crowd *k, bool ours)
{
	unsigned i;

	k->ours = ours;
	k->here = 0;
	k->left = k->n;
	__atomic_store_n(&k->bare, 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&k->turn, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&k->turn, INT_MAX);
	bench_wait_until(&k->here, k->n);
	for (i = 0; i < k->n; i++)
		bench_until_asleep(k->w[i].tid);
}

/* Wait for all; microseconds from t0 until the last one was awake. */
static double
last_awake(struct crowd *k, uint64_t t0)
{
	uint64_t last = 0;
	unsigned i;

	bench_wait_until(&k->left, 0);
	for (i = 0; i < k->n; i++) {
		if (k->w[i].awake > last)
			last = k->w[i].awake;
	}
	return (double)(last - t0) / 1e3;
}

static double
sample_ours(void *arg)
{
	struct crowd *k = arg;
	uint64_t t0;
	double took;

	send_to_wait(k, true);
	t0 = bench_now();
	(void)evc_request_stop(k->c, 0, "bench");
	took = last_awake(k, t0);
	bench_must(evc_clear_stop(k->c), "evc_clear_stop");
	return took;
}

static double
sample_bare(void *arg)
{
	struct crowd *k = arg;
	uint64_t t0;

	send_to_wait(k, false);
	t0 = bench_now();
	__atomic_store_n(&k->bare, 1, __ATOMIC_SEQ_CST);
	bench_futex_wake(&k->bare, INT_MAX);
	return last_awake(k, t0);
}

static void
measure(unsigned n, int cpu, int or_cpu, const char *where, unsigned rounds,
	unsigned per_round)
{
	struct crowd k = { .n = n, .cpu = cpu, .or_cpu = or_cpu };
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &k, 0 },
		{ "raw/bare-futex-broadcast", sample_bare, &k, 1.15 },
	};
	char metric[64];
	unsigned i;

	bench_must(evc_new(NULL, NULL, &k.c), "evc_new");
	k.w = calloc(n, sizeof(*k.w));
	if (!k.w)
		bench_must(-EVC_RESOURCE_EXHAUSTED, "calloc");
	for (i = 0; i < n; i++) {
		k.w[i].crowd = &k;
		k.w[i].thread = bench_thread(run_waiter, &k.w[i], STACK);
	}
	snprintf(metric, sizeof(metric), "wake-%u-%s", n, where);
	bench_compare(metric, "us", sides, 2, rounds, per_round, NULL);
	k.quit = true;
	__atomic_add_fetch(&k.turn, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&k.turn, INT_MAX);
	for (i = 0; i < n; i++)
		bench_must_sys(pthread_join(k.w[i].thread, NULL),
			       "pthread_join");
	free(k.w);
	bench_must(evc_free(k.c), "evc_free");
}

void
bench_wake(void)
{
	int cpu[2], n = bench_cpus(cpu);

	bench_pin(cpu[0], cpu[0]);
	measure(1, cpu[0], cpu[0], "one-cpu", 21, 50);
	if (n < 2) {
		bench_skip("wake-1-two-cpus", "one cpu only");
		measure(64, cpu[0], cpu[0], "one-cpu", 21, 10);
		measure(MOST, cpu[0], cpu[0], "one-cpu", 15, 2);
		return;
	}
	/* One waiter on the other cpu; a crowd on both. */
	measure(1, cpu[1], cpu[1], "two-cpus", 21, 50);
	bench_pin(cpu[0], cpu[1]);
	measure(64, cpu[0], cpu[1], "two-cpus", 21, 10);
	measure(MOST, cpu[0], cpu[1], "two-cpus", 21, 2);
}
