/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Started threads: threads that the coordinator creates, and that its joins
 * join.
 * Called by: the program; foreign.c and loop_thread.c.
 * Locks: the coordinator's lock.
 */
#include "core/core.h"
#include "members/thread.h"

static evc_status
start_thread(evc_coord *c, struct evc__pthread *p, void *user,
	     const evc_member_opts *o, evc_id *ret_id, const char *func)
{
	size_t stack = o != NULL ? o->stack : 0;
	evc_id before = 0;
	evc_status st;

	sync_lock(&c->lock);
	if (evc_should_stop(c) && !(p->m.e.flags & EVC_AFTER_STOP)) {
		sync_unlock(&c->lock);
		evc__member_discard(&p->m);
		return evc__refuse(-EVC_CANCELLED, "%s: a stop was requested",
				   func);
	}
	/* *ret_id is set before the thread can run, and restored if no thread
	   starts. */
	if (ret_id != NULL) {
		before = *ret_id;
		*ret_id = c->member.ids.last + 1;
	}
	st = evc__outcome_new(&p->m, func);
	if (st == 0)
		st = evc__wakers_add(&p->m, o, user, func);
	if (st == 0)
		st = evc__launch(c, p, stack, func);
	if (st < 0) {
		evc__wakers_drop(&p->m);
		if (ret_id != NULL)
			*ret_id = before;
	}
	sync_unlock(&c->lock);
	if (st < 0)
		evc__member_discard(&p->m);
	return st;
}

evc_status
evc__thread_start(evc_coord *c, const char *name, evc_fn *fn, void *arg,
		  void *user, const evc_member_opts *o, evc_id *ret_id,
		  const char *func)
{
	size_t stack = o != NULL ? o->stack : 0;
	evc_status st = evc__check_opts(o, EVC_THREAD, func);
	struct evc__pthread *p;

	if (st == 0)
		st = evc__launch_check(stack, func);
	if (st < 0)
		return st;
	p = (struct evc__pthread *)evc__member_new(c, sizeof *p, EVC_THREAD,
						   name, o);
	if (p == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	p->m.ops = &evc__pthread_ops;
	p->fn = fn;
	p->arg = arg;
	return start_thread(c, p, user, o, ret_id, func);
}

evc_status
evc_thread_start(evc_coord *c, const char *name, evc_fn *fn, void *arg,
		 const evc_member_opts *opts, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0 && fn == NULL)
		st = evc__refuse(-EVC_INVALID_ARGUMENT, "%s: no function",
				 __func__);
	if (st == 0)
		st = evc__thread_start(c, name != NULL && name[0] != '\0' ?
						  name :
						  "thread",
				       fn, arg, arg, opts, ret_id, __func__);
	return evc__refuse_setup(c, __func__, st);
}
