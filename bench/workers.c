/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker groups: what a metric costs on the worker that adds to it, alone and
 * beside another one; and the stop of three workers that are blocked: in a wait
 * of the library, in a system call that a kick ends, and where they hear
 * nothing.  The last takes the budget of the stop, once for all of them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define PUTS 20000u
#define BLOCKED 3
#define BUDGET 5. /* seconds: a registry's own when nothing is said */

/* ---- metrics ---- */

struct bench_put {
	unsigned n;
	int cpu[2];
	enum { PUT, PUT_COUNT, BARE } what;
	bool quit;
	uint32_t turn, left; /* main -> workers; workers -> main */
	struct putter {
		uint32_t turn;
		uint64_t took;
		volatile double bare;
		char pad[64];
	} by[2];
};

BENCH_ALIGNED static void
put_all(evc_group *group, bool count)
{
	evc_status st = 0;
	unsigned i;

	for (i = 0; i < PUTS; i++)
		st |= evc_group_put(group, "loss", 0.5, count);
	bench_must(st, "evc_group_put");
}

BENCH_ALIGNED static void
add_all(volatile double *to)
{
	unsigned i;

	for (i = 0; i < PUTS; i++)
		*to += 0.5;
}

static evc_status
put_worker(evc_group *group, unsigned id, void *arg)
{
	struct bench_put *k = arg;
	struct putter *p = &k->by[id];
	uint64_t t0;

	bench_pin(k->cpu[id], k->cpu[id]);
	bench_wait_until(&k->turn, ++p->turn);
	if (k->quit)
		return EVC_OUT_OF_RANGE;
	t0 = bench_now();
	if (k->what == BARE)
		add_all(&p->bare);
	else
		put_all(group, k->what == PUT_COUNT);
	p->took = bench_now() - t0;
	if (__atomic_sub_fetch(&k->left, 1, __ATOMIC_ACQ_REL) == 0)
		bench_futex_wake(&k->left, 1);
	return 0;
}

static void
next_turn(struct bench_put *k)
{
	__atomic_store_n(&k->left, k->n, __ATOMIC_RELAXED);
	__atomic_add_fetch(&k->turn, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&k->turn, (int)k->n);
}

/* Nanoseconds a put: the slowest of those who put at once. */
static double
sample_put(struct bench_put *k, int what)
{
	uint64_t most = 0;
	unsigned i;

	k->what = what;
	next_turn(k);
	bench_wait_until(&k->left, 0);
	for (i = 0; i < k->n; i++) {
		if (k->by[i].took > most)
			most = k->by[i].took;
	}
	return (double)most / PUTS;
}

static double
sample_plain(void *arg)
{
	return sample_put(arg, PUT);
}

static double
sample_count(void *arg)
{
	return sample_put(arg, PUT_COUNT);
}

static double
sample_bare(void *arg)
{
	return sample_put(arg, BARE);
}

static void
metrics(unsigned n, const int cpu[2])
{
	struct bench_put k = { .n = n, .cpu = { cpu[0], cpu[1] } };
	const struct bench_side plain[] = {
		{ BENCH_OURS, sample_plain, &k, 0 },
		{ "raw/bare-add", sample_bare, &k, 0 },
	};
	const struct bench_side count[] = {
		{ BENCH_OURS, sample_count, &k, 0 },
	};
	evc_group_opts opts = { .n_threads = n };
	struct bench_stats st;
	evc_registry *reg;
	evc_group *group;
	char metric[64];

	bench_must(evc_registry_new(NULL, &reg), "evc_registry_new");
	bench_must(evc_group_init(reg, "put", put_worker, &k, &opts, &group,
				    NULL), "evc_group_init");
	bench_must(evc_registry_start(reg), "evc_registry_start");
	snprintf(metric, sizeof(metric), "workers-put-%u", n);
	bench_compare(metric, "ns", plain, 2, 101, 5, &st);
	bench_goal(metric, "p50", st.p50, "ns", 15);
	snprintf(metric, sizeof(metric), "workers-put-count-%u", n);
	bench_compare(metric, "ns", count, 1, 101, 5, &st);
	bench_goal(metric, "p50", st.p50, "ns", 15);
	k.quit = true;
	next_turn(&k);
	if (!evc_group_wait_finish(group, 10))
		bench_must(-EVC_INTERNAL, "evc_group_wait_finish");
	bench_must(evc_registry_stop(reg, NULL), "evc_registry_stop");
	bench_must(evc_registry_free(reg), "evc_registry_free");
}

/* ---- the stop ---- */

struct blocked {
	evc_registry *reg;
	evc_group *group;
	int fd[2];       /* a socket on which nothing comes */
	uint32_t deaf;   /* main -> workers: 1 = the deaf ones may go */
	uint32_t here;   /* workers -> main */
	uint32_t tid[BLOCKED];
};

/* Say who is about to sleep. */
static void
about_to_block(struct blocked *b, unsigned id)
{
	b->tid[id] = (uint32_t)bench_tid();
	if (__atomic_add_fetch(&b->here, 1, __ATOMIC_ACQ_REL) == BLOCKED)
		bench_futex_wake(&b->here, 1);
}

static evc_status
in_wait(evc_group *group, unsigned id, void *arg)
{
	about_to_block(arg, id);
	(void)evc_sleep(evc_group_scope(group), INFINITY);
	return EVC_CANCELLED;
}

static evc_status
in_recv(evc_group *group, unsigned id, void *arg)
{
	struct blocked *b = arg;
	char byte;

	(void)group;
	about_to_block(b, id);
	if (recv(b->fd[0], &byte, 1, 0) >= 0)
		return EVC_INTERNAL;
	return EVC_CANCELLED;
}

static evc_status
in_nothing(evc_group *group, unsigned id, void *arg)
{
	struct blocked *b = arg;

	(void)group;
	about_to_block(b, id);
	bench_wait_until(&b->deaf, 1);
	return EVC_CANCELLED;
}

static void
make_blocked(struct blocked *b, evc_worker_fn *fn, unsigned flags)
{
	evc_group_opts opts = {
		.n_threads = BLOCKED,
		.member = { .flags = flags },
	};

	memset(b, 0, sizeof(*b));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, b->fd) != 0)
		bench_must_sys(errno, "socketpair");
	bench_must(evc_registry_new(NULL, &b->reg), "evc_registry_new");
	bench_must(evc_group_init(b->reg, "blocked", fn, b, &opts, &b->group,
				    NULL), "evc_group_init");
}

static void
end_blocked(struct blocked *b)
{
	bench_must(evc_registry_free(b->reg), "evc_registry_free");
	close(b->fd[0]);
	close(b->fd[1]);
}

/* Start them, and stop them when all are blocked: seconds. */
static double
stop_blocked(struct blocked *b, evc_status want)
{
	evc_status st;
	uint64_t t0;
	unsigned i;

	b->here = 0;
	bench_must(evc_registry_start(b->reg), "evc_registry_start");
	bench_wait_until(&b->here, BLOCKED);
	for (i = 0; i < BLOCKED; i++)
		bench_until_asleep((int)b->tid[i]);
	t0 = bench_now();
	st = evc_registry_stop(b->reg, NULL);
	t0 = bench_now() - t0;
	bench_must(st, "evc_registry_stop");
	if (st != want)
		bench_must(-EVC_INTERNAL, "a stop with another result");
	return (double)t0 / 1e9;
}

static double
sample_stop(void *arg)
{
	return stop_blocked(arg, 0) * 1e6;
}

static void
stops(const char *metric, evc_worker_fn *fn, unsigned flags)
{
	struct blocked b;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_stop, &b, 0 },
	};

	make_blocked(&b, fn, flags);
	bench_compare(metric, "us", sides, 1, 101, 1, NULL);
	end_blocked(&b);
}

static void
stop_deaf(void)
{
	struct blocked b;
	double took;

	make_blocked(&b, in_nothing, 0);
	took = stop_blocked(&b, EVC_DEADLINE_EXCEEDED);
	bench_goal("workers-stop-3-deaf", "took", took, "s", BUDGET + 0.1);
	__atomic_store_n(&b.deaf, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&b.deaf, BLOCKED);
	if (!evc_group_wait_finish(b.group, 10))
		bench_must(-EVC_INTERNAL, "evc_group_wait_finish");
	end_blocked(&b);
}

void
bench_workers(void)
{
	int cpu[2], n = bench_cpus(cpu);

	bench_pin(cpu[0], cpu[1]);
	metrics(1, cpu);
	if (n < 2)
		bench_skip("workers-put-2", "one cpu only");
	else
		metrics(2, cpu);
	stops("workers-stop-3-waiting", in_wait, 0);
	stops("workers-stop-3-kicked", in_recv, EVC_KICK);
	stop_deaf();
}
