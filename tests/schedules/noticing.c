/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Noticing ends, and the helper thread, stepped: an end that is seen by one is
 * heard of by all who wait, whoever comes first.
 */
#include "schedules.h"

/* ---- noticing ---- */

/* Fails when who notices an end does not ring. */
START_TEST(noticing_an_end_rings_the_join)
{
	struct reg r = {.id = 0};
	struct actor a;
	struct guest g;
	evc_verdict v;
	evc_coord *c;
	int h;

	NEEDS_PIDFDS();
	c = new_coord(NULL);
	r.t = spawn(&g);
	OK(do_register(c, &r));
	h = seam_hold("lock", "serve_pidfd", 1);
	actor_begin(&a, do_join, c, &v);
	actor_sleeps(&a);
	let_go(&g);
	HELD(h);
	actor_waits(&a);
	seam_release(h);
	OK(actor_end(&a));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

/* The join has seen it before the helper gets to it: before it looks who stands
   there, and after.  Fails when the helper trusts that what it was told of, or
   has found, is still there. */
START_TEST(noticing_an_end_that_a_probe_has_seen_already)
{
	struct reg r = {.id = 0};
	struct guest g;
	evc_verdict v;
	evc_coord *c;
	int h, found;

	NEEDS_PIDFDS();
	for (found = 0; found < 2; found++) {
		c = new_coord(NULL);
		r.t = spawn(&g);
		OK(do_register(c, &r));
		h = seam_hold("lock", "serve_pidfd", 1 + found);
		let_go(&g);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		OK(evc_join(c, NULL, &v));
		ck_assert_uint_eq(v.n_ended, 1);
		seam_release(h);
		OK(evc_free(c));
	}
}
END_TEST

static evc_status
leave_raw(evc_coord *c, void *arg)
{
	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	syscall(SYS_exit, 0);
	return 0;
}

/* A thread of ours leaves by SYS_exit after the stop, and the join sees it before
   the helper gets to it.  Fails when that decides what its end means. */
START_TEST(noticing_a_raw_exit_after_the_stop_by_a_probe)
{
	evc_member_opts o = { .flags = EVC_WATCHED };
	evc_verdict v;
	evc_coord *c;
	int h;

	NEEDS_PIDFDS();
	if (t_under_asan() || t_under_tsan())
		T_SKIP("the sanitizer cannot follow SYS_exit");
	c = new_coord(NULL);
	OK(evc_thread_start(c, "raw", leave_raw, NULL, &o, NULL));
	h = seam_hold("lock", "serve_pidfd", 1);
	OK(evc_request_stop(c, 0, "stop"));
	HELD(h);
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_uint_eq(v.n_errors, 0);
	seam_release(h);
	OK(evc_free(c));
}
END_TEST

/* As above, and another thread, which runs, has got the place of the one that
   ended.  Fails when the helper does not ask the pidfd that stands there. */
START_TEST(noticing_an_end_whose_place_is_another_threads_by_now)
{
	struct reg r = {.id = 0}, next = {.id = 0};
	evc_member_info info;
	struct guest g, runs;
	evc_verdict v;
	evc_coord *c;
	int h, over, found;

	NEEDS_PIDFDS();
	for (found = 0; found < 2; found++) {
		c = new_coord(NULL);
		r.t = spawn(&g);
		OK(do_register(c, &r));
		h = seam_hold("lock", "serve_pidfd", 1 + found);
		let_go(&g);
		HELD(h);
		OK(evc_request_stop(c, 0, "stop"));
		OK(evc_join(c, NULL, NULL));
		OK(evc_clear_stop(c));
		next.t = spawn(&runs);
		OK(do_register(c, &next));
		over = seam_hold("epoll_wait", "sleep_once", 1);
		seam_release(h);
		HELD(over);
		OK(evc_member_get(c, next.id, &info));
		ck_assert_uint_eq(info.state, EVC_LIVE);
		seam_release(over);
		let_go(&runs);
		OK(evc_join(c, NULL, &v));
		ck_assert_uint_eq(v.n_ended, 1);
		OK(evc_free(c));
	}
}
END_TEST

/* It ends between the look at its number and the pidfd for that number.  Fails
   when a thread without a pidfd is not probed. */
START_TEST(noticing_an_end_before_there_is_a_pidfd)
{
	int n = t_count_threads(), h;
	evc_coord *c = new_coord(NULL);
	struct reg r = {.id = 0};
	struct actor a;
	struct guest g;
	evc_verdict v;

	r.t = spawn(&g);
	h = seam_hold("pidfd", "evc__pthread_watch", 1);
	actor_begin(&a, do_register, c, &r);
	HELD(h);
	let_go(&g);
	/* The actor and we are left. */
	ck_assert_int_eq(t_settle_threads(n + 1), n + 1);
	seam_release(h);
	OK(actor_end(&a));
	actor_begin(&a, do_join, c, &v);
	OK(actor_end(&a));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

/* ---- helper ---- */

/* The helper stands before its sleep while it is given something to do.  Fails
   when who rings it does not move what it looks at. */
START_TEST(helper_loses_no_ring_before_it_sleeps)
{
	evc_coord *c = new_coord(NULL);
	atomic_int told = 0;
	int h;

	h = seam_hold("futex_wait", "sleep_once", 1);
	OK(evc_on_stop(c, "hook", count_hook, &told, NULL, NULL));
	HELD(h);
	OK(evc_request_stop(c, 0, "stop"));
	seam_release(h);
	UNTIL(atomic_load(&told) == 1);
	OK(evc_free(c));
}
END_TEST

/* The helper changes from one sleep to the other.  Fails when it is not rung
   when its descriptors are made. */
START_TEST(helper_is_rung_when_its_descriptors_are_made)
{
	evc_coord *c = new_coord(NULL);
	struct reg r = {.id = 0};
	atomic_int told = 0;
	struct actor a;
	struct guest g;
	evc_verdict v;
	int h;

	h = seam_hold("futex_wait", "sleep_once", 1);
	OK(evc_on_stop(c, "hook", count_hook, &told, NULL, NULL));
	HELD(h);
	r.t = spawn(&g);
	OK(do_register(c, &r));
	seam_release(h);
	actor_begin(&a, do_join, c, &v);
	actor_sleeps(&a);
	let_go(&g);
	OK(actor_end(&a));
	OK(evc_request_stop(c, 0, "stop"));
	UNTIL(atomic_load(&told) == 1);
	OK(evc_free(c));
}
END_TEST

/* No thread and no descriptor is to be had at the stop.  Fails when the helper
   is made only when it is needed. */
START_TEST(helper_is_not_made_at_the_stop)
{
	evc_coord *c = new_coord(NULL);
	atomic_int told = 0;

	OK(evc_on_stop(c, "hook", count_hook, &told, NULL, NULL));
	seam_fail_all("thread_create", NULL, 1, EAGAIN);
	seam_fail_all("eventfd", NULL, 1, EMFILE);
	seam_fail_all("epoll", NULL, 1, EMFILE);
	seam_fail_all("alloc", NULL, 1, ENOMEM);
	OK(evc_request_stop(c, 0, "stop"));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(atomic_load(&told), 1);
	OK(evc_free(c));
}
END_TEST

/* Fails when the refusal does not name the error. */
START_TEST(helper_that_cannot_be_made_refuses_with_the_error)
{
	const evc_config config = { .log = evc_log_stderr };
	evc_coord *c = NULL;

	seam_fail("thread_create", NULL, 1, EAGAIN);
	ck_assert_int_eq(evc_new(NULL, &config, &c), -EVC_RESOURCE_EXHAUSTED);
	HAS(evc_last_error(), "Resource temporarily unavailable");
	seam_fail("thread_create", "evc__helper_lead", 1, EAGAIN);
	ck_assert_int_eq(evc_new(NULL, &config, &c), -EVC_RESOURCE_EXHAUSTED);
	HAS(evc_last_error(), "Resource temporarily unavailable");
}
END_TEST

SCHEDULES_MAIN("noticing", noticing_an_end_rings_the_join,
	       noticing_an_end_that_a_probe_has_seen_already,
	       noticing_a_raw_exit_after_the_stop_by_a_probe,
	       noticing_an_end_whose_place_is_another_threads_by_now,
	       noticing_an_end_before_there_is_a_pidfd,
	       helper_loses_no_ring_before_it_sleeps,
	       helper_is_rung_when_its_descriptors_are_made,
	       helper_is_not_made_at_the_stop,
	       helper_that_cannot_be_made_refuses_with_the_error)
