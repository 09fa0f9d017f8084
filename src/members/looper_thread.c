/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopers with a thread of their own.  The thread sleeps on a word until its
 * next run is due: it reads the word, checks its state and the coordinator's,
 * and sleeps only while the word is unchanged.  A change of state, or the stop
 * by the table of listeners, is made before the word moves: so the check sees
 * the change, or the change ends the sleep.  A looper created paused has an id
 * and no thread until the first resume.
 * Called by: looper.c, for the program's calls; core, by own_ops.
 * Locks: the coordinator's lock; `word` is atomic.
 */
#include "core/core.h"
#include "core/join/join.h"
#include "members/looper.h"

struct own {
	struct evc__pthread p; /* first: the register leads to this struct */
	/* set at creation */
	struct evc__listener listener;
	struct evc__looper_more more;
	size_t stack;
	/* atomic: wake_own -> the thread, which sleeps on word */
	_Atomic uint32_t word;

	struct evc__body body; /* lock */
};

static struct own *
own_of(struct evc__entry *e)
{
	return LIST_OF(e, struct own, p.m.e);
}

/* ---- the thread ---- */

static void
wake_own(struct own *o)
{
	/* The caller has changed the state before this call; the thread reads
	   `word` before the state. */
	sync_add(&o->word, 1);
	sync_futex_wake(&o->word);
}

/* Any thread, signal-safe. */
static void
tell_own(struct evc__listener *l)
{
	wake_own(LIST_OF(l, struct own, listener));
}

/* Sleep ns, or until the word is not seq.  Lock held, released meanwhile. */
static void
sleep_ns(struct own *o, uint64_t ns, uint32_t seq)
{
	evc_coord *c = o->p.m.c;

	sync_unlock(&c->lock);
	sync_futex_wait(&o->word, seq, evc__real_ns(c, ns));
	sync_lock(&c->lock);
}

/* Lock held, released around the functions: the whole life of the looper. */
static void
run_looper(struct own *o, const struct evc__looper_who *w)
{
	bool reported = false, on = true;
	uint64_t due, now;
	uint32_t seq;

	for (;;) {
		/* `word` is read before the state; wake_own() changes the state
		   before `word`. */
		seq = sync_load_sc(&o->word);
		if (evc_should_stop(w->c) || (o->body.bits & LOOPER_REMOVED))
			break;
		due = evc__looper_due(&o->body);
		now = evc__now(w->c);
		if (due == SCHEDULE_NEVER || due > now) {
			sleep_ns(o,
				 due == SCHEDULE_NEVER ? SYNC_FOREVER
						       : due - now,
				 seq);
			continue;
		}
		on = evc__looper_serve(w, &o->body, now, &reported);
		if (!on)
			break;
	}
	if (on)
		evc__looper_flush(w, &o->body, &reported);
	evc__looper_finish(w, &o->body, reported);
}

static struct evc__looper_who
who_of(const struct own *o)
{
	return (struct evc__looper_who){
		.c = o->p.m.c,
		.id = o->p.m.e.id,
		.name = o->p.m.name,
		.flags = o->p.m.e.flags,
	};
}

/* Cleanup handler: a function has left by pthread_exit or cancellation. */
static void
left_by_exit(void *arg)
{
	struct own *o = arg;
	struct evc__looper_who w;

	sync_unwound();
	w = who_of(o);
	evc__looper_left(&w, &o->body);
}

static evc_status
own_main(evc_coord *c, void *arg)
{
	struct own *o = arg;
	const struct evc__looper_who w = who_of(o);

	sync_lock(&c->lock);
	pthread_cleanup_push(left_by_exit, o);
	run_looper(o, &w);
	pthread_cleanup_pop(0);
	/* From here on no function is called. */
	o->body.bits |= LOOPER_SILENT;
	sync_unlock(&c->lock);
	return 0;
}

/* ---- the operations of a member: as any thread, but for the listener ---- */

static bool
own_probe(struct evc__member *m)
{
	return evc__pthread_ops.probe(m);
}

static bool
own_reap(struct evc__member *m, uint64_t ns)
{
	return evc__pthread_ops.reap(m, ns);
}

static void
own_vanished(struct evc__member *m)
{
	evc__pthread_ops.vanished(m);
}

static void
own_release(struct evc__member *m)
{
	evc__pthread_ops.release(m);
	m->c->wake.stats.missed += own_of(&m->e)->body.schedule.missed;
	evc__unlisten(m->c, &own_of(&m->e)->listener);
}

static int
own_remove(struct evc__member *m)
{
	struct own *o = own_of(&m->e);
	const struct evc__looper_who w = who_of(o);

	if (o->body.bits & LOOPER_DORMANT) {
		evc__wakers_drop(m);
		evc__id_remove(m->c, &m->e);
		list_remove(&m->node);
		evc__release_due(m->c, m->e.id, m->release);
		sync_free(o);
		return 0;
	}
	if (evc__self()->member == m) {
		if (o->body.bits & LOOPER_SILENT)
			return evc__refuse_removal(m->e.id);
		evc__looper_remove_self(&w, &o->body);
		return 0;
	}
	/* The thread removes the looper, and its end wakes the joins. */
	o->body.bits |= LOOPER_REMOVED;
	wake_own(o);
	return 1;
}

static const struct evc__member_ops own_ops = {
	.probe = own_probe,
	.reap = own_reap,
	.vanished = own_vanished,
	.release = own_release,
	.remove = own_remove,
};

/* ---- the start; lock held ---- */

/* Lock held: start the thread.  The listener comes first, so that each stop
   wakes the thread. */
static evc_status
launch_own(struct own *o, const char *func)
{
	evc_coord *c = o->p.m.c;
	evc_status st;

	if (!evc__listen(c, &o->listener))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED, "%s: no memory",
				   func);
	st = evc__launch(c, &o->p, o->stack, func);
	if (st < 0)
		evc__unlisten(c, &o->listener);
	return st;
}

static evc_status
lie_dormant(struct own *o)
{
	evc_coord *c = o->p.m.c;

	if (!evc__id_reserve(c, 1))
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_looper_start: no memory");
	evc__id_add(c, &o->p.m.e);
	list_append(&c->member.dormant, &o->p.m.node);
	return 0;
}

evc_status
evc__own_looper_wake(struct evc__entry *e)
{
	struct own *o = own_of(e);
	evc_status st;

	list_remove(&o->p.m.node);
	st = launch_own(o, "evc_member_resume");
	if (st < 0)
		list_append(&o->p.m.c->member.dormant, &o->p.m.node);
	return st;
}

/* 1: the looper has begun and ended, because there is a stop. */
static evc_status
start_own(struct own *o, const evc_member_opts *opts, evc_id *ret_id)
{
	evc_coord *c = o->p.m.c;
	bool dormant = o->body.bits & LOOPER_DORMANT;
	bool stopped = evc_should_stop(c);
	evc_id id = c->member.ids.last + 1,
	       before = ret_id != NULL ? *ret_id : 0;
	evc_status st;

	if (stopped && !(o->p.m.e.flags & EVC_AFTER_STOP))
		return evc__refuse(-EVC_CANCELLED,
				   "evc_looper_start: a stop was requested");
	/* *ret_id is set before the thread can run, and restored if no thread
	   starts. */
	if (ret_id != NULL)
		*ret_id = id;
	if (stopped) {
		c->member.ids.last = id;
		if (!dormant)
			evc__ended_at_once(c);
		return 1;
	}
	evc__looper_begin(&o->body, id, evc__now(c));
	st = evc__wakers_add(&o->p.m, opts, o->body.arg, "evc_looper_start");
	if (st == 0)
		st = dormant ? lie_dormant(o)
			     : launch_own(o, "evc_looper_start");
	if (st < 0) {
		evc__wakers_drop(&o->p.m);
		if (ret_id != NULL)
			*ret_id = before;
	}
	return st;
}

evc_status
evc__own_looper_start(evc_coord *c, const char *name, double interval,
		      evc_fn *fn, void *arg, const evc_member_opts *o,
		      evc_id *ret_id)
{
	evc_status st = evc__launch_check(o->stack, "evc_looper_start");
	struct own *own;

	if (st < 0)
		return st;
	own = (struct own *)evc__member_new(c, sizeof *own, EVC_LOOPER, name,
					    o);
	if (own == NULL)
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_looper_start: no memory");
	if (!evc__release_new(o, arg, &own->p.m.release)) {
		evc__member_discard(&own->p.m);
		return evc__refuse(-EVC_RESOURCE_EXHAUSTED,
				   "evc_looper_start: no memory");
	}
	own->p.m.ops = &own_ops;
	own->p.fn = own_main;
	own->p.arg = own;
	own->p.reports = true;
	own->listener.tell = tell_own;
	own->stack = o->stack;
	evc__looper_body(&own->body, interval, fn, arg, o, &own->more);
	sync_lock(&c->lock);
	st = start_own(own, o, ret_id);
	if (st == 1) {
		evc__release_due(c, 0, own->p.m.release);
		own->p.m.release = NULL;
	}
	sync_unlock(&c->lock);
	if (st != 0)
		evc__member_discard(&own->p.m);
	evc__later_run(c);
	return st < 0 ? st : 0;
}

/* ---- for the calls and the reports; lock held ---- */

struct evc__body *
evc__own_looper_body(struct evc__entry *e)
{
	struct own *o = own_of(e);

	return sync_load(&o->p.m.state) == EVC_LIVE ? &o->body : NULL;
}

void
evc__own_looper_changed(struct evc__entry *e)
{
	wake_own(own_of(e));
}

void
evc__own_looper_view(const struct evc__entry *e, struct evc__looper_view *v)
{
	const struct own *o = LIST_OF(e, const struct own, p.m.e);

	v->e = e;
	v->reactor = NULL;
	v->name = o->p.m.name;
	v->alive = !(o->body.bits & LOOPER_DORMANT);
	v->grace = o->p.m.grace;
	v->since_ns = o->p.m.since_ns;
	v->ticks = o->body.schedule.ticks;
	v->missed = o->body.schedule.missed;
	v->state = evc__looper_state(&o->body);
}
