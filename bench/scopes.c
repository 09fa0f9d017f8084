/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ten thousand scopes below one coordinator with a loop take: bytes, with
 * more and fewer reasons kept, descriptors and threads, and the nanoseconds of
 * making, stopping, clearing and freeing each.  And the nanoseconds of each of
 * ten thousand stop hooks, from the request until the join returned: all of one
 * coordinator, and one in each scope.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define MANY 10000u

static evc_coord *scopes[MANY];

static double
each(uint64_t t0)
{
	return (double)(bench_now() - t0) / MANY;
}

static void
show(const char *what, const char *name, double value, const char *unit)
{
	char metric[64];

	snprintf(metric, sizeof(metric), "scopes-%u-%s-%s", MANY, what, name);
	bench_count(metric, BENCH_OURS, value, unit);
}

static void
measure(const char *what, unsigned max_reasons)
{
	evc_scope_opts o = { .config = { .max_reasons = max_reasons } };
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	unsigned fds, threads, i;
	uint64_t heap, t0;
	double took[4];
	char metric[64];
	evc_coord *c;

	bench_must(evc_new(loop, NULL, &c), "evc_new");
	heap = bench_heap_bytes();
	fds = bench_proc_entries("fd");
	threads = bench_proc_entries("task");
	t0 = bench_now();
	for (i = 0; i < MANY; i++) {
		bench_must(evc_scope_new(c, "bench", &o, &scopes[i]),
			   "evc_scope_new");
		bench_must(evc_scope_ready(scopes[i]), "evc_scope_ready");
	}
	took[0] = each(t0);
	threads = bench_proc_entries("task") - threads;
	fds = bench_proc_entries("fd") - fds;
	heap = bench_heap_bytes() - heap;

	t0 = bench_now();
	(void)evc_request_stop(c, 0, "bench");
	took[1] = each(t0);
	t0 = bench_now();
	bench_must(evc_clear_stop(c), "evc_clear_stop");
	took[2] = each(t0);
	t0 = bench_now();
	for (i = 0; i < MANY; i++)
		bench_must(evc_free(scopes[i]), "evc_free");
	took[3] = each(t0);
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);

	snprintf(metric, sizeof(metric), "scopes-%u-%s-bytes", MANY, what);
	if (bench_alloc_counted())
		show(what, "bytes", (double)heap / MANY, "bytes-each");
	else
		bench_skip(metric, "no malloc of our own here");
	show(what, "make", took[0], "ns-each");
	show(what, "stop", took[1], "ns-each");
	show(what, "clear", took[2], "ns-each");
	show(what, "free", took[3], "ns-each");
	snprintf(metric, sizeof(metric), "scopes-%u-%s-fds", MANY, what);
	bench_goal(metric, "growth", (double)fds, "descriptors", 0);
	snprintf(metric, sizeof(metric), "scopes-%u-%s-threads", MANY, what);
	bench_goal(metric, "growth", (double)threads, "threads", 0);
}

static unsigned n_called;

static evc_status
called(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	n_called++;
	return 0;
}

static void
measure_hooks(const char *what, bool apart)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c;
	unsigned i;
	uint64_t t0;

	bench_must(evc_new(loop, NULL, &c), "evc_new");
	for (i = 0; i < MANY; i++) {
		scopes[i] = c;
		if (apart) {
			bench_must(evc_scope_new(c, "bench", NULL, &scopes[i]),
				   "evc_scope_new");
			bench_must(evc_scope_ready(scopes[i]),
				   "evc_scope_ready");
		}
		bench_must(evc_on_stop(scopes[i], "bench", called, NULL, NULL,
				       NULL), "evc_on_stop");
	}
	n_called = 0;
	t0 = bench_now();
	(void)evc_request_stop(c, 0, "bench");
	bench_must(evc_join(c, NULL, NULL), "evc_join");
	show(what, "stop", each(t0), "ns-each");
	if (n_called != MANY)
		bench_must(-EVC_INTERNAL, "a hook that was not called once");
	for (i = 0; apart && i < MANY; i++)
		bench_must(evc_free(scopes[i]), "evc_free");
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);
}

void
bench_scopes(void)
{
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	measure("default", 0);
	measure("2-reasons", 2);
	measure("32-reasons", 32);
	measure_hooks("hooks-of-one", false);
	measure_hooks("hook-in-each", true);
}
