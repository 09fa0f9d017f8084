/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a loop is in: each kind of callback that blocks is named, also from
 * outside its thread, and the heartbeat says since when.
 */
#include "../support/api_util.h"

#include <ev.h>

#include "core/core.h"

/* ---- a callback that blocks until it is let go ---- */

static struct t_gate in = GATE_INIT, out = GATE_INIT;
static unsigned blocked; /* callbacks so far, on one thread at a time */

static void
block(void)
{
	gate_step(&in);
	blocked++;
	if (!gate_await(&out, blocked))
		abort();
}

static evc_status
block_fn(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	block();
	return 0;
}

static void
go_on(void)
{
	gate_step(&out);
}

/* ---- a loop on a thread of its own ---- */

struct stage {
	evc_coord *c;
	evc_reactor *r;
	struct ev_loop *loop;
	evc_status (*prepare)(struct stage *s); /* on the loop's thread */
	ev_timer timer;
	evc_task task;
	evc_coord *scope;
};

static evc_status
set_up(evc_reactor *r, void *arg)
{
	struct stage *s = arg;

	s->r = r;
	s->loop = evc_reactor_loop(r);
	return s->prepare != NULL ? s->prepare(s) : 0;
}

static struct evc__silence
look(evc_reactor *r)
{
	struct evc__silence s;

	sync_lock(&r->c->lock);
	s = evc__reactor_silence(r);
	sync_unlock(&r->c->lock);
	return s;
}

/* It turns: one that a stop finds before its first turn has none. */
static void
start(struct stage *s, const evc_config *k)
{
	gate_init(&in);
	gate_init(&out);
	blocked = 0;
	OK(evc_new(NULL, k, &s->c));
	OK(evc_reactor_start(s->c, "loop", set_up, s, NULL, NULL));
	UNTIL(look(s->r).since_s >= 0);
}

static void
stop(struct stage *s)
{
	OK(evc_request_stop(s->c, 0, "over"));
}

static void
finish(struct stage *s)
{
	evc_verdict v;

	ck_assert_int_ge(evc_join(s->c, NULL, &v), 0);
	OK(evc_free(s->c));
}

/* It is in its nth callback of ours, and this one. */
#define IS_IN(s, nth, what, called) \
	do { \
		struct evc__silence is_; \
		ck_assert(gate_await(&in, (nth))); \
		is_ = look((s)->r); \
		ck_assert_msg(is_.kind == (what), "%s %s, not %s", \
			      evc__busy_text(is_.kind), is_.name, #what); \
		ck_assert_str_eq(is_.name, (called)); \
	} while (0)

/* ---- each kind ---- */

START_TEST(a_stop_hook)
{
	struct stage s = { 0 };
	evc_member_opts o = { 0 };

	start(&s, NULL);
	o.reactor = s.r;
	OK(evc_on_stop(s.c, "a hook", block_fn, NULL, &o, NULL));
	stop(&s);
	IS_IN(&s, 1, BUSY_HOOK, "a hook");
	/* It has turned: it is not silent, and not free either. */
	ck_assert(!look(s.r).silent);
	ck_assert_str_eq(evc__busy_text(BUSY_HOOK), "stop hook");
	go_on();
	finish(&s);
}
END_TEST

static void
block_task(evc_task *t, void *arg)
{
	(void)arg;
	block();
	evc_task_end(t);
}

static const evc_task_class slow = { .name = "slow", .on_stop = block_task };

static evc_status
begin_task(struct stage *s)
{
	return evc_task_begin(s->r, &s->task, &slow);
}

START_TEST(a_task)
{
	struct stage s = { .prepare = begin_task };

	start(&s, NULL);
	stop(&s);
	IS_IN(&s, 1, BUSY_TASKS, "slow");
	go_on();
	finish(&s);
}
END_TEST

START_TEST(a_looper_in_each_of_its_functions)
{
	struct stage s = { 0 };
	evc_member_opts o = { .start = block_fn, .stop = block_fn };

	start(&s, NULL);
	o.reactor = s.r;
	OK(evc_looper_start(s.c, "a looper", 0.001, block_fn, NULL, &o, NULL));
	IS_IN(&s, 1, BUSY_LOOPER, "a looper");
	ck_assert(!look(s.r).silent); /* there is no stop */
	go_on();
	IS_IN(&s, 2, BUSY_LOOPER, "a looper");
	stop(&s);
	/* Its timer is no turn of ours: so it has not heard. */
	ck_assert(look(s.r).silent);
	go_on();
	IS_IN(&s, 3, BUSY_LOOPER, "a looper");
	go_on();
	finish(&s);
}
END_TEST

static bool
runs(void *arg)
{
	return !atomic_load((atomic_bool *)arg);
}

static void
block_stop(void *arg)
{
	block();
	atomic_store((atomic_bool *)arg, true);
}

static evc_status
block_join(void *arg)
{
	(void)arg;
	block();
	return 0;
}

START_TEST(a_runner)
{
	static const evc_runner_ops ops = { .is_running = runs,
					    .stop = block_stop,
					    .join = block_join };
	struct stage s = { 0 };
	evc_member_opts o = { 0 };
	atomic_bool ended = false;

	start(&s, NULL);
	o.reactor = s.r;
	OK(evc_runner_add(s.c, "a runner", &ops, &ended, &o, NULL));
	stop(&s);
	IS_IN(&s, 1, BUSY_RUNNER, "a runner");
	go_on();
	IS_IN(&s, 2, BUSY_RUNNER, "a runner");
	go_on();
	finish(&s);
}
END_TEST

static void
block_joined(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)c;
	(void)v;
	(void)arg;
	block();
}

static evc_status
begin_join(struct stage *s)
{
	evc_join_opts o = { .reactor = s->r };

	return evc_join_start(s->c, block_joined, NULL, &o);
}

START_TEST(the_callback_of_a_join)
{
	struct stage s = { .prepare = begin_join };
	evc_config k = { .name = "prog" };

	start(&s, &k);
	IS_IN(&s, 1, BUSY_JOIN, "prog");
	go_on();
	stop(&s);
	finish(&s);
}
END_TEST

START_TEST(ended_of_a_scope)
{
	struct stage s = { 0 };
	evc_scope_opts o = { .ended = block_joined };
	evc_reactor *home;

	start(&s, NULL);
	o.home = s.r;
	OK(evc_scope_new(s.c, "a scope", &o, &s.scope));
	home = evc_home(s.scope);
	OK(evc_scope_ready(s.scope));
	OK(evc_request_stop(s.scope, 0, "over"));
	ck_assert(gate_await(&in, 1));
	ck_assert_int_eq(look(home).kind, BUSY_ENDED);
	ck_assert_str_eq(look(home).name, "a scope");
	/* The names of one coordinator are not safe to read for another. */
	ck_assert_int_eq(look(s.r).kind, BUSY_ELSEWHERE);
	ck_assert_str_eq(look(s.r).name, "");
	go_on();
	UNTIL(evc_free(s.scope) == 0);
	stop(&s);
	finish(&s);
}
END_TEST

static evc_status
block_set_up(struct stage *s)
{
	(void)s;
	block();
	return 0;
}

static void *
starts(void *arg)
{
	struct stage *s = arg;

	evc_reactor_start(s->c, "loop", set_up, s, NULL, NULL);
	return NULL;
}

START_TEST(the_setup_of_a_loop)
{
	struct stage s = { .prepare = block_set_up };
	pthread_t t;

	gate_init(&in);
	gate_init(&out);
	blocked = 0;
	OK(evc_new(NULL, NULL, &s.c));
	pthread_create(&t, NULL, starts, &s);
	IS_IN(&s, 1, BUSY_SETUP, "loop");
	ck_assert(look(s.r).since_s < 0); /* it has not run yet */
	go_on();
	pthread_join(t, NULL);
	stop(&s);
	finish(&s);
}
END_TEST

/* ---- the application's own ---- */

static void
on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
	block();
}

static evc_status
begin_timer(struct stage *s)
{
	ev_timer_init(&s->timer, on_timer, 0.001, 0);
	ev_timer_start(s->loop, &s->timer);
	return 0;
}

START_TEST(a_callback_of_the_application)
{
	struct stage s = { .prepare = begin_timer };
	struct evc__silence first, later;

	start(&s, NULL);
	IS_IN(&s, 1, BUSY_APPLICATION, "");
	first = look(s.r);
	ck_assert(!first.silent);
	ck_assert(first.since_s >= 0);
	stop(&s);
	ck_assert(look(s.r).silent);
	/* Its iteration grows old. */
	UNTIL((later = look(s.r)).since_s > first.since_s + 0.05);
	ck_assert(later.silent);
	ck_assert_str_eq(evc__busy_text(later.kind),
			 "a callback of the application");
	go_on();
	finish(&s);
}
END_TEST

static void
turns_once(struct ev_loop *loop)
{
	ev_now_update(loop);
	ev_run(loop, EVRUN_NOWAIT);
}

static double seen_now;
static uint64_t seen_turned;

static void
on_first(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct evc__loop_waker *b = ((evc_reactor *)w->data)->waker;

	(void)revents;
	seen_now = ev_now(loop);
	seen_turned = sync_load_relaxed(&b->turned);
}

START_TEST(the_heartbeat_comes_before_all_else)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	ev_timer first;
	evc_coord *c;
	evc_reactor *r;

	OK(evc_new(loop, NULL, &c));
	r = evc_home(c);
	ck_assert(look(r).since_s < 0);
	ck_assert_int_eq(look(r).kind, BUSY_APPLICATION);
	ev_timer_init(&first, on_first, 0, 0);
	ev_set_priority(&first, EV_MAXPRI);
	first.data = r;
	ev_timer_start(loop, &first);
	turns_once(loop);
	ck_assert_uint_eq(seen_turned, (uint64_t)(seen_now * 1e9));
	ck_assert(look(r).since_s >= 0);
	t_sleep(0.01);
	turns_once(loop);
	ck_assert_uint_gt(sync_load_relaxed(&r->waker->turned), seen_turned);
	/* It keeps no ev_run alive. */
	ev_run(loop, 0);
	OK(evc_free(c));
	ck_assert_int_eq(ev_pending_count(loop), 0);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- nested, and gone ---- */

/* A hook that runs its loop in turn, where a looper blocks. */
static evc_status
runs_its_loop(evc_coord *c, void *arg)
{
	struct stage *s = arg;

	(void)c;
	evc_progress("in the hook");
	ev_timer_init(&s->timer, on_timer, 0, 0);
	ev_timer_start(s->loop, &s->timer);
	ev_run(s->loop, EVRUN_ONCE);
	block();
	return 0;
}

START_TEST(callbacks_nest)
{
	struct stage s = { 0 };
	evc_member_opts o = { 0 };

	start(&s, NULL);
	o.reactor = s.r;
	OK(evc_on_stop(s.c, "outer", runs_its_loop, &s, &o, NULL));
	stop(&s);
	/* The application's timer, in an ev_run that our hook began: it is our
	   hook that does not return. */
	IS_IN(&s, 1, BUSY_HOOK, "outer");
	ck_assert_str_eq(sync_load_relaxed(&s.r->mark.text), "in the hook");
	go_on();
	IS_IN(&s, 2, BUSY_HOOK, "outer");
	go_on();
	finish(&s);
}
END_TEST

static evc_status
says(evc_coord *c, void *arg)
{
	struct evc__self *self = evc__self();
	evc_reactor *r = arg;
	struct evc__busy one, two;

	ck_assert(self->mark == &r->mark);
	ck_assert(sync_load_relaxed(&r->mark.text) == NULL);
	evc_progress("one");
	evc__busy_begin(NULL, c, BUSY_LOOPER, "inner", &one);
	ck_assert(sync_load_relaxed(&r->mark.text) == NULL);
	evc_progress("two");
	/* Of another coordinator: no name. */
	evc__busy_begin(NULL, NULL, BUSY_RUNNER, "other", &two);
	ck_assert(sync_load_relaxed(&r->busy_name) == NULL);
	ck_assert_uint_eq(sync_load_relaxed(&r->busy_kind), BUSY_RUNNER);
	evc__busy_end(&two);
	ck_assert_str_eq(sync_load_relaxed(&r->busy_name), "inner");
	ck_assert_str_eq(sync_load_relaxed(&r->mark.text), "two");
	evc__busy_end(&one);
	ck_assert_str_eq(sync_load_relaxed(&r->busy_name), "says");
	ck_assert_str_eq(sync_load_relaxed(&r->mark.text), "one");
	blocked++;
	return 0;
}

START_TEST(checkpoints_speak_for_the_loop_and_come_back)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c;
	evc_reactor *r;

	blocked = 0;
	OK(evc_new(loop, NULL, &c));
	r = evc_home(c);
	ck_assert(evc__self()->mark == NULL);
	OK(evc_on_stop(c, "says", says, r, NULL, NULL));
	OK(evc_request_stop(c, 0, "over"));
	OK(evc_run(c, NULL, NULL));
	ck_assert_uint_eq(blocked, 1);
	ck_assert(evc__self()->mark == NULL);
	ck_assert(sync_load_relaxed(&r->mark.text) == NULL);
	ck_assert_int_eq(look(r).kind, BUSY_APPLICATION);
	ck_assert_uint_eq(sync_load_relaxed(&r->waker->busy), 0);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static void
frees(evc_coord *c, const evc_verdict *v, void *arg)
{
	(void)v;
	OK(evc_free(c));
	/* For nobody any more: it must not touch what is gone. */
	evc_progress("late");
	*(bool *)arg = true;
}

START_TEST(a_scope_that_is_freed_in_its_ended)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	bool freed = false;
	evc_scope_opts o = { .ended = frees, .arg = &freed };
	evc_coord *c, *scope;
	evc_reactor *r;

	OK(evc_new(loop, NULL, &c));
	r = evc_home(c);
	OK(evc_scope_new(c, "short", &o, &scope));
	OK(evc_scope_ready(scope));
	OK(evc_request_stop(scope, 0, "over"));
	UNTIL((turns_once(loop), freed));
	ck_assert(evc__self()->mark == NULL);
	ck_assert_int_eq(look(r).kind, BUSY_APPLICATION);
	ck_assert_uint_eq(sync_load_relaxed(&r->waker->busy), 0);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_coordinator_that_is_freed_by_its_join)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	bool freed = false;
	evc_coord *c;

	OK(evc_new(loop, NULL, &c));
	OK(evc_request_stop(c, 0, "over"));
	OK(evc_join_start(c, frees, &freed, NULL));
	UNTIL((turns_once(loop), freed));
	ck_assert(evc__self()->mark == NULL);
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("busy", a_stop_hook, a_task, a_looper_in_each_of_its_functions,
	 a_runner, the_callback_of_a_join, ended_of_a_scope,
	 the_setup_of_a_loop, a_callback_of_the_application,
	 the_heartbeat_comes_before_all_else, callbacks_nest,
	 checkpoints_speak_for_the_loop_and_come_back,
	 a_scope_that_is_freed_in_its_ended,
	 a_coordinator_that_is_freed_by_its_join)
