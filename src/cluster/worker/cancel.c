/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a function to stop, from any thread: attempts up to a number,
 * single attempts, and a bell that a function sleeps on.
 * Called by: the engines; exec.c and worker.c.
 * Locks: worker.lock for the single attempts; cancel_upto, n_ones, bell and
 * sleepers are atomic.
 */
#include "base/array.h"
#include "base/fork.h"
#include "cluster/worker/exec.h"

bool
evc__worker_inherited(const struct worker *w)
{
	return evc__forked_since(w->fork_generation);
}

evc_status
evc__worker_check(const struct worker *w)
{
	if (!evc__worker_inherited(w))
		return 0;
	return evc_refuse(-EVC_FAILED_PRECONDITION,
			  "this is a fork child, %s is its parent's", w->name);
}

/* ---- cancel ---- */

void
evc__worker_ring(void *arg)
{
	struct worker *w = arg;

	/* The order here: the change, the bell, the look for sleepers.  A
	   sleeper counts itself, then looks at the bell, then at what may have
	   changed (evc_exec_wait_for_stop).  So at least one side sees the
	   other. */
	sync_add(&w->bell, 1);
	if (sync_load_sc(&w->sleepers) > 0)
		sync_futex_wake(&w->bell);
}

void
evc__worker_cancel(struct worker *w, uint64_t upto)
{
	uint64_t old = sync_load_sc(&w->cancel_upto);

	do
		if (old >= upto)
			return;
	while (!sync_cas(&w->cancel_upto, &old, upto));
	evc__worker_ring(w);
}

/* Lock held. */
static bool
add_cancelled(struct worker *w, uint64_t n)
{
	uint32_t used = sync_load_relaxed(&w->n_ones);

	if (!ARRAY_RESERVE(w->ones, used, w->ones_room, 1))
		return false;
	w->ones[used] = n;
	sync_store_sc(&w->n_ones, used + 1);
	return true;
}

void
evc__worker_cancel_one(struct worker *w, uint64_t n)
{
	bool added;

	sync_lock(&w->lock);
	/* Without memory the function runs to its end, as after a late
	   cancel. */
	added = add_cancelled(w, n);
	sync_unlock(&w->lock);
	if (added)
		evc__worker_ring(w);
}

bool
evc__worker_is_one(struct worker *w, uint64_t n, bool forget)
{
	uint32_t i, left = 0, used;
	bool found = false;

	sync_lock(&w->lock);
	used = sync_load_relaxed(&w->n_ones);
	for (i = 0; i < used; i++) {
		found |= w->ones[i] == n;
		if (!forget || w->ones[i] >= n)
			w->ones[left++] = w->ones[i];
	}
	if (left != used)
		sync_store_sc(&w->n_ones, left);
	sync_unlock(&w->lock);
	return found;
}

bool
evc__worker_is_cancelled(struct worker *w, uint64_t n)
{
	/* Acquire, with the operations above: work done before the cancel is
	   seen.  No more is needed, because a sleeper has the bell. */
	return n <= sync_load(&w->cancel_upto) ||
	       (sync_load(&w->n_ones) > 0 && !evc__worker_inherited(w) &&
		evc__worker_is_one(w, n, false));
}
