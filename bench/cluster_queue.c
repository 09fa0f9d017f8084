/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waits in a cluster: how many bytes a function takes that is queued,
 * beside its arguments, and whether it takes longer to schedule one when there
 * are a million than when there are a thousand.  The only worker is in a
 * function that does not end meanwhile.
 */
#include <stdlib.h>

#include "cluster.h"

#define QUEUED 100000
#define FEW 1000
#define MANY 1000000
#define BATCH 1000
#define ROUNDS 51

static void
schedule(const struct bench_cluster *b, const char *function,
	 const evc_value *args, evc_remote **ret_remote)
{
	evc_status st = evc_schedule(b->cluster, function, args, NULL, NULL,
				     ret_remote);

	bench_must(st > 0 ? -st : st, "evc_schedule");
}

/* A cluster whose worker is busy. */
static void
open_blocked(struct bench_cluster *b, uint32_t number)
{
	const evc_cluster_config config = { .max_queued = 2 * MANY };

	bench_cluster_open(b, "threads://1", &config, NULL);
	schedule(b, BLOCK, NULL, NULL);
	bench_wait_until(&bench_blocked, number);
}

/* ---- bytes ---- */

static void
bytes(const char *metric, const evc_value *args)
{
	struct bench_cluster b;
	uint64_t heap;
	double each;
	unsigned i;

	open_blocked(&b, 1);
	/* The first ones pay for tables. */
	for (i = 0; i < 1000; i++)
		schedule(&b, NOTHING, args, NULL);
	heap = bench_heap_bytes();
	for (i = 0; i < QUEUED; i++)
		schedule(&b, NOTHING, args, NULL);
	each = (double)(bench_heap_bytes() - heap) / QUEUED;
	bench_count(metric, BENCH_OURS, each, "bytes");
	if (args) {
		bench_count(metric, "arguments", (double)args->size, "bytes");
		each -= (double)args->size;
	}
	bench_goal(metric, "beside-arguments", each, "bytes", 200);
	bench_cluster_close(&b);
}

/* ---- the time of a schedule ---- */

struct side {
	struct bench_cluster b;
	evc_remote *remotes[BATCH];
};

/* Nanoseconds; afterwards as many are queued as before. */
static double
sample(void *arg)
{
	struct side *s = arg;
	uint64_t t0;
	unsigned i;

	t0 = bench_now();
	for (i = 0; i < BATCH; i++)
		schedule(&s->b, NOTHING, NULL, &s->remotes[i]);
	t0 = bench_now() - t0;
	for (i = 0; i < BATCH; i++) {
		bench_must(evc_remote_cancel(s->remotes[i]),
			   "evc_remote_cancel");
		evc_remote_free(s->remotes[i]);
	}
	return (double)t0 / BATCH;
}

static void
times(void)
{
	static struct side few, many;
	const struct bench_side sides[] = {
		{ BENCH_OURS "-a-million-queued", sample, &many, 0 },
		{ "raw/a-thousand-queued", sample, &few, 1.1 },
	};
	unsigned i;

	open_blocked(&few.b, 1);
	open_blocked(&many.b, 2);
	for (i = 0; i < FEW; i++)
		schedule(&few.b, NOTHING, NULL, NULL);
	for (i = 0; i < MANY; i++)
		schedule(&many.b, NOTHING, NULL, NULL);
	bench_compare("cluster-schedule", "ns", sides, 2, ROUNDS, 1, NULL);
	bench_cluster_close(&few.b);
	bench_cluster_close(&many.b);
}

void
bench_cluster_queue(void)
{
	int cpu[2];
	evc_value args;

	(void)bench_cpus(cpu);
	bench_pin(cpu[0], cpu[1]);
	if (bench_alloc_counted()) {
		bytes("cluster-queued", NULL);
		bench_must(evc_pack(&args, "[s i {to:s}]", "/etc/motd", 7,
				    "somewhere else"), "evc_pack");
		bytes("cluster-queued-args", &args);
		evc_value_free(&args);
	} else {
		bench_skip("cluster-queued", "allocations are not counted");
	}
	times();
}
