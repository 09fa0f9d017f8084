/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of a pool: the loop of each port, and for how long; how a port is
 * emptied, and the hold that keeps joins waiting for the port.  A port is bound
 * to a loop while jobs are under way, and then until another loop needs a port.
 * So a pool has as many ports as loops had jobs at the same time.  A reactor's
 * handle tells the reactor from a later reactor at the same address.
 * Called by: all other files of src/pool.
 * Locks: the pool's, held, to find or bind a port; port.lock for the hold;
 * called, refs and ending are atomic.
 */
#include "pool/pool.h"

#include "base/deadline.h"
#include "base/self.h"

/* The port is idle: only the pool has a reference, and no thread is about to
   ring, as a ringing thread holds `called`. */
static bool
take_idle(struct pool_port *p)
{
	if (sync_load_sc(&p->refs) != 1 ||
	    (sync_load(&p->ending) & PORT_GONE) || sync_xchg(&p->called, 1) != 0)
		return false;
	/* Another thread may have held `called` in between, and found the loop
	   gone: then this thread has a reference until it is through. */
	if (sync_load_sc(&p->refs) == 1 &&
	    !(sync_load(&p->ending) & PORT_GONE))
		return true;
	sync_store_sc(&p->called, 0);
	return false;
}

/* Does a join of the pool's parent wait for members of c? */
static bool
hears_of(const evc_pool *pool, const evc_coord *c)
{
	const evc_coord *parent = evc_scope_parent(pool->scope);

	for (; c != NULL; c = evc_scope_parent(c))
		if (c == parent)
			return true;
	return false;
}

static struct pool_port *
make_port(evc_pool *pool)
{
	struct pool_port *p = sync_alloc_aligned(POOL_LINE, sizeof *p);

	if (p == NULL)
		return NULL;
	sync_lock_init(&p->lock);
	p->pool = pool;
	p->finish = pool->finish;
	p->fork_generation = pool->fork_generation;
	p->message.flags = p->wake.flags = EVC_AFTER_STOP;
	/* until the port is bound */
	sync_store_relaxed(&p->called, 1);
	sync_store_relaxed(&p->refs, 1);
	if (!evc__ring_init(&p->own, pool->capacity) ||
	    !evc__ring_init(&p->foreign, pool->capacity)) {
		evc__port_drop(p);
		return NULL;
	}
	sync_store_relaxed(&p->next, sync_load_relaxed(&pool->ports));
	sync_store_sc(&pool->ports, p);
	return p;
}

static void
bind_to(struct pool_port *p, evc_reactor *r, evc_loop_ref *loop)
{
	evc_loop_release(p->loop);
	p->r = r;
	p->loop = loop;
	p->c = evc_reactor_coord(r);
	p->apart = !hears_of(p->pool, p->c);
	sync_store_relaxed(&p->tid, 0);
	sync_store_relaxed(&p->ending, 0);
	/* The next holder of `called` sees the new loop. */
	sync_store_sc(&p->called, 0);
}

struct pool_port *
evc__port_of(evc_pool *pool, evc_reactor *r, const char *func,
	     evc_status *ret_st)
{
	evc_loop_ref *loop = evc_loop_of(r);
	struct pool_port *p, *idle = NULL;

	for (p = sync_load(&pool->ports); p != NULL; p = sync_load(&p->next))
		if (p->r == r && p->loop == loop)
			break;
	if (p != NULL) {
		evc_loop_release(loop);
		*ret_st = 0;
		if (sync_load(&p->ending) & PORT_GONE)
			*ret_st = evc_refuse(-EVC_NOT_FOUND,
					     "%s: the loop is gone", func);
		return *ret_st < 0 ? NULL : p;
	}
	for (p = sync_load(&pool->ports); p != NULL && idle == NULL;
	     p = sync_load(&p->next))
		if (take_idle(p))
			idle = p;
	p = idle != NULL ? idle : make_port(pool);
	if (p == NULL) {
		evc_loop_release(loop);
		*ret_st = evc_refuse(-EVC_RESOURCE_EXHAUSTED,
				     "%s: no memory for a loop's jobs", func);
		return NULL;
	}
	bind_to(p, r, loop);
	return p;
}

void
evc__port_drop(struct pool_port *p)
{
	uint32_t i;

	if (sync_sub(&p->refs, 1) != 1)
		return;
	for (i = 0; i < POOL_BOXES; i++)
		sync_free(sync_load_relaxed(&p->box[i]));
	evc__ring_fini(&p->own);
	evc__ring_fini(&p->foreign);
	evc_loop_release(p->loop);
	sync_lock_destroy(&p->lock);
	sync_free(p);
}

/* ---- what has not begun, and what is over ---- */

void
evc__port_push(struct pool_port *p, evc_job *first, evc_job *last)
{
	evc_job *next = sync_load_relaxed(&p->chain);

	do
		last->next_ = next;
	while (!sync_cas(&p->chain, &next, first));
}

void
evc__port_sweep(struct pool_port *p)
{
	struct pool_ring *rings[2] = { &p->own, &p->foreign };
	evc_job *first, *last, *job;
	uint64_t n;
	int i;

	for (i = 0; i < 2; i++) {
		first = evc__ring_sweep(rings[i], &n);
		if (first == NULL)
			continue;
		for (job = last = first; job != NULL; job = job->next_) {
			evc__job_over(job, EVC_CANCELLED);
			last = job;
		}
		sync_add(&p->n_cancelled, n);
		evc__port_push(p, first, last);
	}
}

void
evc__port_lost(struct pool_port *p)
{
	sync_or(&p->ending, PORT_GONE);
	evc__port_sweep(p);
}

/* ---- what keeps joins waiting ---- */

evc_status
evc__port_take_hold(struct pool_port *p)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_status st = 0;

	sync_lock(&p->lock);
	if (p->hold == 0)
		st = evc_hold_begin(p->pool->scope, "jobs", &late, &p->hold);
	sync_unlock(&p->lock);
	return st;
}

void
evc__port_release_hold(struct pool_port *p)
{
	if (!p->apart)
		return;
	sync_lock(&p->lock);
	if (p->hold != 0 && sync_load_sc(&p->n_foreign) == 0 &&
	    sync_load_relaxed(&p->n_own) == 0) {
		evc_hold_end(p->pool->scope, p->hold);
		p->hold = 0;
	}
	sync_unlock(&p->lock);
}

/* The task has ended. */
static void
deactivate_port(struct pool_port *p)
{
	/* Not the last reference: the caller has one. */
	if (sync_xchg(&p->active, 0) != 0)
		sync_sub(&p->refs, 1);
}

void
evc__port_settle(struct pool_port *p)
{
	if (sync_load_relaxed(&p->n_own) != 0 ||
	    sync_load_sc(&p->n_foreign) != 0)
		return;
	evc__port_release_hold(p);
	if (sync_load_relaxed(&p->active) != evc__tid())
		return;
	evc_task_end(&p->task);
	deactivate_port(p);
}

/* ---- the end of the pool ---- */

void
evc__port_orphan(struct pool_port *p)
{
	evc__port_release_hold(p);
	if ((sync_load(&p->ending) & PORT_GONE) &&
	    sync_load(&p->active) != 0) {
		/* The task's own thread is about to drop the task, unless the
		   caller is this thread. */
		if (sync_load(&p->active) == evc__tid())
			evc_task_end(&p->task);
		while (sync_load((_Atomic(evc_reactor *) *)(void *)
				 &p->task.reactor_) != NULL)
			evc__nap(1000000);
		deactivate_port(p);
	}
	evc__port_drop(p);
}
