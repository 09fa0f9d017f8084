/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_veto: a member asks once for more time during a stop.
 * Called by: the program.
 * Locks: the coordinator's lock, then that of each parent, one at a time.
 */
#include "core/core.h"
#include "core/join/join.h"
#include "core/status/trace.h"

#include "base/text.h"

#include <math.h>

/* Lock held: the member's name; NULL: no such member. */
static const char *
name_of(evc_coord *c, evc_id *id)
{
	struct evc__looper_view v;
	struct evc__member *m;
	struct evc__entry *e;

	if (*id == 0) {
		m = evc__member_self(c);
		*id = m != NULL ? m->e.id : 0;
		return m != NULL ? m->name : NULL;
	}
	e = evc__id_find(c, *id);
	if (e == NULL)
		return NULL;
	if (!e->light)
		return LIST_OF(e, struct evc__member, e)->name;
	c->member.looper_ops->view(e, &v);
	return v.name;
}

/* Lock held. */
static bool
asked_before(const evc_coord *c, evc_id id)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->wake.vetoes)
		if (LIST_OF(n, struct evc__veto, node)->id == id)
			return true;
	return false;
}

/* Lock held: grant as much of `seconds` as fits between the present end, or now
   if later, and the hard end. */
static void
grant(evc_coord *c, struct evc__veto *v, uint64_t stop, double seconds)
{
	struct evc__extension e = evc__extension(c, stop);
	uint64_t end = evc__own_end(c), from = evc__now(c);
	double room;

	from = from > end ? from : end;
	if (e.hard == 0 || from >= e.hard)
		return;
	room = (double)(e.hard - from) / 1e9;
	v->granted = seconds < room ? seconds : room;
	v->ns = from - end + evc__ns(v->granted);
}

/* Lock held; v is used when the result is 0. */
static evc_status
veto(evc_coord *c, struct evc__veto *v, double seconds)
{
	uint64_t stop = evc__stop_time(c, sync_load_sc(&c->word));
	const char *name = name_of(c, &v->id);

	if (name == NULL)
		return evc__refuse(-EVC_NOT_FOUND, "evc_veto: no such member");
	if (stop == 0)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_veto: no stop was asked for");
	if (asked_before(c, v->id))
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "evc_veto: %s has asked before", name);
	grant(c, v, stop, seconds);
	if (v->granted == 0)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_veto: there is nothing to extend");
	evc__copy(v->name, sizeof v->name, name);
	list_append(&c->wake.vetoes, &v->node);
	evc__trace(c, TRACE_VETO, v->id, evc__id_find(c, v->id)->kind,
		   v->reason, evc__ns(v->granted));
	return 0;
}

/* Extend the stops of c's parents, each up to its hard end. */
static void
hand_up(evc_coord *c, const struct evc__veto *v)
{
	struct evc__veto *copy;

	for (c = c->parent; c != NULL; c = c->parent) {
		copy = sync_alloc(1, sizeof *copy);
		if (copy == NULL)
			return; /* the parents keep their end */
		*copy = *v;
		copy->id = 0;
		sync_lock(&c->lock);
		if (sync_load_sc(&c->word) & WORD_FLAG)
			list_append(&c->wake.vetoes, &copy->node);
		else
			sync_free(copy);
		sync_unlock(&c->lock);
	}
}

evc_status
evc_veto(evc_coord *c, evc_id id, double seconds, const char *reason,
	 double *ret_granted)
{
	evc_status st = evc__check(c, __func__);
	struct evc__veto *v, told;

	if (st == 0 && !(seconds > 0))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_veto: seconds is no time");
	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	v = sync_alloc(1, sizeof *v);
	if (v == NULL) {
		evc__gate_leave(&c->life.gate);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_veto: no memory");
	}
	v->id = id;
	evc__copy(v->reason, sizeof v->reason, reason);
	sync_lock(&c->lock);
	st = veto(c, v, seconds);
	told = *v;
	sync_unlock(&c->lock);
	if (st < 0)
		sync_free(v);
	else {
		hand_up(c, &told);
		/* Joins sleep until the former end. */
		evc__ring(c);
		evc__ring_below(c);
		evc__log_veto(c, told.name, told.granted, told.reason);
		if (ret_granted != NULL)
			*ret_granted = told.granted;
	}
	evc__gate_leave(&c->life.gate);
	return st;
}
