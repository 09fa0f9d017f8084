/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wordcount_kill.c - --kill N: kills N of its own workers with SIGKILL, spread
 * over the run, each in the middle of a chunk.  The sums are the same.
 */
#include "wordcount.h"

#include <signal.h>
#include <stdio.h>

bool
kill_is_due(const struct wordcount *w, size_t chunk)
{
	size_t parts = (size_t)w->o->n_kill + 1, n = w->files.n_chunks;

	/* Not after the last one: nobody would be busy. */
	return chunk * parts / n != (chunk + 1) * parts / n && chunk + 1 < n;
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
	int pid;

	(void)value;
	if (result != 0 || !find_busy(cluster, &i) ||
	    sscanf(i.where, "pid %d", &pid) != 1 || kill(pid, SIGKILL) < 0)
		return;
	say(w, "kill -9 %d, which is %s", pid, i.name);
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
