/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_sleep; what it has in common with the other waits stands in waits.c.
 */
#include "../../support/wait_util.h"

#include <ev.h>

START_TEST(it_takes_its_time_and_needs_no_descriptor)
{
	evc_coord *c = new_coord(NULL);
	int fds = t_count_fds(), i;
	double start = t_now();

	for (i = 0; i < 5; i++)
		OK(evc_sleep(c, 0.01));
	ck_assert(t_now() - start >= 0.05);
	ck_assert_int_eq(t_count_fds(), fds);
	OK(evc_free(c));
}
END_TEST

static evc_status
sleeps_as_a_member(evc_coord *c, void *arg)
{
	int *naps = arg;
	evc_status st;

	do
		st = evc_sleep(c, 0.001);
	while (st == 0 && ++*naps < 1000000);
	return st;
}

/* -EVC_CANCELLED is what a member may return as it is: it has obeyed. */
START_TEST(a_member_that_sleeps_ends_clean_at_the_stop)
{
	evc_coord *c = new_coord(NULL);
	static int naps;
	evc_verdict v;

	OK(evc_thread_start(c, "naps", sleeps_as_a_member, &naps, NULL, NULL));
	t_sleep(0.02);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}
END_TEST

/* ---- on the thread of a loop ---- */

static evc_coord *on_loop;
static evc_status slept;

static void
nap_in_loop(struct ev_loop *loop, ev_timer *t, int events)
{
	(void)loop;
	(void)t;
	(void)events;
	slept = evc_sleep(on_loop, 0.005);
	evc_request_stop(on_loop, 0, NULL);
}

START_TEST(it_works_inside_ev_run_too)
{
	struct ev_loop *loop = ev_loop_new(0);
	ev_timer t;

	on_loop = new_coord(loop);
	slept = 77;
	ev_timer_init(&t, nap_in_loop, 0., 0.);
	ev_timer_start(loop, &t);
	OK(evc_run(on_loop, NULL, NULL));
	OK(slept);
	STOPPED(evc_sleep(on_loop, 1));
	OK(evc_free(on_loop));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("sleep", it_takes_its_time_and_needs_no_descriptor,
	 a_member_that_sleeps_ends_clean_at_the_stop,
	 it_works_inside_ev_run_too)
