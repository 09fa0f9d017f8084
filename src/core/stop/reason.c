/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reasons kept in a round, and the codes that are clean.
 *
 * Called by: requests write, in any thread and in signal handlers; joins and
 * reports read.
 * Locks: readers hold the coordinator's lock, writers none: slot_word[i] guards
 * slot[i].
 */

/*
 * Each slot is guarded by a word (state, stops).  A CAS to CLAIMED gives the
 * slot to a single writer.  Only this writer stores READY, or LATE for an error
 * that came when the round was closed.  A READY or LATE slot of an older round
 * counts as FREE.  Readers hold the lock, and copy only slots of the present
 * round, which changes under the lock alone.  So no reader meets a writer, no
 * writer waits, and a writer that has slept during a clear does no harm.
 *
 * Slot 0 is kept for the winner and slot 1 for the first error; clean requests
 * may use half of the rest.  A code without a slot still counts, because the
 * coordinator's word has the code.
 */
#include "base/self.h"
#include "base/text.h"
#include "core/core.h"

enum slot_state { FREE, CLAIMED, READY, LATE };
#define SLOT(state, stops) ((uint32_t)(stops) << 2 | (uint32_t)(state))
#define SLOT_STATE(s) ((s) & 3)
#define SLOT_STOPS(s) ((s) >> 2)

/* Is the slot of an older round than the round after this number of stops? */
static bool
is_older(uint32_t slot, uint32_t stops)
{
	uint32_t by = (stops - SLOT_STOPS(slot)) & WORD_STOPS_MASK;

	return by != 0 && by < WORD_STOPS_MASK / 2;
}

/* Claim a slot for a writer in the round of w. */
static bool
claim_slot(evc_coord *c, unsigned slot, uint64_t w)
{
	uint32_t old = sync_load(&c->stop.slot_word[slot]);

	/* A slot of an older round has no reader: readers hold the lock, and
	   the word has moved to the round of w under the lock. */
	if (SLOT_STATE(old) == CLAIMED ||
	    (SLOT_STATE(old) != FREE && !is_older(old, WORD_STOPS(w))))
		return false;
	return sync_cas(&c->stop.slot_word[slot], &old,
			SLOT(CLAIMED, WORD_STOPS(w)));
}

unsigned
evc__slot_claim(evc_coord *c, uint64_t w, bool error, bool late)
{
	unsigned end = error ? c->stop.n_slots : 2 + (c->stop.n_slots - 2) / 2,
		 i;

	if (!late && !(w & WORD_FLAG) && claim_slot(c, 0, w))
		return 0;
	if (!late && error && WORD_ERR_CODE(w) == 0 && claim_slot(c, 1, w))
		return 1;
	for (i = 2; i < end; i++)
		if (claim_slot(c, i, w))
			return i;
	/* When a winner or a first error found no slot of its own, later errors
	   may use slot 0 or 1. */
	if (error && (w & WORD_FLAG) && claim_slot(c, 0, w))
		return 0;
	if (error && WORD_ERR_CODE(w) != 0 && claim_slot(c, 1, w))
		return 1;
	return NO_SLOT;
}

void
evc__slot_fill(evc_coord *c, unsigned slot, uint64_t w, bool error,
	       const struct evc__request *q)
{
	struct evc__slot *s = &c->stop.slot[slot];
	const struct evc__member *m = evc__self()->member;
	const struct evc__acting *as = evc__self()->acting;
	const char *who = q->who;
	evc_reason *r = &s->r;

	if (as != NULL && as->c != c)
		as = NULL;
	if (who == NULL && as != NULL)
		who = as->name;
	s->error = error;
	s->named = who != NULL;
	s->logged = false;
	sync_store(&s->reported, false);
	r->code = q->code;
	r->err = q->err;
	r->line = q->line;
	r->tid = q->tid != 0 ? q->tid : evc__tid();
	r->kind = q->kind;
	if (r->kind == 0)
		r->kind = error ? EVC_BY_ERROR : EVC_BY_REQUEST;
	r->signo = q->signo;
	r->round = WORD_ROUND(w);
	r->mono_ns = evc__now(c);
	s->seq = sync_add(&c->stop.arrivals, 1);
	r->real_ns = sync_real();
	r->by = q->by;
	if (r->by == 0 && as != NULL)
		r->by = as->id;
	else if (r->by == 0 && m != NULL && m->c == c)
		r->by = m->e.id;
	if (who != NULL)
		evc__copy_dots(r->who, sizeof r->who, who);
	else
		evc__copy(r->who, sizeof r->who,
			  m != NULL ? m->name : evc__thread_name());
	evc__copy_end(r->file, sizeof r->file, q->file);
	evc__copy(r->func, sizeof r->func, q->func);
	evc__copy_ends(r->text, sizeof r->text, q->text);
}

void
evc__slot_publish(evc_coord *c, unsigned slot, uint64_t w, bool late)
{
	/* The store is a release, so a reader that sees READY sees the whole
	   reason.  Only the writer changes a CLAIMED slot, so no CAS is
	   needed. */
	sync_store(&c->stop.slot_word[slot],
		   SLOT(late ? LATE : READY, WORD_STOPS(w)));
}

void
evc__slot_late(evc_coord *c, unsigned slot, uint64_t w)
{
	uint32_t ready = SLOT(READY, WORD_STOPS(w));

	if (slot != NO_SLOT)
		(void)sync_cas(&c->stop.slot_word[slot], &ready,
			       SLOT(LATE, WORD_STOPS(w)));
}

void
evc__slots_forget_late(evc_coord *c)
{
	uint32_t late = SLOT(LATE, WORD_STOPS(sync_load(&c->word))), seen;
	unsigned i;

	for (i = 0; i < c->stop.n_slots; i++) {
		seen = late;
		(void)sync_cas(&c->stop.slot_word[i], &seen, SLOT(FREE, 0));
	}
}

static bool
is_readable(const evc_coord *c, unsigned slot, uint64_t w)
{
	uint32_t s = sync_load(&c->stop.slot_word[slot]);

	return s == SLOT(READY, WORD_STOPS(w)) ||
	       s == SLOT(LATE, WORD_STOPS(w));
}

const evc_reason *
evc__reason_peek(const evc_coord *c, unsigned slot, uint64_t w)
{
	return slot != NO_SLOT && is_readable(c, slot, w)
		       ? &c->stop.slot[slot].r
		       : NULL;
}

void
evc__reports_forget(evc_coord *c, uint64_t w)
{
	uint32_t ready;
	unsigned i;

	/* A reason is left alone before its CAS on the word, because the word
	   may get this reason later. */
	for (i = 0; i < c->stop.n_slots; i++) {
		ready = SLOT(READY, WORD_STOPS(w));
		if (sync_load(&c->stop.slot[i].reported))
			(void)sync_cas(&c->stop.slot_word[i], &ready,
				       SLOT(FREE, 0));
	}
}

bool
evc__reason_before(const evc_coord *c, unsigned a, unsigned b)
{
	const struct evc__slot *x = &c->stop.slot[a], *y = &c->stop.slot[b];

	return x->r.mono_ns < y->r.mono_ns ||
	       (x->r.mono_ns == y->r.mono_ns &&
		(int32_t)(x->seq - y->seq) < 0);
}

bool
evc__reason_late(const evc_coord *c, unsigned slot)
{
	return SLOT_STATE(sync_load(&c->stop.slot_word[slot])) == LATE;
}

/* Set the author of a reason, if the author is the thread of m: a thread that
   another thread has registered does not know, at its request, that it is a
   member. */
static void
set_author(struct evc__slot *s, const struct evc__member *m)
{
	if (s->r.by != 0 || m->tid == 0 || m->tid != s->r.tid ||
	    m->since_ns > s->r.mono_ns)
		return;
	s->r.by = m->e.id;
	if (!s->named)
		evc__copy(s->r.who, sizeof s->r.who, m->name);
}

bool
evc__reason_copy(const evc_coord *c, unsigned slot, uint64_t w,
		 evc_reason *ret)
{
	struct list *n, *tmp;

	if (slot == NO_SLOT || !is_readable(c, slot, w))
		return false;
	if (c->stop.slot[slot].r.by == 0)
		LIST_EACH(n, tmp, &c->member.all)
			set_author(&c->stop.slot[slot],
			     LIST_OF(n, struct evc__member, node));
	*ret = c->stop.slot[slot].r;
	if (ret->kind == EVC_BY_ERROR && !evc__reason_is_error(c, slot, w))
		ret->kind = EVC_BY_REQUEST;
	return true;
}

bool
evc__reason_is_error(const evc_coord *c, unsigned slot, uint64_t w)
{
	/* EVC_CANCELLED is an error only as the winner.  The slot may have been
	   written as the winner's before another request has won. */
	if (c->stop.slot[slot].r.code == EVC_CANCELLED && (w & WORD_FLAG) &&
	    !evc__reason_late(c, slot))
		return c->stop.slot[slot].error && WORD_ERR_CODE(w) != 0 &&
		       WORD_ERR_SLOT(w) == slot;
	return c->stop.slot[slot].error;
}

void
evc__reasons_sign(evc_coord *c, const struct evc__member *m)
{
	uint64_t w = sync_load(&c->word);
	unsigned i;

	for (i = 0; i < c->stop.n_slots; i++)
		if (is_readable(c, i, w))
			set_author(&c->stop.slot[i], m);
}

/* Count an error besides the first error, which is in the word.  The count is
   of the round of w alone. */
void
evc__error_count(evc_coord *c, uint64_t w)
{
	uint64_t old = sync_load(&c->stop.errors), next;
	uint32_t stops = WORD_STOPS(w), newer;

	do {
		newer = ((uint32_t)(old >> 32) - stops) & WORD_STOPS_MASK;
		if (newer == 0 && (uint32_t)old == UINT32_MAX)
			return;
		else if (newer == 0)
			next = old + 1;
		else if (newer < WORD_STOPS_MASK / 2)
			return; /* the round of w is over */
		else
			next = (uint64_t)stops << 32 | 1;
	} while (!sync_cas(&c->stop.errors, &old, next));
}

unsigned
evc__n_errors(const evc_coord *c, uint64_t w)
{
	/* A request counts the error, then looks whether the round is closed;
	   the thread that closes the round then looks at the count. */
	uint64_t n = sync_load_sc(&c->stop.errors);

	return (WORD_ERR_CODE(w) != 0) +
	       ((uint32_t)(n >> 32) == WORD_STOPS(w) ? (unsigned)n : 0);
}

evc_status
evc_raise_requested(const evc_coord *c, evc_reason *ret_reason)
{
	evc_coord *locked = (evc_coord *)c;
	evc_status st = evc__check(c, __func__);
	evc_reason r = { 0 };
	uint64_t w;

	if (st < 0)
		return st;
	sync_lock(&locked->lock);
	w = sync_load(&c->word);
	if (!evc__reason_copy(c, WORD_ERR_SLOT(w), w, &r)) {
		r.code = WORD_ERR_CODE(w);
		r.kind = EVC_BY_ERROR;
		r.round = WORD_ROUND(w);
	}
	sync_unlock(&locked->lock);
	if (WORD_ERR_CODE(w) != 0 && ret_reason != NULL)
		*ret_reason = r;
	return WORD_ERR_CODE(w);
}

/* Lock held: the slot of a reason by its index: first the winner, then the
   others in the order of time. */
static unsigned
nth_slot(const evc_coord *c, uint64_t w, unsigned index)
{
	unsigned win = w & WORD_FLAG ? WORD_WIN_SLOT(w) : NO_SLOT;
	unsigned i, j, before;

	if (win != NO_SLOT && index-- == 0)
		return win;
	for (i = 0; i < c->stop.n_slots; i++) {
		if (i == win || !is_readable(c, i, w))
			continue;
		for (before = j = 0; j < c->stop.n_slots; j++)
			if (j != win && j != i && is_readable(c, j, w))
				before += evc__reason_before(c, j, i);
		if (before == index)
			return i;
	}
	return NO_SLOT;
}

bool
evc__reason_nth(const evc_coord *c, unsigned index, evc_reason *ret)
{
	evc_coord *locked = (evc_coord *)c;
	uint64_t w;
	bool found;

	sync_lock(&locked->lock);
	w = sync_load(&c->word);
	found = evc__reason_copy(c, nth_slot(c, w, index), w, ret);
	sync_unlock(&locked->lock);
	return found;
}

evc_status
evc_reason_get(const evc_coord *c, unsigned index, evc_reason *ret_reason)
{
	evc_status st = evc__check(c, __func__);
	evc_reason r;

	if (st < 0)
		return st;
	if (!evc__reason_nth(c, index, &r))
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_reason_get: no reason %u", index);
	if (ret_reason != NULL)
		*ret_reason = r;
	return 0;
}
