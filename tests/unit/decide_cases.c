/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pure decision under all joins, case by case: what each of its inputs
 * means.
 */
#include <math.h>

#include "../support/support.h"

#include "core/join/join.h"

#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define T0 (100 * SEC)

/* One member that rings and is no background, a join at T0, 1 s of grace. */
static struct evc__view
usual(void)
{
	struct evc__view v = { .now = T0,
			       .start = T0,
			       .grace = 1,
			       .longest = INFINITY,
			       .alive = 1,
			       .foreground = 1 };

	return v;
}

static struct evc__decision
decide(const struct evc__view *v)
{
	struct evc__backoff b = { 0, 0 };

	return evc__decide(v, &b);
}

#define DECIDES(v, what) ck_assert_int_eq(decide(v).next, what)
#define WAITS(v, ns) \
	do { \
		struct evc__decision d_ = decide(v); \
		ck_assert_int_eq(d_.next, EVC__WAIT); \
		ck_assert_uint_eq(d_.wait_ns, ns); \
	} while (0)

/* Late at end and not one nanosecond before. */
#define LATE_AT(v, end) \
	do { \
		(v)->now = (end) - 1; \
		WAITS(v, 1); \
		(v)->now = (end); \
		DECIDES(v, EVC__LATE); \
	} while (0)

START_TEST(nothing_alive_is_the_end_with_and_without_a_stop)
{
	struct evc__view v = usual();

	v.alive = v.foreground = 0;
	v.longest = 0;
	DECIDES(&v, EVC__EMPTY);
	v.stop = T0 - SEC;
	DECIDES(&v, EVC__EMPTY);
	v.now = T0 + 10 * SEC; /* also after the grace */
	DECIDES(&v, EVC__EMPTY);
	v.grace = 0;
	DECIDES(&v, EVC__EMPTY);
}
END_TEST

START_TEST(before_a_stop_there_is_no_deadline)
{
	struct evc__view v = usual();

	v.grace = 0;
	v.longest = 0;
	v.now = T0 + 1000 * SEC;
	WAITS(&v, SYNC_FOREVER);
}
END_TEST

START_TEST(a_run_decides_nothing_before_its_stop)
{
	struct evc__view v = usual();

	v.until_stop = true;
	WAITS(&v, SYNC_FOREVER);
	v.foreground = 0;
	WAITS(&v, SYNC_FOREVER);
	v.alive = 0;
	WAITS(&v, SYNC_FOREVER);
	/* who has rung and was not gone at once is looked for all the same */
	v.probes = true;
	DECIDES(&v, EVC__PROBE);
	v.probes = false;
	v.stop = T0;
	DECIDES(&v, EVC__EMPTY);
}
END_TEST

START_TEST(grace_counts_from_the_later_of_stop_and_start)
{
	struct evc__view v = usual();

	v.stop = T0 - 30 * SEC;
	LATE_AT(&v, T0 + SEC);
	v.stop = T0 + 5 * SEC;
	LATE_AT(&v, T0 + 6 * SEC);
}
END_TEST

START_TEST(no_grace_and_next_to_none_end_at_once)
{
	struct evc__view v = usual();

	v.stop = T0;
	v.grace = 0;
	DECIDES(&v, EVC__LATE);
	v.grace = 1e-10;
	DECIDES(&v, EVC__LATE);
	v.grace = 1e-300;
	DECIDES(&v, EVC__LATE);
	v.grace = 1e-9;
	WAITS(&v, 1);
}
END_TEST

START_TEST(an_endless_grace_is_never_over)
{
	struct evc__view v = usual();

	v.stop = T0;
	v.grace = INFINITY;
	WAITS(&v, SYNC_FOREVER);
	v.now = UINT64_MAX - 1;
	WAITS(&v, SYNC_FOREVER);
	v.now = T0;
	v.grace = 1e300;
	WAITS(&v, SYNC_FOREVER);
	v.grace = 8.9e9; /* near the end of the clock: no wrap */
	v.now = v.start = v.stop = UINT64_MAX - SEC;
	DECIDES(&v, EVC__WAIT);
}
END_TEST

START_TEST(a_second_signal_cuts_the_grace)
{
	struct evc__view v = usual();

	v.grace = 60;
	v.stop = T0 + SEC;
	v.grace_cut = T0 + 10 * SEC;
	v.cut_grace = 2 * SEC;
	LATE_AT(&v, T0 + 12 * SEC);
	v.cut_grace = 0;
	v.now = v.grace_cut;
	DECIDES(&v, EVC__LATE);
	/* A join that begins later has it from its start. */
	v.cut_grace = 2 * SEC;
	v.start = T0 + 20 * SEC;
	LATE_AT(&v, T0 + 22 * SEC);
	/* It cuts, it never lengthens. */
	v.start = T0;
	v.cut_grace = 1000 * SEC;
	LATE_AT(&v, T0 + 61 * SEC);
	/* And it cuts for ever, too. */
	v.grace = INFINITY;
	v.cut_grace = 2 * SEC;
	LATE_AT(&v, T0 + 12 * SEC);
}
END_TEST

START_TEST(an_own_grace_shortens_and_never_lengthens)
{
	struct evc__view v = usual();

	v.stop = T0;
	v.longest = 0.25;
	LATE_AT(&v, T0 + SEC / 4);
	v.longest = -1; /* EVC_NO_GRACE */
	v.now = T0;
	DECIDES(&v, EVC__LATE);
	v.longest = 5;
	LATE_AT(&v, T0 + SEC);
	v.longest = INFINITY;
	LATE_AT(&v, T0 + SEC);
	v.grace = INFINITY;
	v.longest = 5;
	LATE_AT(&v, T0 + 5 * SEC);
}
END_TEST

START_TEST(a_budget_counts_from_the_stop_alone_and_only_shortens)
{
	struct evc__view v = usual();

	v.stop = T0 - 3 * SEC;
	v.grace = 10;
	v.more.budget = T0 + 2 * SEC;
	LATE_AT(&v, T0 + 2 * SEC);
	v.now = T0;
	v.grace = 1;
	LATE_AT(&v, T0 + SEC);
	v.now = T0;
	v.stop = 0; /* without a stop it says nothing */
	WAITS(&v, SYNC_FOREVER);
}
END_TEST

START_TEST(progress_and_vetoes_move_the_end_up_to_the_hard_one)
{
	struct evc__view v = usual();

	v.stop = T0;
	v.more.progress = T0 + 3 * SEC;
	LATE_AT(&v, T0 + SEC); /* there is no hard end: nothing moves */
	v.now = T0;
	v.more.hard = T0 + 5 * SEC;
	LATE_AT(&v, T0 + 3 * SEC);
	v.now = T0;
	v.more.progress = T0 + SEC / 2; /* sooner than the grace: no matter */
	LATE_AT(&v, T0 + SEC);
	v.now = T0;
	v.more.asked = 2 * SEC;
	LATE_AT(&v, T0 + 3 * SEC);
	v.now = T0;
	v.more.asked = 20 * SEC;
	LATE_AT(&v, T0 + 5 * SEC);
	v.now = T0;
	v.more.budget = T0 + SEC / 2; /* what is moved is the sooner end */
	v.more.asked = SEC;
	LATE_AT(&v, T0 + SEC * 3 / 2);
	v.now = T0;
	v.more.hard = T0 + SEC / 4; /* a hard end shortens nothing */
	LATE_AT(&v, T0 + SEC / 2);
}
END_TEST

START_TEST(a_second_signal_and_the_end_from_above_overrule_what_moves_the_end)
{
	struct evc__view v = usual();

	v.stop = T0;
	v.more.hard = T0 + 50 * SEC;
	v.more.asked = 20 * SEC;
	v.more.progress = T0 + 30 * SEC;
	v.grace_cut = T0 + SEC / 2;
	v.cut_grace = SEC / 4;
	LATE_AT(&v, T0 + SEC * 3 / 4);
	v.now = T0;
	v.grace_cut = 0;
	v.cap = T0 + 7 * SEC;
	LATE_AT(&v, T0 + 7 * SEC);
}
END_TEST

START_TEST(only_background_left_asks_for_the_stop_once)
{
	struct evc__view v = usual();

	v.alive = 3;
	v.foreground = 0;
	DECIDES(&v, EVC__ASK);
	v.probes = true;
	DECIDES(&v, EVC__ASK);
	v.probes = false;
	v.stop = T0;
	WAITS(&v, SEC);
	v.stop = 0;
	v.foreground = 1;
	WAITS(&v, SYNC_FOREVER);
}
END_TEST

START_TEST(who_rings_is_never_probed)
{
	struct evc__view v = usual();
	struct evc__backoff b = { 0, 0 };
	int i;

	for (i = 0; i < 100; i++, v.now += 100 * MS) {
		struct evc__decision d = evc__decide(&v, &b);

		ck_assert_int_eq(d.next, EVC__WAIT);
		ck_assert_uint_eq(d.wait_ns, SYNC_FOREVER);
	}
}
END_TEST

START_TEST(probes_come_at_once_then_after_1_2_4_to_25_ms)
{
	static const uint64_t step[] = { 1, 2, 4, 8, 16, 25, 25, 25 };
	struct evc__view v = usual();
	struct evc__backoff b = { 0, 0 };
	struct evc__decision d;
	unsigned i;

	v.probes = true;
	ck_assert_int_eq(evc__decide(&v, &b).next, EVC__PROBE);
	for (i = 0; i < sizeof step / sizeof step[0]; i++) {
		d = evc__decide(&v, &b);
		ck_assert_int_eq(d.next, EVC__WAIT);
		ck_assert_uint_eq(d.wait_ns, step[i] * MS);
		/* Rung in between, it does not probe, nor begin anew. */
		v.now += step[i] * MS - 1;
		d = evc__decide(&v, &b);
		ck_assert_int_eq(d.next, EVC__WAIT);
		ck_assert_uint_eq(d.wait_ns, 1);
		v.now++;
		ck_assert_int_eq(evc__decide(&v, &b).next, EVC__PROBE);
	}
	/* Woken late, the next step counts from then. */
	v.now += 500 * MS;
	ck_assert_int_eq(evc__decide(&v, &b).next, EVC__PROBE);
	ck_assert_uint_eq(evc__decide(&v, &b).wait_ns, 25 * MS);
}
END_TEST

START_TEST(probing_begins_anew_for_a_new_member)
{
	struct evc__view v = usual();
	struct evc__backoff b = { 0, 0 };
	int i;

	v.probes = true;
	for (i = 0; i < 10; i++, v.now += 25 * MS)
		(void)evc__decide(&v, &b);
	v.probes = false; /* the last of those who cannot ring has ended */
	ck_assert_int_eq(evc__decide(&v, &b).next, EVC__WAIT);
	v.probes = true;
	ck_assert_int_eq(evc__decide(&v, &b).next, EVC__PROBE);
	ck_assert_uint_eq(evc__decide(&v, &b).wait_ns, MS);
}
END_TEST

START_TEST(rare_probes_come_after_1_2_4_to_250_ms)
{
	struct evc__view v = usual();
	struct evc__backoff b = { 0, 0 };
	uint64_t waited = 0;
	unsigned n = 0;

	v.probes = v.rarely = true;
	for (; waited < 10 * SEC; n++) {
		ck_assert_int_eq(evc__decide(&v, &b).next, EVC__PROBE);
		v.now += evc__decide(&v, &b).wait_ns;
		waited = v.now - T0;
	}
	/* 1, 2, 4 ... 128 are 8, in 255 ms. */
	ck_assert_uint_eq(n, 8 + 39);
	ck_assert_int_eq(evc__decide(&v, &b).next, EVC__PROBE);
	ck_assert_uint_eq(evc__decide(&v, &b).wait_ns, 250 * MS);
	/* A member that has to be asked does not wait so long. */
	v.rarely = false;
	ck_assert_int_eq(evc__decide(&v, &b).next, EVC__PROBE);
	ck_assert_uint_eq(evc__decide(&v, &b).wait_ns, MS);
}
END_TEST

START_TEST(a_wait_between_probes_ends_at_the_deadline)
{
	struct evc__view v = usual();
	struct evc__backoff b = { 0, 0 };

	v.probes = true;
	v.stop = T0;
	v.grace = 0.0055;
	while (evc__decide(&v, &b).next == EVC__PROBE)
		;
	v.now = T0 + 3 * MS;
	while (evc__decide(&v, &b).next == EVC__PROBE)
		;
	ck_assert_uint_eq(evc__decide(&v, &b).wait_ns, 2 * MS);
	v.now = T0 + 5 * MS;
	while (evc__decide(&v, &b).next == EVC__PROBE)
		;
	ck_assert_uint_eq(evc__decide(&v, &b).wait_ns, MS / 2);
	v.now += MS / 2;
	ck_assert_int_eq(evc__decide(&v, &b).next, EVC__LATE);
}
END_TEST

API_MAIN("decide_cases", nothing_alive_is_the_end_with_and_without_a_stop,
	 before_a_stop_there_is_no_deadline,
	 a_run_decides_nothing_before_its_stop,
	 grace_counts_from_the_later_of_stop_and_start,
	 no_grace_and_next_to_none_end_at_once, an_endless_grace_is_never_over,
	 a_second_signal_cuts_the_grace,
	 an_own_grace_shortens_and_never_lengthens,
	 a_budget_counts_from_the_stop_alone_and_only_shortens,
	 progress_and_vetoes_move_the_end_up_to_the_hard_one,
	 a_second_signal_and_the_end_from_above_overrule_what_moves_the_end,
	 only_background_left_asks_for_the_stop_once, who_rings_is_never_probed,
	 probes_come_at_once_then_after_1_2_4_to_25_ms,
	 probing_begins_anew_for_a_new_member,
	 rare_probes_come_after_1_2_4_to_250_ms,
	 a_wait_between_probes_ends_at_the_deadline)
