/* SPDX-License-Identifier: BSD-2-Clause */
#include "crowd.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define STACK (64 * 1024)

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
			(void)evc_wait_for_stop(w->c, INFINITY);
		else
			bench_wait_until(w->bare, 1);
		w->awake = bench_now();
		if (__atomic_sub_fetch(&k->left, 1, __ATOMIC_ACQ_REL) == 0)
			bench_futex_wake(&k->left, 1);
	}
}

void
crowd_make(struct crowd *k, unsigned n, int cpu, int or_cpu)
{
	*k = (struct crowd){ .n = n, .cpu = cpu, .or_cpu = or_cpu };
	k->w = bench_array(n, sizeof(*k->w));
}

void
crowd_start(struct crowd *k)
{
	unsigned i;

	for (i = 0; i < k->n; i++) {
		k->w[i].crowd = k;
		k->w[i].thread = bench_thread(run_waiter, &k->w[i], STACK);
	}
}

static void
next_turn(struct crowd *k)
{
	__atomic_add_fetch(&k->turn, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&k->turn, INT_MAX);
}

void
crowd_send(struct crowd *k, bool ours)
{
	unsigned i;

	k->ours = ours;
	k->here = 0;
	k->left = k->n;
	for (i = 0; i < k->n; i++)
		__atomic_store_n(k->w[i].bare, 0, __ATOMIC_RELAXED);
	next_turn(k);
	bench_wait_until(&k->here, k->n);
	for (i = 0; i < k->n; i++)
		bench_until_asleep(k->w[i].tid);
}

double
crowd_awake(struct crowd *k, uint64_t t0)
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

double
crowd_stop(struct crowd *k, evc_coord *c)
{
	uint64_t t0;
	double took;

	crowd_send(k, true);
	t0 = bench_now();
	(void)evc_request_stop(c, 0, "bench");
	took = crowd_awake(k, t0);
	bench_must(evc_clear_stop(c), "evc_clear_stop");
	return took;
}

void
crowd_end(struct crowd *k)
{
	unsigned i;

	k->quit = true;
	next_turn(k);
	for (i = 0; i < k->n; i++)
		bench_must_sys(pthread_join(k->w[i].thread, NULL),
			       "pthread_join");
	free(k->w);
}
