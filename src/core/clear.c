/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_clear_stop: the end of a round and the beginning of the next.
 *
 * CLOSING makes everything that comes in meanwhile show: a begin, a
 * registration or a request takes it away, and the CAS that swaps the word then
 * fails.  The walk of the old stop is completed and all walkers have left
 * before the word changes, so nothing of it reaches into the new round.
 */
#include "core/join.h"

/* Lock held.  Is a join waiting that has no answer yet? */
static bool
join_waits(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->joins)
		if (!LIST_OF(n, struct evc__join, node)->answered)
			return true;
	return false;
}

static void
forget_round(evc_coord *c, bool stopped)
{
	sync_store(&c->joined_mark, 0);
	if (!stopped) {
		evc__slots_forget_late(c);
		return;
	}
	evc__hurry_forget(c, WORD_STOPS(sync_load(&c->word)));
	c->n_ended = 0;
	c->seen_ns = 0;
	c->lost_logged = 0;
}

/* Lock held. */
static evc_status
clear(evc_coord *c)
{
	const struct evc__member *me = evc__member_self(c);
	char names[96];
	uint64_t w, next;

	for (;;) {
		w = sync_load_sc(&c->word);
		if (!(w & (WORD_FLAG | WORD_JOINED)))
			return 0;
		if (!(w & WORD_FLAG)) {
			if (!sync_cas(&c->word, &w, w & ~WORD_JOINED))
				continue;
			forget_round(c, false);
			return 0;
		}
		if (join_waits(c))
			return evc__refuse(-EVC_FAILED_PRECONDITION,
					   "evc_clear_stop: a join waits");
		evc__tell_all(c);
		if (!sync_cas(&c->word, &w, w | WORD_CLOSING))
			continue;
		w |= WORD_CLOSING;
		/* The count, not the lists: who begins adds to it before it
		   looks for CLOSING. */
		if (sync_load_sc(&c->alive) > (me != NULL)) {
			evc__names(c, me, false, 0, names, sizeof names);
			sync_and(&c->word, ~WORD_CLOSING);
			return evc__refuse(-EVC_FAILED_PRECONDITION,
					   "evc_clear_stop: still alive: %s",
					   names);
		}
		evc__walk_quiet(&c->walkers);
		next = (uint64_t)((WORD_STOPS(w) + 1) & WORD_STOPS_MASK) << 4;
		if (sync_cas(&c->word, &w, next))
			break;
	}
	forget_round(c, true);
	/* Waiters of the old stop see that its number has moved; the stop
	   descriptor must not stay readable. */
	evc__settle(c);
	return 0;
}

evc_status
evc_clear_stop(evc_coord *c)
{
	evc_status st = evc__check(c, __func__);

	if (st < 0)
		return st;
	evc__log_errors(c);
	sync_lock(&c->lock);
	/* Those that have ended but were not joined yet do not live. */
	evc__members_refresh(c);
	st = clear(c);
	sync_unlock(&c->lock);
	return st;
}
