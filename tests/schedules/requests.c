/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request, stepped: it waits for nobody, and when it has returned everybody
 * has been told, of its own stop and of no other.
 */
#include "schedules.h"

/* Fails when a request waits for who has the lock. */
START_TEST(request_waits_for_nobody)
{
	evc_coord *c = new_coord(NULL);
	struct actor joins, asks;
	struct ask ask = {EVC_INTERNAL, "asks"};
	int h;

	h = seam_hold("cas", "close_round", 1);
	actor_begin(&joins, do_join, c, NULL);
	HELD(h); /* with the lock */
	actor_begin(&asks, do_request, c, &ask);
	OK(actor_end(&asks));
	seam_release(h);
	ck_assert_int_eq(actor_end(&joins), EVC_INTERNAL);
	OK(evc_free(c));
}
END_TEST

/* The winner stands right after its CAS, or anywhere in its walk: when the
   second request has returned, everybody has been told.  Fails when only the
   winner walks, and when the mark is set before the walk. */
START_TEST(request_of_the_second_tells_all_while_the_winner_is_frozen)
{
	static const struct place places[] = {
		{ "load", "enter_level", 1 },
		{ "load", "evc__wake_waiters", 1 },
		{ "load", "evc__settle", 2 },
		{ "fd_write", "evc__settle", 1 },
		{ "add", "evc__readers_enter", 1 },
		{ "load", "next_of_kind", 1 },
		{ "store", "leave_level", 1 },
	};
	struct ask win = {0, "winner"};
	struct waiter w;
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		struct ev_loop *loop = ev_loop_new(0);
		evc_coord *c = new_coord(loop);
		int fd = evc_stop_fd(c);
		atomic_int told = 0;

		OK(evc_on_stop(c, "hook", count_hook, &told, NULL, NULL));
		ev_run(loop, EVRUN_NOWAIT);
		waiter_begin(&w, c, INFINITY);
		UNTIL(atomic_load(&w.tid) != 0);
		until_asleep(atomic_load(&w.tid));
		h = hold_at(&places[i]);
		actor_begin(&a, do_request, c, &win);
		HELD(h);
		OK(evc_request_stop(c, 0, "second"));
		ck_assert(readable(fd));
		ev_run(loop, EVRUN_NOWAIT);
		ck_assert_int_eq(atomic_load(&told), 1);
		UNTIL(atomic_load(&w.released));
		OK(pthread_join(w.thread, NULL));
		ck_assert(w.answer);
		seam_release(h);
		OK(actor_end(&a));
		ev_run(loop, EVRUN_NOWAIT);
		ck_assert_int_eq(atomic_load(&told), 1);
		OK(evc_free(c));
		ev_loop_destroy(loop);
	}
}
END_TEST

/* Its CAS is done: it was the old round's, and its walk tells nobody of the
   new one, which it does not mark as told either.  Fails when a walk does not
   look for the flag, or marks what comes next. */
START_TEST(request_stalled_before_its_walk_across_clear)
{
	static const struct ask asks[] = {
		{EVC_INTERNAL, "stale"},
		{0, "stale"},
	};
	struct waiter w;
	struct actor a;
	size_t i;
	int h;

	for (i = 0; i < N_OF(asks); i++) {
		evc_coord *c = new_coord(NULL);

		h = seam_hold("load", "enter_level", 1);
		actor_begin(&a, do_request, c, (void *)&asks[i]);
		HELD(h);
		OK(evc_clear_stop(c));
		waiter_begin(&w, c, INFINITY);
		UNTIL(atomic_load(&w.tid) != 0);
		until_asleep(atomic_load(&w.tid));
		seam_release(h);
		OK(actor_end(&a));
		until_asleep(atomic_load(&w.tid));
		ck_assert(!atomic_load(&w.released));
		ck_assert_int_eq(evc_raise_requested(c, NULL), 0);
		OK(evc_request_stop(c, 0, "next"));
		UNTIL(atomic_load(&w.released));
		OK(pthread_join(w.thread, NULL));
		ck_assert(w.answer);
		OK(evc_free(c));
	}
}
END_TEST

/* An error beside the one in the word is counted apart, for its own round.
   Fails when the number of the round is not compared there, and when the word
   is not looked at again afterwards. */
START_TEST(request_stalled_at_its_count_across_clear)
{
	struct ask stale = {EVC_INTERNAL, "stale"};
	struct actor a;
	evc_verdict v;
	size_t i;
	int h;

	for (i = 0; i < N_OF(at_the_count); i++) {
		evc_coord *c = new_coord(NULL);

		OK(evc_request_stop(c, EVC_NOT_FOUND, "old stop"));
		h = hold_at(&at_the_count[i]);
		actor_begin(&a, do_request, c, &stale);
		HELD(h);
		OK(evc_clear_stop(c));
		/* The new round has counted before the old writer goes on. */
		OK(evc_request_stop(c, EVC_DATA_LOSS, "first"));
		OK(evc_request_stop(c, EVC_DATA_LOSS, "second"));
		seam_release(h);
		ck_assert_int_eq(actor_end(&a), EVC_INTERNAL);
		ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
		ck_assert_uint_eq(v.n_errors, 2);
		ck_assert(!is_kept(c, "stale"));
		OK(evc_free(c));
	}
}
END_TEST

SCHEDULES_MAIN("requests", request_waits_for_nobody,
	       request_of_the_second_tells_all_while_the_winner_is_frozen,
	       request_stalled_before_its_walk_across_clear,
	       request_stalled_at_its_count_across_clear)
