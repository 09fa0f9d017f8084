/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of stops and drains down to scopes, and of errors up.  The walk of
 * the parent's stop finds a scope in the table of listeners, and makes a
 * request to the scope with code OK and kind EVC_BY_PARENT.  parent_stop has
 * the number of the parent's last stop that was handed down; own_stop has the
 * number of the scope's last stop with another request.
 *
 * Called by: the walk, requests, phases, a clear.
 * Locks: none, but where a function says so.
 */
#include "base/deadline.h"
#include "base/text.h"
#include "core/core.h"
#include "core/stop/scopes.h"

/* The calling thread does not wait for a lock for ever. */
static __thread bool never_hangs;

void
evc__lock_never_hangs(void)
{
	never_hangs = true;
}

bool
evc__lock_tree(evc_coord *c)
{
	uint64_t until;

	if (!never_hangs) {
		sync_lock(&c->lock);
		return true;
	}
	until = evc__deadline_in_ns(BACKOFF_MOST_NS);
	while (!sync_trylock(&c->lock)) {
		if (sync_mono() >= until)
			return false;
		evc__nap(BACKOFF_FIRST_NS);
	}
	return true;
}

bool
evc__driven(const evc_coord *c)
{
	for (; c != NULL; c = c->parent)
		if (sync_load_sc(&c->stop.n_driving) > 0)
			return true;
	return false;
}

/* Record the parent's stop in the scope.  parent_stop is set afterwards, so
   that a thread that reads parent_stop finds the stop recorded.  If the scope
   has a stop already, this stop stays. */
static void
hand_down(evc_coord *s, uint32_t stop)
{
	char buf[64];
	struct text t = evc__text_in(buf, sizeof buf);
	struct evc__request q = { .kind = EVC_BY_PARENT,
				  .who = s->parent->name,
				  .text = buf };
	bool error;

	evc__text_add(&t, "the stop of ");
	evc__text_add(&t, s->parent->name);
	/* A clear of the scope may come between the two stores.  This clear
	   does not yet see parent_stop, and so does not ask the scope again.
	   Therefore this thread looks again. */
	while (!(sync_load_sc(&s->word) & WORD_FLAG) ||
	       sync_load_sc(&s->stop.parent_stop) != stop) {
		evc__request_record(s, &q, &error);
		sync_store_sc(&s->stop.parent_stop, stop);
	}
}

bool
evc__scope_ask(evc_coord *s, uint32_t stop)
{
	/* The flag of the parent is set before this thread looks for joins; a
	   join that leaves lowers its count before it looks at the flag.  So
	   this thread or the join tells the scope. */
	if (s->join.phase > 0 && sync_load_sc(&s->stop.parent_stop) != stop &&
	    evc__driven(s->parent))
		return false;
	hand_down(s, stop);
	return true;
}

void
evc__scope_tell(evc_coord *s)
{
	uint64_t w = sync_load_sc(&s->parent->word);

	if (!(w & WORD_FLAG))
		return;
	hand_down(s, WORD_STOP_NUMBER(w));
	evc__tell_all(s);
}

void
evc__scope_follow(evc_coord *s)
{
	uint64_t w = sync_load_sc(&s->parent->word);

	if ((w & WORD_DRAIN) && !(sync_or(&s->word, WORD_DRAIN) & WORD_DRAIN))
		evc__tell_drain(s);
	/* A clear of the parent that has already passed this scope starts
	   again, because CLOSING is gone; or the clear has swapped the word,
	   and then the scope is not asked. */
	if ((w & WORD_FLAG) &&
	    sync_load_sc(&s->stop.parent_stop) == WORD_STOP_NUMBER(w)) {
		sync_and(&s->parent->word, ~WORD_CLOSING);
		evc__scope_tell(s);
	}
}

void
evc__scopes_follow(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->scopes)
		evc__scope_follow(SCOPE_OF(n));
}

void
evc__scope_error(evc_coord *c, const struct evc__request *q)
{
	const struct evc__member *m = evc__self()->member;
	struct evc__request up = *q;
	bool error = true;

	/* The text and the author stay; but an id of a member is valid in its
	   own coordinator only. */
	if (up.who == NULL && m != NULL)
		up.who = m->name;
	up.by = 0;
	up.kind = EVC_BY_ERROR;
	up.stop = 0;
	for (; error && c->parent != NULL &&
	       c->stop.on_error != EVC_ON_ERROR_IGNORE;
	     c = c->parent) {
		up.report |= c->stop.on_error == EVC_ON_ERROR_REPORT;
		evc__request_record(c->parent, &up, &error);
		if (up.report)
			evc__ring(c->parent);
		else
			evc__tell_all(c->parent);
	}
}
