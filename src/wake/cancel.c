/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancel hooks: functions that wake a thread at a stop.  A thread pushes a hook
 * before a piece of code that may block, and pops the hook afterwards.  The
 * record of a hook belongs to the library: when the thread leaves the code by
 * longjmp, no pointer into the left stack frames remains, and the next pop of
 * an outer hook, or the end of the thread, removes the record.  Each thread has
 * a chain of the records that the thread has pushed; each coordinator has a
 * list of its records, for the helper thread.
 * Called by: the program.
 * Locks: the coordinator's lock for the list; the chain is thread-local.
 */
#include "core/core.h"
#include "core/join/join.h"

static evc_status
push_hook(evc_coord *c, void (*fn)(void *arg), void *arg, unsigned flags,
	  evc_id *ret_id)
{
	struct evc__waker *hook = NULL;
	evc_status st = 0;

	sync_lock(&c->lock);
	if (evc_should_stop(c))
		st = evc__refuse(-EVC_CANCELLED,
				 "evc_cancel_push: a stop was requested");
	else if (evc__helper_is_self(c)) /* a pop would wait for the helper
					    thread itself */
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_cancel_push: on the helper thread");
	else
		hook = evc__waker_push(c, fn, arg, flags & EVC_CANCEL_REPEAT);
	if (hook != NULL)
		*ret_id = hook->id = ++c->member.ids.last;
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
	st = push_hook(c, fn, arg, flags, ret_id);
	evc__refgate_leave(&c->life.gate);
	return st;
}

/* The calling thread's record with this id. */
static struct evc__waker *
find_hook(const evc_coord *c, evc_id id)
{
	struct evc__waker *hook = evc__self()->pushed;

	while (hook != NULL && (hook->c != c || hook->id != id))
		hook = hook->outer;
	return hook;
}

evc_status
evc_cancel_pop(evc_coord *c, evc_id id)
{
	evc_status st = evc__check(c, __func__);
	struct evc__waker *hook, *inner;
	evc_coord *inner_c;
	bool last;

	if (st < 0)
		return st;
	if (evc__helper_is_self(c))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_cancel_pop: on the helper thread");
	hook = id != 0 ? find_hook(c, id) : NULL;
	if (hook == NULL)
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_cancel_pop: this thread has not pushed "
				   "%llu",
				   (unsigned long long)id);
	/* Pop the hook, and before it all hooks that were pushed later, perhaps
	   for other coordinators. */
	do {
		inner = evc__self()->pushed;
		last = inner == hook;
		inner_c = inner->c;
		/* Inside the refgate the coordinator stays until sync_unlock:
		   another thread may free the coordinator as soon as its last
		   record is gone. */
		(void)evc__refgate_enter(&inner_c->life.gate);
		sync_lock(&inner_c->lock);
		evc__waker_pop(inner);
		sync_unlock(&inner_c->lock);
		evc__refgate_leave(&inner_c->life.gate);
	} while (!last);
	return 0;
}
