/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals against clears and frees, stepped: what a handler does that was held
 * up belongs to the stop that it was for, or to none.
 */
#include "schedules.h"

#include <signal.h>

static int the_signal = SIGUSR1;

/* Stops on the signal; the second one cuts the grace to so much. */
static evc_coord *
with_signals(double short_grace)
{
	evc_signals_opts o = {.stop = {SIGUSR1}, .short_grace = short_grace};
	evc_coord *c = new_coord(NULL);

	OK(evc_signals_start(c, &o));
	return c;
}

/* Fails when a cut does not say which stop it is for. */
START_TEST(grace_of_the_new_round_is_not_cut_by_a_signal_of_the_old)
{
	evc_coord *c = with_signals(EVC_NO_GRACE);
	struct joiner j;
	struct actor a;
	evc_id id;
	int h;

	OK(raise(the_signal));
	ck_assert(evc_should_stop(c));
	h = seam_hold("cas", "evc__cut_grace", 1);
	actor_begin(&a, do_raise, c, &the_signal);
	HELD(h);
	OK(evc_clear_stop(c));
	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(evc_request_stop(c, 0, "next"));
	join_begin(&j, c, INFINITY, 0);
	seam_release(h);
	OK(actor_end(&a));
	ck_assert(still_waits(&j));
	OK(evc_hold_end(c, id));
	OK(join_end(&j));
	OK(evc_free(c));
}
END_TEST

/* The new round has been cut by a second signal of its own before the old one
   goes on.  Fails when an older cut is written over a newer one. */
START_TEST(grace_that_was_cut_stays_cut_when_an_old_signal_goes_on)
{
	evc_coord *c = with_signals(EVC_NO_GRACE);
	struct joiner j;
	struct actor a;
	evc_id id;
	int h;

	OK(raise(the_signal));
	h = seam_hold("cas", "evc__cut_grace", 1);
	actor_begin(&a, do_raise, c, &the_signal);
	HELD(h);
	OK(evc_clear_stop(c));
	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(raise(the_signal));
	ck_assert(evc_should_stop(c));
	OK(raise(the_signal));
	seam_release(h);
	OK(actor_end(&a));
	join_begin(&j, c, INFINITY, 0);
	UNTIL(atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

/* The second signal overtakes the first one, which has not set the flag yet.
   Fails when the flag, and not a count, says which signal is the second. */
START_TEST(grace_is_cut_by_a_second_signal_that_overtakes_the_first)
{
	evc_coord *c = with_signals(0.05);
	struct joiner j;
	struct actor a, b;
	evc_id id;
	int h;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	join_begin(&j, c, INFINITY, 0);
	h = seam_hold("cas", "record_request", 1);
	actor_begin(&a, do_raise, c, &the_signal);
	HELD(h);
	actor_begin(&b, do_raise, c, &the_signal);
	OK(actor_end(&b));
	seam_release(h);
	OK(actor_end(&a));
	UNTIL(atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

/* A join falls asleep as the second signal comes.  Fails when the cut rings no
   joins. */
START_TEST(grace_is_cut_though_a_join_does_not_sleep_yet)
{
	evc_coord *c = with_signals(EVC_NO_GRACE);
	struct joiner j;
	evc_id id;
	int h;

	OK(evc_hold_begin(c, "hold", NULL, &id));
	OK(raise(the_signal));
	h = seam_hold("futex_wait", "sleep_through", 1);
	memset(&j, 0, sizeof(j));
	j.c = c;
	j.opts.grace = INFINITY;
	OK(pthread_create(&j.thread, NULL, joiner_main, &j));
	HELD(h);
	OK(raise(the_signal));
	seam_release(h);
	UNTIL(atomic_load(&j.returned));
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, id));
	OK(evc_free(c));
}
END_TEST

/* The second signal is held in its count while the round is cleared: it stops
   nothing, and the next one is the first of the new round.  Fails when signals
   are counted without their round. */
START_TEST(clear_while_a_second_signal_is_being_counted)
{
	evc_coord *c = with_signals(EVC_NO_GRACE);
	struct actor a;
	evc_reason r;
	int h;

	OK(raise(the_signal));
	h = seam_hold("cas", "count_signal", 1);
	actor_begin(&a, do_raise, c, &the_signal);
	HELD(h);
	OK(evc_clear_stop(c));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert(!evc_should_stop(c));
	OK(raise(the_signal));
	ck_assert(evc_should_stop(c));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_uint_eq(r.kind, EVC_BY_SIGNAL);
	ck_assert_uint_eq(r.round, 2);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

/* ---- the handler against those who take the signals back ---- */

static const struct place handling[] = {
	{ "load", "on_signal", 1 }, /* before it knows whose signal it is */
	{ "cas", "count_signal", 1 },
	{ "load", "record_request", 1 },
	{ "cas", "record_request", 1 },
	{ "load", "next_of_kind", 1 }, /* before it tells a loop */
	{ "store", "leave_level", 1 },
};

static atomic_int others;

static void
other_handler(int n)
{
	(void)n;
	atomic_fetch_add(&others, 1);
}

/* Fails when evc_signals_stop and evc_free do not wait for handlers. */
START_TEST(walk_of_a_handler_is_waited_for_by_who_takes_the_signals_back)
{
	struct sigaction sa = {.sa_handler = other_handler};
	struct actor a, k;
	size_t i;
	int h, frees;

	OK(sigaction(SIGUSR1, &sa, NULL));
	for (i = 0; i < N_OF(handling) * 2; i++) {
		evc_coord *c = with_signals(EVC_NO_GRACE);

		frees = i % 2;
		/* Something to tell: a helper, which evc_free takes along. */
		OK(evc_on_stop(c, "hook", return_at_once, NULL, NULL, NULL));
		h = hold_at(&handling[i / 2]);
		actor_begin(&a, do_raise, c, &the_signal);
		HELD(h);
		actor_begin(&k, frees ? do_free : do_signals_stop, c, NULL);
		actor_sleeps(&k);
		seam_release(h);
		OK(actor_end(&a));
		OK(actor_end(&k));
		/* What was there before is there again. */
		atomic_store(&others, 0);
		OK(raise(the_signal));
		ck_assert_int_eq(atomic_load(&others), 1);
		if (!frees) {
			ck_assert(evc_should_stop(c) == (i / 2 > 0));
			OK(evc_free(c));
		}
	}
}
END_TEST

SCHEDULES_MAIN("signals",
	       grace_of_the_new_round_is_not_cut_by_a_signal_of_the_old,
	       grace_that_was_cut_stays_cut_when_an_old_signal_goes_on,
	       grace_is_cut_by_a_second_signal_that_overtakes_the_first,
	       grace_is_cut_though_a_join_does_not_sleep_yet,
	       clear_while_a_second_signal_is_being_counted,
	       walk_of_a_handler_is_waited_for_by_who_takes_the_signals_back)
