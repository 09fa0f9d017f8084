/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stop that goes down through scopes.
 *
 * First until the last of the threads that wait, one in each scope, is awake,
 * against what cannot be done without: one compare-and-swap and one futex wake
 * for each.  Then the descent alone, with nobody waiting: until the request has
 * returned, which is when all were told, against the same compare-and-swaps and
 * two looks at clocks.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "crowd.h"

/* The bare word of a scope, on a line of its own. */
struct word {
	uint64_t stop;
	uint32_t futex;
	char pad[52];
};

struct family {
	unsigned n;
	evc_coord *parent;
	evc_coord **scopes;
	struct word *bare;
	struct crowd crowd; /* one waits in each scope */
};

static double
wake_ours(void *arg)
{
	struct family *f = arg;

	return crowd_stop(&f->crowd, f->parent);
}

static void
swap(uint64_t *word)
{
	uint64_t seen = 0;

	__atomic_compare_exchange_n(word, &seen, 1, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
}

static double
wake_bare(void *arg)
{
	struct family *f = arg;
	uint64_t t0;
	unsigned i;

	for (i = 0; i < f->n; i++)
		f->bare[i].stop = 0;
	crowd_send(&f->crowd, false);
	t0 = bench_now();
	for (i = 0; i < f->n; i++) {
		swap(&f->bare[i].stop);
		__atomic_store_n(&f->bare[i].futex, 1, __ATOMIC_RELEASE);
		bench_futex_wake(&f->bare[i].futex, INT_MAX);
	}
	return crowd_awake(&f->crowd, t0);
}

static double
tell_ours(void *arg)
{
	struct family *f = arg;
	uint64_t t0 = bench_now(), t1;

	(void)evc_request_stop(f->parent, 0, "bench");
	t1 = bench_now();
	if (!evc_should_stop(f->scopes[f->n - 1]))
		bench_must(-EVC_INTERNAL, "a scope that was not told");
	bench_must(evc_clear_stop(f->parent), "evc_clear_stop");
	return (double)(t1 - t0) / 1e3;
}

static double
tell_bare(void *arg)
{
	struct family *f = arg;
	struct timespec mono, wall;
	uint64_t t0, parent = 0;
	unsigned i;

	for (i = 0; i < f->n; i++)
		f->bare[i].stop = 0;
	t0 = bench_now();
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	swap(&parent);
	for (i = 0; i < f->n; i++)
		swap(&f->bare[i].stop);
	return (double)(bench_now() - t0) / 1e3;
}

static double
clear_ours(void *arg)
{
	struct family *f = arg;
	uint64_t t0;

	(void)evc_request_stop(f->parent, 0, "bench");
	t0 = bench_now();
	bench_must(evc_clear_stop(f->parent), "evc_clear_stop");
	return (double)(bench_now() - t0) / 1e3;
}

static void
make(struct family *f)
{
	unsigned i;

	bench_must(evc_new(NULL, NULL, &f->parent), "evc_new");
	f->scopes = bench_array(f->n, sizeof(*f->scopes));
	f->bare = bench_array(f->n, sizeof(*f->bare));
	for (i = 0; i < f->n; i++) {
		bench_must(evc_scope_new(f->parent, "bench", NULL,
					 &f->scopes[i]), "evc_scope_new");
		bench_must(evc_scope_ready(f->scopes[i]), "evc_scope_ready");
	}
}

static void
unmake(struct family *f)
{
	unsigned i;

	for (i = 0; i < f->n; i++)
		bench_must(evc_free(f->scopes[i]), "evc_free");
	bench_must(evc_free(f->parent), "evc_free");
	free(f->scopes);
	free(f->bare);
}

static void
measure_wake(unsigned n, int cpu, int or_cpu, const char *where,
	     unsigned rounds, unsigned per_round)
{
	struct family f = { .n = n };
	const struct bench_side sides[] = {
		{ BENCH_OURS, wake_ours, &f, 0 },
		{ "raw/bare-cas-and-futex-each", wake_bare, &f, 1.15 },
	};
	char metric[64];
	unsigned i;

	make(&f);
	crowd_make(&f.crowd, n, cpu, or_cpu);
	for (i = 0; i < n; i++) {
		f.crowd.w[i].c = f.scopes[i];
		f.crowd.w[i].bare = &f.bare[i].futex;
	}
	crowd_start(&f.crowd);
	snprintf(metric, sizeof(metric), "scope-wake-%u-%s", n, where);
	bench_compare(metric, "us", sides, 2, rounds, per_round, NULL);
	crowd_end(&f.crowd);
	unmake(&f);
}

static void
measure_told(unsigned n, unsigned per_round)
{
	struct family f = { .n = n };
	const struct bench_side told[] = {
		{ BENCH_OURS, tell_ours, &f, 0 },
		{ "raw/bare-cas-each-and-two-clocks", tell_bare, &f, 0 },
	}, clear = { BENCH_OURS, clear_ours, &f, 0 };
	char metric[64];

	make(&f);
	snprintf(metric, sizeof(metric), "scope-told-%u", n);
	bench_compare(metric, "us", told, 2, 51, per_round, NULL);
	snprintf(metric, sizeof(metric), "scope-clear-%u", n);
	bench_compare(metric, "us", &clear, 1, 51, per_round, NULL);
	unmake(&f);
}

void
bench_scope(void)
{
	int cpu[2], n = bench_cpus(cpu);

	bench_pin(cpu[0], cpu[0]);
	measure_told(1, 200);
	measure_told(10, 100);
	measure_told(1000, 10);
	measure_wake(1, cpu[0], cpu[0], "one-cpu", 21, 50);
	measure_wake(10, cpu[0], cpu[0], "one-cpu", 21, 20);
	if (n < 2) {
		bench_skip("scope-wake-1-two-cpus", "one cpu only");
		measure_wake(1000, cpu[0], cpu[0], "one-cpu", 15, 2);
		return;
	}
	/* The waiter on the other cpu; a crowd on both. */
	measure_wake(1, cpu[1], cpu[1], "two-cpus", 21, 50);
	bench_pin(cpu[0], cpu[1]);
	measure_wake(10, cpu[0], cpu[1], "two-cpus", 21, 20);
	measure_wake(1000, cpu[0], cpu[1], "two-cpus", 41, 2);
}
