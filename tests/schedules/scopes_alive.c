/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * N3 and J1, stepped: what lives in a scope counts in all above it, in whatever
 * order it comes and goes; a join above misses neither a begin nor an end.
 */
#include "steps.h"

#include "core/core.h"

static const evc_task_class work = { .name = "work", .flags = EVC_AFTER_STOP };

/* ---- counts ---- */

/* n live in LEAF, and nothing else in the tree. */
static void
counts_are(struct tree *t, unsigned n)
{
	ck_assert_uint_eq(sync_load(&t->node[LEAF]->stop.alive), n);
	ck_assert_uint_eq(sync_load(&t->node[LEFT]->stop.alive), n > 0);
	ck_assert_uint_eq(sync_load(&t->node[LEFT]->stop.n_live_scopes), n > 0);
	ck_assert_uint_eq(sync_load(&t->node[ROOT]->stop.alive), n > 0);
	ck_assert_uint_eq(sync_load(&t->node[ROOT]->stop.n_live_scopes), n > 0);
	ck_assert_uint_eq(sync_load(&t->node[RIGHT]->stop.alive), 0);
}

/* What lives in LEAF is seen from above, wherever somebody else stands. */
static void
is_seen_above(struct tree *t)
{
	ck_assert_msg(sync_load(&t->node[LEFT]->stop.alive) > 0 &&
			      sync_load(&t->node[ROOT]->stop.alive) > 0,
		      "something lives in a scope, and nothing above");
}

/* A hold begins or ends in LEAF, and stands anywhere, while a task begins there,
   and perhaps ends: tasks take no lock.  Fails when a scope counts before its
   parent on the way up or after it on the way down, and when who comes second
   from 0 does not take back what it has counted above. */
START_TEST(N3_counts_go_up_and_down_in_step)
{
	struct stepped one;
	bool more = true;
	int step, ends, stays;

	for (ends = 0; ends < 2; ends++)
		for (stays = 0; stays < 2; stays++) {
			for (step = 1, more = true; more; step++) {
				evc_task task = {0};
				struct tree t;
				evc_id id;

				tree_make(&t, true);
				if (ends)
					id = hold(t.node[LEAF], "hold");
				more = step_begin(&one, step,
						  ends ? do_hold_end : do_hold,
						  t.node[LEAF], &id);
				OK(evc_task_begin(evc_home(t.node[LEAF]),
						  &task, &work));
				is_seen_above(&t);
				if (!stays)
					evc_task_end(&task);
				OK(step_end(&one));
				counts_are(&t, (unsigned)(!ends + stays));
				if (stays)
					evc_task_end(&task);
				counts_are(&t, !ends);
				if (!ends)
					OK(evc_hold_end(t.node[LEAF], id));
				counts_are(&t, 0);
				OK(evc_join(t.node[ROOT], NULL, NULL));
				tree_free(&t);
			}
			STEPS(step);
		}
}
END_TEST

/* Two begin or end in LEAF, and the first of them ends while the other one
   stands.  Fails when who has seen somebody there counts on it. */
START_TEST(N3_counts_stay_right_when_the_other_one_leaves)
{
	struct stepped one;
	bool more = true;
	int step, ends;

	for (ends = 0; ends < 2; ends++) {
		for (step = 1, more = true; more; step++) {
			evc_task task = {0};
			struct tree t;
			evc_id id;

			tree_make(&t, true);
			OK(evc_task_begin(evc_home(t.node[LEAF]), &task,
					  &work));
			if (ends)
				id = hold(t.node[LEAF], "hold");
			more = step_begin(&one, step,
					  ends ? do_hold_end : do_hold,
					  t.node[LEAF], &id);
			evc_task_end(&task);
			OK(step_end(&one));
			counts_are(&t, !ends);
			if (!ends)
				OK(evc_hold_end(t.node[LEAF], id));
			counts_are(&t, 0);
			tree_free(&t);
		}
		STEPS(step);
	}
}
END_TEST

/* The same for what comes and goes beside it, in another scope. */
START_TEST(N3_counts_of_two_scopes_do_not_mix)
{
	struct stepped one;
	bool more = true;
	int step, ends;

	for (ends = 0; ends < 2; ends++) {
		for (step = 1, more = true; more; step++) {
			evc_task task = {0};
			struct tree t;
			evc_id id;

			tree_make(&t, true);
			if (ends)
				id = hold(t.node[LEAF], "hold");
			more = step_begin(&one, step,
					  ends ? do_hold_end : do_hold,
					  t.node[LEAF], &id);
			OK(evc_task_begin(evc_home(t.node[RIGHT]), &task,
					  &work));
			ck_assert_uint_gt(sync_load(&t.node[ROOT]->stop.alive),
					  0);
			evc_task_end(&task);
			OK(step_end(&one));
			counts_are(&t, !ends);
			if (!ends)
				OK(evc_hold_end(t.node[LEAF], id));
			counts_are(&t, 0);
			tree_free(&t);
		}
		STEPS(step);
	}
}
END_TEST

/* ---- begins against joins above ---- */

/* The join of ROOT stands anywhere while a task begins in LEAF: unless the round
   is closed by then, the join waits for it.  Fails when a begin below leaves
   CLOSING in the words above. */
START_TEST(J1_a_begin_below_against_a_join_that_closes)
{
	struct stepped one;
	bool more = true, closed;
	int step, waited = 0;

	for (step = 1; more; step++) {
		evc_task task = {0};
		struct tree t;

		tree_make(&t, true);
		more = step_begin(&one, step, do_join, t.node[ROOT], NULL);
		closed = sync_load(&t.node[ROOT]->word) & WORD_JOINED;
		OK(evc_task_begin(evc_home(t.node[LEAF]), &task, &work));
		seam_release(atomic_load(&one.hold));
		if (!closed) {
			actor_waits(&one.a);
			waited++;
		} else
			UNTIL(atomic_load(&one.a.done));
		evc_task_end(&task);
		OK(actor_end(&one.a));
		tree_free(&t);
	}
	STEPS(step);
	ck_assert_int_gt(waited, 8);
}
END_TEST

/* The begin stands anywhere, and a join of ROOT comes: it waits, or was first.
   A later one waits in any case. */
START_TEST(J1_a_join_above_against_a_begin_that_stands_anywhere)
{
	struct stepped one;
	struct actor b, l;
	bool more = true;
	struct tree t;
	evc_id id;
	int step;

	for (step = 1; more; step++) {
		tree_make(&t, false);
		more = step_begin(&one, step, do_hold, t.node[LEAF], &id);
		actor_begin(&b, do_join, t.node[ROOT], NULL);
		(void)has_ended(&b);
		OK(step_end(&one));
		actor_begin(&l, do_join, t.node[ROOT], NULL);
		actor_sleeps(&l);
		OK(evc_hold_end(t.node[LEAF], id));
		OK(actor_end(&l));
		OK(actor_end(&b));
		counts_are(&t, 0);
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* ---- ends against joins above ---- */

/* The end in LEAF stands anywhere when the join of ROOT comes.  Fails when a
   ring does not go up. */
START_TEST(J1_an_end_below_that_stands_anywhere_is_heard_above)
{
	struct stepped one;
	bool more = true;
	struct actor b;
	struct tree t;
	evc_id id;
	int step;

	for (step = 1; more; step++) {
		tree_make(&t, false);
		id = hold(t.node[LEAF], "hold");
		more = step_begin(&one, step, do_hold_end, t.node[LEAF], &id);
		actor_begin(&b, do_join, t.node[ROOT], NULL);
		(void)has_ended(&b);
		OK(step_end(&one));
		OK(actor_end(&b));
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* The join of ROOT stands anywhere while a thread of LEAF ends, which somebody
   has to join there: nothing is probed, so a ring that was lost is the end.
   Fails when a scope is lit after its ring, and when the lights are put out
   after the scopes were looked at. */
START_TEST(J1_a_thread_that_ends_below_is_joined_by_a_join_above)
{
	int threads = t_count_threads(), step;
	struct stepped one;
	bool more = true;

	for (step = 1; more; step++) {
		struct guest g = {0, 0};
		struct tree t;

		tree_make(&t, false);
		OK(evc_thread_start(t.node[LEAF], "ends", stay, &g, NULL,
				    NULL));
		UNTIL(atomic_load(&g.in));
		more = step_begin(&one, step, do_join, t.node[ROOT], NULL);
		let_go(&g);
		/* It has rung, and is gone. */
		UNTIL(t_count_threads() <= threads + 1);
		OK(step_end(&one));
		counts_are(&t, 0);
		tree_free(&t);
		ck_assert_int_eq(t_settle_threads(threads), threads);
	}
	STEPS(step);
}
END_TEST

/* A thread that stands anywhere in its end. */
struct ending {
	int step;
	atomic_int hold, open;
};

static evc_status
end_in_steps(evc_coord *c, void *arg)
{
	struct ending *e = arg;

	(void)c;
	while (!atomic_load(&e->open))
		t_sleep(0.0005);
	atomic_store(&e->hold, seam_hold_mine(NULL, NULL, e->step));
	return 0;
}

/* The join of ROOT sleeps while a thread of LEAF stands anywhere in its end.
   Fails when a scope is lit only after its ring. */
START_TEST(J1_a_thread_in_the_middle_of_its_end_is_joined_by_a_join_above)
{
	int threads = t_count_threads(), step, h;
	bool more = true;
	struct tree t;

	for (step = 1; more; step++) {
		struct ending e = {.step = step, .hold = -1};
		struct actor b;

		seam_reset();
		tree_make(&t, false);
		OK(evc_thread_start(t.node[LEAF], "ends", end_in_steps, &e,
				    NULL, NULL));
		actor_begin(&b, do_join, t.node[ROOT], NULL);
		actor_sleeps(&b);
		atomic_store(&e.open, 1);
		UNTIL((h = atomic_load(&e.hold)) >= 0);
		UNTIL(seam_is_held(h) || t_count_threads() <= threads + 1);
		more = seam_is_held(h);
		(void)has_ended(&b);
		seam_release(h);
		OK(actor_end(&b));
		counts_are(&t, 0);
		tree_free(&t);
		ck_assert_int_eq(t_settle_threads(threads), threads);
	}
	STEPS(step);
}
END_TEST

SCHEDULES_MAIN("scopes_alive", N3_counts_go_up_and_down_in_step,
	       N3_counts_stay_right_when_the_other_one_leaves,
	       N3_counts_of_two_scopes_do_not_mix,
	       J1_a_begin_below_against_a_join_that_closes,
	       J1_a_join_above_against_a_begin_that_stands_anywhere,
	       J1_an_end_below_that_stands_anywhere_is_heard_above,
	       J1_a_thread_that_ends_below_is_joined_by_a_join_above,
	       J1_a_thread_in_the_middle_of_its_end_is_joined_by_a_join_above)
