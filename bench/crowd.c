/* SPDX-License-Identifier: BSD-2-Clause */
#include "crowd.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define STACK (64 * 1024)

static void
wait_ours(struct waiter *w)
{
	(void)evc_wait_for_stop(w->c, INFINITY);
}

static void
wait_bare(struct waiter *w)
{
	bench_wait_until(w->bare, 1);
}

void
crowd_turn(struct waiter *w, void (*wait)(struct waiter *w))
{
	struct crowd *k = w->crowd;

	if (!w->tid) {
		bench_pin(k->cpu, k->or_cpu);
		w->tid = bench_tid();
	}
	if (__atomic_add_fetch(&k->here, 1, __ATOMIC_ACQ_REL) == k->n)
		bench_futex_wake(&k->here, 1);
	wait(w);
	w->awake = bench_now();
	if (__atomic_sub_fetch(&k->left, 1, __ATOMIC_ACQ_REL) == 0)
		bench_futex_wake(&k->left, 1);
}

static void *
run_waiter(void *arg)
{
	struct waiter *w = arg;
	struct crowd *k = w->crowd;
	uint32_t turn = 0;

	for (;;) {
		bench_wait_until(&k->turn, ++turn);
		if (k->quit)
			return NULL;
		crowd_turn(w, k->ours ? wait_ours : wait_bare);
	}
}

void
crowd_make(struct crowd *k, unsigned n, int cpu, int or_cpu)
{
	unsigned i;

	*k = (struct crowd){ .n = n, .cpu = cpu, .or_cpu = or_cpu };
	k->w = bench_array(n, sizeof(*k->w));
	for (i = 0; i < n; i++)
		k->w[i].crowd = k;
}

void
crowd_start(struct crowd *k)
{
	unsigned i;

	for (i = 0; i < k->n; i++)
		k->w[i].thread = bench_thread(run_waiter, &k->w[i], STACK);
}

static void
next_turn(struct crowd *k)
{
	__atomic_add_fetch(&k->turn, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&k->turn, INT_MAX);
}

static void
begin_turn(struct crowd *k)
{
	k->here = 0;
	k->left = k->n;
}

void
crowd_expect(struct crowd *k)
{
	unsigned i;

	begin_turn(k);
	for (i = 0; i < k->n; i++)
		k->w[i].tid = 0;
}

void
crowd_gather(struct crowd *k)
{
	unsigned i;

	bench_wait_until(&k->here, k->n);
	for (i = 0; i < k->n; i++)
		bench_until_asleep(k->w[i].tid);
}

void
crowd_send(struct crowd *k, bool ours)
{
	unsigned i;

	k->ours = ours;
	begin_turn(k);
	for (i = 0; i < k->n; i++)
		__atomic_store_n(k->w[i].bare, 0, __ATOMIC_RELAXED);
	next_turn(k);
	crowd_gather(k);
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
	crowd_leave(k);
}

void
crowd_leave(struct crowd *k)
{
	free(k->w);
}
