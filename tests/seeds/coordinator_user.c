/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a user of TensorFlow's Coordinator relies on beyond its own tests:
 * what its text promises, and what its code does although no test there looks
 * at it.  What is better here than there is in coordinator_cures.c.
 */
#define _GNU_SOURCE 1
#include "seeds.h"

#include <math.h>
#include <string.h>

/* A thread that waits for the stop and keeps what the wait answered. */
struct waiter {
	evc_coord *c;
	struct t_gate *is_in;
	double timeout;
	bool released, should_stop;
};

static void *
wait_for_stop(void *arg)
{
	struct waiter *w = arg;

	gate_step(w->is_in);
	w->released = evc_wait_for_stop(w->c, w->timeout);
	w->should_stop = evc_should_stop(w->c);
	return NULL;
}

/* wait_for_stop(timeout=None): for ever, and all of them. */
START_TEST(endless_waits_are_all_released)
{
	struct t_gate in = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	struct waiter w[8];
	pthread_t t[8];
	evc_join_opts o = { .threads = t, .n_threads = 8 };
	int i;

	for (i = 0; i < 8; i++) {
		w[i] = (struct waiter){ c, &in, INFINITY, false, false };
		t[i] = spawn(NULL, wait_for_stop, &w[i]);
	}
	ck_assert(gate_await(&in, 8));
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert_int_eq(evc_join(c, &o, NULL), 0);
	for (i = 0; i < 8; i++) {
		ck_assert(w[i].released);
		ck_assert(w[i].should_stop);
	}
}
END_TEST

START_TEST(a_wait_of_no_time_only_asks)
{
	evc_coord *c = begin(_i, NULL);

	ck_assert(!evc_wait_for_stop(c, 0.0));
	ck_assert(!evc_wait_for_stop(c, -1.0));
	ck_assert(!evc_wait_for_stop(c, -INFINITY));
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert(evc_wait_for_stop(c, 0.0));
	ck_assert(evc_wait_for_stop(c, -1.0));
	ck_assert(evc_wait_for_stop(c, INFINITY));
}
END_TEST

/* Asking again changes nothing: the first reason stays. */
START_TEST(only_the_first_request_is_the_reason)
{
	evc_coord *c = begin(_i, NULL);
	evc_verdict v;

	ck_assert_int_eq(evc_request_stop(c, 0, "first"), 0);
	ck_assert_int_eq(evc_request_stop(c, 0, "second"), 0);
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_str_eq(v.stop.text, "first");
	ck_assert_uint_eq(v.stop.kind, EVC_BY_REQUEST);
}
END_TEST

static evc_status
stop_the_others(evc_coord *c, void *arg)
{
	(void)arg;
	return evc_request_stop(c, 0, "one is enough");
}

/* "Any of the threads can call request_stop to ask for all to stop." */
START_TEST(a_member_can_stop_the_others)
{
	struct t_gate in = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	struct waiter w[3];
	evc_verdict v;
	evc_id id;
	int i;

	for (i = 0; i < 3; i++) {
		w[i] = (struct waiter){ c, &in, INFINITY, false, false };
		ck_assert_int_eq(evc_register_thread(
			c, NULL, spawn(NULL, wait_for_stop, &w[i]), NULL,
			NULL), 0);
	}
	ck_assert_int_eq(evc_thread_start(c, "stopper", stop_the_others, NULL,
					  NULL, &id), 0);
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.n_ended, 4);
	ck_assert_str_eq(v.stop.who, "stopper");
	ck_assert_uint_eq(v.stop.by, id);
	for (i = 0; i < 3; i++)
		ck_assert(w[i].released);
}
END_TEST

START_TEST(joined_is_set_by_a_join_and_taken_by_clear)
{
	evc_coord *c = begin(_i, NULL);

	ck_assert(!evc_joined(c));
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert(!evc_joined(c));
	ck_assert_int_eq(evc_join(c, NULL, NULL), 0);
	ck_assert(evc_joined(c));
	ck_assert(evc_should_stop(c)); /* a join takes nothing back */
	ck_assert_int_eq(evc_clear_stop(c), 0);
	ck_assert(!evc_joined(c));
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(evc_clear_stop(c), 0); /* nothing to do */
}
END_TEST

/* A join that fails has joined, too. */
START_TEST(joined_is_set_by_a_join_that_fails)
{
	evc_coord *c = begin(_i, NULL);

	ck_assert_int_eq(evc_request_stop(c, EVC_INTERNAL, "broken"), 0);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	ck_assert(evc_joined(c));
	/* "re-raised from join()", by each of them. */
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
}
END_TEST

/* raise_requested_exception: as often as asked, until the stop is cleared. */
START_TEST(the_error_can_be_asked_for_at_any_time)
{
	evc_coord *c = begin(_i, NULL);
	evc_reason why;
	int i;

	ck_assert_int_eq(evc_raise_requested(c, &why), 0);
	ck_assert_int_eq(evc_fail(c, EVC_NOT_FOUND, 2, "no %s", "input"),
			 EVC_NOT_FOUND);
	for (i = 0; i < 4; i++) {
		memset(&why, 0, sizeof(why));
		ck_assert_int_eq(evc_raise_requested(c, &why), EVC_NOT_FOUND);
		ck_assert_str_eq(why.text, "no input");
		ck_assert_int_eq(why.err, 2);
		ck_assert_int_eq(evc_raise_requested(c, NULL), EVC_NOT_FOUND);
		ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_NOT_FOUND);
	}
	ck_assert_int_eq(evc_clear_stop(c), 0);
	ck_assert_int_eq(evc_raise_requested(c, &why), 0);
}
END_TEST

/* "It is ok if threads are both registered and passed to the join call." */
START_TEST(a_thread_named_more_than_once_is_joined_once)
{
	struct t_gate leave = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	pthread_t t = spawn(NULL, await_gate, &leave);
	pthread_t list[3] = { t, t, t };
	evc_join_opts o = { .threads = list, .n_threads = 3 };
	evc_id first, second;
	evc_verdict v;

	ck_assert_int_eq(evc_register_thread(c, "one", t, NULL, &first), 0);
	ck_assert_int_eq(evc_register_thread(c, "two", t, NULL, &second), 0);
	ck_assert_uint_eq(first, second);
	gate_step(&leave);
	ck_assert_int_eq(evc_join(c, &o, &v), 0);
	ck_assert_uint_eq(v.n_ended, 1);
}
END_TEST

/* Without a request the join waits for threads that end by themselves. */
START_TEST(a_join_asks_for_nothing)
{
	struct t_gate in = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	struct waiter w = { c, &in, 0.05, true, true };
	pthread_t t = spawn(NULL, wait_for_stop, &w);
	evc_join_opts o = { .threads = &t, .n_threads = 1 };

	ck_assert_int_eq(evc_join(c, &o, NULL), 0);
	ck_assert(!w.released); /* its own time was over */
	ck_assert(!w.should_stop);
	ck_assert(!evc_should_stop(c));
}
END_TEST

static evc_status
succeed(evc_coord *c, void *arg)
{
	(void)c;
	*(bool *)arg = true;
	return 0;
}

static evc_status
fail_inside(evc_coord *c, void *arg)
{
	*(bool *)arg = true;
	return evc_guard(c, "inner", succeed, arg, NULL) ? 0 : EVC_INTERNAL;
}

/* stop_on_exception, on the thread that calls it. */
START_TEST(a_guard_stops_on_an_error_only)
{
	evc_coord *c = begin(_i, NULL);
	bool ran = false;
	evc_reason why;

	ck_assert_int_eq(evc_guard(c, "block", succeed, &ran, NULL), 0);
	ck_assert(ran);
	ck_assert(!evc_should_stop(c));
	ran = false;
	ck_assert_int_eq(evc_guard(c, "outer", fail_inside, &ran, NULL), 0);
	ck_assert(ran);
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_raise_requested(c, &why), EVC_INTERNAL);
	ck_assert_str_eq(why.who, "outer");
}
END_TEST

/*
 * A request that carries no error is welcome after a join, as there: it sets
 * the flag, it is not handed back.
 */
START_TEST(a_plain_request_after_a_join_sets_the_flag)
{
	evc_coord *c = begin(_i, NULL);

	ck_assert_int_eq(evc_join(c, NULL, NULL), 0);
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(evc_request_stop(c, EVC_OUT_OF_RANGE, "end"), 0);
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_join(c, NULL, NULL), 0);
}
END_TEST

/* The lines that the seed writes to its log. */
struct lines {
	pthread_mutex_t lock;
	unsigned n;
	int level[4];
	char text[4][512];
};

static void
keep_line(int level, const char *line, const evc_reason *r, void *arg)
{
	struct lines *l = arg;

	(void)r;
	/* Without the begin and the good end of a stop, and the report. */
	if (strstr(line, ": error DATA_LOSS") == NULL &&
	    (strstr(line, "ended after") == NULL ||
	     strstr(line, "still running") == NULL))
		return;
	pthread_mutex_lock(&l->lock);
	if (l->n < 4) {
		l->level[l->n] = level;
		strncpy(l->text[l->n], line, sizeof(l->text[0]) - 1);
	}
	l->n++;
	pthread_mutex_unlock(&l->lock);
}

START_TEST(errors_and_late_threads_are_logged)
{
	struct t_gate leave = GATE_INIT;
	struct lines l = { .lock = PTHREAD_MUTEX_INITIALIZER };
	evc_config cfg = { .log = keep_line, .arg = &l };
	evc_coord *c = begin(_i, &cfg);
	pthread_t t = spawn("laggard", await_gate, &leave);
	evc_join_opts o = { .threads = &t, .n_threads = 1,
			    .grace = EVC_NO_GRACE };

	ck_assert_int_eq(evc_request_stop(c, EVC_DATA_LOSS, "bad disk"), 0);
	ck_assert_int_eq(evc_join(c, &o, NULL), EVC_DATA_LOSS);
	ck_assert_uint_eq(l.n, 2);
	ck_assert_ptr_nonnull(strstr(l.text[0], "bad disk"));
	ck_assert_ptr_nonnull(strstr(l.text[1], "laggard"));
	ck_assert_int_eq(l.level[1], EVC_LOG_ERROR);
	/* Asked for or not, late threads are told; only the level differs. */
	o.flags = EVC_JOIN_IGNORE_LIVE;
	ck_assert_int_eq(evc_join(c, &o, NULL), EVC_DATA_LOSS);
	ck_assert_uint_eq(l.n, 3);
	ck_assert_ptr_nonnull(strstr(l.text[2], "laggard"));
	ck_assert_int_eq(l.level[2], EVC_LOG_INFO);
	gate_step(&leave);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_DATA_LOSS);
	ck_assert_uint_eq(l.n, 3);
}
END_TEST

T_MAIN("seed 001: what users rely on", count_before, end_and_count,
       T_TIMES(endless_waits_are_all_released, 2),
       T_TIMES(a_wait_of_no_time_only_asks, 2),
       T_TIMES(only_the_first_request_is_the_reason, 2),
       T_TIMES(a_member_can_stop_the_others, 2),
       T_TIMES(joined_is_set_by_a_join_and_taken_by_clear, 2),
       T_TIMES(joined_is_set_by_a_join_that_fails, 2),
       T_TIMES(the_error_can_be_asked_for_at_any_time, 2),
       T_TIMES(a_thread_named_more_than_once_is_joined_once, 2),
       T_TIMES(a_join_asks_for_nothing, 2),
       T_TIMES(a_guard_stops_on_an_error_only, 2),
       T_TIMES(a_plain_request_after_a_join_sets_the_flag, 2),
       T_TIMES(errors_and_late_threads_are_logged, 2))
