/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job pool: its life and its stop.
 * Called by: the program (evc_pool_new, _free, _resize, _scope); the scope's
 * stop hook.
 * Locks: pool->lock, taken; crowd, limit and all counts are atomic.
 */
#include "pool/pool.h"

#include <math.h>
#include <limits.h>

#include "base/cpus.h"
#include "base/list.h"
#include "base/reserved.h"
#include "base/text.h"
#include "base/deadline.h"

#define CAPACITY 65536u
#define CAPACITY_MOST (1u << 24)

static _Atomic uint64_t n_pools; /* atomic: makers -> makers */

/* ---- the stop ---- */

/* Lock held. */
static void
close_pool(evc_pool *pool)
{
	struct pool_port *p;

	/* The mark, then the sweep: a submitter puts the job in, then looks at
	   the mark. */
	sync_or(&pool->crowd, CROWD_CLOSED);
	if (!evc_should_stop(pool->scope)) {
		/* The stop was taken back in between: jobs submitted now belong
		   to the new round. */
		sync_and(&pool->crowd, ~CROWD_CLOSED);
		return;
	}
	for (p = sync_load(&pool->ports); p != NULL; p = sync_load(&p->next)) {
		if (!pool->finish)
			evc__port_sweep(p);
		evc__ring_room(&p->foreign);
	}
	evc__crowd_wake_all(pool);
}

/* On the helper thread; a join that has seen the stop waits for this hook. */
static evc_status
close_at_stop(evc_coord *c, void *arg)
{
	evc_pool *pool = arg;

	(void)c;
	sync_lock(&pool->lock);
	close_pool(pool);
	sync_unlock(&pool->lock);
	evc__ports_ring(pool);
	return 0;
}

/* ---- life ---- */

static evc_status
check_pool_opts(const evc_pool_opts *o)
{
	const char *wrong = NULL;

	if (!RESERVED_IS_ZERO(o->reserved_))
		wrong = "reserved_ must be 0";
	if (o->n_threads > POOL_THREADS_MOST)
		wrong = "more than 1024 threads";
	else if (o->capacity > CAPACITY_MOST)
		wrong = "a capacity of more than 2^24";
	else if (isnan(o->idle) || o->idle < 0)
		wrong = "idle is no time";
	else if (o->flags & ~(unsigned)EVC_POOL_FINISH)
		wrong = "unknown flags";
	else if (o->thread_flags & ~(unsigned)EVC_KICK)
		wrong = "unknown thread_flags";
	else if (o->stack != 0 && o->stack < (size_t)PTHREAD_STACK_MIN)
		wrong = "the stack is too small";
	return wrong == NULL ? 0 :
			       evc_refuse(-EVC_INVALID_ARGUMENT,
					  "evc_pool_new: %s", wrong);
}

static void
set_up(evc_pool *pool, const char *name, const evc_pool_opts *o)
{
	uint64_t want = o->capacity != 0 ? o->capacity : CAPACITY, size = 1;

	while (size < want)
		size *= 2;
	pool->capacity = size;
	pool->idle_ns = o->idle > 0 ? evc__ns(o->idle) : SYNC_FOREVER;
	pool->stack = o->stack;
	pool->thread_flags = o->thread_flags;
	pool->finish = o->flags & EVC_POOL_FINISH;
	pool->body = evc__pool_thread;
	pool->number = sync_add(&n_pools, 1) + 1;
	pool->fork_generation = sync_load_relaxed(&evc__fork_generation);
	evc__copy_dots(pool->name, sizeof pool->name, name);
	sync_store_relaxed(&pool->limit,
			   o->n_threads != 0 ? o->n_threads :
					       evc__cpus(POOL_THREADS_MOST));
	sync_lock_init(&pool->lock);
}

static uint64_t
open_jobs(evc_pool *pool)
{
	struct pool_port *p;
	uint64_t n = 0;

	for (p = sync_load(&pool->ports); p != NULL; p = sync_load(&p->next))
		n += sync_load(&p->n_own) + sync_load_sc(&p->n_foreign);
	return n;
}

static void
destroy_pool(evc_pool *pool)
{
	struct pool_port *p, *next;
	uint32_t i;

	for (p = sync_load(&pool->ports); p != NULL; p = next) {
		next = sync_load(&p->next);
		evc__port_orphan(p);
	}
	for (i = 0; i < sync_load(&pool->n_seats); i++)
		sync_free(sync_load(&pool->seat[i]));
	sync_lock_destroy(&pool->lock);
	sync_free(pool);
}

static evc_status
pool_may_go(evc_pool *pool, const char *func)
{
	uint64_t n = open_jobs(pool);

	if (evc__pool_self() == pool)
		return evc_refuse(-EVC_FAILED_PRECONDITION,
				  "%s: on a thread of pool %s", func,
				  pool->name);
	return n == 0 ? 0 :
			evc_refuse(-EVC_FAILED_PRECONDITION,
				   "%s: pool %s: %llu jobs are not completed",
				   func, pool->name, (unsigned long long)n);
}

evc_status
evc_pool_free(evc_pool *pool)
{
	evc_join_opts o = { .grace = INFINITY };
	struct pool_port *p;
	evc_verdict v = { .n_stragglers = 0 };
	evc_status st;

	if (pool == NULL)
		return 0;
	st = evc__pool_check(pool, __func__);
	if (st == 0)
		st = pool_may_go(pool, __func__);
	if (st < 0)
		return st;
	/* The loops of the jobs may still be on the way out of the last
	   done. */
	for (p = sync_load(&pool->ports); p != NULL; p = sync_load(&p->next))
		evc__port_release_hold(p);
	(void)(evc_request_stop)(pool->scope, 0, "the pool is freed");
	/* The stop above may end first. */
	st = evc_join(pool->scope, &o, &v);
	if (st >= 0)
		st = evc_free(pool->scope);
	if (st < 0 && v.n_stragglers > 0)
		return evc_refuse(-EVC_DEADLINE_EXCEEDED, "evc_pool_free: %s",
				  v.error.text);
	if (st >= 0)
		destroy_pool(pool);
	return st < 0 ? st : 0;
}

/* The end of main. */
static evc_status
may_free(evc_part *p)
{
	return pool_may_go(LIST_OF(p, evc_pool, part), "evc_finish");
}

static evc_status
free_part(evc_part *p)
{
	return evc_pool_free(LIST_OF(p, evc_pool, part));
}

static evc_status
make_scope(evc_pool *pool, evc_coord *c)
{
	evc_scope_opts o = { .config.flags = EVC_NO_HOME,
			     .describe = evc__pool_report,
			     .arg = pool };
	evc_status st = evc_scope_new(c, pool->name, &o, &pool->scope);

	if (st < 0)
		return st;
	st = evc_on_stop(pool->scope, pool->name, close_at_stop, pool, NULL,
			 NULL);
	if (st < 0) {
		evc_free(pool->scope);
		return st;
	}
	evc_scope_ready(pool->scope);
	pool->part.may_free = may_free;
	pool->part.free_object = free_part;
	pool->part.scope = pool->scope;
	pool->part.ends_members = true;
	(void)evc_part_add(c, &pool->part);
	return 0;
}

static evc_status
make_pool(evc_coord *c, const char *name, const evc_pool_opts *o,
	  evc_pool **ret_pool)
{
	evc_status st = check_pool_opts(o);
	evc_pool *pool;

	if (name == NULL || name[0] == '\0')
		name = "pool";
	if (st == 0 && (c == NULL || ret_pool == NULL))
		st = evc_refuse(-EVC_INVALID_ARGUMENT,
				"evc_pool_new: no coordinator, or no place for "
				"the pool");
	if (st == 0 && evc_should_stop(c))
		st = evc_refuse(-EVC_CANCELLED,
				"evc_pool_new: a stop was requested");
	if (st < 0)
		return st;
	pool = sync_alloc_aligned(POOL_LINE, sizeof *pool);
	if (pool == NULL)
		return evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				  "evc_pool_new: no memory");
	set_up(pool, name, o);
	st = make_scope(pool, c);
	if (st < 0) {
		sync_lock_destroy(&pool->lock);
		sync_free(pool);
		return st;
	}
	*ret_pool = pool;
	return 0;
}

evc_status
evc_pool_new(evc_coord *c, const char *name, const evc_pool_opts *opts,
	     evc_pool **ret_pool)
{
	static const evc_pool_opts none;

	return evc_refuse_setup(c, __func__,
				make_pool(c, name, opts != NULL ? opts : &none,
					  ret_pool));
}

/* ---- on the way ---- */

evc_status
evc_pool_resize(evc_pool *pool, unsigned n_threads)
{
	evc_status st = evc__pool_check(pool, __func__);

	if (st < 0)
		return st;
	if (n_threads == 0 || n_threads > POOL_THREADS_MOST)
		return evc_refuse(-EVC_INVALID_ARGUMENT,
				  "evc_pool_resize: %u threads", n_threads);
	sync_lock(&pool->lock);
	sync_store_sc(&pool->limit, n_threads);
	sync_store_sc(&pool->shrink, 1);
	evc__crowd_wake_all(pool);
	if (evc__pool_has_work(pool))
		evc__crowd_call(pool, true);
	sync_unlock(&pool->lock);
	return 0;
}

evc_coord *
evc_pool_scope(const evc_pool *pool)
{
	return pool != NULL ? pool->scope : NULL;
}
