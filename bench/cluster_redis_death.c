/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster over Redis when things happen, and when nothing does.
 *
 *	redis-death  kill -9 of a worker and of a whole node that are in a
 *	             function, until that has run again elsewhere
 *	redis-idle   what 200 workers cost the server that have nothing to
 *	             do: of one node, and of a node each
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cluster_redis.h"

#define DEATHS 21
#define IDLE 200
#define IDLE_SECONDS 5.

/* ---- deaths ---- */

struct pair {
	struct bench_server server;
	struct bench_cluster ours;
	pid_t node[2]; /* a worker each */
};

/* The worker that is in the function. */
static pid_t
busy_worker(const struct pair *p)
{
	evc_cluster_worker_info w;
	unsigned i;

	for (;;) {
		for (i = 0; evc_cluster_worker_get(p->ours.cluster, i,
						   &w) == 0; i++) {
			if (w.state == EVC_WORKER_UP && w.n_running > 0)
				return bench_cluster_pid(&w);
		}
		bench_sleep(0.001);
	}
}

/* Which node has started it. */
static unsigned
node_of(const struct pair *p, pid_t worker)
{
	char path[64], line[128];
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)worker);
	f = fopen(path, "r");
	if (!f)
		bench_must_sys(errno, path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	fclose(f);
	if (parent == p->node[0])
		return 0;
	if (parent != p->node[1])
		bench_must_sys(ECHILD, "the node of a worker");
	return 1;
}

static double
die(struct pair *p, bool whole_node)
{
	const evc_schedule_opts opts = { .deaths = 255 };
	evc_remote *remote;
	pid_t worker;
	uint64_t t0;
	unsigned i;
	evc_status st;

	bench_cluster_until_up(&p->ours, 2);
	st = evc_schedule(p->ours.cluster, HANG, NULL, NULL, &opts, &remote);
	bench_must(st > 0 ? -st : st, "evc_schedule");
	worker = busy_worker(p);
	bench_sleep(0.05); /* it has begun there */
	i = node_of(p, worker);
	t0 = bench_now();
	if (kill(whole_node ? p->node[i] : worker, SIGKILL) != 0)
		bench_must_sys(errno, "kill");
	st = evc_remote_fetch(remote, 30, NULL);
	t0 = bench_now() - t0;
	bench_must(st > 0 ? -st : st, "evc_remote_fetch");
	evc_remote_free(remote);
	if (whole_node) {
		waitpid(p->node[i], NULL, 0);
		p->node[i] = bench_node_start(&p->server, "death", 1);
	}
	return (double)t0 / 1e6;
}

static double
kill_worker(void *arg)
{
	return die(arg, false);
}

static double
kill_node(void *arg)
{
	return die(arg, true);
}

static void
deaths(struct pair *p, const char *metric, double (*sample)(void *arg))
{
	const struct bench_side side = { BENCH_OURS, sample, p, 0 };
	struct bench_stats st;

	bench_compare(metric, "ms", &side, 1, DEATHS, 1, &st);
	bench_goal(metric, "p50", st.p50, "ms", 150);
}

void
bench_redis_death(void)
{
	struct pair p;
	unsigned i;

	if (!bench_server_start(&p.server, "redis-death"))
		return;
	for (i = 0; i < 2; i++)
		p.node[i] = bench_node_start(&p.server, "death", 1);
	bench_server_open(&p.server, "death", &p.ours, NULL);
	deaths(&p, "redis-death-worker", kill_worker);
	deaths(&p, "redis-death-node", kill_node);
	bench_cluster_close(&p.ours);
	for (i = 0; i < 2; i++)
		bench_node_end(p.node[i]);
	bench_server_end(&p.server);
}

/* ---- nothing ---- */

static void
idle(const char *metric, unsigned n_nodes)
{
	struct bench_server s;
	struct bench_cluster b;
	pid_t node[IDLE];
	uint64_t t0 = bench_now();
	double used, here, nodes = 0;
	unsigned i;

	if (!bench_server_start(&s, metric))
		return;
	bench_server_open(&s, "idle", &b, NULL);
	for (i = 0; i < n_nodes; i++)
		node[i] = bench_node_start(&s, "idle", IDLE / n_nodes);
	bench_cluster_until_up(&b, IDLE);
	printf("# %s: all workers are up after %.2f s\n", metric,
	       (double)(bench_now() - t0) / 1e9);
	/* Each of them has done something once. */
	(void)bench_cluster_work(&b, 10 * IDLE);
	bench_sleep(1);
	used = -bench_cpu_time(s.pid);
	here = -bench_cpu_time(0);
	for (i = 0; i < n_nodes; i++)
		nodes -= bench_cpu_time(node[i]);
	bench_sleep(IDLE_SECONDS);
	used += bench_cpu_time(s.pid);
	here += bench_cpu_time(0);
	for (i = 0; i < n_nodes; i++)
		nodes += bench_cpu_time(node[i]);
	bench_count(metric, BENCH_OURS "/coordinator",
		    here / IDLE_SECONDS * 100, "%-of-a-cpu");
	bench_count(metric, BENCH_OURS "/nodes", nodes / IDLE_SECONDS * 100,
		    "%-of-a-cpu");
	bench_goal(metric, "server", used / IDLE_SECONDS * 100, "%-of-a-cpu",
		   5);
	bench_cluster_close(&b);
	for (i = 0; i < n_nodes; i++)
		bench_node_end(node[i]);
	bench_server_end(&s);
}

void
bench_redis_idle(void)
{
	struct rlimit files;

	/* Some for each worker. */
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		bench_must_sys(errno, "getrlimit");
	files.rlim_cur = files.rlim_max < 16 * IDLE ? files.rlim_max :
						      16 * IDLE;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		bench_must_sys(errno, "setrlimit");
	idle("redis-idle-200-of-one-node", 1);
	idle("redis-idle-200-nodes", IDLE);
}
