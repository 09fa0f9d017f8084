/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Phases, stepped: a join in progress drives their order, a request without one
 * tells them all, and the last join that leaves tells what was not told.  So
 * whoever stands where, a scope of a later phase is told by one of them, and
 * never before its turn while a join drives.
 */
#include "steps.h"

static struct ask any_stop = {0, "any"};

enum { FIRST, LATER, N_SCOPES };

/* A root, a coordinator below it, and that one's scopes of phases 0 and 1. */
struct house {
	evc_coord *root, *c, *s[N_SCOPES];
};

static void
house_make(struct house *h)
{
	h->root = new_coord(NULL);
	h->c = ready_scope(h->root, "c", NULL);
	h->s[FIRST] = phase_scope(h->c, "first", 0, 0);
	h->s[LATER] = phase_scope(h->c, "later", 1, 0);
}

static void
house_free(struct house *h)
{
	OK(evc_free(h->s[LATER]));
	OK(evc_free(h->s[FIRST]));
	OK(evc_free(h->c));
	OK(evc_free(h->root));
}

static evc_coord *
above(struct house *h, int i)
{
	return i ? h->root : h->c;
}

/* The request stands anywhere when a join begins that waits for a thread of the
   later phase, which ends only when it is told.  Fails when the request leaves
   it to joins, and a join does not look for what was left. */
START_TEST(phase_is_told_by_a_request_or_by_the_join_that_begins)
{
	struct stepped one;
	struct actor b;
	struct house h;
	bool more = true;
	int step, i;

	for (i = 0; i < 4; i++) {
		for (step = 1, more = true; more; step++) {
			house_make(&h);
			OK(evc_thread_start(h.s[LATER], "obeys", obey, NULL,
					    NULL, NULL));
			more = step_begin(&one, step, do_request,
					  above(&h, i % 2), &any_stop);
			actor_begin(&b, do_join, above(&h, i / 2), NULL);
			(void)has_ended(&b);
			OK(step_end(&one));
			OK(actor_end(&b));
			ck_assert(evc_should_stop(h.s[LATER]));
			OK(evc_join(h.root, NULL, NULL));
			house_free(&h);
		}
		STEPS(step);
	}
}
END_TEST

/* The join finds nothing alive, and stands anywhere on its way out when the
   stop is asked for.  Fails when it looks for the stop before it has counted
   itself out, when it does not look at all, and when the request does not look
   above. */
START_TEST(phase_is_told_by_a_request_or_by_the_last_join_that_leaves)
{
	struct stepped one;
	struct house h;
	bool more = true;
	int step, i;

	for (i = 0; i < 4; i++) {
		for (step = 1, more = true; more; step++) {
			house_make(&h);
			more = step_begin(&one, step, do_join,
					  above(&h, i % 2), NULL);
			OK(evc_request_stop(above(&h, i / 2), 0, "stop"));
			ck_assert(evc_should_stop(h.s[FIRST]));
			OK(step_end(&one));
			ck_assert(evc_should_stop(h.s[LATER]));
			house_free(&h);
		}
		STEPS(step);
	}
}
END_TEST

/* The same, and the request stands anywhere while a whole join comes and
   goes. */
START_TEST(phase_is_told_by_a_request_that_a_join_overtakes)
{
	struct stepped one;
	struct actor b;
	struct house h;
	bool more = true;
	int step, i;

	for (i = 0; i < 4; i++) {
		for (step = 1, more = true; more; step++) {
			house_make(&h);
			more = step_begin(&one, step, do_request,
					  above(&h, i % 2), &any_stop);
			actor_begin(&b, do_join, above(&h, i / 2), NULL);
			(void)has_ended(&b);
			OK(step_end(&one));
			OK(actor_end(&b));
			ck_assert(evc_should_stop(h.s[LATER]));
			house_free(&h);
		}
		STEPS(step);
	}
}
END_TEST

/* Late as soon as there is a stop. */
static evc_status
do_late_join(evc_coord *c, void *arg)
{
	evc_join_opts o = {.grace = EVC_NO_GRACE,
			   .flags = EVC_JOIN_IGNORE_LIVE};

	(void)arg;
	return evc_join(c, &o, NULL);
}

/* Two joins, on the coordinator and above it or both on one, leave at the same
   time, and the first phase is alive still: neither leaves the later phase to
   the other one.  Fails when who leaves looks for other joins before it has
   counted itself out. */
START_TEST(phase_is_told_when_two_joins_leave_at_once)
{
	struct stepped one;
	struct actor b;
	struct house h;
	bool more = true;
	int step, i, inside;
	evc_id id;

	for (i = 0; i < 4; i++) {
		for (step = 1, more = true; more; step++) {
			seam_reset();
			house_make(&h);
			id = hold(h.s[FIRST], "hold");
			inside = seam_hold("add", "sleep_through", 1);
			actor_begin(&b, do_late_join, above(&h, i % 2), NULL);
			HELD(inside);
			OK(evc_request_stop(h.root, 0, "stop"));
			ck_assert(!evc_should_stop(h.s[LATER]));
			more = step_beside(&one, step, do_late_join,
					   above(&h, i / 2), NULL);
			seam_release(inside);
			(void)has_ended(&b);
			OK(step_end(&one));
			OK(actor_end(&b));
			ck_assert(evc_should_stop(h.s[LATER]));
			OK(evc_hold_end(h.s[FIRST], id));
			OK(evc_join(h.root, NULL, NULL));
			house_free(&h);
		}
		STEPS(step);
	}
}
END_TEST

/* Both stand before they count themselves out, and go on in either order. */
START_TEST(phase_is_told_when_two_joins_stand_at_their_leaving)
{
	struct actor below, top;
	struct house h;
	int i, in_c, in_root, at_c, at_root, looks;
	evc_id id;

	for (i = 0; i < 2; i++) {
		seam_reset();
		house_make(&h);
		id = hold(h.s[FIRST], "hold");
		in_c = seam_hold("add", "sleep_through", 1);
		actor_begin(&below, do_late_join, h.c, NULL);
		HELD(in_c);
		in_root = seam_hold("add", "sleep_through", 1);
		actor_begin(&top, do_late_join, h.root, NULL);
		HELD(in_root);
		OK(evc_request_stop(h.root, 0, "stop"));
		/* The one below has asked for its deadline, and waits for
		   nobody above from now on. */
		looks = seam_hold("lock", "evc__join_look", 1);
		seam_release(in_c);
		HELD(looks);
		at_root = seam_hold("sub", "evc__join_end", 1);
		seam_release(in_root);
		HELD(at_root);
		at_c = seam_hold("sub", "evc__join_end", 1);
		seam_release(looks);
		HELD(at_c);
		ck_assert(!evc_should_stop(h.s[LATER]));
		seam_release(i ? at_root : at_c);
		OK(actor_end(i ? &top : &below));
		ck_assert(!evc_should_stop(h.s[LATER]));
		seam_release(i ? at_c : at_root);
		OK(actor_end(i ? &below : &top));
		ck_assert(evc_should_stop(h.s[LATER]));
		OK(evc_hold_end(h.s[FIRST], id));
		OK(evc_join(h.root, NULL, NULL));
		house_free(&h);
	}
}
END_TEST

/* ---- its turn ---- */

/* While joins drive, the later phase waits for the first one, whoever stands
   where.  Fails when a request tells a phase although joins are there, and when
   a join tells one before its turn. */
START_TEST(phase_waits_for_its_turn_while_a_join_drives)
{
	struct actor b, k;
	struct stepped one;
	struct house h;
	bool more = true;
	evc_id id;
	int step, i;

	for (i = 0; i < 2; i++) {
		for (step = 1, more = true; more; step++) {
			int inside;

			seam_reset();
			house_make(&h);
			id = hold(h.s[FIRST], "hold");
			OK(evc_thread_start(h.s[LATER], "obeys", obey, NULL,
					    NULL, NULL));
			inside = seam_hold("add", "sleep_through", 1);
			actor_begin(&b, do_join, above(&h, i), NULL);
			HELD(inside);
			more = step_beside(&one, step, do_request, h.root,
					   &any_stop);
			seam_release(inside);
			(void)has_ended(&b);
			ck_assert(!evc_should_stop(h.s[LATER]));
			OK(step_end(&one));
			ck_assert(!evc_should_stop(h.s[LATER]));
			actor_begin(&k, do_hold_end, h.s[FIRST], &id);
			OK(actor_end(&k));
			OK(actor_end(&b));
			ck_assert(evc_should_stop(h.s[LATER]));
			OK(evc_join(h.root, NULL, NULL));
			house_free(&h);
		}
		STEPS(step);
	}
}
END_TEST

/* The hook of the first phase ends while a join stands anywhere in its look.  Fails
   when the join counts who is left after it has driven the phases, and does not
   look again whether all were told. */
START_TEST(phase_is_told_when_a_hook_ends_during_a_look)
{
	evc_member_opts o = {.reactor = NULL};
	atomic_int told[N_SCOPES];
	struct stepped one;
	struct ev_loop *loop;
	struct actor a, t;
	struct house h;
	int step, inside;
	evc_id id;

	/* Two looks, and more; the join looks again and again. */
	for (step = 1; step <= 150; step++) {
		seam_reset();
		house_make(&h);
		loop = ev_loop_new(0);
		told[FIRST] = told[LATER] = 0;
		id = hold(h.root, "hold");
		OK(evc_reactor_attach(h.s[FIRST], "loop", loop, &o.reactor));
		OK(evc_on_stop(h.s[FIRST], "hook", count_hook, &told[FIRST],
			       &o, NULL));
		OK(evc_on_stop(h.s[LATER], "hook", count_hook, &told[LATER],
			       NULL, NULL));
		inside = seam_hold("add", "sleep_through", 1);
		actor_begin(&a, do_join, h.root, NULL);
		HELD(inside);
		OK(evc_request_stop(h.root, 0, "stop"));
		ck_assert(step_beside(&one, step, do_join, h.c, NULL));
		actor_begin(&t, do_turn, h.s[FIRST], loop);
		(void)has_ended(&t);
		OK(step_end(&one));
		OK(actor_end(&t));
		ck_assert_int_eq(told[FIRST], 1);
		ck_assert_int_eq(told[LATER], 1);
		seam_release(inside);
		OK(evc_hold_end(h.root, id));
		OK(actor_end(&a));
		ev_loop_destroy(loop);
		house_free(&h);
	}
}
END_TEST

/* The join above leaves, because its loop is destroyed; one on the coordinator
   itself stays.  Fails when who leaves does not look below for others that
   drive. */
START_TEST(phase_is_left_to_a_join_below_that_stays)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_join_opts o = {.grace = INFINITY};
	struct actor b;
	struct house h;
	evc_id id;

	house_make(&h);
	id = hold(h.s[FIRST], "hold");
	OK(evc_reactor_attach(h.root, "loop", loop, &o.reactor));
	OK(evc_join_start(h.root, ignore_verdict, NULL, &o));
	actor_begin(&b, do_join, h.c, NULL);
	actor_sleeps(&b);
	OK(evc_request_stop(h.root, 0, "stop"));
	ev_loop_destroy(loop);
	ck_assert(!evc_should_stop(h.s[LATER]));
	OK(evc_hold_end(h.s[FIRST], id));
	OK(actor_end(&b));
	ck_assert(evc_should_stop(h.s[LATER]));
	house_free(&h);
}
END_TEST

/* ---- a scope that comes ---- */

static evc_status
do_later_scope(evc_coord *c, void *arg)
{
	evc_scope_opts o = {.phase = 2};

	return evc_scope_new(c, "new", &o, arg);
}

/* A scope of a later phase is made while the stop comes, or while the last join
   leaves.  Fails when its maker does not look for both. */
START_TEST(phase_of_a_scope_that_is_made_meanwhile_is_told)
{
	struct stepped one;
	struct actor b;
	struct house h;
	bool more = true;
	int step, i;

	for (i = 0; i < 2; i++) {
		for (step = 1, more = true; more; step++) {
			evc_coord *s = NULL;
			evc_id id;

			house_make(&h);
			id = hold(h.s[FIRST], "hold");
			if (i)
				OK(evc_request_stop(h.root, 0, "before"));
			more = step_begin(&one, step, do_later_scope, h.c, &s);
			actor_begin(&b, i ? do_late_join : do_request, h.root,
				    &any_stop);
			(void)has_ended(&b);
			OK(step_end(&one));
			OK(actor_end(&b));
			ck_assert(evc_should_stop(s));
			OK(evc_hold_end(h.s[FIRST], id));
			OK(evc_scope_ready(s));
			OK(evc_free(s));
			house_free(&h);
		}
		STEPS(step);
	}
}
END_TEST

/* All were told when it comes, and a join drives: it has its turn when the one
   before it has ended.  Fails when who drives thinks that all is done. */
START_TEST(phase_of_a_scope_that_comes_after_all_were_told_has_its_turn)
{
	evc_coord *s = NULL;
	struct house h;
	struct actor b;
	evc_id id;

	house_make(&h);
	id = hold(h.s[LATER], "hold");
	actor_begin(&b, do_join, h.c, NULL);
	actor_sleeps(&b);
	OK(evc_request_stop(h.root, 0, "stop"));
	UNTIL(evc_should_stop(h.s[LATER]));
	OK(do_later_scope(h.c, &s));
	NOT_YET(evc_should_stop(s));
	OK(evc_hold_end(h.s[LATER], id));
	UNTIL(evc_should_stop(s));
	OK(evc_scope_ready(s));
	OK(actor_end(&b));
	OK(evc_free(s));
	house_free(&h);
}
END_TEST

SCHEDULES_MAIN("phases", phase_is_told_by_a_request_or_by_the_join_that_begins,
	       phase_is_told_by_a_request_or_by_the_last_join_that_leaves,
	       phase_is_told_by_a_request_that_a_join_overtakes,
	       phase_is_told_when_two_joins_leave_at_once,
	       phase_is_told_when_two_joins_stand_at_their_leaving,
	       phase_waits_for_its_turn_while_a_join_drives,
	       phase_is_told_when_a_hook_ends_during_a_look,
	       phase_is_left_to_a_join_below_that_stays,
	       phase_of_a_scope_that_is_made_meanwhile_is_told,
	       phase_of_a_scope_that_comes_after_all_were_told_has_its_turn)
