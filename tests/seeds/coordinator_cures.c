/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract of TensorFlow's Coordinator is kept; these are the places where
 * its own code falls short of it, each with what is true here instead.
 */
#define _GNU_SOURCE 1
#include "seeds.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* There: an error after a plain request_stop() is lost. */
START_TEST(an_error_after_a_clean_stop_is_the_verdict)
{
	evc_coord *c = begin(_i, NULL);
	evc_verdict v;

	ck_assert_int_eq(evc_request_stop(c, 0, "time to go"), 0);
	ck_assert_int_eq(evc_request_stop(c, EVC_DATA_LOSS, "not written"), 0);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.text, "not written");
	/* Still the first request is why it stopped. */
	ck_assert_str_eq(v.stop.text, "time to go");
	ck_assert_int_eq(v.stop.code, 0);
}
END_TEST

/* There: with an error recorded, late threads are never named. */
START_TEST(late_threads_are_named_beside_an_error)
{
	struct t_gate leave = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	pthread_t t = spawn("laggard", await_gate, &leave);
	evc_join_opts o = { .threads = &t, .n_threads = 1, .grace = 0.01 };
	evc_verdict v;

	ck_assert_int_eq(evc_request_stop(c, EVC_DATA_LOSS, "not written"), 0);
	ck_assert_int_eq(evc_join(c, &o, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_stragglers, 1);
	ck_assert_ptr_nonnull(strstr(v.error.text, "not written"));
	ck_assert_ptr_nonnull(strstr(v.error.text, "laggard"));
	gate_step(&leave);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_uint_eq(v.n_stragglers, 0);
}
END_TEST

/*
 * A thread that brings in another one when a join waits for it, and a third
 * one, nobody's member, that lets the child go only when the parent is gone.
 */
struct family {
	evc_coord *c;
	struct t_gate turns; /* 1: the join begins, 2: the child is registered */
	struct t_gate child_leave;
	bool child_left;
	evc_status got;
};

static void *
be_child(void *arg)
{
	struct family *f = arg;

	gate_await(&f->child_leave, 1);
	f->child_left = true;
	return NULL;
}

static void *
have_child(void *arg)
{
	struct family *f = arg;
	pthread_t t;

	gate_await(&f->turns, 1);
	t_sleep(0.05); /* it holds without, too; so it is most likely meant */
	f->got = -1;
	if (!pthread_create(&t, NULL, be_child, f))
		f->got = evc_register_thread(f->c, "child", t, NULL, NULL);
	gate_step(&f->turns);
	return NULL;
}

static void *
let_child_leave(void *arg)
{
	struct family *f = arg;

	gate_await(&f->turns, 2);
	t_sleep(0.05); /* likewise */
	gate_step(&f->child_leave);
	return NULL;
}

/* There: what registers while join() waits is dropped. */
START_TEST(a_join_takes_in_what_registers_meanwhile)
{
	evc_coord *c = begin(_i, NULL);
	struct family f = { c, GATE_INIT, GATE_INIT, false, -1 };
	pthread_t t = spawn("parent", have_child, &f);
	pthread_t outsider = spawn("outsider", let_child_leave, &f);
	evc_join_opts o = { .threads = &t, .n_threads = 1 };
	evc_verdict v;

	gate_step(&f.turns);
	ck_assert_int_eq(evc_join(c, &o, &v), 0);
	ck_assert_int_eq(f.got, 0);
	ck_assert(f.child_left);
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_int_eq(pthread_join(outsider, NULL), 0);
}
END_TEST

struct inner_join {
	evc_status got;
	evc_verdict v;
};

static evc_status
join_as_member(evc_coord *c, void *arg)
{
	struct inner_join *j = arg;

	j->got = evc_join(c, NULL, &j->v);
	return 0;
}

/*
 * There: a registered thread that joins waits for itself the whole grace and
 * then names itself as late.
 */
START_TEST(a_member_that_joins_leaves_itself_out)
{
	struct t_gate leave = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	struct inner_join j = { -1, { 0 } };
	evc_verdict v;

	/* The default grace of 120 s is what a failure would take. */
	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert_int_eq(evc_register_thread(
		c, NULL, spawn(NULL, await_gate, &leave), NULL, NULL), 0);
	ck_assert_int_eq(
		evc_thread_start(c, "joiner", join_as_member, &j,
				 &(evc_member_opts){ .flags = EVC_AFTER_STOP },
				 NULL),
		0);
	gate_step(&leave);
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_uint_eq(v.n_ended, 2);
	ck_assert_int_eq(j.got, 0);
	ck_assert_uint_eq(j.v.n_stragglers, 0);
}
END_TEST

static evc_status
vanish(evc_coord *c, void *arg)
{
	(void)c;
	(void)arg;
	pthread_exit(NULL);
}

/*
 * There: a thread that dies outside stop_on_exception leaves no trace, and
 * join returns normally.
 */
START_TEST(a_member_that_dies_is_an_error)
{
	evc_coord *c = begin(_i, NULL);
	evc_verdict v;

	ck_assert_int_eq(evc_thread_start(c, "mayfly", vanish, NULL, NULL,
					  NULL), 0);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	ck_assert_str_eq(v.error.who, "mayfly");
	ck_assert_uint_eq(v.error.kind, EVC_BY_MEMBER_END);
	ck_assert(evc_should_stop(c));
}
END_TEST

/* Not t_sleep: the address sanitizer takes what a cancelled thread leaves on
   its stack in functions that it checks for an error. */
static void *
sleep_for_ever(void *arg)
{
	while (!arg)
		sleep(3600);
	return arg;
}

/* Of a registered thread, cancellation is what can be seen. */
START_TEST(a_registered_thread_that_is_cancelled_is_an_error)
{
	evc_coord *c = begin(_i, NULL);
	pthread_t t = spawn("victim", sleep_for_ever, NULL);
	evc_verdict v;

	ck_assert_int_eq(evc_register_thread(c, "victim", t, NULL, NULL), 0);
	ck_assert_int_eq(pthread_cancel(t), 0);
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_ABORTED);
	ck_assert_str_eq(v.error.who, "victim");
}
END_TEST

/*
 * There: after clear_stop a straggler of the old round can stop the new one,
 * and its error is raised there.  Here there is no new round while it lives.
 */
START_TEST(clear_is_refused_while_somebody_is_late)
{
	struct t_gate leave = GATE_INIT;
	evc_coord *c = begin(_i, NULL);
	pthread_t t = spawn("laggard", await_gate, &leave);
	evc_join_opts o = { .threads = &t, .n_threads = 1,
			    .grace = EVC_NO_GRACE };

	ck_assert_int_eq(evc_request_stop(c, 0, NULL), 0);
	ck_assert_int_eq(evc_join(c, &o, NULL), EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(evc_clear_stop(c), -EVC_FAILED_PRECONDITION);
	ck_assert_ptr_nonnull(strstr(evc_last_error(), "laggard"));
	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_free(c), -EVC_FAILED_PRECONDITION);
	ck_assert_ptr_nonnull(strstr(evc_last_error(), "laggard"));
	gate_step(&leave);
	ck_assert_int_eq(evc_join(c, NULL, NULL), 0);
	ck_assert_int_eq(evc_clear_stop(c), 0);
	ck_assert(!evc_should_stop(c));
}
END_TEST

T_MAIN("seed 001: cures", count_before, end_and_count,
       T_TIMES(an_error_after_a_clean_stop_is_the_verdict, 2),
       T_TIMES(late_threads_are_named_beside_an_error, 2),
       T_TIMES(a_join_takes_in_what_registers_meanwhile, 2),
       T_TIMES(a_member_that_joins_leaves_itself_out, 2),
       T_TIMES(a_member_that_dies_is_an_error, 2),
       T_TIMES(a_registered_thread_that_is_cancelled_is_an_error, 2),
       T_TIMES(clear_is_refused_while_somebody_is_late, 2))
