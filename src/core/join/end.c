/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a join's time: the steps shortly before, and at the end.
 *
 * Called by: list.c.
 * Locks: the coordinator's is held.
 */
#include "core/core.h"
#include "core/join/join.h"

#include "base/self.h"

/* Time that the kernel may need to take a killed process down. */
#define KILLED_NS (10 * BACKOFF_MOST_NS)
/* Time that a loop gets to say which tasks are left. */
#define ASK_NS (4 * BACKOFF_MOST_NS)

bool
evc__join_tell_in_time(struct evc__join *j, const struct evc__view *v,
		       uint64_t *wait_ns)
{
	uint64_t end = evc__deadline(v), at;

	if (j->internal || v->alive == 0 || end == SYNC_FOREVER ||
	    !sync_load_sc(&j->c->tree->phased))
		return false;
	at = end > BACKOFF_MOST_NS ? end - BACKOFF_MOST_NS : 0;
	if (v->now < at) {
		*wait_ns = at - v->now < *wait_ns ? at - v->now : *wait_ns;
		return false;
	}
	if (!evc__phases_tell_in_time(j->c))
		return false;
	j->told_phases = true;
	return true;
}

/* Lock held: turn the loops of c and below that have tasks.  A loop of the
   calling thread turns before its joins look. */
static void
ask_loops(evc_coord *c, uint64_t now)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.reactors)
	{
		evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (sync_load(&r->n_tasks) == 0 || r->tid == evc__tid())
			continue;
		r->asked_ns = now;
		evc__reactor_poke(r);
	}
	LIST_EACH(n, tmp, &c->scopes)
	{
		sync_lock(&SCOPE_OF(n)->lock);
		ask_loops(SCOPE_OF(n), now);
		sync_unlock(&SCOPE_OF(n)->lock);
	}
}

void
evc__join_ask_loops(struct evc__join *j, const struct evc__view *v,
		    uint64_t *wait_ns)
{
	uint64_t end = evc__deadline(v), at;

	if (j->internal || j->asked_loops || v->alive == 0 ||
	    end == SYNC_FOREVER || v->now >= end)
		return;
	at = end > ASK_NS ? end - ASK_NS : 0;
	if (v->now < at) {
		*wait_ns = at - v->now < *wait_ns ? at - v->now : *wait_ns;
		return;
	}
	j->asked_loops = true;
	ask_loops(j->c, v->now);
}

bool
evc__join_force(struct evc__join *j, uint64_t *ret_wait_ns)
{
	uint64_t now;

	if (!j->forced) {
		j->forced = true;
		if (evc__force_all(j->c))
			j->end_ns = sync_mono() + KILLED_NS;
	}
	now = j->end_ns != 0 ? sync_mono() : 0;
	if (now < j->end_ns) {
		*ret_wait_ns = j->end_ns - now;
		return true;
	}
	/* The work that a phase or force gives to this loop may run after this
	   join in the present turn, and the join may look twice in this turn:
	   for its timer and for a ring.  So two looks more are needed. */
	if ((j->end_ns == 0 && !j->told_phases) || j->reactor == NULL ||
	    j->late_looks == 2)
		return false;
	j->late_looks++;
	*ret_wait_ns = 0;
	return true;
}

bool
evc__join_put_off(struct evc__join *j, const struct evc__view *v)
{
	evc_coord *c = j->c;
	uint64_t end = evc__deadline(v), late = v->now - end;
	uint64_t begin = v->stop > v->start ? v->stop : v->start;
	/* Before its first wait the join takes its begin as the last look: the
	   process may have stood still since. */
	uint64_t looked = j->looked_ns != 0 ? j->looked_ns : v->start;

	/* A clock of the user's may jump. */
	if (c->status.clock != NULL || late <= FROZEN_NS ||
	    c->join.put_off_ns != 0 || looked == 0 || looked >= end ||
	    end <= begin)
		return false;
	c->join.put_off_at = v->now;
	c->join.put_off_ns = v->now +
			(late < end - begin ? late : end - begin);
	return true;
}
