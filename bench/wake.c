/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Request until all threads that wait for the stop are awake, against a bare
 * futex broadcast.  The figure is that of the last.
 */
#include <limits.h>
#include <stdio.h>

#include "crowd.h"

#define MOST 1000

struct wake {
	struct crowd crowd;
	evc_coord *c;
	/* The word of the bare side. */
	uint32_t bare __attribute__((aligned(64)));
};

static double
sample_ours(void *arg)
{
	struct wake *k = arg;

	return crowd_stop(&k->crowd, k->c);
}

static double
sample_bare(void *arg)
{
	struct wake *k = arg;
	uint64_t t0;

	crowd_send(&k->crowd, false);
	t0 = bench_now();
	__atomic_store_n(&k->bare, 1, __ATOMIC_SEQ_CST);
	bench_futex_wake(&k->bare, INT_MAX);
	return crowd_awake(&k->crowd, t0);
}

static void
measure(unsigned n, int cpu, int or_cpu, const char *where, unsigned rounds,
	unsigned per_round)
{
	struct wake k = { .bare = 0 };
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &k, 0 },
		{ "raw/bare-futex-broadcast", sample_bare, &k, 1.15 },
	};
	char metric[64];
	unsigned i;

	bench_must(evc_new(NULL, NULL, &k.c), "evc_new");
	crowd_make(&k.crowd, n, cpu, or_cpu);
	for (i = 0; i < n; i++) {
		k.crowd.w[i].c = k.c;
		k.crowd.w[i].bare = &k.bare;
	}
	crowd_start(&k.crowd);
	snprintf(metric, sizeof(metric), "wake-%u-%s", n, where);
	bench_compare(metric, "us", sides, 2, rounds, per_round, NULL);
	crowd_end(&k.crowd);
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
