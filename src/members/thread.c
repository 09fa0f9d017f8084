/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Started threads: threads that the coordinator creates, and that its joins
 * join.
 * Called by: the program; foreign.c and loop_thread.c.
 * Locks: the coordinator's lock.
 */
#include "core/core.h"
#include "core/life/scope.h"
#include "members/thread.h"

/* Lock held: the wakers of a thread with a scope of its own work at the stop of
   the scope. */
static evc_status
add_wakers(struct evc__member *m, const evc_member_opts *o, void *user,
	   const char *func)
{
	evc_status st;

	if (m->scope != NULL)
		sync_lock(&m->scope->lock);
	st = evc__wakers_add(m, o, user, func);
	if (m->scope != NULL)
		sync_unlock(&m->scope->lock);
	return st;
}

static evc_status
start_thread(evc_coord *c, struct evc__pthread *p, void *user,
	     const evc_member_opts *o, evc_id *ret_id, const char *func)
{
	size_t stack = o != NULL ? o->stack : 0;
	evc_coord *s = p->m.scope;
	evc_id before = 0;
	evc_status st;

	sync_lock(&c->lock);
	if (evc_should_stop(c) && !(p->m.e.flags & EVC_AFTER_STOP)) {
		evc__member_leaves_scope(&p->m);
		sync_unlock(&c->lock);
		evc__member_discard(&p->m);
		evc__own_scope_end(s);
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
		st = add_wakers(&p->m, o, user, func);
	if (st == 0)
		st = evc__launch(c, p, stack, func);
	if (st < 0) {
		evc__member_leaves_scope(&p->m);
		evc__wakers_drop(&p->m);
		if (ret_id != NULL)
			*ret_id = before;
	}
	sync_unlock(&c->lock);
	if (st < 0) {
		evc__member_discard(&p->m);
		evc__own_scope_end(s);
	}
	/* Threads that have ended were buried. */
	evc__later_run(c);
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
	if (p->m.e.flags & EVC_OWN_SCOPE)
		st = evc__own_scope_new(c, p->m.name, func, &p->m.scope);
	if (st < 0) {
		evc__member_discard(&p->m);
		return st;
	}
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
	return evc__refuse_member(c, __func__, opts, st);
}
