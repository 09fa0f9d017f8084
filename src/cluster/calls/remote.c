/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's calls for remotes: a look, a cancel.
 * Called by: the program (evc_remote_get, evc_remote_cancel).
 * Locks: the cluster's lock, taken.
 */
#include "cluster/core/cluster.h"

static unsigned
remote_state(const evc_remote *r)
{
	if (sync_load(&r->done))
		return EVC_REMOTE_DONE;
	switch (r->closure.where) {
	case CLOSURE_HELD:
		return EVC_REMOTE_WAITING;
	case CLOSURE_TAKEN:
		return EVC_REMOTE_RUNNING;
	default:
		return EVC_REMOTE_QUEUED;
	}
}

evc_status
evc_remote_get(const evc_remote *r, evc_remote_info *ret_info)
{
	evc_cluster *cl;
	evc_status st;

	if (r == NULL || ret_info == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_remote_get: %s is NULL",
				  r == NULL ? "remote" : "ret_info");
	cl = r->cl;
	/* In a fork child the lock may be held for ever. */
	st = evc__cluster_check(cl);
	if (st < 0)
		return st;
	memset(ret_info, 0, sizeof *ret_info);
	sync_lock(&cl->q.lock);
	ret_info->id = r->id;
	ret_info->state = remote_state(r);
	ret_info->attempts = r->attempts;
	ret_info->deaths = r->deaths;
	evc__copy(ret_info->function, sizeof ret_info->function,
		  remote_name(r));
	if (r->worker != TAG_ANY)
		evc__copy(ret_info->worker, sizeof ret_info->worker,
			  cl->workers.all[r->worker]->name);
	if (ret_info->state == EVC_REMOTE_DONE) {
		ret_info->kind = r->kind;
		ret_info->code = r->code;
		ret_info->took = (double)(r->done_ns - r->queued_ns) / 1e9;
		evc__copy_ends(ret_info->text, sizeof ret_info->text, r->text);
	}
	sync_unlock(&cl->q.lock);
	return 0;
}

size_t
evc_remote_text(const evc_remote *remote, char *buf, size_t n)
{
	struct text t = evc__text_in(buf, buf != NULL ? n : 0);
	evc_remote *r = (evc_remote *)remote;

	/* In a fork child the lock may be held for ever. */
	if (r == NULL || evc__cluster_check(r->cl) < 0)
		return 0;
	sync_lock(&r->cl->q.lock);
	if (remote_state(r) == EVC_REMOTE_DONE && r->text != NULL)
		evc__text_add(&t, r->text);
	sync_unlock(&r->cl->q.lock);
	return t.len;
}

evc_status
evc_remote_cancel(evc_remote *r)
{
	struct outcome o = { .code = EVC_CANCELLED,
			     .kind = EVC_FAILED_CANCEL,
			     .text = "it was cancelled" };
	evc_cluster *cl;
	evc_status st;

	if (r == NULL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_remote_cancel: remote is NULL");
	cl = r->cl;
	st = evc__cluster_check(cl);
	if (st < 0)
		return st;
	sync_lock(&cl->q.lock);
	if (sync_load(&r->done)) {
		st = evc_refuse(-EVC_NOT_FOUND, "it has its outcome already");
	} else if (r->closure.where != CLOSURE_TAKEN) {
		evc__closures_out(&cl->q, &r->closure);
		evc__remote_settle(r, &o);
		evc__tell(cl);
	} else if (!(r->flags & REMOTE_ASKED)) {
		r->flags |= REMOTE_ASKED;
		cl->stop.any_asked = true;
		r->done_ns = sync_mono();
		if (cl->engine.at != NULL)
			cl->engine.ops->cancel_one(cl->engine.at, r->worker,
					    r->closure.n);
		/* The loop looks at the end of the grace. */
		evc__turn_ask(cl);
	}
	evc__cluster_unlock(cl);
	return st;
}
