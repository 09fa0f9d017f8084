/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callbacks of each kind that a loop calls, two at a time: one waits for the
 * other by running the loop.
 */
#ifndef TESTS_SUPPORT_NESTED_UTIL_H
#define TESTS_SUPPORT_NESTED_UTIL_H

#include "api_util.h"

#include <ev.h>

/* The first ones come when they are asked for, the others at the stop. */
enum kind { POST, TICK, DONE, ITEM, HOOK, TASK, LAST, ENDED, ANSWER, N_KINDS };
#define AT_STOP(kind) ((kind) >= HOOK)

static const char *const kind_name[N_KINDS] = {
	"post", "looper", "job's done", "watch", "hook", "on_stop",
	"looper's stop", "ended", "join's answer",
};

/* Where the two live: on the root, or on scopes. */
enum place { BOTH_ROOT, ROOT_SCOPE, SCOPE_ROOT, SCOPES, ONE_SCOPE, N_PLACES };

struct actor {
	evc_message message; /* first */
	evc_task task;
	evc_task_class cls;
	evc_job job;
	enum kind kind;
	evc_coord *c;
	evc_queue *q;
	evc_id id;
	struct world *w;
	struct actor *awaits;
	bool inside; /* in its callback it sees to it that that one comes */
	bool called, triggered;
};

struct world {
	struct ev_loop *loop;
	evc_coord *root, *scope[2];
	evc_pool *pool;
	ev_timer timer; /* lets waits look whether they are stuck */
	struct actor a[2];
	int n_submitted;
	bool stuck;
};

static void trigger(struct actor *a);

static void
on_world_timer(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)t;
	(void)revents;
}

/* By running the loop. */
static void
await_called(struct world *w, struct actor *a)
{
	double until = t_now() + T_LIMIT;

	while (!a->called && !w->stuck) {
		ev_run(w->loop, EVRUN_ONCE);
		w->stuck = t_now() > until;
	}
}

static void
act(struct actor *a)
{
	if (a->called)
		return;
	a->called = true;
	if (a->awaits == NULL)
		return;
	if (a->inside)
		trigger(a->awaits);
	await_called(a->w, a->awaits);
}

/* ---- the callbacks ---- */

static void
on_message(evc_message *m, evc_status why)
{
	(void)why;
	act((struct actor *)m);
}

static void
on_task_stop(evc_task *t, void *arg)
{
	act(arg);
	evc_task_end(t);
}

static evc_status
on_call(evc_coord *c, void *arg)
{
	(void)c;
	act(arg);
	return 0;
}

static evc_status
on_first_run(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

static void
on_end(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	act(arg);
}

static evc_status
on_work(evc_job *job)
{
	(void)job;
	return 0;
}

static void
on_done(evc_job *job, evc_status result)
{
	(void)result;
	act(job->arg);
}

static void
on_item(evc_queue *q, void *item, evc_status why, void *arg)
{
	(void)q;
	(void)item;
	(void)why; /* after the stop it is the end */
	act(arg);
}

/* ---- one of them ---- */

static void
prepare(struct actor *a)
{
	evc_member_opts o = { .stop = on_call }, paused = { .flags = EVC_PAUSED };
	evc_reactor *r = evc_home(a->c);

	switch (a->kind) {
	case POST:
		a->message.fn = on_message;
		a->message.flags = EVC_AFTER_STOP;
		break;
	case TICK:
		OK(evc_looper_start(a->c, "tick", INFINITY, on_call, a,
				    &paused, &a->id));
		break;
	case DONE:
		a->job.work = on_work;
		a->job.done = on_done;
		a->job.arg = a;
		break;
	case ITEM:
		OK(evc_queue_new(a->c, NULL, 4, NULL, &a->q));
		OK(evc_queue_watch(a->q, r, on_item, a, 0, &a->id));
		break;
	case HOOK:
		OK(evc_on_stop(a->c, NULL, on_call, a, NULL, NULL));
		break;
	case TASK:
		a->cls = (evc_task_class){ .on_stop = on_task_stop, .arg = a };
		OK(evc_task_begin(r, &a->task, &a->cls));
		break;
	case LAST:
		OK(evc_looper_start(a->c, "last", INFINITY, on_first_run, a,
				    &o, &a->id));
		break;
	default: /* with its scope, or when it is asked for */
		break;
	}
}

static void
trigger(struct actor *a)
{
	evc_pool_info i;
	evc_loop_ref *l;

	if (a->triggered)
		return;
	a->triggered = true;
	switch (a->kind) {
	case POST:
		l = evc_loop_of(evc_home(a->c));
		OK(evc_post_message(l, &a->message));
		evc_loop_release(l);
		break;
	case TICK:
		OK(evc_member_resume(a->c, a->id));
		break;
	case DONE:
		OK(evc_pool_submit(a->w->pool, evc_home(a->c), &a->job));
		a->w->n_submitted++;
		/* It is to wait on the loop, beside others perhaps. */
		UNTIL(evc_pool_get(a->w->pool, &i) == 0 &&
		      (int)i.n_done == a->w->n_submitted);
		break;
	case ITEM:
		OK(evc_queue_push(a->q, a, 0));
		break;
	default:
		if (!evc_should_stop(a->w->root))
			OK(evc_request_stop(a->w->root, 0, NULL));
		if (a->kind == ANSWER)
			OK(evc_join_start(a->c, on_end, a, NULL));
		break;
	}
}

static void
drop(struct actor *a)
{
	void *item;

	if (a->q == NULL)
		return;
	while (evc_queue_try_pop(a->q, &item) == 0)
		;
	OK(evc_queue_free(a->q));
}

/* ---- two of them ---- */

static evc_coord *
scope_for(struct world *w, struct actor *a, int i)
{
	evc_scope_opts o = { .ended = a->kind == ENDED ? on_end : NULL,
			     .arg = a };

	OK(evc_scope_new(w->root, i == 0 ? "scope 0" : "scope 1", &o,
			 &w->scope[i]));
	return w->scope[i];
}

/* Can the first one get the other one? */
static bool
possible(enum kind waits, enum kind awaited, enum place place, bool inside)
{
	/* The root has no `ended`, and only one of a scope. */
	if ((waits == ENDED && (place <= ROOT_SCOPE || place == ONE_SCOPE)) ||
	    (awaited == ENDED && place != ROOT_SCOPE && place != SCOPES))
		return false;
	/* Who waits is alive in it, or below it. */
	if (awaited == ANSWER && place != ROOT_SCOPE && place != SCOPES)
		return false;
	/* After the stop there is nothing new. */
	return !AT_STOP(waits) ||
	       (awaited != TICK && (!inside || awaited == POST));
}

static void
world_make(struct world *w, enum place place)
{
	struct actor *a = w->a;
	int i;

	w->loop = ev_loop_new(0);
	w->root = new_coord(w->loop);
	a[0].c = place <= ROOT_SCOPE ? w->root : scope_for(w, &a[0], 0);
	a[1].c = place == ONE_SCOPE ? a[0].c :
		 place == BOTH_ROOT || place == SCOPE_ROOT ?
				      w->root :
				      scope_for(w, &a[1], 1);
	if (a[0].kind == DONE || a[1].kind == DONE)
		OK(evc_pool_new(w->root, NULL, NULL, &w->pool));
	ev_timer_init(&w->timer, on_world_timer, 0.1, 0.1);
	ev_timer_start(w->loop, &w->timer);
	ev_unref(w->loop);
	for (i = 0; i < 2; i++)
		if (w->scope[i] != NULL)
			OK(evc_scope_ready(w->scope[i]));
	prepare(&a[0]);
	prepare(&a[1]);
}

static void
world_end(struct world *w)
{
	int i;

	OK(evc_run(w->root, NULL, NULL));
	drop(&w->a[0]);
	drop(&w->a[1]);
	OK(evc_pool_free(w->pool));
	for (i = 0; i < 2; i++)
		OK(evc_free(w->scope[i]));
	OK(evc_free(w->root));
	ev_ref(w->loop);
	ev_timer_stop(w->loop, &w->timer);
	ev_loop_destroy(w->loop);
}

static MAYBE_UNUSED void
pair(enum kind waits, enum kind awaited, enum place place, bool inside)
{
	struct world w = { .stuck = false };
	struct actor *a = w.a;
	int i;

	if (!possible(waits, awaited, place, inside))
		return;
	for (i = 0; i < 2; i++) {
		a[i].kind = i == 0 ? waits : awaited;
		a[i].w = &w;
	}
	a[0].awaits = &a[1];
	a[0].inside = inside || (AT_STOP(awaited) && !AT_STOP(waits));
	world_make(&w, place);
	for (i = 0; i < 5; i++)
		ev_run(w.loop, EVRUN_NOWAIT);
	/* What comes when it is asked for, first; then the stop. */
	for (i = 0; i < 4 && !a[0].inside; i++)
		if (AT_STOP(a[i % 2].kind) == (i >= 2))
			trigger(&a[i % 2]);
	trigger(&a[0]);
	await_called(&w, &a[0]);
	await_called(&w, &a[1]);
	ck_assert_msg(!w.stuck, "a %s waits for a %s (place %d%s): for ever",
		      kind_name[waits], kind_name[awaited], place,
		      inside ? ", which it asks for" : "");
	if (!evc_should_stop(w.root))
		OK(evc_request_stop(w.root, 0, NULL));
	world_end(&w);
}

#endif
