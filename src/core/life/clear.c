/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_clear_stop: the end of a round and the beginning of the next.  The clear
 * sets CLOSING; a new member, a registration or a request removes CLOSING, and
 * then the CAS that swaps the word fails.  Before the swap the walk of the old
 * stop is complete and all readers have left, so nothing of the old stop
 * reaches the new round.
 *
 * Called by: the public call.
 * Locks: the coordinator's, then the scopes'.  Atomics: the word,
 * cleared_by_parent, stop.readers.
 */
#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/join/join.h"
#include "core/status/trace.h"

#include "base/text.h"

static evc_status clear_stop(evc_coord *c, bool from_above);

/* Lock held: is a join in progress without an answer? */
static bool
join_waits(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->join.all) {
		const struct evc__join *j = LIST_OF(n, struct evc__join, node);

		if (!j->answered && !j->internal)
			return true;
	}
	return false;
}

static void
forget_stop(evc_coord *c)
{
	evc__cut_grace_forget(c, WORD_STOPS(sync_load(&c->word)));
	c->member.n_ended = 0;
	sync_store(&c->member.n_ended_below, 0);
	c->join.seen_ns = 0;
	c->join.spent_ns = 0;
	c->join.put_off_ns = c->join.put_off_at = 0;
	c->log.n_lost = 0;
	evc__escalation_forget(c);
}

/* Clear a round without a stop: take back the mark of a join (JOINED), the
   reports of scopes and a drain.  The number of stops stays, because a change
   would tell waiters that a stop has been and gone.  false: the word has
   changed meanwhile. */
static bool
clear_unstopped(evc_coord *c, uint64_t w)
{
	uint64_t next = w & ~(WORD_JOINED | WORD_DRAIN | WORD_CLOSING |
			      WORD_ERR(255, 255));

	if (!sync_cas(&c->word, &w, next))
		return false;
	if (WORD_ERR_CODE(w) != 0) {
		evc__reports_forget(c, w);
		sync_store_sc(&c->stop.errors, 0);
		c->log.n_lost = 0;
	}
	evc__slots_forget_late(c);
	if (w & WORD_DRAIN) {
		evc__drained_hooks_forget(c, WORD_STOPS(w));
		evc__scope_join_cancel(c);
		/* Wait for walks that hand the drain down; a later walk looks
		   at the word first. */
		evc__readers_quiet(&c->stop.readers);
	}
	return true;
}

/* Lock of c held: clear each scope below with a stop that came from c alone; a
   stop of the scope's own stays.  Nothing lives in the scopes.  < 0: a member
   has come to life. */
static evc_status
clear_scopes(evc_coord *c)
{
	struct list *n, *tmp;
	evc_status st = 0;

	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);
		uint64_t w;

		sync_lock(&s->lock);
		w = sync_load_sc(&s->word);
		/* A scope that is being freed has no parts any more, and its
		   round does not matter. */
		if (s->life.dying)
			w = 0;
		if (w & WORD_FLAG) {
			if (sync_load_sc(&s->stop.own_stop) !=
			    WORD_STOP_NUMBER(w))
				st = clear_stop(s, true);
		} else if ((w & WORD_DRAIN) &&
			   sync_load_sc(&s->join.drain_end) == 0) {
			sync_and(&s->word, ~WORD_DRAIN);
			evc__drained_hooks_forget(s, WORD_STOPS(w));
			clear_scopes(s);
		}
		sync_unlock(&s->lock);
		if (st < 0)
			break;
	}
	return st;
}

/* Lock held: < 0: a member other than the caller is alive. */
static evc_status
check_alive(evc_coord *c)
{
	const struct evc__member *me = evc__member_self_below(c);
	const evc_coord *a = me != NULL ? me->c : c;
	char names[96];

	/* The counts are read, not the lists, because a new member raises the
	   counts before its look for CLOSING.  Each coordinator between the
	   caller and c counts 1. */
	while (a != c && sync_load_sc(&a->stop.alive) <= 1)
		a = a->parent;
	if (a == c && sync_load_sc(&c->stop.alive) <=
			      (unsigned)(me != NULL) + c->life.held)
		return 0;
	evc__names(c, me, false, 0, names, sizeof names);
	return evc__refuse(-EVC_FAILED_PRECONDITION,
			   "evc_clear_stop: still running: %s", names);
}

/* Lock held: clear c; from_above: as a scope, for a clear of the parent. */
static evc_status
clear_stop(evc_coord *c, bool from_above)
{
	uint64_t w, next;
	evc_status st;

	for (;;) {
		w = sync_load_sc(&c->word);
		if (!(w & WORD_FLAG)) {
			st = w & WORD_DRAIN ? check_alive(c) : 0;
			if (st < 0)
				return st;
			if (!clear_unstopped(c, w))
				continue;
			if (w & WORD_DRAIN)
				clear_scopes(c);
			break;
		}
		if (join_waits(c))
			return evc__refuse(-EVC_FAILED_PRECONDITION,
					   "evc_clear_stop: a join waits");
		evc__tell_all(c);
		if (!sync_cas(&c->word, &w, w | WORD_CLOSING))
			continue;
		w |= WORD_CLOSING;
		st = check_alive(c);
		if (st == 0) {
			evc__readers_quiet(&c->stop.readers);
			/* The stop descriptor has woken the threads that sleep
			   on it; each of these threads must have looked at the
			   word before the descriptor is drained.  A thread that
			   comes now finds the flag and does not sleep. */
			evc__readers_quiet(&c->stop.pollers);
			st = clear_scopes(c);
		}
		if (st == 0) {
			evc__scope_join_clearing(c, w);
			next = (uint64_t)((WORD_STOPS(w) + 1) &
					  WORD_STOPS_MASK)
			       << 4;
			/* own_stop is read after CLOSING was set: a request to
			   the scope itself that came meanwhile keeps the
			   stop. */
			if (from_above && sync_load_sc(&c->stop.own_stop) ==
						  WORD_STOP_NUMBER(w)) {
				sync_and(&c->word, ~WORD_CLOSING);
				evc__scopes_follow(c);
				return 0;
			}
			/* cleared_by_parent is set before the swap:
			   after_clear() in stop.c reads which clear came. */
			sync_store_sc(&c->stop.cleared_by_parent,
				      from_above ? WORD_STOP_NUMBER(w) : 0);
			if (sync_cas(&c->word, &w, next))
				break;
		} else
			sync_and(&c->word, ~WORD_CLOSING);
		/* The clear of c has failed: scopes that were cleared get the
		   stop of c again. */
		evc__scopes_follow(c);
		if (st < 0)
			return st;
	}
	sync_store(&c->join.returned, 0);
	evc__outcomes_forget(c);
	if (w & WORD_FLAG) {
		evc__trace(c, TRACE_CLEAR, 0, TRACE_COORD, NULL, 0);
		evc__dormant_drop(c);
		forget_stop(c);
		evc__scope_join_cleared(c, WORD_STOP_NUMBER(w));
	}
	if (w & (WORD_FLAG | WORD_DRAIN))
		evc__drain_forget(c);
	/* Waiters of the old stop see that its number has moved; the stop
	   descriptor must not stay readable. */
	if (w & WORD_FLAG)
		evc__settle(c);
	/* The coordinator above is still stopped. */
	if (!from_above && c->parent != NULL)
		evc__scope_follow(c);
	return 0;
}

evc_status
evc_clear_stop(evc_coord *c)
{
	evc_status st = evc__check(c, __func__);

	/* `ended` may be called for this stop, and may free c, before this call
	   returns. */
	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	evc__log_errors(c);
	sync_lock(&c->lock);
	/* Members that have ended but were not joined yet do not count as
	   alive. */
	evc__members_refresh(c);
	st = clear_stop(c, false);
	sync_unlock(&c->lock);
	if (c->log.fn != NULL)
		evc__log_settle(c, LOG_FLUSH_NS);
	evc__refgate_leave(&c->life.gate);
	return st;
}
