/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outcomes: a remote gets its outcome, and all that wait for it hear so:
 * threads, fetches, and functions with the remote among their arguments, which
 * may get an outcome by this.
 * Called by: sink.c, workers.c, timeouts.c and turn.c; cluster/calls;
 * closures.c by `cancelled`.
 * Locks: the cluster's lock, held; remote.done and .sleepers are atomic.
 */
#include "cluster/core/cluster.h"

#include "base/backoff.h"
#include "cluster/core/retry.h"

void
evc__remote_reason(const evc_remote *r, const struct outcome *o,
		   evc_reason *ret)
{
	const evc_cluster *cl = r->cl;

	memset(ret, 0, sizeof *ret);
	ret->code = o->code;
	ret->kind = EVC_BY_ERROR;
	ret->mono_ns = sync_mono();
	ret->real_ns = sync_real();
	ret->by = r->id;
	if (r->worker != TAG_ANY)
		evc__copy(ret->who, sizeof ret->who,
			  cl->workers.all[r->worker]->name);
	evc__copy(ret->func, sizeof ret->func,
		  remote_name(r));
	evc__copy_ends(ret->text, sizeof ret->text, o->text);
}

bool
evc__value_hold(const evc_engine_result *res, struct held_value *ret)
{
	const evc_value *v = &res->value;
	size_t at;

	*ret = (struct held_value){ { NULL, 0 }, 0 };
	if (res->memory == NULL)
		return v->size == 0 || evc_value_copy(&ret->value, v) == 0;
	if (evc_value_check(v) < 0)
		return false;
	at = v->size > 0 ? (size_t)((const char *)v->data -
				    (const char *)res->memory) : 0;
	if (v->size > 0 && at <= UINT32_MAX) {
		*ret = (struct held_value){ *v, (uint32_t)at };
		return true;
	}
	if (v->size > 0 && evc_value_copy(&ret->value, v) < 0)
		return false;
	sync_free(res->memory);
	return true;
}

/* The function that has failed keeps its text whole; many others may fail by
   it.  Without memory the code has to say it all. */
static char *
text_of(const struct outcome *o)
{
	bool own = o->kind == EVC_FAILED_FUNCTION ||
		   o->kind == EVC_FAILED_WORKER || o->kind == EVC_FAILED_LOST;

	return evc__text_kept(o->text, own ? DEATH_SIZE : TEXT_SIZE);
}

static void
count_outcome(evc_cluster *cl, const struct outcome *o)
{
	if (o->code == 0)
		cl->count.done++;
	else if (o->kind == EVC_FAILED_CANCEL || o->kind == EVC_FAILED_CLUSTER)
		cl->count.cancelled++;
	else
		cl->count.failed++;
	if (o->kind == EVC_FAILED_CANCEL && cl->stop.begun)
		cl->stop.lost = true;
}

void
evc__remote_let_go(evc_remote *r)
{
	struct remote_more *m = r->more;
	unsigned i;

	if (m == NULL)
		return;
	for (i = 0; i < m->n_inputs; i++)
		evc__remote_drop(m->inputs[i]);
	for (i = 0; i < m->n_uses; i++)
		evc__per_worker_unref(m->uses[i]);
	m->n_inputs = m->n_uses = 0;
}

void
evc__remote_fill(struct remote_more *m)
{
	unsigned i;

	for (i = 0; i < m->n_inputs; i++) {
		m->values[i].id = m->inputs[i]->id;
		m->values[i].value = m->inputs[i]->value;
	}
}

void
evc__remote_queued(evc_remote *r)
{
	evc__names_note(r->cl, r);
	evc__wake(r->cl, r->closure.tag == TAG_ANY ? EVC_ENGINE_ANY :
						     (int)r->closure.tag);
}

/* All inputs have come: the function may run. */
static void
release_dependent(evc_remote *r)
{
	sync_free(r->more->own);
	r->more->own = NULL;
	evc__remote_fill(r->more);
	evc__closures_release(&r->cl->q, &r->closure);
	evc__remote_queued(r);
}

/* Failures to pass on: a list by evc_remote.more_garbage, which a remote of the
   cluster does not use otherwise. */
struct chain {
	evc_remote *first;
};

/* A function for this worker alone has its outcome. */
static void
note_own_end(evc_cluster *cl, struct cluster_worker *w)
{
	if (--w->n_own == 0 && w->leaves)
		evc__wake(cl, (int)w->index);
}

/* A function that was cancelled, or has failed, waits for nothing. */
static void
drop_edges(evc_remote *r)
{
	struct remote_more *m = r->more;
	unsigned i;

	if (m == NULL || m->own == NULL)
		return;
	for (i = 0; i < m->n_own; i++) {
		if (m->own[i].at == NULL)
			continue;
		evc__edge_remove(&m->own[i]);
		evc__remote_drop(r);
	}
	sync_free(m->own);
	m->own = NULL;
}

static void
settle_one(evc_remote *r, const struct outcome *o, struct chain *chain)
{
	evc_cluster *cl = r->cl;

	r->code = (uint8_t)o->code;
	r->kind = (uint8_t)o->kind;
	r->value = o->value.value;
	r->value_at = o->value.at;
	r->text = text_of(o);
	r->done_ns = o->now_ns != 0 ? o->now_ns : sync_mono();
	drop_edges(r);
	count_outcome(cl, o);
	if (r->closure.tag != TAG_ANY)
		note_own_end(cl, cl->workers.all[r->closure.tag]);
	/* A sleeper counts itself, then looks at `done`; here `done` comes
	   first, then the count.  Both are sequentially consistent, so at least
	   one side sees the other. */
	sync_store_sc(&r->done, 1);
	if (sync_load_sc(&r->sleepers) > 0)
		sync_futex_wake(&r->done);
	r->more_garbage = chain->first;
	chain->first = r;
}

struct outcome
evc__remote_passes(const evc_remote *r)
{
	bool cancelled = r->kind == EVC_FAILED_CANCEL ||
			 r->kind == EVC_FAILED_CLUSTER;

	return (struct outcome){ .code = r->code,
				 .kind = cancelled ? r->kind :
						     EVC_FAILED_REMOTE,
				 .text = r->text,
				 .raise = !cancelled };
}

/* d has the settled r among its arguments. */
static void
pass_to_dependent(evc_remote *r, evc_remote *d, bool raise, struct chain *chain)
{
	struct outcome o;
	evc_reason reason;

	if (d->closure.where != CLOSURE_HELD)
		return;
	if (r->code == 0) {
		if (--d->more->n_missing == 0)
			release_dependent(d);
		return;
	}
	o = evc__remote_passes(r);
	evc__closures_out(&r->cl->q, &d->closure);
	if (raise) {
		evc__remote_reason(d, &o, &reason);
		evc__closures_note(&r->cl->q, &reason);
	}
	settle_one(d, &o, chain);
}

void
evc__remote_settle(evc_remote *r, const struct outcome *o)
{
	struct chain chain = { NULL };
	struct cluster_fetch *f;
	struct cluster_edge *e;
	evc_remote *d;

	settle_one(r, o, &chain);
	while ((r = chain.first) != NULL) {
		chain.first = r->more_garbage;
		while ((e = r->edges) != NULL) {
			f = e->fetches;
			d = e->waits;
			evc__edge_remove(e);
			if (f != NULL) {
				evc__fetch_tell(f);
			} else {
				pass_to_dependent(r, d, o->raise, &chain);
				evc__remote_drop(d);
			}
		}
		if (!(r->flags & REMOTE_LEFT))
			evc__remote_let_go(r);
		/* The reference of the cluster. */
		evc__remote_drop(r);
	}
}

void
evc__waiting_fails(evc_remote *r, const struct outcome *o)
{
	evc_reason reason;

	evc__remote_reason(r, o, &reason);
	evc__closures_out(&r->cl->q, &r->closure);
	evc__closures_note(&r->cl->q, &reason);
	evc__remote_settle(r, o);
}

void
evc__taken_fails(evc_remote *r, const struct outcome *o)
{
	evc_cluster *cl = r->cl;
	evc_reason reason;

	if (o->raise) {
		evc__remote_reason(r, o, &reason);
		evc__closures_note(&cl->q, &reason);
		evc__stop_running(cl);
	}
	/* First the functions that depend on r, then the cancels. */
	sync_add(&r->refs, 1);
	evc__remote_settle(r, o);
	evc__closures_finish(&cl->q, &r->closure);
	evc__remote_drop(r);
}

void
evc__closure_cancelled(struct closures *q, struct closure *c)
{
	struct outcome o = { .code = EVC_CANCELLED, .kind = EVC_FAILED_CANCEL };
	evc_cluster *cl = LIST_OF(q, evc_cluster, q);
	const char *why = cl->engine.down[0] != '\0' ? cl->engine.down :
						       cl->engine.trouble;
	char text[TEXT_SIZE];
	struct text t = evc__text_in(text, sizeof text);

	if (cl->stop.begun) {
		o.text = "the cluster was stopped";
	} else if (cl->workers.unavailable) {
		o.kind = EVC_FAILED_CLUSTER;
		evc__text_fmt(&t, "there is no worker: reschedule%s%s",
			      why[0] != '\0' ? "; " : "", why);
		o.text = text;
	} else {
		o.text = "another function has failed: reschedule";
	}
	evc__remote_settle(REMOTE_OF(c), &o);
}

/* ---- attempts ---- */

/* The attempt has failed: a retry may follow.  Until then the function has not
   failed; so after the error of another function, or the stop, the function is
   cancelled, as during the pause before a retry. */
static bool
tries_again(evc_cluster *cl, evc_remote *r, evc_status code, uint64_t now)
{
	uint64_t wait;

	if (r->more == NULL || (r->flags & REMOTE_ASKED) ||
	    !evc__retry_next(&r->more->retry, r->more->retries, code,
			     evc__backoff_random(now ^ r->id), &wait))
		return false;
	if (cl->q.failed || cl->q.stopped) {
		evc__closures_finish(&cl->q, &r->closure);
		evc__closure_cancelled(&cl->q, &r->closure);
		return true;
	}
	r->more->retries++;
	r->more->due_ns = evc__after(now, wait);
	cl->count.retries++;
	evc__closures_back(&cl->q, &r->closure, CLOSURE_HELD);
	evc__turn_ask(cl);
	return true;
}

/* Why a function was asked to stop. */
static const char *
why_asked(const evc_cluster *cl, const evc_remote *r)
{
	if (r->flags & REMOTE_ASKED)
		return "it was asked to stop, by evc_remote_cancel";
	if (cluster_is_stopped(cl))
		return "it was asked to stop, as the cluster was";
	return "it was asked to stop, because another function has failed: "
	       "reschedule";
}

void
evc__attempt_fails(evc_cluster *cl, evc_remote *r, evc_status code,
		   unsigned kind, const char *text, bool asked, uint64_t now)
{
	struct outcome o = { .code = code, .kind = kind, .text = text };

	if (tries_again(cl, r, code, now))
		return;
	/* A function that was asked to stop and says CANCELLED has obeyed. */
	if (asked && code == EVC_CANCELLED) {
		o.kind = EVC_FAILED_CANCEL;
		if (text == NULL || text[0] == '\0')
			o.text = why_asked(cl, r);
		if (cluster_is_stopped(cl))
			cl->stop.lost = true;
	} else {
		o.raise = !(r->flags & REMOTE_ASKED);
	}
	evc__taken_fails(r, &o);
}
