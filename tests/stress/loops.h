/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loops of the stress test: with tasks, hooks and joins on them, attached to a
 * coordinator that others use meanwhile, or with one of their own.
 */
#ifndef TESTS_STRESS_LOOPS_H
#define TESTS_STRESS_LOOPS_H

#include "parts.h"

struct turn {
	evc_coord *c;
	evc_task task[20];
	ev_timer timer;
	uint64_t *dice;
	int joins;
};

static inline void
told(evc_task *t, void *arg)
{
	(void)arg;
	evc_task_end(t);
	count(TOLD);
}

static const evc_task_class soft = { .name = "soft", .on_stop = told };
static const evc_task_class late = { .name = "late", .flags = EVC_AFTER_STOP };

/* Now and then a task begins or ends; now and then somebody asks for the stop
   - again and again, for others clear it. */
static inline void
tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct turn *t = w->data;
	unsigned i = (unsigned)roll(t->dice, 20);
	const evc_task_class *k = chance(t->dice, 70) ? &soft : &late;
	evc_reactor *r = ev_userdata(loop);
	evc_status st;

	(void)revents;
	if (t->task[i].reactor_ == NULL) {
		st = evc_task_begin(r, &t->task[i], k);
		MUST(st == 0 || st == -EVC_CANCELLED);
		if (st == 0)
			count(TASKS);
	} else
		evc_task_end(&t->task[i]);
	if (evc_should_stop(t->c))
		/* Late ones are told by nobody. */
		for (i = 0; i < 20; i++)
			evc_task_end(&t->task[i]);
	else if (chance(t->dice, 10))
		MUST(evc_request_stop(t->c, 0, "a loop") >= 0);
}

static inline evc_status
hook(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	count(HOOK_CALLS);
	return 0;
}

static inline void
joined_in_loop(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct turn *t = arg;

	MUST(v->round > 0 && c == t->c);
	t->joins--;
	count(EVENTED);
}

static inline void
join_in_loop(struct turn *t, evc_reactor *r)
{
	evc_join_opts o = { .grace = (double)roll(t->dice, 20) / 1e3,
			    .reactor = r,
			    .flags = EVC_JOIN_STOP_FIRST };

	if (o.grace == 0)
		o.grace = EVC_NO_GRACE;
	MUST(evc_join_start(t->c, joined_in_loop, t, &o) == 0);
	t->joins++;
}

static inline void
turn_begin(struct turn *t, evc_coord *c, uint64_t *dice, struct ev_loop *loop,
	   evc_reactor *r)
{
	memset(t, 0, sizeof *t);
	t->c = c;
	t->dice = dice;
	ev_set_userdata(loop, r);
	ev_timer_init(&t->timer, tick, 0, 0.0003);
	t->timer.data = t;
	ev_timer_start(loop, &t->timer);
	count(LOOPS);
}

static inline void
turn_end(struct turn *t, struct ev_loop *loop)
{
	unsigned i;

	ev_timer_stop(loop, &t->timer);
	for (i = 0; i < 20; i++)
		evc_task_end(&t->task[i]);
}

/* A loop comes, is run or turned a little, and goes: by itself after the stop,
   by a detach, or destroyed under the coordinator. */
static inline void
use_loop(const struct spot *p, uint64_t *dice)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_member_opts o = { 0 };
	struct turn t;
	unsigned way = (unsigned)roll(dice, 3), i;

	MUST(loop != NULL);
	MUST(evc_reactor_attach(p->c, "loop", loop, &o.reactor) == 0);
	turn_begin(&t, p->c, dice, loop, o.reactor);
	if (chance(dice, 50)) {
		MUST(evc_on_stop(p->c, "loop's", hook, NULL, &o, NULL) == 0);
		count(HOOKS);
	}
	if (chance(dice, 30))
		join_in_loop(&t, o.reactor);
	/* What lives on a loop keeps it from being detached. */
	if (way != 1 && chance(dice, 50))
		(void)begin_looper(p, o.reactor, false, dice);
	/* Runners that are polled end while somebody joins, and not before. */
	if (way == 2 && chance(dice, 30))
		add_runner(p, o.reactor, dice);
	/* Nor in a scope that is counted by itself: who would free it? */
	if (way != 1 && p->begun == NULL && chance(dice, 30))
		leave_alone(p, o.reactor, way == 2, dice);
	if (way == 0) {
		MUST(evc_reactor_run(o.reactor) == 0);
		turn_end(&t, loop);
	} else
		for (i = (unsigned)roll(dice, 20); i > 0; i--)
			ev_run(loop, EVRUN_ONCE);
	if (way == 1) {
		while (t.joins > 0)
			ev_run(loop, EVRUN_ONCE);
		turn_end(&t, loop);
		MUST(evc_reactor_detach(o.reactor) == 0);
	}
	/* If it is still attached, its tasks end now, and joins are told. */
	ev_loop_destroy(loop);
	MUST(t.joins == 0);
	for (i = 0; i < 20; i++)
		MUST(t.task[i].reactor_ == NULL);
}

/* ---- a whole life: made, run, joined and freed by one thread ---- */

struct end {
	struct turn turn;
	struct ev_loop *loop;
	bool freed;
};

static inline void
free_in_callback(evc_coord *c, const evc_verdict *v, void *arg)
{
	struct end *e = arg;

	MUST(v->n_stragglers == 0);
	turn_end(&e->turn, e->loop);
	at_hand = NULL;
	MUST(evc_free(c) == 0);
	e->freed = true;
}

static inline void
whole_life(uint64_t *dice)
{
	evc_join_opts first = { .grace = INFINITY,
				.flags = EVC_JOIN_STOP_FIRST };
	evc_config k = { .grace = INFINITY };
	struct slot own = { .counted = true };
	struct spot p = { NULL, &own, NULL };
	struct end e = { 0 };
	evc_verdict v;
	int i;

	e.loop = ev_loop_new(EVFLAG_AUTO);
	MUST(e.loop != NULL && evc_new(e.loop, &k, &own.c) == 0);
	p.c = at_hand = own.c;
	turn_begin(&e.turn, own.c, dice, e.loop, evc_home(own.c));
	for (i = (int)roll(dice, 4); i > 0; i--)
		start_thread(&p, dice);
	if (chance(dice, 50)) {
		MUST(evc_run(own.c, NULL, &v) >= 0);
		MUST(v.n_stragglers == 0 && v.n_ended == own.begun);
		turn_end(&e.turn, e.loop);
		at_hand = NULL;
		MUST(evc_free(own.c) == 0);
	} else {
		MUST(evc_join_start(own.c, free_in_callback, &e, &first) == 0);
		while (!e.freed)
			ev_run(e.loop, EVRUN_ONCE);
	}
	ev_loop_destroy(e.loop);
	count(LIVES);
}

#endif
