/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine "threads": open and close, and the operations that the cluster
 * calls.
 * Called by: the cluster, by evc__engine_threads.
 * Locks: the cluster's lock is held in all operations but open and close;
 * threads.lock in engine_cancel().
 */
#include "cluster/threads/threads.h"

#include "base/cpus.h"
#include "base/text.h"
#include "wire/uri.h"

/* ---- memory ---- */

static void
threads_free(struct threads *e)
{
	unsigned i;

	for (i = 0; i < sync_load(&e->n); i++) {
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
	unsigned i;

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
	e->functions = env->functions;
	e->n_functions = env->n_functions;
	sync_store_relaxed(&e->n_wanted, n);
	e->seats = sync_alloc(THREADS_MOST, sizeof(struct seat *));
	for (i = 0; e->seats != NULL && i < n; i++)
		if (!evc__threads_add_seat(e))
			break;
	if (i == n)
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
	evc_member_opts o = { .flags = EVC_BACKGROUND };
	evc_status st = 0;
	unsigned i;

	for (i = 0; st == 0 && i < sync_load(&e->n); i++)
		st = evc__seat_start(e->seats[i]);
	if (st < 0)
		return st;
	sync_add(&e->n_live, 1);
	st = evc_thread_start(e->scope, "batch watch", evc__threads_batch_watch,
			      e, &o, NULL);
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

	sync_lock(&e->lock);
	for (i = 0; i < sync_load(&e->n); i++)
		if (e->seats[i]->w != NULL)
			evc__worker_cancel(e->seats[i]->w, upto);
	sync_unlock(&e->lock);
}

static void
engine_cancel_one(evc_engine *engine, unsigned worker, uint64_t n)
{
	struct threads *e = threads_of(engine);

	sync_lock(&e->lock);
	if (worker < sync_load(&e->n) && e->seats[worker]->w != NULL)
		evc__worker_cancel_one(e->seats[worker]->w, n);
	sync_unlock(&e->lock);
}

/* Seats that a function has emptied get a thread again. */
static void
renew_lost(struct threads *e)
{
	unsigned i;

	for (i = 0; i < sync_load(&e->n); i++) {
		struct seat *s = e->seats[i];

		if (sync_load_sc(&s->lost) == SEAT_SOUND)
			continue;
		sync_store_sc(&s->lost, SEAT_RENEWED);
		evc__threads_wake(e, (int)i);
	}
}

static evc_status
engine_resize(evc_engine *engine, unsigned n)
{
	struct threads *e = threads_of(engine);

	while (sync_load(&e->n) < n)
		if (!evc__threads_add_seat(e))
			return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
					  "no memory for %u worker threads", n);
	sync_store_sc(&e->n_wanted, n);
	renew_lost(e);
	evc__threads_wake_from(e, n);
	sync_store_sc(&e->to_start, 1);
	evc__batch_watch_ring(e);
	return 0;
}

static int
engine_stack(evc_engine *engine, unsigned worker)
{
	struct threads *e = threads_of(engine);
	int tid = worker < sync_load(&e->n) ? sync_load(&e->seats[worker]->tid) : 0;

	return tid > 0 ? tid : -1;
}

static void
engine_leave(evc_engine *engine)
{
	struct threads *e = threads_of(engine);

	/* The last thread's last word waits for the cluster's lock, so the
	   engine stays during this call. */
	sync_store_sc(&e->leaving, 1);
	sync_futex_wake(&e->leaving);
	evc__threads_wake_from(e, 0);
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
	.resize = engine_resize,
	.stack = engine_stack,
};
