/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a member pays to say where it is, in a loop, against the same loop with
 * nothing in it, and against the look at the coarse clock that it cannot do
 * without.  Measured inside a member, for elsewhere a checkpoint does nothing;
 * once more while a stop stands, when it is also noted as progress.
 */
#include <time.h>

#include "bench.h"

#define CHECKS 20000u

BENCH_ALIGNED static void
check_ours(void)
{
	unsigned i;

	for (i = 0; i < CHECKS; i++)
		evc_progress("in the loop");
}

BENCH_ALIGNED static void
check_clock(void)
{
	struct timespec ts;
	unsigned i;

	for (i = 0; i < CHECKS; i++)
		clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
}

BENCH_ALIGNED static void
check_empty(void)
{
	unsigned i;

	for (i = 0; i < CHECKS; i++)
		__asm__ volatile("");
}

static double
timed(void (*fn)(void))
{
	uint64_t t0 = bench_now();

	fn();
	return (double)(bench_now() - t0) / CHECKS;
}

static double
sample_ours(void *arg)
{
	(void)arg;
	return timed(check_ours);
}

static double
sample_clock(void *arg)
{
	(void)arg;
	return timed(check_clock);
}

static double
sample_empty(void *arg)
{
	(void)arg;
	return timed(check_empty);
}

static void
compare(const char *metric, struct bench_stats *ret)
{
	static const struct bench_side sides[] = {
		{ BENCH_OURS, sample_ours, NULL, 0 },
		{ "raw/empty-loop", sample_empty, NULL, 0 },
		{ "raw/bare-coarse-clock", sample_clock, NULL, 0 },
	};

	bench_compare(metric, "ns", sides, 3, 301, 5, ret);
}

static evc_status
member(evc_coord *c, void *arg)
{
	struct bench_stats st;

	(void)arg;
	compare("checkpoint", &st);
	bench_goal("checkpoint", "p50", st.p50, "ns", 12);
	(void)evc_request_stop(c, 0, "bench");
	compare("checkpoint-stopping", NULL);
	return 0;
}

void
bench_checkpoint(void)
{
	evc_coord *c;
	evc_status st;
	int cpu[2];

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[0]);
	bench_must(evc_new(NULL, NULL, &c), "evc_new");
	bench_must(evc_thread_start(c, "bench", member, NULL, NULL, NULL),
		   "evc_thread_start");
	st = evc_join(c, NULL, NULL);
	bench_must(-st, "evc_join");
	bench_must(evc_free(c), "evc_free");
}
