/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a join can be told: flags, a list of threads, graces of members; what
 * a round that was joined answers; and the grace on a clock that the test
 * moves.
 */
#include "../../../support/api_util.h"

START_TEST(IGNORE_LIVE_counts_the_living_and_is_content)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { .grace = 0.01, .flags = EVC_JOIN_IGNORE_LIVE };
	evc_verdict v;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "stays", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &opts, &v));
	ck_assert_int_eq(v.code, 0);
	ck_assert_uint_eq(v.n_stragglers, 1);
	/* an error is still one */
	OK(evc_request_stop(c, EVC_INTERNAL, "broken"));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_INTERNAL);
	ck_assert_uint_eq(v.n_stragglers, 1);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

START_TEST(STRICT_is_refused_before_a_stop)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { .flags = EVC_JOIN_STRICT };
	evc_verdict v = { .code = 77 };

	REFUSED(EVC_FAILED_PRECONDITION, evc_join(c, &opts, &v));
	ck_assert_int_eq(v.code, 77);
	ck_assert(!evc_joined(c));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, &opts, &v));
	ck_assert_int_eq(v.code, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(STOP_FIRST_asks_for_the_stop_itself)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { .flags = EVC_JOIN_STOP_FIRST };
	evc_verdict v;

	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_join(c, &opts, &v));
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(v.stop.code, 0);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_REQUEST);
	ck_assert_int_eq(v.stop.tid, own_tid());
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(only_BACKGROUND_members_left_ends_in_a_stop)
{
	evc_coord *c = new_coord(NULL);
	evc_member_opts back = { .flags = EVC_BACKGROUND };
	struct guest g = { 0 };
	struct joiner j;

	OK(evc_thread_start(c, "front", stay, &g, NULL, NULL));
	OK(evc_thread_start(c, "back", obey, NULL, &back, NULL));
	join_begin(&j, c, 0, 0);
	t_sleep(0.05);
	ck_assert(!evc_should_stop(c));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert(evc_should_stop(c));
	ck_assert_uint_eq(j.v.stop.kind, EVC_BY_EMPTY);
	ck_assert_int_eq(j.v.stop.code, 0);
	ck_assert_uint_eq(j.v.n_ended, 2);
	ck_assert_uint_eq(j.v.n_stragglers, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_BACKGROUND_member_that_is_late_is_a_straggler)
{
	evc_coord *c = new_coord(NULL);
	evc_member_opts back = { .flags = EVC_BACKGROUND };
	evc_join_opts opts = { .grace = 0.05 };
	evc_verdict v;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "deaf", &back, &hold));
	ck_assert_int_eq(evc_join(c, &opts, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_EMPTY);
	ck_assert_uint_eq(v.n_stragglers, 1);
	HAS(v.error.text, "deaf");
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_member_is_late_after_its_own_grace)
{
	evc_coord *c = new_coord(NULL);
	evc_member_opts brief = { .grace = 0.05 };
	evc_verdict v;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "brief", &brief, &hold));
	OK(evc_request_stop(c, 0, NULL));
	/* the join's own grace would be two minutes */
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.n_stragglers, 1);
	ck_assert_double_ge(v.took, 0.05);
	HAS(v.error.text, "brief");
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

START_TEST(others_keep_their_grace_beside_one_that_is_late)
{
	evc_coord *c = new_coord(NULL);
	evc_member_opts brief = { .grace = 0.05 }, longer = { .grace = 1000 };
	struct guest g = { 0 };
	struct joiner j;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "brief", &brief, &hold));
	OK(evc_thread_start(c, "slow", stay, &g, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	NOT_YET(atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(j.v.n_ended, 1);
	ck_assert_uint_eq(j.v.n_stragglers, 1);
	HAS(j.v.error.text, "brief");
	ck_assert_ptr_null(strstr(j.v.error.text, "slow"));
	OK(evc_hold_end(c, hold));
	OK(evc_clear_stop(c));

	/* and none has more than the join gives */
	OK(evc_hold_begin(c, "longer", &longer, &hold));
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0.05, 0);
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

START_TEST(listed_threads_are_joined_with_the_registered_ones)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	pthread_t t[3];
	struct joiner j;
	int i;

	for (i = 0; i < 3; i++)
		OK(pthread_create(&t[i], NULL, stay_thread, &g));
	OK(evc_register_thread(c, "one", t[0], NULL, NULL));
	memset(&j, 0, sizeof(j));
	j.c = c;
	j.opts.threads = t;
	j.opts.n_threads = 3;
	OK(pthread_create(&j.thread, NULL, joiner_main, &j));
	UNTIL(atomic_load(&g.in) == 3);
	UNTIL(atomic_load(&j.tid) != 0);
	until_asleep(j.tid);
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 3);
	OK(evc_free(c));
}
END_TEST

static void *
detached_main(void *arg)
{
	pthread_detach(pthread_self());
	return stay_thread(arg);
}

START_TEST(of_a_list_with_a_detached_thread_none_is_taken)
{
	static struct guest d; /* outlives a thread that nobody joins */
	int before = t_count_threads();
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	evc_join_opts opts = { .n_threads = 2 };
	pthread_t t[2];
	evc_verdict v = { .code = 77 };

	d.in = d.open = 0;
	OK(pthread_create(&t[0], NULL, stay_thread, &g));
	OK(pthread_create(&t[1], NULL, detached_main, &d));
	UNTIL(atomic_load(&d.in));
	opts.threads = t;
	REFUSED(EVC_INVALID_ARGUMENT, evc_join(c, &opts, &v));
	ck_assert_int_eq(v.code, 77);
	OK(evc_join(c, NULL, &v)); /* nothing lives */
	ck_assert_uint_eq(v.n_ended, 0);
	atomic_store(&g.open, 1);
	OK(pthread_join(t[0], NULL)); /* still ours */
	OK(evc_free(c));
	atomic_store(&d.open, 1);
	ck_assert_int_eq(t_settle_threads(before), before);
}
END_TEST

START_TEST(a_joined_round_answers_at_once_and_the_same)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { .grace = INFINITY };
	evc_verdict a, b;

	ck_assert(!evc_joined(c));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	evc_fail(c, EVC_DATA_LOSS, 0, "lost");
	ck_assert(!evc_joined(c));
	ck_assert_int_eq(evc_join(c, NULL, &a), EVC_DATA_LOSS);
	ck_assert(evc_joined(c));
	ck_assert_int_eq(evc_join(c, &opts, &b), EVC_DATA_LOSS);
	ck_assert_uint_eq(b.n_ended, a.n_ended);
	ck_assert_uint_eq(b.n_errors, a.n_errors);
	ck_assert_double_eq(b.took, a.took);
	ck_assert_str_eq(b.error.text, "lost");
	ck_assert_uint_eq(b.round, 1);
	OK(evc_clear_stop(c));
	ck_assert(!evc_joined(c));
	OK(evc_join(c, NULL, &b));
	ck_assert_uint_eq(b.round, 2);
	ck_assert_uint_eq(b.n_ended, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_join_that_timed_out_has_returned_but_closed_nothing)
{
	evc_coord *c = new_coord(NULL);
	evc_join_opts opts = { .grace = EVC_NO_GRACE };
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(evc_join(c, &opts, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert(evc_joined(c));
	/* the round is open: an error is still taken */
	OK(evc_request_stop(c, EVC_INTERNAL, "in time"));
	OK(evc_hold_end(c, hold));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_list_given_to_a_joined_round_is_waited_for)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct joiner j;
	pthread_t t;

	OK(evc_join(c, NULL, NULL));
	OK(pthread_create(&t, NULL, stay_thread, &g));
	memset(&j, 0, sizeof(j));
	j.c = c;
	j.opts.threads = &t;
	j.opts.n_threads = 1;
	OK(pthread_create(&j.thread, NULL, joiner_main, &j));
	UNTIL(atomic_load(&j.tid) != 0);
	until_asleep(j.tid);
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 1);
	ck_assert_uint_eq(j.v.round, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(registering_after_the_join_reopens_the_same_round)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };
	struct joiner j;

	evc_fail(c, EVC_ABORTED, 0, "first");
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_ABORTED);
	ck_assert_int_eq(evc_request_stop(c, EVC_INTERNAL, "late"),
			 EVC_INTERNAL);
	{
		evc_member_opts late = { .flags = EVC_AFTER_STOP };

		OK(evc_thread_start(c, "late", stay, &g, &late, NULL));
	}
	OK(evc_request_stop(c, EVC_INTERNAL, "in time again"));
	join_begin(&j, c, 0, 0);
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	ck_assert_int_eq(join_end(&j), EVC_ABORTED); /* the first stays */
	ck_assert_uint_eq(j.v.round, 1);
	OK(evc_free(c));
}
END_TEST

START_TEST(J1_the_grace_counts_on_the_clock_from_stop_and_start)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct joiner first, second;
	evc_id hold = 0;
	evc_reason r;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	join_begin(&first, c, 10, 0);
	scripted_advance(10000); /* before a stop no time counts */
	ck_assert(still_waits(&first));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_uint_eq(r.mono_ns, atomic_load(&scripted_ns));
	scripted_advance(9.5);
	ck_assert(still_waits(&first));
	join_begin(&second, c, 10, 0); /* counts from its own start */
	scripted_advance(1);
	RETURNS(&first);
	ck_assert_int_eq(join_end(&first), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_eq_tol(first.v.took, 10.5, 0.001);
	scripted_advance(8.5);
	ck_assert(still_waits(&second));
	scripted_advance(1);
	RETURNS(&second);
	ck_assert_int_eq(join_end(&second), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_eq_tol(second.v.took, 20, 0.001);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

START_TEST(J1_a_join_that_waits_already_hears_the_stop)
{
	evc_coord *c = new_coord(NULL);
	struct joiner j;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	join_begin(&j, c, 0.05, 0);
	ck_assert(!atomic_load(&j.returned));
	OK(evc_request_stop(c, 0, NULL));
	/* nothing else happens that could make it look */
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

START_TEST(J1_two_minutes_are_the_default)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct joiner j;
	evc_id hold = 0;

	OK(evc_hold_begin(c, "hold", NULL, &hold));
	OK(evc_request_stop(c, 0, NULL));
	join_begin(&j, c, 0, 0);
	scripted_advance(119.9);
	ck_assert(still_waits(&j));
	scripted_advance(0.2);
	RETURNS(&j);
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

API_MAIN("join_opts", IGNORE_LIVE_counts_the_living_and_is_content,
	 STRICT_is_refused_before_a_stop, STOP_FIRST_asks_for_the_stop_itself,
	 only_BACKGROUND_members_left_ends_in_a_stop,
	 a_BACKGROUND_member_that_is_late_is_a_straggler,
	 a_member_is_late_after_its_own_grace,
	 others_keep_their_grace_beside_one_that_is_late,
	 listed_threads_are_joined_with_the_registered_ones,
	 of_a_list_with_a_detached_thread_none_is_taken,
	 a_joined_round_answers_at_once_and_the_same,
	 a_join_that_timed_out_has_returned_but_closed_nothing,
	 a_list_given_to_a_joined_round_is_waited_for,
	 registering_after_the_join_reopens_the_same_round,
	 J1_the_grace_counts_on_the_clock_from_stop_and_start,
	 J1_a_join_that_waits_already_hears_the_stop,
	 J1_two_minutes_are_the_default)
