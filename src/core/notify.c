/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telling: the walk over the listeners, and the ring that joins hear.
 *
 * Listeners stand in slots that are written under the lock and read without:
 * chunks are only ever added, so a walker never meets memory that went away.
 * Who leaves writes NULL into its slot and waits for a moment without walkers;
 * afterwards nobody can be on the way to it.  A walk is signal-safe.
 */
#include "core/core.h"

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

/* Inside the walkers, cancellation off. */
static void
walk(evc_coord *c, bool joins_only)
{
	struct evc__chunk *k = &c->chunk;
	unsigned i;

	for (; k != NULL; k = sync_load(&k->next))
		for (i = 0; i < CHUNK_SLOTS; i++) {
			struct evc__listener *l = sync_load_sc(&k->slot[i]);

			if (l != NULL && (!joins_only ||
					  sync_load_sc(&l->n_joins) > 0))
				l->tell(l);
		}
}

static void
ring_sleepers(evc_coord *c)
{
	/* A join counts itself, then looks at the state; we changed the state,
	   then look at the count. */
	if (sync_load_sc(&c->n_sleepers) > 0) {
		sync_add(&c->join_seq, 1);
		sync_futex_wake(&c->join_seq);
	}
}

void
evc__ring(evc_coord *c)
{
	ring_sleepers(c);
	if (sync_load_sc(&c->n_loop_joins) > 0) {
		int old = cancel_off();

		evc__walk_enter(&c->walkers);
		walk(c, true);
		evc__walk_leave(&c->walkers);
		pthread_setcancelstate(old, NULL);
	}
}

void
evc__tell_all(evc_coord *c)
{
	uint64_t w = sync_load_sc(&c->word);
	uint32_t stop = WORD_STOP_NUMBER(w);

	if (!(w & WORD_FLAG) || sync_load_sc(&c->mark) == stop)
		return;
	evc__wake_waiters(c);
	ring_sleepers(c);
	if (sync_load_sc(&c->n_listeners) > 0) {
		int old = cancel_off();

		evc__walk_enter(&c->walkers);
		/* Inside: a clear waits for us from here on. */
		w = sync_load_sc(&c->word);
		if ((w & WORD_FLAG) && WORD_STOP_NUMBER(w) == stop &&
		    sync_load_sc(&c->mark) != stop)
			walk(c, false);
		evc__walk_leave(&c->walkers);
		pthread_setcancelstate(old, NULL);
	}
	/* Late, after a clear, this names an old stop and says nothing of the
	   present one; at worst that one is walked once more. */
	sync_store_sc(&c->mark, stop);
}

bool
evc__listen(evc_coord *c, struct evc__listener *l)
{
	struct evc__chunk *k = &c->chunk, *more;
	unsigned i;

	for (;;) {
		for (i = 0; i < CHUNK_SLOTS; i++)
			if (sync_load(&k->slot[i]) == NULL) {
				sync_add(&c->n_listeners, 1);
				sync_store_sc(&k->slot[i], l);
				return true;
			}
		more = sync_load(&k->next);
		if (more == NULL) {
			more = sync_alloc(1, sizeof *more);
			if (more == NULL)
				return false;
			sync_store(&k->next, more);
		}
		k = more;
	}
}

void
evc__unlisten(evc_coord *c, struct evc__listener *l)
{
	struct evc__chunk *k = &c->chunk;
	unsigned i;

	for (; k != NULL; k = sync_load(&k->next))
		for (i = 0; i < CHUNK_SLOTS; i++)
			if (sync_load(&k->slot[i]) == l) {
				sync_store_sc(&k->slot[i], NULL);
				sync_sub(&c->n_listeners, 1);
				evc__walk_quiet(&c->walkers);
				return;
			}
}
