/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last end until the join returned, for threads that the coordinator
 * started, against pthread_create and pthread_join with the same stacks.
 *
 * All threads wait at a gate.  It is opened by a thread of its own once the
 * joiner sleeps in its join, so the joiner always has to be woken.  The last
 * thing a thread does is to look at the clock.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define STACK (256 * 1024)
#define MOST 64

struct group {
	unsigned n;
	int cpu, or_cpu;     /* where the threads are */
	evc_coord *c;
	uint32_t here;       /* threads -> joiner: how many are at the gate */
	uint32_t gate;       /* opener -> threads */
	uint64_t ended[MOST];
	/* The opener: order is the number of the turn, written by the
	   joiner, and gate follows it. */
	uint32_t order;
	bool quit;
	int joiner;
};

struct one {
	struct group *g;
	unsigned i;
};

static void
stand_at_gate(struct one *o)
{
	struct group *g = o->g;

	bench_pin(g->cpu, g->or_cpu);
	if (__atomic_add_fetch(&g->here, 1, __ATOMIC_ACQ_REL) == g->n)
		bench_futex_wake(&g->here, 1);
	bench_wait_until(&g->gate, 1);
	g->ended[o->i] = bench_now();
}

static evc_status
run_ours(evc_coord *c, void *arg)
{
	(void)c;
	stand_at_gate(arg);
	return 0;
}

static void *
run_bare(void *arg)
{
	stand_at_gate(arg);
	return NULL;
}

static void *
run_opener(void *arg)
{
	struct group *g = arg;
	uint32_t turn = 0;

	bench_pin(g->cpu, g->or_cpu);
	for (;;) {
		bench_wait_until(&g->order, ++turn);
		if (g->quit)
			return NULL;
		bench_until_asleep(g->joiner);
		__atomic_store_n(&g->gate, 1, __ATOMIC_RELEASE);
		bench_futex_wake(&g->gate, INT_MAX);
	}
}

static void
give_order(struct group *g)
{
	__atomic_add_fetch(&g->order, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&g->order, 1);
}

/* Microseconds from the last end to now. */
static double
since_last_end(const struct group *g)
{
	uint64_t now = bench_now(), last = 0;
	unsigned i;

	for (i = 0; i < g->n; i++) {
		if (g->ended[i] > last)
			last = g->ended[i];
	}
	return (double)(now - last) / 1e3;
}

static double
sample_ours(void *arg)
{
	const evc_member_opts opts = { .stack = STACK };
	struct group *g = arg;
	struct one o[MOST];
	evc_status st;
	double took;
	unsigned i;

	g->gate = g->here = 0;
	for (i = 0; i < g->n; i++) {
		o[i].g = g;
		o[i].i = i;
		bench_must(evc_thread_start(g->c, "bench", run_ours, &o[i],
					    &opts, NULL), "evc_thread_start");
	}
	bench_wait_until(&g->here, g->n);
	give_order(g);
	st = evc_join(g->c, NULL, NULL);
	took = since_last_end(g);
	bench_must(st, "evc_join");
	bench_must(evc_clear_stop(g->c), "evc_clear_stop");
	return took;
}

static double
sample_bare(void *arg)
{
	struct group *g = arg;
	struct one o[MOST];
	pthread_t t[MOST];
	double took;
	int err = 0;
	unsigned i;

	g->gate = g->here = 0;
	for (i = 0; i < g->n; i++) {
		o[i].g = g;
		o[i].i = i;
		t[i] = bench_thread(run_bare, &o[i], STACK);
	}
	bench_wait_until(&g->here, g->n);
	give_order(g);
	for (i = 0; i < g->n; i++)
		err |= pthread_join(t[i], NULL);
	took = since_last_end(g);
	bench_must_sys(err, "pthread_join");
	return took;
}

static void
measure(unsigned n, int cpu, int or_cpu, const char *where, unsigned rounds,
	unsigned per_round)
{
	struct group g = { .n = n, .cpu = cpu, .or_cpu = or_cpu };
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &g, 0 },
		{ "raw/bare-pthread_join", sample_bare, &g, 1.25 },
	};
	char metric[64];
	pthread_t t;

	g.joiner = bench_tid();
	bench_must(evc_new(NULL, NULL, &g.c), "evc_new");
	t = bench_thread(run_opener, &g, 0);
	snprintf(metric, sizeof(metric), "join-%u-%s", n, where);
	bench_compare(metric, "us", sides, 2, rounds, per_round, NULL);
	g.quit = true;
	give_order(&g);
	bench_must_sys(pthread_join(t, NULL), "pthread_join");
	bench_must(evc_free(g.c), "evc_free");
}

void
bench_join(void)
{
	int cpu[2], n = bench_cpus(cpu);

	bench_pin(cpu[0], cpu[0]);
	measure(1, cpu[0], cpu[0], "one-cpu", 31, 30);
	measure(MOST, cpu[0], cpu[0], "one-cpu", 21, 5);
	if (n < 2) {
		bench_skip("join-1-two-cpus", "one cpu only");
		bench_skip("join-64-two-cpus", "one cpu only");
		bench_skip("join-1-free", "one cpu only");
		bench_skip("join-64-free", "one cpu only");
		return;
	}
	/* The joiner alone on one cpu, all others on the other. */
	measure(1, cpu[1], cpu[1], "two-cpus", 31, 30);
	measure(MOST, cpu[1], cpu[1], "two-cpus", 21, 5);
	/* All of them on either of the two, as the kernel likes. */
	bench_pin(cpu[0], cpu[1]);
	measure(1, cpu[0], cpu[1], "free", 31, 30);
	measure(MOST, cpu[0], cpu[1], "free", 21, 5);
}
