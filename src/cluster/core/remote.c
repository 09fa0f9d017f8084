/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remotes in the hands of the program: references, a look, a cancel.
 */
#include "cluster/core/cluster.h"

/* Bytes: engines are told of results that they may have kept, at the price of
   the lock. */
#define FORGET_LEAST 1024

/* ---- references ---- */

/* But for its reference of the cluster. */
static void
destroy(evc_remote *r)
{
	evc_value value = r->value;

	evc_value_free(&value);
	sync_free(r->text);
	if (r->more != NULL) {
		sync_free(r->more->inputs);
		sync_free(r->more->values);
		sync_free(r->more->uses);
		sync_free(r->more);
	}
	sync_free(r);
}

/* Lock not held. */
static void
free_garbage(evc_remote *garbage)
{
	evc_cluster *cl;
	evc_remote *next;
	uint32_t n = 0;

	if (garbage == NULL)
		return;
	cl = garbage->cl;
	for (; garbage != NULL; garbage = next, n++) {
		next = garbage->more_garbage;
		destroy(garbage);
	}
	/* Their references at once: this word is everybody's. */
	if (n > 1)
		sync_sub(&cl->refs, n - 1);
	evc__cluster_unref(cl);
}

/* Has a worker perhaps kept its result?  A small one is not worth it. */
static bool
is_kept(const evc_remote *r)
{
	return r->value.size >= FORGET_LEAST && r->cl->ops->forget != NULL;
}

/* Lock held: nobody will have it among its arguments any more. */
static void
forget(evc_remote *r)
{
	evc_cluster *cl = r->cl;

	evc__remote_unname(r);
	if (is_kept(r) && cl->engine != NULL && !cl->left)
		cl->ops->forget(cl->engine, r->id);
}

void
evc__remote_drop(evc_remote *r)
{
	/* Pairs with the free of whoever else had one: what that one has done
	   to it is seen by who destroys it. */
	if (sync_sub(&r->refs, 1) != 1)
		return;
	forget(r);
	r->more_garbage = r->cl->garbage;
	r->cl->garbage = r;
}

void
evc__cluster_unlock(evc_cluster *cl)
{
	evc_remote *garbage = cl->garbage;

	cl->garbage = NULL;
	sync_unlock(&cl->q.lock);
	/* The last of them may take the cluster with it. */
	free_garbage(garbage);
}

bool
evc__remote_hold(evc_remote *r)
{
	uint32_t n = sync_load(&r->refs);

	while (n > 0)
		if (sync_cas(&r->refs, &n, n + 1))
			return true;
	return false;
}

evc_remote *
evc_remote_ref(evc_remote *r)
{
	if (r != NULL)
		sync_add(&r->refs, 1);
	return r;
}

void
evc_remote_free(evc_remote *r)
{
	evc_cluster *cl;

	/* In a fork child the memory is a copy, which nobody needs back. */
	if (r == NULL || cluster_inherited(r->cl) ||
	    sync_sub(&r->refs, 1) != 1)
		return;
	/* The last one; a look-up by id that comes now finds a count of 0 and
	   leaves it alone. */
	cl = r->cl;
	if (sync_load(&r->named) || is_kept(r)) {
		sync_lock(&cl->q.lock);
		forget(r);
		sync_unlock(&cl->q.lock);
	}
	destroy(r);
	evc__cluster_unref(cl);
}

/* ---- a look ---- */

static unsigned
state_of(const evc_remote *r)
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
	ret_info->state = state_of(r);
	ret_info->attempts = r->attempts;
	ret_info->deaths = r->deaths;
	evc__copy(ret_info->function, sizeof ret_info->function,
		  r->function != NULL ? r->function->name : "call");
	if (r->worker != TAG_ANY)
		evc__copy(ret_info->worker, sizeof ret_info->worker,
			  cl->workers[r->worker]->name);
	if (ret_info->state == EVC_REMOTE_DONE) {
		ret_info->kind = r->kind;
		ret_info->code = r->code;
		ret_info->took = (double)(r->done_ns - r->queued_ns) / 1e9;
		evc__copy(ret_info->text, sizeof ret_info->text, r->text);
	}
	sync_unlock(&cl->q.lock);
	return 0;
}

void
evc__remote_count_fetch(evc_remote *r)
{
	if (sync_xchg(&r->fetched, 1) == 0)
		sync_add(&r->cl->n_fetches, 1);
}

/* ---- cancel ---- */

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
		r->done_ns = sync_mono();
		if (cl->engine != NULL)
			cl->ops->cancel_one(cl->engine, r->worker,
					    r->closure.n);
		/* For the end of its grace. */
		evc__turn_ask(cl);
	}
	evc__cluster_unlock(cl);
	return st;
}
