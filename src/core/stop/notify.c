/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk and the ring.  The walk of a stop calls tell() of each listener of a
 * coordinator and of the scopes below.  A ring wakes the joins of a coordinator
 * and of all coordinators above.  Listeners have slots in a table; the lock
 * guards all writes to the slots, and walks read the slots without the lock.
 * To remove a listener, evc__unlisten writes NULL into the slot and waits until
 * no reader is inside; afterwards no walk can reach the listener.  A walk is
 * signal-safe: a walk takes no lock, and an array of bounded size replaces
 * recursion.
 *
 * Called by: requests, drains, clears, and each end of a member, for joins.
 * Locks: walks take none; evc__listen and evc__unlisten need the coordinator's
 * lock.  The atomics that order a walk: stop.readers, stop.walked and the word.
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

/* The state of a walk in a coordinator.  A walk has an array of these, the
   first for the coordinator where the walk began, the last for the scope where
   the walk is now. */
struct level {
	evc_coord *c;
	unsigned kind; /* LISTENER_KINDS: no listener is left */
	struct notify_chunk *chunk; /* NULL: no listener of this kind is left */
	unsigned next; /* index of the next slot in the chunk */
	uint32_t stop; /* number of the stop of this walk */
};

/* Continue a walk with the first listener of a kind. */
static void
begin_kind(struct level *v, unsigned kind)
{
	v->kind = kind;
	v->chunk = kind < LISTENER_KINDS ?
		       sync_load_sc(&v->c->stop.listeners[kind].first) :
		       NULL;
	v->next = 0;
}

/* The next listener of the present kind, or NULL. */
static struct evc__listener *
next_of_kind(struct level *v)
{
	struct evc__listener *l;

	while (v->chunk != NULL) {
		if (v->next == v->chunk->n) {
			v->chunk = sync_load_sc(&v->chunk->next);
			v->next = 0;
			continue;
		}
		l = sync_load_sc(&v->chunk->slot[v->next]);
		v->next++;
		if (l != NULL)
			return l;
	}
	return NULL;
}

/* The next listener of any kind, or NULL. */
static struct evc__listener *
next_listener(struct level *v)
{
	struct evc__listener *l = NULL;

	while (v->kind < LISTENER_KINDS && (l = next_of_kind(v)) == NULL)
		begin_kind(v, v->kind + 1);
	return l;
}

/* ---- the ring ---- */

/* Wake the joins that sleep on join_seq. */
static void
ring_sleepers(evc_coord *c)
{
	/* A join raises n_sleepers before the join looks at the state; a
	   ringing thread changes the state before this load of n_sleepers.  So
	   the join sees the change, or this thread sees the join. */
	if (sync_load_sc(&c->stop.n_sleepers) > 0) {
		sync_add(&c->stop.join_seq, 1);
		sync_futex_wake(&c->stop.join_seq);
	}
}

/* Ring the listeners with a join or run in progress. */
static void
ring_loops(evc_coord *c)
{
	struct level v = { .c = c };
	struct evc__listener *l;
	int old = cancel_off();

	evc__readers_enter(&c->stop.readers);
	begin_kind(&v, LISTENS_JOINS);
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
		/* The scope is marked before the parent rings: a join of the
		   parent that wakes then finds the scope. */
		evc__notify_mark(&c->stop.up.at);
	}
}

/* ---- the stop ---- */

/* Begin the walk of c's stop in *v.  false: c has no stop, or the walk of this
   stop is complete. */
static bool
enter_level(struct level *v, evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word);

	v->c = c;
	begin_kind(v, LISTENER_KINDS);
	v->stop = WORD_STOP_NUMBER(w);
	if (!(w & WORD_FLAG) || sync_load_sc(&c->stop.walked) == v->stop)
		return false;
	evc__wake_waiters(c);
	ring_sleepers(c);
	if (sync_load_sc(&c->stop.n_listeners) == 0) {
		sync_store_sc(&c->stop.walked, v->stop);
		return false;
	}
	evc__readers_enter(&c->stop.readers);
	/* A clear of c waits for threads inside `readers`, so this second look
	   at the word is valid until leave_level. */
	w = sync_load_sc(&c->word);
	if ((w & WORD_FLAG) && WORD_STOP_NUMBER(w) == v->stop &&
	    sync_load_sc(&c->stop.walked) != v->stop)
		begin_kind(v, LISTENS_JOINS);
	return true;
}

/* The walk of c's stop is complete. */
static void
leave_level(struct level *v)
{
	evc__readers_leave(&v->c->stop.readers);
	/* If a clear has ended this stop meanwhile, the store puts an old
	   number into `walked`.  The present stop then is walked once more,
	   without harm. */
	sync_store_sc(&v->c->stop.walked, v->stop);
}

/* Wake the joins above c: these joins drive the phases of the scopes, and set
   the time limit of c. */
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
		/* Another thread that has completed the walk of this
		   coordinator meanwhile has told the scopes, too. */
		else if (sync_load_sc(&v->c->stop.walked) != v->stop &&
			 evc__scope_ask(l->scope, v->stop) &&
			 enter_level(v + 1, l->scope))
			v++;
	}
	pthread_setcancelstate(old, NULL);
	ring_above(c);
}

/* ---- walks that do not set `walked`: drains, and rings below ---- */

enum walk_down {
	WALK_DRAIN, /* tell all listeners of c and of all scopes below */
	WALK_ALL,   /* ring the loops of c and of all scopes below */
	WALK_JOINS  /* ring, only in the scopes below c, the listeners with
		       n_joins above 0 */
};

static void
walk_down(evc_coord *c, enum walk_down walk)
{
	bool drain = walk == WALK_DRAIN;
	struct level level[EVC__DEPTH_MOST + 1], *v = level;
	struct evc__listener *l;
	int old = cancel_off();

	evc__readers_enter(&c->stop.readers);
	*v = (struct level){ .c = c };
	begin_kind(v, LISTENS_JOINS);
	for (;;) {
		l = next_listener(v);
		if (l == NULL) {
			evc__readers_leave(&v->c->stop.readers);
			if (v == level)
				break;
			ring_sleepers(v->c);
			v--;
		} else if (l->tell == NULL) {
			/* A clear has taken back the drain of this coordinator.
			   The clear waits for this walk to end, and then takes
			   back the drain of each scope. */
			if (drain && !(sync_load_sc(&v->c->word) &
				       (WORD_DRAIN | WORD_FLAG)))
				continue;
			if (drain)
				sync_or(&l->scope->word, WORD_DRAIN);
			*++v = (struct level){ .c = l->scope };
			evc__readers_enter(&v->c->stop.readers);
			begin_kind(v, LISTENS_JOINS);
		} else if (walk != WALK_JOINS ||
			   (v != level && sync_load_sc(&l->n_joins) > 0))
			l->tell(l);
	}
	pthread_setcancelstate(old, NULL);
}

void
evc__tell_drain(evc_coord *c)
{
	walk_down(c, WALK_DRAIN);
	evc__ring(c);
}

void
evc__ring_below(evc_coord *c)
{
	walk_down(c, WALK_JOINS);
}

void
evc__ring_all(evc_coord *c)
{
	walk_down(c, WALK_ALL);
}

/* ---- the table ---- */

/* The table for listeners of this kind. */
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
	/* n_listeners is raised before the listener has its slot, because a
	   walk skips the table when n_listeners is 0. */
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
