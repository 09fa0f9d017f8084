/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "threads": open and close, and the operations that the cluster
 * calls.
 * Called by: the cluster, by evc__engine_threads.
 * Locks: the cluster's lock is held in all operations but open and close;
 * seat.lock in update_variable().
 */
#include "cluster/threads/threads.h"

#include "base/cpus.h"
#include "base/text.h"
#include "wire/uri.h"

/* A function finds the updates of all functions that have succeeded before:
   results with updates wait no longer, on any seat. */
static void
make_updates(struct threads *e)
{
	unsigned i;

	for (i = 0; i < e->n && sync_load_sc(&e->n_unmade) > 0; i++) {
		struct seat *s = e->seats[i];

		if (sync_load_sc(&s->unmade) == 0)
			continue;
		sync_lock(&s->lock);
		evc__seat_flush(s);
		sync_unlock(&s->lock);
	}
}

static evc_status
update_variable(void *arg, const evc_engine_update *u, double *ret_now,
		evc_value *ret_value)
{
	struct seat *s = arg;

	make_updates(s->e);
	return s->e->sink->variable(s->e->core, s->index, u, ret_now,
				    ret_value);
}

/* ---- memory ---- */

static struct seat *
seat_new(struct threads *e, unsigned i, const evc_engine_env *env)
{
	struct seat *s = sync_alloc_aligned(64, sizeof *s);
	struct worker_env we = {
		.coord = e->scope,
		.functions = env->functions,
		.n_functions = env->n_functions,
		.index = i,
		.generation = e->generation,
		.variable = update_variable,
		.arg = s,
	};

	if (s == NULL || evc__worker_new(&we, &s->w) < 0) {
		sync_free(s);
		return NULL;
	}
	s->e = e;
	s->index = i;
	s->window = 1;
	sync_lock_init(&s->lock);
	list_init(&s->link);
	return s;
}

static void
threads_free(struct threads *e)
{
	unsigned i;

	for (i = 0; i < e->n; i++) {
		/* NULL after the thread's end. */
		evc__worker_free(e->seats[i]->w);
		sync_lock_destroy(&e->seats[i]->lock);
		sync_free(e->seats[i]);
	}
	sync_lock_destroy(&e->lock);
	sync_free(e->seats);
	sync_free(e);
}

static struct threads *
threads_new(const evc_engine_env *env, unsigned n)
{
	struct threads *e = sync_alloc(1, sizeof *e);

	if (e == NULL || !evc__fork_watch()) {
		sync_free(e);
		return NULL;
	}
	e->scope = env->scope;
	e->sink = env->sink;
	e->core = env->core;
	e->fork_generation = sync_load_relaxed(&evc__fork_generation);
	e->generation = env->generation != 0 ? env->generation : sync_real();
	sync_lock_init(&e->lock);
	list_init(&e->lying);
	e->seats = sync_alloc(n, sizeof(struct seat *));
	for (; e->seats != NULL && e->n < n; e->n++) {
		e->seats[e->n] = seat_new(e, e->n, env);
		if (e->seats[e->n] == NULL)
			break;
	}
	if (e->n == n)
		return e;
	threads_free(e);
	return NULL;
}

/* ---- open ---- */

static evc_status
announce_seats(const evc_engine_env *env, unsigned n)
{
	const char **names = sync_alloc(env->n_functions + 1, sizeof *names);
	unsigned i;
	bool fits;

	fits = names != NULL && env->sink->workers(env->core, n);
	if (fits) {
		for (i = 0; i < env->n_functions; i++)
			names[i] = env->functions[i].name;
		env->sink->names(env->core, names, env->n_functions);
	}
	sync_free(names);
	return fits ? 0 :
		      evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				 "no memory for %u workers", n);
}

static evc_status
start_seats(struct threads *e)
{
	/* The cluster itself keeps the joins of its scope waiting, on every
	   engine. */
	evc_member_opts o = { .flags = EVC_BACKGROUND };
	evc_status st = 0;
	char name[48];
	struct text t;
	unsigned i;

	for (i = 0; st == 0 && i < e->n; i++) {
		t = evc__text_in(name, sizeof name);
		evc__text_fmt(&t, "worker %u", i);
		sync_add(&e->n_live, 1);
		st = evc_thread_start(e->scope, name, evc__threads_worker,
				      e->seats[i], &o, NULL);
	}
	if (st == 0) {
		sync_add(&e->n_live, 1);
		st = evc_thread_start(e->scope, "batch watch", evc__threads_batch_watch,
				      e, &o, NULL);
	}
	if (st < 0)
		sync_sub(&e->n_live, 1);
	return st;
}

/* Threads that were started go home, and have let go of the engine. */
static void
call_off(struct threads *e)
{
	uint32_t n;

	sync_store_sc(&e->go, GO_HOME);
	sync_futex_wake(&e->go);
	while ((n = sync_load_sc(&e->n_live)) > 0)
		sync_futex_wait(&e->n_live, n, SYNC_FOREVER);
	threads_free(e);
}

static evc_status
engine_open(const evc_engine_env *env, evc_engine **ret_engine)
{
	struct threads *e;
	evc_status st;
	unsigned n;

	if (!evc__uri_number(env->place, THREADS_MOST, &n))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "threads://N: \"%s\" is no number of threads "
				  "from 1 to %d",
				  env->place, THREADS_MOST);
	if (n == 0)
		n = evc__cpus(THREADS_MOST);
	st = evc__functions_check(env->functions, env->n_functions);
	if (st < 0)
		return st;
	e = threads_new(env, n);
	if (e == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "no memory for %u worker threads", n);
	st = announce_seats(env, n);
	if (st == 0)
		st = start_seats(e);
	if (st < 0) {
		call_off(e);
		return st;
	}
	*ret_engine = (evc_engine *)(void *)e;
	sync_store_sc(&e->go, GO_SERVE);
	sync_futex_wake(&e->go);
	return 0;
}

/* ---- what the cluster tells it ---- */

static void
engine_wake(evc_engine *engine, int worker)
{
	evc__threads_wake(threads_of(engine), worker);
}

static void
engine_cancel(evc_engine *engine, uint64_t upto)
{
	struct threads *e = threads_of(engine);
	unsigned i;

	/* After leave no function runs, and workers are freed; leave and cancel
	   come under the cluster's lock. */
	for (i = 0; i < e->n && sync_load(&e->leaving) == 0; i++)
		evc__worker_cancel(e->seats[i]->w, upto);
}

static void
engine_cancel_one(evc_engine *engine, unsigned worker, uint64_t n)
{
	struct threads *e = threads_of(engine);

	if (worker < e->n && sync_load(&e->leaving) == 0)
		evc__worker_cancel_one(e->seats[worker]->w, n);
}

static void
engine_leave(evc_engine *engine)
{
	struct threads *e = threads_of(engine);

	/* The last thread's last word waits for the cluster's lock, so the
	   engine stays during this call. */
	sync_store_sc(&e->leaving, 1);
	sync_futex_wake(&e->leaving);
	evc__threads_wake_all(e);
	evc__batch_watch_ring(e);
}

static void
engine_close(evc_engine *engine)
{
	threads_free(threads_of(engine));
}

const evc_engine_ops evc__engine_threads = {
	.abi = EVC_ENGINE_ABI,
	.caps = EVC_ENGINE_CALLS,
	.scheme = "threads",
	.usage = "threads://N",
	.open = engine_open,
	.wake = engine_wake,
	.cancel = engine_cancel,
	.cancel_one = engine_cancel_one,
	.leave = engine_leave,
	.close = engine_close,
};
