/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls in which the calling thread waits: the places where a wait is refused,
 * and the note that a member waits.
 *
 * Called by: joins, runs, waits of wake/ and of the rooms above.
 * Locks: the coordinator's, for a look at its loops.
 */
#include "core/core.h"
#include "core/join/join.h"

#include "base/self.h"

void
evc__stay_wait(struct evc__stay *in, evc_coord *c)
{
	in->c = c;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &in->cancel);
	evc__member_waits(true);
	in->waiting = true;
}

evc_status
evc__stay_begin(struct evc__stay *in, evc_coord *c, const char *func)
{
	evc_status st = evc__check(c, func);

	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, func);
	if (st == 0)
		evc__stay_wait(in, c);
	return st;
}

void
evc__stay_end(struct evc__stay *in)
{
	if (!in->waiting)
		return;
	in->waiting = false;
	evc__member_waits(false);
	if (in->c != NULL)
		evc__refgate_leave(&in->c->life.gate);
	pthread_setcancelstate(in->cancel, NULL);
}

evc_status
evc__check_loop(const evc_coord *c, const char *func)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.reactors) {
		evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->tid == evc__tid() && r->loop != NULL &&
		    evc__depth(r->waker, NULL) > 0)
			return evc__refuse(-EVC_FAILED_PRECONDITION,
					   "%s: inside %s of loop %s it would "
					   "deadlock",
					   func,
					   r->hosted ? "a turn" : "ev_run",
					   r->name);
	}
	return 0;
}

evc_status
evc__check_self(const evc_coord *c, const char *func)
{
	const struct evc__member *m = evc__self()->member;
	const evc_coord *a = m != NULL ? m->c : NULL;
	bool refused = false;

	for (; a != NULL; a = a->parent) {
		refused |= a->join.no_join;
		if (a == c)
			break;
	}
	return a == NULL || !refused
		       ? 0
		       : evc__refuse(-EVC_FAILED_PRECONDITION,
				     "%s: it would wait for the work of this "
				     "thread, %s of %s",
				     func, m->name, m->c->name);
}

evc_status
evc__check_host(const evc_coord *c, const char *func)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->hosted && r->tid == evc__tid() && r->loop != NULL)
			return evc__refuse(
				-EVC_FAILED_PRECONDITION,
				"%s: loop %.24s is hosted: call the run of its "
				"adapter (evc_glib_run ...), or evc_join_start "
				"with EVC_JOIN_UNTIL_STOP",
				func, r->name);
	}
	return 0;
}

evc_status
evc_may_wait(evc_coord *c, const char *func)
{
	evc_status st;

	if (func == NULL)
		func = __func__;
	st = evc__check(c, func);
	if (st < 0 || !evc__self_has_loop)
		return st;
	st = evc__enter(c, -EVC_FAILED_PRECONDITION, func);
	if (st < 0)
		return st;
	sync_lock(&c->lock);
	st = evc__check_loop(c, func);
	sync_unlock(&c->lock);
	evc__refgate_leave(&c->life.gate);
	return st;
}

bool
evc_wait_for_stop(evc_coord *c, double timeout)
{
	if (c == NULL)
		return false;
	if (timeout > 0 && !evc_should_stop(c) &&
	    evc_may_wait(c, __func__) < 0)
		return evc_should_stop(c);
	return evc__wait_for_stop(c, timeout);
}
