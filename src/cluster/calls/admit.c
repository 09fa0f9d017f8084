/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a checked call to a place in the queue: the names and references of the
 * call are looked up, and kept until the outcome.
 * Called by: schedule.c.
 * Locks: the cluster's lock, held by the caller and given up during waits.
 */
#include "cluster/calls/request.h"

#include "cluster/worker/worker.h"

/* ---- what its arguments name ---- */

static evc_status
take_ref(evc_cluster *cl, const struct walk_ref *ref, struct remote_more *m)
{
	evc_per_worker *p;
	evc_remote *in;

	if (ref->serial != cl->serial)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "a %s of another cluster stands among the"
				  " arguments",
				  ref->per_worker ? "per-worker value" :
						    "remote");
	if (ref->per_worker) {
		p = evc__per_worker_find(cl, ref->id);
		if (p != NULL) {
			evc__per_worker_ref(p);
			m->uses[m->n_uses++] = p;
			return 0;
		}
	} else {
		in = evc__remote_find(cl, ref->id);
		if (in != NULL && (in->flags & REMOTE_SEEN))
			return 0;
		if (in != NULL && evc__remote_hold(in)) {
			in->flags |= REMOTE_SEEN;
			m->inputs[m->n_inputs++] = in;
			return 0;
		}
	}
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "a %s among the arguments is not there any more",
			  ref->per_worker ? "per-worker value" : "remote");
}

/* Each input once, in the order of the arguments. */
static evc_status
take_refs(evc_cluster *cl, const struct ref_list *refs, struct remote_more *m)
{
	evc_status st = 0;
	unsigned i;

	for (i = 0; st == 0 && i < refs->n; i++)
		st = take_ref(cl, &refs->at[i], m);
	for (i = 0; m != NULL && i < m->n_inputs; i++)
		m->inputs[i]->flags &= (uint8_t)~REMOTE_SEEN;
	return st;
}

/* Edges for inputs without an outcome.  They are made first, because an
   accepted function cannot be taken back. */
static bool
make_edges(evc_remote *r)
{
	struct remote_more *m = r->more;
	unsigned i;

	for (i = 0; m != NULL && i < m->n_inputs; i++)
		m->n_missing += sync_load(&m->inputs[i]->done) == 0;
	if (m == NULL || m->n_missing == 0)
		return true;
	m->own = sync_alloc(m->n_missing, sizeof *m->own);
	return m->own != NULL;
}

static void
add_edges(evc_remote *r)
{
	struct remote_more *m = r->more;
	unsigned i;

	for (i = 0; i < m->n_inputs; i++) {
		if (sync_load(&m->inputs[i]->done))
			continue;
		m->own[m->n_own].waits = r;
		sync_add(&r->refs, 1);
		evc__edge_add(m->inputs[i], &m->own[m->n_own++]);
	}
}

/* ---- in ---- */

/* The first input that has failed; NULL: none. */
static evc_remote *
failed_input(const evc_remote *r)
{
	unsigned i;

	for (i = 0; r->more != NULL && i < r->more->n_inputs; i++)
		if (sync_load(&r->more->inputs[i]->done) &&
		    r->more->inputs[i]->code != 0)
			return r->more->inputs[i];
	return NULL;
}

static void
fail_by_input(evc_remote *r, const evc_remote *in)
{
	struct outcome o = evc__remote_passes(in);
	evc_cluster *cl = r->cl;
	evc_reason reason;

	if (o.raise) {
		evc__remote_reason(r, &o, &reason);
		evc__closures_note(&cl->q, &reason);
		evc__end_all(cl);
	}
	evc__remote_settle(r, &o);
}

static void
admit_remote(evc_cluster *cl, evc_remote *r)
{
	const evc_remote *in = failed_input(r);

	r->id = ++cl->remotes.last_id;
	cl->count.scheduled++;
	if (r->closure.tag != TAG_ANY)
		cl->workers.all[r->closure.tag]->n_own++;
	if (in != NULL) {
		fail_by_input(r, in);
		/* After the error there may be nothing to wait for. */
		evc__tell(cl);
		return;
	}
	if (r->more != NULL && r->more->n_missing > 0) {
		add_edges(r);
		evc__closures_put(&cl->q, &r->closure, true);
		return;
	}
	if (r->more != NULL)
		evc__remote_fill(r->more);
	/* The first function that waits has its whole time. */
	if (cl->q.n_held + cl->q.n_queued == 0)
		cl->workers.alone_ns = 0;
	evc__closures_put(&cl->q, &r->closure, false);
	if ((cl->workers.n_up == 0 && cl->workers.alone_ns == 0) ||
	    (r->closure.tag != TAG_ANY &&
	     cl->workers.all[r->closure.tag]->state != EVC_WORKER_UP))
		evc__turn_ask(cl);
	evc__remote_queued(r);
}

/* Wait for n places. 0; > 0: an error was raised; < 0: refused. */
static evc_status
await_room(evc_cluster *cl, unsigned n, double wait)
{
	uint64_t until = 0;
	bool on_loop;
	evc_status st;

	for (;;) {
		/* The loop may not have seen the stop yet. */
		if (cl->stop.begun || evc_should_stop(cl->scope))
			return evc_refuse(-EVC_CANCELLED,
					  "the cluster was stopped");
		if (cl->workers.unavailable)
			evc__note_unavailable(cl);
		st = evc__closures_may_put(&cl->q, n);
		if (st != EVC_PENDING) {
			if (st > 0)
				evc__say_raised(cl);
			return st;
		}
		if (n > cl->q.most)
			return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
					  "%u functions are more than"
					  " max_queued",
					  n);
		if (until == 0)
			until = wait == 0 ? SYNC_FOREVER
					  : evc__deadline_in(wait);
		on_loop = evc__cluster_on_loop(cl);
		if (on_loop && !cl->turn.want_writable) {
			cl->turn.want_writable = true;
			/* config.writable is to be called, so the loop is
			   held. */
			evc__turn_ask(cl);
		}
		/* A function would wait for its own end. */
		if (on_loop || wait < 0 || evc__exec_of == cl ||
		    !evc__closures_await_room(
			    &cl->q, evc__deadline_look(
					    until, evc__cluster_left(cl))))
			return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
					  cl->q.failed ?
						  "an error is to be raised, and"
						  " functions still run" :
						  "the queue is full");
	}
}

static evc_status
find_worker(const evc_cluster *cl, const char *name, uint32_t *ret)
{
	unsigned i, from = 0;

	/* The place in the usual name, if the engine gave no other. */
	if (sscanf(name, "worker %u", &from) != 1 ||
	    from >= cl->workers.n_wanted ||
	    strcmp(cl->workers.all[from]->name, name) != 0)
		from = 0;
	for (i = from; i < cl->workers.n_wanted; i++)
		if (strcmp(cl->workers.all[i]->name, name) == 0) {
			*ret = i;
			return 0;
		}
	return evc_refuse(-EVC_INVALID_ARGUMENT,
			  "there is no worker called \"%.47s\"", name);
}

/* Find the function and the worker that the call names. */
static evc_status
look_up_target(evc_cluster *cl, const struct request *q,
	       const struct cluster_name **ret_name, uint32_t *ret_tag)
{
	evc_status st = 0;

	if (q->call == NULL)
		st = evc__name_checked(cl, q->name, ret_name);
	if (st == 0 && q->opts.worker != NULL)
		st = find_worker(cl, q->opts.worker, ret_tag);
	return st;
}

evc_status
evc__admit(evc_cluster *cl, const struct request *q, evc_remote **r, unsigned n,
	   bool each_worker)
{
	const struct cluster_name *name = NULL;
	uint32_t tag = TAG_ANY;
	evc_status st;
	unsigned j;

	/* A wrong call does not wait. */
	st = look_up_target(cl, q, &name, &tag);
	if (st == 0)
		st = await_room(cl, n, q->opts.wait);
	/* A worker may have told its names during the wait, or be about to
	   leave. */
	if (st == 0 && ((name != NULL && cl->names.known && !name->known) ||
			(tag != TAG_ANY && tag >= cl->workers.n_wanted)))
		st = look_up_target(cl, q, &name, &tag);
	if (st == 0 && each_worker && n != cl->workers.n_wanted)
		st = evc_refuse(-EVC_ABORTED,
				"the number of workers has changed");
	if (st != 0)
		return st;
	for (j = 0; st == 0 && j < n; j++)
		st = take_refs(cl, &q->refs, r[j]->more);
	for (j = 0; st == 0 && j < n; j++) {
		r[j]->function = name;
		r[j]->closure.tag = each_worker ? j : tag;
		if (!make_edges(r[j]))
			st = evc_refuse(-EVC_RESOURCE_EXHAUSTED, "no memory");
	}
	if (st == 0) {
		for (j = 0; j < n; j++)
			admit_remote(cl, r[j]);
		return 0;
	}
	for (j = 0; j < n; j++)
		evc__remote_let_go(r[j]);
	return st;
}
