/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * N1, stepped: the walk that goes down.  Whoever stands anywhere in a request,
 * another one that has returned has told everybody below; and a scope that is
 * cleared under a stopped parent is asked anew.
 */
#include "steps.h"

static struct ask by_one = {0, "one"};

/* ---- two requests ---- */

/* The request on `frozen` stands anywhere, that on `second` has returned: all
   below the second are told, each hook once. */
static void
two_requests(int frozen, int second)
{
	struct stepped one;
	bool more = true;
	struct tree t;
	int step, i;

	for (step = 1; more; step++) {
		tree_make(&t, true);
		tree_hook(&t);
		more = step_begin(&one, step, do_request, t.node[frozen],
				  &by_one);
		OK(evc_request_stop(t.node[second], 0, "second"));
		stopped_below(&t, second);
		turn(t.loop);
		ck_assert_int_eq(atomic_load(&t.told[second]), 1);
		ck_assert_int_eq(atomic_load(&t.told[LEAF]), 1);
		OK(step_end(&one));
		stopped_below(&t, frozen);
		turn(t.loop);
		for (i = 0; i < N_NODES; i++)
			ck_assert_int_eq(atomic_load(&t.told[i]),
					 evc_should_stop(t.node[i]));
		tree_free(&t);
	}
	STEPS(step);
}

/* Fails when only the winner goes down, when a scope that was asked is not gone
   through again, and when the mark is set before all below are told. */
START_TEST(N1_a_second_request_tells_all_while_the_first_is_frozen)
{
	two_requests(ROOT, ROOT);
	two_requests(LEFT, ROOT);
	two_requests(LEAF, ROOT);
	two_requests(RIGHT, ROOT);
	two_requests(ROOT, LEFT);
	two_requests(ROOT, LEAF);
}
END_TEST

/* Threads that wait in the scopes are released by the second request. */
START_TEST(N1_waiters_below_are_woken_while_the_first_is_frozen)
{
	struct stepped one;
	bool more = true;
	struct tree t;
	int step;

	for (step = 1; more; step++) {
		struct waiter w[2];
		int i;

		tree_make(&t, false);
		waiter_begin(&w[0], t.node[LEAF], INFINITY);
		waiter_begin(&w[1], t.node[RIGHT], INFINITY);
		more = step_begin(&one, step, do_request, t.node[ROOT],
				  &by_one);
		OK(evc_request_stop(t.node[ROOT], 0, "second"));
		for (i = 0; i < 2; i++) {
			UNTIL(atomic_load(&w[i].released));
			OK(pthread_join(w[i].thread, NULL));
			ck_assert(w[i].answer);
		}
		OK(step_end(&one));
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* ---- a scope that comes ---- */

struct coming {
	evc_coord *s;
};

static evc_status
do_scope(evc_coord *c, void *arg)
{
	struct coming *k = arg;

	return evc_scope_new(c, "new", NULL, &k->s);
}

/* The scope's maker stands anywhere, or the request does.  Fails when a scope
   is not born stopped, and when its maker looks before it stands in the
   table. */
START_TEST(N1_a_scope_that_is_made_while_the_stop_comes_is_told)
{
	struct stepped one;
	bool more = true;
	int step;

	for (step = 1; more; step++) {
		evc_coord *c = new_coord(NULL);
		struct coming k = {NULL};

		more = step_begin(&one, step, do_scope, c, &k);
		OK(evc_request_stop(c, 0, "stop"));
		OK(step_end(&one));
		ck_assert(evc_should_stop(k.s));
		OK(evc_scope_ready(k.s));
		OK(evc_free(k.s));
		OK(evc_free(c));
	}
	STEPS(step);
	more = true;
	for (step = 1; more; step++) {
		evc_coord *c = new_coord(NULL);
		struct coming k = {NULL};

		more = step_begin(&one, step, do_request, c, &by_one);
		OK(do_scope(c, &k));
		if (evc_should_stop(c))
			ck_assert(evc_should_stop(k.s));
		OK(step_end(&one));
		ck_assert(evc_should_stop(k.s));
		OK(evc_scope_ready(k.s));
		OK(evc_free(k.s));
		OK(evc_free(c));
	}
	STEPS(step);
}
END_TEST

/* ---- a clear of the scope ---- */

/* LEFT has a stop of its own, and is cleared while the parent's comes.  Fails
   when who hands the stop down does not look again after it has noted that, and
   when who clears does not ask anew. */
START_TEST(N1_a_scope_that_is_cleared_while_the_stop_comes_is_asked_anew)
{
	struct stepped one;
	bool more = true;
	struct actor b;
	struct tree t;
	int step;

	for (step = 1; more; step++) {
		tree_make(&t, false);
		OK(evc_request_stop(t.node[LEFT], 0, "its own"));
		more = step_begin(&one, step, do_request, t.node[ROOT],
				  &by_one);
		actor_begin(&b, do_clear, t.node[LEFT], NULL);
		(void)has_ended(&b);
		OK(step_end(&one));
		OK(actor_end(&b));
		stopped_below(&t, ROOT);
		tree_free(&t);
	}
	STEPS(step);
	more = true;
	for (step = 1; more; step++) {
		tree_make(&t, false);
		OK(evc_request_stop(t.node[LEFT], 0, "its own"));
		more = step_begin(&one, step, do_clear, t.node[LEFT], NULL);
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		stopped_below(&t, RIGHT);
		OK(step_end(&one));
		stopped_below(&t, ROOT);
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* Under a parent that is stopped already. */
START_TEST(N1_a_scope_that_is_cleared_under_a_stopped_parent_stays_stopped)
{
	struct stepped one;
	bool more = true;
	struct tree t;
	int step;

	for (step = 1; more; step++) {
		tree_make(&t, false);
		OK(evc_request_stop(t.node[ROOT], 0, "stop"));
		more = step_begin(&one, step, do_clear, t.node[LEFT], NULL);
		OK(evc_request_stop(t.node[ROOT], 0, "once more"));
		OK(evc_request_stop(t.node[RIGHT], 0, "beside it"));
		OK(step_end(&one));
		stopped_below(&t, ROOT);
		OK(evc_clear_stop(t.node[ROOT]));
		ck_assert(!evc_should_stop(t.node[LEFT]));
		ck_assert(!evc_should_stop(t.node[LEAF]));
		ck_assert(evc_should_stop(t.node[RIGHT])); /* its own */
		tree_free(&t);
	}
	STEPS(step);
}
END_TEST

/* A hold of the scope ends: the places that the ring looks at are fewer than
   most. */
static void
rings_past_fewer_than(int most, evc_coord *scope)
{
	evc_id id = 0;
	int h, n;

	OK(evc_hold_begin(scope, "hold", NULL, &id));
	h = seam_hold("load", "next_of_kind", 1000000);
	n = seam_arrivals(h);
	OK(evc_hold_end(scope, id));
	n = seam_arrivals(h) - n;
	ck_assert_int_gt(n, 0);
	ck_assert_int_lt(n, most);
	seam_reset();
}

/* What happens in one scope of many goes up to the loop that joins, and passes by
   no other scope, no place of one that has gone, and no waiter for the stop: else
   ten thousand hooks of as many scopes are quadratic, and so are queues. */
START_TEST(a_ring_goes_to_joins_alone)
{
	enum { MANY = 300 };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *s[MANY];
	evc_cond *cond[MANY];
	evc_id id = 0;
	int i;

	for (i = 0; i < MANY; i++) {
		OK(evc_scope_new(c, "scope", NULL, &s[i]));
		OK(evc_scope_ready(s[i]));
		OK(evc_cond_new(c, &cond[i]));
	}
	OK(evc_hold_begin(s[MANY - 1], "hold", NULL, &id));
	OK(evc_join_start(c, ignore_verdict, NULL, NULL));
	rings_past_fewer_than(MANY, s[0]);
	for (i = 0; i < MANY; i++) {
		OK(evc_cond_free(cond[i]));
		if (i < MANY - 1)
			OK(evc_free(s[i]));
	}
	rings_past_fewer_than(MANY, s[MANY - 1]);
	OK(evc_hold_end(s[MANY - 1], id));
	ev_run(loop, 0);
	OK(evc_free(s[MANY - 1]));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

SCHEDULES_MAIN("scopes",
	       N1_a_second_request_tells_all_while_the_first_is_frozen,
	       N1_waiters_below_are_woken_while_the_first_is_frozen,
	       N1_a_scope_that_is_made_while_the_stop_comes_is_told,
	       N1_a_scope_that_is_cleared_while_the_stop_comes_is_asked_anew,
	       N1_a_scope_that_is_cleared_under_a_stopped_parent_stays_stopped,
	       a_ring_goes_to_joins_alone)
