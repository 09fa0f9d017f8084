/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pushes and pops through a queue of 1024, beside GLib's queue, which has no
 * bound, and a ring with a mutex and two conditions.  Producers and consumers
 * wait as long as they have to, and each does its share; the figure is that of
 * all of them together, from the moment in which all are there until the last
 * item is out.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#ifdef HAVE_GLIB
#include <glib.h>
#endif

#define CAPACITY 1024
#define MOST 4
#define ITEMS 200000u /* MOST divides it */
#define ROUNDS 11
#define STACK (64 * 1024)

/* ---- ours ---- */

static evc_coord *coord;

static void *
make_ours(void)
{
	evc_queue *q;

	bench_must(evc_queue_new(coord, "bench", CAPACITY, NULL, &q),
		   "evc_queue_new");
	return q;
}

static void
push_ours(void *queue, void *item)
{
	bench_must(evc_queue_push(queue, item, INFINITY), "evc_queue_push");
}

static void *
pop_ours(void *queue)
{
	void *item = NULL;

	bench_must(evc_queue_pop(queue, &item, INFINITY), "evc_queue_pop");
	return item;
}

static void
end_ours(void *queue)
{
	bench_must(evc_queue_free(queue), "evc_queue_free");
}

/* ---- a ring with a mutex ---- */

struct ring {
	pthread_mutex_t lock;
	pthread_cond_t room, filled;
	size_t head, n;
	void *items[CAPACITY];
};

static void *
make_ring(void)
{
	struct ring *q = calloc(1, sizeof(*q));

	if (!q)
		bench_must(-EVC_RESOURCE_EXHAUSTED, "calloc");
	bench_must_sys(pthread_mutex_init(&q->lock, NULL), "mutex");
	bench_must_sys(pthread_cond_init(&q->room, NULL), "condition");
	bench_must_sys(pthread_cond_init(&q->filled, NULL), "condition");
	return q;
}

static void
push_ring(void *queue, void *item)
{
	struct ring *q = queue;

	pthread_mutex_lock(&q->lock);
	while (q->n == CAPACITY)
		pthread_cond_wait(&q->room, &q->lock);
	q->items[(q->head + q->n++) % CAPACITY] = item;
	pthread_mutex_unlock(&q->lock);
	/* After the lock: who is woken finds it free. */
	pthread_cond_signal(&q->filled);
}

static void *
pop_ring(void *queue)
{
	struct ring *q = queue;
	void *item;

	pthread_mutex_lock(&q->lock);
	while (q->n == 0)
		pthread_cond_wait(&q->filled, &q->lock);
	item = q->items[q->head];
	q->head = (q->head + 1) % CAPACITY;
	q->n--;
	pthread_mutex_unlock(&q->lock);
	pthread_cond_signal(&q->room);
	return item;
}

static void
end_ring(void *queue)
{
	struct ring *q = queue;

	pthread_cond_destroy(&q->room);
	pthread_cond_destroy(&q->filled);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* ---- GLib's ---- */

#ifdef HAVE_GLIB
static void *
make_glib(void)
{
	return g_async_queue_new();
}

static void
push_glib(void *queue, void *item)
{
	g_async_queue_push(queue, item);
}

static void *
pop_glib(void *queue)
{
	return g_async_queue_pop(queue);
}

static void
end_glib(void *queue)
{
	g_async_queue_unref(queue);
}
#endif

/* ---- producers and consumers ---- */

struct kind {
	void *(*make)(void);
	void (*push)(void *queue, void *item);
	void *(*pop)(void *queue);
	void (*end)(void *queue);
};

static const struct kind ours = { make_ours, push_ours, pop_ours, end_ours };
static const struct kind ring = { make_ring, push_ring, pop_ring, end_ring };
#ifdef HAVE_GLIB
static const struct kind glib = { make_glib, push_glib, pop_glib, end_glib };
#endif

struct run {
	const struct kind *kind;
	void *queue;
	unsigned n; /* producers, and as many consumers */
	int push_cpu, push_or, pop_cpu, pop_or;
	uint32_t here; /* ends -> main: how many are ready */
	uint32_t go;   /* main -> ends */
	struct end {
		struct run *run;
		pthread_t thread;
		uintptr_t first, sum; /* producer; consumer */
		uint64_t at;          /* it was through */
		char pad[64];
	} push[MOST], pop[MOST];
};

static void
ready(struct run *r)
{
	if (__atomic_add_fetch(&r->here, 1, __ATOMIC_ACQ_REL) == 2 * r->n)
		bench_futex_wake(&r->here, 1);
	bench_wait_until(&r->go, 1);
}

static void *
producer(void *arg)
{
	struct end *e = arg;
	struct run *r = e->run;
	unsigned i, n = ITEMS / r->n;

	bench_pin(r->push_cpu, r->push_or);
	ready(r);
	for (i = 0; i < n; i++)
		r->kind->push(r->queue, (void *)(e->first + i));
	return NULL;
}

static void *
consumer(void *arg)
{
	struct end *e = arg;
	struct run *r = e->run;
	unsigned i, n = ITEMS / r->n;
	uintptr_t sum = 0;

	bench_pin(r->pop_cpu, r->pop_or);
	ready(r);
	for (i = 0; i < n; i++)
		sum += (uintptr_t)r->kind->pop(r->queue);
	e->sum = sum;
	e->at = bench_now();
	return NULL;
}

/* Million items a second. */
static double
sample(struct run *r, const struct kind *kind)
{
	uint64_t t0, last = 0;
	uintptr_t sum = 0;
	unsigned i;

	r->kind = kind;
	r->queue = kind->make();
	r->here = r->go = 0;
	for (i = 0; i < r->n; i++) {
		r->push[i].run = r->pop[i].run = r;
		r->push[i].first = 1 + i * (ITEMS / r->n);
		r->pop[i].thread = bench_thread(consumer, &r->pop[i], STACK);
		r->push[i].thread = bench_thread(producer, &r->push[i], STACK);
	}
	bench_wait_until(&r->here, 2 * r->n);
	t0 = bench_now();
	__atomic_store_n(&r->go, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&r->go, INT_MAX);
	for (i = 0; i < r->n; i++) {
		bench_must_sys(pthread_join(r->push[i].thread, NULL), "join");
		bench_must_sys(pthread_join(r->pop[i].thread, NULL), "join");
		sum += r->pop[i].sum;
		if (r->pop[i].at > last)
			last = r->pop[i].at;
	}
	kind->end(r->queue);
	if (sum != (uintptr_t)ITEMS * (ITEMS + 1) / 2)
		bench_must(-EVC_INTERNAL, "what came out is not what went in");
	return (double)ITEMS / (double)(last - t0) * 1e3;
}

static double
sample_ours(void *arg)
{
	return sample(arg, &ours);
}

static double
sample_ring(void *arg)
{
	return sample(arg, &ring);
}

#ifdef HAVE_GLIB
static double
sample_glib(void *arg)
{
	return sample(arg, &glib);
}
#endif

static void
measure(const char *metric, struct run *r)
{
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, r, 0 },
		{ "raw/mutex-cond-ring", sample_ring, r, 1 },
#ifdef HAVE_GLIB
		{ "glib", sample_glib, r, 1 },
#endif
	};

	bench_compare_rates(metric, "M/s", sides,
			    sizeof(sides) / sizeof(sides[0]), ROUNDS);
#ifndef HAVE_GLIB
	bench_skip(metric, "no GLib to compare with");
#endif
}

void
bench_queue(void)
{
	int cpu[2], n = bench_cpus(cpu);
	struct run r = {
		.n = 1,
		.push_cpu = cpu[0], .push_or = cpu[0],
		.pop_cpu = cpu[0], .pop_or = cpu[0],
	};

	bench_pin(cpu[0], cpu[1]);
	bench_must(evc_new(NULL, NULL, &coord), "evc_new");
	measure("queue-1-1-one-cpu", &r);
	if (n < 2) {
		bench_skip("queue-two-cpus", "one cpu only");
	} else {
		r.pop_cpu = r.pop_or = cpu[1];
		measure("queue-1-1-two-cpus", &r);
		r.n = MOST;
		r.push_or = cpu[1];
		r.pop_cpu = cpu[0];
		measure("queue-4-4-two-cpus", &r);
	}
	bench_must(evc_free(coord), "evc_free");
}
