/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many tasks on one loop: request until the last of them was told, against
 * one ev_async whose callback walks a list and calls the same functions.
 *
 * The callback does the least that a real one would: it looks at the clock
 * once and notes it.  A second pair of lines, without a goal, has a callback
 * that only counts; there every nanosecond of the walk shows.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define MOST 100000

/* A node of the bare list: as large as a task, and called the same way. */
struct node {
	struct node *next, *prev;
	const struct node_class *cls;
	char pad[40];
};

struct node_class {
	void (*on_stop)(struct node *n, void *arg);
	void *arg;
};

struct pack {
	struct bench_loop l;
	unsigned n;
	/* ours */
	evc_coord *c;
	evc_reactor *r;
	evc_task *tasks;
	const evc_task_class *cls;
	/* bare */
	ev_async bare;
	struct node head, *nodes;
	const struct node_class *node_cls;
	/* both */
	unsigned told;  /* loop thread only */
	uint64_t last;  /* loop thread -> main, by all */
	uint32_t all;
};

static struct pack ours, bare;

static void
count(struct pack *p)
{
	if (++p->told < p->n)
		return;
	p->last = bench_now();
	__atomic_store_n(&p->all, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&p->all, 1);
}

static void
task_counts(evc_task *t, void *arg)
{
	(void)t;
	count(arg);
}

static void
node_counts(struct node *n, void *arg)
{
	(void)n;
	count(arg);
}

static void
task_clocks(evc_task *t, void *arg)
{
	struct pack *p = arg;

	(void)t;
	p->last = bench_now();
	count(p);
}

static void
node_clocks(struct node *n, void *arg)
{
	struct pack *p = arg;

	(void)n;
	p->last = bench_now();
	count(p);
}

static const evc_task_class tasks_clock = {
	.name = "clock", .on_stop = task_clocks, .arg = &ours
};
static const evc_task_class tasks_count = {
	.name = "count", .on_stop = task_counts, .arg = &ours
};
static const struct node_class nodes_clock = { node_clocks, &bare };
static const struct node_class nodes_count = { node_counts, &bare };

static void
walk(struct ev_loop *loop, ev_async *w, int revents)
{
	struct pack *p = w->data;
	struct node *n, *next;

	(void)loop;
	(void)revents;
	for (n = p->head.next; n != &p->head; n = next) {
		/* Read first: a callback may take itself off the list. */
		next = n->next;
		n->cls->on_stop(n, n->cls->arg);
	}
}

static void
attach(struct bench_loop *l, void *arg)
{
	struct pack *p = arg;

	bench_must(evc_reactor_attach(p->c, "bench", l->loop, &p->r),
		   "evc_reactor_attach");
}

static void
detach(struct bench_loop *l, void *arg)
{
	struct pack *p = arg;

	(void)l;
	bench_must(evc_reactor_detach(p->r), "evc_reactor_detach");
}

static void
begin_tasks(struct bench_loop *l, void *arg)
{
	struct pack *p = arg;
	unsigned i;

	(void)l;
	p->told = 0;
	for (i = 0; i < p->n; i++)
		bench_must(evc_task_begin(p->r, &p->tasks[i], p->cls),
			   "evc_task_begin");
}

static void
end_tasks(struct bench_loop *l, void *arg)
{
	struct pack *p = arg;
	unsigned i;

	(void)l;
	for (i = 0; i < p->n; i++)
		evc_task_end(&p->tasks[i]);
}

static void
start_bare(struct bench_loop *l, void *arg)
{
	struct pack *p = arg;

	ev_async_init(&p->bare, walk);
	p->bare.data = p;
	ev_async_start(l->loop, &p->bare);
}

static void
stop_bare(struct bench_loop *l, void *arg)
{
	struct pack *p = arg;

	ev_async_stop(l->loop, &p->bare);
}

/* As begin_tasks does: touches all nodes in the same order. */
static void
link_nodes(struct bench_loop *l, void *arg)
{
	struct pack *p = arg;
	struct node *n;
	unsigned i;

	(void)l;
	p->told = 0;
	p->head.next = p->head.prev = &p->head;
	for (i = 0; i < p->n; i++) {
		n = &p->nodes[i];
		n->cls = p->node_cls;
		n->next = &p->head;
		n->prev = p->head.prev;
		n->prev->next = n;
		p->head.prev = n;
	}
}

static void
get_ready(struct pack *p)
{
	bench_until_asleep(p->l.tid);
	__atomic_store_n(&p->all, 0, __ATOMIC_RELAXED);
}

static double
sample_ours(void *arg)
{
	struct pack *p = arg;
	uint64_t t0;
	double took;

	bench_loop_do(&p->l, begin_tasks, p);
	get_ready(p);
	t0 = bench_now();
	(void)evc_request_stop(p->c, 0, "bench");
	bench_wait_until(&p->all, 1);
	took = (double)(p->last - t0) / 1e3;
	bench_loop_do(&p->l, end_tasks, p);
	bench_until_asleep(p->l.tid);
	bench_must(evc_clear_stop(p->c), "evc_clear_stop");
	return took;
}

static double
sample_bare(void *arg)
{
	struct pack *p = arg;
	uint64_t t0;

	bench_loop_do(&p->l, link_nodes, p);
	get_ready(p);
	t0 = bench_now();
	ev_async_send(p->l.loop, &p->bare);
	bench_wait_until(&p->all, 1);
	return (double)(p->last - t0) / 1e3;
}

static void
measure(unsigned n, const char *what, double goal, unsigned per_round)
{
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &ours, 0 },
		{ "raw/bare-async-and-list", sample_bare, &bare, goal },
	};
	char metric[64];

	ours.n = bare.n = n;
	snprintf(metric, sizeof(metric), "tasks-told-%u-%s", n, what);
	bench_compare(metric, "us", sides, 2, 21, per_round, NULL);
}

static void
measure_on(int cpu, const char *where)
{
	char what[32];

	bench_must(evc_new(NULL, NULL, &ours.c), "evc_new");
	bench_loop_start(&ours.l, cpu);
	bench_loop_do(&ours.l, attach, &ours);
	bench_loop_start(&bare.l, cpu);
	bench_loop_do(&bare.l, start_bare, &bare);

	ours.cls = &tasks_clock;
	bare.node_cls = &nodes_clock;
	measure(1000, where, 1.2, 40);
	measure(MOST, where, 1.2, 3);
	ours.cls = &tasks_count;
	bare.node_cls = &nodes_count;
	snprintf(what, sizeof(what), "count-only-%s", where);
	measure(1000, what, 0, 40);
	measure(MOST, what, 0, 3);

	bench_loop_do(&bare.l, stop_bare, &bare);
	bench_loop_stop(&bare.l);
	bench_loop_do(&ours.l, detach, &ours);
	bench_loop_stop(&ours.l);
	bench_must(evc_free(ours.c), "evc_free");
}

void
bench_tasks_told(void)
{
	int cpu[2], n = bench_cpus(cpu);

	ours.tasks = bench_array(MOST, sizeof(*ours.tasks));
	bare.nodes = bench_array(MOST, sizeof(*bare.nodes));
	bench_pin(cpu[0], cpu[0]);
	measure_on(cpu[0], "one-cpu");
	if (n < 2)
		bench_skip("tasks-told-two-cpus", "one cpu only");
	else
		measure_on(cpu[1], "two-cpus");
	free(ours.tasks);
	free(bare.nodes);
}
