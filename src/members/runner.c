/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runners: members that a table of operations describes.  A runner has no
 * thread: the operations are called on the loop that the runner is bound to,
 * else by a join.  Flags under the lock say what is due.  The lock is released
 * around each call, and r->call excludes a second call and a removal.
 * Called by: core, for joins and loops, by `driver`; child.c and runner_api.c.
 * Locks: the coordinator's lock.
 */
#include "members/runner.h"

#include "base/deadline.h"
#include "base/self.h"
#include "base/spawn.h"
#include "base/text.h"
#include "base/unwind.h"

#define QUESTION_NS UINT64_C(10000000) /* the longest wait of a report */

/* ---- a call of an operation ---- */

/* Record the call, and release the lock. */
static void
begin_call(struct evc__runner *r, enum evc__runner_call call)
{
	r->call = call;
	r->caller = evc__tid();
	sync_unlock(&r->m.c->lock);
}

void
evc__runner_wake(struct evc__runner *r)
{
	evc__ring(r->m.c);
	if (r->reactor != NULL)
		evc__reactor_poke(r->reactor);
}

/* The call has returned: take the lock, and wake waiting threads. */
static void
finish_call(struct evc__runner *r)
{
	sync_lock(&r->m.c->lock);
	r->call = RUNNER_IDLE;
	r->caller = 0;
	if (r->wanted)
		evc__runner_wake(r);
	r->wanted = false;
}

void
evc__runner_await(struct evc__runner *r, uint64_t ns)
{
	evc_coord *c = r->m.c;

	r->wanted = true;
	/* Counted before the lock is released: finish_call() needs the lock. */
	sync_add(&c->stop.n_sleepers, 1);
	evc__await_change(&c->lock, &c->stop.join_seq,
			  evc__deadline_in_ns(ns));
	sync_sub(&c->stop.n_sleepers, 1);
}

void
evc__runner_settle(struct evc__runner *r)
{
	if (r->over && r->call == RUNNER_IDLE)
		evc__member_gone(&r->m);
}

/* ---- the join of a runner ---- */

/* Lock held: the operation join has returned.  The result comes first, because
   the round may close without a live member. */
static void
runner_joined(struct evc__runner *r, evc_status result)
{
	struct evc__member *m = &r->m;
	unsigned flags = m->e.flags;

	if (r->over) /* removed during the call */
		return;
	if (r->done_called)
		flags &= ~(unsigned)EVC_END_STOPS;
	evc__member_result(m->c, m->e.id, m->name, flags, result, false);
	if (!r->done_called || result != 0)
		evc__outcome_is(m, result);
	r->over = true;
}

/* After a join on a thread of its own: the last use of the coordinator. */
static void
thread_joined(struct evc__runner *r, evc_status result)
{
	evc_coord *c = r->m.c;

	if (!evc__same_process(c)) /* a fork child, made in join */
		return;
	finish_call(r);
	runner_joined(r, result);
	evc__runner_settle(r);
	sync_unlock(&c->lock);
	evc__refgate_leave(&c->life.gate);
}

/* After pthread_exit in join: as in a started thread. */
static void
thread_exited(void *arg)
{
	struct evc__runner *r = arg;

	thread_joined(r, evc_should_stop(r->m.c) ? 0 : EVC_ABORTED);
}

static void *
join_main(void *arg)
{
	struct evc__runner *r = arg;
	evc_status result;
	int old;

	/* The creator holds the lock until the record is complete. */
	sync_lock(&r->m.c->lock);
	r->caller = evc__tid();
	sync_unlock(&r->m.c->lock);
	evc__thread_rename(r->m.name);
	pthread_cleanup_push(thread_exited, r);
	evc__runner_trace(TRACE_CALL, r, RUNNER_JOINED);
	result = r->ops->join(r->arg);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cleanup_pop(0);
	evc__runner_trace(TRACE_RETURN, r, RUNNER_JOINED);
	thread_joined(r, result);
	return NULL;
}

/* Lock held.  false: no thread could be started. */
static bool
join_on_a_thread(struct evc__runner *r)
{
	evc_coord *c = r->m.c;
	struct evc__spawn s;
	pthread_t t;
	int e;

	/* The thread leaves the refgate after its last use of c. */
	if (!evc__refgate_enter(&c->life.gate))
		return false;
	r->call = RUNNER_JOINED;
	r->caller = 0;
	evc__spawn_begin(&s, 0, true);
	e = sync_thread_create(&t, &s.attr, join_main, r);
	evc__spawn_end(&s);
	if (e != 0) {
		r->call = RUNNER_IDLE;
		evc__refgate_leave(&c->life.gate);
	}
	return e == 0;
}

/* ---- the due operations ---- */

void
evc__runner_ended(struct evc__runner *r)
{
	r->ended = true;
	sync_store(&r->m.state, EVC_DONE);
	evc__member_probed(&r->m, false);
}

static enum evc__runner_call
next_call(const struct evc__runner *r, bool probe)
{
	if (r->ended)
		return RUNNER_JOINED;
	if (!r->stop_called && evc_should_stop(r->m.c))
		return RUNNER_STOPPED;
	return probe ? RUNNER_ASKED : RUNNER_IDLE;
}

SHUT(bool, call_is_running, (const struct evc__runner *r),
     r->ops->is_running(r->arg))
SHUT(evc_status, call_join, (const struct evc__runner *r),
     r->ops->join(r->arg))
WALLED_VOID(call_describe, (const struct evc__runner *r, char *buf, size_t n),
	    r->ops->describe(buf, n, r->arg))

void
evc__runner_call(struct evc__runner *r, enum evc__runner_call what)
{
	struct evc__self *self = evc__self(), before = *self;
	struct evc__reported reported = evc__reported;
	struct evc__busy busy;
	evc_status result;
	bool runs;

	/* The reports of the calling thread are restored at the end. */
	evc__reported_forget();
	begin_call(r, what);
	/* NULL: the reactor that this thread is turning, if any. */
	evc__busy_begin(NULL, r->m.c, BUSY_RUNNER, r->m.name, &busy);
	evc__runner_trace(TRACE_CALL, r, what);
	switch (what) {
	case RUNNER_STOPPED:
		evc__call_shut(r->ops->stop, r->arg);
		evc__runner_trace(TRACE_RETURN, r, what);
		finish_call(r);
		break;
	case RUNNER_ASKED:
		runs = call_is_running(r);
		finish_call(r);
		if (!runs && !r->ended)
			evc__runner_ended(r);
		break;
	default:
		result = call_join(r);
		evc__runner_trace(TRACE_RETURN, r, what);
		finish_call(r);
		runner_joined(r, result);
		break;
	}
	evc__busy_end(&busy);
	before.mark = self->mark;
	evc__self_keep(&before);
	*self = before;
	evc__reported = reported;
}

bool
evc__runner_serve(struct evc__runner *r, const evc_reactor *on, bool probe)
{
	bool changed = false;

	while (!r->over && r->reactor == on) {
		enum evc__runner_call what = next_call(r, probe);

		if (what == RUNNER_IDLE)
			break;
		if (r->call != RUNNER_IDLE) {
			/* The thread in the call may not come back to this
			   runner: wake the joins after the call. */
			r->wanted = r->wanted || what != RUNNER_ASKED;
			break;
		}
		changed = true;
		/* The stop operation may have ended the runner. */
		probe = what == RUNNER_STOPPED;
		if (what == RUNNER_STOPPED)
			r->stop_called = true;
		if (what == RUNNER_JOINED)
			sync_store(&r->m.state, EVC_REAPING);
		if (what == RUNNER_STOPPED && r->ops->stop == NULL)
			continue;
		if (what == RUNNER_JOINED && r->ops->join == NULL)
			runner_joined(r, 0);
		else if (what != RUNNER_JOINED || r->bound ||
			 !join_on_a_thread(r))
			evc__runner_call(r, what);
	}
	return changed;
}

static bool
attend_runners(evc_coord *c, evc_reactor *on, bool probe)
{
	struct list *n, *next;
	bool changed = false;

	for (n = c->member.runners.next; n != &c->member.runners; n = next) {
		struct evc__runner *r = RUNNER_OF(n);

		if (r->own != NULL)
			changed |= r->own->attend(r, probe);
		else
			changed |= evc__runner_serve(r, on, probe);
		/* r exists until evc__runner_settle below. */
		next = n->next;
		evc__runner_settle(r);
	}
	return changed;
}

/* ---- the other calls of joins and loops ---- */

static bool
force_runners(evc_coord *c)
{
	struct list *n, *tmp;
	bool yes = false;

	LIST_EACH(n, tmp, &c->member.runners)
		if (RUNNER_OF(n)->own != NULL)
			yes |= RUNNER_OF(n)->own->force(RUNNER_OF(n));
	return yes;
}

/* The loop of `from` is gone: joins call its runners from now on. */
static void
orphan_runners(evc_coord *c, evc_reactor *from)
{
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &c->member.runners)
		if (RUNNER_OF(n)->reactor == from)
			RUNNER_OF(n)->reactor = NULL;
	if (from->n_runners > 0)
		evc__ring(c);
	from->n_runners = 0;
}

/* Lock held, released around the call. */
static void
describe_one(struct evc__runner *r, char *buf, size_t n)
{
	static const char *const in[] = {
		[RUNNER_ASKED] = "in its is_running",
		[RUNNER_STOPPED] = "in its stop",
		[RUNNER_JOINED] = "in its join",
		[RUNNER_DESCRIBED] = "in its describe",
	};
	struct text t = evc__text_in(buf, n);
	struct evc__self *self = evc__self(), before = *self;
	struct evc__reported reported = evc__reported;

	if (r->own != NULL)
		r->own->describe(r, buf, n);
	else if (r->call != RUNNER_IDLE)
		evc__text_add(&t, in[r->call]);
	else if (r->ops->describe == NULL || r->over) {
		if (r->reactor != NULL) {
			evc__text_add(&t, "on ");
			evc__text_add(&t, r->reactor->name);
		}
	} else {
		begin_call(r, RUNNER_DESCRIBED);
		evc__helper_describes(r->m.c, true);
		call_describe(r, buf, n);
		evc__helper_describes(r->m.c, false);
		buf[n - 1] = '\0';
		finish_call(r);
		before.mark = self->mark;
		evc__self_keep(&before);
		*self = before;
		evc__reported = reported;
		evc__runner_settle(r);
	}
}

static struct evc__runner *
find_runner(const evc_coord *c, evc_id id)
{
	struct evc__member *m = evc__member_find(c, id);

	return m != NULL && m->e.kind == EVC_RUNNER ?
		       LIST_OF(m, struct evc__runner, m) :
		       NULL;
}

static void
describe_call(evc_coord *c, evc_id id, char *buf, size_t n)
{
	struct evc__runner *r;

	buf[0] = '\0';
	sync_lock(&c->lock);
	r = find_runner(c, id);
	/* is_running should return in a moment. */
	if (r != NULL && r->call == RUNNER_ASKED && r->caller != evc__tid()) {
		evc__runner_await(r, QUESTION_NS);
		r = find_runner(c, id);
	}
	if (r != NULL)
		describe_one(r, buf, n);
	sync_unlock(&c->lock);
}

int
evc__runner_remove(struct evc__member *m)
{
	struct evc__runner *r = LIST_OF(m, struct evc__runner, m);

	if (r->over)
		return evc__refuse_removal(m->e.id);
	if (r->call != RUNNER_IDLE && r->caller != evc__tid()) {
		r->wanted = true;
		return 1;
	}
	r->over = true;
	evc__runner_settle(r);
	return 0;
}

/* ---- the register ---- */

static const struct evc__runner_driver driver = {
	.attend = attend_runners,
	.force = force_runners,
	.orphan = orphan_runners,
	.describe = describe_call,
};

evc_status
evc__runner_check(evc_coord *c, unsigned kind, const evc_member_opts *o,
		  const char *func)
{
	evc_status st = evc__check_opts(o, kind, func);

	if (st == 0 && o != NULL && o->reactor != NULL && o->reactor->c != c)
		st = evc__refuse(-EVC_INVALID_ARGUMENT,
				 "%s: another coordinator's reactor", func);
	return st;
}

evc_status
evc__runner_enter(evc_coord *c, struct evc__runner *r,
		  const evc_member_opts *o, const char *func)
{
	evc_status st;

	/* Joined on a loop only if the caller named the reactor: a join that
	   blocks would hang the loop. */
	r->bound = o != NULL && o->reactor != NULL;
	r->reactor = r->bound ? o->reactor : evc__home(c);
	if (r->reactor != NULL) {
		st = evc__reactor_usable(r->reactor, func);
		if (st < 0)
			return st;
	}
	st = evc__wakers_add(&r->m, o, r->arg, func);
	if (st == 0)
		st = evc__member_add(c, &r->m);
	if (st < 0) {
		evc__wakers_drop(&r->m);
		return st;
	}
	if (c->member.driver == NULL) {
		list_init(&c->member.runners);
		c->member.driver = &driver;
	}
	list_append(&c->member.runners, &r->all);
	if (r->own != NULL)
		r->reactor = NULL; /* any join serves it */
	else if (r->reactor != NULL)
		r->reactor->n_runners++;
	return 0;
}
