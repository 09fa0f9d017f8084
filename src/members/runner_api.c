/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners: evc_runner_add, evc_runner_done and evc_all_stopped.
 * Called by: the program, on any thread.
 * Locks: the coordinator's lock, released around calls of the program's
 * functions; below a coordinator's lock those of its scopes.
 */
#include "members/runner.h"

#include "base/self.h"
#include "core/join/join.h"

/* ---- begin ---- */

static void
release_runner(struct evc__member *m)
{
	struct evc__runner *r = LIST_OF(m, struct evc__runner, m);

	list_remove(&r->all);
	if (r->reactor != NULL)
		r->reactor->n_runners--;
}

static const struct evc__member_ops member_ops = {
	.release = release_runner,
	.remove = evc__runner_remove,
};

static evc_status
runner_add(evc_coord *c, const char *name, const evc_runner_ops *ops,
	   void *arg, const evc_member_opts *o, evc_id *ret_id)
{
	static const char func[] = "evc_runner_add";
	struct evc__runner *r;
	evc_status st;

	if (ops == NULL || ops->is_running == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT, "%s: no is_running",
				   func);
	st = evc__runner_check(c, EVC_RUNNER, o, func);
	if (st < 0)
		return st;
	r = (struct evc__runner *)evc__member_new(
		c, sizeof *r, EVC_RUNNER,
		name != NULL && name[0] != '\0' ? name : "runner", o);
	if (r == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	if (!evc__release_new(o, arg, &r->m.release)) {
		evc__member_discard(&r->m);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	}
	r->m.ops = &member_ops;
	r->copy = *ops;
	r->ops = &r->copy;
	r->arg = arg;
	sync_lock(&c->lock);
	st = evc__outcome_new(&r->m, func);
	if (st == 0)
		st = evc__runner_enter(c, r, o, func);
	if (st == 0) {
		if (ret_id != NULL)
			*ret_id = r->m.e.id;
		evc__member_probed(&r->m, true);
		/* A waiting join has to see the new member, and a stop may
		   have come before. */
		evc__runner_wake(r);
	}
	sync_unlock(&c->lock);
	if (st < 0)
		evc__member_discard(&r->m);
	return st;
}

evc_status
evc_runner_add(evc_coord *c, const char *name, const evc_runner_ops *ops,
	       void *arg, const evc_member_opts *opts, evc_id *ret_id)
{
	evc_status st = evc__check(c, __func__);

	if (st == 0)
		st = runner_add(c, name, ops, arg, opts, ret_id);
	return evc__refuse_member(c, __func__, opts, st);
}

/* ---- end ---- */

/* Lock held. */
static evc_status
runner_done(evc_coord *c, evc_id id, evc_status result)
{
	struct evc__member *m = evc__member_find(c, id);
	struct evc__runner *r = NULL;
	evc_status st;

	if (m != NULL && m->e.kind == EVC_RUNNER)
		r = LIST_OF(m, struct evc__runner, m);
	if (r == NULL || r->own != NULL || r->done_called || r->over)
		return evc__refuse(-EVC_NOT_FOUND,
				   "evc_runner_done: no runner %llu",
				   (unsigned long long)id);
	r->done_called = true;
	/* The result comes first, because the round may close when no member is
	   alive. */
	st = evc__member_result(c, id, m->name, m->e.flags, result, false);
	evc__outcome_is(m, result);
	if (!r->ended)
		evc__runner_ended(r);
	if (r->call != RUNNER_IDLE) {
		/* The thread in the call may not go on to the join. */
		r->wanted = true;
		return st;
	}
	if (r->ops->join == NULL) {
		r->over = true;
		evc__runner_settle(r);
	} else
		evc__runner_wake(r);
	return st;
}

evc_status
evc_runner_done(evc_coord *c, evc_id id, evc_status result)
{
	evc_status st = evc__check(c, __func__);

	/* Inside the refgate, so that c still exists during the ring. */
	if (st == 0)
		st = evc__enter(c, -EVC_NOT_FOUND, __func__);
	if (st < 0)
		return st;
	sync_lock(&c->lock);
	st = runner_done(c, id, result);
	sync_unlock(&c->lock);
	evc__refgate_leave(&c->life.gate);
	return st;
}

/* ---- has everything stopped? ---- */

/* May the calling thread call is_running? */
static bool
may_ask(const struct evc__runner *r)
{
	return r->reactor == NULL ||
	       (r->reactor->tid == evc__tid() && r->reactor->loop != NULL);
}

/* Lock held, released around calls: ask each runner once. */
static void
ask_runners(evc_coord *c)
{
	struct list *n = c->member.runners.next, *next;
	evc_id asked = 0; /* the list is in the order of the ids */

	for (; n != &c->member.runners; n = next) {
		struct evc__runner *r = RUNNER_OF(n);

		next = n->next;
		if (r->m.e.id <= asked || r->ended || r->over)
			continue;
		if (r->own != NULL) {
			r->ended = !r->own->is_running(r);
			continue;
		}
		if (!may_ask(r))
			continue;
		if (r->call == RUNNER_ASKED && r->caller != evc__tid()) {
			/* The answer of that call may be out of date. */
			evc__runner_await(r, SYNC_FOREVER);
			next = c->member.runners.next;
			continue;
		}
		asked = r->m.e.id;
		if (r->call != RUNNER_IDLE)
			continue;
		evc__runner_call(r, RUNNER_ASKED);
		if (r->ended)
			evc__runner_wake(r);
		next = n->next;
		evc__runner_settle(r);
	}
}

/* Lock held, released meanwhile: ask in c and the scopes below. */
static void
ask_all(evc_coord *c)
{
	struct list *n, *next;

	/* Not evc__members_refresh: that joins runners, too. */
	evc__members_reap(c, BACKOFF_MOST_NS);
	evc__members_probe(c);
	if (c->member.driver != NULL)
		ask_runners(c);
	for (n = c->scopes.next; n != &c->scopes; n = next) {
		evc_coord *s = SCOPE_OF(n);

		next = n->next;
		if (sync_load_sc(&s->stop.alive) == 0 ||
		    !evc__refgate_enter(&s->life.gate))
			continue;
		sync_unlock(&c->lock);
		sync_lock(&s->lock);
		ask_all(s);
		sync_unlock(&s->lock);
		sync_lock(&c->lock);
		/* A scope that is being freed leaves the list after the last
		   thread has left its refgate, so s is still in the list. */
		next = n->next;
		evc__refgate_leave(&s->life.gate);
	}
}

/* Lock held: members count as alive until they are joined. */
static bool
nothing_runs(evc_coord *c)
{
	struct list *n, *tmp;
	uint32_t stopped = 0;

	if (c->member.driver != NULL)
		LIST_EACH(n, tmp, &c->member.runners)
			stopped += RUNNER_OF(n)->ended || RUNNER_OF(n)->over;
	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		if (sync_load_sc(&s->stop.alive) == 0)
			continue;
		sync_lock(&s->lock);
		stopped += nothing_runs(s);
		sync_unlock(&s->lock);
	}
	return sync_load_sc(&c->stop.alive) == stopped;
}

bool
evc_all_stopped(const evc_coord *c)
{
	evc_coord *me = (evc_coord *)c;
	bool yes;

	if (c == NULL)
		return false;
	/* A fork child gets an answer, too. */
	if (!evc__same_process(c) || !evc__refgate_enter(&me->life.gate))
		return sync_load_sc(&me->stop.alive) == 0;
	sync_lock(&me->lock);
	ask_all(me);
	yes = nothing_runs(me);
	sync_unlock(&me->lock);
	evc__refgate_leave(&me->life.gate);
	return yes;
}
