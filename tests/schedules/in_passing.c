/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows that no other schedule has, each of a protocol of its own.
 */
#include "schedules.h"

/* A stop comes before the swap of a clear that has found none: that clear looks
   again, and takes it back. */
START_TEST(a_stop_that_overtakes_a_clear_is_cleared)
{
	evc_coord *c = new_coord(NULL);
	struct actor a;
	int h = seam_hold("cas", "clear_unstopped", 1);

	actor_begin(&a, do_clear, c, NULL);
	HELD(h);
	OK(evc_request_stop(c, EVC_INTERNAL, "meanwhile"));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert(!evc_should_stop(c));
	OK(evc_raise_requested(c, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

struct asked {
	atomic_int in, open;
};

static bool
stays_asked(void *arg)
{
	struct asked *k = arg;

	atomic_fetch_add(&k->in, 1);
	while (!atomic_load(&k->open))
		t_sleep(0.001);
	return true;
}

static evc_status
do_ask(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_all_stopped(c) ? EVC_OK : EVC_ABORTED;
}

/* Two threads ask whether all have stopped; the second waits for the answer of
   the first, which comes before it sleeps. */
START_TEST(who_waits_for_a_question_hears_that_it_is_over)
{
	static const evc_runner_ops ops = {.is_running = stays_asked};
	struct asked k = {.in = 0};
	evc_coord *c = new_coord(NULL);
	struct actor first, second;
	evc_id id = 0;
	int h = seam_hold("futex_wait", "evc__await_change", 1);

	OK(evc_runner_add(c, "runner", &ops, &k, NULL, &id));
	actor_begin(&first, do_ask, c, NULL);
	UNTIL(atomic_load(&k.in) == 1);
	actor_begin(&second, do_ask, c, NULL);
	HELD(h);
	atomic_store(&k.open, 1);
	ck_assert_int_eq(actor_end(&first), EVC_ABORTED);
	seam_release(h);
	ck_assert_int_eq(actor_end(&second), EVC_ABORTED);
	OK(evc_member_remove(c, id));
	OK(evc_free(c));
}
END_TEST

struct far_loop {
	evc_coord *c;
	evc_status attached;
	atomic_int begun, open;
};

static void *
keep_a_loop(void *arg)
{
	struct far_loop *f = arg;
	struct ev_loop *loop = ev_loop_new(0);
	evc_reactor *r = NULL;

	f->attached = evc_reactor_attach(f->c, "far", loop, &r);
	atomic_store(&f->begun, 1);
	while (!atomic_load(&f->open))
		t_sleep(0.001);
	ev_loop_destroy(loop);
	return NULL;
}

/* What was abandoned stays while a loop of a thread that is no member has it:
   whoever looks goes on looking. */
START_TEST(what_was_abandoned_stays_for_a_loop_of_the_program)
{
	int threads = t_count_threads();
	struct far_loop f = {.c = new_coord(NULL)};
	pthread_t t;
	int h, n;

	OK(pthread_create(&t, NULL, keep_a_loop, &f));
	UNTIL(atomic_load(&f.begun));
	OK(f.attached);
	h = seam_hold("lock", "run_abandoned", 1000000);
	OK(evc_request_stop(f.c, 0, NULL));
	OK(evc_abandon(f.c));
	n = seam_arrivals(h);
	UNTIL(seam_arrivals(h) > n + 3);
	atomic_store(&f.open, 1);
	OK(pthread_join(t, NULL));
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

SCHEDULES_MAIN("in_passing", a_stop_that_overtakes_a_clear_is_cleared,
	       who_waits_for_a_question_hears_that_it_is_over,
	       what_was_abandoned_stays_for_a_loop_of_the_program)
