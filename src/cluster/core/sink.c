/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of engines: functions go out, results come in.  Each call takes the
 * lock once, for all of its functions.
 * Called by: engines on any of their threads, by evc__sink.
 * Locks: the cluster's lock, taken.
 */
#include "cluster/core/cluster.h"

#include <math.h>


#define CHUNK 64

/* ---- functions go out ---- */

static void
fill_task(const evc_remote *r, evc_engine_task *t)
{
	const struct remote_more *m = r->more;

	memset(t, 0, sizeof *t);
	t->n = r->closure.n;
	t->id = r->id;
	t->function = remote_name(r);
	t->args.size = r->args_size;
	t->args.data = r->args_size > 0 ? r->tail : NULL;
	t->kwargs.size = r->kwargs_size;
	t->kwargs.data = r->kwargs_size > 0 ? r->tail + r->args_size : NULL;
	t->attempt = r->attempts;
	t->flags = r->flags & REMOTE_TRANSACTIONAL ? EVC_TRANSACTIONAL : 0;
	if (m == NULL)
		return;
	t->call = m->call;
	t->call_arg = m->call_arg;
	t->deadline = m->deadline;
	t->inputs = m->values;
	t->n_inputs = m->n_inputs;
}

static unsigned
take_tasks(void *core, unsigned worker, evc_engine_task *tasks, unsigned most)
{
	evc_cluster *cl = core;
	struct closure *taken[CHUNK];
	struct cluster_worker *w;
	unsigned i, n = 0;
	evc_remote *r;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	if (w != NULL && w->state == EVC_WORKER_UP && !w->dismissed &&
	    evc__closures_has(&cl->q, worker) &&
	    evc__per_worker_is_ready(cl, w) &&
	    cl->checkpoint.first == FIRST_NONE)
		n = evc__closures_take(&cl->q, worker, taken,
				       most < CHUNK ? most : CHUNK);
	if (n > 0 && w->n_running + w->n_building == 0)
		w->moved_ns = sync_mono();
	/* Functions behind a build begin later, or go back. */
	if (n > 0 && cl->q.n_taken == n && w->n_building == 0)
		cl->watchdog.moved_ns = sync_mono();
	for (i = 0; i < n; i++) {
		r = REMOTE_OF(taken[i]);
		r->worker = worker;
		if (r->attempts < UINT16_MAX)
			r->attempts++;
		list_append(&w->running, &r->closure.link);
		fill_task(r, &tasks[i]);
	}
	if (n > 0) {
		w->n_running += n;
		if (cl->turn.want_writable)
			evc__turn_ask(cl);
	}
	evc__cluster_unlock(cl);
	return n;
}

/* Add seconds from an engine. */
static void
add_time(double *to, double seconds)
{
	if (seconds > 0 && isfinite(seconds))
		*to += seconds;
}

static bool
take_def(void *core, unsigned worker, evc_engine_def *ret_def)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;
	bool more;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	more = w != NULL && evc__per_worker_next_def(cl, w, ret_def);
	if (more)
		evc__building_begins(cl, w, ret_def);
	evc__cluster_unlock(cl);
	return more;
}

static void
note_built(void *core, unsigned worker, uint64_t id, evc_status code,
	   double seconds)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	if (w != NULL)
		evc__building_ends(cl, w, id);
	cl->watchdog.moved_ns = sync_mono();
	if (code == 0)
		cl->count.builds++;
	add_time(&cl->count.build_time, seconds);
	sync_unlock(&cl->q.lock);
}

/* ---- results come in ---- */

static evc_remote *
find_remote(const struct list *of, uint64_t n)
{
	const struct list *at;

	/* Mostly the first: workers run functions in the order of the takes. */
	for (at = of->next; at != of; at = at->next)
		if (LIST_OF(at, struct closure, link)->n == n)
			return LIST_OF(at, evc_remote, closure.link);
	return NULL;
}

/* The function leaves the worker. */
static void
remove_running(struct cluster_worker *w, evc_remote *r, uint64_t now)
{
	/* Others go unrun, and nothing begins then. */
	if (worker_oldest(w) == &r->closure && !evc__building_is_it(w))
		w->moved_ns = now;
	list_remove(&r->closure.link);
	w->n_running--;
}

/* The result of a function that was given up, or of a fenced worker. */
static void
note_late(evc_cluster *cl, struct cluster_worker *w, uint64_t n)
{
	evc_remote *r = find_remote(&w->given_up, n);

	cl->count.executions++;
	cl->count.late++;
	if (r == NULL)
		return;
	list_remove(&r->closure.link);
	evc__remote_let_go(r);
	evc__remote_drop(r);
	if (--w->n_given_up == 0 && w->state == EVC_WORKER_HUNG)
		evc__worker_back(cl, w);
}

static void
settle_cancelled(evc_cluster *cl, evc_remote *r, const char *text)
{
	struct outcome o = { .code = EVC_CANCELLED,
			     .kind = EVC_FAILED_CANCEL,
			     .text = text };

	if (cluster_is_stopped(cl))
		cl->stop.lost = true;
	evc__remote_settle(r, &o);
}

/* The attempt counts for nothing, and begins again. */
static void
begin_again(evc_cluster *cl, evc_remote *r, bool conflict)
{
	r->attempts--;
	if (r->flags & REMOTE_ASKED) {
		evc__closures_finish(&cl->q, &r->closure);
		settle_cancelled(cl, r, "it was cancelled");
		return;
	}
	if (conflict) {
		cl->count.conflicts++;
		if (cl->q.alone_taken == &r->closure && !cl->q.alone_beside)
			/* By the program: others need not wait for that. */
			r->conflicts = 0;
		else if (r->conflicts < CONFLICTS_MOST ||
			 (cl->turn.alone_expired && r->conflicts < UINT8_MAX))
			r->conflicts++;
	}
	if (conflict && r->conflicts >= CONFLICTS_MOST)
		evc__closures_back(&cl->q, &r->closure, CLOSURE_ALONE);
	else
		evc__closures_back(&cl->q, &r->closure, CLOSURE_QUEUED);
}

/* *value is the remote's from then on, or stays as it is. */
static void
finish_one(evc_cluster *cl, struct cluster_worker *w, evc_remote *r,
	   const evc_engine_result *res, struct held_value *value, uint64_t now)
{
	struct outcome o = { .now_ns = now };
	evc_status code = res->code, st;
	unsigned kind = res->kind;
	const char *text = res->text;
	bool asked = (r->flags & REMOTE_ASKED) ||
		     r->closure.n <= cl->q.cancel_upto ||
		     evc_should_stop(cl->scope);

	remove_running(w, r, now);
	/* A run that was overtaken has ended; others were not begun. */
	if (res->took >= 0 || code == EVC_ABORTED)
		cl->watchdog.moved_ns = now;
	if (res->took < 0) {
		begin_again(cl, r, code == EVC_ABORTED);
		return;
	}
	if (code < 0 || code > UINT8_MAX)
		code = EVC_UNKNOWN;
	if (code != 0 && kind != EVC_FAILED_INPUT)
		kind = EVC_FAILED_FUNCTION;
	if (res->n_updates > 0 && !cluster_asks(cl)) {
		st = evc__variables_commit(&cl->vars, code, res->updates,
					   res->n_updates);
		if (st == EVC_ABORTED) {
			begin_again(cl, r, true);
			return;
		}
		if (st < 0 && code == 0) {
			code = -st;
			kind = EVC_FAILED_FUNCTION;
			text = evc_last_error();
		}
	}
	w->n_done++;
	cl->count.executions++;
	add_time(&cl->count.run_time, res->took);
	if (code != 0) {
		evc__attempt_fails(cl, r, code, kind, text, asked, now);
		return;
	}
	o.value = *value;
	*value = (struct held_value){ { NULL, 0 }, 0 };
	/* The count comes before anybody can have the result. */
	if (cluster_asks(cl) && (r->flags & REMOTE_TRANSACTIONAL))
		cl->asking.seen++;
	else if (res->n_updates == 0 || cluster_asks(cl))
		evc__variables_finished(&cl->vars, 1);
	/* A settled remote may be gone, if the program has dropped it. */
	evc__closures_finish(&cl->q, &r->closure);
	evc__remote_settle(r, &o);
}

static void
count_rate(evc_cluster *cl, unsigned n, uint64_t now)
{
	const uint64_t places = sizeof cl->count.per_second /
				sizeof cl->count.per_second[0];
	uint64_t second = now / 1000000000u;

	while (cl->count.second < second) {
		if (cl->count.second + places < second)
			cl->count.second = second - places;
		cl->count.per_second[++cl->count.second % places] = 0;
	}
	cl->count.per_second[second % places] += n;
}

static void
finish_chunk(evc_cluster *cl, unsigned worker, const evc_engine_result *res,
	     struct held_value *values, unsigned n)
{
	struct cluster_worker *w;
	uint64_t now, before;
	unsigned i;
	evc_remote *r;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	now = sync_mono();
	before = cl->count.done;
	for (i = 0; w != NULL && i < n; i++) {
		r = w->state == EVC_WORKER_FENCED ||
				    w->state == EVC_WORKER_GONE ?
			    NULL :
			    find_remote(&w->running, res[i].n);
		if (r == NULL)
			note_late(cl, w, res[i].n);
		else
			finish_one(cl, w, r, &res[i], &values[i], now);
	}
	count_rate(cl, (unsigned)(cl->count.done - before), now);
	evc__tell(cl);
	evc__cluster_unlock(cl);
	for (i = 0; i < n; i++)
		held_free(&values[i]);
}

static void
finish_results(void *core, unsigned worker, const evc_engine_result *results,
	       unsigned n)
{
	evc_cluster *cl = core;
	struct held_value values[CHUNK];
	evc_engine_result failed_copy;
	unsigned i, k;

	for (; n > 0; n -= k, results += k) {
		k = n < CHUNK ? n : CHUNK;
		/* No memory, or no value: the outcome is an error; results
		   before it come first. */
		for (i = 0; i < k; i++)
			if (!evc__value_hold(&results[i], &values[i]))
				break;
		if (i == 0) {
			sync_free(results[0].memory);
			failed_copy = results[0];
			failed_copy.code = EVC_RESOURCE_EXHAUSTED;
			failed_copy.kind = EVC_FAILED_FUNCTION;
			failed_copy.text = "its result could not be kept";
			failed_copy.n_updates = 0;
			failed_copy.value = (evc_value){ NULL, 0 };
			failed_copy.memory = NULL;
			k = 1;
			finish_chunk(cl, worker, &failed_copy, values, 1);
			continue;
		}
		k = i;
		finish_chunk(cl, worker, results, values, k);
	}
}

static void
note_overdue(void *core, unsigned worker, uint64_t n)
{
	evc_cluster *cl = core;
	struct cluster_worker *w;
	uint64_t now = sync_mono();
	char text[TEXT_SIZE];
	evc_remote *r;

	sync_lock(&cl->q.lock);
	w = cluster_worker_at(&cl->workers, worker);
	r = w != NULL && w->state == EVC_WORKER_UP ?
		    find_remote(&w->running, n) :
		    NULL;
	if (r != NULL) {
		struct text t = evc__text_in(text, sizeof text);

		evc__text_fmt(&t, "over its deadline of %g s on %s, which was"
				  " killed",
			      r->more != NULL ? r->more->deadline : 0, w->name);
		remove_running(w, r, now);
		cl->watchdog.moved_ns = now;
		evc__building_forget(w);
		/* The fence comes first: the function still runs, so no error
		   may be raised. */
		evc__worker_fence(cl, w, text);
		evc__attempt_fails(cl, r, EVC_DEADLINE_EXCEEDED, EVC_FAILED_WORKER,
			      text, false, now);
	}
	evc__tell(cl);
	evc__cluster_unlock(cl);
}

/* ---- variables ---- */

/* Was its function given up, and runs all the same? */
static bool
has_given_up(evc_cluster *cl, unsigned worker)
{
	bool yes;

	if (sync_load(&cl->workers.any_given_up) == 0)
		return false;
	sync_lock(&cl->q.lock);
	yes = worker < cl->workers.n && cl->workers.all[worker]->n_given_up > 0;
	sync_unlock(&cl->q.lock);
	return yes;
}

/* An addition of 0 is a look. */
static bool
changes_something(const evc_engine_update *u)
{
	return u->op == EVC_VARIABLE_ADD ? u->by != 0 :
	       u->op == EVC_VARIABLE_SET || u->op == EVC_VARIABLE_COMPARE_SET ||
	       u->op == EVC_VARIABLE_VECTOR_ADD;
}

static evc_status
update_variable(void *core, unsigned worker, const evc_engine_update *u,
		double *ret_now, evc_value *ret_value)
{
	evc_cluster *cl = core;

	if (cluster_asks(cl))
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "the engine keeps the variables itself");
	if (changes_something(u) && has_given_up(cl, worker))
		return evc_refuse(-EVC_CANCELLED, "the function was given up");
	return evc__variable_do(&cl->vars, u, ret_now, ret_value);
}

const evc_engine_sink evc__sink = {
	.abi = EVC_ENGINE_ABI,
	.workers = evc__sink_workers,
	.names = evc__sink_names,
	.up = evc__sink_up,
	.defs = take_def,
	.built = note_built,
	.take = take_tasks,
	.finished = finish_results,
	.overdue = note_overdue,
	.fenced = evc__sink_fenced,
	.gone = evc__sink_gone,
	.variable = update_variable,
	.trouble = evc__sink_trouble,
	.counts = evc__sink_counts,
	.down = evc__sink_down,
	.closed = evc__sink_closed,
	.worker_names = evc__sink_worker_names,
	.leave = evc__sink_leave,
	.away = evc__sink_away,
	.stack = evc__sink_stack,
};
