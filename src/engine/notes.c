/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes: requests of any thread to an engine, made under the cluster's lock,
 * until the engine's loop reads them.  At most one message is on its way.
 * Called by: the cluster, as operations of the engines "processes" and "redis";
 * these engines on their loops.
 * Locks: notes.lock, below the cluster's; `wake` and `n_kept` are atomic.
 */
#include "engine/notes.h"

#include "base/array.h"

void
evc__notes_init(struct notes *n, evc_loop_ref *loop,
		void (*fn)(evc_message *m, evc_status why))
{
	sync_lock_init(&n->lock);
	n->loop = loop;
	n->message.fn = fn;
	n->message.flags = EVC_AFTER_STOP;
}

void
evc__notes_destroy(struct notes *n)
{
	evc__asked_free(&n->asked);
	sync_lock_destroy(&n->lock);
}

/* ---- any thread ---- */

static struct notes *
notes_of(evc_engine *engine)
{
	return (struct notes *)(void *)engine;
}

/* Lock held.  Without a loop no request has any effect. */
static evc_status
ring_loop(struct notes *n)
{
	evc_status st;

	if (n->posted || n->shut)
		return 0;
	st = evc_post_message(n->loop, &n->message);
	n->posted = st == 0;
	return st;
}

evc_status
evc__notes_ring(struct notes *n)
{
	evc_status st;

	sync_lock(&n->lock);
	st = ring_loop(n);
	sync_unlock(&n->lock);
	return st;
}

/* Lock held.  false: no memory. */
static bool
note_worker(struct noted_workers *of, uint32_t worker)
{
	/* One worker is often noted again and again. */
	if (of->n > 0 && of->at[of->n - 1] == worker)
		return true;
	if (!ARRAY_RESERVE(of->at, of->n, of->room, 1))
		return false;
	of->at[of->n++] = worker;
	return true;
}

void
evc__notes_wake(evc_engine *engine, int worker)
{
	struct notes *n = notes_of(engine);

	if (n->by_worker && worker >= 0) {
		sync_lock(&n->lock);
		n->asked.wake_all |=
			!note_worker(&n->asked.wakes, (unsigned)worker);
		ring_loop(n);
		sync_unlock(&n->lock);
	} else if (sync_xchg(&n->wake, 1) == 0) {
		evc__notes_ring(n);
	}
}

void
evc__notes_cancel(evc_engine *engine, uint64_t upto)
{
	struct notes *n = notes_of(engine);

	sync_lock(&n->lock);
	if (upto > n->asked.cancel_upto)
		n->asked.cancel_upto = upto;
	ring_loop(n);
	sync_unlock(&n->lock);
}

void
evc__notes_cancel_one(evc_engine *engine, unsigned worker, uint64_t n)
{
	struct notes *notes = notes_of(engine);
	struct asked *a = &notes->asked;

	sync_lock(&notes->lock);
	if (ARRAY_RESERVE(a->ones, a->n_ones, a->ones_room, 2)) {
		a->ones[a->n_ones++] = worker;
		a->ones[a->n_ones++] = n;
	}
	ring_loop(notes);
	sync_unlock(&notes->lock);
}

void
evc__notes_kill(evc_engine *engine, unsigned worker)
{
	struct notes *n = notes_of(engine);

	sync_lock(&n->lock);
	/* Without memory the worker is not killed, and its function runs to its
	   end. */
	(void)note_worker(&n->asked.kills, worker);
	ring_loop(n);
	sync_unlock(&n->lock);
}

int
evc__notes_stack(evc_engine *engine, unsigned worker)
{
	struct notes *n = notes_of(engine);
	evc_status st = -EVC_UNAVAILABLE;

	sync_lock(&n->lock);
	if (!n->shut && note_worker(&n->asked.stacks, worker))
		st = ring_loop(n);
	sync_unlock(&n->lock);
	return st < 0 ? -1 : 0;
}

void
evc__notes_forget(evc_engine *engine, uint64_t id)
{
	struct notes *n = notes_of(engine);
	struct asked *a = &n->asked;

	/* The usual case.  The loop raises n_kept before the result is told, so
	   before anybody can know that the result is not needed. */
	if (sync_load_sc(&n->n_kept) == 0)
		return;
	sync_lock(&n->lock);
	/* Without memory the worker drops the result later, for lack of
	   room. */
	if (ARRAY_RESERVE(a->forgets, a->n_forgets, a->forgets_room, 1))
		a->forgets[a->n_forgets++] = id;
	ring_loop(n);
	sync_unlock(&n->lock);
}

void
evc__notes_leave(evc_engine *engine)
{
	struct notes *n = notes_of(engine);

	sync_lock(&n->lock);
	n->asked.leave = true;
	ring_loop(n);
	sync_unlock(&n->lock);
}

void
evc__notes_resize(evc_engine *engine, unsigned n)
{
	struct notes *notes = notes_of(engine);

	sync_lock(&notes->lock);
	notes->asked.n_wanted = n;
	if (n > notes->asked.n_most)
		notes->asked.n_most = n;
	ring_loop(notes);
	sync_unlock(&notes->lock);
}

/* ---- the loop ---- */

struct asked
evc__notes_asked(struct notes *n)
{
	struct asked now;

	sync_lock(&n->lock);
	now = n->asked;
	n->asked = (struct asked){ .leave = now.leave,
				   .cancel_upto = now.cancel_upto };
	n->posted = false;
	sync_unlock(&n->lock);
	return now;
}

void
evc__asked_free(struct asked *a)
{
	sync_free(a->ones);
	sync_free(a->forgets);
	sync_free(a->kills.at);
	sync_free(a->stacks.at);
	sync_free(a->wakes.at);
	*a = (struct asked){ .leave = false };
}

bool
evc__notes_shut(struct notes *n)
{
	bool shut;

	sync_lock(&n->lock);
	shut = !n->posted;
	n->shut = shut;
	sync_unlock(&n->lock);
	return shut;
}
