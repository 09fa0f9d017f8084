/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts and stops of worker groups inside the functions of a group, in the
 * callback of a loop, and by several threads at once.
 */
#include "../../support/workers_util.h"

#include <ev.h>

/* ---- inside a group's own functions ---- */

struct inside {
	struct crew *k;
	evc_group *other;
	atomic_int tried, wrong;
};

#define MUST_REFUSE(call) \
	do { \
		if ((call) != -EVC_FAILED_PRECONDITION) { \
			fprintf(stderr, "%s is not refused\n", #call); \
			atomic_fetch_add(&in->wrong, 1); \
		} \
	} while (0)

static void
try_all(struct inside *in)
{
	evc_group *own = in->k->group;
	evc_group_info info;

	if (own == NULL)
		return;
	MUST_REFUSE(evc_group_start(own));
	MUST_REFUSE(evc_group_start(in->other));
	MUST_REFUSE(evc_group_stop(own, NULL));
	MUST_REFUSE(evc_group_stop(in->other, NULL));
	MUST_REFUSE(evc_registry_start(evc_group_registry(own)));
	MUST_REFUSE(evc_registry_stop(evc_group_registry(own), NULL));
	MUST_REFUSE(
		evc_registry_stop_name(evc_group_registry(own), "train", NULL));
	MUST_REFUSE(evc_group_resize(own, 3));
	MUST_REFUSE(evc_group_free(own));
	MUST_REFUSE(evc_registry_free(evc_group_registry(own)));
	/* Questions are answered. */
	(void)evc_group_is_active(own);
	if (evc_group_ids(own, NULL, 0) != 2 ||
	    evc_group_get(own, &info) != 0 || info.n_threads != 2 ||
	    evc_group_put(own, "mark", 1, false) != 0)
		atomic_fetch_add(&in->wrong, 1);
	atomic_fetch_add(&in->tried, 1);
}

static evc_status
try_init(evc_group *group, evc_registry *reg, void *arg)
{
	(void)group;
	(void)reg;
	try_all(((struct crew *)arg)->more);
	return 0;
}

static void
try_shutdown(evc_group *group, void *arg)
{
	(void)group;
	try_all(((struct crew *)arg)->more);
}

static evc_status
try_start(void *arg)
{
	try_all(((struct crew *)arg)->more);
	return 0;
}

static void
try_stop(void *arg)
{
	try_all(((struct crew *)arg)->more);
}

/* _i: 0 the caller's thread, 1 a thread aside, 2 the helper's. */
START_TEST(inside_a_groups_functions_it_is_refused)
{
	evc_group_opts o = { .flags = _i == 1 ? EVC_GROUP_ASIDE : 0,
			     .init = try_init,
			     .shutdown = try_shutdown,
			     .state = { try_start, try_stop, try_stop, NULL } };
	evc_registry *reg = new_registry(0);
	struct crew k = { .run = crew_fail }, other = { 0 };
	struct inside in = { .k = &k };

	k.more = &in;
	in.other = crew_add(reg, "other", &other, 1, NULL);
	crew_add(reg, "train", &k, 2, &o);
	OK(evc_registry_start(reg));
	ck_assert_int_eq(in.tried, 2);
	if (_i == 2) {
		atomic_store(&k.open, 1);
		UNTIL(atomic_load(&in.tried) == 5);
	}
	ck_assert_int_eq(evc_registry_stop(reg, NULL),
			 _i == 2 ? EVC_DATA_LOSS : 0);
	ck_assert_int_eq(in.tried, 5);
	ck_assert_int_eq(in.wrong, 0);
	ck_assert(evc_group_metric(k.group, "mark") == 5);
	end_registry(reg);
	CALLED(&other, 1, 1, 1, 1, 1);
}
END_TEST

/* ---- in a loop ---- */

struct on_loop {
	evc_registry *reg;
	int turn;
	evc_status result[4];
};

static void
loop_turn(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct on_loop *l = t->data;

	(void)revents;
	switch (l->turn++) {
	case 0:
		l->result[0] = evc_registry_start(l->reg);
		break;
	case 3:
		l->result[1] = evc_registry_stop(l->reg, NULL);
		break;
	case 4:
		l->result[2] = evc_registry_start(l->reg);
		break;
	case 6:
		l->result[3] = evc_registry_stop_name(l->reg, "train", NULL);
		ev_timer_stop(loop, t);
		ev_break(loop, EVBREAK_ALL);
		break;
	default:
		break;
	}
}

/* _i == 1: below a coordinator whose home is that loop. */
START_TEST(a_callback_of_a_loop_may_start_and_stop)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = _i ? new_coord(loop) : NULL;
	evc_group_opts o = { .coord = c };
	struct on_loop l = { .reg = new_registry(0),
			     .result = { 77, 77, 77, 77 } };
	struct crew k = { 0 }, b = { 0 };
	ev_timer t;
	int i;

	crew_add(l.reg, "train", &k, 2, &o);
	crew_add(l.reg, "b", &b, 2, &o);
	ev_timer_init(&t, loop_turn, 0.01, 0.01);
	t.data = &l;
	ev_timer_start(loop, &t);
	ev_run(loop, 0);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(l.result[i], 0);
	STATE(k.group, EVC_GROUP_STOPPED);
	STATE(b.group, EVC_GROUP_RUNNING);
	end_registry(l.reg);
	CALLED(&k, 2, 2, 2, 2, 2);
	CALLED(&b, 2, 2, 2, 2, 2);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* ---- several threads at once ---- */

struct slow {
	evc_registry *reg;
	evc_group *group;
	int what;
	atomic_int tid, done, result;
};

static void *
slow_main(void *arg)
{
	struct slow *s = arg;
	evc_status st;

	atomic_store(&s->tid, own_tid());
	switch (s->what) {
	case 0: st = evc_registry_start(s->reg); break;
	case 1: st = evc_registry_stop(s->reg, NULL); break;
	case 2:
		st = evc_group_stop(s->group, NULL);
		break;
	case 3: st = evc_registry_stop_name(s->reg, "train", NULL); break;
	default:
		st = evc_group_start(s->group);
		break;
	}
	atomic_store(&s->result, st);
	atomic_store(&s->done, 1);
	return NULL;
}

static evc_status
slow_init(evc_group *group, evc_registry *reg, void *arg)
{
	struct crew *k = arg;

	while (!atomic_load(&k->open))
		t_sleep(0.001);
	return crew_init(group, reg, arg);
}

START_TEST(who_comes_while_a_start_goes_on_waits_for_it)
{
	int what;

	for (what = 0; what < 5; what++) {
		evc_group_opts o = { .init = slow_init };
		evc_registry *reg = new_registry(0);
		struct crew k = { 0 };
		struct slow first = { .reg = reg, .what = 0 },
			    second = { .reg = reg, .what = what };
		pthread_t a, b;

		first.group = second.group = crew_add(reg, "train", &k, 2, &o);
		OK(pthread_create(&a, NULL, slow_main, &first));
		UNTIL(info_of(k.group).state == EVC_GROUP_STARTING);
		OK(pthread_create(&b, NULL, slow_main, &second));
		UNTIL(atomic_load(&second.tid) != 0);
		NOT_YET(atomic_load(&second.done));
		ck_assert(!atomic_load(&first.done));
		atomic_store(&k.open, 1);
		OK(pthread_join(a, NULL));
		OK(pthread_join(b, NULL));
		OK(first.result);
		OK(second.result);
		/* In this order. */
		ck_assert_int_eq(evc_group_is_active(k.group),
				 what == 0 || what == 4);
		ck_assert_uint_eq(info_of(k.group).n_starts, 1);
		end_registry(reg);
		CALLED(&k, 1, 1, 1, 1, 1);
	}
}
END_TEST

struct caller {
	evc_registry *reg;
	struct crew *k;
	unsigned seed;
	atomic_int *wrong;
};

static void *
start_and_stop(void *arg)
{
	struct caller *c = arg;
	unsigned dice = c->seed;
	evc_status st = 0;
	int i;

	for (i = 0; i < 40; i++) {
		struct crew *k;

		dice = dice * 1103515245u + 12345u;
		k = &c->k[(dice >> 24) % 3];
		switch ((dice >> 16) % 5) {
		case 0: st = evc_registry_start(c->reg); break;
		case 1: st = evc_registry_stop(c->reg, NULL); break;
		case 2: st = evc_registry_stop_name(c->reg, "a", NULL); break;
		case 3:
			st = evc_group_start(k->group);
			break;
		default:
			st = evc_group_stop(k->group, NULL);
			break;
		}
		/* A start beside a stop that waits still is refused. */
		if (st != 0 && !(st == -EVC_FAILED_PRECONDITION &&
				 ((dice >> 16) % 5 == 0 ||
				  (dice >> 16) % 5 == 3))) {
			fprintf(stderr, "%g %u: %d, %s\n", t_now(),
				(dice >> 16) % 5, st, evc_last_error());
			atomic_fetch_add(c->wrong, 1);
		}
	}
	return NULL;
}

/* One order: each start and stop is whole, whoever else comes. */
START_TEST(starts_and_stops_by_many_threads_have_one_order)
{
	static const char *const names[] = { "a", "a", "b" };
	evc_registry *reg = new_registry(T_LIMIT);
	struct crew k[3] = { { 0 } };
	struct caller caller[4];
	atomic_int wrong = 0;
	struct t_crowd crowd;
	int i, n;

	for (i = 0; i < 3; i++)
		crew_add(reg, names[i], &k[i], 2, NULL);
	for (i = 0; i < 4; i++)
		caller[i] = (struct caller){ .reg = reg, .k = k,
					     .seed = 7u + (unsigned)i,
					     .wrong = &wrong };
	crowd_begin(&crowd, 4, start_and_stop, caller, sizeof(caller[0]));
	crowd_end(&crowd);
	ck_assert_int_eq(wrong, 0);
	OK(evc_registry_stop(reg, NULL));
	for (i = 0; i < 3; i++) {
		n = atomic_load(&k[i].n_init);
		ck_assert_int_gt(n, 0);
		CALLED(&k[i], n, n, n, n, n);
		ck_assert_uint_eq(info_of(k[i].group).n_starts, n);
		ids_are(k[i].group, 2 * (unsigned)i, 2);
	}
	end_registry(reg);
}
END_TEST

T_MAIN("workers_inside", NULL, NULL,
       T_TIMES(inside_a_groups_functions_it_is_refused, 3),
       T_TIMES(a_callback_of_a_loop_may_start_and_stop, 2),
       T_ONCE(who_comes_while_a_start_goes_on_waits_for_it),
       T_ONCE(starts_and_stops_by_many_threads_have_one_order))
