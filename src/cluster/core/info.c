/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers of a cluster and its workers.
 * Called by: the program (evc_cluster_get, evc_cluster_worker_get); turn.c and
 * report.c; engines (counts).
 * Locks: the cluster's lock, taken; held in evc__worker_info.
 */
#include "cluster/core/cluster.h"

#define SECOND UINT64_C(1000000000)
#define PLACES \
	(sizeof((evc_cluster *)0)->count.per_second / \
	 sizeof((evc_cluster *)0)->count.per_second[0])

/* ---- workers ---- */

void
evc__worker_info(const evc_cluster *cl, const struct cluster_worker *w,
		 uint64_t now, evc_cluster_worker_info *ret)
{
	const struct closure *oldest = worker_oldest(w);

	memset(ret, 0, sizeof *ret);
	ret->index = w->index;
	ret->state = worker_told_state(w);
	ret->lives = w->lives;
	ret->n_running = w->n_running + w->n_given_up;
	ret->n_done = w->n_done;
	ret->n_failures = w->n_failures;
	ret->since = (double)(now - w->since_ns) / 1e9;
	ret->busy = evc__building_is_it(w) || oldest != NULL ?
			    (double)(now - w->moved_ns) / 1e9 : -1;
	evc__copy(ret->name, sizeof ret->name, w->name);
	evc__copy(ret->where, sizeof ret->where, w->where);
	evc__copy_ends(ret->text, sizeof ret->text, w->text);
	if (evc__building_is_it(w))
		evc__copy(ret->builds, sizeof ret->builds,
			  evc__building_name(cl, w));
	else if (oldest != NULL)
		evc__copy(ret->function, sizeof ret->function,
			  remote_name(REMOTE_OF(oldest)));
}

evc_status
evc_cluster_worker_get(const evc_cluster *cluster, unsigned index,
		       evc_cluster_worker_info *ret_info)
{
	evc_cluster *cl = (evc_cluster *)cluster;
	evc_status st = evc__cluster_check(cl);

	if (st < 0)
		return st;
	sync_lock(&cl->q.lock);
	if (index < cl->workers.n && ret_info != NULL)
		evc__worker_info(cl, cl->workers.all[index], sync_mono(),
				 ret_info);
	else if (index >= cl->workers.n)
		st = evc_refuse(-EVC_NOT_FOUND, "there are %u workers",
				cl->workers.n);
	sync_unlock(&cl->q.lock);
	return st;
}

size_t
evc_cluster_worker_text(const evc_cluster *cluster, unsigned index, char *buf,
			size_t n)
{
	struct text t = evc__text_in(buf, buf != NULL ? n : 0);
	evc_cluster *cl = (evc_cluster *)cluster;

	if (evc__cluster_check(cl) < 0)
		return 0;
	sync_lock(&cl->q.lock);
	if (index < cl->workers.n && cl->workers.all[index]->text != NULL)
		evc__text_add(&t, cl->workers.all[index]->text);
	sync_unlock(&cl->q.lock);
	return t.len;
}

/* ---- the cluster ---- */

/* Lock held: functions done per second, in the seconds of the ring or since the
   open. */
static double
done_per_second(const evc_cluster *cl, uint64_t now)
{
	uint64_t second = now / SECOND, s, from, n = 0, begin;

	from = second >= PLACES - 1 ? second - (PLACES - 1) : 0;
	begin = from * SECOND > cl->born_ns ? from * SECOND : cl->born_ns;
	/* A second without a count is not in the ring. */
	for (s = from; s <= second && s <= cl->count.second; s++)
		n += cl->count.per_second[s % PLACES];
	return now > begin ? (double)n * 1e9 / (double)(now - begin) : 0;
}

void
evc__sink_counts(void *core, uint64_t *ret_queued, uint64_t *ret_running,
		 uint64_t *ret_done)
{
	evc_cluster *cl = core;

	sync_lock(&cl->q.lock);
	*ret_queued = cl->q.n_held + cl->q.n_queued;
	*ret_running = cl->q.n_taken;
	*ret_done = cl->count.done + cl->count.failed + cl->count.cancelled;
	sync_unlock(&cl->q.lock);
}

evc_status
evc_cluster_get(const evc_cluster *cluster, evc_cluster_info *ret_info)
{
	evc_cluster *cl = (evc_cluster *)cluster;
	evc_status st = evc__cluster_check(cl);
	evc_cluster_info *i = ret_info;
	uint64_t now;

	if (st == 0 && i == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_cluster_get: ret_info is NULL");
	if (st < 0)
		return st;
	memset(i, 0, sizeof *i);
	evc__copy(i->engine, sizeof i->engine, cl->engine.ops->scheme);
	sync_lock(&cl->q.lock);
	now = sync_mono();
	i->n_workers = evc__workers_count(&cl->workers);
	i->n_wanted = cl->workers.n_wanted;
	i->n_up = cl->workers.n_up;
	i->n_queued = cl->q.n_held + cl->q.n_queued;
	i->n_running = cl->q.n_taken;
	i->n_scheduled = cl->count.scheduled;
	i->n_done = cl->count.done;
	i->n_failed = cl->count.failed;
	i->n_cancelled = cl->count.cancelled;
	i->n_executions = cl->count.executions;
	i->n_late = cl->count.late;
	i->n_lost = cl->count.lost;
	i->n_retries = cl->count.retries;
	i->n_conflicts = cl->count.conflicts;
	i->n_fetches = sync_load_relaxed(&cl->remotes.n_fetched);
	i->n_builds = cl->count.builds;
	i->build_time = cl->count.build_time;
	i->run_time = cl->count.run_time;
	i->rate = done_per_second(cl, now);
	i->n_unsaved = cl->checkpoint.n_failed;
	i->unsaved = evc__checkpoint_unsaved(cl, now);
	i->n_worker_failures = cl->count.worker_failures;
	/* The engine has read the clock perhaps later than this call. */
	if (cl->engine.away_ns != 0)
		i->server_away = now > cl->engine.away_ns ?
			(double)(now - cl->engine.away_ns) / 1e9 : 1e-9;
	i->age = (double)(now - cl->born_ns) / 1e9;
	sync_unlock(&cl->q.lock);
	return 0;
}
