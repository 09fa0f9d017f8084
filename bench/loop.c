/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Request until the callback of an idle loop in another thread, against a
 * bare ev_async.  The library's callback is a stop hook on that loop.
 */
#include <stdio.h>

#include "bench.h"

struct told {
	struct bench_loop l;
	evc_coord *c;
	evc_reactor *r;
	evc_id hook;
	ev_async bare;
	uint64_t at;    /* loop thread -> main, by seen */
	uint32_t seen;
};

static void
note(struct told *t)
{
	t->at = bench_now();
	__atomic_store_n(&t->seen, 1, __ATOMIC_RELEASE);
	bench_futex_wake(&t->seen, 1);
}

static evc_status
hook(evc_coord *c, void *arg)
{
	(void)c;
	note(arg);
	return 0;
}

static void
bare_cb(struct ev_loop *loop, ev_async *w, int revents)
{
	(void)loop;
	(void)revents;
	note(w->data);
}

static void
attach(struct bench_loop *l, void *arg)
{
	struct told *t = arg;

	bench_must(evc_reactor_attach(t->c, "bench", l->loop, &t->r),
		   "evc_reactor_attach");
}

static void
detach(struct bench_loop *l, void *arg)
{
	struct told *t = arg;

	(void)l;
	bench_must(evc_reactor_detach(t->r), "evc_reactor_detach");
}

static void
start_bare(struct bench_loop *l, void *arg)
{
	struct told *t = arg;

	ev_async_init(&t->bare, bare_cb);
	t->bare.data = t;
	ev_async_start(l->loop, &t->bare);
}

static void
stop_bare(struct bench_loop *l, void *arg)
{
	struct told *t = arg;

	ev_async_stop(l->loop, &t->bare);
}

/* The loop has nothing left to do: it sleeps in its poll. */
static void
get_ready(struct told *t)
{
	bench_until_asleep(t->l.tid);
	__atomic_store_n(&t->seen, 0, __ATOMIC_RELAXED);
}

static double
sample_ours(void *arg)
{
	struct told *t = arg;
	uint64_t t0;

	get_ready(t);
	t0 = bench_now();
	(void)evc_request_stop(t->c, 0, "bench");
	bench_wait_until(&t->seen, 1);
	bench_until_asleep(t->l.tid);
	bench_must(evc_clear_stop(t->c), "evc_clear_stop");
	return (double)(t->at - t0) / 1e3;
}

static double
sample_bare(void *arg)
{
	struct told *t = arg;
	uint64_t t0;

	get_ready(t);
	t0 = bench_now();
	ev_async_send(t->l.loop, &t->bare);
	bench_wait_until(&t->seen, 1);
	bench_until_asleep(t->l.tid);
	return (double)(t->at - t0) / 1e3;
}

static void
measure(int cpu, const char *where)
{
	static struct told ours, bare;
	const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, &ours, 0 },
		{ "raw/bare-ev_async", sample_bare, &bare, 1.2 },
	};
	evc_member_opts opts = { 0 };
	char metric[64];

	bench_must(evc_new(NULL, NULL, &ours.c), "evc_new");
	bench_loop_start(&ours.l, cpu);
	bench_loop_do(&ours.l, attach, &ours);
	opts.reactor = ours.r;
	bench_must(evc_on_stop(ours.c, "hook", hook, &ours, &opts, &ours.hook),
		   "evc_on_stop");
	bench_loop_start(&bare.l, cpu);
	bench_loop_do(&bare.l, start_bare, &bare);

	snprintf(metric, sizeof(metric), "loop-told-%s", where);
	bench_compare(metric, "us", sides, 2, 31, 100, NULL);

	bench_loop_do(&bare.l, stop_bare, &bare);
	bench_loop_stop(&bare.l);
	bench_must(evc_member_remove(ours.c, ours.hook), "evc_member_remove");
	bench_loop_do(&ours.l, detach, &ours);
	bench_loop_stop(&ours.l);
	bench_must(evc_free(ours.c), "evc_free");
}

void
bench_loop_told(void)
{
	int cpu[2], n = bench_cpus(cpu);

	bench_pin(cpu[0], cpu[0]);
	measure(cpu[0], "one-cpu");
	if (n < 2)
		bench_skip("loop-told-two-cpus", "one cpu only");
	else
		measure(cpu[1], "two-cpus");
}
