/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much 10, 100, 1,000 and 10,000 nodes of ten workers take when they do
 * nothing, of one server and one coordinator, and how many functions a second
 * go through beside that.  The coordinator is a real one; the nodes are
 * simulated, with two connections each as real ones have, and say what real ones
 * say, at the same times.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tests/support/redis_sim.h"
#include "cluster_redis.h"

#define WORKERS 10        /* of each node */
#define NODES_EACH 4900   /* nodes of a process, which has two descriptors for
			     each */
#define PROCESSES 32
#define SPARE 60          /* descriptors of a server beside its clients */
#define IDLE_SECONDS 10.
#define SETTLE_SECONDS 3.
#define TASKS 20000
#define SERVER_GOAL 30.   /* % of a cpu, with 10,000 nodes */
#define COORDINATOR_GOAL 10.

int
bench_sim_main(int argc, char **argv)
{
	return redis_sim_main(argc, argv);
}

/* The nodes that the limit of descriptors allows: a server has two for each. */
static unsigned
raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		bench_must_sys(errno, "getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		bench_must_sys(errno, "setrlimit");
	return files.rlim_max < 1000000 ? (unsigned)(files.rlim_max - SPARE) / 2 :
					  500000;
}

/* The number behind a name in INFO. */
static double
info(redisContext *c, const char *section, const char *name)
{
	redisReply *r = redisCommand(c, "INFO %s", section);
	const char *at = r && r->type == REDIS_REPLY_STRING ?
				 strstr(r->str, name) :
				 NULL;
	double n = at ? atof(at + strlen(name)) : -1;

	if (r)
		freeReplyObject(r);
	return n;
}

static double
own_megabytes(void)
{
	unsigned long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%lu %lu", &pages, &resident) != 2)
		bench_must_sys(errno, "/proc/self/statm");
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* A process of nodes that has ended, for whatever reason, ends the run. */
static void
must_live(const pid_t *pid, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (waitpid(pid[i], NULL, WNOHANG) != 0)
			bench_must_sys(ECHILD, "simulated nodes");
}

struct crowd {
	struct bench_server server;
	struct bench_cluster ours;
	pid_t pid[PROCESSES];
	unsigned n, n_pids;
};

/* Wait until the server has accepted all connections of nodes. */
static void
await_clients(const struct crowd *k)
{
	redisContext *c = bench_server_connect(&k->server);

	while (info(c, "clients", "connected_clients:") < 2. * k->n) {
		must_live(k->pid, k->n_pids);
		bench_sleep(0.05);
	}
	redisFree(c);
}

static void
begin(struct crowd *k)
{
	char ns[24], first[16], n[16], workers[16], path[96];
	unsigned at;

	snprintf(ns, sizeof(ns), "nodes%u", k->n);
	snprintf(path, sizeof(path), "%s/socket", k->server.folder);
	for (at = 0; at < k->n; at += NODES_EACH) {
		char *argv[] = { (char *)"/proc/self/exe", (char *)"--sim",
				 path, ns, first, n, workers, (char *)NOTHING,
				 NULL };

		if (k->n_pids == PROCESSES)
			bench_must_sys(E2BIG, "so many nodes");
		snprintf(first, sizeof(first), "%u", at);
		snprintf(n, sizeof(n), "%u",
			 k->n - at < NODES_EACH ? k->n - at : NODES_EACH);
		snprintf(workers, sizeof(workers), "%d", WORKERS);
		k->pid[k->n_pids++] = bench_start(argv, false);
	}
	await_clients(k);
	bench_server_open(&k->server, ns, &k->ours, NULL);
}

/* A line for each figure: the metric's name has the number of nodes. */
static void
tell(const struct crowd *k, const char *what, double value, const char *unit)
{
	char metric[64];

	snprintf(metric, sizeof(metric), "redis-nodes-%s-%u", what, k->n);
	bench_count(metric, BENCH_OURS, value, unit);
}

static void
until_up(const struct crowd *k)
{
	evc_cluster_info i = { .n_up = 0 };

	while (i.n_up < k->n * WORKERS) {
		must_live(k->pid, k->n_pids);
		bench_sleep(0.01);
		bench_must(evc_cluster_get(k->ours.cluster, &i),
			   "evc_cluster_get");
	}
}

static void
watch(struct crowd *k)
{
	redisContext *c = bench_server_connect(&k->server);
	double server, own, scripts, rate = 0, s;
	uint64_t t0 = bench_now();
	unsigned i;

	until_up(k);
	printf("# %u nodes: all workers are up after %.1f s\n", k->n,
	       (double)(bench_now() - t0) / 1e9);
	bench_sleep(SETTLE_SECONDS);
	scripts = info(c, "commandstats", "cmdstat_evalsha:calls=");
	t0 = bench_now();
	server = bench_cpu_time(k->server.pid);
	own = bench_cpu_time(0);
	bench_sleep(IDLE_SECONDS);
	server = (bench_cpu_time(k->server.pid) - server) * 1e11 /
		 (double)(bench_now() - t0);
	own = (bench_cpu_time(0) - own) * 1e11 / (double)(bench_now() - t0);
	scripts = (info(c, "commandstats", "cmdstat_evalsha:calls=") - scripts) *
		 1e9 / (double)(bench_now() - t0);
	tell(k, "server", server, "%");
	tell(k, "coordinator", own, "%");
	tell(k, "scripts", scripts, "/s");
	tell(k, "server-memory", info(c, "memory", "used_memory_rss:") / 1e6,
	     "MB");
	tell(k, "coordinator-memory", own_megabytes(), "MB");
	if (k->n >= 9000) {
		bench_goal("redis-nodes-server", "idle", server, "%",
			   SERVER_GOAL);
		bench_goal("redis-nodes-coordinator", "idle", own, "%",
			   COORDINATOR_GOAL);
	}
	for (i = 0; i < 3; i++) {
		s = bench_cluster_work(&k->ours, TASKS);
		rate = rate > TASKS / s ? rate : TASKS / s;
	}
	tell(k, "rate", rate, "/s");
	redisFree(c);
}

static bool
run(unsigned n)
{
	struct crowd k = { .n = n };
	unsigned most = raise_files(), i;

	if (n > most) {
		printf("# %u nodes are as many as `ulimit -Hn` allows here: a "
		       "server needs %u descriptors for %u\n",
		       most, 2 * n + SPARE, n);
		k.n = most;
	}
	/* Each number of nodes has the time of a group. */
	alarm(BENCH_SECONDS);
	if (!bench_server_start_for(&k.server, "redis-nodes", 2 * k.n + 20))
		return false;
	begin(&k);
	watch(&k);
	bench_cluster_close(&k.ours);
	for (i = 0; i < k.n_pids; i++)
		bench_node_end(k.pid[i]);
	bench_server_end(&k.server);
	return true;
}

void
bench_redis_nodes(void)
{
	unsigned n;

	for (n = 10; n <= 10000 && run(n); n *= 10)
		;
}

int
bench_redis_nodes_main(int argc, char **argv)
{
	int i;

	for (i = 0; i < argc && run((unsigned)atoi(argv[i])); i++)
		;
	return 0;
}
