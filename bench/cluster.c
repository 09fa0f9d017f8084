/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster on threads: functions that do nothing, so that what is left is
 * the way to the worker and back.  All are scheduled by one thread, which then
 * joins; beside it the same jobs through libuv's pool.  Four workers and who
 * schedules share two cpus.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster.h"

#define JOBS 200000
#define ROUNDS 11

uint32_t bench_blocked, bench_gate;

/* ---- what workers can do ---- */

static evc_status
nothing(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	return 0;
}

static evc_status
block(evc_exec *x, void *arg)
{
	(void)x;
	(void)arg;
	__atomic_add_fetch(&bench_blocked, 1, __ATOMIC_ACQ_REL);
	bench_futex_wake(&bench_blocked, 1);
	bench_wait_until(&bench_gate, 1);
	return 0;
}

static evc_status
nap(evc_exec *x, void *arg)
{
	double seconds;

	(void)arg;
	if (evc_exec_unpack(x, "[d]", &seconds) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	bench_sleep(seconds);
	return 0;
}

static evc_status
move(evc_exec *x, void *arg)
{
	int from, to, amount;
	char name[24];
	evc_status st;

	(void)arg;
	st = evc_exec_unpack(x, "[iii]", &from, &to, &amount);
	snprintf(name, sizeof(name), "a%d", from);
	if (st == 0)
		st = evc_exec_variable_add(x, name, -amount, NULL);
	snprintf(name, sizeof(name), "a%d", to);
	if (st == 0)
		st = evc_exec_variable_add(x, name, amount, NULL);
	return st < 0 ? evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				      evc_last_error())
		      : 0;
}

static evc_status
adds(evc_exec *x, void *arg)
{
	evc_status st;
	int n;

	(void)arg;
	st = evc_exec_unpack(x, "[i]", &n);
	while (st == 0 && n-- > 0)
		st = evc_exec_variable_add(x, "n", 1, NULL);
	return st < 0 ? evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				      evc_last_error())
		      : 0;
}

static evc_status
hang(evc_exec *x, void *arg)
{
	evc_exec_info i;

	(void)arg;
	if (evc_exec_get(x, &i) == 0 && i.attempt == 1)
		evc_exec_wait_for_stop(x, 60);
	return 0;
}

static evc_status
sink(evc_exec *x, void *arg)
{
	const void *p;
	size_t n;

	(void)arg;
	if (evc_exec_unpack(x, "[B]", &p, &n) < 0)
		return evc_exec_fail(x, EVC_INVALID_ARGUMENT, "%s",
				     evc_last_error());
	return evc_exec_return(x, "u", bench_large_look(p, n));
}

static evc_status
source(evc_exec *x, void *arg)
{
	static const char bytes[BENCH_LARGE] = { 1 };

	(void)arg;
	return evc_exec_return(x, "B", bytes, sizeof(bytes));
}

static const evc_function functions[] = {
	{ .name = NOTHING, .fn = nothing },
	{ .name = BLOCK, .fn = block },
	{ .name = NAP, .fn = nap },
	{ .name = MOVE, .fn = move },
	{ .name = ADDS, .fn = adds },
	{ .name = HANG, .fn = hang },
	{ .name = SINK, .fn = sink },
	{ .name = SOURCE, .fn = source },
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

int
bench_cluster_worker(void)
{
	bench_must(evc_worker_main(functions, N_FUNCTIONS, NULL),
		   "evc_worker_main");
	return 0;
}

int
bench_cluster_node(const char *uri, unsigned n_workers)
{
	const evc_worker_opts opts = { .uri = uri, .n_workers = n_workers,
				       .grace = 1 };

	bench_must(evc_worker_main(functions, N_FUNCTIONS, &opts),
		   "evc_worker_main");
	return 0;
}

/* ---- a cluster ---- */

void
bench_cluster_open(struct bench_cluster *b, const char *uri,
		   const evc_cluster_config *config, struct ev_loop *loop)
{
	evc_cluster_config mine = { 0 };

	if (config)
		mine = *config;
	mine.functions = functions;
	mine.n_functions = N_FUNCTIONS;
	bench_must(evc_new(loop, NULL, &b->c), "evc_new");
	bench_must(evc_cluster_open(b->c, uri, &mine, &b->cluster),
		   "evc_cluster_open");
}

void
bench_cluster_until_up(const struct bench_cluster *b, unsigned n)
{
	evc_cluster_info i;

	for (;;) {
		bench_must(evc_cluster_get(b->cluster, &i), "evc_cluster_get");
		if (i.n_up >= n)
			return;
		bench_sleep(0.001);
	}
}

void
bench_cluster_close(struct bench_cluster *b)
{
	evc_status st;

	__atomic_store_n(&bench_gate, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&bench_gate, 1000);
	evc_cluster_close(b->cluster);
	st = evc_join(b->c, NULL, NULL);
	bench_must(st > 0 ? -st : st, "evc_join");
	bench_must(evc_free(b->c), "evc_free");
	bench_gate = bench_blocked = 0;
}

double
bench_cluster_work(const struct bench_cluster *b, unsigned n)
{
	evc_status st = 0;
	uint64_t t0;
	unsigned i;

	t0 = bench_now();
	for (i = 0; i < n && st == 0; i++)
		st = evc_schedule(b->cluster, NOTHING, NULL, NULL, NULL, NULL);
	if (st == 0)
		st = evc_cluster_join(b->cluster, INFINITY);
	t0 = bench_now() - t0;
	bench_must(st > 0 ? -st : st, "a function that does nothing");
	return (double)t0 / 1e9;
}

/* ---- processor time ---- */

double
bench_cpu_time(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	bench_must_sys(clock_getcpuclockid(pid, &clock),
		       "clock_getcpuclockid");
	if (clock_gettime(clock, &ts) != 0)
		bench_must_sys(errno, "clock_gettime");
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

pid_t
bench_cluster_pid(const evc_cluster_worker_info *w)
{
	const char *at = strstr(w->where, "pid ");

	return at ? (pid_t)atol(at + 4) : -1;
}

double
bench_cluster_cpu_time(const struct bench_cluster *b)
{
	evc_cluster_worker_info w;
	double sum = 0;
	unsigned i;
	pid_t pid;

	for (i = 0; evc_cluster_worker_get(b->cluster, i, &w) == 0; i++) {
		pid = bench_cluster_pid(&w);
		if (pid > 0)
			sum += bench_cpu_time(pid);
	}
	return sum;
}

/* ---- the group ---- */

struct sides {
	struct bench_cluster ours;
	struct bench_peer peer;
};

static const struct bench_load load = {
	.jobs = JOBS, .width = JOBS, .burst = 1,
};

/* Million functions a second. */
static double
sample_ours(void *arg)
{
	struct sides *s = arg;

	return JOBS / bench_cluster_work(&s->ours, JOBS) / 1e6;
}

static double
sample_peer(void *arg)
{
	struct sides *s = arg;

	return JOBS / bench_peer_work(&s->peer, &load, NULL).seconds / 1e6;
}

static void
cpu_times(struct sides *s, bool with_peer)
{
	double used = -bench_cpu_time(0);

	(void)sample_ours(s);
	used += bench_cpu_time(0);
	bench_count("cluster-threads-4-cpu", BENCH_OURS, used / JOBS * 1e6,
		    "us-a-function");
	if (!with_peer)
		return;
	used = -bench_cpu_time(s->peer.pid);
	(void)sample_peer(s);
	used += bench_cpu_time(s->peer.pid);
	bench_count("cluster-threads-4-cpu", "libuv", used / JOBS * 1e6,
		    "us-a-function");
}

void
bench_cluster_threads(void)
{
	const struct bench_make make = {
		.n_threads = 4, .loop_cpu = -1, .work_cpu = -1,
	};
	struct sides s;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &s, 0 },
		{ "libuv", sample_peer, &s, 0 },
	};
	int cpu[2], n = bench_cpus(cpu);
	double took = INFINITY, once;
	bool with_peer;
	unsigned i;

	if (n < 2) {
		bench_skip("cluster-threads-4", "one cpu only");
		return;
	}
	bench_pin(cpu[0], cpu[1]);
	with_peer = bench_peer_start(&s.peer, &make);
	bench_cluster_open(&s.ours, "threads://4", NULL, NULL);
	bench_cluster_until_up(&s.ours, 4);
	bench_compare_rates("cluster-threads-4", "M/s", sides,
			    with_peer ? 2 : 1, ROUNDS);
	if (!with_peer)
		bench_skip("cluster-threads-4", "no libuv to compare with");
	for (i = 0; i < 5; i++) {
		once = bench_cluster_work(&s.ours, JOBS);
		if (once < took)
			took = once;
	}
	bench_goal("cluster-threads-4", "best-of-5", took / JOBS * 1e6,
		   "us-a-function", 0.5);
	cpu_times(&s, with_peer);
	bench_cluster_close(&s.ours);
	if (with_peer)
		bench_peer_end(&s.peer);
}
