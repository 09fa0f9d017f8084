/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that runs a loop and nothing else: what is told is an idle loop
 * that sleeps in its poll.  Ours and the bare side each get one of their own,
 * because watchers that the library adds to a loop would slow the bare side
 * down, too.
 */
#include "bench.h"

#define STACK (256 * 1024)

static void
do_job(struct ev_loop *loop, ev_async *w, int revents)
{
	struct bench_loop *l = w->data;

	(void)loop;
	(void)revents;
	if (l->fn)
		l->fn(l, l->arg);
	else
		ev_break(loop, EVBREAK_ALL);
	__atomic_store_n(&l->done, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&l->done, 1);
}

static void *
run(void *arg)
{
	struct bench_loop *l = arg;

	bench_pin(l->cpu, l->cpu);
	l->tid = bench_tid();
	__atomic_store_n(&l->ready, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&l->ready, 1);
	ev_run(l->loop, 0);
	return NULL;
}

void
bench_loop_start(struct bench_loop *l, int cpu)
{
	l->cpu = cpu;
	l->ready = 0;
	l->loop = ev_loop_new(EVFLAG_AUTO);
	if (!l->loop)
		bench_must(-EVC_RESOURCE_EXHAUSTED, "ev_loop_new");
	ev_async_init(&l->job, do_job);
	l->job.data = l;
	ev_async_start(l->loop, &l->job);
	l->thread = bench_thread(run, l, STACK);
	bench_wait_until(&l->ready, 1);
	bench_until_asleep(l->tid);
}

void
bench_loop_do(struct bench_loop *l,
	      void (*fn)(struct bench_loop *l, void *arg), void *arg)
{
	l->fn = fn;
	l->arg = arg;
	__atomic_store_n(&l->done, 0, __ATOMIC_RELAXED);
	ev_async_send(l->loop, &l->job);
	bench_wait_until(&l->done, 1);
}

void
bench_loop_stop(struct bench_loop *l)
{
	bench_loop_do(l, NULL, NULL);
	bench_must_sys(pthread_join(l->thread, NULL), "pthread_join");
	ev_async_stop(l->loop, &l->job);
	ev_loop_destroy(l->loop);
}
