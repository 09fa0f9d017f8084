/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rounds of a tree, stepped: a clear of the parent takes back the stops that
 * scopes have only inherited, against requests, begins and clears in the scopes
 * that come while it stands anywhere; and the other way round.
 */
#include "steps.h"

static struct ask own_stop = {0, "its own"};
static struct ask any_stop = {0, "any"};

/* A clear of ROOT has returned that: all is as it says. */
static void
as_the_clear_says(struct tree *t, evc_status cleared)
{
	if (cleared == 0) {
		ck_assert(!evc_should_stop(t->node[ROOT]));
		ck_assert(!evc_should_stop(t->node[LEFT]));
		ck_assert(!evc_should_stop(t->node[RIGHT]));
	} else {
		ck_assert_int_eq(cleared, -EVC_FAILED_PRECONDITION);
		stopped_below(t, ROOT);
	}
}

/* What comes next finds no trace of what was before. */
static void
tell_once_more(struct tree *t)
{
	OK(evc_clear_stop(t->node[ROOT]));
	stopped_nowhere(t);
	OK(evc_request_stop(t->node[ROOT], 0, "the next"));
	stopped_below(t, ROOT);
	OK(evc_join(t->node[ROOT], NULL, NULL));
	OK(evc_clear_stop(t->node[ROOT]));
	stopped_nowhere(t);
}

/* ---- against a request on a scope ---- */

/* It was accepted: the stop is LEAF's own, whatever becomes of ROOT's. */
static void
leaf_is_stopped(struct tree *t)
{
	ck_assert(evc_should_stop(t->node[LEAF]));
	ck_assert(is_kept(t->node[LEAF], "its own"));
	stopped_below(t, LEAF);
	OK(evc_clear_stop(t->node[LEAF]));
}

/* Fails when who clears does not look at the scope's own mark, looks before it
   has set CLOSING, or does not look again. */
START_TEST(own_stop_that_comes_while_the_parent_is_cleared_stays)
{
	struct stepped one;
	bool more = true;
	struct tree t;
	int step;

	for (step = 1; more; step++) {
		tree_make(&t, false);
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		more = step_begin(&one, step, do_clear, t.node[ROOT], NULL);
		OK(evc_request_stop(t.node[LEAF], 0, "its own"));
		as_the_clear_says(&t, step_end(&one));
		leaf_is_stopped(&t);
		tell_once_more(&t);
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* Fails when a request sets the mark after its word, and when one that was
   overtaken by the clear of the parent is forgotten. */
START_TEST(own_stop_that_stands_anywhere_while_the_parent_is_cleared_stays)
{
	struct stepped one;
	bool more = true;
	struct actor b;
	struct tree t;
	int step;

	for (step = 1; more; step++) {
		tree_make(&t, false);
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		more = step_begin(&one, step, do_request, t.node[LEAF],
				  &own_stop);
		actor_begin(&b, do_clear, t.node[ROOT], NULL);
		(void)has_ended(&b);
		OK(step_end(&one));
		as_the_clear_says(&t, actor_end(&b));
		leaf_is_stopped(&t);
		tell_once_more(&t);
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* Both stand: the clear has not seen the mark, and swaps the word before the
   request does.  Fails when who clears says so only after the swap. */
START_TEST(own_stop_before_its_word_while_the_parent_is_being_cleared_stays)
{
	evc_coord *c = new_coord(NULL), *s;
	int swaps, asks, swapped;
	struct actor a, b;

	s = ready_scope(c, "scope", NULL);
	OK(evc_request_stop(c, 0, "stop"));
	swaps = seam_hold("cas", "clear_stop", 3); /* the scope's second */
	actor_begin(&a, do_clear, c, NULL);
	HELD(swaps);
	asks = seam_hold("cas", "record_request", 1);
	actor_begin(&b, do_request, s, &own_stop);
	HELD(asks);
	swapped = seam_hold("store", "clear_stop", 1);
	seam_release(swaps);
	HELD(swapped);
	seam_release(asks);
	OK(actor_end(&b));
	ck_assert(evc_should_stop(s));
	seam_release(swapped);
	OK(actor_end(&a));
	ck_assert(!evc_should_stop(c));
	ck_assert(evc_should_stop(s));
	ck_assert(is_kept(s, "its own"));
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

/* A request of the scope's own round, which its owner clears: it is dropped
   whole, and leaves no reason to the next round; or it is of the next round.
   Fails when it takes a slot of the one and stops the other. */
START_TEST(own_stop_that_stands_anywhere_while_its_scope_is_cleared_is_whole)
{
	struct stepped one;
	bool more = true;
	struct actor b;
	int step;

	for (step = 1; more; step++) {
		evc_coord *c = new_coord(NULL), *s;

		s = ready_scope(c, "scope", NULL);
		OK(evc_request_stop(s, 0, "stop"));
		more = step_begin(&one, step, do_request, s, &own_stop);
		actor_begin(&b, do_clear, s, NULL);
		(void)has_ended(&b);
		OK(step_end(&one));
		OK(actor_end(&b));
		ck_assert_uint_eq(count_reasons(s), evc_should_stop(s));
		OK(evc_free(s));
		OK(evc_free(c));
	}
	STEPS(step);
}
END_TEST

static evc_status
do_clear_and_ask(evc_coord *c, void *arg)
{
	evc_status st = evc_clear_stop(c);

	return st < 0 ? st : do_request(c, arg);
}

/* Fails when what is of a round that its owner has cleared is made anew. */
START_TEST(S5_own_stop_of_the_round_before_is_dropped)
{
	static const struct place places[] = {
		{ "cas", "claim_slot", 1 },
		{ "store", "evc__slot_publish", 1 },
		{ "cas", "record_request", 1 },
	};
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL), *s;

		s = ready_scope(c, "scope", NULL);
		h = hold_at(&places[i]);
		actor_begin(&a, do_request, s, &own_stop);
		HELD(h);
		OK(evc_request_stop(s, 0, "overtakes it"));
		OK(evc_clear_stop(s));
		seam_release(h);
		OK(actor_end(&a));
		ck_assert(!evc_should_stop(s));
		ck_assert_uint_eq(count_reasons(s), 0);
		OK(evc_free(s));
		OK(evc_free(c));
	}
}
END_TEST

/* The stop of the next round is its own, too, when a request of the round
   before goes on at last.  Fails when that one takes the mark back to its own
   round. */
START_TEST(own_stop_is_marked_beside_a_request_of_the_round_before)
{
	static struct ask old = {0, "old"};
	struct stepped one;
	bool more = true;
	struct actor b;
	int step;

	for (step = 1; more; step++) {
		evc_coord *c = new_coord(NULL), *s;

		s = ready_scope(c, "scope", NULL);
		OK(evc_request_stop(s, 0, "stop"));
		more = step_begin(&one, step, do_request, s, &old);
		actor_begin(&b, do_clear_and_ask, s, &own_stop);
		(void)has_ended(&b);
		OK(step_end(&one));
		OK(actor_end(&b));
		OK(evc_request_stop(c, 0, "stop"));
		OK(evc_clear_stop(c));
		ck_assert(evc_should_stop(s));
		ck_assert(is_kept(s, "its own"));
		OK(evc_free(s));
		OK(evc_free(c));
	}
	STEPS(step);
}
END_TEST

/* ---- against a request on the parent ---- */

/* The request wins, or comes second.  Fails when the walk of the old stop
   reaches into the new round. */
START_TEST(request_on_the_parent_is_whole_beside_a_clear)
{
	struct stepped one;
	bool more = true;
	struct actor b;
	struct tree t;
	int step, i;

	for (i = 0; i < 4; i++) {
		for (step = 1, more = true; more; step++) {
			tree_make(&t, false);
			if (i >= 2)
				OK(evc_request_stop(t.node[ROOT], 0, "stop"));
			more = step_begin(&one, step,
					  i % 2 ? do_clear : do_request,
					  t.node[ROOT], &any_stop);
			actor_begin(&b, i % 2 ? do_request : do_clear,
				    t.node[ROOT], &any_stop);
			(void)has_ended(&b);
			OK(step_end(&one));
			OK(actor_end(&b));
			if (evc_should_stop(t.node[ROOT]))
				stopped_below(&t, ROOT);
			else
				stopped_nowhere(&t);
			tell_once_more(&t);
			tree_free(&t);
		}
		if (i != 1) /* nothing to clear */
			STEPS(step);
	}
}
END_TEST

/* ---- against what begins in a scope ---- */

static const evc_task_class late = { .name = "late", .flags = EVC_AFTER_STOP };

/* Fails when a begin in a scope does not take CLOSING away from all above, when
   the scope's count is not looked at under CLOSING, and when scopes that were
   cleared already are not asked anew. */
START_TEST(begin_in_a_scope_while_the_parent_is_cleared)
{
	struct stepped one;
	bool more = true;
	int step, refused = 0;

	for (step = 1; more; step++) {
		evc_task task = {0};
		evc_status cleared;
		struct tree t;

		tree_make(&t, true);
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		more = step_begin(&one, step, do_clear, t.node[ROOT], NULL);
		OK(evc_task_begin(evc_home(t.node[LEAF]), &task, &late));
		cleared = step_end(&one);
		refused += cleared < 0;
		as_the_clear_says(&t, cleared);
		REFUSED(EVC_FAILED_PRECONDITION,
			evc_free(t.node[LEAF]));
		evc_task_end(&task);
		tell_once_more(&t);
		tree_free(&t);
	}
	STEPS(step);
	ck_assert_int_gt(refused, 8);
}
END_TEST

static evc_status
do_late_hold(evc_coord *c, void *arg)
{
	evc_member_opts o = { .flags = EVC_AFTER_STOP };

	return evc_hold_begin(c, "late", &o, arg);
}

START_TEST(begin_in_a_scope_that_stands_anywhere_while_the_parent_is_cleared)
{
	struct stepped one;
	bool more = true;
	struct actor b;
	struct tree t;
	int step;

	for (step = 1; more; step++) {
		evc_id id = 0;

		tree_make(&t, false);
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		more = step_begin(&one, step, do_late_hold, t.node[LEAF], &id);
		actor_begin(&b, do_clear, t.node[ROOT], NULL);
		(void)has_ended(&b);
		OK(step_end(&one));
		as_the_clear_says(&t, actor_end(&b));
		OK(evc_hold_end(t.node[LEAF], id));
		tell_once_more(&t);
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* ---- against a clear of the scope ---- */

/* Fails when the scope, cleared under its stopped parent, is asked anew by a
   stop that the parent has not got any more. */
START_TEST(clear_of_a_scope_beside_that_of_the_parent)
{
	static const int pair[][2] = {
		{ROOT, LEFT}, {LEFT, ROOT}, {LEAF, ROOT}, {ROOT, LEAF},
		{LEAF, LEFT}, {LEFT, LEAF},
	};
	struct stepped one;
	bool more = true;
	struct actor b;
	struct tree t;
	size_t i;
	int step;

	for (i = 0; i < N_OF(pair); i++) {
		for (step = 1, more = true; more; step++) {
			tree_make(&t, false);
			OK(evc_request_stop(t.node[ROOT], 0, "stop"));
			more = step_begin(&one, step, do_clear,
					  t.node[pair[i][0]], NULL);
			actor_begin(&b, do_clear, t.node[pair[i][1]], NULL);
			(void)has_ended(&b);
			OK(step_end(&one));
			OK(actor_end(&b));
			if (pair[i][0] == ROOT || pair[i][1] == ROOT)
				stopped_nowhere(&t);
			else
				stopped_below(&t, ROOT);
			tell_once_more(&t);
			tree_free(&t);
		}
		STEPS(step);
	}
}
END_TEST

/* It has seen the parent's stop, which is cleared before it asks anew. */
START_TEST(clear_of_a_scope_that_was_cleared_with_the_parent)
{
	evc_coord *c = new_coord(NULL), *s;
	struct actor a, b;
	int swaps, asks;

	s = ready_scope(c, "scope", NULL);
	OK(evc_request_stop(c, 0, "stop"));
	swaps = seam_hold("cas", "clear_stop", 4); /* the scope's are 2 and 3 */
	actor_begin(&a, do_clear, c, NULL);
	HELD(swaps);
	asks = seam_hold("and", "evc__scope_follow", 1);
	actor_begin(&b, do_clear, s, NULL);
	HELD(asks);
	seam_release(swaps);
	OK(actor_end(&a));
	seam_release(asks);
	OK(actor_end(&b));
	ck_assert(!evc_should_stop(c));
	ck_assert(!evc_should_stop(s));
	OK(evc_free(s));
	OK(evc_free(c));
}
END_TEST

SCHEDULES_MAIN("scopes_rounds",
	       own_stop_that_comes_while_the_parent_is_cleared_stays,
	       own_stop_that_stands_anywhere_while_the_parent_is_cleared_stays,
	       own_stop_before_its_word_while_the_parent_is_being_cleared_stays,
	       own_stop_that_stands_anywhere_while_its_scope_is_cleared_is_whole,
	       S5_own_stop_of_the_round_before_is_dropped,
	       own_stop_is_marked_beside_a_request_of_the_round_before,
	       request_on_the_parent_is_whole_beside_a_clear,
	       begin_in_a_scope_while_the_parent_is_cleared,
	       begin_in_a_scope_that_stands_anywhere_while_the_parent_is_cleared,
	       clear_of_a_scope_beside_that_of_the_parent,
	       clear_of_a_scope_that_was_cleared_with_the_parent)
