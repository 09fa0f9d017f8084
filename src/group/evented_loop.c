/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups on a loop: what happens on the loop's thread.
 */
#include "group/evented.h"

#include "base/self.h"

/* Late: also in a phase of the stop; and never told of it, because the end of
   the group comes from its scope. */
const evc_task_class evc__evented_class = { .name = "worker group",
					    .flags = EVC_LATE };

/* ---- where we are ---- */

bool
evc__evented_is_here(struct evc__evented *e)
{
	bool here, watching;

	sync_lock(&e->lock);
	here = e->tid == evc__tid();
	watching = e->watching;
	sync_unlock(&e->lock);
	/* It can go on this thread alone. */
	return here && (watching || evc_loop_reactor(e->loop) != NULL);
}

/* ---- watchers ---- */

static void on_idle(struct ev_loop *ev, struct ev_idle *w, int revents);
static void on_timer(struct ev_loop *ev, struct ev_timer *w, int revents);
static void on_cleanup(struct ev_loop *ev, struct ev_cleanup *w, int revents);
static void on_fork(struct ev_loop *ev, struct ev_fork *w, int revents);

/* A loop with nothing else to do stays for a paused group as it does for one
   that runs: by a reference of ours. */
static bool
begin_watching(struct evc__evented *e)
{
	if (evc_task_begin(e->reactor, &e->task, &evc__evented_class) < 0)
		return false;
	sync_add(&e->refs, 1);
	e->ev = evc_reactor_loop(e->reactor);
	ev_idle_init(&e->idle, on_idle);
	ev_set_priority(&e->idle, EV_MINPRI);
	ev_timer_init(&e->timer, on_timer, 0., 0.);
	ev_cleanup_init(&e->cleanup, on_cleanup);
	/* It counts as the reference that holds the loop. */
	ev_fork_init(&e->forked, on_fork);
	e->idle.data = e->timer.data = e->cleanup.data = e->forked.data = e;
	ev_cleanup_start(e->ev, &e->cleanup);
	ev_fork_start(e->ev, &e->forked);
	return true;
}

static void
stop_watchers(struct evc__evented *e)
{
	ev_idle_stop(e->ev, &e->idle);
	ev_timer_stop(e->ev, &e->timer);
	ev_cleanup_stop(e->ev, &e->cleanup);
	ev_fork_stop(e->ev, &e->forked);
}

/* Is this a fork child?  Then nothing of ours is on the loop any more: the
   workers are its parent's. */
static bool
inherited(struct evc__evented *e)
{
	if (e->fork_generation == sync_load(&evc__fork_generation))
		return false;
	stop_watchers(e);
	return true;
}

static void
end_watching(struct evc__evented *e)
{
	stop_watchers(e);
	evc_task_end(&e->task);
	evc__evented_unref(e);
}

static void
watch(struct evc__evented *e, bool runnable, uint64_t in_ns)
{
	if (runnable)
		ev_idle_start(e->ev, &e->idle);
	else
		ev_idle_stop(e->ev, &e->idle);
	ev_timer_stop(e->ev, &e->timer);
	if (runnable || in_ns == UINT64_MAX)
		return;
	ev_timer_set(&e->timer, (double)in_ns / 1e9, 0.);
	ev_timer_start(e->ev, &e->timer);
}

static void
watches_no_more(struct evc__evented *e)
{
	sync_lock(&e->lock);
	e->watching = e->looks = false;
	sync_unlock(&e->lock);
}

static bool
any(const struct evc__turn *t, uint64_t now)
{
	(void)t;
	(void)now;
	return true;
}

/* There is no loop any more: an error, unless a stop was asked for anyway. */
static void
lose(struct evc__evented *e)
{
	struct evc__turn *t = evc__turn_take(e, any, 0);
	evc_workers *g;

	if (t == NULL)
		return;
	g = t->w->group;
	if (!evc_should_stop(g->scope))
		(void)evc_fail_at(g->scope, EVC_ABORTED, 0, NULL, 0, NULL,
				  "the loop that runs %s is gone", g->name);
	evc__turn_end(e, t, false);
	evc__turns_end(e);
}

/* Lock held: what the turns are waiting for; false: there are none. */
static bool
look(const struct evc__evented *e, bool *ret_runnable, uint64_t *ret_in_ns)
{
	uint64_t now = sync_mono(), in_ns = UINT64_MAX;
	struct list *l;

	*ret_runnable = false;
	for (l = e->turns.next; l != &e->turns; l = l->next) {
		const struct evc__turn *t = LIST_OF(l, struct evc__turn, node);
		bool paused = sync_load(&t->w->group->paused);

		if (evc__turn_is_over(t, 0) || (!paused && t->due <= now))
			*ret_runnable = true;
		else if (!paused && t->due - now < in_ns)
			in_ns = t->due - now;
	}
	*ret_in_ns = in_ns;
	return !list_empty(&e->turns);
}

/* What the watchers will do is said in the same breath in which the turns are
   looked at: who changes something then knows whether the loop must be told. */
bool
evc__evented_attend(struct evc__evented *e)
{
	bool runnable, there, was_there;
	uint64_t in_ns;

	/* Its end comes here, too. */
	if (e->in_slice)
		return true;
	sync_lock(&e->lock);
	there = look(e, &runnable, &in_ns);
	was_there = e->watching;
	e->watching = there;
	e->looks = runnable;
	e->tid = evc__tid();
	sync_unlock(&e->lock);
	if (was_there && !there)
		end_watching(e);
	else if (there && !was_there && !begin_watching(e)) {
		watches_no_more(e);
		return false;
	} else if (there)
		watch(e, runnable, in_ns);
	return true;
}

void
evc__evented_settle(struct evc__evented *e)
{
	evc__turns_end(e);
	if (!evc__evented_attend(e))
		lose(e);
}

void
evc__evented_on_mail(evc_mail *m, evc_status why)
{
	struct evc__evented *e = LIST_OF(m, struct evc__evented, mail);

	/* First: what changes from now on rings again. */
	sync_lock(&e->lock);
	e->rung = false;
	sync_unlock(&e->lock);
	/* Then the watchers are stopped by the loop's destruction. */
	if (why == 0)
		evc__evented_settle(e);
	else
		lose(e);
	evc__evented_unref(e);
}

/* ---- slices ---- */

static bool
may_run(const struct evc__turn *t, uint64_t now)
{
	return t->due <= now && !sync_load(&t->w->group->paused);
}

static void
begin_again(struct evc__worker *w, uint64_t now)
{
	sync_lock(&w->group->lock);
	evc__restart_began(&w->restart, now);
	sync_unlock(&w->group->lock);
}

/* A run that a stop is to wake is a guard. */
struct guarded {
	struct evc__worker *w;
	uint64_t pause;
	enum evc__next next;
	bool done;
};

static evc_status
guarded_run(evc_coord *scope, void *arg)
{
	struct guarded *k = arg;

	(void)scope;
	k->next = evc__worker_run_once(k->w, &k->pause);
	k->done = true;
	return 0;
}

static void
unblock(void *arg)
{
	const evc_workers *g = ((struct guarded *)arg)->w->group;

	g->opts.member.unblock(g->arg);
}

static enum evc__next
run_once(struct evc__worker *w, uint64_t *ret_pause)
{
	const evc_member_opts *m = &w->group->opts.member;
	evc_member_opts o = { .flags = m->flags & EVC_KICK };
	struct guarded k = { .w = w };

	if (m->unblock != NULL)
		o.unblock = unblock;
	if (o.flags != 0 || o.unblock != NULL)
		(void)evc_guard(w->group->scope, w->name, guarded_run, &k, &o);
	/* Without memory for that it runs all the same. */
	if (!k.done)
		(void)guarded_run(NULL, &k);
	*ret_pause = k.pause;
	return k.next;
}

static void
run(struct evc__evented *e, struct evc__turn *t, uint64_t now)
{
	uint64_t pause = 0;
	enum evc__next next;

	if (t->due != 0)
		begin_again(t->w, now);
	next = run_once(t->w, &pause);
	if (inherited(e)) {
		/* It stands in no list: this frame alone has it. */
		sync_free(t);
		return;
	}
	if (next == EVC__CLEAN || next == EVC__OVER) {
		evc__turn_end(e, t, true);
		return;
	}
	t->due = next == EVC__LATER ? sync_mono() + pause : 0;
	evc__turn_give_back(e, t);
}

static void
run_slice(struct evc__evented *e)
{
	uint64_t now = sync_mono(), until = now + e->slice;
	struct evc__turn *t;

	do {
		evc__turns_end(e);
		t = evc__turn_take(e, may_run, now);
		if (t == NULL)
			return;
		run(e, t, now);
		now = sync_mono();
	} while (now < until && !inherited(e));
}

static void
on_idle(struct ev_loop *ev, struct ev_idle *w, int revents)
{
	struct evc__evented *e = w->data;

	(void)revents;
	if (inherited(e))
		return;
	/* In a loop that a run runs there is no other run; the slice's end
	   starts this again. */
	if (e->in_slice) {
		ev_idle_stop(ev, w);
		return;
	}
	sync_add(&e->refs, 1);
	e->in_slice = true;
	run_slice(e);
	if (inherited(e))
		return;
	e->in_slice = false;
	evc__evented_settle(e);
	evc__evented_unref(e);
}

static void
on_timer(struct ev_loop *ev, struct ev_timer *w, int revents)
{
	struct evc__evented *e = w->data;

	(void)ev;
	(void)revents;
	if (!inherited(e))
		evc__evented_settle(e);
}

static void
on_cleanup(struct ev_loop *ev, struct ev_cleanup *w, int revents)
{
	struct evc__evented *e = w->data;

	(void)ev;
	(void)revents;
	if (inherited(e))
		return;
	watches_no_more(e);
	lose(e);
	end_watching(e);
}

static void
on_fork(struct ev_loop *ev, struct ev_fork *w, int revents)
{
	(void)ev;
	(void)revents;
	(void)inherited(w->data);
}

