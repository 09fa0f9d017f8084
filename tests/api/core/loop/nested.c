/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nested runs of one loop: a callback of any kind runs its loop until another
 * one, of any kind, was called, on the same coordinator or on another one that
 * lives on that loop.
 */
#include "../../../support/nested_util.h"

/* ---- posts ---- */

struct again {
	evc_message message; /* first */
	struct again *other;
	evc_loop_ref *to;
	struct ev_loop *loop;
	int depth, most, n_posted, n_called, repeats;
};

static int depth_now;

/* Post itself and the other one once more, and run the loop. */
static void
post_and_run(evc_message *m, evc_status why)
{
	struct again *a = (struct again *)m;

	a->n_called += why == 0 ? 1 : 1000000;
	if (a->repeats > 0) {
		a->repeats--;
		OK(evc_post_message(a->to, m));
		a->n_posted++;
		if (evc_post_message(a->other->to, &a->other->message) == 0)
			a->other->n_posted++;
	}
	if (depth_now == a->most)
		return;
	depth_now++;
	ev_run(a->loop, EVRUN_NOWAIT);
	depth_now--;
}

static void
two_posts(evc_coord *first, evc_coord *second, struct ev_loop *loop, int deep)
{
	struct again a[2];
	int i;

	memset(a, 0, sizeof(a));
	for (i = 0; i < 2; i++) {
		a[i].message.fn = post_and_run;
		a[i].other = &a[1 - i];
		a[i].to = evc_loop_of(evc_home(i == 0 ? first : second));
		a[i].loop = loop;
		a[i].most = deep;
		a[i].repeats = 30;
		OK(evc_post_message(a[i].to, &a[i].message));
		a[i].n_posted++;
	}
	/* As many turns as there are posts are enough, if none gets lost. */
	for (i = 0; i < 200; i++)
		ev_run(loop, EVRUN_NOWAIT);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(a[i].repeats, 0);
		ck_assert_int_eq(a[i].n_called, a[i].n_posted);
		evc_loop_release(a[i].to);
	}
}

START_TEST(posts_that_post_themselves_and_run_the_loop_are_all_called)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop), *scope;
	int deep;

	OK(evc_scope_new(c, "scope", NULL, &scope));
	OK(evc_scope_ready(scope));
	for (deep = 0; deep <= 4; deep++) {
		two_posts(c, c, loop, deep);
		two_posts(c, scope, loop, deep);
		two_posts(scope, c, loop, deep);
	}
	FREE_ALL(scope, c);
	ev_loop_destroy(loop);
}
END_TEST

/* ---- each kind waits for each ---- */

START_TEST(whatever_waits_for_whatever_by_running_the_loop_gets_it)
{
	int waits, awaited, place, inside;

	for (waits = 0; waits < N_KINDS; waits++)
		for (awaited = 0; awaited < N_KINDS; awaited++)
			for (place = 0; place < N_PLACES; place++)
				for (inside = 0; inside < 2; inside++)
					pair(waits, awaited, place, inside);
}
END_TEST

/* ---- a run of ours ---- */

static void
run_inside(struct ev_loop *loop, ev_check *w, int revents)
{
	(void)w;
	(void)revents;
	if (ev_depth(loop) == 1)
		ev_run(loop, EVRUN_NOWAIT);
}

/* What comes behind its end in the same turn runs the loop, which takes the break
   back. */
START_TEST(a_run_that_is_over_ends_though_the_loop_is_run_after_that)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	ev_check check;

	ev_check_init(&check, run_inside);
	ev_check_start(loop, &check);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	OK(evc_clear_stop(c));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_reactor_run(evc_home(c)));
	ev_check_stop(loop, &check);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("nested", a_run_that_is_over_ends_though_the_loop_is_run_after_that,
	 posts_that_post_themselves_and_run_the_loop_are_all_called,
	 whatever_waits_for_whatever_by_running_the_loop_gets_it)
