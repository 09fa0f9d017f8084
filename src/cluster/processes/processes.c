/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "processes": open and close, and the operations that the cluster,
 * or a node, calls.
 * Called by: the cluster and cluster/open/node.c, by evc__engine_processes.
 * Locks: none; answer, until and rank are for the loop's thread, the other
 * operations are of engine/notes.c.
 */
#include "cluster/processes/processes.h"

#include "base/cpus.h"
#include "wire/uri.h"
#include "cluster/worker/process.h"

_Static_assert(offsetof(struct processes, notes) == 0, "see notes.h");

#define ASK_EVERY 0.025 /* seconds, without a pidfd */

static struct processes *
processes_of(evc_engine *engine)
{
	return (struct processes *)(void *)engine;
}

static void
op_close(evc_engine *engine)
{
	struct processes *p = processes_of(engine);
	unsigned i;

	if (p == NULL)
		return;
	for (i = 0; i < p->n_made; i++) {
		evc__kept_clear(&p->workers[i]->kept);
		evc__process_words_drop(p->workers[i]);
		sync_free(p->workers[i]);
	}
	evc__processes_program_free(p);
	sync_free(p->workers);
	sync_free(p->scratch);
	evc__notes_destroy(&p->notes);
	sync_free(p);
}

static struct process *
make_process(struct processes *p, unsigned i)
{
	struct process *w = sync_alloc(1, sizeof *w);

	if (w == NULL)
		return NULL;
	w->p = p;
	w->index = i;
	w->kept.n_all = &p->notes.n_kept;
	w->pidfd = w->data.fd = w->control.fd = w->output.fd = -1;
	ev_init(&w->deadline, evc__process_overdue);
	ev_init(&w->end, evc__process_on_end);
	ev_init(&w->reaped, evc__process_on_reaped);
	ev_timer_init(&w->ask, evc__process_on_ask, ASK_EVERY, ASK_EVERY);
	w->deadline.data = w->end.data = w->ask.data = w->reaped.data = w;
	return w;
}

/* Memory for workers below n. 0, or refused. */
static evc_status
make_workers(struct processes *p, unsigned n)
{
	for (; p->n_made < n; p->n_made++) {
		p->workers[p->n_made] = make_process(p, p->n_made);
		if (p->workers[p->n_made] == NULL)
			return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
					  "processes: no memory for %u workers",
					  n);
	}
	return 0;
}

/* Each worker has its own number in the cluster, unless the caller tells
   others. */
static evc_status
rank_processes(struct processes *p)
{
	evc_status st = 0;
	unsigned i;

	for (i = 0; i < p->n && st == 0; i++)
		st = evc__process_rank(p->workers[i], i);
	return st;
}

static void
end_holds(struct processes *p)
{
	unsigned i;

	for (i = 0; i < p->n; i++)
		if (p->workers[i]->hold != 0)
			evc_hold_end(p->scope, p->workers[i]->hold);
}

static evc_status
make_processes(struct processes *p, const evc_engine_env *env)
{
	evc_status st;

	if (!evc__uri_number(env->place, PROCESSES_MOST, &p->n_wanted))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "processes://%s: the number of processes is "
				  "1 to %d, or left out",
				  env->place, PROCESSES_MOST);
	if (p->n_wanted == 0)
		p->n_wanted = evc__cpus(PROCESSES_MOST);
	p->scope = env->scope;
	p->reactor = env->reactor;
	p->loop = env->loop;
	p->sink = env->sink;
	p->core = env->core;
	p->lease_ns = evc__ns(env->lease);
	p->grace_ns = evc__ns(env->grace);
	/* The next run of a program has a greater one. */
	p->generation = env->generation != 0 ? env->generation : sync_real();
	p->max_frame = env->max_frame;
	p->workers = sync_alloc(PROCESSES_MOST, sizeof *p->workers);
	p->scratch = sync_alloc(1, SCRATCH);
	if (p->workers == NULL || p->scratch == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "processes: no memory");
	p->hear = evc__process_hear;
	p->on_io = evc__process_on_io;
	st = evc__processes_program(p, env->options);
	if (st == 0)
		st = make_workers(p, p->n_wanted);
	p->n = p->n_made;
	return st;
}

static evc_status
op_open(const evc_engine_env *env, evc_engine **ret_engine)
{
	struct processes *p;
	evc_status st;

	/* Or each worker would start workers, and each of these... */
	if (getenv(WORKER_VARIABLE) != NULL)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "processes: this process was started as a"
				  " worker: its main has to call"
				  " evc_worker_main first");
	p = sync_alloc(1, sizeof *p);
	if (p == NULL || !evc__fork_watch()) {
		sync_free(p);
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "processes: no memory");
	}
	on_loop_init(&p->on, evc__processes_off);
	evc__notes_init(&p->notes, env->loop, evc__processes_message);
	st = make_processes(p, env);
	if (st == 0 && !env->ranks)
		st = rank_processes(p);
	if (st == 0 && !env->sink->workers(env->core, p->n))
		st = evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				"processes: no memory for %u workers", p->n);
	if (st == 0) {
		/* Before the loop's first word. */
		*ret_engine = (evc_engine *)(void *)p;
		st = evc__notes_ring(&p->notes);
	}
	if (st < 0) {
		end_holds(p);
		op_close((evc_engine *)(void *)p);
	}
	return st;
}

static evc_status
op_resize(evc_engine *engine, unsigned n)
{
	evc_status st = make_workers(processes_of(engine), n);

	if (st == 0)
		evc__notes_resize(engine, n);
	return st;
}

/* ---- the loop's thread ---- */

static void
op_answer(evc_engine *engine, unsigned worker, const evc_engine_answer *a)
{
	struct processes *p = processes_of(engine);

	if (worker < p->n)
		evc__process_answer(p->workers[worker], a);
}

static void
op_rank(evc_engine *engine, unsigned worker, unsigned index)
{
	struct processes *p = processes_of(engine);
	struct process *w = worker < p->n ? p->workers[worker] : NULL;
	evc_status st;

	if (w == NULL || w->ranked || w->state != PROCESS_WAITS)
		return;
	/* Without memory the worker has no member, and a report does not name
	   it. */
	st = evc__process_rank(w, index);
	(void)st;
	if (p->running)
		evc__processes_spawn(p);
}

static void
op_until(evc_engine *engine, uint64_t mono_ns)
{
	evc__processes_until(processes_of(engine), mono_ns);
}

static const char *const options[] = { "program", "arg", NULL };

const evc_engine_ops evc__engine_processes = {
	.abi = EVC_ENGINE_ABI,
	.caps = EVC_ENGINE_DEADLINES | EVC_ENGINE_KILLS,
	.scheme = "processes",
	.usage = "processes://N?program=PATH&arg=A",
	.options = options,
	.open = op_open,
	.wake = evc__notes_wake,
	.cancel = evc__notes_cancel,
	.cancel_one = evc__notes_cancel_one,
	.kill = evc__notes_kill,
	.forget = evc__notes_forget,
	.leave = evc__notes_leave,
	.close = op_close,
	.answer = op_answer,
	.until = op_until,
	.rank = op_rank,
	.resize = op_resize,
	.stack = evc__notes_stack,
};
