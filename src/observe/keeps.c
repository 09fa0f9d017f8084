/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_reactor_explain: what keeps a loop running.  libev counts active watchers
 * and references, and ev_run returns at 0, but libev lists neither.  So this
 * text says which part of the count is ours, and what lives on the loop.
 * Scopes with the same loop as home have reactors of their own, which share the
 * watchers of the loop; only the loop's thread may go through these reactors.
 * Called by: the program.
 * Locks: the coordinator's and the loop_waker's, taken.
 */
#include "base/self.h"
#include "base/text.h"
#include "core/core.h"
#include "core/join/join.h"

/* More names are cut. */
#define NAMES_MOST 8

struct keeps {
	struct text *t;
	bool here;           /* on the loop's own thread */
	const evc_reactor *about;
	unsigned references; /* our references that keep ev_run running */
	unsigned timers;     /* active and counted by libev */
	unsigned others;     /* reactors of scopes */
};

/* For the function of evc__loop_waker_any, which takes no argument. */
static __thread struct keeps *present;

static const char *
plural(unsigned n)
{
	return n == 1 ? "" : "s";
}

struct name_list {
	struct text *t;
	unsigned n;
};

static void
add_name(struct name_list *a, const char *name)
{
	if (a->n < NAMES_MOST)
		evc__text_fmt(a->t, "%s \"%s\"", a->n > 0 ? "," : ":", name);
	else if (a->n == NAMES_MOST)
		evc__text_add(a->t, ", ...");
	a->n++;
}

/* ---- what lives on a reactor; lock held ---- */

static void
add_tasks(struct keeps *k, const evc_reactor *r)
{
	unsigned i;

	for (i = 0; i <= TASK_CLASSES; i++) {
		const evc_task_class *cls = sync_load(&r->count[i].cls);
		uint32_t n = sync_load(&r->count[i].n);

		if (n == 0)
			continue;
		evc__text_fmt(k->t, "    %u task%s \"%s\", without a "
				    "reference%s\n",
			      n, plural(n),
			      cls != NULL && cls->name != NULL ? cls->name :
								 "of others",
			      evc__tasks_wrong(r));
	}
}

static void
add_looper(const struct evc__looper_view *v, void *arg)
{
	add_name(arg, v->name);
}

static void
add_loopers(struct keeps *k, const evc_reactor *r)
{
	struct name_list a = { k->t, 0 };
	bool holds = r->n_loopers > r->n_loopers_background;

	if (r->n_loopers == 0)
		return;
	evc__text_fmt(k->t, "    %u looper%s, %u of them in the background",
		      r->n_loopers, plural(r->n_loopers),
		      r->n_loopers_background);
	r->looper_ops->each(r, add_looper, &a);
	/* The timer of loopers is never counted, but their reference is. */
	evc__text_fmt(k->t, "; one ev_timer for all, %s reference\n",
		      holds ? "1" : "no");
	k->references += holds;
}

static void
add_hooks(struct keeps *k, const evc_reactor *r)
{
	uint64_t w = sync_load(&r->c->word);
	struct name_list a = { k->t, 0 };
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &r->c->loop.hooks) {
		const struct evc__hook *h = HOOK_OF(n);

		if (h->reactor != r || !evc__hook_pending(h, w))
			continue;
		if (a.n == 0)
			evc__text_add(k->t, "    stop hooks due");
		add_name(&a, h->m.name);
	}
	if (a.n > 0)
		evc__text_fmt(k->t, "\n");
}

static void
add_joins(struct keeps *k, const evc_reactor *r)
{
	unsigned joins = 0, internal = 0, timers = 0, heard;
	struct list *n, *tmp;

	LIST_EACH(n, tmp, &r->c->join.all) {
		const struct evc__join *j = LIST_OF(n, struct evc__join, node);

		if (j->reactor != r)
			continue;
		joins++;
		internal += j->internal;
		timers += k->here && ev_is_active(&j->timer);
	}
	heard = sync_load(&r->listener.n_joins);
	if (joins > 0) {
		evc__text_fmt(k->t, "    %u join%s", joins, plural(joins));
		if (internal > 0)
			evc__text_fmt(k->t, ", %u of them the library's own",
				      internal);
		evc__text_fmt(k->t, ": %u reference%s", joins, plural(joins));
		if (k->here)
			evc__text_fmt(k->t, ", %u ev_timer%s", timers,
				      plural(timers));
		evc__text_fmt(k->t, "\n");
	}
	/* A run waits as a join does, and may just be coming or leaving. */
	if (heard > joins)
		evc__text_fmt(k->t, "    %u run%s (evc_reactor_run): %u "
				    "reference%s\n",
			      heard - joins, plural(heard - joins),
			      heard - joins, plural(heard - joins));
	k->references += heard;
	k->timers += timers;
}

static void
add_reactor(struct keeps *k, evc_reactor *r)
{
	evc_coord *c = r->c;

	evc__text_fmt(k->t, "  reactor \"%s\" of %s \"%s\"\n", r->name,
		      c->parent != NULL ? "scope" : "coordinator", c->name);
	sync_lock(&c->lock);
	add_joins(k, r);
	add_tasks(k, r);
	add_loopers(k, r);
	if (r->n_runners > 0)
		evc__text_fmt(k->t, "    %u runner%s, without a reference\n",
			      r->n_runners, plural(r->n_runners));
	add_hooks(k, r);
	sync_unlock(&c->lock);
}

/* The loop_waker is pinned, so no thread frees the reactor or its
   coordinator. */
static bool
add_other(evc_reactor *r)
{
	if (r != present->about && r->loop != NULL) {
		add_reactor(present, r);
		present->others++;
	}
	return false;
}

static void
add_others(struct keeps *k, evc_reactor *r)
{
	struct evc__loop_waker *lw = r->waker;
	unsigned n;

	if (k->here) {
		present = k;
		evc__loop_waker_any(lw, add_other);
		present = NULL;
		return;
	}
	sync_lock(&lw->lock);
	n = lw->n - 1;
	sync_unlock(&lw->lock);
	if (n > 0)
		evc__text_fmt(k->t,
			      "  %u more reactor%s on this loop: only its "
			      "own thread may look at them\n",
			      n, plural(n));
}

/* ---- the loop ---- */

static void
add_head(struct keeps *k, const evc_reactor *r)
{
	const evc_coord *c = r->c;

	evc__text_fmt(k->t, "loop \"%s\" (tid %d) of %s \"%s\": ", r->name,
		      r->tid, c->parent != NULL ? "scope" : "coordinator",
		      c->name);
	if (!k->here) {
		evc__text_fmt(k->t,
			      "asked on another thread, so its depth, its "
			      "pending events and its timers are not "
			      "known\n");
		return;
	}
	evc__text_fmt(k->t,
		      "iteration %u, ev_run depth %u, %u event%s "
		      "pending\n",
		      ev_iteration(r->loop), evc__depth(r->waker, NULL),
		      ev_pending_count(r->loop),
		      plural(ev_pending_count(r->loop)));
}

static void
add_watchers(struct keeps *k, const evc_reactor *r)
{
	evc__text_add(k->t, "  1 ev_async, 1 ev_check, 1 ev_cleanup");
	if (k->here && ev_is_active(&r->prepare))
		evc__text_add(k->t,
			      ", 1 ev_prepare (an ev_run of ours is over, "
			      "and waits for the one inside it)");
	if (k->here && ev_is_active(&r->waker->nested))
		evc__text_add(k->t,
			      ", 1 ev_prepare (until the callback that we "
			      "are in returns)");
	evc__text_fmt(k->t, ": none of them keeps ev_run running\n");
}

static void
add_state(struct keeps *k, evc_reactor *r)
{
	struct evc__silence s;

	sync_lock(&r->c->lock);
	s = evc__reactor_silence(r);
	sync_unlock(&r->c->lock);
	if (!s.silent && (k->here || s.kind == BUSY_APPLICATION ||
			  s.kind == BUSY_TURN))
		return;
	evc__text_fmt(k->t, "  it %s %s",
		      s.silent ? "has not turned since the stop: in" : "is in",
		      evc__busy_text(s.kind));
	if (s.name[0] != '\0')
		evc__text_fmt(k->t, " \"%s\"", s.name);
	if (s.since_s >= 0)
		evc__text_fmt(k->t, ", for %.3f s", s.since_s);
	evc__text_fmt(k->t, "\n");
}

static void
add_sum(struct keeps *k)
{
	evc__text_fmt(k->t, "in all: %u reference%s", k->references,
		      plural(k->references));
	if (k->here)
		evc__text_fmt(k->t, " and %u ev_timer%s", k->timers,
			      plural(k->timers));
	evc__text_fmt(k->t, " of evcoord keep%s ev_run running; whatever else "
			    "keeps ev_run from returning was started by the "
			    "application, and libev does not list that\n",
		      k->references + k->timers == 1 ? "s" : "");
}

static void
explain(struct text *t, evc_reactor *r)
{
	struct keeps k = { .t = t, .here = r->tid == evc__tid(), .about = r };
	bool there;

	sync_lock(&r->c->lock);
	there = r->loop != NULL;
	sync_unlock(&r->c->lock);
	if (!there) {
		evc__text_fmt(t,
			      "loop \"%s\" (tid %d) was destroyed: nothing of "
			      "evcoord is on it\n",
			      r->name, r->tid);
		return;
	}
	add_head(&k, r);
	add_watchers(&k, r);
	add_state(&k, r);
	add_reactor(&k, r);
	add_others(&k, r);
	add_sum(&k);
}

size_t
evc_reactor_explain(const evc_reactor *r, char *buf, size_t n)
{
	struct text t = evc__lines_in(buf, buf != NULL ? n : 0);

	if (r == NULL)
		evc__refuse(-EVC_INVALID_ARGUMENT,
			    "evc_reactor_explain: no reactor");
	if (r == NULL || evc__check(r->c, __func__) < 0)
		evc__text_add(&t, evc_last_error());
	else
		explain(&t, (evc_reactor *)r);
	return t.len;
}
