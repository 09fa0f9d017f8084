/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drain: take no new work, finish the present work.  The drain is a bit of
 * the word; evc_should_drain reads this bit and the flag.  Any join in progress
 * turns the drain into a stop when no worker is left or the limit is over;
 * without another join, the scope join does so.  Scopes below get only the bit:
 * their stop comes from above.
 *
 * Called by: evc_request_drain, evc_should_drain; joins.
 * Locks: the coordinator's, but for the walk that tells.  Atomics: the word,
 * drain_end.
 */
#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/join/join.h"
#include "core/status/trace.h"

#include <math.h>

#include "base/self.h"
#include "base/text.h"

/* The author of the first drain, for the stop that the drain becomes. */
struct evc__drain {
	int tid;
	evc_id by;
	double limit;
	char who[48], text[128];
};

bool
evc_should_drain(const evc_coord *c)
{
	return sync_load(&c->word) & (WORD_FLAG | WORD_DRAIN);
}

static void
note_author(evc_coord *c, struct evc__drain *d, double limit, const char *text)
{
	const struct evc__member *m = evc__member_self(c);

	d->tid = evc__tid();
	d->by = m != NULL ? m->e.id : 0;
	d->limit = limit;
	evc__copy(d->who, sizeof d->who,
		  m != NULL ? m->name : evc__thread_name());
	evc__copy_ends(d->text, sizeof d->text, text);
}

/* Lock held: note the drain in the coordinator and in the word.  The first
   drain keeps its author; a later drain can only bring the end nearer. */
static evc_status
note_drain(evc_coord *c, double limit, const char *text)
{
	uint64_t end = evc__after(evc__now(c), evc__ns(limit));
	uint64_t old = sync_load(&c->join.drain_end);

	if (!evc__scope_join_need(c) ||
	    (c->join.drain == NULL &&
	     (c->join.drain = sync_alloc(1, sizeof *c->join.drain)) == NULL))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_request_drain: nobody to keep its "
				   "limit");
	if (old == 0)
		note_author(c, c->join.drain, limit, text);
	else if (end < old)
		c->join.drain->limit = limit;
	/* drain_end 0 would mean: no drain. */
	if (old == 0 || end < old)
		sync_store_sc(&c->join.drain_end, end | (end == 0));
	sync_or(&c->word, WORD_DRAIN);
	evc__trace(c, TRACE_DRAIN, 0, TRACE_COORD, text, evc__ns(limit));
	return 0;
}

/* Inside the refgate: a drain may lead c's owner to free c. */
static evc_status
request_drain(evc_coord *c, double limit, const char *text)
{
	evc_status st = 0;
	bool stopped;

	sync_lock(&c->lock);
	stopped = evc_should_stop(c);
	if (!stopped)
		st = note_drain(c, limit, text);
	sync_unlock(&c->lock);
	if (stopped || st < 0)
		return st;
	evc__tell_drain(c);
	if (!(limit > 0)) {
		/* Without a limit the drain becomes a stop at once. */
		sync_lock(&c->lock);
		if (!evc_should_stop(c) && c->join.drain != NULL)
			evc__drain_ask(c);
		sync_unlock(&c->lock);
	}
	return 0;
}

evc_status
evc_request_drain(evc_coord *c, double limit, const char *text)
{
	evc_status st = evc__check(c, __func__);

	if (st < 0)
		return st;
	if (isnan(limit))
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_request_drain: the limit is no time");
	st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	st = request_drain(c, limit, text);
	evc__refgate_leave(&c->life.gate);
	return st;
}

void
evc__drain_ask(evc_coord *c)
{
	char buf[sizeof((evc_reason *)0)->text];
	struct text t = evc__text_in(buf, sizeof buf);
	const struct evc__drain *d = c->join.drain;
	struct evc__request q = { .kind = EVC_BY_REQUEST,
				  .tid = d->tid,
				  .by = d->by,
				  .who = d->who,
				  .text = buf,
				  .func = "evc_request_drain" };

	if (evc__now(c) >= sync_load(&c->join.drain_end))
		evc__text_fmt(&t, "the limit of a drain, %g s, is over",
			      d->limit);
	else
		evc__text_add(&t, "a drain has finished");
	if (d->text[0] != '\0') {
		evc__text_add(&t, ": ");
		evc__text_add(&t, d->text);
	}
	evc__request(c, &q);
}

void
evc__drain_forget(evc_coord *c)
{
	sync_store_sc(&c->join.drain_end, 0);
	sync_free(c->join.drain);
	c->join.drain = NULL;
}
