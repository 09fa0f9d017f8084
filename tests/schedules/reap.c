/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends and reaping, stepped: each thread is joined once, whoever sees that
 * it has ended, and a pthread_t may be used again the moment it was.
 */
#include "schedules.h"

#include <limits.h>

static unsigned
state_of(evc_coord *c, evc_id id)
{
	evc_member_info info;

	OK(evc_member_get(c, id, &info));
	return info.state;
}

/* ---- ends ---- */

/* Fails when evc_free does not wait for who is inside the gate. */
START_TEST(ends_of_a_hold_keep_the_coordinator_until_they_have_left)
{
	static const struct place ends[] = {
		{ "load", "ring_sleepers", 1 },     /* in its ring */
		{ "sub", "evc__refgate_leave", 1 }, /* before its last touch */
	};
	struct actor a, f;
	size_t i;
	int h;

	for (i = 0; i < N_OF(ends); i++) {
		evc_coord *c = new_coord(NULL);
		evc_id id = 0;

		OK(evc_hold_begin(c, "hold", NULL, &id));
		h = hold_at(&ends[i]);
		actor_begin(&a, do_hold_end, c, &id);
		HELD(h);
		actor_begin(&f, do_free, c, NULL);
		actor_sleeps(&f);
		seam_release(h);
		OK(actor_end(&a));
		OK(actor_end(&f));
	}
}
END_TEST

/* Fails when a reap counts as joined what it could not join in time. */
START_TEST(ends_of_a_thread_are_not_over_before_its_ring)
{
	static const struct place ends[] = {
		{"store", "evc__member_done", 1},
		{"load", "push_done", 1},
		{"cas", "push_done", 1},
		{"load", "ring_sleepers", 1},
	};
	struct actor j;
	evc_verdict v;
	size_t i;
	int h, stopped;

	for (i = 0; i < N_OF(ends) * 2; i++) {
		const struct place *p = &ends[i / 2];
		evc_coord *c = new_coord(NULL);

		stopped = i % 2;
		h = seam_hold_others(p->op, p->func, p->nth);
		OK(evc_thread_start(c, "ends", return_at_once, NULL, NULL,
				    NULL));
		HELD(h);
		if (stopped)
			OK(evc_request_stop(c, 0, "stop"));
		actor_begin(&j, do_join, c, &v);
		t_sleep(0.05); /* a step of its back-off and more */
		actor_waits(&j);
		seam_release(h);
		OK(actor_end(&j));
		ck_assert_uint_eq(v.n_ended, 1);
		OK(evc_free(c));
	}
}
END_TEST

/* ---- reaping ---- */

/* The reaper stands between its join and the lock: the pthread_t is free, and
   a new thread has it.  Fails when the old record is taken for the new thread,
   and when the registration does not wait until it is gone. */
START_TEST(reaping_while_an_equal_pthread_t_is_registered)
{
	struct reg old = {.id = 0}, new = {.id = 0};
	struct guest g1, g2;
	struct actor reaper, a;
	evc_verdict v;
	evc_coord *c;
	int h;

	NEEDS_PIDFDS();
	c = new_coord(NULL);
	old.t = spawn(&g1);
	OK(do_register(c, &old));
	h = seam_hold("lock", "reap_member", 1);
	actor_begin(&reaper, do_join, c, &v);
	let_go(&g1);
	HELD(h);
	ck_assert_uint_eq(evc_member_get(c, old.id, NULL), 0);
	new.t = spawn(&g2);
	ck_assert_msg(pthread_equal(old.t, new.t),
		      "the C library gives a new thread a new pthread_t");
	actor_begin(&a, do_register, c, &new);
	actor_waits(&a);
	seam_release(h);
	OK(actor_end(&a));
	ck_assert_uint_ne(new.id, old.id);
	ck_assert_uint_eq(state_of(c, new.id), EVC_LIVE);
	REFUSED(EVC_NOT_FOUND, evc_member_get(c, old.id, NULL));
	let_go(&g2);
	OK(actor_end(&reaper));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 2);
	OK(evc_free(c));
}
END_TEST

/* Fails when somebody probes a record that another one has claimed. */
START_TEST(reaping_is_done_by_one_of_two_joins)
{
	static const struct place places[] = {
		{ "thread_join", "reap_pthread", 1 },
		{ "lock", "reap_member", 1 },
	};
	struct actor a, b;
	int n = t_count_threads(), h;
	evc_verdict v, v2;
	size_t i;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);

		h = hold_at(&places[i]);
		OK(evc_thread_start(c, "ends", return_at_once, NULL, NULL,
				    NULL));
		OK(evc_request_stop(c, 0, "stop"));
		/* Ended, and in the chain. */
		ck_assert_int_eq(t_settle_threads(n), n);
		actor_begin(&a, do_join, c, &v);
		HELD(h);
		actor_begin(&b, do_join, c, &v2);
		t_sleep(0.05);
		actor_waits(&b);
		seam_release(h);
		OK(actor_end(&a));
		OK(actor_end(&b));
		ck_assert_uint_eq(v.n_ended, 1);
		ck_assert_uint_eq(v2.n_ended, 1);
		OK(evc_free(c));
	}
}
END_TEST

/* It rings after the look at the chain, and before the probe, which joins it.
   Fails when who takes it out of the register frees what stands in the chain,
   and when who takes the chain joins it again. */
START_TEST(reaping_by_a_probe_of_a_record_that_stands_in_the_chain)
{
	evc_coord *c = new_coord(NULL);
	struct named n = {.tid = 0};
	struct actor a;
	evc_verdict v;
	evc_id hold;
	int h;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_thread_start(c, "ends", stay_named, &n, NULL, NULL));
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&n.tid) != 0);
	h = seam_hold("load", "evc__members_probe", 1);
	actor_begin(&a, do_join, c, &v);
	HELD(h);
	let_go(&n.g);
	ck_assert(t_settle_gone(atomic_load(&n.tid)));
	seam_release(h);
	UNTIL(evc_member_get(c, hold + 1, NULL) != 0);
	OK(evc_hold_end(c, hold));
	OK(actor_end(&a));
	ck_assert_uint_eq(v.n_ended, 2);
	OK(evc_free(c));
}
END_TEST

static evc_status
do_start(evc_coord *c, void *arg)
{
	return evc_thread_start(c, "fails", return_at_once, arg, NULL, NULL);
}

/* The thread is there before evc_thread_start has entered it and opened the
   closed round again.  Fails when it does not wait for that: its error would
   be handed back. */
START_TEST(reaping_and_errors_wait_until_the_thread_stands_in_the_register)
{
	static const struct place places[] = {
		{"load", "evc__id_add", 1},
		{"cas", "evc__alive_add", 1},
		{"cas", "evc__reopen", 1},
	};
	evc_status error = EVC_INTERNAL;
	struct joiner j;
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = new_coord(NULL);

		OK(evc_join(c, NULL, NULL)); /* it is closed */
		h = hold_at(&places[i]);
		actor_begin(&a, do_start, c, &error);
		HELD(h);
		join_begin(&j, c, INFINITY, 0);
		ck_assert(!atomic_load(&j.returned));
		ck_assert(!evc_should_stop(c));
		seam_release(h);
		OK(actor_end(&a));
		/* The join may have been the first to get the lock. */
		join_end(&j);
		ck_assert_int_eq(evc_join(c, NULL, &j.v), EVC_INTERNAL);
		ck_assert_uint_eq(j.v.n_ended, 1);
		ck_assert_uint_eq(j.v.n_errors, 1);
		OK(evc_free(c));
	}
}
END_TEST

static pthread_key_t slow_key;

static void
slow_destructor(void *arg)
{
	stay(NULL, arg);
}

static evc_status
end_slowly(evc_coord *c, void *arg)
{
	(void)c;
	pthread_setspecific(slow_key, arg);
	return 0;
}

/* Destructors hang after the thread has rung.  Fails when the claim is not
   given back, and when nobody looks again afterwards. */
START_TEST(reaping_is_given_up_and_tried_again_when_destructors_hang)
{
	evc_join_opts o = {.grace = 0.1};
	int stopped;

	OK(pthread_key_create(&slow_key, slow_destructor));
	for (stopped = 0; stopped < 2; stopped++) {
		evc_coord *c = new_coord(NULL);
		struct guest g = {0, 0};
		struct joiner j;
		evc_verdict v;
		evc_id id;

		OK(evc_thread_start(c, "slow", end_slowly, &g, NULL, &id));
		UNTIL(atomic_load(&g.in));
		if (stopped) {
			OK(evc_request_stop(c, 0, "stop"));
			ck_assert_int_eq(evc_join(c, &o, &v),
					 EVC_DEADLINE_EXCEEDED);
			ck_assert_uint_eq(v.n_stragglers, 1);
			HAS(v.error.text, "slow");
		}
		memset(&j, 0, sizeof(j));
		j.c = c;
		OK(pthread_create(&j.thread, NULL, joiner_main, &j));
		NOT_YET(atomic_load(&j.returned));
		ck_assert_uint_eq(state_of(c, id) == EVC_LIVE, 0);
		let_go(&g);
		UNTIL(atomic_load(&j.returned));
		OK(join_end(&j));
		ck_assert_uint_eq(j.v.n_ended, 1);
		OK(evc_free(c));
	}
	OK(pthread_key_delete(slow_key));
}
END_TEST

static evc_status
cancelled_clear(evc_coord *c, void *arg)
{
	(void)arg;
	pthread_cancel(pthread_self());
	return evc_clear_stop(c);
}

/* A thread with a cancellation pending reaps one that has not quite ended.
   Fails when the join of a thread is a cancellation point. */
START_TEST(reaping_is_no_cancellation_point)
{
	evc_member_opts late = { .flags = EVC_AFTER_STOP };
	evc_coord *c = new_coord(NULL);
	evc_join_opts o = {.grace = 10};
	struct actor a;
	int h;

	OK(evc_request_stop(c, 0, NULL));
	h = seam_hold_others("load", "ring_sleepers", 1);
	OK(evc_thread_start(c, "ends", return_at_once, NULL, &late, NULL));
	HELD(h); /* in the chain, but not gone */
	actor_begin(&a, cancelled_clear, c, NULL);
	/* It came through: the cancellation is still to come. */
	UNTIL(atomic_load(&a.done));
	ck_assert_int_eq(a.status, -EVC_FAILED_PRECONDITION);
	OK(pthread_join(a.thread, NULL));
	seam_release(h);
	OK(evc_join(c, &o, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- of the helper's own threads ---- */

static void
hangs_until(void *arg)
{
	while (!atomic_load((atomic_int *)arg))
		t_sleep(0.001);
}

/* Fails when a thread of the helper that hung and was relieved is joined no
   sooner than at the next relief, or when all is freed. */
START_TEST(reaping_is_done_of_a_helper_that_was_relieved)
{
	int made = seam_hold("thread_create", "evc__helper_lead", INT_MAX);
	int joined = seam_hold("add", "join_relieved", INT_MAX);
	evc_coord *c = new_coord(NULL);
	atomic_int go = 0;
	struct joiner j;
	evc_id hook, id;

	OK(evc_cancel_push(c, hangs_until, &go, 0, &hook));
	OK(evc_hold_begin(c, "hold", NULL, &id));
	join_begin(&j, c, 0, 0);
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(seam_arrivals(made) >= 2);
	atomic_store(&go, 1);
	UNTIL(seam_arrivals(joined) >= 1);
	OK(evc_hold_end(c, id));
	OK(join_end(&j));
	OK(evc_cancel_pop(c, hook));
	OK(evc_free(c));
}
END_TEST

SCHEDULES_MAIN("reap",
	       ends_of_a_hold_keep_the_coordinator_until_they_have_left,
	       ends_of_a_thread_are_not_over_before_its_ring,
	       reaping_while_an_equal_pthread_t_is_registered,
	       reaping_is_done_by_one_of_two_joins,
	       reaping_by_a_probe_of_a_record_that_stands_in_the_chain,
	       reaping_and_errors_wait_until_the_thread_stands_in_the_register,
	       reaping_is_given_up_and_tried_again_when_destructors_hang,
	       reaping_is_no_cancellation_point,
	       reaping_is_done_of_a_helper_that_was_relieved)
