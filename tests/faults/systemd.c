/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory, no descriptor, no thread for what tells the service manager: the
 * start is refused, leaves nothing behind and works later; a datagram that fails
 * is said again; a watchdog that cannot come back after a stop comes later.
 */
#include "faults.h"

#include "../support/systemd_util.h"

/* Refused at each place in turn, until there are no more; how many those are. */
static int
refused_at_each(const char *op, int err, bool on_loop)
{
	struct ev_loop *loop = on_loop ? ev_loop_new(0) : NULL;
	evc_systemd_opts o = { .watchdog = 60 };
	int fds, threads, n = 0, h;
	struct manager m;
	evc_status st;
	evc_coord *c;

	manager_begin(&m, true);
	o.socket = m.name;
	threads = t_count_threads();
	do {
		seam_reset();
		c = new_coord(loop);
		fds = t_count_fds();
		h = seam_fail(op, NULL, ++n, err);
		st = evc_systemd_start(c, &o);
		if (st == 0) {
			ck_assert_int_lt(seam_arrivals(h), n);
			seam_reset();
			OK(evc_systemd_stop(c));
			OK(evc_free(c));
			continue;
		}
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		ck_assert_str_ne(evc_last_error(), "");
		REFUSED(EVC_NOT_FOUND, evc_systemd_ready(c, NULL));
		ck_assert_uint_eq(n_members(c), 0);
		ck_assert_int_eq(t_settle_fds(fds), fds);
		/* And then, with what there is again. */
		OK(evc_systemd_start(c, &o));
		OK(evc_systemd_ready(c, NULL));
		ck_assert_int_ge(manager_count(&m, "READY=1"), 1);
		OK(evc_request_stop(c, 0, NULL));
		ck_assert(manager_heard(&m, "STOPPING=1"));
		OK(on_loop ? evc_run(c, NULL, NULL) : evc_join(c, NULL, NULL));
		OK(evc_free(c));
	} while (st != 0);
	ck_assert_int_eq(t_settle_threads(threads), threads);
	manager_end(&m);
	if (on_loop)
		ev_loop_destroy(loop);
	return n - 1;
}

START_TEST(without_memory_it_is_refused)
{
	/* Its own part, a place in the table, the helper, the looper. */
	ck_assert_int_ge(refused_at_each("alloc", ENOMEM, _i), 4);
}
END_TEST

START_TEST(without_a_descriptor_it_is_refused)
{
	ck_assert_int_eq(refused_at_each("dgram", EMFILE, _i), 1);
}
END_TEST

START_TEST(without_a_thread_it_is_refused)
{
	/* The helper, and the watchdog's where there is no loop. */
	ck_assert_int_eq(refused_at_each("thread_create", EAGAIN, _i),
			 _i ? 1 : 2);
}
END_TEST

START_TEST(a_datagram_that_fails_is_said_again)
{
	evc_systemd_opts o = { .status_every = 0.01, .watchdog = -1 };
	struct manager m;
	evc_coord *c;
	evc_id id = 0;

	manager_begin(&m, true);
	o.socket = m.name;
	c = new_coord(NULL);
	OK(evc_systemd_start(c, &o));
	OK(evc_hold_begin(c, "hold", NULL, &id));
	seam_fail("dgram_send", NULL, 1, EAGAIN);
	REFUSED(EVC_UNAVAILABLE, evc_systemd_ready(c, NULL));
	OK(evc_systemd_ready(c, NULL));
	/* The first words of the stop, and what comes right after them.  No
	   reset before: the helper may still look at the place above. */
	seam_fail("dgram_send", NULL, 1, ENOBUFS);
	seam_fail("dgram_send", NULL, 2, ECONNREFUSED);
	errno = 77;
	OK(evc_request_stop(c, 0, NULL));
	ck_assert_int_eq(errno, 77);
	/* In one datagram; or in two, when the helper is woken once more before
	   the status is due again. */
	UNTIL(manager_heard(&m, "STOPPING=1\n"));
	UNTIL(manager_heard(&m, "STATUS=stopping: 1 member left: hold; "));
	ck_assert_int_le(manager_hear(&m), 3);
	seam_reset();
	OK(evc_hold_end(c, id));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	ck_assert_int_eq(manager_count(&m, "STOPPING=1"), 1);
	manager_end(&m);
}
END_TEST

START_TEST(a_watchdog_that_cannot_come_back_comes_later)
{
	evc_systemd_opts o = { .status_every = 0.01, .watchdog = 0.02 };
	struct manager m;
	evc_coord *c;
	int h, n;

	manager_begin(&m, true);
	o.socket = m.name;
	c = new_coord(NULL);
	OK(evc_systemd_start(c, &o));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, NULL));
	h = seam_fail_all("thread_create", NULL, 1, EAGAIN);
	OK(evc_clear_stop(c));
	UNTIL(seam_arrivals(h) >= 3);
	ck_assert_uint_eq(n_members(c), 0);
	ck_assert_int_eq(manager_count(&m, "READY=1"), 1);
	n = manager_count(&m, "WATCHDOG=1");
	let_come();
	ck_assert_int_eq(manager_count(&m, "WATCHDOG=1"), n);
	seam_reset();
	UNTIL(n_members(c) == 1);
	UNTIL(manager_count(&m, "WATCHDOG=1") > n + 2);
	OK(evc_systemd_stop(c));
	OK(evc_free(c));
	manager_end(&m);
}
END_TEST

T_MAIN("faults: systemd", NULL, seam_reset,
       /* On a thread of its own, and on a loop. */
       T_TIMES(without_memory_it_is_refused, 2),
       T_TIMES(without_a_descriptor_it_is_refused, 2),
       T_TIMES(without_a_thread_it_is_refused, 2),
       T_ONCE(a_datagram_that_fails_is_said_again),
       T_ONCE(a_watchdog_that_cannot_come_back_comes_later))
