/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children that libev's default loop reaps; see reaped.h.
 * Called by: members/child.c; the loop_waker of a default loop.
 * Locks: its own, a leaf.  Atomics: n_loops.
 */
#include "core/core.h"
#include "core/loop/reaped.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list expected = { &expected, &expected }; /* lock */
/* atomic: the threads of default loops -> any thread */
static _Atomic uint32_t n_loops;

void
evc__reaped_expect(struct evc__reaped *e, pid_t pid)
{
	*e = (struct evc__reaped){ .pid = pid };
	e->fork_generation = sync_load_relaxed(&evc__fork_generation);
	sync_lock(&lock);
	list_append(&expected, &e->node);
	sync_unlock(&lock);
}

void
evc__reaped_forget(struct evc__reaped *e)
{
	if (e->pid == 0 || evc__forked_since(e->fork_generation))
		return;
	sync_lock(&lock);
	list_remove(&e->node);
	sync_unlock(&lock);
	e->pid = 0;
}

bool
evc__reaped_told(struct evc__reaped *e, siginfo_t *ret)
{
	bool told;

	sync_lock(&lock);
	told = e->told;
	sync_unlock(&lock);
	if (told)
		evc__reap_status(e->status, ret);
	return told;
}

bool
evc__reaped_may_be_told(void)
{
	return sync_load(&n_loops) > 0;
}

/* ---- the watchers ---- */

void
evc__reaped_watch(ev_child *w, struct ev_loop *loop,
		  void (*on_child)(struct ev_loop *loop, ev_child *w,
				   int revents))
{
	ev_child_init(w, on_child, 0, 0);
	if (!ev_is_default_loop(loop))
		return;
	ev_child_start(loop, w);
	ev_unref(loop);
	sync_add(&n_loops, 1);
}

void
evc__reaped_unwatch(ev_child *w, struct ev_loop *loop, bool inherited)
{
	if (!ev_is_active(w))
		return;
	ev_ref(loop);
	ev_child_stop(loop, w);
	if (!inherited)
		sync_sub(&n_loops, 1);
}

void
evc__reaped_note(const ev_child *w)
{
	struct evc__reaped *e;
	struct list *n, *tmp;

	sync_lock(&lock);
	LIST_EACH(n, tmp, &expected) {
		e = LIST_OF(n, struct evc__reaped, node);
		if (e->pid != w->rpid || e->told)
			continue;
		e->status = w->rstatus;
		e->told = true;
	}
	sync_unlock(&lock);
}

void
evc__reaped_inherited(void)
{
	sync_lock_init(&lock);
	list_init(&expected);
	sync_store(&n_loops, 0);
}
