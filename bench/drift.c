/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a looper is after a million ticks, by a scripted clock: each run comes
 * late by a part of the interval, and moves the clock past the next boundary,
 * so that no time is spent on waiting.  The boundary of a run is the clock less
 * what evc_looper_tick says it is late; it must be start + k * interval.
 */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

#define TICKS 1000000u
#define INTERVAL 1.0
#define INTERVAL_NS UINT64_C(1000000000)

struct script {
	uint64_t now;   /* atomic: the looper's thread -> who asks for it */
	uint64_t start; /* of the looper */
	uint64_t k;     /* the run to come */
	uint64_t seed;
	uint64_t missed;
	double drift;   /* ns, of the last run */
	double worst;   /* ns, of all */
};

static uint64_t
script_clock(void *arg)
{
	struct script *s = arg;

	return __atomic_load_n(&s->now, __ATOMIC_ACQUIRE);
}

static evc_status
run(evc_coord *c, void *arg)
{
	struct script *s = arg;
	uint64_t missed, boundary, next;
	double late;

	bench_must(evc_looper_tick(c, NULL, &missed, &late),
		   "evc_looper_tick");
	s->missed += missed;
	boundary = s->now - (uint64_t)llrint(late * 1e9);
	s->drift = fabs((double)boundary -
			(double)(s->start + s->k * INTERVAL_NS));
	if (s->drift > s->worst)
		s->worst = s->drift;
	if (++s->k == TICKS) {
		(void)evc_request_stop(c, 0, "over");
		return 0;
	}
	/* Late by anything up to nine tenths of the interval. */
	s->seed = s->seed * UINT64_C(6364136223846793005) + 1;
	next = s->start + s->k * INTERVAL_NS +
	       (s->seed >> 33) % (INTERVAL_NS / 10 * 9);
	__atomic_store_n(&s->now, next, __ATOMIC_RELEASE);
	return 0;
}

static void
measure(const char *metric, unsigned flags)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct script s = { .now = 3600 * INTERVAL_NS, .seed = 1 };
	evc_config k = { .clock = script_clock, .arg = &s };
	evc_member_opts o = { .flags = flags };
	uint64_t t0 = bench_now();
	evc_coord *c;

	s.start = s.now;
	bench_must(evc_new(loop, &k, &c), "evc_new");
	bench_must(evc_looper_start(c, "drift", INTERVAL, run, &s, &o, NULL),
		   "evc_looper_start");
	bench_must(evc_run(c, NULL, NULL), "evc_run");
	bench_must(evc_free(c), "evc_free");
	ev_loop_destroy(loop);
	if (s.k != TICKS || s.missed > 0)
		bench_must(-EVC_INTERNAL, "ticks were missed");
	bench_count(metric, BENCH_OURS, (double)(bench_now() - t0) / TICKS,
		    "ns-a-tick");
	bench_goal(metric, "last", s.drift, "ns", 0);
	bench_goal(metric, "worst", s.worst, "ns", 0);
}

void
bench_looper_drift(void)
{
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	measure("looper-drift-loop", 0);
	measure("looper-drift-thread", EVC_OWN_THREAD);
}
