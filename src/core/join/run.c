/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ev_run of the library: evc_run, evc_reactor_run, and evc_join on a loop's
 * thread.  ev_break ends the innermost ev_run of a loop.  So the library breaks
 * its own ev_run only at depth 1; inside an ev_run of the application, an
 * ev_prepare waits for the end of that inner run.  An ev_run cancels an earlier
 * break at its begin; then the library breaks again.
 *
 * Called by: evc_run, evc_reactor_run, loop.c, turn.c; libev.
 * Locks: none held during ev_run; the driver belongs to the loop's thread.
 */
#include "core/core.h"
#include "core/join/scope_join.h"
#include "core/loop/post.h"

#include "base/self.h"
#include "base/unwind.h"

static void
on_prepare(struct ev_loop *loop, ev_prepare *p, int revents)
{
	evc_reactor *r = p->data;

	(void)loop;
	(void)revents;
	if (!evc__loop_waker_inherited(r->waker))
		evc__driver_turn(r);
}

void
evc__driver_turn(evc_reactor *r)
{
	struct evc__driver *d = r->driver;

	if (d == NULL || (!d->ended && !d->over(d)))
		return;
	d->ended = true;
	if (evc__depth(r->waker, d) == 1)
		ev_break(r->loop, EVBREAK_ONE);
	if (!ev_is_active(&r->prepare)) {
		ev_prepare_init(&r->prepare, on_prepare);
		r->prepare.data = r;
		ev_prepare_start(r->loop, &r->prepare);
		ev_unref(r->loop);
	}
}

static void
leave_loop(struct evc__stand *s, struct ev_loop *loop)
{
	evc_reactor *r = LIST_OF(s, struct evc__driver, stand)->r;

	if (ev_is_active(&r->prepare)) {
		ev_ref(loop);
		ev_prepare_stop(loop, &r->prepare);
	}
}

/* The end of evc__drive, also by an exception from a watcher of the program. */
static void
end_drive(struct evc__driver **d)
{
	struct evc__stand *s = &(*d)->stand;
	evc_reactor *r = (*d)->r;

	r->driver = NULL;
	/* In a fork child no watcher of the library is on the loop any more. */
	if (evc__loop_waker_inherited(r->waker))
		return;
	leave_loop(s, r->loop);
	evc__stand_end(s);
	evc__depth_is_none(r->waker);
	/* A break by an ev_prepare comes after the loop's own note of rest. */
	sync_store_relaxed(&r->waker->rests, false);
}

bool
evc__drive(struct evc__driver *d)
{
	struct evc__driver *begun LEAVING(end_drive) = d;
	evc_reactor *r = d->r;
	evc_coord *c = r->c;
	struct evc__request q = { .kind = EVC_BY_LOOP_BROKEN,
				  .text = "ev_break by the application" };

	d->stand.leave = leave_loop;
	evc__stand_begin(&d->stand, r->waker);
	d->frame = __builtin_frame_address(0);
	r->driver = begun;
	while (!d->ended) {
		ev_run(r->loop, 0);
		/* A fork child returns here, too: the child has a copy of this
		   stack, and no coordinator to go on with. */
		if (evc__loop_waker_inherited(r->waker))
			return false;
		if (!d->ended && d->stops_on_break && !evc_should_stop(c))
			evc__request(c, &q);
	}
	return true;
}

/* May the calling thread run this reactor's loop? */
static evc_status
may_run(const evc_reactor *r, const char *func)
{
	evc_status st = evc__reactor_usable(r, func);

	if (st < 0)
		return st;
	if (r->tid != evc__tid())
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: another thread's loop", func);
	if (r->hosted)
		return evc__check_host(r->c, func);
	if (evc__depth(r->waker, NULL) > 0)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: inside ev_run of loop %s it would "
				   "deadlock",
				   func, r->name);
	return 0;
}

static evc_status
run_until_answered(evc_coord *c, const evc_join_opts *o,
		   evc_verdict *ret_verdict)
{
	struct evc__join j = { .until_stop = true,
			       .reap_ns = BACKOFF_FIRST_NS };
	evc_status st = evc__join_check(c, o, "evc_run");

	if (st == 0 && evc__home(c) == NULL)
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "evc_run: no home loop");
	if (st == 0 && o != NULL && o->reactor != NULL &&
	    o->reactor != evc__home(c))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "evc_run: runs the home loop only");
	if (st == 0)
		st = may_run(evc__home(c), "evc_run");
	if (st == 0)
		st = evc__adopt_list(c, o);
	if (st < 0)
		return st;
	j.reactor = evc__home(c);
	evc__join_begin(&j, c, o);
	return evc__join_drive(&j) ? evc__join_result(&j, ret_verdict) :
				     evc__check(c, "evc_run");
}

evc_status
evc_run(evc_coord *c, const evc_join_opts *opts, evc_verdict *ret_verdict)
{
	struct evc__stay in LEAVING(evc__stay_end) = { .c = NULL };
	evc_status st = evc__stay_begin(&in, c, __func__);

	return st < 0 ? st : run_until_answered(c, opts, ret_verdict);
}

/* No lock: is there work left on r? */
static bool
has_work(evc_reactor *r)
{
	evc_coord *c = r->c;
	bool yes;

	if (r->n_live > 0 || !list_empty(&r->joins) ||
	    sync_load_sc(&r->inbox->n) > 0)
		return true;
	/* Before the stop reaches a scope, because of its phase, the scope has
	   all its work to come. */
	if (!evc_should_stop(c) && (sync_load_sc(&c->stop.alive) > 0 ||
				    sync_load_sc(&c->loop.n_hooks) > 0 ||
				    sync_load(&c->join.scope_join) != NULL))
		return true;
	sync_lock(&c->lock);
	yes = r->n_loopers > 0 || r->n_runners > 0 || evc__hooks_due(c, r) ||
	      (r == evc__home(c) && evc__scope_join_due(c, evc__tid()));
	sync_unlock(&c->lock);
	return yes;
}

/* Has c a stop, and is no work left on this loop, for c or for scopes with this
   loop as home? */
static bool
is_over(struct evc__driver *d)
{
	evc_coord *c = d->r->c;

	if (!evc_should_stop(c))
		return false;
	/* Another thread may be in the middle of the walk: this thread
	   completes the walk. */
	evc__tell_all(c);
	return !evc__loop_waker_any(d->r->waker, has_work);
}

/* The end of reactor_run, also by an exception from a watcher of the
   program. */
static void
end_reactor_run(evc_reactor **r)
{
	evc__reactor_hear(*r, false);
}

static void
reactor_run(evc_reactor *r)
{
	evc_reactor *heard LEAVING(end_reactor_run) = r;
	struct evc__driver d = { .r = r,
				 .over = is_over,
				 .stops_on_break = true };
	bool ours;

	evc__reactor_hear(heard, true);
	ours = evc__drive(&d);
	/* The turn that broke the run goes on after the break, and its
	   callbacks may begin new work. */
	while (ours && !is_over(&d)) {
		d.ended = false;
		evc__reactor_poke(r);
		ours = evc__drive(&d);
	}
}

evc_status
evc_reactor_run(evc_reactor *r)
{
	struct evc__stay in LEAVING(evc__stay_end) = { .c = NULL };
	evc_status st;

	if (r == NULL)
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "evc_reactor_run: no reactor");
	st = evc__check(r->c, __func__);
	if (st == 0)
		st = may_run(r, __func__);
	if (st < 0)
		return st;
	evc__stay_wait(&in, NULL);
	reactor_run(r);
	evc__stay_end(&in);
	if (!evc__same_process(r->c))
		return evc__check(r->c, __func__);
	if (r == evc__home(r->c))
		return 0;
	/* Scopes with this loop as home lose the loop. */
	evc__loop_waker_strand(r);
	return evc_reactor_detach(r);
}
