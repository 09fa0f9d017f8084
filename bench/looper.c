/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One looper alone on a loop, at 1 s, against one bare ev_timer.
 *
 * A second gives one tick, so many such loops run at the same time, each on a
 * thread of its own, ours and bare ones in turns: their ticks are spread over
 * the second, so that each one wakes a cpu that slept and none disturbs
 * another.  The figure is what a thread spends from one tick to the next: a
 * sleep, a wake-up and a call.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/resource.h>
#include <time.h>

#include "bench.h"

#define LOOPS 32 /* of each side */
#define TICKS 7  /* counted, after the first two */
#define NOT_COUNTED 2
#define SECOND UINT64_C(1000000000)
#define STACK (256 * 1024)

struct lone {
	bool ours;
	int cpu;
	uint64_t begin;  /* when it is to start */
	uint64_t first;  /* when its first tick was due */
	unsigned seen;
	uint64_t cpu_ns; /* of this thread, at the tick before */
	long woken;      /* likewise */
	/* thread -> main, by pthread_join */
	double spent[TICKS], late[TICKS];
	long wakeups;
	ev_timer bare;
	pthread_t thread;
};

static uint64_t
thread_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* How often this thread has gone to sleep. */
static long
thread_sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

/* A tick; true: it was the last one. */
static bool
tick(struct lone *l)
{
	uint64_t now = bench_now(), spent = thread_cpu();
	unsigned k = l->seen++ - NOT_COUNTED;

	if (l->seen == NOT_COUNTED)
		l->woken = thread_sleeps();
	if (l->seen > NOT_COUNTED) {
		l->late[k] = (double)((now - l->first) % SECOND) / 1e3;
		l->spent[k] = (double)(spent - l->cpu_ns) / 1e3;
		if (k == TICKS - 1)
			l->wakeups = thread_sleeps() - l->woken;
	}
	/* Once more, so that a tick does not pay for these questions. */
	l->cpu_ns = thread_cpu();
	return l->seen == NOT_COUNTED + TICKS;
}

static evc_status
run(evc_coord *c, void *arg)
{
	if (tick(arg))
		(void)evc_request_stop(c, 0, "over");
	return 0;
}

static void
bare_cb(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)revents;
	if (tick(w->data))
		ev_timer_stop(loop, w);
}

static void
until_its_turn(const struct lone *l)
{
	uint64_t now = bench_now();

	if (now < l->begin)
		bench_sleep((double)(l->begin - now) / 1e9);
}

static void *
run_ours(void *arg)
{
	struct lone *l = arg;
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c;

	bench_pin(l->cpu, l->cpu);
	bench_must(evc_new(loop, NULL, &c), "evc_new");
	until_its_turn(l);
	l->first = bench_now();
	bench_must(evc_looper_start(c, "bench", 1.0, run, l, NULL, NULL),
		   "evc_looper_start");
	bench_must(evc_run(c, NULL, NULL), "evc_run");
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);
	return NULL;
}

static void *
run_bare(void *arg)
{
	struct lone *l = arg;
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

	bench_pin(l->cpu, l->cpu);
	until_its_turn(l);
	ev_timer_init(&l->bare, bare_cb, 0., 1.);
	l->bare.data = l;
	l->first = bench_now();
	ev_now_update(loop);
	ev_timer_start(loop, &l->bare);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	return NULL;
}

void
bench_looper(void)
{
	static struct lone lone[2 * LOOPS];
	static double spent[2][TICKS][LOOPS], late[2][TICKS][LOOPS];
	const struct bench_taken cost[] = {
		{ BENCH_OURS, &spent[0][0][0], 0 },
		{ "raw/bare-ev_timer", &spent[1][0][0], 1.2 },
	}, delay[] = {
		{ BENCH_OURS, &late[0][0][0], 0 },
		{ "raw/bare-ev_timer", &late[1][0][0], 1.1 },
	};
	long wakeups[2] = { 0, 0 };
	uint64_t begin;
	unsigned i, k;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	/* Time enough for all threads to get there. */
	begin = bench_now() + SECOND / 5;
	for (i = 0; i < 2 * LOOPS; i++) {
		lone[i].ours = i % 2 == 0;
		lone[i].cpu = cpu[0];
		lone[i].begin = begin + i * (SECOND / (2 * LOOPS));
		lone[i].thread = bench_thread(lone[i].ours ? run_ours :
							     run_bare,
					      &lone[i], STACK);
	}
	for (i = 0; i < 2 * LOOPS; i++) {
		bench_must_sys(pthread_join(lone[i].thread, NULL),
			       "pthread_join");
		wakeups[i % 2] += lone[i].wakeups;
		for (k = 0; k < TICKS; k++) {
			spent[i % 2][k][i / 2] = lone[i].spent[k];
			late[i % 2][k][i / 2] = lone[i].late[k];
		}
	}
	bench_compare_taken("looper-1-cpu-a-tick", "us", cost, 2, TICKS,
			    LOOPS, BENCH_COST);
	bench_compare_taken("looper-1-late", "us", delay, 2, TICKS, LOOPS,
			    BENCH_TAIL);
	bench_count("looper-1-wakeups", "raw/bare-ev_timer",
		    (double)wakeups[1] / (LOOPS * TICKS), "a-tick");
	bench_goal("looper-1-wakeups", "count",
		   (double)wakeups[0] / (LOOPS * TICKS), "a-tick", 1);
}
