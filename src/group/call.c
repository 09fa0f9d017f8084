/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread's part in groups: a worker, or a thread in a function of a
 * group; and the calls of init, shutdown and the functions of state.  Inside
 * such a function the thread may not start, stop, resize or free groups.  A
 * function that a stop calls may hang: the scope shows its name, and from the
 * end of the stop's budget on its thread gets the kick signal again and again.
 * With EVC_GROUP_ASIDE the function has a thread of its own, and the stop
 * leaves the thread behind.
 * Called by: start.c, stop.c, run.c; inside checks: all calls that start, stop
 * or free.
 * Locks: none held during a function of the user's; budget_ends is atomic.
 */
#include "group/group.h"

#include "base/kick.h"
#include "base/self.h"
#include "base/text.h"

static __thread struct evc__worker *self;
static __thread evc_group *inside;

void
evc__worker_set_self(struct evc__worker *w)
{
	self = w;
}

struct evc__worker *
evc__worker_self(void)
{
	return self;
}

struct evc__worker *
evc__worker_here(const evc_group *group)
{
	return self != NULL && self->group == group ? self : NULL;
}

evc_group *
evc__inside_begin(evc_group *g)
{
	evc_group *was = inside;

	inside = g;
	sync_lock(&g->lock);
	g->inside_tid = evc__tid();
	sync_unlock(&g->lock);
	return was;
}

void
evc__inside_end(evc_group *g, evc_group *was)
{
	inside = was;
	sync_lock(&g->lock);
	g->inside_tid = 0;
	sync_unlock(&g->lock);
}

evc_group *
evc__inside_of(void)
{
	return inside;
}

void
evc__inside_forget(void)
{
	inside = NULL;
}

evc_status
evc__not_inside(const char *func)
{
	if (inside == NULL)
		return 0;
	return evc_refuse(-EVC_FAILED_PRECONDITION,
			  "%s: inside a function of %s", func, inside->name);
}

/* ---- here ---- */

struct here {
	evc_group *g;
	evc_fn *fn;
	int tid;
};

/* Helper thread, again and again while fn runs. */
static void
kick_after_budget(void *arg)
{
	const struct here *h = arg;

	if (evc__kick_signo() != 0 &&
	    sync_mono() >= sync_load(&h->g->budget_ends))
		(void)sync_tid_signal(h->tid, evc__kick_signo());
}

static evc_status
in_guard(evc_coord *scope, void *arg)
{
	const struct here *h = arg;

	return h->fn(scope, h->g);
}

static void
call_here(evc_group *g, const char *name, evc_fn *fn)
{
	struct here h = { g, fn, evc__tid() };
	evc_member_opts nudged = { .unblock = kick_after_budget };
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	sigset_t before;
	evc_id hold = 0;
	bool open = evc__kick_signo() != 0;
	uint64_t until = sync_load(&g->budget_ends);

	/* Joins wait for the hold, and reports name the function.  Without
	   memory for a hold fn is called all the same. */
	(void)evc_hold_begin(g->scope, name, &late, &hold);
	if (open)
		evc__kick_unblock(&before);
	if (evc_guard(g->scope, name, in_guard, &h, &nudged) < 0 &&
	    !evc__group_inherited(g))
		(void)fn(g->scope, g);
	if (open)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (sync_mono() >= until)
		evc_log(g->scope, EVC_LOG_WARNING, NULL,
			"%s was not over when the time of the stop was", name);
	if (hold != 0)
		(void)evc_hold_end(g->scope, hold);
}

void
evc__group_call(evc_group *g, const char *what, evc_fn *fn)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	char name[48];
	struct text t = evc__text_in(name, sizeof name);

	evc__text_fmt(&t, "%s/%s", g->name, what);
	if ((g->opts.flags & EVC_GROUP_ASIDE) &&
	    evc_thread_start(g->scope, name, fn, g, &late, NULL) == 0)
		return;
	call_here(g, name, fn);
}
