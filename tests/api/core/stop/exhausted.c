/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When descriptors or threads have run out: what needs one is refused with
 * RESOURCE_EXHAUSTED and changes nothing, what needs none works.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sys/resource.h>

static struct rlimit usual;

/* From here on every new descriptor is EMFILE. */
static void
take_descriptors(void)
{
	struct rlimit none;

	getrlimit(RLIMIT_NOFILE, &usual);
	none = usual;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void
give_descriptors(void)
{
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

START_TEST(new_with_a_loop_is_refused_and_works_later)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	int fds = t_count_fds();
	evc_coord *c = NULL, *homeless = NULL;
	evc_status with, without;

	take_descriptors();
	with = evc_new(loop, NULL, &c);
	without = evc_new(NULL, NULL, &homeless);
	give_descriptors();
	ck_assert_int_eq(with, -EVC_RESOURCE_EXHAUSTED);
	ck_assert_str_ne(evc_last_error(), "");
	ck_assert_ptr_null(c);
	OK(without); /* it needs none */
	ck_assert_int_eq(t_count_fds(), fds);
	ev_run(loop, 0); /* no watcher was left in it */

	c = new_coord(loop);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	FREE_ALL(c, homeless);
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(attach_is_refused_and_works_later)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(NULL);
	evc_reactor *r = NULL;
	evc_status st;

	take_descriptors();
	st = evc_reactor_attach(c, "loop", loop, &r);
	give_descriptors();
	ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
	ck_assert_ptr_null(r);
	ev_run(loop, 0);
	OK(evc_reactor_attach(c, "loop", loop, &r));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_reactor_run(r));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(stop_fd_is_refused_and_works_later)
{
	evc_coord *c = new_coord(NULL);
	int before, after;

	take_descriptors();
	before = evc_stop_fd(c);
	OK(evc_request_stop(c, 0, NULL));
	after = evc_stop_fd(c);
	give_descriptors();
	ck_assert_int_eq(before, -EVC_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(after, -EVC_RESOURCE_EXHAUSTED);
	ck_assert(readable(evc_stop_fd(c)));
	OK(evc_free(c));
}
END_TEST

START_TEST(starting_registering_holding_and_guarding_need_none)
{
	evc_member_opts watched = { .flags = EVC_WATCHED };
	evc_coord *c = new_coord(NULL);
	evc_status st[8], result = 0;
	struct guest g = { 0 };
	evc_id hold = 0;
	evc_verdict v;
	pthread_t t;
	int i;

	take_descriptors();
	OK(pthread_create(&t, NULL, stay_thread, &g));
	st[0] = evc_thread_start(c, "started", obey, NULL, NULL, NULL);
	st[1] = evc_register_thread(c, "registered", t, NULL, NULL);
	st[2] = evc_hold_begin(c, "hold", NULL, &hold);
	st[3] = evc_guard(c, "guard", return_at_once, &result, NULL);
	st[4] = evc_thread_start(c, "watched", obey, NULL, &watched, NULL);
	st[5] = evc_hold_end(c, hold);
	atomic_store(&g.open, 1);
	st[6] = evc_request_stop(c, 0, NULL);
	st[7] = evc_join(c, NULL, &v);
	give_descriptors();
	for (i = 0; i < 8; i++)
		ck_assert_msg(st[i] == 0, "call %d: %d", i, st[i]);
	ck_assert_uint_eq(v.n_ended, 4);
	OK(evc_free(c));
}
END_TEST

/* It wants a helper, which does without. */
START_TEST(a_hook_without_a_home_is_called)
{
	evc_coord *c = new_coord(NULL);
	atomic_int calls = 0;
	evc_status added;

	take_descriptors();
	added = evc_on_stop(c, "hook", count_hook, &calls, NULL, NULL);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	give_descriptors();
	OK(added);
	ck_assert_int_eq(calls, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(joins_on_a_loop_need_none)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_status st[3];
	evc_verdict v;

	take_descriptors();
	st[0] = evc_thread_start(c, "started", obey, NULL, NULL, NULL);
	st[1] = evc_request_stop(c, 0, NULL);
	st[2] = evc_run(c, NULL, &v);
	give_descriptors();
	OK(st[0]);
	OK(st[1]);
	OK(st[2]);
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_thread_that_cannot_be_made_leaves_no_member)
{
	evc_member_opts huge = { .stack = T_HUGE_STACK };
	int threads = t_count_threads();
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	evc_id id = 77;
	int i;

	for (i = 0; i < 20; i++)
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc_thread_start(c, "huge", obey, NULL, &huge, &id));
	ck_assert_uint_eq(id, 77);
	ck_assert(!evc_should_stop(c));
	OK(evc_join(c, NULL, &v)); /* nothing lives */
	ck_assert_uint_eq(v.n_ended, 0);
	OK(evc_clear_stop(c));
	OK(evc_thread_start(c, "usual", return_at_once, NULL, NULL, &id));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
	ck_assert_int_eq(t_settle_threads(threads), threads);
}
END_TEST

API_MAIN("exhausted", new_with_a_loop_is_refused_and_works_later,
	 attach_is_refused_and_works_later, stop_fd_is_refused_and_works_later,
	 starting_registering_holding_and_guarding_need_none,
	 a_hook_without_a_home_is_called, joins_on_a_loop_need_none,
	 a_thread_that_cannot_be_made_leaves_no_member)
