/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_extend_stop: more time for a stop, once for each member.
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
	if (!e->on_loop)
		return LIST_OF(e, struct evc__member, e)->name;
	c->member.looper_ops->view(e, &v);
	return v.name;
}

/* Lock held. */
static bool
asked_before(const evc_coord *c, evc_id id)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->wake.extensions)
		if (LIST_OF(n, struct evc__extension, node)->id == id)
			return true;
	return false;
}

/* Lock held: grant as much of `seconds` as fits between the present end, or now
   if later, and the hard end. */
static void
grant_time(evc_coord *c, struct evc__extension *e, uint64_t stop,
	   double seconds)
{
	struct evc__more_time more = evc__more_time(c, stop);
	uint64_t end = evc__own_end(c), from = evc__now(c);
	double room;

	from = from > end ? from : end;
	if (more.hard == 0 || from >= more.hard)
		return;
	room = (double)(more.hard - from) / 1e9;
	e->granted = seconds < room ? seconds : room;
	e->ns = from - end + evc__ns(e->granted);
}

/* Lock held; e is used when the result is 0. */
static evc_status
extend_stop(evc_coord *c, struct evc__extension *e, double seconds)
{
	uint64_t stop = evc__stop_time(c, sync_load_sc(&c->word));
	const char *name = name_of(c, &e->id);

	if (name == NULL)
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_extend_stop: no such member");
	if (stop == 0)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_extend_stop: no stop was requested");
	if (asked_before(c, e->id))
		return evc__refuse(-EVC_ALREADY_EXISTS,
				   "evc_extend_stop: %s has asked before", name);
	grant_time(c, e, stop, seconds);
	if (e->granted == 0)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_extend_stop: there is nothing to "
				   "extend");
	evc__copy(e->name, sizeof e->name, name);
	list_append(&c->wake.extensions, &e->node);
	evc__trace(c, TRACE_EXTEND, e->id, evc__id_find(c, e->id)->kind,
		   e->reason, evc__ns(e->granted));
	return 0;
}

/* Extend the stops of all coordinators above c, each up to its hard end. */
static void
extend_parents(evc_coord *c, const struct evc__extension *e)
{
	struct evc__extension *copy;

	for (c = c->parent; c != NULL; c = c->parent) {
		copy = sync_alloc(1, sizeof *copy);
		if (copy == NULL)
			return; /* the parents keep their end */
		*copy = *e;
		copy->id = 0;
		sync_lock(&c->lock);
		if (sync_load_sc(&c->word) & WORD_FLAG)
			list_append(&c->wake.extensions, &copy->node);
		else
			sync_free(copy);
		sync_unlock(&c->lock);
	}
}

evc_status
evc_extend_stop(evc_coord *c, evc_id id, double seconds, const char *reason,
		double *ret_granted)
{
	evc_status st = evc__check(c, __func__);
	struct evc__extension *e, copy;

	if (st == 0 && !(seconds > 0))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_extend_stop: seconds is no time");
	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	e = sync_alloc(1, sizeof *e);
	if (e == NULL) {
		evc__refgate_leave(&c->life.gate);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_extend_stop: no memory");
	}
	e->id = id;
	evc__copy(e->reason, sizeof e->reason, reason);
	sync_lock(&c->lock);
	st = extend_stop(c, e, seconds);
	copy = *e;
	sync_unlock(&c->lock);
	if (st < 0)
		sync_free(e);
	else {
		extend_parents(c, &copy);
		/* Joins sleep until the former end. */
		evc__ring(c);
		evc__ring_below(c);
		evc__log_extend(c, copy.name, copy.granted, copy.reason);
		if (ret_granted != NULL)
			*ret_granted = copy.granted;
	}
	evc__refgate_leave(&c->life.gate);
	return st;
}
