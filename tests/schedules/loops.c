/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loops and their members, stepped: who is told of a stop, and loops that go
 * away while others look at them.  Detach against a walk stands in wake.c.
 */
#include "schedules.h"

/* ---- telling ---- */

struct work {
	evc_task task;     /* first */
	struct work *ends; /* when told, end this one, too */
	int told;
};

static void
on_told(evc_task *t, void *arg)
{
	struct work *w = (struct work *)t;

	(void)arg;
	w->told++;
	if (w->ends != NULL)
		evc_task_end(&w->ends->task);
	evc_task_end(t);
}

static void
on_told_stay(evc_task *t, void *arg)
{
	(void)arg;
	((struct work *)t)->told++;
}

static const evc_task_class ending = {
	.name = "ending",
	.on_stop = on_told,
	.flags = EVC_AFTER_STOP,
};
static const evc_task_class staying = {
	.name = "staying",
	.on_stop = on_told_stay,
};

/* Fails when a walk over tasks begins anew for a stop that was told already,
   and when it does not begin anew for the next stop. */
START_TEST(telling_is_done_once_for_each_stop_though_two_walk)
{
	static const struct place places[] = {
		{"load", "enter_level", 1},
		{"load", "next_of_kind", 1},
		{"load", "next_of_kind", 2},
		{"store", "leave_level", 1},
	};
	struct ask win = {0, "winner"};
	struct actor a;
	size_t i;
	int h, k;

	for (i = 0; i < N_OF(places); i++) {
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_coord(loop);

		for (k = 0; k < 2; k++) {
			struct work w[2] = {{.ends = NULL}};

			OK(evc_task_begin(evc_home(c), &w[0].task, &staying));
			OK(evc_task_begin(evc_home(c), &w[1].task, &staying));
			h = hold_at(&places[i]);
			actor_begin(&a, do_request, c, &win);
			HELD(h);
			OK(evc_request_stop(c, 0, "second"));
			ev_run(loop, EVRUN_NOWAIT);
			ck_assert_int_eq(w[0].told, 1);
			ck_assert_int_eq(w[1].told, 1);
			seam_release(h);
			OK(actor_end(&a));
			ev_run(loop, EVRUN_NOWAIT);
			ck_assert_int_eq(w[0].told, 1);
			ck_assert_int_eq(w[1].told, 1);
			evc_task_end(&w[0].task);
			evc_task_end(&w[1].task);
			OK(evc_clear_stop(c));
		}
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

/* Fails when a task that ends does not move the cursor that stands on it. */
START_TEST(telling_goes_on_when_the_next_task_is_ended)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct work w[4] = {{.ends = &w[1]}, {.ends = NULL}, {.ends = &w[3]}};
	int i;

	for (i = 0; i < 4; i++)
		OK(evc_task_begin(evc_home(c), &w[i].task, &ending));
	OK(evc_request_stop(c, 0, "stop"));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(w[0].told, 1);
	ck_assert_int_eq(w[1].told, 0);
	ck_assert_int_eq(w[2].told, 1);
	ck_assert_int_eq(w[3].told, 0);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

#define MANY 5000

/* Fails when there are no slices, and when the rest is forgotten. */
START_TEST(telling_many_leaves_others_their_turn)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct work *w = calloc(MANY, sizeof(*w));
	evc_coord *c = new_coord(loop);
	int i, told, turns[3] = {0, 4096, MANY}, turn;

	for (i = 0; i < MANY; i++)
		OK(evc_task_begin(evc_home(c), &w[i].task, &staying));
	ev_run(loop, EVRUN_NOWAIT); /* what the beginning has left */
	OK(evc_request_stop(c, 0, "stop"));
	for (turn = 0; turn < 3; turn++) {
		for (i = told = 0; i < MANY; i++)
			told += w[i].told;
		ck_assert_int_eq(told, turns[turn]);
		ev_run(loop, EVRUN_NOWAIT);
	}
	for (i = 0; i < MANY; i++)
		evc_task_end(&w[i].task);
	OK(evc_free(c));
	ev_loop_destroy(loop);
	free(w);
}
END_TEST

/* A loop of its own whose task begins as the stop comes, and another one after
   it. */
struct begins {
	struct work early, late;
};

static evc_status
begin_two(evc_coord *c, void *arg)
{
	struct begins *b = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;
	evc_status st = evc_reactor_attach(c, "own", loop, &r);

	if (st == 0)
		st = evc_task_begin(r, &b->early.task, &staying);
	if (st == 0)
		st = evc_task_begin(r, &b->late.task, &ending);
	ev_run(loop, EVRUN_NOWAIT);
	ev_run(loop, EVRUN_NOWAIT);
	evc_task_end(&b->early.task);
	evc_task_end(&b->late.task);
	if (st == 0)
		st = evc_reactor_detach(r);
	ev_loop_destroy(loop);
	return st;
}

/* The stop comes while a begin stands between its steps: that task is told,
   one that began afterwards is not.  Fails when all go into one list. */
START_TEST(telling_of_a_task_that_begins_as_the_stop_comes)
{
	static const struct place places[] = {
		{"store", "add_plain", 1}, /* its number */
		{"cas", "evc__alive_add", 1},
		{"load", "evc__reopen", 1},
	};
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		struct begins b = {.early = {.told = 0}};
		evc_coord *c = new_coord(NULL);

		h = hold_at(&places[i]);
		actor_begin(&a, begin_two, c, &b);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		seam_release(h);
		OK(actor_end(&a));
		ck_assert_int_eq(b.early.told, 1);
		ck_assert_int_eq(b.late.told, 0);
		OK(evc_free(c));
	}
}
END_TEST

/* ---- loops ---- */

static evc_status
destroy_own_loop(evc_coord *c, void *arg)
{
	struct ev_loop *loop = ev_loop_new(0);
	struct work w = {.ends = NULL};
	evc_reactor *r = NULL;
	evc_status st = evc_reactor_attach(c, "own", loop, &r);

	(void)arg;
	if (st == 0)
		st = evc_task_begin(r, &w.task, &staying);
	ev_loop_destroy(loop);
	return st;
}

/* Fails when evc_free does not know of loops that are being destroyed. */
START_TEST(loops_that_are_being_destroyed_are_waited_for_by_free)
{
	static const struct place places[] = {
		{"sub", "evc__alive_sub", 1},
		{"load", "ring_sleepers", 1},
		{"lock", "next_reactor", 4}, /* lost, not off its waker */
		{"lock", "end_leftovers", 1},
		{"lock", "evc__reactor_left", 1},
	};
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);

		h = hold_at(&places[i]);
		actor_begin(&a, destroy_own_loop, c, NULL);
		HELD(h);
		REFUSED(EVC_FAILED_PRECONDITION, evc_free(c));
		seam_release(h);
		OK(actor_end(&a));
		OK(evc_free(c));
	}
}
END_TEST

/* A join sleeps while the tasks of a loop go away with it.  Fails when that is
   not rung. */
START_TEST(loops_that_are_destroyed_ring_the_joins_of_others)
{
	evc_coord *c = new_coord(NULL);
	struct actor a, j;
	evc_verdict v;
	int h;

	h = seam_hold("lock", "evc__reactor_lost", 1);
	actor_begin(&a, destroy_own_loop, c, NULL);
	HELD(h);
	actor_begin(&j, do_join, c, &v);
	actor_sleeps(&j);
	seam_release(h);
	OK(actor_end(&a));
	OK(actor_end(&j));
	OK(evc_free(c));
}
END_TEST

static evc_status
run_own_loop(evc_coord *c, void *arg)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;
	evc_status st = evc_reactor_attach(c, "own", loop, &r);

	atomic_store((atomic_int *)arg, 1);
	if (st == 0)
		st = evc_reactor_run(r); /* and detach */
	ev_loop_destroy(loop);
	return st;
}

/* The loop's thread stands anywhere between its attach and its first turn while
   the stop comes.  Fails when who begins to run a loop does not poke it. */
START_TEST(loops_that_run_hear_of_a_stop_that_comes_as_they_begin)
{
	static const struct place places[] = {
		{ "load", "enlist_reactor", 1 },
		{ "add", "evc__reactor_hear", 1 },
		{ "add", "evc__reactor_hear", 2 },
		{ "load", "evc__hooks_run", 1 },
	};
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);
		atomic_int attached = 0;

		h = hold_at(&places[i]);
		actor_begin(&a, run_own_loop, c, &attached);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		seam_release(h);
		OK(actor_end(&a));
		OK(evc_free(c));
	}
}
END_TEST

SCHEDULES_MAIN("loops", telling_is_done_once_for_each_stop_though_two_walk,
	       telling_goes_on_when_the_next_task_is_ended,
	       telling_many_leaves_others_their_turn,
	       telling_of_a_task_that_begins_as_the_stop_comes,
	       loops_that_are_being_destroyed_are_waited_for_by_free,
	       loops_that_are_destroyed_ring_the_joins_of_others,
	       loops_that_run_hear_of_a_stop_that_comes_as_they_begin)
