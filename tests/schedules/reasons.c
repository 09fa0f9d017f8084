/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The word and the slots, stepped: what is known of a stop whatever comes
 * between the steps of who asks for it.
 */
#include "schedules.h"

/* A coordinator that keeps so many reasons. */
static evc_coord *
with_slots(unsigned n)
{
	evc_config cfg = {.max_reasons = n};

	return new_coord_with(NULL, &cfg);
}

/* ---- word ---- */

/* Fails when a request whose CAS was overtaken does not try again. */
START_TEST(word_takes_an_error_though_the_stop_stands_already)
{
	evc_coord *c = new_coord(NULL);
	struct ask late = {EVC_INTERNAL, "overtaken"};
	evc_verdict v;
	struct actor a;
	int h;

	h = seam_hold("cas", "record_request", 1);
	actor_begin(&a, do_request, c, &late);
	HELD(h);
	OK(evc_request_stop(c, 0, "clean"));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert_int_eq(evc_raise_requested(c, &v.error), EVC_INTERNAL);
	ck_assert_str_eq(v.error.text, "overtaken");
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_INTERNAL);
	ck_assert_str_eq(v.stop.text, "clean");
	ck_assert_str_eq(v.error.text, "overtaken");
	ck_assert_uint_eq(v.n_errors, 1);
	OK(evc_free(c));
}
END_TEST

/* Fails when the error that stands in the word is written over. */
START_TEST(word_keeps_the_first_of_two_errors)
{
	evc_coord *c = new_coord(NULL);
	struct ask late = {EVC_DATA_LOSS, "overtaken"};
	evc_verdict v;
	struct actor a;
	int h;

	h = seam_hold("cas", "record_request", 1);
	actor_begin(&a, do_request, c, &late);
	HELD(h);
	OK(evc_request_stop(c, EVC_NOT_FOUND, "first"));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_NOT_FOUND);
	ck_assert_str_eq(v.error.text, "first");
	ck_assert_str_eq(v.stop.text, "first");
	ck_assert_uint_eq(v.n_errors, 2);
	ck_assert(is_kept(c, "overtaken"));
	OK(evc_free(c));
}
END_TEST

static atomic_int lines;

static void
count_line(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)line;
	(void)r;
	(void)arg;
	if (level == EVC_LOG_ERROR)
		atomic_fetch_add(&lines, 1);
}

/* CANCELLED is an error only as the request that wins.  Fails when a reason is
   judged by what it was when it was written. */
START_TEST(word_decides_whether_cancelled_was_an_error)
{
	evc_config cfg = {.log = count_line};
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct ask obeyed = {EVC_CANCELLED, "obeyed"};
	evc_verdict v;
	evc_reason r;
	struct actor a;
	int h;

	atomic_store(&lines, 0);
	h = seam_hold("cas", "record_request", 1);
	actor_begin(&a, do_request, c, &obeyed);
	HELD(h);
	OK(evc_request_stop(c, 0, "stop"));
	seam_release(h);
	OK(actor_end(&a));
	/* An error beside it, so that errors are looked for. */
	OK(evc_request_stop(c, EVC_INTERNAL, "error"));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_INTERNAL);
	ck_assert_uint_eq(v.n_errors, 1);
	OK(evc_reason_get(c, 1, &r));
	ck_assert_str_eq(r.text, "obeyed");
	ck_assert_uint_eq(r.kind, EVC_BY_REQUEST);
	OK(evc_free(c));
	ck_assert_int_eq(atomic_load(&lines), 1);
}
END_TEST

/* ---- slots ---- */

/* Ten times more clean requests than slots, one of them frozen in the middle
   of its slot.  Fails when clean requests may use every slot. */
START_TEST(slots_are_left_for_the_first_error)
{
	static const struct place places[] = {
		{ "cas", "claim_slot", 1 },
		{ "clock", "evc__now", 1 },
		{ "store", "evc__slot_publish", 1 },
		{ "cas", "record_request", 1 },
	};
	struct ask clean = {0, "clean"};
	struct actor a;
	evc_verdict v;
	size_t i;
	int h, k;

	for (i = 0; i < N_OF(places); i++) {
		evc_coord *c = with_slots(8);

		h = hold_at(&places[i]);
		actor_begin(&a, do_request, c, &clean);
		HELD(h);
		for (k = 0; k < 80; k++)
			OK(evc_request_stop(c, 0, "clean"));
		OK(evc_request_stop(c, EVC_NOT_FOUND, "first error"));
		OK(evc_request_stop(c, EVC_INTERNAL, "second error"));
		seam_release(h);
		OK(actor_end(&a));
		for (k = 0; k < 80; k++)
			OK(evc_request_stop(c, EVC_INTERNAL, "further error"));
		ck_assert(is_kept(c, "second error"));
		ck_assert_int_eq(evc_join(c, NULL, &v), EVC_NOT_FOUND);
		ck_assert_str_eq(v.error.text, "first error");
		ck_assert_str_eq(v.stop.text, "clean");
		ck_assert_uint_eq(v.n_errors, 82);
		ck_assert_uint_le(count_reasons(c), 8);
		OK(evc_free(c));
	}
}
END_TEST

/* A reader while a writer stands in its slot takes only what is whole.
   Fails when CLAIMED slots are read, too. */
START_TEST(slots_are_read_only_when_they_are_ready)
{
	evc_coord *c = with_slots(8);
	struct ask half = {EVC_INTERNAL, "half"};
	struct actor a;
	int h;

	OK(evc_request_stop(c, 0, "whole"));
	h = seam_hold("store", "evc__slot_publish", 1);
	actor_begin(&a, do_request, c, &half);
	HELD(h);
	ck_assert_uint_eq(count_reasons(c), 1);
	ck_assert(!is_kept(c, "half"));
	ck_assert_int_eq(evc_raise_requested(c, NULL), 0);
	seam_release(h);
	OK(actor_end(&a));
	ck_assert(is_kept(c, "half"));
	ck_assert_uint_eq(count_reasons(c), 2);
	OK(evc_free(c));
}
END_TEST

/* Every slot of the round can be used: none was lost. */
static void
no_slot_is_lost(evc_coord *c, unsigned n)
{
	unsigned i;

	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(evc_raise_requested(c, NULL), 0);
	ck_assert_uint_eq(count_reasons(c), 0);
	OK(evc_request_stop(c, 0, "winner"));
	OK(evc_request_stop(c, EVC_NOT_FOUND, "error"));
	for (i = 2; i < n; i++)
		OK(evc_request_stop(c, EVC_INTERNAL, "more"));
	ck_assert_uint_eq(count_reasons(c), n);
	ck_assert(is_kept(c, "winner"));
	ck_assert(is_kept(c, "error"));
	ck_assert(!is_kept(c, "stale"));
}

/* A writer that stands at a place while its round is cleared.  first: it asks
   before the round's stop, else after it. */
static void
stall_across_clear(const struct place *p, evc_status code, bool first,
		   evc_status answer)
{
	evc_coord *c = with_slots(6);
	struct ask stale = {code, "stale"};
	struct actor a;
	evc_verdict v;
	int h;

	if (!first)
		OK(evc_request_stop(c, 0, "old stop"));
	h = hold_at(p);
	actor_begin(&a, do_request, c, &stale);
	HELD(h);
	OK(evc_request_stop(c, 0, "old stop"));
	OK(evc_clear_stop(c));
	ck_assert(!evc_should_stop(c));
	seam_release(h);
	ck_assert_int_eq(actor_end(&a), answer);
	no_slot_is_lost(c, 6);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_NOT_FOUND);
	ck_assert_uint_eq(v.n_errors, 5);
	ck_assert_uint_eq(v.round, 2);
	OK(evc_free(c));
}

static const struct place steps[] = {
	{ "load", "claim_slot", 1 },         /* before the claim */
	{ "cas", "claim_slot", 1 },          /* in it */
	{ "clock", "evc__now", 1 },          /* after it */
	{ "clock", "evc__slot_fill", 1 },    /* while it fills */
	{ "store", "evc__slot_publish", 1 }, /* before READY */
	{ "cas", "record_request", 1 },      /* before the CAS on the word */
};

/* Fails when the stops are not compared before the CAS on the word, and when a
   slot that belongs to an older round cannot be claimed. */
START_TEST(slots_of_a_writer_stalled_across_clear_and_the_error_handed_back)
{
	size_t i;

	for (i = 0; i < N_OF(steps); i++) {
		stall_across_clear(&steps[i], EVC_INTERNAL, true, EVC_INTERNAL);
		stall_across_clear(&steps[i], EVC_INTERNAL, false,
				   EVC_INTERNAL);
	}
}
END_TEST

/* Fails as the one before. */
START_TEST(slots_of_a_clean_writer_stalled_across_clear)
{
	size_t i;

	for (i = 0; i < N_OF(steps); i++) {
		stall_across_clear(&steps[i], 0, true, 0);
		/* It has nothing to change in a word that is set. */
		if (strcmp(steps[i].func, "record_request") != 0)
			stall_across_clear(&steps[i], 0, false, 0);
	}
}
END_TEST

/* A request between the swap of the word and the rest of the clear.  Fails
   when the clear frees slots after the swap, whatever their round. */
START_TEST(slots_of_the_new_round_survive_the_rest_of_the_clear)
{
	evc_coord *c = new_coord(NULL);
	struct actor a;
	evc_reason r;
	int h;

	OK(evc_request_stop(c, 0, "old"));
	h = seam_hold("store", "clear_stop", 2);
	actor_begin(&a, do_clear, c, NULL);
	HELD(h);
	OK(evc_request_stop(c, EVC_INTERNAL, "new"));
	seam_release(h);
	OK(actor_end(&a));
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_raise_requested(c, &r), EVC_INTERNAL);
	ck_assert_str_eq(r.text, "new");
	OK(evc_reason_get(c, 0, &r));
	ck_assert_str_eq(r.text, "new");
	OK(evc_free(c));
}
END_TEST

/* Fails when READY slots of an older round cannot be claimed. */
START_TEST(slots_full_of_the_old_round_are_free_for_the_new)
{
	evc_coord *c = with_slots(4);
	struct actor a;
	evc_reason r;
	int h, i;

	for (i = 0; i < 20; i++)
		OK(evc_request_stop(c, i ? EVC_INTERNAL : 0, "old"));
	ck_assert_uint_eq(count_reasons(c), 4);
	h = seam_hold("store", "clear_stop", 2);
	actor_begin(&a, do_clear, c, NULL);
	HELD(h);
	OK(evc_request_stop(c, 0, "new"));
	seam_release(h);
	OK(actor_end(&a));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_str_eq(r.text, "new");
	ck_assert_uint_eq(count_reasons(c), 1);
	OK(evc_free(c));
}
END_TEST

/* Fails when evc_clear_stop of a round without a stop frees no slots. */
START_TEST(slots_forget_at_the_clear_what_was_handed_back)
{
	evc_coord *c = with_slots(2);
	struct ask late = {EVC_INTERNAL, "too late"};
	struct actor a;
	evc_reason r;
	int h;

	h = seam_hold("cas", "record_request", 1);
	actor_begin(&a, do_request, c, &late);
	HELD(h);
	OK(evc_join(c, NULL, NULL));
	seam_release(h);
	ck_assert_int_eq(actor_end(&a), EVC_INTERNAL);
	ck_assert(is_kept(c, "too late"));
	OK(evc_clear_stop(c));
	ck_assert(!is_kept(c, "too late"));
	OK(evc_request_stop(c, 0, "winner"));
	OK(evc_reason_get(c, 0, &r));
	ck_assert_str_eq(r.text, "winner");
	OK(evc_free(c));
}
END_TEST

SCHEDULES_MAIN("reasons", word_takes_an_error_though_the_stop_stands_already,
	       word_keeps_the_first_of_two_errors,
	       word_decides_whether_cancelled_was_an_error,
	       slots_are_left_for_the_first_error,
	       slots_are_read_only_when_they_are_ready,
	       slots_of_a_writer_stalled_across_clear_and_the_error_handed_back,
	       slots_of_a_clean_writer_stalled_across_clear,
	       slots_of_the_new_round_survive_the_rest_of_the_clear,
	       slots_full_of_the_old_round_are_free_for_the_new,
	       slots_forget_at_the_clear_what_was_handed_back)
