/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a task costs: the nanoseconds of begin and end while another task of
 * that loop is live, the allocations (none), and the memory that a million
 * of them take beyond their own (none).  The bare thing is a node put on a
 * list and taken off.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define PAIRS 20000u
#define MILLION 1000000u

struct node {
	struct node *next, *prev;
	char pad[48];
};

struct cost {
	evc_reactor *r;
	evc_task task;
	struct node head, node;
};

static const evc_task_class cls = { .name = "bench" };

BENCH_ALIGNED static void
link_node(struct node *head, struct node *n)
{
	n->next = head;
	n->prev = head->prev;
	n->prev->next = n;
	head->prev = n;
}

BENCH_ALIGNED static void
unlink_node(struct node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	n->next = NULL;
}

static double
sample_ours(void *arg)
{
	struct cost *k = arg;
	uint64_t t0 = bench_now();
	evc_status st = 0;
	unsigned i;

	for (i = 0; i < PAIRS; i++) {
		st |= evc_task_begin(k->r, &k->task, &cls);
		evc_task_end(&k->task);
	}
	t0 = bench_now() - t0;
	bench_must(st, "evc_task_begin");
	return (double)t0 / PAIRS;
}

static double
sample_bare(void *arg)
{
	struct cost *k = arg;
	uint64_t t0 = bench_now();
	unsigned i;

	for (i = 0; i < PAIRS; i++) {
		link_node(&k->head, &k->node);
		unlink_node(&k->node);
	}
	return (double)(bench_now() - t0) / PAIRS;
}

#ifdef HAVE_CXX17
evc_status
bench_cxx_tasks(evc_reactor *r, unsigned n);

static double
sample_cxx(void *arg)
{
	struct cost *k = arg;
	uint64_t t0 = bench_now();
	evc_status st = bench_cxx_tasks(k->r, PAIRS);

	t0 = bench_now() - t0;
	bench_must(st, "task::begin");
	return (double)t0 / PAIRS;
}

/* The wrapper of C++ costs 3 % at most. */
static void
compare_cxx(struct cost *k)
{
	const struct bench_side sides[] = {
		{ "evcoord/hpp", sample_cxx, k, 0 },
		{ "evcoord/c", sample_ours, k, 1.03 },
	};

	bench_compare("task-begin-end-cxx", "ns", sides, 2, 301, 5, NULL);
}
#else
static void
compare_cxx(struct cost *k)
{
	(void)k;
	bench_skip("task-begin-end-cxx", "no compiler of C++17");
}
#endif

void
bench_task_cost(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct cost k;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &k, 0 },
		{ "raw/bare-list", sample_bare, &k, 0 },
	};
	struct bench_stats st;
	evc_task other;
	uint64_t before;
	evc_coord *c;
	unsigned i;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	memset(&k, 0, sizeof(k));
	memset(&other, 0, sizeof(other));
	k.head.next = k.head.prev = &k.head;
	bench_must(evc_new(loop, NULL, &c), "evc_new");
	k.r = evc_home(c);
	bench_must(evc_task_begin(k.r, &other, &cls), "evc_task_begin");
	bench_compare("task-begin-end", "ns", sides, 2, 301, 5, &st);
	bench_goal("task-begin-end", "p50", st.p50, "ns", 10);
	compare_cxx(&k);

	if (!bench_alloc_counted()) {
		bench_skip("task-allocations", "no malloc of our own here");
	} else {
		before = bench_allocs();
		for (i = 0; i < 50; i++)
			(void)sample_ours(&k);
		bench_goal("task-allocations", "count",
			   (double)(bench_allocs() - before), "allocations",
			   0);
	}
	evc_task_end(&other);
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);
}

/* Nanoseconds each of n steps took. */
static double
each(uint64_t t0, unsigned n)
{
	return (double)(bench_now() - t0) / n;
}

void
bench_task_memory(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct node head, *nodes = bench_array(MILLION, sizeof(*nodes));
	evc_task *tasks = bench_array(MILLION, sizeof(*tasks));
	double begin, end, bare_begin, bare_end;
	uint64_t heap, mapped, allocs, t0;
	evc_status st = 0;
	evc_reactor *r;
	evc_coord *c;
	unsigned i;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	bench_must(evc_new(loop, NULL, &c), "evc_new");
	r = evc_home(c);

	heap = bench_heap_bytes();
	mapped = bench_mapped_bytes();
	allocs = bench_allocs();
	t0 = bench_now();
	for (i = 0; i < MILLION; i++)
		st |= evc_task_begin(r, &tasks[i], &cls);
	begin = each(t0, MILLION);
	allocs = bench_allocs() - allocs;
	mapped = bench_mapped_bytes() - mapped;
	heap = bench_heap_bytes() - heap;
	bench_must(st, "evc_task_begin");
	t0 = bench_now();
	for (i = 0; i < MILLION; i++)
		evc_task_end(&tasks[i]);
	end = each(t0, MILLION);

	head.next = head.prev = &head;
	t0 = bench_now();
	for (i = 0; i < MILLION; i++)
		link_node(&head, &nodes[i]);
	bare_begin = each(t0, MILLION);
	t0 = bench_now();
	for (i = 0; i < MILLION; i++)
		unlink_node(&nodes[i]);
	bare_end = each(t0, MILLION);

	bench_count("task-million-begin", BENCH_OURS, begin, "ns");
	bench_count("task-million-begin", "raw/bare-list", bare_begin, "ns");
	bench_count("task-million-end", BENCH_OURS, end, "ns");
	bench_count("task-million-end", "raw/bare-list", bare_end, "ns");
	bench_count("task-million-own-bytes", BENCH_OURS,
		    (double)sizeof(evc_task) * MILLION, "bytes");
	bench_goal("task-million-mapped", "growth", (double)mapped, "bytes",
		   0);
	if (bench_alloc_counted()) {
		bench_goal("task-million-heap", "growth", (double)heap,
			   "bytes", 0);
		bench_goal("task-million-allocations", "count",
			   (double)allocs, "allocations", 0);
	} else {
		bench_skip("task-million-heap", "no malloc of our own here");
	}
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);
	free(tasks);
	free(nodes);
}
