/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens and closes the engine at its coordinator.
 * Called by: the cluster, by the table of redis.c.
 * Locks: none; no other thread has the engine yet, or any more.
 */
#include "redis/engine/engine.h"

#include <inttypes.h>

/* Seconds.  Ticks come 20 times a second at most, and nodes accept no longer
   lease. */
#define LEASE_LEAST 0.1
#define LEASE_MOST 86400.

_Static_assert(offsetof(struct redis_engine, notes) == 0, "see notes.h");

static struct redis_engine *
engine_of(evc_engine *engine)
{
	return (struct redis_engine *)(void *)engine;
}

void
evc__redis_close(evc_engine *engine)
{
	struct redis_engine *e = engine_of(engine);

	if (e == NULL)
		return;
	evc__redis_questions_close(e);
	evc__redis_client_free(e->client);
	evc__sessions_free(e);
	evc__unlinks_free(e);
	evc__kept_clear(&e->values.set);
	evc__redis_address_free(&e->address);
	evc__notes_destroy(&e->notes);
	sync_lock_destroy(&e->questions.lock);
	sync_free(e->trouble.state);
	evc__table_free(&e->sessions.by_name);
	sync_free(e->sessions.workers);
	sync_free(e);
}

/* Make an id that no other coordinator has, and no other one of this
   process. */
static void
make_coordinator_id(struct redis_engine *e)
{
	struct text t = evc__text_in(e->id, sizeof e->id);
	char *dot;

	if (gethostname(e->host, sizeof e->host) < 0 || e->host[0] == '\0')
		evc__copy(e->host, sizeof e->host, "localhost");
	e->host[sizeof e->host - 1] = '\0';
	for (dot = e->host; *dot != '\0'; dot++)
		if (*dot <= ' ' || *dot == 0x7f)
			*dot = '_';
	evc__text_fmt(&t, "%s-%d-%" PRIx64, e->host, (int)getpid(),
		      sync_real() ^ (uintptr_t)e >> 4);
}

static void
fill_engine(struct redis_engine *e, const evc_engine_env *env)
{
	struct text t = evc__text_in(e->where, sizeof e->where);

	on_loop_init(&e->turn.on, evc__redis_off);
	e->scope = env->scope;
	e->reactor = env->reactor;
	e->loop = env->loop;
	e->sink = env->sink;
	e->core = env->core;
	e->lease_ns = evc__ns(env->lease);
	e->grace_ns = evc__ns(env->grace);
	e->max_frame = env->max_frame;
	evc__redis_address_name(&e->address, &t);
	make_coordinator_id(e);
	evc__sessions_init(e);
	list_init(&e->values.unlinking);
	e->values.set.n_all = &e->notes.n_kept;
	e->questions.asked_end = &e->questions.asked;
	e->questions.queue_end = &e->questions.queue;
	e->snapshots.end = &e->snapshots.first;
	evc__redis_questions_init(e);
	evc__copy(e->reader.last, sizeof e->reader.last, "0-0");
	evc__redis_detect_init(e);
}

/* The engine is a member of the scope, which names a member that stays. */
static evc_status
hold_engine(struct redis_engine *e)
{
	const evc_member_opts late = { .flags = EVC_AFTER_STOP |
						EVC_BACKGROUND };
	char name[48];
	struct text t = evc__text_in(name, sizeof name);

	evc__text_fmt(&t, "redis %s", e->address.ns);
	return evc_hold_begin(e->scope, name, &late, &e->hold);
}

evc_status
evc__redis_open(const evc_engine_env *env, evc_engine **ret_engine)
{
	struct redis_engine *e;
	evc_status st;

	if (!(env->lease >= LEASE_LEAST && env->lease <= LEASE_MOST))
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "redis: a lease is %.1f to %.0f seconds, and "
				  "not %g",
				  LEASE_LEAST, LEASE_MOST, env->lease);
	e = evc__fork_watch() ? sync_alloc(1, sizeof *e) : NULL;
	if (e == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED, "redis: no memory");
	st = evc__redis_address(env->uri, env->place, env->options,
				&e->address);
	if (st < 0) {
		sync_free(e);
		return st;
	}
	sync_lock_init(&e->questions.lock);
	evc__notes_init(&e->notes, env->loop, evc__redis_message);
	e->notes.by_worker = true;
	fill_engine(e, env);
	st = hold_engine(e);
	if (st == 0) {
		evc__redis_away(e, sync_mono());
		/* The loop may tell the core something from here on. */
		*ret_engine = (evc_engine *)(void *)e;
		st = evc__notes_ring(&e->notes);
	}
	if (st < 0) {
		if (e->hold != 0)
			evc_hold_end(e->scope, e->hold);
		evc__redis_close((evc_engine *)(void *)e);
	}
	return st;
}
