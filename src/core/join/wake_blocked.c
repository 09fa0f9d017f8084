/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking blocked members, from a stop on: cancel hooks, unblock and kicks.  In
 * this file k is a waker.
 *
 * Called by: the helper thread, as a job of each coordinator with wakers.
 * Locks: the coordinator's, given up for each function called.
 */

/*
 * A waker runs when the waker is due and its member is LIVE; both are checked
 * under the lock.  A function is called without the lock, and `running` is set
 * meanwhile: another thread that removes the waker waits for the return, or
 * leaves the memory to the helper.  A kick is sent under the lock: a LIVE
 * thread was not joined, and to join a thread needs the lock first.
 *
 * A kick is lost when the thread has looked at the flag, and is not yet in its
 * system call.  So kicks are repeated, on a back-off, as long as the thread
 * lives.  A thread with recent progress (evc_progress) gets no kick for a
 * moment, so that no kick cuts its write short.
 */
#include "core/core.h"
#include "core/helper/job.h"
#include "core/join/join.h"
#include "core/status/trace.h"

#include "base/backoff.h"
#include "base/kick.h"
#include "base/self.h"
#include "base/unwind.h"

/* The longest sleep before a step is due: a second signal, more time or a join
   may move the end of the stop meanwhile. */
#define LOOK_NS (100 * UINT64_C(1000000))

/* ---- the call of a waker; lock held ---- */

/* Is there a thread or member for k to wake now? */
static bool
needs_wake(const struct evc__waker *k)
{
	const struct evc__member *m = k->m;

	if (k->running || k->idle)
		return false;
	if (m == NULL)
		return true;
	if (sync_load(&m->state) != EVC_LIVE)
		return false;
	/* A dormant looper has no thread. */
	if (m->e.kind == EVC_LOOPER && m->tid == 0)
		return false;
	if (m->e.kind == EVC_HOOK)
		return LIST_OF(m, const struct evc__hook, m)->running != 0;
	return k->fn != NULL || m->tid != 0;
}

static void
note_call(struct evc__waker *k, uint32_t stop)
{
	k->calls++;
	/* The timeline gets calls 1, 2, 4, 8 and so on: else members that
	   ignore their calls would push the cause of the stop out of the
	   timeline. */
	if ((k->calls & (k->calls - 1)) == 0)
		evc__trace(k->c, k->fn != NULL ? TRACE_UNBLOCK : TRACE_KICK,
			   k->m != NULL ? k->m->e.id : k->id,
			   k->m != NULL ? k->m->e.kind : TRACE_COORD,
			   k->m != NULL ? k->m->name : NULL, k->calls);
	sync_store(&k->woken, stop);
	if (k->m != NULL)
		sync_store(&k->m->woken, stop);
}

/* Set the time of the next call of k. */
static void
next_step(struct evc__waker *k, uint64_t now)
{
	k->step = evc__backoff_next(k->step, BACKOFF_FIRST_NS, BACKOFF_MOST_NS);
	k->due = k->repeat ? evc__after(now, k->step) : SYNC_FOREVER;
}

static void
call_unblock(struct evc__waker *k, uint32_t stop)
{
	evc_coord *c = k->c;

	note_call(k, stop);
	c->wake.n_unblocks++;
	c->wake.stats.unblocks++;
	k->running = evc__tid();
	sync_unlock(&c->lock);
	evc__call_shut(k->fn, k->arg);
	/* fn has forked: the child has no helper. */
	if (!evc__same_process(c))
		pthread_exit(NULL);
	sync_lock(&c->lock);
	k->running = 0;
	if (!k->removed)
		return;
	if (k->left) {
		list_remove(&k->node);
		c->wake.n_echoes--;
		if (k->then != NULL)
			evc__later_add(c, k->then);
		sync_free(k);
		evc__alive_sub(c);
	}
	/* Another thread may wait for the return of fn. */
	evc__ring(c);
}

/* When a thread with recent progress may get a kick; 0: now. */
static uint64_t
busy_until(const struct evc__waker *k, uint64_t now)
{
	uint64_t moved = k->m != NULL ? sync_load_relaxed(&k->m->mark.ns) : 0;
	uint64_t coarse = moved != 0 ? evc__mark_now(k->c) : 0;

	if (moved == 0 || coarse >= moved + BACKOFF_MOST_NS)
		return 0;
	return now + BACKOFF_MOST_NS - (coarse > moved ? coarse - moved : 0);
}

/* The program may have changed the action of the signal: then no kick is sent,
   for the default action may end the process. */
static bool
kicks_work(evc_coord *c)
{
	const char *lost = evc__kick_lost(c->flags & EVC_KICK_RESTORE);

	if (lost != NULL)
		c->wake.kicks_lost = lost;
	return lost == NULL;
}

/* 0 or an errno value. */
static int
send_kick(const struct evc__waker *k)
{
	int signo = evc__kick_signo();

	if (k->m == NULL || !(k->m->e.flags & EVC_NOT_JOINED))
		return sync_thread_signal(k->m != NULL ? k->m->thread :
							 k->thread, signo);
	return sync_tid_signal(k->m->tid, signo) < 0 ? errno : 0;
}

static void
kick_thread(struct evc__waker *k, uint32_t stop, uint64_t now)
{
	uint64_t until = busy_until(k, now);
	int error;

	if (until != 0) {
		k->due = until;
		return;
	}
	if (!kicks_work(k->c)) {
		next_step(k, now);
		return;
	}
	note_call(k, stop);
	error = send_kick(k);
	if (error == 0) {
		k->c->wake.n_kicks++;
		k->c->wake.stats.kicks++;
	} else if (error != ESRCH) /* The thread may have ended just now. */
		k->c->wake.kick_error = error;
	next_step(k, now);
}

/* ---- the job ---- */

/* The steps of a stop, as a pass of the helper sees them. */
struct steps {
	uint32_t stop;
	uint64_t now;
	uint64_t hooks, kicks; /* when the steps are due */
};

/* Lock held, given up while k runs: call k if k is due.  Returns how long until
   k is due again. */
static uint64_t
serve_waker(struct evc__waker *k, const struct steps *g)
{
	uint64_t from = k->fn != NULL ? g->hooks : g->kicks;
	evc_coord *c = k->c;

	if (k->stop != g->stop) {
		k->stop = g->stop;
		k->step = 0;
		k->due = 0;
		k->calls = 0;
	}
	/* k has been called, and must be called only once. */
	if (k->due == SYNC_FOREVER)
		return SYNC_FOREVER;
	/* The end of the stop may move without a ring for this thread, so the
	   sleep is short, and each pass computes the due time of the step
	   again. */
	if (from > g->now)
		return from - g->now < LOOK_NS ? from - g->now : LOOK_NS;
	if (k->due > g->now)
		return k->due - g->now;
	evc__step_reached(c, k->fn != NULL ? STEP_HOOKS : STEP_KICKS);
	if (k->fn == NULL) {
		kick_thread(k, g->stop, g->now);
		return k->due - g->now;
	}
	next_step(k, g->now);
	/* k may be freed during the call, so k is not used afterwards. */
	from = k->due;
	call_unblock(k, g->stop);
	return from != SYNC_FOREVER ? from - g->now : from;
}

uint64_t
evc__wake_blocked(evc_coord *c, struct evc__helper_job *job)
{
	uint64_t cap = evc__budget_end(c), wait = SYNC_FOREVER, w, t, stop, end;
	const char *lost_before, *lost;
	struct steps g;
	bool hooks = false;
	uint32_t pass;

	(void)job;
	sync_lock(&c->lock);
	w = sync_load_sc(&c->word);
	stop = evc__stop_time(c, w);
	if (stop == 0) {
		sync_unlock(&c->lock);
		return SYNC_FOREVER;
	}
	end = evc__own_end(c);
	end = cap < end ? cap : end;
	g.stop = WORD_STOP_NUMBER(w);
	g.now = evc__now(c);
	g.hooks = evc__step_due(c, STEP_HOOKS, stop, end);
	g.kicks = evc__step_due(c, STEP_KICKS, stop, end);
	pass = ++c->wake.wake_pass;
	lost_before = c->wake.kicks_lost;
	/* Each waker moves to the end of the list when its turn comes.  So each
	   waker has one turn in a pass, although wakers come and go, and other
	   threads walk the list, while the lock is given up. */
	while (!list_empty(&c->wake.wakers)) {
		struct evc__waker *k =
			LIST_OF(c->wake.wakers.next, struct evc__waker, node);

		if ((int32_t)(k->pass - pass) >= 0)
			break;
		/* The stop may have been cleared while a function ran. */
		w = sync_load_sc(&c->word);
		if (!(w & WORD_FLAG) || WORD_STOP_NUMBER(w) != g.stop) {
			wait = 0;
			break;
		}
		k->pass = pass;
		list_remove(&k->node);
		list_append(&c->wake.wakers, &k->node);
		hooks |= k->m != NULL && k->m->e.kind == EVC_HOOK;
		if (!needs_wake(k))
			continue;
		t = serve_waker(k, &g);
		wait = t < wait ? t : wait;
	}
	/* A loop begins a hook without a ring, so look again soon. */
	if (hooks && wait > BACKOFF_MOST_NS)
		wait = BACKOFF_MOST_NS;
	lost = c->wake.kicks_lost;
	sync_unlock(&c->lock);
	evc__later_run(c);
	if (lost != NULL && lost_before == NULL)
		evc_log(c, EVC_LOG_WARNING, NULL,
			"kicks wake nobody: signal %d %s", evc__kick_signo(),
			lost);
	return evc__real_ns(c, wait);
}
