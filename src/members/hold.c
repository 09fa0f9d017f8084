/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds: members without a thread or a function, which keep the joins waiting
 * until evc_hold_end.
 * Called by: the program, on any thread.
 * Locks: the coordinator's lock.
 */
#include "core/core.h"

static evc_status
begin_hold(evc_coord *c, struct evc__member *m, const evc_member_opts *o,
	   evc_id *ret_id)
{
	evc_status st = 0;

	sync_lock(&c->lock);
	if (evc_should_stop(c) && !(m->e.flags & EVC_AFTER_STOP))
		st = evc__refuse(-EVC_CANCELLED,
				 "evc_hold_begin: a stop was requested");
	else
		st = evc__wakers_add(m, o, NULL, "evc_hold_begin");
	if (st == 0)
		st = evc__member_add(c, m);
	if (st == 0 && ret_id != NULL)
		*ret_id = m->e.id;
	if (st == 0)
		evc__ring(c);
	else
		evc__wakers_drop(m);
	sync_unlock(&c->lock);
	if (st < 0)
		sync_free(m);
	return st;
}

evc_status
evc_hold_begin(evc_coord *c, const char *name, const evc_member_opts *opts,
	       evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);
	struct evc__member *m = NULL;

	if (st == 0)
		st = evc__check_opts(opts, EVC_HOLD, __func__);
	if (st == 0) {
		m = evc__member_new(c, sizeof *m, EVC_HOLD,
				    name != NULL && name[0] != '\0' ? name :
								      "hold",
				    opts);
		if (m == NULL)
			st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
					 "evc_hold_begin: no memory");
	}
	if (st == 0)
		st = begin_hold(c, m, opts, ret_id);
	return evc__refuse_member(c, __func__, opts, st);
}

/* Inside the refgate, so that c still exists during the ring. */
static evc_status
end_hold(evc_coord *c, evc_id id)
{
	struct evc__member *m;
	unsigned flags = 0;
	char name[48] = "";

	sync_lock(&c->lock);
	m = evc__member_find(c, id);
	if (m == NULL || m->e.kind != EVC_HOLD) {
		sync_unlock(&c->lock);
		return evc__refuse(-EVC_NOT_FOUND, "evc_hold_end: no hold %llu",
				   (unsigned long long)id);
	}
	flags = m->e.flags;
	memcpy(name, m->name, sizeof name);
	/* The result comes first, because the round may close when no member is
	   alive. */
	if (flags & EVC_END_STOPS)
		evc__member_result(c, id, name, flags, 0, false);
	evc__member_gone(m);
	sync_unlock(&c->lock);
	return 0;
}

evc_status
evc_hold_end(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = evc__enter(c, -EVC_NOT_FOUND, __func__);
	if (st < 0)
		return st;
	st = end_hold(c, id);
	evc__refgate_leave(&c->life.gate);
	return st;
}
