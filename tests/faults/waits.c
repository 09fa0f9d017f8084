/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stop-aware waits when something is not to be had: no memory, no thread,
 * no descriptor, a poll(2) that fails.  What is refused has changed nothing.
 */
#include "../schedules/schedules.h"

#include "../support/wait_util.h"

#include <ev.h>

/* Whatever allocates fails once; the next time it works. */
START_TEST(without_memory_conditions_and_calls_are_refused)
{
	evc_coord *c = new_coord(NULL);
	evc_cond *cond = NULL;
	int result = 77, arg = 0, n;
	evc_status st;

	for (n = 1;; n++) {
		seam_reset();
		seam_fail("alloc", NULL, n, ENOMEM);
		st = evc_cond_new(c, &cond);
		if (st == 0)
			break;
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		ck_assert_ptr_null(cond);
	}
	ck_assert_int_ge(n, 3); /* itself, and a place in the table */
	seam_reset();
	OK(evc_cond_free(cond));
	OK(evc_free(c));
	c = new_coord(NULL);
	atomic_store(&hang_open, 1);
	for (n = 1;; n++) {
		seam_reset();
		seam_fail("alloc", NULL, n, ENOMEM);
		st = evc_call_detached(c, "x", hang, &arg, hang_release,
				       INFINITY, &result);
		if (st == 0)
			break;
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		ck_assert_int_eq(result, 77);
		ck_assert_int_eq(atomic_load(&hang_begun), 0);
	}
	ck_assert_int_ge(n, 3);
	ck_assert_int_eq(result, 7);
	ck_assert_int_eq(atomic_load(&hang_begun), 1);
	/* It is ours still, each time. */
	ck_assert_int_eq(atomic_load(&hang_released), 0);
	hangs_end(0);
	OK(evc_free(c));
}
END_TEST

/* A queue needs conditions, its places, and a place in reports. */
START_TEST(without_memory_queues_are_refused)
{
	evc_coord *c = new_coord(NULL);
	evc_queue *q = NULL;
	evc_status st;
	char text[4096];
	int n;

	for (n = 1;; n++) {
		seam_reset();
		seam_fail("alloc", NULL, n, ENOMEM);
		st = evc_queue_new(c, "orders", 4, NULL, &q);
		if (st == 0)
			break;
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		ck_assert_ptr_null(q);
		evc_report(c, EVC_REPORT_TEXT, text, sizeof text);
		ck_assert_ptr_null(strstr(text, "orders"));
	}
	ck_assert_int_ge(n, 6);
	seam_reset();
	evc_report(c, EVC_REPORT_TEXT, text, sizeof text);
	HAS(text, "queue \"orders\": 0 of 4 items");
	OK(evc_queue_free(q));
	OK(evc_free(c));
}
END_TEST

START_TEST(without_memory_64_descriptors_can_be_polled_and_no_more)
{
	evc_coord *c = new_coord(NULL);
	struct pollfd p[65];
	unsigned got = 77;
	int i;

	for (i = 0; i < 65; i++)
		p[i] = (struct pollfd){.fd = -1};
	seam_fail_all("alloc", NULL, 1, ENOMEM);
	ck_assert_int_eq(evc_poll(c, p, 65, 0.001, &got),
			 -EVC_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(evc_poll(c, p, 64, 0.001, &got),
			 -EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(got, 77);
	seam_reset();
	ck_assert_int_eq(evc_poll(c, p, 65, 0.001, &got),
			 -EVC_DEADLINE_EXCEEDED);
	OK(evc_free(c));
}
END_TEST

static void
never_done(evc_reactor *r, evc_status why, int result, void *arg)
{
	(void)r;
	(void)why;
	(void)result;
	(void)arg;
	ck_abort_msg("the loop does not turn");
}

START_TEST(without_a_thread_a_call_is_refused)
{
	evc_coord *c = new_coord(NULL);
	int result = 77, arg = 0;

	seam_fail("thread_create", "create_thread", 1, EAGAIN);
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_call_detached(c, "x", hang, &arg, hang_release, INFINITY,
				  &result));
	ck_assert_int_eq(result, 77);
	ck_assert_int_eq(atomic_load(&hang_begun), 0);
	ck_assert_int_eq(atomic_load(&hang_released), 0);
	atomic_store(&hang_open, 1);
	OK(evc_call_detached(c, "x", hang, &arg, hang_release, INFINITY,
			     &result));
	ck_assert_int_eq(result, 7);
	hangs_end(0);
	OK(evc_free(c));
}
END_TEST

/* Refused, a call that nobody waits for has left nothing behind. */
START_TEST(without_memory_or_a_thread_a_call_is_not_left_behind)
{
	static const char *const failing[] = { "alloc", "thread_create" };
	evc_call_opts o = { .no_wait = true, .release = hang_release };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	void *arg = malloc(1);
	int i;

	o.reactor = evc_home(c);
	o.done = never_done;
	for (i = 0; i < 2; i++) {
		seam_fail(failing[i], NULL, 1, EAGAIN);
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc_call_detached_with(c, hang, arg, 0, &o, NULL));
		seam_reset();
	}
	ck_assert_int_eq(atomic_load(&hang_begun), 0);
	ck_assert_int_eq(atomic_load(&hang_released), 0);
	OK(evc_call_detached_with(c, hang, arg, 0, &o, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	hangs_end(1);
}
END_TEST

/* A slice of time at a time, until there is a descriptor again: here, never. */
START_TEST(without_a_descriptor_all_end)
{
	evc_coord *c = new_coord(NULL);
	struct wait w[2];
	int i;

	seam_fail_all("eventfd", "evc_stop_fd", 1, EMFILE);
	for (i = 0; i < 2; i++)
		wait_begin(&w[i], BY_WAIT_FD + i, c, INFINITY);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_clear_stop(c));
	for (i = 0; i < 2; i++)
		STOPPED(wait_end(&w[i]));
	ck_assert_int_eq(wait_here(BY_WAIT_FD, c, 0.03),
			 -EVC_DEADLINE_EXCEEDED);
	OK(evc_free(c));
}
END_TEST

/* What poll(2) may say, at the first or a later call. */
START_TEST(a_poll_that_fails)
{
	static const struct {
		int e;
		evc_status st;
	} fails[] = {
		{ENOMEM, -EVC_RESOURCE_EXHAUSTED},
		{EFAULT, -EVC_INVALID_ARGUMENT},
		{EINTR, -EVC_DEADLINE_EXCEEDED},
		/* Once: it is tried without the descriptor of the stop. */
		{EINVAL, -EVC_DEADLINE_EXCEEDED},
	};
	size_t i;
	int way;

	for (way = BY_WAIT_FD; way <= BY_POLL; way++)
		for (i = 0; i < N_OF(fails); i++) {
			evc_coord *c = new_coord(NULL);

			seam_fail("ppoll", "poll_once", 1, fails[i].e);
			ck_assert_int_eq(wait_here(way, c, 0.03),
					 fails[i].st);
			seam_reset();
			ck_assert_int_eq(wait_here(way, c, 0.001),
					 -EVC_DEADLINE_EXCEEDED);
			/* Nobody has stayed inside. */
			OK(evc_request_stop(c, 0, NULL));
			OK(evc_clear_stop(c));
			OK(evc_free(c));
		}
}
END_TEST

SCHEDULES_MAIN("faults of waits",
	       without_memory_conditions_and_calls_are_refused,
	       without_memory_queues_are_refused,
	       without_memory_64_descriptors_can_be_polled_and_no_more,
	       without_a_thread_a_call_is_refused,
	       without_memory_or_a_thread_a_call_is_not_left_behind,
	       without_a_descriptor_all_end,
	       a_poll_that_fails)
