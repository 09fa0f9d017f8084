/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancel hooks: functions that wake a thread out of a stretch of code at a
 * stop.  The record is the library's: a thread that leaves the stretch by
 * longjmp leaves no dangling pointer, and the next pop outside, or the thread's
 * end, removes the record.  The chain of records is the thread's own; the list
 * that the helper thread walks is the coordinator's.
 * Called by: the program.
 * Locks: the coordinator's lock for the list; the chain is thread-local.
 */
#include "core/core.h"
#include "core/join/join.h"

static evc_status
push(evc_coord *c, void (*fn)(void *arg), void *arg, unsigned flags,
     evc_id *ret_id)
{
	struct evc__waker *k = NULL;
	evc_status st = 0;

	sync_lock(&c->lock);
	if (evc_should_stop(c))
		st = evc__refuse(-EVC_CANCELLED,
				 "evc_cancel_push: a stop was requested");
	else if (evc__helper_is_self(c)) /* no pop is possible there */
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_cancel_push: on the helper thread");
	else
		k = evc__waker_push(c, fn, arg, flags & EVC_CANCEL_REPEAT);
	if (k != NULL)
		*ret_id = k->id = ++c->member.ids.last;
	else if (st == 0)
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				 "evc_cancel_push: no memory or no helper "
				 "thread");
	sync_unlock(&c->lock);
	return st;
}

evc_status
evc_cancel_push(evc_coord *c, void (*fn)(void *arg), void *arg,
		unsigned flags, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st < 0)
		return st;
	if (fn == NULL || ret_id == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_cancel_push: no function, or no place "
				   "for the id");
	if (flags & ~(unsigned)EVC_CANCEL_REPEAT)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_cancel_push: unknown flags %#x", flags);
	st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	st = push(c, fn, arg, flags, ret_id);
	evc__refgate_leave(&c->life.gate);
	return st;
}

/* The calling thread's record with this id. */
static struct evc__waker *
find_waker(const evc_coord *c, evc_id id)
{
	struct evc__waker *k = evc__self()->pushed;

	while (k != NULL && (k->c != c || k->id != id))
		k = k->outer;
	return k;
}

evc_status
evc_cancel_pop(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);
	struct evc__waker *k, *inner;
	evc_coord *of;
	bool last;

	if (st < 0)
		return st;
	if (evc__helper_is_self(c))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_cancel_pop: on the helper thread");
	k = id != 0 ? find_waker(c, id) : NULL;
	if (k == NULL)
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_cancel_pop: this thread has not pushed "
				   "%llu",
				   (unsigned long long)id);
	do {
		inner = evc__self()->pushed;
		last = inner == k;
		of = inner->c;
		/* The gate, because another thread may free the coordinator
		   after its last record is gone, but not before. */
		(void)evc__refgate_enter(&of->life.gate);
		sync_lock(&of->lock);
		evc__waker_pop(inner);
		sync_unlock(&of->lock);
		evc__refgate_leave(&of->life.gate);
	} while (!last);
	return 0;
}
