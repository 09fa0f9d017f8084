/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_abandon: the owner leaves, the stragglers stay.  The loops of the calling
 * thread are given up as if destroyed: members on these loops have ended; the
 * reactors stay, without a loop.  From then on the helper thread is the owner:
 * it hears every ring, reaps and probes members as a join does, and, when no
 * member is left, frees all scopes and the root, and ends itself.
 *
 * Called by: the public call; the helper, as a job and through struct
 * evc__upper.
 * Locks: the coordinator's, given up around each step.  Atomics: abandoned.
 */
#include "core/core.h"
#include "core/helper/job.h"
#include "core/join/join.h"
#include "core/life/scope.h"
#include "core/join/scope_join.h"

#include "base/self.h"

/* ---- the end; helper thread ---- */

/* Lock held: has c itself, not its scopes, a member or a user left? */
static bool
in_use(evc_coord *c)
{
	struct list *n, *tmp;

	if (sync_load_sc(&c->stop.alive) > 0 || c->wake.n_pushed > 0 ||
	    c->life.n_conds > 0 || evc__scope_join_due(c, 0) ||
	    evc__helper_inside(c))
		return true;
	LIST_EACH(n, tmp, &c->join.all)
		if (!LIST_OF(n, struct evc__join, node)->internal)
			return true;
	/* A loop may run on a thread that is no member. */
	LIST_EACH(n, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->loop != NULL || r->leaving)
			return true;
	}
	return false;
}

/* Lock held: has c, or a scope below c, a member or a user left?  A scope
   without a home belongs to a pool, a group or a cluster, which the program can
   still use through a handle: the scope counts until the program frees this
   handle.  The scope of a thread does not. */
static bool
any_in_use(evc_coord *c)
{
	struct list *n, *tmp;
	bool yes = in_use(c);

	LIST_EACH(n, tmp, &c->scopes) {
		evc_coord *s = SCOPE_OF(n);

		if (yes)
			break;
		sync_lock(&s->lock);
		yes = (s->loop.no_home && !s->life.of_thread) || any_in_use(s);
		sync_unlock(&s->lock);
	}
	return yes;
}

static uint64_t
run_abandoned(evc_coord *c, struct evc__helper_job *k)
{
	bool used;

	(void)k;
	sync_lock(&c->lock);
	while (evc__members_reap(c, BACKOFF_FIRST_NS) ||
	       evc__children_attend(c, BACKOFF_FIRST_NS))
		;
	evc__probe_all(c);
	used = any_in_use(c);
	sync_unlock(&c->lock);
	if (used)
		return BACKOFF_MOST_NS;
	evc__helper_farewell(c);
	return SYNC_FOREVER;
}

void
evc__abandoned_end(evc_coord *c)
{
	/* The scopes of threads are freed here with the others. */
	c->member.left = NULL;
	while (!list_empty(&c->scopes))
		evc__abandoned_end(SCOPE_OF(c->scopes.next));
	evc__coord_take_down(c);
}

/* ---- the leave ---- */

/* Lock held: the reason against an abandon here and now, or NULL. */
static const char *
why_not(evc_coord *c)
{
	struct list *n, *tmp;

	if (!evc_should_stop(c))
		return "no stop was requested";
	if (sync_load(&c->life.abandoned))
		return "it was abandoned before";
	if (evc__home(c) != NULL && evc__home(c)->loop != NULL &&
	    evc__home(c)->tid != evc__tid())
		return "the home is another thread's loop";
	LIST_EACH(n, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->tid == evc__tid() && r->loop != NULL &&
		    (r->frames != NULL || r->driver != NULL ||
		     evc__depth(r->waker, NULL) > 0))
			return "inside a run of one of its loops";
	}
	/* After the loops: a loop that was left by longjmp took its join
	   along. */
	LIST_EACH(n, tmp, &c->join.all) {
		struct evc__join *j = LIST_OF(n, struct evc__join, node);

		if (!j->internal && !j->answered && j->self == NULL)
			return "a join is under way";
	}
	return NULL;
}

/* Lock held: a loop that the calling thread has attached, or NULL. */
static evc_reactor *
next_loop(const evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.reactors) {
		evc_reactor *r = LIST_OF(n, evc_reactor, node);

		if (r->owner && r->tid == evc__tid() && r->loop != NULL)
			return r;
	}
	return NULL;
}

/* Give up the loops of the calling thread.  Scopes come first, because a
   reactor that shares watchers loses the loop together with the owner. */
static void
leave_loops(evc_coord *c)
{
	evc_reactor *r;
	evc_coord **s;
	unsigned n, i;

	s = evc__scopes_keep(c, &n);
	for (i = 0; s != NULL && i < n; i++)
		leave_loops(s[i]);
	evc__scopes_give_back(s, n);
	for (;;) {
		sync_lock(&c->lock);
		r = next_loop(c);
		sync_unlock(&c->lock);
		if (r == NULL)
			return;
		evc__loop_waker_abandon(r->waker);
	}
}

/* Lock held: make the helper the owner; all steps that can fail are here. */
static evc_status
give_to_helper(evc_coord *c)
{
	const char *why = why_not(c);
	struct evc__helper_job *o;

	if (why != NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_abandon: %s", why);
	o = sync_alloc(1, sizeof *o);
	if (o != NULL) {
		o->run = run_abandoned;
		list_init(&o->node);
	}
	if (o == NULL || !evc__helper_need(c, false)) {
		sync_free(o);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_abandon: no memory or no helper "
				   "thread");
	}
	c->life.owner = o;
	sync_store(&c->life.abandoned, true);
	return 0;
}

evc_status
evc_abandon(evc_coord *c)
{
	evc_status st = c != NULL ? evc__check(c, __func__) : 0;
	struct evc__last_error said = evc__last_error_keep();

	if (c == NULL || st < 0)
		return st;
	if (c->parent != NULL || evc__helper_is_self(c))
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_abandon: %s", c->parent != NULL ?
				   "a scope: its parent may be abandoned" :
				   "inside a callback on the helper thread");
	/* A function that hangs is left behind. */
	if (evc_should_stop(c) && evc__free(c, LOG_HANGS_NS) == 0)
		return 0;
	sync_lock(&c->lock);
	st = give_to_helper(c);
	sync_unlock(&c->lock);
	if (st < 0)
		return st;
	/* Signal handlers go first.  Messages to a service manager go on. */
	evc__coord_release_handlers(c);
	leave_loops(c);
	/* Inside the refgate this thread keeps c, even when the last member
	   ends meanwhile. */
	(void)evc__refgate_enter(&c->life.gate);
	sync_lock(&c->lock);
	/* The helper hears every ring from now on, and looks at c at once. */
	(void)evc__helper_job_add(c, c->life.owner);
	evc__helper_hear(c, true);
	sync_unlock(&c->lock);
	/* After this call no join is there to relieve the helper. */
	evc__helper_relieve(c);
	evc__refgate_leave(&c->life.gate);
	evc__last_error_restore(&said);
	return 0;
}
