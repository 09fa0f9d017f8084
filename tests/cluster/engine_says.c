/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an engine says of itself: why functions wait, and that nothing comes any
 * more; and what it may ask: how many there are.
 */
#include "../support/hand_engine.h"

#include <math.h>

static evc_coord *c;
static evc_cluster *cl;

static void
begin(double worker_wait)
{
	evc_cluster_config k = { HAND_CONFIG, .worker_wait = worker_wait };

	c = new_coord(NULL);
	cl = open_with(c, "hand://2", &k);
}

static void
raises(const char *why)
{
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_UNAVAILABLE);
	HAS(evc_last_error(), why);
}

START_TEST(its_trouble_is_why_there_is_no_worker)
{
	evc_remote *r;
	char text[1000];

	begin(0.05);
	hand.sink->trouble(hand.core, "the namespace jobs is in use by ada");
	own_report(evc_cluster_scope(cl), text, sizeof(text));
	HAS(text, "the namespace jobs is in use by ada\n");
	evc_report(c, EVC_REPORT_TEXT, text, sizeof(text));
	HAS(text, "in use by ada");
	r = schedule(cl, "f");
	raises("no worker for 0.05 s: the namespace jobs is in use by ada");
	ck_assert_ptr_null(strstr(evc_last_error(), "the last"));
	evc_remote_free(r);
	/* with the last words of a worker that was there */
	hand_up(0);
	hand.sink->gone(hand.core, 0, "it was too hot", EVC_ENGINE_DIED);
	r = schedule(cl, "f");
	raises("in use by ada; the last worker: it was too hot");
	evc_remote_free(r);
	/* it is over */
	hand.sink->trouble(hand.core, "");
	hand_up(0);
	hand.sink->gone(hand.core, 0, "it was too hot", EVC_ENGINE_DIED);
	r = schedule(cl, "f");
	raises("no worker for 0.05 s; the last worker: it was too hot");
	evc_remote_free(r);
	own_report(evc_cluster_scope(cl), text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "in use"));
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(its_trouble_is_why_one_worker_is_not_there)
{
	evc_schedule_opts o = { .worker = "worker 1" };

	begin(0.05);
	hand_up(0);
	hand.sink->trouble(hand.core, "no answer from the server");
	OK(evc_schedule(cl, "f", NULL, NULL, &o, NULL));
	raises("worker 1 was not up for 0.05 s: no answer from the server");
	hand_end_cluster(cl, c);
}
END_TEST

/* Its server is full, or away: nobody has heard whether the function has
   returned. */
START_TEST(its_trouble_is_why_a_result_is_missing)
{
	evc_cluster_config k = { KEEPING_HAND_CONFIG, .grace = 0.05 };
	evc_engine_task t;
	evc_remote *r;

	c = new_coord(NULL);
	cl = open_with(c, "hand://1", &k);
	hand_up(0);
	r = schedule(cl, "f");
	UNTIL(hand_take(0, &t, 1) == 1);
	hand.sink->trouble(hand.core, "the server has no memory left");
	OK(evc_request_stop(c, 0, "a test"));
	UNTIL(atomic_load(&hand.kills) == 1);
	hand.sink->gone(hand.core, 0, "it is killed", EVC_ENGINE_DIED_RUNNING);
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_UNAVAILABLE);
	HAS(evc_last_error(), "it did not return when it was asked to stop, "
			      "on worker 0: the server has no memory left");
	evc_remote_free(r);
	evc_cluster_close(cl);
	hand_end_coord(c);
}
END_TEST

START_TEST(what_is_down_stays_down)
{
	evc_remote *r;

	begin(0);
	hand_up(0);
	r = schedule(cl, "f");
	hand.sink->down(hand.core, "somebody else has taken the namespace");
	raises("somebody else has taken the namespace");
	ck_assert_int_eq(evc_remote_fetch(r, T_LIMIT, NULL), EVC_CANCELLED);
	evc_remote_free(r);
	/* whoever comes up late */
	hand_up(1);
	ck_assert_int_eq(evc_schedule(cl, "f", NULL, NULL, NULL, NULL),
			 EVC_UNAVAILABLE);
	raises("somebody else has taken the namespace");
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(the_name_of_one_that_is_down_is_free)
{
	evc_cluster_config k = { HAND_CONFIG, .name = "one" };
	evc_cluster *next;

	c = new_coord(NULL);
	cl = open_with(c, "hand://1", &k);
	ck_assert_ptr_eq(open_with(c, "hand://1", &k), cl);
	evc_cluster_close(cl);
	hand.sink->down(hand.core, "for ever");
	next = open_with(c, "threads://1", &k);
	ck_assert_ptr_ne(next, cl);
	ck_assert_ptr_eq(open_with(c, "threads://1", &k), next);
	evc_cluster_close(next);
	evc_cluster_close(next);
	raises("for ever");
	hand_end_cluster(cl, c);
}
END_TEST

START_TEST(it_is_down_without_a_word)
{
	begin(0);
	hand.sink->down(hand.core, "");
	raises("down");
	hand_up(0);
	raises("down");
	hand.sink->down(hand.core, NULL);
	raises("down");
	hand_end_cluster(cl, c);
}
END_TEST

static void
counts_are(unsigned queued, unsigned running, unsigned done)
{
	uint64_t q = 99, r = 99, d = 99;

	hand.sink->counts(hand.core, &q, &r, &d);
	ck_assert_uint_eq(q, queued);
	ck_assert_uint_eq(r, running);
	ck_assert_uint_eq(d, done);
}

START_TEST(it_may_ask_how_many_there_are)
{
	evc_remote *r[4];
	evc_engine_task t[2];
	int i;

	begin(0);
	counts_are(0, 0, 0);
	for (i = 0; i < 3; i++)
		r[i] = schedule(cl, "f");
	OK(evc_schedule_pack(cl, "f", NULL, &r[3], "[r]", r[2]));
	counts_are(4, 0, 0);
	hand_up(0);
	ck_assert_uint_eq(hand_take(0, t, 2), 2);
	counts_are(2, 2, 0);
	hand_finish(0, &t[0], 0, NULL);
	counts_are(2, 1, 1);
	hand_give_back(0, &t[1]);
	counts_are(3, 0, 1);
	/* however they have ended */
	OK(evc_remote_cancel(r[1]));
	counts_are(2, 0, 2);
	ck_assert_uint_eq(hand_take(0, t, 1), 1);
	hand_finish(0, t, EVC_DATA_LOSS, NULL);
	counts_are(0, 0, 4);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	for (i = 0; i < 4; i++)
		evc_remote_free(r[i]);
	hand_end_cluster(cl, c);
}
END_TEST

/* An engine needs no words for a leaving worker. */
START_TEST(a_worker_may_leave_without_a_word)
{
	begin(0);
	hand_up(0);
	hand_up(1);
	OK(evc_cluster_resize(cl, 1));
	ck_assert(hand.sink->leave(hand.core, 1));
	hand.sink->gone(hand.core, 1, NULL, EVC_ENGINE_LEFT);
	OK(evc_cluster_resize(cl, 2));
	hand_up(1);
	hand_end_cluster(cl, c);
}
END_TEST

static void
finish_with(const evc_engine_task *t, evc_status code, double took,
	    const char *bytes, size_t n)
{
	char *block = malloc(n + 100);
	evc_engine_result r = { .n = t->n,
				.code = code,
				.kind = code != 0 ? EVC_FAILED_FUNCTION : 0,
				.took = took,
				.value = { block + 33, n },
				.memory = block };

	ck_assert_ptr_nonnull(block);
	memcpy(block + 33, bytes, n);
	hand.sink->finished(hand.core, 0, &r, 1);
}

/* The block is the cluster's, whatever becomes of the value. */
START_TEST(a_result_may_bring_its_memory)
{
	evc_engine_task t;
	evc_remote_info info;
	evc_remote *r;
	evc_value v;

	begin(0);
	hand_up(0);
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	/* given back first, with what nobody looks at */
	finish_with(&t, EVC_CANCELLED, -1, "\xa3" "abc", 4);
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	finish_with(&t, 0, 0, "\xa3" "abc", 4);
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	IS_VALUE(&v, "\"abc\"");
	/* of an attempt that is over */
	finish_with(&t, 0, 0, "\xa3" "xyz", 4);
	IS_VALUE(&v, "\"abc\"");
	evc_remote_free(r);
	/* an error, no bytes, and bytes that are no value */
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	finish_with(&t, EVC_DATA_LOSS, 0, "\xa3" "abc", 4);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT), EVC_DATA_LOSS);
	evc_remote_free(r);
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	finish_with(&t, 0, 0, "", 0);
	OK(evc_remote_fetch(r, T_LIMIT, &v));
	IS_VALUE(&v, "null");
	evc_remote_free(r);
	r = schedule(cl, "f");
	ck_assert_uint_eq(hand_take(0, &t, 1), 1);
	finish_with(&t, 0, 0, "\xa3" "ab", 3);
	ck_assert_int_eq(evc_cluster_join(cl, T_LIMIT),
			 EVC_RESOURCE_EXHAUSTED);
	OK(evc_remote_get(r, &info));
	HAS(info.text, "could not be kept");
	evc_remote_free(r);
	hand_end_cluster(cl, c);
}
END_TEST

API_MAIN("engine_says", its_trouble_is_why_there_is_no_worker,
	 its_trouble_is_why_one_worker_is_not_there,
	 its_trouble_is_why_a_result_is_missing, what_is_down_stays_down,
	 the_name_of_one_that_is_down_is_free,
	 it_is_down_without_a_word, it_may_ask_how_many_there_are,
	 a_worker_may_leave_without_a_word, a_result_may_bring_its_memory)
