/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scope is freed, stepped: against all that may have it in hand at that
 * moment - the walk of a request above, a ring on its way up, a join above that
 * reaps in it, the helper thread, the loop that turns its home; and the other
 * way round.  L1: nothing of it is called, and none of its memory is touched,
 * once evc_free has returned.
 */
#include "steps.h"

#include <malloc.h>

#include "core/core.h"

static struct ask any_stop = {0, "any"};

/* What was freed is not as it was: who looks at it goes wrong. */
static void
poison(void)
{
	mallopt(M_PERTURB, 0xa5);
}

/* Has anybody LEAF in hand? */
static bool
in_hand(struct tree *t)
{
	evc_coord *leaf = t->node[LEAF];

	return sync_load(&t->node[LEFT]->stop.readers.n) > 1 ||
	       sync_load(&leaf->life.gate.n) > 1 ||
	       (leaf->loop.home != NULL &&
		sync_load(&leaf->loop.home->turning) > 0);
}

/* Somebody stands; LEAF is freed.  Then it is let go. */
static void
free_leaf(struct tree *t, struct stepped *one)
{
	bool has_to_wait = in_hand(t);
	struct actor b;
	evc_status st;

	actor_begin(&b, do_free, t->node[LEAF], NULL);
	ck_assert_msg(!has_ended(&b) || b.status < 0 || !has_to_wait,
		      "freed under somebody's hands");
	seam_release(atomic_load(&one->hold));
	st = actor_end(&b);
	if (one->fn != NULL)
		OK(actor_end(&one->a));
	/* Refused while something lives there: not any more. */
	if (st < 0) {
		ck_assert_int_eq(st, -EVC_FAILED_PRECONDITION);
		OK(evc_free(t->node[LEAF]));
	}
	t->node[LEAF] = NULL;
}

/* ---- what has it in hand ---- */

/* Fails when a scope leaves its parent's table without waiting for walkers. */
START_TEST(free_against_the_walk_of_a_request_above)
{
	struct stepped one;
	bool more = true;
	struct tree t;
	int step;

	poison();
	for (step = 1; more; step++) {
		tree_make(&t, false);
		more = step_begin(&one, step, do_request, t.node[ROOT],
				  &any_stop);
		free_leaf(&t, &one);
		stopped_below(&t, RIGHT);
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* Fails when a request on the scope, or who ends in it, does not keep it until
   all above has been rung and told. */
START_TEST(free_against_what_goes_up)
{
	static evc_fn *const fn[] = {do_hold_end, do_request};
	struct ask error = {EVC_INTERNAL, "goes up"};
	struct stepped one;
	bool more = true;
	struct tree t;
	evc_id id;
	size_t i;
	int step;

	poison();
	for (i = 0; i < N_OF(fn); i++) {
		for (step = 1, more = true; more; step++) {
			tree_make(&t, false);
			if (i == 0)
				id = hold(t.node[LEAF], "hold");
			more = step_begin(&one, step, fn[i], t.node[LEAF],
					  i ? (void *)&error : &id);
			/* Before it has its foot in the gate, who asks has to
			   know by itself that the scope is there. */
			if (i == 1 && !in_hand(&t)) {
				seam_release(atomic_load(&one.hold));
				UNTIL(atomic_load(&one.a.done));
			}
			free_leaf(&t, &one);
			ck_assert_int_eq(evc_join(t.node[ROOT], NULL, NULL),
					 i ? EVC_INTERNAL : 0);
			tree_free(&t);
		}
		STEPS(step);
	}
}
END_TEST

/* The join of ROOT has LEAF to visit, because a thread has ended there.  Fails
   when it does so without a foot in the gate. */
START_TEST(free_against_a_join_above_that_reaps_in_it)
{
	/* Once: who was joined may be counted for a moment still. */
	int threads = t_count_threads(), step;
	struct stepped one;
	bool more = true;
	struct tree t;

	poison();
	for (step = 1; more; step++) {
		tree_make(&t, false);
		OK(evc_thread_start(t.node[LEAF], "ends", return_at_once,
				    NULL, NULL, NULL));
		ck_assert_int_eq(t_settle_threads(threads), threads);
		more = step_begin(&one, step, do_join, t.node[ROOT], NULL);
		free_leaf(&t, &one);
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* ---- the helper thread ---- */

/* A hook of ROOT: the helper stands anywhere in what it does next. */
struct served {
	int step;
	atomic_int hold;
};

static evc_status
stand_from_here(evc_coord *c, void *arg)
{
	struct served *s = arg;

	(void)c;
	atomic_store(&s->hold, seam_hold_mine(NULL, NULL, s->step));
	return 0;
}

/* The helper is about to serve LEAF, or does so, or has done so.  Fails when it
   serves without a foot in the gate, and when what is freed stays on its
   board. */
START_TEST(free_against_the_helper_that_serves_it)
{
	struct stepped one = {.fn = NULL};
	bool more = true;
	struct tree t;
	int step;

	poison();
	for (step = 1; more; step++) {
		struct served s = {step, -1};
		int told;

		seam_reset();
		tree_make(&t, false);
		OK(evc_on_stop(t.node[ROOT], "first", stand_from_here, &s,
			       NULL, NULL));
		OK(evc_on_stop(t.node[LEAF], "hook", count_hook,
			       &t.told[LEAF], NULL, NULL));
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		UNTIL(atomic_load(&s.hold) >= 0);
		/* Or it has done all it had to, and sleeps. */
		UNTIL(seam_is_held(atomic_load(&s.hold)) ||
		      (t_sleep(0.02), !seam_is_held(atomic_load(&s.hold)) &&
					      atomic_load(&t.told[LEAF]) > 0));
		more = seam_is_held(atomic_load(&s.hold));
		atomic_store(&one.hold, atomic_load(&s.hold));
		free_leaf(&t, &one);
		told = atomic_load(&t.told[LEAF]);
		ck_assert_int_le(told, 1);
		OK(evc_join(t.node[ROOT], NULL, NULL));
		ck_assert_int_eq(atomic_load(&t.told[LEAF]), told);
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* ---- a loop of another thread ---- */

struct turning {
	struct t_gate ready, turn, leave;
	_Atomic(evc_reactor *) r;
	int step;
	atomic_int hold, turned;
	evc_status status;
};

static evc_status
own_loop(evc_coord *c, void *arg)
{
	struct turning *k = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;
	evc_status st = evc_reactor_attach(c, "own", loop, &r);

	atomic_store(&k->r, r);
	gate_step(&k->ready);
	gate_await(&k->turn, 1);
	atomic_store(&k->hold, seam_hold_mine(NULL, NULL, k->step));
	ev_run(loop, EVRUN_NOWAIT);
	atomic_store(&k->turned, 1);
	gate_await(&k->leave, 1);
	if (st == 0)
		st = evc_reactor_detach(r);
	ev_loop_destroy(loop);
	return st;
}

/* LEAF's home stands on the bell of another thread's loop, which turns it for
   the stop.  Fails when who takes a reactor away does not wait for the turn. */
START_TEST(free_against_the_loop_that_turns_its_home)
{
	struct stepped one = {.fn = NULL};
	bool more = true;
	int step;

	poison();
	for (step = 1; more; step++) {
		struct turning k = {.step = step, .hold = -1};
		evc_scope_opts o = {.phase = 0};
		struct actor a;
		struct tree t;
		int told;

		gate_init(&k.ready);
		gate_init(&k.turn);
		gate_init(&k.leave);
		seam_reset();
		tree_make(&t, false);
		OK(evc_free(t.node[LEAF]));
		actor_begin(&a, own_loop, t.node[ROOT], &k);
		ck_assert(gate_await(&k.ready, 1));
		o.home = atomic_load(&k.r);
		t.node[LEAF] = ready_scope(t.node[LEFT], "leaf", &o);
		OK(evc_on_stop(t.node[LEAF], "hook", count_hook,
			       &t.told[LEAF], NULL, NULL));
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		gate_step(&k.turn);
		UNTIL(atomic_load(&k.hold) >= 0);
		UNTIL(seam_is_held(atomic_load(&k.hold)) ||
		      atomic_load(&k.turned));
		more = seam_is_held(atomic_load(&k.hold));
		atomic_store(&one.hold, atomic_load(&k.hold));
		free_leaf(&t, &one);
		told = atomic_load(&t.told[LEAF]);
		UNTIL(atomic_load(&k.turned));
		ck_assert_int_eq(atomic_load(&t.told[LEAF]), told);
		gate_step(&k.leave);
		OK(actor_end(&a));
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* ---- the free stands ---- */

/* LEAF is being freed by another thread than its loop's, and stands anywhere,
   while all the rest goes on: requests, turns of the loop, ends, a join.  Fails
   when any of them finds something half gone. */
START_TEST(free_that_stands_anywhere_bars_nobody)
{
	struct stepped one;
	bool more = true;
	int step, loops;

	poison();
	for (loops = 0; loops < 2; loops++) {
		for (step = 1, more = true; more; step++) {
			struct actor j, k;
			struct tree t;
			evc_id id;

			tree_make(&t, loops);
			tree_hook(&t);
			id = hold(t.node[RIGHT], "hold");
			more = step_begin(&one, step, do_free, t.node[LEAF],
					  NULL);
			/* No lock in it: it returns. */
			OK(evc_request_stop(t.node[ROOT], 0, "stop"));
			ck_assert(evc_should_stop(t.node[LEFT]));
			stopped_below(&t, RIGHT);
			actor_begin(&j, do_join, t.node[ROOT], NULL);
			actor_begin(&k, do_hold_end, t.node[RIGHT], &id);
			(void)has_ended(&j);
			(void)has_ended(&k);
			OK(step_end(&one));
			OK(actor_end(&k));
			if (loops)
				UNTIL((turn(t.loop), atomic_load(&j.done)));
			OK(actor_end(&j));
			t.node[LEAF] = NULL;
			ck_assert_int_eq(atomic_load(&t.told[RIGHT]), 1);
			tree_free(&t);
		}
		STEPS(step);
	}
}
END_TEST

/* The loop turns while LEAF is being freed elsewhere. */
START_TEST(free_that_stands_anywhere_while_the_loop_turns)
{
	struct stepped one;
	bool more = true;
	int step;

	poison();
	for (step = 1; more; step++) {
		struct actor k;
		struct tree t;

		tree_make(&t, true);
		tree_hook(&t);
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		more = step_begin(&one, step, do_free, t.node[LEAF], NULL);
		actor_begin(&k, do_turn, NULL, t.loop);
		(void)has_ended(&k);
		OK(step_end(&one));
		OK(actor_end(&k));
		t.node[LEAF] = NULL;
		ck_assert_int_eq(atomic_load(&t.told[LEFT]), 1);
		OK(evc_join(t.node[ROOT], NULL, NULL));
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

SCHEDULES_MAIN("scopes_free", free_against_the_walk_of_a_request_above,
	       free_against_what_goes_up,
	       free_against_a_join_above_that_reaps_in_it,
	       free_against_the_helper_that_serves_it,
	       free_against_the_loop_that_turns_its_home,
	       free_that_stands_anywhere_bars_nobody,
	       free_that_stands_anywhere_while_the_loop_turns)
