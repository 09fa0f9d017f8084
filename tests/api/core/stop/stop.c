/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stop event: sticky (S1), no lost wake-up (S2), the first reason wins
 * whole and later ones are kept (S3), and no old round stops a new one (S5).
 * That it works from anywhere (S4) stands in anywhere.c.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sched.h>

START_TEST(S1_sticky_until_clear_stop)
{
	evc_coord *c = new_coord(NULL);
	int i;

	ck_assert(!evc_should_stop(c));
	OK(evc_request_stop(c, 0, "once"));
	for (i = 0; i < 3; i++) {
		ck_assert(evc_should_stop(c));
		OK(evc_request_stop(c, EVC_OUT_OF_RANGE, "again"));
	}
	OK(evc_join(c, NULL, NULL));
	ck_assert(evc_should_stop(c));
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(S1_the_exported_question_agrees_with_the_inline_one)
{
	bool (*volatile exported)(const evc_coord *) = evc_should_stop;
	evc_coord *c = new_coord(NULL);

	ck_assert(!exported(c));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(exported(c));
	OK(evc_clear_stop(c));
	ck_assert(!exported(c));
	OK(evc_free(c));
}
END_TEST

static int written_before;

static evc_status
write_and_request(evc_coord *c, void *arg)
{
	(void)arg;
	written_before = 42;
	return evc_request_stop(c, 0, NULL);
}

START_TEST(S1_what_the_requester_wrote_is_seen)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "writer", write_and_request, NULL, NULL, NULL));
	UNTIL(evc_should_stop(c));
	ck_assert_int_eq(written_before, 42);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(S2_everyone_who_waits_is_released)
{
	evc_coord *c = new_coord(NULL);
	struct waiter w[16];
	int i;

	for (i = 0; i < 16; i++)
		waiter_begin(&w[i], c, i % 2 ? INFINITY : 1000.0);
	for (i = 0; i < 16; i++) {
		UNTIL(atomic_load(&w[i].tid) != 0);
		ck_assert(!atomic_load(&w[i].released));
	}
	until_asleep(w[15].tid);
	OK(evc_request_stop(c, 0, NULL));
	for (i = 0; i < 16; i++) {
		OK(pthread_join(w[i].thread, NULL));
		ck_assert(w[i].answer);
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(S2_who_comes_later_does_not_wait)
{
	evc_coord *c = new_coord(NULL);

	OK(evc_request_stop(c, 0, NULL));
	ck_assert(evc_wait_for_stop(c, INFINITY));
	ck_assert(evc_wait_for_stop(c, 0));
	ck_assert(evc_wait_for_stop(c, -1));
	ck_assert(evc_wait_for_stop(c, NAN));
	OK(evc_free(c));
}
END_TEST

START_TEST(S2_a_wait_ends_at_its_limit_and_not_before)
{
	evc_coord *c = new_coord(NULL);
	double start;

	ck_assert(!evc_wait_for_stop(c, 0));
	ck_assert(!evc_wait_for_stop(c, -5));
	ck_assert(!evc_wait_for_stop(c, -INFINITY));
	ck_assert(!evc_wait_for_stop(c, NAN));
	start = t_now();
	ck_assert(!evc_wait_for_stop(c, 0.05));
	ck_assert_double_ge(t_now() - start, 0.05);
	OK(evc_free(c));
}
END_TEST

/* A clear on the heels of the stop must not take the wake-up away. */
START_TEST(S2_released_also_when_the_stop_is_cleared_at_once)
{
	evc_coord *c = new_coord(NULL);
	struct waiter w;
	int i;

	for (i = 0; i < 20; i++) {
		waiter_begin(&w, c, INFINITY);
		UNTIL(atomic_load(&w.tid) != 0);
		until_asleep(w.tid);
		OK(evc_request_stop(c, 0, NULL));
		OK(evc_clear_stop(c));
		UNTIL(atomic_load(&w.released));
		OK(pthread_join(w.thread, NULL));
	}
	OK(evc_free(c));
}
END_TEST

START_TEST(S2_stop_fd_is_readable_from_the_stop_on)
{
	evc_coord *c = new_coord(NULL), *d = new_coord(NULL);
	int fd = evc_stop_fd(c);

	ck_assert_int_ge(fd, 0);
	ck_assert(!readable(fd));
	OK(evc_request_stop(c, 0, NULL));
	ck_assert(readable(fd));
	ck_assert(readable(fd));
	ck_assert_int_eq(evc_stop_fd(c), fd);

	/* made after the stop: as right as before it */
	OK(evc_request_stop(d, 0, NULL));
	ck_assert(readable(evc_stop_fd(d)));
	FREE_ALL(c, d);
}
END_TEST

START_TEST(S3_the_first_reason_wins_whole)
{
	evc_coord *c = new_coord(NULL);
	evc_verdict v;
	evc_reason r;

	OK(evc_request_stop(c, 0, "first"));
	OK(evc_request_stop(c, EVC_OUT_OF_RANGE, "second"));
	OK(evc_request_stop(c, EVC_INTERNAL, "third"));
	OK(evc_request_stop(c, EVC_DATA_LOSS, "fourth"));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_INTERNAL);
	ck_assert_int_eq(v.stop.code, 0);
	ck_assert_str_eq(v.stop.text, "first");
	ck_assert_int_eq(v.error.code, EVC_INTERNAL);
	ck_assert_str_eq(v.error.text, "third");
	ck_assert_uint_eq(v.n_errors, 2);
	OK(evc_reason_get(c, 3, &r));
	ck_assert_str_eq(r.text, "fourth");
	OK(evc_free(c));
}
END_TEST

#define RACERS 8

static atomic_int starting_gun;

static evc_status
race(evc_coord *c, void *arg)
{
	int i = *(int *)arg;

	while (!atomic_load(&starting_gun))
		sched_yield();
	return evc_fail_at(c, 20 + i, 100 + i, "racer.c", 1000 + i, "racer",
			   "racer %d", i);
}

START_TEST(S3_of_a_race_one_wins_whole_and_all_are_kept)
{
	evc_coord *c = new_coord(NULL);
	int number[RACERS], seen[RACERS] = { 0 }, i;
	char text[32];
	evc_reason r;
	evc_verdict v;

	atomic_store(&starting_gun, 0);
	for (i = 0; i < RACERS; i++) {
		number[i] = i;
		OK(evc_thread_start(c, "racer", race, &number[i], NULL, NULL));
	}
	atomic_store(&starting_gun, 1);
	ck_assert_int_ge(evc_join(c, NULL, &v), 20);
	ck_assert_int_eq(v.code, v.error.code);
	for (i = 0; i < RACERS; i++) {
		OK(evc_reason_get(c, (unsigned)i, &r));
		ck_assert_int_ge(r.code, 20);
		ck_assert_int_lt(r.code, 20 + RACERS);
		seen[r.code - 20]++;
		snprintf(text, sizeof(text), "racer %d", r.code - 20);
		ck_assert_str_eq(r.text, text);
		ck_assert_int_eq(r.err, r.code + 80);
		ck_assert_int_eq(r.line, r.code + 980);
		if (i == 0)
			ck_assert_int_eq(r.code, v.stop.code);
	}
	for (i = 0; i < RACERS; i++)
		ck_assert_int_eq(seen[i], 1);
	ck_assert_uint_eq(v.n_errors, RACERS);
	OK(evc_free(c));
}
END_TEST

static atomic_int told;

static void
count_told(evc_task *t, void *arg)
{
	(void)t;
	(void)arg;
	atomic_fetch_add(&told, 1);
}

START_TEST(S5_a_doorbell_of_the_old_round_stops_nobody_of_the_new_one)
{
	static const evc_task_class cls = {
		.name = "work",
		.on_stop = count_told,
	};
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	evc_coord *c = new_coord(loop);
	evc_task task = { 0 };

	atomic_store(&told, 0);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_clear_stop(c));
	OK(evc_task_begin(evc_home(c), &task, &cls));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(told, 0);
	ck_assert(!evc_should_stop(c));
	ck_assert(!evc_wait_for_stop(c, 0.01));
	OK(evc_request_stop(c, 0, NULL));
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(told, 1);
	evc_task_end(&task);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(S5_a_member_of_the_old_round_bars_the_new_one)
{
	evc_coord *c = new_coord(NULL);
	struct guest g = { 0 };

	OK(evc_thread_start(c, "old-timer", stay, &g, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), "old-timer");
	ck_assert(evc_should_stop(c));
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

API_MAIN("stop", S1_sticky_until_clear_stop,
	 S1_the_exported_question_agrees_with_the_inline_one,
	 S1_what_the_requester_wrote_is_seen, S2_everyone_who_waits_is_released,
	 S2_who_comes_later_does_not_wait,
	 S2_a_wait_ends_at_its_limit_and_not_before,
	 S2_released_also_when_the_stop_is_cleared_at_once,
	 S2_stop_fd_is_readable_from_the_stop_on,
	 S3_the_first_reason_wins_whole,
	 S3_of_a_race_one_wins_whole_and_all_are_kept,
	 S5_a_doorbell_of_the_old_round_stops_nobody_of_the_new_one,
	 S5_a_member_of_the_old_round_bars_the_new_one)
