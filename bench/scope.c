/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stop that goes down through scopes.
 *
 * First until the last of the threads that wait, one in each scope, is awake,
 * against what cannot be done without: one compare-and-swap and one futex wake
 * for each.  The same threads serve both sides and are seen to sleep before
 * each turn.  Then the descent alone, with nobody waiting: until the request
 * has returned, which is when all were told, against the same compare-and-swaps
 * and two looks at clocks.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

#define STACK (64 * 1024)

/* The bare word of a scope, on a line of its own. */
struct word {
	uint64_t stop;
	uint32_t futex;
	char pad[52];
};

struct waiter {
	struct family *family;
	evc_coord *scope;
	struct word *bare;
	pthread_t thread;
	int tid;
	uint64_t awake; /* waiter -> main, by family.left */
	char pad[64];
};

struct family {
	unsigned n;
	int cpu, or_cpu; /* where the waiters are */
	bool ours, quit; /* main -> waiters, by turn */
	uint32_t turn;   /* main -> waiters: wait once more */
	uint32_t here;   /* waiters -> main: how many are about to wait */
	uint32_t left;   /* waiters -> main: how many are not back */
	evc_coord *parent;
	evc_coord **scopes;
	struct waiter *w;
	struct word *bare;
};

static void *
run_waiter(void *arg)
{
	struct waiter *w = arg;
	struct family *f = w->family;
	uint32_t turn = 0;

	bench_pin(f->cpu, f->or_cpu);
	w->tid = bench_tid();
	for (;;) {
		bench_wait_until(&f->turn, ++turn);
		if (f->quit)
			return NULL;
		if (__atomic_add_fetch(&f->here, 1, __ATOMIC_ACQ_REL) == f->n)
			bench_futex_wake(&f->here, 1);
		if (f->ours)
			(void)evc_wait_for_stop(w->scope, INFINITY);
		else
			bench_wait_until(&w->bare->futex, 1);
		w->awake = bench_now();
		if (__atomic_sub_fetch(&f->left, 1, __ATOMIC_ACQ_REL) == 0)
			bench_futex_wake(&f->left, 1);
	}
}

/* Send all waiters to sleep on one of the sides. */
static void
send_to_wait(struct family *f, bool to_ours)
{
	unsigned i;

	f->ours = to_ours;
	f->here = 0;
	f->left = f->n;
	for (i = 0; i < f->n; i++) {
		f->bare[i].stop = 0;
		__atomic_store_n(&f->bare[i].futex, 0, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(&f->turn, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&f->turn, INT_MAX);
	bench_wait_until(&f->here, f->n);
	for (i = 0; i < f->n; i++)
		bench_until_asleep(f->w[i].tid);
}

/* Wait for all; microseconds from t0 until the last one was awake. */
static double
last_awake(struct family *f, uint64_t t0)
{
	uint64_t last = 0;
	unsigned i;

	bench_wait_until(&f->left, 0);
	for (i = 0; i < f->n; i++) {
		if (f->w[i].awake > last)
			last = f->w[i].awake;
	}
	return (double)(last - t0) / 1e3;
}

static double
wake_ours(void *arg)
{
	struct family *f = arg;
	uint64_t t0;
	double took;

	send_to_wait(f, true);
	t0 = bench_now();
	(void)evc_request_stop(f->parent, 0, "bench");
	took = last_awake(f, t0);
	bench_must(evc_clear_stop(f->parent), "evc_clear_stop");
	return took;
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

	send_to_wait(f, false);
	t0 = bench_now();
	for (i = 0; i < f->n; i++) {
		swap(&f->bare[i].stop);
		__atomic_store_n(&f->bare[i].futex, 1, __ATOMIC_RELEASE);
		bench_futex_wake(&f->bare[i].futex, INT_MAX);
	}
	return last_awake(f, t0);
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
	struct family f = { .n = n, .cpu = cpu, .or_cpu = or_cpu };
	const struct bench_side sides[] = {
		{ BENCH_OURS, wake_ours, &f, 0 },
		{ "raw/bare-cas-and-futex-each", wake_bare, &f, 1.15 },
	};
	char metric[64];
	unsigned i;

	make(&f);
	f.w = bench_array(n, sizeof(*f.w));
	for (i = 0; i < n; i++) {
		f.w[i].family = &f;
		f.w[i].scope = f.scopes[i];
		f.w[i].bare = &f.bare[i];
		f.w[i].thread = bench_thread(run_waiter, &f.w[i], STACK);
	}
	snprintf(metric, sizeof(metric), "scope-wake-%u-%s", n, where);
	bench_compare(metric, "us", sides, 2, rounds, per_round, NULL);
	f.quit = true;
	__atomic_add_fetch(&f.turn, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&f.turn, INT_MAX);
	for (i = 0; i < n; i++)
		bench_must_sys(pthread_join(f.w[i].thread, NULL),
			       "pthread_join");
	free(f.w);
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
