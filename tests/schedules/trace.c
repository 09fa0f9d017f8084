/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of the timeline, stepped: a writer that is held up in the middle,
 * and one that is overtaken by a whole round; what a reader makes of both.
 */
#include "schedules.h"

#include "../support/trace_util.h"

static void *
ask(void *arg)
{
	evc_request_stop(arg, 100, "held");
	return NULL;
}

static void
ask_often(evc_coord *c, int n)
{
	char text[16];
	int i;

	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "after-%d", i);
		evc_request_stop(c, 101, text);
	}
}

static bool
says(const char *text, const char *what)
{
	char key[64];

	snprintf(key, sizeof(key), "\"text\":\"%s\"", what);
	return strstr(text, key) != NULL;
}

static uint64_t
lost(const char *text)
{
	return number_of(strstr(text, "\"otherData\""), "lost");
}

/* Fails when a writer waits for another, when a reader takes what is half there,
   and when the one that is held up writes over the newer ones. */
START_TEST(ring_writer_held_in_its_slot)
{
	evc_coord *c = new_coord(NULL);
	pthread_t t;
	char *text;
	int h;

	OK(evc_trace_start(c, 4));
	/* It has claimed its slot, and half of it is written. */
	h = seam_hold("store", "put_event", 6);
	OK(pthread_create(&t, NULL, ask, c));
	HELD(h);
	text = traced(c, EVC_TRACE_JSON);
	ck_assert(!says(text, "held"));
	ck_assert_uint_eq(lost(text), 1);
	free(text);
	/* Two rounds: those that come to its slot are given up. */
	ask_often(c, 8);
	text = traced(c, EVC_TRACE_JSON);
	ck_assert(!says(text, "held"));
	ck_assert(says(text, "after-6") && says(text, "after-5") &&
		  says(text, "after-4"));
	/* Numbers 4 and 8 were for the slot of number 0. */
	ck_assert(!says(text, "after-3") && !says(text, "after-7"));
	ck_assert_uint_eq(lost(text), 9 - 3);
	free(text);
	seam_release(h);
	OK(pthread_join(t, NULL));
	/* It is there now, as old as it is, and the ring goes on. */
	text = traced(c, EVC_TRACE_JSON);
	ck_assert(says(text, "held"));
	free(text);
	ask_often(c, 4);
	text = traced(c, EVC_TRACE_JSON);
	ck_assert(!says(text, "held"));
	ck_assert_uint_eq(lost(text), 13 - 4);
	free(text);
	OK(evc_free(c));
}
END_TEST

/* Fails when a slot is claimed without a look at what stands there. */
START_TEST(ring_writer_overtaken_before_its_slot)
{
	static const struct place places[] = {
		{ "load", "put_event", 1 },
		{ "cas", "put_event", 1 },
	};
	evc_coord *c = new_coord(NULL);
	pthread_t t;
	char *text;
	size_t i;
	int h;

	for (i = 0; i < N_OF(places); i++) {
		OK(evc_trace_start(c, 4));
		h = hold_at(&places[i]);
		OK(pthread_create(&t, NULL, ask, c));
		HELD(h);
		ask_often(c, 8);
		seam_release(h);
		OK(pthread_join(t, NULL));
		text = traced(c, EVC_TRACE_JSON);
		ck_assert(!says(text, "held"));
		ck_assert(says(text, "after-7") && says(text, "after-4"));
		ck_assert_uint_eq(lost(text), 9 - 4);
		free(text);
		OK(evc_trace_stop(c));
	}
	OK(evc_free(c));
}
END_TEST

/* Fails when one that began before the stop of a timeline, and ends after the
   next start, is shown in the new one. */
START_TEST(ring_writer_held_over_a_restart)
{
	evc_coord *c = new_coord(NULL);
	pthread_t t;
	char *text;
	int h;

	OK(evc_trace_start(c, 4));
	h = seam_hold("store", "put_event", 3);
	OK(pthread_create(&t, NULL, ask, c));
	HELD(h);
	OK(evc_trace_stop(c));
	OK(evc_trace_start(c, 4));
	ask_often(c, 1);
	seam_release(h);
	OK(pthread_join(t, NULL));
	text = traced(c, EVC_TRACE_JSON);
	ck_assert(!says(text, "held"));
	ck_assert(says(text, "after-0"));
	ck_assert_uint_eq(lost(text), 0);
	free(text);
	OK(evc_free(c));
}
END_TEST

static char *read_text;

static void *
read_it(void *arg)
{
	FILE *f = tmpfile();

	if (f == NULL || evc_trace_write(arg, fileno(f), EVC_TRACE_JSON) != 0)
		return NULL;
	read_text = all_of(f);
	fclose(f);
	return NULL;
}

/* Fails when a reader does not look again at the first word: then it shows the
   old event with the name of the new one. */
START_TEST(ring_reader_overtaken_in_a_slot)
{
	int nth;

	for (nth = 2; nth <= 16; nth++) {
		evc_coord *c = new_coord(NULL);
		pthread_t t;
		int h;

		OK(evc_trace_start(c, 1));
		evc_request_stop(c, 100, "old");
		h = seam_hold("load", "get_event", nth);
		OK(pthread_create(&t, NULL, read_it, c));
		HELD(h);
		evc_request_stop(c, 101, "new");
		seam_release(h);
		OK(pthread_join(t, NULL));
		ck_assert_ptr_nonnull(read_text);
		/* Neither: the slot has changed under it. */
		ck_assert(!says(read_text, "old") && !says(read_text, "new"));
		free(read_text);
		OK(evc_free(c));
	}
}
END_TEST

SCHEDULES_MAIN("trace", ring_writer_held_in_its_slot,
	       ring_writer_overtaken_before_its_slot,
	       ring_writer_held_over_a_restart, ring_reader_overtaken_in_a_slot)
