/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stacks of 64 KiB, 256 KiB and 8 MiB cost: microseconds of a start and of
 * a join for each of 1, 100 and 1000 threads, against pthread_create and
 * pthread_join with the same stacks.
 *
 * All threads wait at a gate until the last one has been started; the join is
 * timed from its opening on, so with the threads' ends.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define MOST 1000
#define ROUNDS 9

struct figures {
	double start[ROUNDS], join[ROUNDS];
};

static uint32_t gate;

static evc_status
run_ours(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	bench_wait_until(&gate, 1);
	return 0;
}

static void *
run_bare(void *arg)
{
	(void)arg;
	bench_wait_until(&gate, 1);
	return NULL;
}

static void
open_gate(void)
{
	__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&gate, INT_MAX);
}

static double
each(uint64_t t0, unsigned n)
{
	return (double)(bench_now() - t0) / 1e3 / n;
}

static void
round_ours(evc_coord *c, unsigned n, size_t stack, struct figures *f,
	   unsigned round)
{
	const evc_member_opts opts = { .stack = stack };
	uint64_t t0 = bench_now();
	unsigned i;

	gate = 0;
	for (i = 0; i < n; i++)
		bench_must(evc_thread_start(c, "bench", run_ours, NULL, &opts,
					    NULL), "evc_thread_start");
	f->start[round] = each(t0, n);
	t0 = bench_now();
	open_gate();
	bench_must(evc_join(c, NULL, NULL), "evc_join");
	f->join[round] = each(t0, n);
	bench_must(evc_clear_stop(c), "evc_clear_stop");
}

static void
round_bare(unsigned n, size_t stack, struct figures *f, unsigned round)
{
	static pthread_t t[MOST];
	uint64_t t0 = bench_now();
	unsigned i;
	int err = 0;

	gate = 0;
	for (i = 0; i < n; i++)
		t[i] = bench_thread(run_bare, NULL, stack);
	f->start[round] = each(t0, n);
	t0 = bench_now();
	open_gate();
	for (i = 0; i < n; i++)
		err |= pthread_join(t[i], NULL);
	f->join[round] = each(t0, n);
	bench_must_sys(err, "pthread_join");
}

static void
measure(unsigned n, size_t stack)
{
	struct figures ours, bare;
	const struct bench_taken start[] = {
		{ BENCH_OURS, ours.start, 0 },
		{ "raw/bare-pthread_create", bare.start, 0 },
	}, join[] = {
		{ BENCH_OURS, ours.join, 0 },
		{ "raw/bare-pthread_join", bare.join, 0 },
	};
	char metric[64];
	evc_coord *c;
	unsigned i;

	bench_must(evc_new(NULL, NULL, &c), "evc_new");
	for (i = 0; i < ROUNDS; i++) {
		if (i % 2)
			round_bare(n, stack, &bare, i);
		round_ours(c, n, stack, &ours, i);
		if (i % 2 == 0)
			round_bare(n, stack, &bare, i);
	}
	bench_must(evc_free(c), "evc_free");
	snprintf(metric, sizeof(metric), "stacks-%zuKiB-%u-start", stack / 1024,
		 n);
	bench_compare_taken(metric, "us-each", start, 2, ROUNDS, 1, BENCH_COST);
	snprintf(metric, sizeof(metric), "stacks-%zuKiB-%u-join", stack / 1024,
		 n);
	bench_compare_taken(metric, "us-each", join, 2, ROUNDS, 1, BENCH_COST);
}

void
bench_stacks(void)
{
	static const size_t stacks[] = { 64 * 1024, 256 * 1024,
					 8 * 1024 * 1024 };
	static const unsigned many[] = { 1, 100, MOST };
	unsigned i, k;

	for (i = 0; i < 3; i++)
		for (k = 0; k < 3; k++)
			measure(many[i], stacks[k]);
}
