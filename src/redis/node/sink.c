/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node as the core of the workers' engine: gives functions to the workers,
 * and makes frames of all that the workers tell.
 * Called by: the engine of the workers, by the table evc__node_sink.
 * Locks: none; loop thread only.
 */
#include "engine/death.h"
#include "redis/node/node.h"

#define RIDES_MOST 4096 /* bytes of a value that goes with results with
			   updates */

static struct local_worker *
worker_of(void *core, unsigned worker)
{
	struct session *s = core;

	return &s->workers[worker];
}

static bool
on_workers(void *core, unsigned n)
{
	struct session *s = core;

	return n <= s->node->n_workers;
}

/* The workers are the same program as the node, and the node has told its
   names. */
static void
on_names(void *core, const char *const *functions, unsigned n)
{
	(void)core;
	(void)functions;
	(void)n;
}

/* ---- a worker's life ---- */

static void
say_note(struct local_worker *w, enum frame_type type, uint64_t number,
	 const char *text)
{
	const struct frame_note note = { .number = number, .text = text };
	struct session *s = w->session;
	struct bytes *b = session_says(s) ? evc__node_tell(s, w) : NULL;

	if (b != NULL && evc__frame_put_note(b, type, &note) < 0)
		evc__node_no_memory(s);
}

/* The name is the same for all workers; the coordinator makes a better one.
   where: "pid 17". */
static void
on_up(void *core, unsigned worker, const char *name, const char *where)
{
	struct local_worker *w = worker_of(core, worker);
	struct node *n = w->session->node;
	char text[128];
	struct text t = evc__text_in(text, sizeof text);
	static const char pid[] = "pid ";

	(void)name;
	w->pid = strncmp(where, pid, sizeof pid - 1) == 0
			 ? strtol(where + sizeof pid - 1, NULL, 10)
			 : 0;
	w->state = WORKER_UP;
	w->number++;
	w->since = w->moved = ev_now(n->ev);
	evc__text_fmt(&t, "%s %s", n->host, where);
	say_note(w, FRAME_UP, (uint64_t)w->pid, text);
}

/* The coordinator has asked; without lines the worker cannot say. */
static void
on_stack(void *core, unsigned worker, const char *lines)
{
	struct local_worker *w = worker_of(core, worker);

	if (w->state == WORKER_UP)
		say_note(w, FRAME_STACK, 0, lines);
}

void
evc__node_look(struct local_worker *w)
{
	struct session *s = w->session;
	const evc_engine_ops *ops = s->node->ops;

	if (ops->stack == NULL || ops->stack(s->engine, w->index) != 0)
		on_stack(s, w->index, NULL);
}

static void
on_fenced(void *core, unsigned worker, const char *why)
{
	struct local_worker *w = worker_of(core, worker);

	if (w->state != WORKER_UP)
		return;
	evc__node_give_back(w, UINT64_MAX);
	w->state = WORKER_FENCED;
	say_note(w, FRAME_FENCED, 0, why);
}

static unsigned
gone_flags(const struct local_worker *w, unsigned how)
{
	const struct job *job = evc__node_worker_job(w);
	unsigned idle = job == NULL || job->is_def ? GONE_IDLE : 0;

	if (how == EVC_ENGINE_LEFT)
		return idle | GONE_LEFT;
	/* When its node leaves, a build is not the reason of the kill. */
	return how == EVC_ENGINE_DIED_RUNNING && job != NULL &&
			       !(job->is_def &&
				 w->session->state == SESSION_LEAVING) ?
		       idle | GONE_RAN : idle;
}

static void
on_gone(void *core, unsigned worker, const char *why, unsigned how)
{
	struct local_worker *w = worker_of(core, worker);
	struct session *s = w->session;
	char line[DEATH_LINE];
	bool dead;

	evc__copy_ends(line, sizeof line, why);
	if (s->state <= SESSION_LIVE ||
	    (s->state == SESSION_LEAVING && how != EVC_ENGINE_LEFT))
		evc_log(s->node->scope, EVC_LOG_WARNING, NULL,
			"redis: node %s: %s", s->node->name, line);
	if (w->state == WORKER_UP)
		evc__node_give_back(w, UINT64_MAX);
	/* A failed start is an end, too. */
	dead = w->state == WORKER_STARTING && s->state == SESSION_LIVE &&
	       how != EVC_ENGINE_LEFT;
	if (dead)
		w->number++;
	if (dead || w->state == WORKER_UP || w->state == WORKER_FENCED)
		say_note(w, FRAME_GONE,
			 gone_flags(w, how), why);
	evc__node_ask_drop(w);
	evc__node_worker_clear(w);
	w->state = s->state == SESSION_LIVE || s->state == SESSION_JOINING
			   ? WORKER_STARTING
			   : WORKER_GONE;
	w->pid = 0;
	w->since = ev_now(s->node->ev);
}

/* ---- to build ---- */

static bool
on_defs(void *core, unsigned worker, evc_engine_def *ret_def)
{
	struct local_worker *w = worker_of(core, worker);
	struct job *job = w->waits.first;

	evc__node_job_free(w->drop);
	w->drop = NULL;
	if (job == NULL || !job->is_def)
		return false;
	evc__node_queue_first(&w->waits);
	if (job->def.kind == EVC_DEF_DROP)
		w->drop = job;
	else
		evc__node_worker_take(w, &w->builds, job);
	*ret_def = job->def;
	return true;
}

static void
on_built(void *core, unsigned worker, uint64_t id, evc_status code,
	 double seconds)
{
	struct local_worker *w = worker_of(core, worker);
	struct session *s = w->session;
	const struct frame_built f = { id, code, seconds };
	struct bytes *b;

	evc__node_job_free(evc__node_queue_take(&w->builds, true, id));
	w->moved = w->since = ev_now(s->node->ev);
	b = session_says(s) ? evc__node_tell(s, w) : NULL;
	if (b != NULL && evc__frame_put_built(b, &f) < 0)
		evc__node_no_memory(s);
}

/* ---- to run ---- */

static void
say_result(struct local_worker *w, const struct frame_result *f)
{
	struct session *s = w->session;
	struct frame_result bare = *f;
	struct bytes *b;

	bare.r.n_updates = 0;
	/* A batch of its own would wait for the answer to the one before. */
	if (bare.r.value.size <= RIDES_MOST && evc__node_deals_wait(s)) {
		evc__node_tell_deal(w, &bare, true, 0);
		return;
	}
	b = evc__node_tell(s, w);
	if (b != NULL && evc__frame_put_result(b, UINT32_MAX, &bare) < 0)
		evc__node_no_memory(s);
}

/* An input cannot be had, so the function fails.  If its key is missing, the
   function goes back instead: the coordinator has the input. */
static void
fail_for_input(struct local_worker *w, const struct job *job,
	       const struct value *v)
{
	struct session *s = w->session;
	struct frame_result f = { .r = { .n = job->task.n,
					 .code = EVC_UNAVAILABLE,
					 .kind = EVC_FAILED_INPUT,
					 .text = v->why } };
	struct bytes *b;

	if (v->missing) {
		b = evc__node_tell(s, w);
		if (b == NULL)
			return;
		if (evc__frame_put_number(b, FRAME_FORGET, v->id) < 0) {
			evc__node_no_memory(s);
			return;
		}
		f.r.took = -1;
		f.r.code = EVC_CANCELLED;
	}
	say_result(w, &f);
}

static void
fail_result(struct local_worker *w, const evc_engine_result *r, evc_status code,
	    const char *why)
{
	const struct frame_result f = {
		.r = { .n = r->n,
		       .code = code,
		       .kind = EVC_FAILED_FUNCTION,
		       .text = why,
		       .took = r->took },
	};

	say_result(w, &f);
}

/* false: the server cannot take the updates, and the function has failed.
   *ret_us: the server's time for them. */
static bool
check_updates(struct local_worker *w, const evc_engine_result *r,
	      double *ret_us)
{
	uint64_t lease_ns = session_lease_ns(w->session), cost = 0;
	char why[128];
	struct text t = evc__text_in(why, sizeof why);
	struct operation_cost some;
	double us = 0;
	evc_status st;
	unsigned i;

	for (i = 0; i < r->n_updates; i++) {
		st = evc__operation_check(&r->updates[i], lease_ns, &some);
		if (st == 0) {
			us += UPDATE_US + some.us;
			st = evc__server_time(us, lease_ns, "the reads and "
					      "updates of one function", "");
		}
		if (st < 0) {
			fail_result(w, r, -st, evc_last_error());
			return false;
		}
		cost += some.updates;
	}
	*ret_us = us;
	if (cost <= TRANSACTION_MOST)
		return true;
	evc__text_fmt(&t, "over Redis a transaction has at most %u reads and "
			  "updates of variables, not %llu",
		      TRANSACTION_MOST, (unsigned long long)cost);
	fail_result(w, r, EVC_RESOURCE_EXHAUSTED, why);
	return false;
}

/* 1: all inputs are there; 0: not yet; -1: *ret_bad will never come. */
static int
inputs_are_ready(const struct job *job, const struct value **ret_bad)
{
	evc_engine_input *in = (evc_engine_input *)job->task.inputs;
	unsigned i;

	for (i = 0; job->values != NULL && i < job->task.n_inputs; i++) {
		const struct value *v = job->values[i];

		if (v == NULL)
			continue;
		*ret_bad = v;
		if (v->state != VALUE_THERE)
			return v->state == VALUE_BAD ? -1 : 0;
		in[i].value = v->value;
	}
	return 1;
}

static unsigned
on_take(void *core, unsigned worker, evc_engine_task *tasks, unsigned most)
{
	struct local_worker *w = worker_of(core, worker);
	struct session *s = w->session;
	struct job *job;
	unsigned n = 0;

	if (s->state != SESSION_LIVE)
		return 0;
	while (n < most && (job = w->waits.first) != NULL && !job->is_def) {
		const struct value *bad;
		int ready = inputs_are_ready(job, &bad);

		if (ready == 0)
			break;
		evc__node_queue_first(&w->waits);
		if (ready < 0) {
			fail_for_input(w, job, bad);
			evc__node_job_free(job);
			continue;
		}
		evc__node_worker_take(w, &w->has, job);
		tasks[n++] = job->task;
	}
	/* The engine builds first, and takes the next functions afterwards. */
	if (w->waits.first != NULL && w->waits.first->is_def)
		s->node->ops->wake(s->engine, (int)worker);
	if (w->waits.n > 0)
		evc__node_give_back_watch(s);
	return n;
}

static void
tell_finished(struct local_worker *w, const evc_engine_result *r)
{
	struct session *s = w->session;
	struct job *job = evc__node_queue_take(&w->has, false, r->n);
	struct frame_result f = { .r = *r };
	bool fine = r->code == 0 && r->took >= 0, plain;
	struct value *kept = NULL;
	double us;

	w->moved = w->since = ev_now(s->node->ev);
	if (job == NULL || !session_says(s)) {
		evc__node_job_free(job);
		sync_free(r->memory);
		return;
	}
	if (!check_updates(w, r, &us)) {
		evc__node_job_free(job);
		sync_free(r->memory);
		return;
	}
	/* As in a worker: results with updates may be refused. */
	if (fine && r->n_updates == 0 && r->value.size >= VALUE_LEAST)
		kept = evc__node_value_keep(s, job->task.id, &f.r);
	f.kept = kept != NULL;
	plain = (job->task.flags & EVC_TRANSACTIONAL) == 0;
	if (r->n_updates > 0)
		evc__node_tell_used(w, r->updates[0].name);
	if (r->took >= 0 && ((fine && !plain) || r->n_updates > 0))
		evc__node_tell_deal(w, &f, plain, us);
	else
		say_result(w, &f);
	evc__node_value_drop(kept);
	sync_free(f.r.memory);
	evc__node_job_free(job);
}

static void
on_finished(void *core, unsigned worker, const evc_engine_result *results,
	    unsigned n)
{
	struct local_worker *w = worker_of(core, worker);
	unsigned i;

	for (i = 0; i < n; i++)
		tell_finished(w, &results[i]);
}

static void
on_overdue(void *core, unsigned worker, uint64_t n)
{
	struct local_worker *w = worker_of(core, worker);
	struct session *s = w->session;
	struct bytes *b = session_says(s) ? evc__node_tell(s, w) : NULL;

	if (b != NULL && evc__frame_put_number(b, FRAME_OVERDUE, n) < 0)
		evc__node_no_memory(s);
}

/* ---- the rest ---- */

static evc_status
on_variable(void *core, unsigned worker, const evc_engine_update *u,
	    double *ret_now, evc_value *ret_value)
{
	(void)ret_now;
	(void)ret_value;
	return evc__node_ask(worker_of(core, worker), u);
}

static void
on_down(void *core, const char *why)
{
	evc__node_end(core, "has lost its workers: %s", why);
}

static void
on_closed(void *core)
{
	evc__node_closed(core);
}

const evc_engine_sink evc__node_sink = {
	.abi = EVC_ENGINE_ABI,
	.workers = on_workers,
	.names = on_names,
	.up = on_up,
	.defs = on_defs,
	.built = on_built,
	.take = on_take,
	.finished = on_finished,
	.overdue = on_overdue,
	.fenced = on_fenced,
	.gone = on_gone,
	.variable = on_variable,
	.down = on_down,
	.closed = on_closed,
	.stack = on_stack,
};
