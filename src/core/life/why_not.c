/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reasons against freeing a coordinator.  A function of the program's that
 * hangs on the helper thread is such a reason, too, after a while.
 *
 * Called by: coord.c, finish.c.
 * Locks: the coordinator's is held.
 */
#include "base/deadline.h"
#include "base/self.h"
#include "base/text.h"
#include "core/core.h"
#include "core/helper/job.h"
#include "core/join/join.h"
#include "core/join/scope_join.h"
#include "core/life/part.h"
#include "core/life/scope.h"

/* How often a free looks at the helper that serves c: the helper is done in
   microseconds, or hangs. */
#define LOOK_NS (100 * UINT64_C(1000))

/* Lock held: is a join in progress that keeps evc_free from freeing c?  An
   answered blocking join does not: it only has to leave the refgate. */
static bool
join_waits(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->join.all) {
		struct evc__join *j = LIST_OF(n, struct evc__join, node);

		if (!j->internal && (!j->answered || j->reactor != NULL))
			return true;
	}
	return false;
}

/* Lock held: is the calling thread in a hook of c? */
static bool
inside_hook(evc_coord *c)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->loop.hooks)
		if (HOOK_OF(n)->running == evc__tid())
			return true;
	/* The helper thread cannot free a root, which ends the helper, nor free
	   c inside a job. */
	return evc__helper_is_self(c) &&
	       (c->parent == NULL || evc__helper_jobs_inside());
}

/* Lock held: the reason in r against freeing c: another thread has work to do
   on its loop; or NULL. */
static const char *
on_other_loop(evc_reactor *r)
{
	if (r->tid == evc__tid() || (r->loop == NULL && !r->leaving))
		return NULL;
	/* evc_free waits for a reactor that shares watchers. */
	return r->owner || r->leaving ? "another thread's loop is attached: " :
					NULL;
}

/* Lock held: add the names of the scopes of c without those of parts that will
   have gone.  false: there are none. */
static bool
add_scopes(evc_coord *c, const struct evc__gone *gone, struct text *t)
{
	const char *mark = "it has scopes: ";
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->scopes) {
		if (gone->parts && SCOPE_OF(n)->life.part != NULL)
			continue;
		evc__text_add(t, mark);
		evc__text_add(t, SCOPE_OF(n)->name);
		mark = ", ";
	}
	return mark[0] == ',';
}

/* Lock held: add the names of the members that live.  A scope that is held
   counts as alive, but may be freed. */
static bool
add_members(evc_coord *c, const struct evc__gone *gone, struct text *t)
{
	char names[96];

	if (gone->members || sync_load_sc(&c->stop.alive) <= c->life.held ||
	    evc__names_of(c, !gone->parts, names, sizeof names) == 0)
		return false;
	evc__text_add(t, "still running: ");
	evc__text_add(t, names);
	return true;
}

/* Lock held: the reason that no wait mends. */
static const char *
why_not(evc_coord *c, const struct evc__gone *gone, char *buf, size_t room)
{
	struct text t = evc__text_in(buf, room);
	struct list *n, *tmp;

	if (add_scopes(c, gone, &t) || add_members(c, gone, &t))
		return buf;
	if (c->life.thread_runs)
		return "its thread runs";
	if (join_waits(c))
		return "a join waits";
	if (c->life.n_conds > gone->n_conds)
		return "it has queues or conditions";
	if (sync_load_sc(&c->stop.n_waiters) > 0 && !evc_should_stop(c))
		return "a thread waits for the stop, and none was asked for";
	if (c->wake.n_pushed > 0)
		return "a thread has a cancel hook pushed";
	if (evc__log_inside(c))
		return "inside a log hook";
	if (inside_hook(c))
		return "inside a stop hook";
	LIST_EACH(n, tmp, &c->loop.reactors) {
		evc_reactor *r = LIST_OF(n, evc_reactor, node);
		const char *why = on_other_loop(r);

		if (why != NULL) {
			evc__text_add(&t, why);
			evc__text_add(&t, r->name);
			return buf;
		}
		if (r->driver != NULL)
			return "its loop is being run";
	}
	return evc__scope_join_why_not(c);
}

/* Lock held: another thread of the helper is inside c, perhaps in a hook; or
   NULL. */
static const char *
in_function(evc_coord *c, char *buf, size_t room)
{
	struct text t = evc__text_in(buf, room);
	struct list *n, *tmp;

	if (!evc__helper_inside(c))
		return NULL;
	LIST_EACH(n, tmp, &c->loop.hooks)
		if (HOOK_OF(n)->reactor == NULL && HOOK_OF(n)->running != 0) {
			evc__text_fmt(&t, "stop hook %s has not returned",
				      HOOK_OF(n)->m.name);
			return buf;
		}
	return c->member.n_awaited > 0 ?
		       "the release of a member has not returned" :
		       "a function on the helper thread has not returned";
}

const char *
evc__free_why_not(evc_coord *c, const struct evc__gone *gone, uint64_t ns,
		  char *buf, size_t room)
{
	uint64_t until = evc__deadline_in_ns(ns);
	const char *why;

	for (;;) {
		why = why_not(c, gone, buf, room);
		if (why != NULL)
			return why;
		why = in_function(c, buf, room);
		if (why == NULL || sync_mono() >= until)
			return why;
		sync_unlock(&c->lock);
		evc__nap(LOOK_NS);
		sync_lock(&c->lock);
	}
}
