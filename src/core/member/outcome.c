/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The results of started threads, runners and child processes, for
 * evc_member_wait.  A record is made with its member.  When the member has
 * ended, the coordinator keeps the record until a waiter takes the result, or
 * until the stop is cleared.
 *
 * Called by: the register, when members begin and end; clear, free; waits of
 * src/members.
 * Locks: the coordinator's lock is held around each function.
 */
#include "core/core.h"

/* So many results are kept; the oldest goes first.  A program may start threads
   for years, and wait for none. */
#define KEPT_MOST 16384

evc_status
evc__outcome_new(struct evc__member *m, const char *func)
{
	struct evc__outcome *o = sync_alloc(1, sizeof *o);

	if (o == NULL ||
	    !evc__table_reserve(&m->c->member.outcomes, 1)) {
		sync_free(o);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	}
	o->result = EVC_ABORTED;
	o->known = m->e.kind == EVC_THREAD;
	m->outcome = o;
	return 0;
}

void
evc__outcome_is(struct evc__member *m, evc_status result)
{
	bool unknown;

	if (m->outcome == NULL)
		return;
	m->outcome->result = evc__normal(result, &unknown);
	m->outcome->known = true;
}

static void
drop_outcome(evc_coord *c, struct evc__outcome *o)
{
	evc__table_remove(&c->member.outcomes, &o->node);
	list_remove(&o->order);
	c->member.n_outcomes--;
	sync_free(o);
}

/* Drop up to `most` results that no thread waits for, the oldest first. */
static void
drop_oldest(evc_coord *c, unsigned most)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->member.kept) {
		struct evc__outcome *o =
			LIST_OF(n, struct evc__outcome, order);

		if (most == 0)
			break;
		if (o->waiter == NULL) {
			drop_outcome(c, o);
			most--;
		}
	}
}

void
evc__outcome_keep(struct evc__member *m)
{
	struct evc__outcome *o = m->outcome;
	evc_coord *c = m->c;

	m->outcome = NULL;
	if (o == NULL || !o->known) {
		sync_free(o);
		return;
	}
	o->id = m->e.id;
	evc__table_add(&c->member.outcomes, &o->node);
	list_append(&c->member.kept, &o->order);
	if (++c->member.n_outcomes > KEPT_MOST)
		drop_oldest(c, 1);
}

struct evc__outcome *
evc__outcome_find(const evc_coord *c, evc_id id)
{
	const struct evc__member *m = evc__member_find(c, id);

	return m != NULL ? m->outcome :
			   evc__table_find(&c->member.outcomes, id);
}

evc_status
evc__outcome_take(evc_coord *c, struct evc__outcome *o)
{
	evc_status result = o->result;

	drop_outcome(c, o);
	return result;
}

void
evc__outcomes_forget(evc_coord *c)
{
	drop_oldest(c, c->member.n_outcomes);
}

void
evc__outcomes_free(evc_coord *c)
{
	evc__outcomes_forget(c);
	evc__table_free(&c->member.outcomes);
}
