/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No thread: pthread_create answers EAGAIN, for a thread that is started and
 * for the helper.  A start is refused and leaves nothing behind; what wants the
 * helper is refused (a hook without a loop) or goes without it (threads that
 * would be watched).
 */
#include "faults.h"

static evc_coord *
anew(void)
{
	seam_reset();
	return new_coord(NULL);
}

static evc_status
never(evc_coord *c, void *arg)
{
	(void)c;
	atomic_store((atomic_int *)arg, 1);
	return 0;
}

static void
start_is_refused(const evc_member_opts *o)
{
	evc_coord *c = anew();
	atomic_int ran = 0;
	evc_verdict v;
	evc_id id = 77, first, second;

	OK(evc_thread_start(c, "first", obey, NULL, NULL, &first));
	seam_fail("thread_create", NULL, 1, EAGAIN);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_thread_start(c, "refused", never, &ran, o, &id));
	ck_assert_uint_eq(id, 77);
	HAS(evc_last_error(), strerror(EAGAIN));
	ck_assert_uint_eq(n_members(c), 1);
	ck_assert(!evc_should_stop(c));
	/* The very next one works, and its id is nobody else's. */
	OK(evc_thread_start(c, "second", obey, NULL, NULL, &second));
	ck_assert_uint_gt(second, first);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_int_eq(ran, 0);
	OK(evc_free(c));
}

START_TEST(a_start_is_refused_and_leaves_nothing)
{
	const evc_member_opts own = { .flags = EVC_OWN_SCOPE };

	start_is_refused(NULL);
	start_is_refused(&own);
}
END_TEST

START_TEST(each_start_of_many_is_refused_alone)
{
	evc_coord *c = anew();
	evc_verdict v;
	int i;

	for (i = 1; i <= 10; i++)
		seam_fail("thread_create", NULL, 2 * i, EAGAIN);
	for (i = 0; i < 20; i++) {
		evc_status st = evc_thread_start(c, "t", return_at_once, NULL,
						 NULL, NULL);

		ck_assert_int_eq(st, i % 2 ? -EVC_RESOURCE_EXHAUSTED : 0);
	}
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 10);
	seam_reset();
	OK(evc_free(c));
}
END_TEST

/* A join waits while a start is being refused: the member that was there for a
   moment must not keep it. */
START_TEST(J1_a_join_does_not_wait_for_a_start_that_was_refused)
{
	evc_coord *c = anew();
	struct joiner j;
	evc_id hold;
	int i;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	join_begin(&j, c, INFINITY, 0);
	seam_fail_all("thread_create", NULL, 1, EAGAIN);
	for (i = 0; i < 50; i++)
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc_thread_start(c, "t", obey, NULL, NULL, NULL));
	ck_assert(!atomic_load(&j.returned));
	OK(evc_hold_end(c, hold));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 1);
	seam_reset();
	OK(evc_free(c));
}
END_TEST

static atomic_int refusal;

static void *
start_one(void *arg)
{
	atomic_store(&refusal,
		     evc_thread_start(arg, "t", obey, NULL, NULL, NULL));
	return NULL;
}

/* The start has its member in the register and is about to fail when the join
   begins: nobody else will ring for that member. */
START_TEST(J1_a_join_that_begins_while_a_start_is_being_refused)
{
	evc_coord *c = anew();
	struct joiner j;
	pthread_t t;
	int held;

	held = seam_hold("thread_create", NULL, 1);
	seam_fail("thread_create", NULL, 1, EAGAIN);
	t = spawn(start_one, c);
	ck_assert(seam_await(held));
	join_begin(&j, c, INFINITY, 0);
	seam_release(held);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 0);
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(refusal, -EVC_RESOURCE_EXHAUSTED);
	seam_reset();
	OK(evc_free(c));
}
END_TEST

START_TEST(a_strict_set_up_without_a_thread_is_a_stop)
{
	evc_config strict = { .flags = EVC_STRICT_SETUP };
	evc_coord *c;
	evc_reason r;

	seam_reset();
	c = new_coord_with(NULL, &strict);
	OK(evc_thread_start(c, "first", obey, NULL, NULL, NULL));
	seam_fail("thread_create", NULL, 1, EAGAIN);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_thread_start(c, "second", obey, NULL, NULL, NULL));
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_raise_requested(c, &r), EVC_RESOURCE_EXHAUSTED);
	ck_assert_str_eq(r.func, "evc_thread_start");
	HAS(r.text, strerror(EAGAIN));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_RESOURCE_EXHAUSTED);
	OK(evc_free(c));
}
END_TEST

/* ---- the helper ---- */

START_TEST(a_hook_without_a_loop_is_refused_without_a_helper)
{
	evc_coord *c = anew();
	atomic_int calls = 0;
	int threads = t_count_threads();
	evc_id id = 77;

	seam_fail("thread_create", NULL, 1, EAGAIN);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_on_stop(c, "hook", count_hook, &calls, NULL, &id));
	ck_assert_uint_eq(id, 77);
	ck_assert_uint_eq(n_members(c), 0);
	ck_assert_int_eq(t_settle_threads(threads), threads);
	/* A stop without it: nothing is due. */
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(calls, 0);
	OK(evc_clear_stop(c));
	/* The next time there is a thread to be had. */
	OK(evc_on_stop(c, "hook", count_hook, &calls, NULL, &id));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	ck_assert_int_eq(calls, 1);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

START_TEST(a_hook_on_a_loop_needs_no_helper)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	atomic_int calls = 0;
	evc_coord *c;

	seam_reset();
	c = new_coord(loop);
	seam_fail_all("thread_create", NULL, 1, EAGAIN);
	OK(evc_on_stop(c, "hook", count_hook, &calls, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(calls, 1);
	seam_reset();
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Both kinds that a helper would watch are waited for without one: before a
   stop, and after one. */
static void
watched_without_a_helper(bool stop)
{
	evc_member_opts o = { .flags = EVC_WATCHED };
	evc_coord *c = anew();
	struct guest g = { 0 };
	struct joiner j;
	int fds = t_count_fds(), h;

	/* Not the started thread, which is the first. */
	h = seam_fail_all("thread_create", NULL, 2, EAGAIN);
	OK(evc_thread_start(c, "started", stay, &g, &o, NULL));
	OK(evc_register_thread(c, "own", spawn(stay_thread, &g), NULL, NULL));
	ck_assert_int_eq(seam_arrivals(h), has_thread_pidfd() ? 3 : 1);
	ck_assert_int_eq(t_count_fds(), fds);
	join_begin(&j, c, INFINITY, 0);
	ck_assert(!atomic_load(&j.returned));
	if (stop)
		OK(evc_request_stop(c, 0, NULL));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 2);
	seam_reset();
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_fds(fds), fds);
}

START_TEST(J1_watched_threads_are_joined_without_a_helper)
{
	watched_without_a_helper(false);
	watched_without_a_helper(true);
}
END_TEST

/* A list of threads is taken although nobody can watch them. */
START_TEST(J3_a_list_is_joined_without_a_helper)
{
	evc_coord *c = anew();
	struct guest g = { 0 };
	pthread_t own[8];
	evc_join_opts o = { .threads = own, .n_threads = 8 };
	evc_verdict v;
	int i;

	for (i = 0; i < 8; i++)
		own[i] = spawn(stay_thread, &g);
	seam_fail_all("thread_create", NULL, 1, EAGAIN);
	atomic_store(&g.open, 1);
	OK(evc_join(c, &o, &v));
	ck_assert_uint_eq(v.n_ended, 8);
	seam_reset();
	OK(evc_free(c));
}
END_TEST

API_MAIN("threads", a_start_is_refused_and_leaves_nothing,
	 each_start_of_many_is_refused_alone,
	 J1_a_join_does_not_wait_for_a_start_that_was_refused,
	 J1_a_join_that_begins_while_a_start_is_being_refused,
	 a_strict_set_up_without_a_thread_is_a_stop,
	 a_hook_without_a_loop_is_refused_without_a_helper,
	 a_hook_on_a_loop_needs_no_helper,
	 J1_watched_threads_are_joined_without_a_helper,
	 J3_a_list_is_joined_without_a_helper)
