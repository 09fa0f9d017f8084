/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wordcount_kill.c - --kill N: kills N of its own workers with SIGKILL, spread
 * over the run, each in the middle of a chunk.  The sums are the same.
 */
#include "wordcount.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
kill_is_due(const struct wordcount *w, size_t chunk)
{
	size_t parts = (size_t)w->o->n_kill + 1, n = w->files.n_chunks;

	/* Not after the last one: nobody would be busy. */
	return chunk * parts / n != (chunk + 1) * parts / n && chunk + 1 < n;
}

/* "pid 123", or "HOST pid 123": 0 for a process of another machine. */
static pid_t
pid_here(const char *where)
{
	const char *pid = strstr(where, "pid ");
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	if (pid == NULL || (pid > where &&
	    ((size_t)(pid - where) != strlen(host) + 1 ||
	     strncmp(where, host, strlen(host)) != 0)))
		return 0;
	return (pid_t)atol(pid + 4);
}

/* The worker that is in its function for the longest time. */
static bool
find_busy(evc_cluster *cluster, evc_cluster_worker_info *ret)
{
	evc_cluster_worker_info i;
	unsigned k;

	ret->busy = -1;
	for (k = 0; evc_cluster_worker_get(cluster, k, &i) == 0; k++)
		if (i.state == EVC_WORKER_UP && i.busy > ret->busy)
			*ret = i;
	return ret->busy >= 0;
}

/* The chunk is done, on the loop; others are being counted. */
static void
kill_one(evc_cluster *cluster, evc_status result, const evc_value *value,
	 void *arg)
{
	struct wordcount *w = arg;
	evc_cluster_worker_info i;
	pid_t pid;

	(void)value;
	if (result != 0 || !find_busy(cluster, &i))
		return;
	pid = pid_here(i.where);
	if (pid > 0 && kill(pid, SIGKILL) == 0)
		say(w, "kill -9 %d, which is %s", (int)pid, i.name);
}

evc_status
kill_after(struct wordcount *w, evc_remote *remote)
{
	evc_value v;
	evc_status st = evc_pack(&v, "r", remote);

	if (st == 0)
		st = evc_fetch_start(w->cluster, &v, kill_one, w);
	evc_value_free(&v);
	return st;
}
