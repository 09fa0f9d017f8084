/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks and the drain: those flagged EVC_ON_DRAIN are called at the drain, or at
 * a stop that no drain came before; the others at the stop.
 */
#include "../../../support/scope_util.h"

struct hooks {
	atomic_int early, late, tid;
};

static evc_status
on_drain(evc_coord *c, void *arg)
{
	struct hooks *h = arg;

	(void)c;
	atomic_store(&h->tid, own_tid());
	atomic_fetch_add(&h->early, 1);
	return 0;
}

static void
add_hooks(evc_coord *c, struct hooks *h, evc_reactor *r)
{
	evc_member_opts opts = { .reactor = r }, drain = opts;

	drain.flags = EVC_ON_DRAIN;
	OK(evc_on_stop(c, "early", on_drain, h, &drain, NULL));
	OK(evc_on_stop(c, "late", count_hook, &h->late, &opts, NULL));
}

static bool
hooks_are(struct hooks *h, int early, int late)
{
	return atomic_load(&h->early) == early && atomic_load(&h->late) == late;
}

/* On the loop of the home that sleeps, or on the helper thread. */
START_TEST(hooks_ON_DRAIN_are_called_at_the_drain_and_others_at_the_stop)
{
	struct driver d = { .config.grace = INFINITY };
	int how, i;

	for (how = 0; how < BY_JOIN_FIRST; how++) {
		evc_coord *c = driver_make(&d, how);
		struct hooks h = { 0 };
		evc_id id;

		add_hooks(c, &h, NULL);
		for (i = 1; i <= 2; i++) {
			id = hold(c, "works on");
			driver_go(&d);
			OK(evc_request_drain(c, INFINITY, NULL));
			OK(evc_request_drain(c, INFINITY, "again"));
			UNTIL(atomic_load(&h.early) == i);
			if (how == BY_RUN || how == BY_START)
				ck_assert_int_eq(h.tid, d.tid);
			NOT_YET(!hooks_are(&h, i, i - 1));
			OK(evc_request_stop(c, 0, NULL));
			OK(evc_hold_end(c, id));
			OK(driver_wait(&d));
			ck_assert(hooks_are(&h, i, i));
			OK(evc_clear_stop(c));
		}
		driver_end(&d);
	}
}
END_TEST

START_TEST(without_a_drain_before_it_they_are_called_at_the_stop)
{
	struct ev_loop *loop = ev_loop_new(0);
	int k, i;

	for (k = 0; k < 2; k++) {
		evc_coord *c = new_coord(k ? loop : NULL);
		struct hooks h = { 0 };

		add_hooks(c, &h, NULL);
		for (i = 1; i <= 3; i++) {
			OK(evc_request_stop(c, 0, NULL));
			OK(evc_request_drain(c, 0, "too late"));
			OK(evc_join(c, NULL, NULL));
			ck_assert(hooks_are(&h, i, i));
			OK(evc_clear_stop(c));
		}
		OK(evc_free(c));
	}
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(added_while_it_drains_a_hook_ON_DRAIN_is_called_too)
{
	struct ev_loop *loop = ev_loop_new(0);
	int k;

	for (k = 0; k < 2; k++) {
		evc_coord *c = new_coord(k ? loop : NULL);
		struct hooks h = { 0 };
		evc_id id = hold(c, "works on");

		OK(evc_request_drain(c, INFINITY, NULL));
		turn(loop);
		add_hooks(c, &h, NULL);
		UNTIL((turn(loop), atomic_load(&h.early) == 1));
		OK(evc_hold_end(c, id));
		UNTIL((turn(loop), atomic_load(&h.late) == 1));
		OK(evc_join(c, NULL, NULL));
		ck_assert(hooks_are(&h, 1, 1));
		OK(evc_free(c));
	}
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(it_reaches_a_loop_of_another_thread)
{
	struct far f = { .c = new_coord(NULL) };
	struct hooks h = { 0 };

	far_begin_member(&f);
	add_hooks(f.c, &h, f.r);
	until_asleep(f.tid);
	OK(evc_request_drain(f.c, INFINITY, NULL));
	UNTIL(atomic_load(&h.early) == 1);
	ck_assert_int_eq(h.tid, f.tid);
	NOT_YET(atomic_load(&h.late)); /* that loop runs on */
	OK(evc_request_stop(f.c, 0, NULL));
	OK(evc_join(f.c, NULL, NULL));
	OK(f.status);
	ck_assert(hooks_are(&h, 1, 1));
	OK(evc_free(f.c));
}
END_TEST

API_MAIN("drain_hooks",
	 hooks_ON_DRAIN_are_called_at_the_drain_and_others_at_the_stop,
	 without_a_drain_before_it_they_are_called_at_the_stop,
	 added_while_it_drains_a_hook_ON_DRAIN_is_called_too,
	 it_reaches_a_loop_of_another_thread)
