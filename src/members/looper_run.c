/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a looper of either kind: the order in which its functions are
 * called (without the lock), and the report of their results.
 *     opts.start, once    before the first run
 *     fn                  at each boundary, until a result is not 0
 *     fn                  once more with EVC_FLUSH, when a stop ends the looper
 *     opts.stop, once     when opts.start has succeeded
 * No run begins after a stop, or while the looper is paused, or after a
 * removal: the state is checked under the lock just before each run.
 * Called by: looper_timer.c and looper_thread.c; the program (evc_looper_tick).
 * Locks: the coordinator's lock; `running` is thread-local.
 */
#include "members/looper.h"

#include "base/self.h"
#include "base/unwind.h"
#include "core/core.h"
#include "core/status/trace.h"

/* A run on the calling thread's stack. */
struct frame {
	struct frame *up;
	const evc_coord *c;
	evc_id id;
	struct evc__tick tick;
};
static __thread struct frame *running;

void
evc__loopers_inherited(void)
{
	running = NULL;
}

/* ---- the functions: no lock ---- */

TICK_PATH static evc_status
call(const struct evc__looper_who *w, evc_fn *fn, void *arg)
{
	const struct evc__acting as = { w->c, w->id, w->name };
	struct evc__self *self = evc__self();
	const struct evc__acting *before = self->acting;
	struct evc__busy_part busy = { NULL, NULL };
	evc_status st;

	evc__reported_forget();
	/* On a thread of its own, the member of the thread names the looper. */
	if (w->reactor != NULL) {
		self->acting = &as;
		busy = evc__busy_enter(w->reactor, w->name);
	}
	evc__trace(w->c, TRACE_CALL, w->id, EVC_LOOPER, w->name, 0);
	/* A thread of its own may end in fn: no loop is left half-way. */
	st = w->reactor != NULL ? evc__fn_shut(fn, w->c, arg) : fn(w->c, arg);
	evc__trace(w->c, TRACE_RETURN, w->id, EVC_LOOPER, w->name, 0);
	if (w->reactor != NULL)
		evc__busy_leave(w->reactor, busy);
	self->acting = before;
	return st;
}

/* Report a result.  true: st is 0, and the looper goes on. */
TICK_PATH static bool
goes_on(const struct evc__looper_who *w, evc_status st, bool *reported)
{
	if (st == 0)
		return true;
	evc__member_result(w->c, w->id, w->name, w->flags, st, false);
	*reported = true;
	return false;
}

/* ---- the life: lock held, released around the functions ---- */

TICK_PATH static const struct evc__policy *
policy(const struct evc__body *b)
{
	return b->more != NULL ? &b->more->policy : &evc__policy_default;
}

/* Take the lock again after a function.  If the function has forked, then in
   the child the looper ends silently, and the lock is new (inherit.c). */
TICK_PATH static void
lock_again(const struct evc__looper_who *w, struct evc__body *b)
{
	sync_lock(&w->c->lock);
	if (!evc__same_process(w->c))
		b->bits |= LOOPER_SILENT | LOOPER_REMOVED;
}

TICK_PATH static bool
run(const struct evc__looper_who *w, struct evc__body *b,
    const struct evc__tick *tick, bool *reported)
{
	struct frame f = { running, w->c, w->id, *tick };
	evc_status st;
	bool on;

	sync_unlock(&w->c->lock);
	running = &f;
	st = call(w, b->fn, b->arg);
	running = f.up;
	on = goes_on(w, st, reported);
	lock_again(w, b);
	return on;
}

/* Call opts.start, which is not NULL. */
static bool
call_start(const struct evc__looper_who *w, struct evc__body *b, bool *reported)
{
	bool on;

	sync_unlock(&w->c->lock);
	on = goes_on(w, call(w, b->more->start, b->arg), reported);
	lock_again(w, b);
	/* A looper that removes itself in opts.start has ended. */
	if (on && !(b->bits & LOOPER_SILENT))
		b->bits |= LOOPER_STARTED;
	return on && !(b->bits & LOOPER_REMOVED);
}

TICK_PATH static bool
take(struct evc__body *b, uint64_t now, struct evc__tick *tick)
{
	if (!(b->bits & LOOPER_TRIGGERED))
		return evc__schedule_take(&b->schedule, policy(b), now, tick);
	b->bits &= ~(uint32_t)LOOPER_TRIGGERED;
	evc__schedule_extra(&b->schedule, tick);
	return true;
}

TICK_PATH bool
evc__looper_serve(const struct evc__looper_who *w, struct evc__body *b,
		  uint64_t now, bool *reported)
{
	struct evc__tick tick;

	if (!(b->bits & LOOPER_STARTED) && b->more != NULL &&
	    b->more->start != NULL) {
		if (!call_start(w, b, reported))
			return false;
		/* opts.start may have taken long. */
		if ((b->bits & LOOPER_PAUSED) || evc_should_stop(w->c))
			return true;
		now = evc__now(w->c);
	}
	if (!take(b, now, &tick))
		return true;
	b->bits |= LOOPER_STARTED;
	if (w->before_run != NULL)
		w->before_run(b);
	return run(w, b, &tick, reported) && !(b->bits & LOOPER_REMOVED);
}

bool
evc__looper_flush(const struct evc__looper_who *w, struct evc__body *b,
		  bool *reported)
{
	struct evc__tick tick;

	if (!(w->flags & EVC_FLUSH) ||
	    (b->bits & (LOOPER_PAUSED | LOOPER_REMOVED)))
		return true;
	/* The stop may come before the first turn of the thread or the loop:
	   the looper still has its start, its last run and its end. */
	if (!(b->bits & LOOPER_STARTED) && b->more != NULL &&
	    b->more->start != NULL && !call_start(w, b, reported))
		return false;
	if (b->bits & LOOPER_PAUSED)
		return true;
	b->bits |= LOOPER_STARTED;
	evc__schedule_extra(&b->schedule, &tick);
	return run(w, b, &tick, reported);
}

bool
evc__looper_owes_stop(const struct evc__body *b)
{
	return (b->bits & LOOPER_STARTED) && !(b->bits & LOOPER_STOPPED) &&
	       b->more != NULL && b->more->stop != NULL;
}

void
evc__looper_finish(const struct evc__looper_who *w, struct evc__body *b,
		   bool reported)
{
	evc_status st = 0;
	unsigned flags = w->flags;

	if (b->bits & LOOPER_SILENT)
		return;
	if (evc__looper_owes_stop(b)) {
		b->bits |= LOOPER_STOPPED;
		sync_unlock(&w->c->lock);
		st = call(w, b->more->stop, b->arg);
		sync_lock(&w->c->lock);
	}
	/* A removal, or the loss of the loop, gives no result.  During a stop
	   the end requests no stop. */
	if (reported || evc_should_stop(w->c))
		flags &= ~(unsigned)EVC_END_STOPS;
	evc__member_result(w->c, w->id, w->name, flags, st, false);
}

void
evc__looper_remove_self(const struct evc__looper_who *w, struct evc__body *b)
{
	b->bits |= LOOPER_REMOVED;
	evc__looper_finish(w, b, false);
	b->bits |= LOOPER_SILENT;
}

void
evc__looper_left(const struct evc__looper_who *w, struct evc__body *b)
{
	running = NULL; /* the frames of this stack are gone */
	sync_lock(&w->c->lock);
	evc__looper_finish(w, b, true);
	b->bits |= LOOPER_SILENT;
	sync_unlock(&w->c->lock);
}

TICK_PATH uint64_t
evc__looper_due(const struct evc__body *b)
{
	if (b->bits & LOOPER_REMOVED)
		return 0;
	if (b->bits & (LOOPER_DORMANT | LOOPER_PAUSED))
		return SCHEDULE_NEVER;
	if (b->bits & LOOPER_TRIGGERED)
		return 0;
	return evc__schedule_due(&b->schedule, policy(b));
}

evc_status
evc_looper_tick(const evc_coord *c, evc_id *ret_id, uint64_t *ret_missed,
		double *ret_late)
{
	evc_status st = evc__check(c, __func__);
	const struct frame *f = running;

	if (st < 0)
		return st;
	/* When a run runs its loop, runs nest: the innermost run of c
	   counts. */
	while (f != NULL && f->c != c)
		f = f->up;
	if (f == NULL)
		return evc__refuse(-EVC_FAILED_PRECONDITION,
				   "evc_looper_tick: not inside the run of a "
				   "looper of %s",
				   c->name);
	if (ret_id != NULL)
		*ret_id = f->id;
	if (ret_missed != NULL)
		*ret_missed = f->tick.missed;
	if (ret_late != NULL)
		*ret_late = (double)f->tick.late / 1e9;
	return 0;
}
