/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cluster that has nothing to do: how often the threads of the coordinator's
 * process are woken, with 256 workers of either kind.  Leases are long, for
 * each of them is a wake-up of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "cluster.h"

#define WORKERS 256
#define LEASE 36000.
#define FILES (16 * WORKERS)

static void
watch(const char *metric, const char *engine)
{
	const evc_cluster_config config = { .lease = LEASE };
	struct bench_cluster b;
	char uri[32];
	uint64_t t0 = bench_now();
	double woken;

	snprintf(uri, sizeof(uri), "%s://%d", engine, WORKERS);
	bench_cluster_open(&b, uri, &config, NULL);
	bench_cluster_until_up(&b, WORKERS);
	printf("# %s: all workers are up after %.2f s\n", metric,
	       (double)(bench_now() - t0) / 1e9);
	/* Each of them has done something once. */
	(void)bench_cluster_work(&b, 10 * WORKERS);
	woken = bench_watch_wakeups();
	bench_count(metric, BENCH_OURS, woken, "wake-ups");
	bench_goal(metric, "count", woken, "wake-ups", 0);
	t0 = bench_now();
	bench_cluster_close(&b);
	printf("# %s: all workers are gone after %.2f s\n", metric,
	       (double)(bench_now() - t0) / 1e9);
}

void
bench_cluster_idle(void)
{
	struct rlimit files;

	/* Some for each worker. */
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		bench_must_sys(errno, "getrlimit");
	if (files.rlim_cur < FILES)
		files.rlim_cur = files.rlim_max < FILES ? files.rlim_max :
							  FILES;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		bench_must_sys(errno, "setrlimit");
	watch("cluster-idle-256-threads", "threads");
	watch("cluster-idle-256-processes", "processes");
}
