/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that schedule a function: on any worker, or once on each.
 * Called by: the program (evc_schedule and its kin).
 * Locks: the cluster's lock, taken.
 */
#include "cluster/calls/request.h"

/* ---- the calls ---- */

static evc_status
schedule_one(evc_cluster *cl, struct request *q, const evc_value *args,
	     const evc_value *kwargs, const evc_schedule_opts *opts,
	     evc_remote **ret)
{
	evc_status st = evc__request_check(cl, q, args, kwargs, opts);
	evc_remote *r = NULL;

	if (st == 0 && (r = evc__request_make(cl, q)) == NULL)
		st = evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	if (st == 0) {
		sync_lock(&cl->q.lock);
		st = evc__admit(cl, q, &r, 1, false);
		evc__cluster_unlock(cl);
		if (st != 0)
			evc__request_unmake(r);
		else if (ret != NULL)
			*ret = r;
		else
			evc_remote_free(r);
	}
	evc__request_free(q);
	return st;
}

evc_status
evc_schedule(evc_cluster *cl, const char *function, const evc_value *args,
	     const evc_value *kwargs, const evc_schedule_opts *opts,
	     evc_remote **ret_remote)
{
	struct request q = { .name = function };

	return schedule_one(cl, &q, args, kwargs, opts, ret_remote);
}

evc_status
evc_schedule_pack(evc_cluster *cl, const char *function,
		  const evc_schedule_opts *opts, evc_remote **ret_remote,
		  const char *format, ...)
{
	evc_value args = { NULL, 0 };
	evc_status st;
	va_list ap;

	va_start(ap, format);
	st = evc__pack(&args, &evc__pack_refs, NULL, format, ap);
	va_end(ap);
	if (st < 0)
		return st;
	st = evc_schedule(cl, function, &args, NULL, opts, ret_remote);
	evc_value_free(&args);
	return st;
}

evc_status
evc_schedule_call(evc_cluster *cl, evc_exec_fn *fn, void *arg,
		  const evc_value *args, const evc_value *kwargs,
		  const evc_schedule_opts *opts, evc_remote **ret_remote)
{
	struct request q = { .call = fn, .arg = arg };
	evc_status st = evc__cluster_check(cl);

	if (st < 0)
		return st;
	if (fn == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_schedule_call: fn is NULL");
	if (!(cl->engine.ops->caps & EVC_ENGINE_CALLS))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "the workers of %s share no memory with this"
				  " program: schedule a function of theirs by"
				  " its name",
				  cl->engine.ops->scheme);
	return schedule_one(cl, &q, args, kwargs, opts, ret_remote);
}

/* ---- once on every worker ---- */

static void
free_remotes(evc_remote **r, unsigned n)
{
	while (n > 0)
		evc_remote_free(r[--n]);
}

static evc_status
schedule_all(evc_cluster *cl, struct request *q, evc_remote **r, unsigned n)
{
	evc_status st;
	unsigned i;

	for (i = 0; i < n; i++) {
		r[i] = evc__request_make(cl, q);
		if (r[i] == NULL)
			break;
	}
	st = i < n ? evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory") : 0;
	if (st == 0) {
		sync_lock(&cl->q.lock);
		st = evc__admit(cl, q, r, n, true);
		evc__cluster_unlock(cl);
	}
	if (st != 0)
		while (i > 0)
			evc__request_unmake(r[--i]);
	return st;
}

/* How many there are, if there is room for so many. */
static evc_status
count_workers(evc_cluster *cl, evc_remote *const *room, const unsigned *n,
	      unsigned *ret)
{
	sync_lock(&cl->q.lock);
	*ret = cl->workers.n_wanted;
	sync_unlock(&cl->q.lock);
	if (room != NULL && *n < *ret)
		return evc_refuse(-EVC_OUT_OF_RANGE,
				  "there is room for %u of %u remotes", *n,
				  *ret);
	return 0;
}

/* On so many workers as there are.  -EVC_ABORTED: their number has changed
   meanwhile, and nothing was accepted. */
static evc_status
schedule_each(evc_cluster *cl, struct request *q, evc_remote **ret_remotes,
	      unsigned *n)
{
	unsigned count;
	evc_status st = count_workers(cl, ret_remotes, n, &count);
	evc_remote **r;

	if (st < 0)
		return st;
	r = sync_alloc(count, sizeof(evc_remote *));
	if (r == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	st = schedule_all(cl, q, r, count);
	if (st == 0) {
		if (ret_remotes != NULL)
			memcpy(ret_remotes, r, count * sizeof(evc_remote *));
		else
			free_remotes(r, count);
		if (n != NULL)
			*n = count;
	}
	sync_free(r);
	return st;
}

evc_status
evc_schedule_all(evc_cluster *cl, const char *function, const evc_value *args,
		 const evc_value *kwargs, const evc_schedule_opts *opts,
		 evc_remote **ret_remotes, unsigned *n)
{
	struct request q = { .name = function };
	evc_status st = evc__request_check(cl, &q, args, kwargs, opts);

	if (st == 0 && q.opts.worker != NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_schedule_all: opts->worker is not NULL");
	if (st == 0 && ret_remotes != NULL && n == NULL)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_schedule_all: n is NULL");
	if (st == 0)
		do
			st = schedule_each(cl, &q, ret_remotes, n);
		while (st == -EVC_ABORTED);
	evc__request_free(&q);
	return st;
}
