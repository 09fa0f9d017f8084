/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_member_wait: the wait for the end of one member.  The waiting thread does
 * for this member the work of a join: it joins an ended thread, and calls the
 * functions of a runner without a loop.
 * Called by: the program.
 * Locks: the coordinator's, given up in the sleep and around the calls of a
 * runner's functions; inside the refgate.
 */
#include <math.h>

#include "members/runner.h"

#include "base/backoff.h"
#include "base/deadline.h"
#include "base/self.h"
#include "base/unwind.h"
#include "core/join/join.h"

static const char func[] = "evc_member_wait";

/* What the wait has to do next; a status <= 0 is its answer. */
enum { SLEEP = 1, POLL = 2 };

struct member_wait {
	evc_coord *c;
	evc_id id;
	bool may_sleep;
	evc_status result;
};

static struct evc__runner *
runner_of(struct evc__member *m)
{
	return m->e.kind == EVC_RUNNER ? LIST_OF(m, struct evc__runner, m) :
					 NULL;
}

/* Lock held: refuse a wait that cannot end. */
static evc_status
check_place(const struct member_wait *w, struct evc__member *m)
{
	const struct evc__runner *r = runner_of(m);

	if (m == evc__self()->member)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: the calling thread is %s itself", func,
				   m->name);
	if (r == NULL)
		return 0;
	if (r->call != RUNNER_IDLE && r->caller == evc__tid())
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: inside a function of %s", func,
				   m->name);
	if (w->may_sleep && r->reactor != NULL &&
	    r->reactor->tid == evc__tid() && r->reactor->loop != NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: %s needs the loop of the calling "
				   "thread",
				   func, m->name);
	return 0;
}

/* Lock held: refuse what is no member to wait for. */
static evc_status
check_member(const struct member_wait *w)
{
	const struct evc__entry *e = evc__id_find(w->c, w->id);
	struct evc__member *m = evc__member_find(w->c, w->id);
	const struct evc__outcome *o = evc__outcome_find(w->c, w->id);

	if (e != NULL && o == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "%s: member %llu is no started thread, "
				   "runner or child process",
				   func, (unsigned long long)w->id);
	if (w->id == 0 || w->id > w->c->member.ids.last)
		return evc__refuse(-EVC_NOT_FOUND, "%s: no member %llu", func,
				   (unsigned long long)w->id);
	if (o == NULL || (e == NULL && o->waiter != NULL && o->waiter != w))
		return evc__refuse(-EVC_NOT_FOUND,
				   "%s: member %llu has ended, and has no "
				   "result any more",
				   func, (unsigned long long)w->id);
	return m != NULL ? check_place(w, m) : 0;
}

static void
attend_runner(struct evc__runner *r)
{
	if (r->own != NULL)
		r->own->attend(r, true);
	else if (r->reactor == NULL)
		evc__runner_serve(r, NULL, true);
	else {
		sync_store_sc(&r->reactor->probe_runners, true);
		evc__reactor_poke(r->reactor);
	}
	evc__runner_settle(r);
}

static void
attend_thread(struct evc__member *m)
{
	uint32_t state = sync_load(&m->state);

	if ((state == EVC_LIVE || state == EVC_DONE) && m->ops->probe(m))
		evc__member_gone(m);
}

/* Lock held, given up meanwhile: do what a join would do for the member. */
static void
attend(const struct member_wait *w)
{
	struct evc__member *m;

	evc__members_reap(w->c, BACKOFF_FIRST_NS);
	m = evc__member_find(w->c, w->id);
	if (m != NULL && runner_of(m) != NULL)
		attend_runner(runner_of(m));
	else if (m != NULL)
		attend_thread(m);
}

/* Lock held, given up meanwhile. */
static int
look(struct member_wait *w)
{
	evc_status st = check_member(w);
	struct evc__outcome *o;
	struct evc__member *m;

	if (st < 0)
		return st;
	attend(w);
	st = check_member(w);
	if (st < 0)
		return st;
	o = evc__outcome_find(w->c, w->id);
	m = evc__member_find(w->c, w->id);
	if (m == NULL) {
		w->result = evc__outcome_take(w->c, o);
		return 0;
	}
	if (o->waiter == NULL)
		o->waiter = w;
	return m->probed ? POLL : SLEEP;
}

/* Another waiter may get the result. */
static evc_status
give_up(const struct member_wait *w)
{
	struct evc__outcome *o;

	sync_lock(&w->c->lock);
	o = evc__outcome_find(w->c, w->id);
	if (o != NULL && o->waiter == w)
		o->waiter = NULL;
	sync_unlock(&w->c->lock);
	return evc__refuse(-EVC_DEADLINE_EXCEEDED,
			   "%s: member %llu still runs", func,
			   (unsigned long long)w->id);
}

static evc_status
wait_until(struct member_wait *w, uint64_t until)
{
	uint64_t step = 0, ns;
	evc_coord *c = w->c;
	uint32_t seq;
	double left;
	int st;

	for (;;) {
		/* join_seq is read before the look: a later change moves
		   join_seq, and ends the sleep. */
		seq = sync_load_sc(&c->stop.join_seq);
		sync_lock(&c->lock);
		st = look(w);
		sync_unlock(&c->lock);
		if (st <= 0)
			return st;
		left = evc_should_stop(c) ? evc_stop_left(c) : INFINITY;
		if (!(left > 0) || evc__deadline_left_ns(until) == 0)
			return give_up(w);
		step = evc__backoff_next(step, BACKOFF_FIRST_NS,
					 BACKOFF_MOST_NS);
		ns = evc__deadline_left_ns(evc__deadline_look(until, left));
		if (st == POLL && step < ns)
			ns = step;
		sync_futex_wait(&c->stop.join_seq, seq, ns);
	}
}

/* The calling thread may sleep: refuse a callback, where a sleep could keep the
   member from its end. */
static evc_status
check_callback(evc_coord *c)
{
	evc_status st = evc_may_wait(c, func);

	if (st == 0 && evc__helper_is_self(c))
		st = evc__refuse(-EVC_FAILED_PRECONDITION,
				 "%s: inside a callback on the helper thread",
				 func);
	return st;
}

evc_status
evc_member_wait(evc_coord *c, evc_id id, double timeout,
		evc_status *ret_result)
{
	struct evc__stay in LEAVING(evc__stay_end) = { .c = NULL };
	struct member_wait w = { .c = c, .id = id, .may_sleep = timeout > 0 };
	evc_status st = evc__check(c, func);

	if (st == 0 && isnan(timeout))
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "%s: NaN is not a time", func);
	if (st == 0 && w.may_sleep)
		st = check_callback(c);
	if (st == 0)
		st = evc__stay_begin(&in, c, func);
	if (st < 0)
		return st;
	sync_add(&c->stop.n_sleepers, 1);
	st = wait_until(&w, evc__deadline_in(timeout));
	sync_sub(&c->stop.n_sleepers, 1);
	evc__later_run(c);
	if (st == 0 && ret_result != NULL)
		*ret_result = w.result;
	return st;
}
