/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop on a thread of its own.  The thread makes the loop, calls the
 * program's setup, runs the loop, calls the program's teardown and destroys the
 * loop; its starter sleeps until the setup is over.
 * Called by: the program (evc_reactor_start).
 * Locks: the coordinator's lock for flags and the list of reactors; `ready` and
 * `users` of struct start are atomic, and the last user frees the struct.
 */
#include <ev.h>

#include "core/core.h"
#include "base/self.h"
#include "base/text.h"
#include "base/unwind.h"
#include "members/thread.h"

struct start {
	/* set at creation */
	evc_coord *c;
	evc_reactor_fn *setup;
	evc_fn *teardown; /* or NULL */
	void *arg;
	unsigned flags;   /* set for the thread when the loop is made */
	char name[48];
	/* written by the thread before ready, read by the starter afterwards;
	   loop: only the thread uses this field */
	struct ev_loop *loop;
	evc_reactor *r;
	int tid;
	evc_status st;    /* < 0: the call is refused with this status */
	bool by_setup;    /* st is the result of setup */
	bool is_set_up;   /* the teardown is due; only the thread uses this
			     field */
	char why[160];
	struct evc__busy busy; /* while setup runs */
	/* atomic: the thread -> the starter, which sleeps on ready */
	_Atomic uint32_t ready;
	_Atomic uint32_t users;
};

static void
release_start(struct start *s)
{
	if (sync_sub(&s->users, 1) == 1)
		sync_free(s);
}

/* The setup is over: wake the starter. */
static void
announce_setup(struct start *s, evc_status st, const char *why)
{
	s->st = st;
	evc__copy(s->why, sizeof s->why, why);
	sync_store_sc(&s->ready, 1);
	sync_futex_wake(&s->ready);
}

/* Lock not held: does the reactor still exist, with its loop? */
static bool
reactor_exists(const struct start *s)
{
	evc_coord *c = s->c;
	struct list *n, *tmp;
	bool yes = false;

	sync_lock(&c->lock);
	LIST_EACH(n, tmp, &c->loop.reactors) {
		const evc_reactor *r = LIST_OF(n, evc_reactor, node);

		yes |= r == s->r && r->tid == s->tid && r->loop != NULL;
	}
	sync_unlock(&c->lock);
	return yes;
}

/* ---- the thread ---- */

/* Are two descriptors left?  libev ends the process when no descriptor is left
   for the wake-up of the loop, and does without epoll when no second descriptor
   is left. */
static bool
descriptors_left(void)
{
	int one = sync_eventfd(), two = one >= 0 ? sync_eventfd() : -1;

	if (one >= 0)
		sync_fd_close(one);
	if (two >= 0)
		sync_fd_close(two);
	return two >= 0;
}

static evc_status
make_loop(struct start *s)
{
	evc_status st;

	s->tid = evc__tid();
	if (!descriptors_left())
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_reactor_start: no descriptors for a "
				   "loop");
	s->loop = ev_loop_new(EVFLAG_AUTO);
	if (s->loop == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_reactor_start: no loop");
	st = evc__reactor_attach(s->c, s->name, s->loop, NULL, &s->r);
	if (st < 0)
		ev_loop_destroy(s->loop);
	return st;
}

/* Outside ev_run: end the reactor, call the teardown, end the loop.  Returns
   the result of the teardown. */
static evc_status
take_down(struct start *s)
{
	bool due = s->is_set_up && s->teardown != NULL;
	evc_coord *c = s->c;
	evc_status st = 0;

	/* Watchers of setup end with the loop.  Members are left when the
	   thread has ended in a callback. */
	if (reactor_exists(s) && evc_reactor_detach(s->r) < 0 && due)
		evc__loop_waker_abandon(s->r->waker);
	s->is_set_up = false;
	if (due)
		st = evc__fn_shut(s->teardown, c, s->arg);
	if (!evc__same_process(c))
		return st;
	ev_loop_destroy(s->loop);
	release_start(s);
	return st;
}

/* Cleanup handler: setup has left by pthread_exit. */
static void
setup_exited(void *arg)
{
	struct start *s = arg;

	if (!evc__same_process(s->c))
		return;
	evc__busy_end(&s->busy);
	announce_setup(s, -EVC_ABORTED,
		       "evc_reactor_start: the thread has ended in its setup");
	(void)take_down(s);
}

static evc_status
run_setup(struct start *s)
{
	evc_status st;

	/* The name is the reactor's own, because s may be freed without the
	   lock. */
	evc__busy_begin(s->r, s->c, BUSY_SETUP, s->r->name, &s->busy);
	pthread_cleanup_push(setup_exited, s);
	st = s->setup(s->r, s->arg);
	pthread_cleanup_pop(0);
	evc__busy_end(&s->busy);
	return st;
}

/* Cleanup handler: a callback of the program has called pthread_exit.  The loop
   is destroyed all the same, and the members on the loop end. */
static void
run_exited(void *arg)
{
	struct start *s = arg;

	if (evc__same_process(s->c))
		(void)take_down(s);
}

static evc_status
run_loop(struct start *s)
{
	evc_status st;

	pthread_cleanup_push(run_exited, s);
	st = evc_reactor_run(s->r);
	pthread_cleanup_pop(0);
	return st;
}

static evc_status
loop_main(evc_coord *c, void *arg)
{
	struct start *s = arg;
	evc_status st = make_loop(s), code, torn;
	char why[160];
	struct text t = evc__text_in(why, sizeof why);
	bool unknown;

	if (st < 0) {
		/* The call is refused, and no member has ended. */
		announce_setup(s, st, evc_last_error());
		release_start(s);
		return 0;
	}
	sync_lock(&c->lock);
	evc__self()->member->e.flags |= (uint16_t)s->flags;
	sync_unlock(&c->lock);
	st = s->setup != NULL ? run_setup(s) : 0;
	if (!evc__same_process(c))
		return 0; /* a fork child, made in setup */
	code = evc__normal(st, &unknown);
	s->by_setup = true;
	evc__text_fmt(&t, "evc_reactor_start: the setup of %s returned %d",
		      s->name, st);
	s->is_set_up = code == 0;
	announce_setup(s, -code, why);
	if (code == 0 && reactor_exists(s))
		st = run_loop(s);
	if (!evc__same_process(c))
		return st;
	torn = take_down(s);
	return st != 0 ? st : torn;
}

/* ---- the starter ---- */

/* Wait for the end of the setup.  *ret_reported: a result of setup is reported
   as the result of the thread, not by the starter. */
static evc_status
await_setup(struct start *s, evc_reactor **ret_reactor, bool *ret_reported)
{
	while (sync_load_sc(&s->ready) == 0)
		sync_futex_wait(&s->ready, 0, SYNC_FOREVER);
	*ret_reported = s->by_setup;
	if (s->st < 0)
		return evc__refuse(s->st, "%s", s->why);
	/* A stop may have ended the thread meanwhile. */
	if (ret_reactor != NULL)
		*ret_reactor = reactor_exists(s) ? s->r : NULL;
	return 0;
}

/* Inside the refgate of c. */
static evc_status
reactor_start(evc_coord *c, const char *name, struct start *s,
	      const evc_member_opts *opts, evc_reactor **ret_reactor,
	      bool *ret_reported)
{
	static const char func[] = "evc_reactor_start";
	evc_member_opts o = { 0 };
	evc_status st;

	if (opts != NULL)
		o = *opts;
	if (o.flags & EVC_OWN_SCOPE) {
		sync_free(s);
		return evc__refuse(-EVC_INVALID_ARGUMENT,
				   "%s: EVC_OWN_SCOPE is for evc_thread_start",
				   func);
	}
	/* A thread that gets no loop must not request a stop by its end. */
	s->flags = o.flags & EVC_END_STOPS;
	o.flags &= ~(unsigned)EVC_END_STOPS;
	s->teardown = o.stop;
	o.stop = NULL;
	if (name == NULL || name[0] == '\0')
		name = "loop";
	evc__copy_dots(s->name, sizeof s->name, name);
	sync_store(&s->users, 2);
	st = evc__thread_start(c, name, loop_main, s, s->arg, &o, NULL, func);
	if (st < 0) {
		sync_free(s);
		return st;
	}
	st = await_setup(s, ret_reactor, ret_reported);
	release_start(s);
	return st;
}

evc_status
evc_reactor_start(evc_coord *c, const char *name, evc_reactor_fn *setup,
		  void *arg, const evc_member_opts *opts,
		  evc_reactor **ret_reactor)
{
	evc_status st = evc__check(c, __func__);
	bool reported = false;
	struct start *s;

	/* The new thread may be joined, and c freed, during the call. */
	if (st == 0)
		st = evc__enter(c, -EVC_FAILED_PRECONDITION, __func__);
	if (st < 0)
		return st;
	s = sync_alloc(1, sizeof *s);
	if (s != NULL) {
		s->c = c;
		s->setup = setup;
		s->arg = arg;
		st = reactor_start(c, name, s, opts, ret_reactor, &reported);
	} else
		st = evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				 __func__);
	if (!reported)
		evc__refuse_member(c, __func__, opts, st);
	evc__refgate_leave(&c->life.gate);
	return st;
}
