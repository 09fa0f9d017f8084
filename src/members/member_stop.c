/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_member_stop: the stop of one member.
 * Called by: the program.
 * Locks: the coordinator's, for the look at the member.  The request is made
 * inside the refgate of the thread's own scope, without a lock.
 */
#include "core/core.h"

/* Lock held: enter the refgate of the scope to be stopped; NULL: a looper. */
static evc_status
enter_scope(evc_coord *c, evc_id id, evc_coord **ret_scope)
{
	static const char func[] = "evc_member_stop";
	const struct evc__entry *e = evc__id_find(c, id);
	const struct evc__member *m = evc__member_find(c, id);

	*ret_scope = NULL;
	if (e != NULL && e->kind == EVC_LOOPER)
		return 0;
	if (m != NULL && !(e->flags & EVC_OWN_SCOPE))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: %s has no scope of its own, and is no "
				   "looper",
				   func, m->name);
	/* The thread frees its scope shortly before its end. */
	if (m == NULL || m->scope == NULL ||
	    !evc__refgate_enter(&m->scope->life.gate))
		return evc__refuse(-EVC_NOT_FOUND, "%s: no member %llu", func,
				   (unsigned long long)id);
	*ret_scope = m->scope;
	return 0;
}

evc_status
evc_member_stop(evc_coord *c, evc_id id, evc_status code, const char *text)
{
	evc_status st = evc__check(c, __func__);
	evc_coord *s;

	if (st == 0)
		st = evc__enter(c, -EVC_NOT_FOUND, __func__);
	if (st < 0)
		return st;
	sync_lock(&c->lock);
	st = enter_scope(c, id, &s);
	sync_unlock(&c->lock);
	if (st == 0 && s != NULL) {
		st = (evc_request_stop)(s, code, text);
		evc__refgate_leave(&s->life.gate);
	} else if (st == 0)
		st = evc_member_remove(c, id);
	evc__refgate_leave(&c->life.gate);
	return st;
}
