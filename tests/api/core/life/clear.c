/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_clear_stop: it opens a new round, is refused as long as anything of the
 * old one lives, and leaves nothing behind.
 */
#include "../../../support/api_util.h"

#include <ev.h>

START_TEST(a_clear_opens_a_new_round_that_knows_nothing)
{
	evc_coord *c = new_coord(NULL);
	evc_reason r;
	evc_verdict v;
	unsigned i;

	for (i = 1; i <= 50; i++) {
		ck_assert(!evc_should_stop(c));
		ck_assert(!evc_joined(c));
		OK(evc_raise_requested(c, &r));
		REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 0, &r));
		OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
		evc_fail(c, EVC_INTERNAL, 0, "error of round %u", i);
		OK(evc_reason_get(c, 0, &r));
		ck_assert_uint_eq(r.round, i);
		ck_assert_int_eq(evc_join(c, NULL, &v), EVC_INTERNAL);
		ck_assert_uint_eq(v.round, i);
		ck_assert_uint_eq(v.n_ended, 1);
		ck_assert_uint_eq(v.n_errors, 1);
		OK(evc_clear_stop(c));
	}
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_uint_eq(v.n_ended, 0);
	ck_assert_uint_eq(v.stop.kind, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(without_a_stop_only_the_mark_of_the_join_is_taken_away)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict v;

	OK(evc_clear_stop(c)); /* nothing to do */
	OK(evc_thread_start(c, "ends", return_at_once, NULL, NULL, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.round, 1);
	ck_assert(evc_joined(c));
	OK(evc_clear_stop(c));
	ck_assert(!evc_joined(c));
	/* errors are taken again, in the same round */
	OK(evc_request_stop(c, EVC_INTERNAL, "in time"));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_INTERNAL);
	ck_assert_uint_eq(v.round, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(refused_while_members_live_and_names_them)
{
	static const evc_task_class cls = { .name = "request" };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	struct guest g = { 0 };
	evc_task task = { 0 };
	evc_id hold = 0;
	pthread_t t;

	OK(evc_hold_begin(c, "the-hold", NULL, &hold));
	OK(evc_task_begin(evc_home(c), &task, &cls));
	OK(pthread_create(&t, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "the-thread", t, NULL, NULL));
	OK(evc_request_stop(c, EVC_INTERNAL, "kept"));

	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "the-hold");
	HAS(evc_last_error(), "the-thread");
	OK(evc_hold_end(c, hold));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "request");
	evc_task_end(&task);
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "the-thread");
	ck_assert(evc_should_stop(c)); /* nothing has changed */
	ck_assert_int_eq(evc_raise_requested(c, NULL), EVC_INTERNAL);
	atomic_store(&g.open, 1);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_clear_stop(c));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(what_has_ended_and_was_not_joined_does_not_live)
{
	evc_coord *c = new_coord(NULL);
	evc_member_info info;
	evc_id id = 0;

	OK(evc_thread_start(c, "ends", return_at_once, NULL, NULL, &id));
	UNTIL(evc_member_get(c, id, &info) < 0 || info.state != EVC_LIVE);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_clear_stop(c));
	OK(evc_free(c));
}
END_TEST

static pthread_key_t slow;

static void
take_time(void *arg)
{
	(void)arg;
	t_sleep(0.15);
}

static evc_status
end_slowly(evc_coord *c, void *arg)
{
	(void)c;
	pthread_setspecific(slow, arg);
	return 0;
}

START_TEST(what_is_about_to_be_gone_is_waited_for)
{
	evc_coord *c = new_coord(NULL);
	evc_member_info info;
	evc_id id = 0;
	int i;

	OK(pthread_key_create(&slow, take_time));
	for (i = 0; i < 2; i++) {
		OK(evc_thread_start(c, "ends", end_slowly, c, NULL, &id));
		UNTIL(evc_member_get(c, id, &info) < 0 ||
		      info.state != EVC_LIVE);
		if (i == 0) {
			OK(evc_request_stop(c, 0, NULL));
			OK(evc_clear_stop(c));
		} else
			OK(evc_free(c));
	}
	OK(pthread_key_delete(slow));
}
END_TEST

START_TEST(refused_while_a_join_waits)
{
	evc_coord *c = new_coord(NULL);
	struct joiner j;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, INFINITY, 0);
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	OK(evc_hold_end(c, hold));
	OK(join_end(&j));
	OK(evc_clear_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(refused_while_an_evented_join_waits)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_join_start(c, ignore_verdict, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_hold_end(c, hold));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	ev_run(loop, 0);
	OK(evc_clear_stop(c));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static evc_status
clear_myself(evc_coord *c, void *arg)
{
	evc_wait_for_stop(c, INFINITY);
	atomic_store((atomic_int *)arg, evc_clear_stop(c));
	return 0;
}

START_TEST(a_member_that_clears_is_left_out_itself)
{
	evc_coord *c = new_coord(NULL);
	atomic_int st = 77;
	evc_verdict v;

	OK(evc_thread_start(c, "clears", clear_myself, &st, NULL, NULL));
	OK(evc_request_stop(c, EVC_INTERNAL, "of the old round"));
	UNTIL(atomic_load(&st) != 77); /* a join would bar it */
	OK(st);
	OK(evc_join(c, NULL, &v));
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(hooks_due_bar_no_clear_and_run_once)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	atomic_int calls = 0;

	OK(evc_on_stop(c, "hook", count_hook, &calls, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_clear_stop(c)); /* the loop has not turned */
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(calls, 1);
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(calls, 1);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_run(c, NULL, NULL));
	ck_assert_int_eq(calls, 2);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(the_stop_descriptor_follows_every_stop_and_clear)
{
	evc_coord *c = new_coord(NULL);
	int fd = evc_stop_fd(c), i;

	for (i = 0; i < 50; i++) {
		ck_assert(!readable(fd));
		OK(evc_request_stop(c, 0, NULL));
		ck_assert(readable(fd));
		OK(evc_clear_stop(c));
		ck_assert_int_eq(evc_stop_fd(c), fd);
	}
	ck_assert(!readable(fd));
	OK(evc_free(c));
	/* made after a stop and a clear */
	c = new_coord(NULL);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_clear_stop(c));
	ck_assert(!readable(evc_stop_fd(c)));
	OK(evc_free(c));
}
END_TEST

/* Whatever the order was: in the end all the signs say the same. */
START_TEST(clears_beside_requests_leave_flag_and_descriptor_agreed)
{
	evc_coord *c = new_coord(NULL);
	int fd = evc_stop_fd(c), i;
	struct requests r;

	requests_begin(&r, c);
	for (i = 0; i < 2000 || atomic_load(&r.n) < 2000; i++)
		OK(evc_clear_stop(c));
	requests_end(&r);
	ck_assert(readable(fd) == evc_should_stop(c));
	OK(evc_clear_stop(c));
	ck_assert(!readable(fd));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(readable(fd));
	ck_assert(evc_wait_for_stop(c, 0));
	OK(evc_free(c));
}
END_TEST

START_TEST(L3_rounds_leave_no_thread_and_no_descriptor)
{
	int threads = t_count_threads(), fds = t_count_fds(), i;
	struct ev_loop *loop = ev_loop_new(0);
	int with_loop = t_count_fds();
	evc_coord *c = new_coord(loop);
	pthread_t t;

	for (i = 0; i < 30; i++) {
		OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
		OK(pthread_create(&t, NULL, end_at_once, NULL));
		OK(evc_register_thread(c, "ends", t, NULL, NULL));
		ck_assert_int_ge(evc_stop_fd(c), 0);
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_run(c, NULL, NULL));
		OK(evc_clear_stop(c));
	}
	ck_assert_int_le(t_count_fds(), with_loop + 10);
	OK(evc_free(c));
	ev_loop_destroy(loop);
	ck_assert_int_eq(t_settle_threads(threads), threads);
	ck_assert_int_eq(t_settle_fds(fds), fds);
}
END_TEST

API_MAIN("clear", a_clear_opens_a_new_round_that_knows_nothing,
	 without_a_stop_only_the_mark_of_the_join_is_taken_away,
	 refused_while_members_live_and_names_them,
	 what_has_ended_and_was_not_joined_does_not_live,
	 what_is_about_to_be_gone_is_waited_for,
	 refused_while_a_join_waits, refused_while_an_evented_join_waits,
	 a_member_that_clears_is_left_out_itself,
	 hooks_due_bar_no_clear_and_run_once,
	 the_stop_descriptor_follows_every_stop_and_clear,
	 clears_beside_requests_leave_flag_and_descriptor_agreed,
	 L3_rounds_leave_no_thread_and_no_descriptor)
