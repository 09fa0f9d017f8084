/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the benchmarks:
 *
 *	evcbench             all groups, then a summary
 *	evcbench GROUP...    these groups alone, in this process; of a family
 *	                     ("cluster") all that begin with it and a "-"
 *	evcbench --list      the names of the groups
 *
 * Each group runs in a process of its own, started afresh: what one leaves
 * behind in caches of stacks, in the heap or in limits does not reach the
 * next, and one that hangs is ended and named without stopping the others.
 * With --peer it is not a benchmark but what one is measured beside (peer.c);
 * so it is with --node, a node of a cluster over Redis, and when it was started
 * as a worker of a cluster.
 *
 * The exit status is 0 when everything ran, however fast; 1 when a group
 * failed; 2 for a wrong argument.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "cluster.h"
#ifdef HAVE_REDIS
#include "cluster_redis.h"
#endif

extern char **environ;

static const struct group {
	const char *name;
	void (*run)(void);
	const char *what;
} groups[] = {
	{ "stop", bench_stop, "the stop check, in a loop" },
	{ "request", bench_request, "request and clear, nobody waiting" },
	{ "wake", bench_wake, "request until all threads are awake" },
	{ "loop", bench_loop_told, "request until an idle loop's callback" },
	{ "told", bench_tasks_told, "request until all tasks are told" },
	{ "task", bench_task_cost, "task begin and end" },
	{ "memory", bench_task_memory, "a million tasks" },
	{ "join", bench_join, "last end until the join returned" },
	{ "stacks", bench_stacks, "start and join at three sizes of stacks" },
	{ "notice", bench_notice, "a registered thread's end, by pidfd" },
	{ "polled", bench_notice_polled, "the same without a pidfd" },
	{ "idle", bench_idle, "wake-ups of a program that waits" },
	{ "looper", bench_looper, "one looper on a loop, a tick a second" },
	{ "loopers", bench_loopers, "a thousand loopers on one loop" },
	{ "many", bench_loopers_many, "a hundred thousand on one loop" },
	{ "drift", bench_looper_drift, "a million ticks by a scripted clock" },
	{ "scope", bench_scope, "request until all below scopes are told" },
	{ "scopes", bench_scopes, "what ten thousand scopes take" },
	{ "trace", bench_trace, "the timeline, off and on" },
	{ "recv", bench_recv, "stop of 100 threads blocked in recv" },
	{ "checkpoint", bench_checkpoint, "a member says where it is" },
	{ "queue", bench_queue, "pushes and pops through a queue" },
	{ "pool", bench_pool, "tiny jobs through the pool" },
	{ "trip", bench_pool_trip, "one job to the pool and back" },
	{ "post", bench_post, "functions posted to a loop" },
	{ "hosted", bench_hosted, "rings and turns on a loop not libev's" },
	{ "workers", bench_workers, "metrics; the stop of blocked workers" },
	{ "cluster-threads", bench_cluster_threads,
	  "functions scheduled on four threads" },
	{ "cluster-processes", bench_cluster_processes,
	  "functions scheduled on four processes" },
	{ "cluster-trip", bench_cluster_trip,
	  "one function to a process and back" },
	{ "cluster-queue", bench_cluster_queue,
	  "what a queued function takes" },
	{ "cluster-idle", bench_cluster_idle,
	  "256 workers that have nothing to do" },
	{ "cluster-large", bench_cluster_large,
	  "values of 4 MiB to a process and back" },
	{ "cluster-one-by-one", bench_cluster_one_by_one,
	  "functions of 10 ms on 1,024 threads and processes" },
#ifdef HAVE_REDIS
	{ "redis-tasks", bench_redis_tasks,
	  "functions scheduled over Redis on four workers" },
	{ "redis-trip", bench_redis_trip,
	  "one function over Redis and back" },
	{ "redis-workers", bench_redis_curve,
	  "the same on 1, 2, 4 and 8 workers" },
	{ "redis-sleep", bench_redis_naps,
	  "functions that sleep, on 1, 2, 4 and 8 workers" },
	{ "redis-adds", bench_redis_adds,
	  "additions to a variable by 1, 2, 4 and 8 workers" },
	{ "redis-far", bench_redis_far,
	  "transactions over a network of 0 to 4 ms each way" },
	{ "redis-one-by-one", bench_redis_one_by_one,
	  "functions of 10 ms on 1,024 workers of four nodes" },
	{ "redis-death", bench_redis_death,
	  "kill -9 until the function has run again" },
	{ "redis-idle", bench_redis_idle,
	  "200 workers that have nothing to do" },
	{ "redis-nodes", bench_redis_nodes,
	  "10 to 10,000 nodes that have nothing to do" },
	{ "redis-large", bench_redis_large,
	  "values of 4 MiB over Redis and back" },
	{ "redis-checkpoint", bench_redis_checkpoint,
	  "checkpoints of many variables" },
#endif
};
#define N_GROUPS (sizeof(groups) / sizeof(groups[0]))

/* Lines that the summary repeats: missed goals, skips, failures. */
struct summary {
	unsigned goals, met, skipped, failed;
	char *lines;
	size_t len;
};

static void
keep_line(struct summary *sum, const char *prefix, const char *line)
{
	size_t add = strlen(prefix) + strlen(line);
	char *grown = realloc(sum->lines, sum->len + add + 1);

	if (!grown)
		bench_must_sys(ENOMEM, "realloc");
	sum->lines = grown;
	memcpy(sum->lines + sum->len, prefix, strlen(prefix));
	strcpy(sum->lines + sum->len + strlen(prefix), line);
	sum->len += add;
}

static bool
ends_with(const char *line, const char *tail)
{
	size_t n = strlen(line), k = strlen(tail);

	return n >= k && strcmp(line + n - k, tail) == 0;
}

static void
note_line(struct summary *sum, const char *line)
{
	if (ends_with(line, " met\n")) {
		sum->goals++;
		sum->met++;
	} else if (ends_with(line, " missed\n")) {
		sum->goals++;
		keep_line(sum, "  ", line);
	} else if (strncmp(line, "SKIP ", 5) == 0) {
		sum->skipped++;
		keep_line(sum, "  ", line);
	}
}

static void
run_apart(const struct group *g, struct summary *sum)
{
	char *argv[] = { (char *)"evcbench", (char *)g->name, NULL };
	posix_spawn_file_actions_t act;
	char *line = NULL, text[128];
	size_t size = 0;
	int fds[2], status;
	FILE *in;
	pid_t pid;

	printf("# %s: %s\n", g->name, g->what);
	fflush(stdout);
	if (pipe(fds) != 0)
		bench_must_sys(errno, "pipe");
	bench_must_sys(posix_spawn_file_actions_init(&act), "posix_spawn");
	posix_spawn_file_actions_adddup2(&act, fds[1], 1);
	posix_spawn_file_actions_addclose(&act, fds[0]);
	posix_spawn_file_actions_addclose(&act, fds[1]);
	bench_must_sys(posix_spawn(&pid, "/proc/self/exe", &act, NULL, argv,
				   environ), "posix_spawn");
	posix_spawn_file_actions_destroy(&act);
	close(fds[1]);
	in = fdopen(fds[0], "r");
	if (!in)
		bench_must_sys(errno, "fdopen");
	while (getline(&line, &size, in) > 0) {
		fputs(line, stdout);
		fflush(stdout);
		note_line(sum, line);
	}
	free(line);
	fclose(in);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			bench_must_sys(errno, "waitpid");
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "FAILED %s: signal %d%s\n",
			 g->name, WTERMSIG(status),
			 WTERMSIG(status) == SIGALRM ? ", out of time" : "");
	else
		snprintf(text, sizeof(text), "FAILED %s: exit status %d\n",
			 g->name, WEXITSTATUS(status));
	fputs(text, stdout);
	sum->failed++;
	keep_line(sum, "  ", text);
}

static int
run_all(void)
{
	struct summary sum = { 0, 0, 0, 0, NULL, 0 };
	struct utsname u;
	uint64_t began = bench_now();
	int cpu[2], n = bench_cpus(cpu);
	double load[1];
	size_t i;

	if (uname(&u) != 0)
		bench_must_sys(errno, "uname");
	printf("# evcoord %s, libev %d.%d, %s %s, cpus %d and %d of %ld\n",
	       evc_version(), ev_version_major(), ev_version_minor(),
	       u.sysname, u.release, cpu[0], cpu[1],
	       sysconf(_SC_NPROCESSORS_ONLN));
	/* Ratios bear a loaded machine, goals in milliseconds do not. */
	if (getloadavg(load, 1) == 1)
		printf("# load average %.1f when this began\n", load[0]);
	if (n < 2)
		printf("# one cpu only: what needs two is left out\n");
	printf("# metric subject n p50 p99 max unit\n");
	for (i = 0; i < N_GROUPS; i++)
		run_apart(&groups[i], &sum);
	printf("\nsummary: %u goals, %u met, %u missed, %u skipped, "
	       "%u groups failed, %.0f s\n", sum.goals, sum.met,
	       sum.goals - sum.met, sum.skipped, sum.failed,
	       (double)(bench_now() - began) / 1e9);
	if (sum.lines)
		fputs(sum.lines, stdout);
	free(sum.lines);
	return sum.failed ? 1 : 0;
}

/* "cluster" is all of cluster-threads and so on. */
static bool
is_of(const struct group *g, const char *family)
{
	size_t n = strlen(family);

	return strncmp(g->name, family, n) == 0 && g->name[n] == '-';
}

static int
run_family(const char *family)
{
	struct summary sum = { 0, 0, 0, 0, NULL, 0 };
	bool found = false;
	size_t i;

	for (i = 0; i < N_GROUPS; i++) {
		if (is_of(&groups[i], family)) {
			found = true;
			run_apart(&groups[i], &sum);
		}
	}
	free(sum.lines);
	if (found)
		return sum.failed ? 1 : 0;
	fprintf(stderr, "bench: no group \"%s\"; see --list\n", family);
	return 2;
}

static int
run_named(const char *name)
{
	size_t i;

	for (i = 0; i < N_GROUPS; i++) {
		if (strcmp(groups[i].name, name) != 0)
			continue;
		alarm(BENCH_SECONDS);
		groups[i].run();
		alarm(0);
		return 0;
	}
	return run_family(name);
}

int
main(int argc, char **argv)
{
	int cpu[2], i, st;
	size_t k;

	if (evc_worker_is())
		return bench_cluster_worker();
	(void)bench_cpus(cpu);
	if (argc < 2)
		return run_all();
	if (strcmp(argv[1], "--list") == 0) {
		for (k = 0; k < N_GROUPS; k++)
			printf("%-17s %s\n", groups[k].name, groups[k].what);
		return 0;
	}
#ifdef HAVE_REDIS
	if (strcmp(argv[1], "--node") == 0)
		return bench_node_main(argc - 2, argv + 2);
	if (strcmp(argv[1], "--sim") == 0)
		return bench_sim_main(argc - 2, argv + 2);
	if (strcmp(argv[1], "--redis-nodes") == 0)
		return bench_redis_nodes_main(argc - 2, argv + 2);
#endif
	if (strcmp(argv[1], "--peer") == 0)
		return bench_libuv_main(argc - 2, argv + 2);
	for (i = 1; i < argc; i++) {
		st = run_named(argv[i]);
		if (st)
			return st;
	}
	return 0;
}
