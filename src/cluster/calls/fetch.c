/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetches that wait, for one remote or for all remotes in a value.  Remotes are
 * waited for in the order of the value.  The first failure in this order
 * decides, and later remotes are not waited for.
 * Called by: the program (evc_remote_fetch, evc_fetch).
 * Locks: the cluster's lock, for texts and references; remote.done and
 * .sleepers are atomic.
 */
#include "cluster/core/fetch.h"

#include <math.h>

/* ---- one remote ---- */

/* false: the time is over, or that of the stop. */
static bool
await_done(evc_remote *r, uint64_t until)
{
	evc_cluster *cl = r->cl;
	uint64_t look, left = 1;

	/* The count comes first, then the look.  The settling thread stores
	   `done`, then looks for sleepers. */
	sync_add(&r->sleepers, 1);
	while (sync_load_sc(&r->done) == 0 && left > 0) {
		look = evc__deadline_look(until, evc__cluster_left(cl));
		left = evc__deadline_left_ns(look);
		if (left > 0)
			sync_futex_wait(&r->done, 0, left);
	}
	sync_sub(&r->sleepers, 1);
	return left > 0;
}

/* The reason of the wait: the function's worker, or the whole cluster. */
static evc_status
refuse_late(const evc_remote *r)
{
	evc_cluster *cl = r->cl;
	uint64_t now = sync_mono();
	char buf[DESCRIBE_SIZE];
	struct text t = evc__text_in(buf, sizeof buf);

	evc__text_fmt(&t, "%s has no outcome yet; ", remote_name(r));
	sync_lock(&cl->q.lock);
	if (r->closure.where == CLOSURE_TAKEN)
		evc__worker_describe(cl, cl->workers.all[r->worker], now, &t);
	else
		evc__cluster_describe(cl, now, &t);
	sync_unlock(&cl->q.lock);
	return evc_refuse(-EVC_DEADLINE_EXCEEDED, "%s", buf);
}

/* 0, or refused: this thread may not sleep until the cluster has done
   something. */
static evc_status
check_thread(const evc_cluster *cl, const char *instead)
{
	evc_status st = evc__cluster_check(cl);

	if (st == 0 && evc__cluster_on_loop(cl))
		st = evc_refuse(-EVC_FAILED_PRECONDITION,
				"this is the thread of the cluster's loop; %s"
				" is for that",
				instead);
	return st;
}

evc_status
evc_remote_fetch(evc_remote *r, double timeout, evc_value *ret_value)
{
	evc_status st;

	if (r == NULL || isnan(timeout))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_remote_fetch: %s",
				  r == NULL ? "remote is NULL" :
					      "timeout is no number");
	if (sync_load(&r->done) == 0) {
		st = check_thread(r->cl, "evc_fetch_start");
		if (st < 0)
			return st;
		if (!await_done(r, evc__deadline_in(timeout)))
			return refuse_late(r);
	}
	return evc__remote_outcome(r, ret_value);
}

/* ---- what stands in a value ---- */

static evc_status
await_all(const struct fetched *f, double timeout)
{
	uint64_t until = 0;
	evc_status st;
	size_t i;

	for (i = 0; i < f->n; i++) {
		evc_remote *r = f->remotes[i];

		if (sync_load(&r->done) == 0) {
			st = until == 0 ? check_thread(r->cl,
						       "evc_fetch_start") :
					  0;
			if (st < 0)
				return st;
			if (until == 0)
				until = evc__deadline_in(timeout);
			if (!await_done(r, until))
				return refuse_late(r);
		}
		if (r->code != 0)
			break;
	}
	return 0;
}

evc_status
evc_fetch(evc_cluster *cl, const evc_value *value, double timeout,
	  evc_value *ret_value)
{
	evc_status st = evc__cluster_check(cl);
	struct fetched f;

	if (st < 0)
		return st;
	if (ret_value == NULL || isnan(timeout))
		return evc_refuse(-EVC_INVALID_ARGUMENT, "evc_fetch: %s",
				  ret_value == NULL ? "ret_value is NULL" :
						      "timeout is no number");
	st = evc__fetched_find(cl, value, &f);
	if (st < 0)
		return st;
	st = await_all(&f, timeout);
	if (st == 0)
		st = evc__fetched_take(&f, value, ret_value);
	evc__fetched_drop(cl, &f);
	return st;
}
