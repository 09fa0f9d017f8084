/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telling: the walk over the listeners and down the scopes, and the ring that
 * joins hear.  Listeners stand in slots that are written under the lock and
 * read without.  A listener that leaves writes NULL into its slot and waits for
 * a moment without readers; afterwards no walk can reach the listener.  A walk
 * is signal-safe: no lock, no recursion, a stack of its own of bounded depth.
 *
 * Called by: requests, drains, clears, and each end that a join may wait for.
 * Locks: walks take none; evc__listen and evc__unlisten need the coordinator's
 * lock.  The atomics that order a walk: stop.readers, stop.mark and the word.
 */
#include "core/core.h"
#include "core/stop/scopes.h"

/* ev_async_send writes to a descriptor, and that write is a cancellation point:
   a thread cancelled there would leave libev's "pending" mark set, and no later
   send would wake the loop. */
static int
cancel_off(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

/* The state of a walk in one coordinator. */
struct level {
	evc_coord *c;
	unsigned kind; /* LISTENER_KINDS: the walk of c is complete */
	struct notify_chunk *k;
	unsigned i;
	uint32_t stop; /* the number of the stop that is told */
};

static void
set_out(struct level *v, unsigned kind)
{
	v->kind = kind;
	v->k = kind < LISTENER_KINDS ?
		       sync_load_sc(&v->c->stop.listeners[kind].first) :
		       NULL;
	v->i = 0;
}

static struct evc__listener *
next_of_kind(struct level *v)
{
	struct evc__listener *l;

	while (v->k != NULL) {
		if (v->i == v->k->n) {
			v->k = sync_load_sc(&v->k->next);
			v->i = 0;
			continue;
		}
		l = sync_load_sc(&v->k->slot[v->i]);
		v->i++;
		if (l != NULL)
			return l;
	}
	return NULL;
}

static struct evc__listener *
next_listener(struct level *v)
{
	struct evc__listener *l = NULL;

	while (v->kind < LISTENER_KINDS && (l = next_of_kind(v)) == NULL)
		set_out(v, v->kind + 1);
	return l;
}

/* ---- the ring ---- */

static void
ring_sleepers(evc_coord *c)
{
	/* A join counts itself, then looks at the state; a ringing thread
	   changes the state, then looks at the count. */
	if (sync_load_sc(&c->stop.n_sleepers) > 0) {
		sync_add(&c->stop.join_seq, 1);
		sync_futex_wake(&c->stop.join_seq);
	}
}

static void
ring_loops(evc_coord *c)
{
	struct level v = { .c = c };
	struct evc__listener *l;
	int old = cancel_off();

	evc__readers_enter(&c->stop.readers);
	set_out(&v, LISTENS_JOINS);
	while ((l = next_of_kind(&v)) != NULL)
		if (sync_load_sc(&l->n_joins) > 0)
			l->tell(l);
	evc__readers_leave(&c->stop.readers);
	pthread_setcancelstate(old, NULL);
}

void
evc__ring(evc_coord *c)
{
	if (!evc__same_process(c))
		return;
	for (;; c = c->parent) {
		ring_sleepers(c);
		if (sync_load_sc(&c->stop.n_loop_joins) > 0)
			ring_loops(c);
		if (c->parent == NULL)
			return;
		/* The mark first, then the ring: the join above that wakes
		   finds this scope. */
		evc__notify_mark(&c->stop.up.at);
	}
}

/* ---- the stop ---- */

/* Begin the walk of c's stop; false: there is no stop, or its walk is
   complete. */
static bool
enter_level(struct level *v, evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word);

	v->c = c;
	set_out(v, LISTENER_KINDS);
	v->stop = WORD_STOP_NUMBER(w);
	if (!(w & WORD_FLAG) || sync_load_sc(&c->stop.mark) == v->stop)
		return false;
	evc__wake_waiters(c);
	ring_sleepers(c);
	if (sync_load_sc(&c->stop.n_listeners) == 0) {
		sync_store_sc(&c->stop.mark, v->stop);
		return false;
	}
	evc__readers_enter(&c->stop.readers);
	/* Inside: a clear waits for this walk from here on. */
	w = sync_load_sc(&c->word);
	if ((w & WORD_FLAG) && WORD_STOP_NUMBER(w) == v->stop &&
	    sync_load_sc(&c->stop.mark) != v->stop)
		set_out(v, LISTENS_JOINS);
	return true;
}

static void
leave_level(struct level *v)
{
	evc__readers_leave(&v->c->stop.readers);
	/* A late store, after a clear, names an old stop and says nothing of
	   the present one; at worst the present one is walked once more. */
	sync_store_sc(&v->c->stop.mark, v->stop);
}

/* Above c, joins in progress drive the phases and keep the budget of c. */
static void
ring_above(evc_coord *c)
{
	if (c->parent != NULL) {
		evc__notify_mark(&c->stop.up.at);
		evc__ring(c->parent);
	}
}

void
evc__tell_all(evc_coord *c)
{
	struct level level[EVC__DEPTH_MOST + 1], *v = level;
	struct evc__listener *l;
	int old;

	if (!enter_level(v, c)) {
		if (c->parent != NULL && evc_should_stop(c))
			ring_above(c);
		return;
	}
	old = cancel_off();
	for (;;) {
		l = next_listener(v);
		if (l == NULL) {
			leave_level(v);
			if (v == level)
				break;
			v--;
		} else if (l->tell != NULL)
			l->tell(l);
		/* A thread that has walked all of c meanwhile has told the
		   scopes too. */
		else if (sync_load_sc(&v->c->stop.mark) != v->stop &&
			 evc__scope_ask(l->scope, v->stop) &&
			 enter_level(v + 1, l->scope))
			v++;
	}
	pthread_setcancelstate(old, NULL);
	ring_above(c);
}

/* ---- the drain and changes for all below: without a mark ---- */

/* drain: tell all listeners, of c and below, of a drain; else ring, below c
   alone, the listeners that hear every ring. */
static void
walk_down(evc_coord *c, bool drain)
{
	struct level level[EVC__DEPTH_MOST + 1], *v = level;
	struct evc__listener *l;
	int old = cancel_off();

	evc__readers_enter(&c->stop.readers);
	*v = (struct level){ .c = c };
	set_out(v, LISTENS_JOINS);
	for (;;) {
		l = next_listener(v);
		if (l == NULL) {
			evc__readers_leave(&v->c->stop.readers);
			if (v == level)
				break;
			ring_sleepers(v->c);
			v--;
		} else if (l->tell == NULL) {
			/* The drain was taken back meanwhile: a clear waits for
			   this walk, and then takes the drain of the scopes
			   back. */
			if (drain && !(sync_load_sc(&v->c->word) &
				       (WORD_DRAIN | WORD_FLAG)))
				continue;
			if (drain)
				sync_or(&l->scope->word, WORD_DRAIN);
			*++v = (struct level){ .c = l->scope };
			evc__readers_enter(&v->c->stop.readers);
			set_out(v, LISTENS_JOINS);
		} else if (drain ||
			   (v != level && sync_load_sc(&l->n_joins) > 0))
			l->tell(l);
	}
	pthread_setcancelstate(old, NULL);
}

void
evc__tell_drain(evc_coord *c)
{
	walk_down(c, true);
	evc__ring(c);
}

void
evc__ring_below(evc_coord *c)
{
	walk_down(c, false);
}

/* ---- the table ---- */

static struct notify_set *
set_of(evc_coord *c, const struct evc__listener *l)
{
	return &c->stop.listeners[l->tell == NULL ? LISTENS_SCOPE :
			     l->joins	     ? LISTENS_JOINS :
					       LISTENS_STOP];
}

bool
evc__listen(evc_coord *c, struct evc__listener *l)
{
	/* The count first: a walk that reads 0 goes no further. */
	sync_add(&c->stop.n_listeners, 1);
	if (evc__notify_set_add(set_of(c, l), l, &l->at))
		return true;
	sync_sub(&c->stop.n_listeners, 1);
	return false;
}

void
evc__unlisten(evc_coord *c, struct evc__listener *l)
{
	if (l->at.k == NULL)
		return;
	evc__notify_set_remove(set_of(c, l), &l->at);
	sync_sub(&c->stop.n_listeners, 1);
	evc__readers_quiet(&c->stop.readers);
}
