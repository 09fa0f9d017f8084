/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first half of a call that schedules: checks of the arguments and options,
 * and a remote with copies of them.
 * Called by: schedule.c.
 * Locks: none.
 */
#include "cluster/calls/request.h"

#include <math.h>

#include "cluster/core/retry.h"

/* ---- checks without the lock ---- */

static evc_status
take_value(struct request *q, const evc_value *v, unsigned type,
	   const char *what, evc_value *ret)
{
	evc_status st;
	unsigned is;

	if (v == NULL || v->size == 0)
		return 0;
	st = evc__refs_add(&q->refs, v);
	if (st < 0)
		return st;
	is = evc_value_type(v);
	if (is != type && is != EVC_VALUE_NIL)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "%s has to be %s, or NULL", what,
				  type == EVC_VALUE_ARRAY ? "an array" :
							    "a map");
	*ret = *v;
	return 0;
}

_Static_assert(PRIORITIES / 2 == EVC_PRIORITY_MOST + 1 &&
	       PRIORITIES / 2 == -EVC_PRIORITY_LEAST, "a line for each");

static evc_status
check_schedule_opts(const evc_cluster *cl, const evc_schedule_opts *o)
{
	if (o->priority < EVC_PRIORITY_LEAST || o->priority > EVC_PRIORITY_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "priority %d is not between %d and %d",
				  o->priority, EVC_PRIORITY_LEAST,
				  EVC_PRIORITY_MOST);
	if (!(o->deadline >= 0) || isnan(o->wait))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "deadline and wait are seconds");
	if ((o->flags & ~(unsigned)EVC_TRANSACTIONAL) != 0 ||
	    !RESERVED_IS_ZERO(o->reserved_))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "unknown flags, or reserved room is not zero");
	if (o->deadline > 0 && !(cl->engine.ops->caps & EVC_ENGINE_DEADLINES))
		return evc_refuse(-EVC_UNIMPLEMENTED,
				  "the workers of %s cannot be ended, so no"
				  " deadline can be kept",
				  cl->engine.ops->scheme);
	return evc__retry_check(&o->retry);
}

evc_status
evc__request_check(evc_cluster *cl, struct request *q, const evc_value *args,
		   const evc_value *kwargs, const evc_schedule_opts *opts)
{
	evc_status st = evc__cluster_check(cl);

	if (st < 0)
		return st;
	if (q->call == NULL && (q->name == NULL || q->name[0] == '\0' ||
				strlen(q->name) >= NAME_SIZE))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a function has a name of 1 to %d bytes",
				  NAME_SIZE - 1);
	if (opts != NULL) {
		q->opts = *opts;
		st = check_schedule_opts(cl, opts);
	}
	if (st == 0)
		st = take_value(q, args, EVC_VALUE_ARRAY, "args", &q->args);
	if (st == 0)
		st = take_value(q, kwargs, EVC_VALUE_MAP, "kwargs", &q->kwargs);
	if (st == 0 &&
	    q->args.size + q->kwargs.size > cl->config.max_frame)
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"the arguments of %s are %zu bytes, and "
				"max_frame is %zu",
				q->call != NULL ? "a call" : q->name,
				q->args.size + q->kwargs.size,
				cl->config.max_frame);
	return st;
}

void
evc__request_free(struct request *q)
{
	sync_free(q->refs.at);
}

/* ---- the remote ---- */

/* *ret stays NULL where the function needs none of its fields. false: no
   memory. */
static bool
make_more(const evc_cluster *cl, const struct request *q,
	  struct remote_more **ret)
{
	const evc_backoff *retry = q->opts.retry.times > 0 ? &q->opts.retry :
							     &cl->config.retry;
	struct remote_more *m;
	unsigned n_uses = 0, n_remotes, i;

	if (q->refs.n == 0 && q->call == NULL && !(q->opts.deadline > 0) &&
	    retry->times == 0)
		return true;
	m = sync_alloc(1, sizeof *m);
	if (m == NULL)
		return false;
	m->call = q->call;
	m->call_arg = q->arg;
	m->deadline = q->opts.deadline;
	m->retry = *retry;
	for (i = 0; i < q->refs.n; i++)
		n_uses += q->refs.at[i].per_worker;
	n_remotes = q->refs.n - n_uses;
	if (n_remotes > 0) {
		m->inputs = sync_alloc(n_remotes, sizeof(evc_remote *));
		m->values = sync_alloc(n_remotes, sizeof *m->values);
	}
	if (n_uses > 0)
		m->uses = sync_alloc(n_uses, sizeof(evc_per_worker *));
	if ((n_remotes > 0 && (m->inputs == NULL || m->values == NULL)) ||
	    (n_uses > 0 && m->uses == NULL)) {
		sync_free(m->inputs);
		sync_free(m->values);
		sync_free(m->uses);
		sync_free(m);
		return false;
	}
	*ret = m;
	return true;
}

evc_remote *
evc__request_make(evc_cluster *cl, const struct request *q)
{
	unsigned deaths = q->opts.deaths > 0 ? q->opts.deaths :
					       cl->config.deaths;
	evc_remote *r = sync_alloc_bytes(sizeof *r + q->args.size +
					 q->kwargs.size);

	if (r == NULL)
		return NULL;
	memset(r, 0, sizeof *r);
	if (!make_more(cl, q, &r->more)) {
		sync_free(r);
		return NULL;
	}
	r->closure.tag = TAG_ANY;
	r->closure.priority = (int8_t)q->opts.priority;
	list_init(&r->closure.link);
	r->cl = cl;
	evc__cluster_ref(cl);
	/* A reference of the cluster, and of the program. */
	sync_store_relaxed(&r->refs, 2);
	r->worker = TAG_ANY;
	r->deaths_most = (uint8_t)(deaths < UINT8_MAX ? deaths : UINT8_MAX);
	r->flags = q->opts.flags & EVC_TRANSACTIONAL ? REMOTE_TRANSACTIONAL : 0;
	r->args_size = (uint32_t)q->args.size;
	r->kwargs_size = (uint32_t)q->kwargs.size;
	if (q->args.size > 0)
		memcpy(r->tail, q->args.data, q->args.size);
	if (q->kwargs.size > 0)
		memcpy(r->tail + q->args.size, q->kwargs.data, q->kwargs.size);
	r->queued_ns = sync_mono();
	return r;
}

void
evc__request_unmake(evc_remote *r)
{
	sync_sub(&r->refs, 1);
	evc_remote_free(r);
}
