/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timeline without memory, and on a descriptor that fails: it is refused,
 * and all goes on as if it were not there.
 */
#include "faults.h"

#include "../support/trace_util.h"

START_TEST(a_start_without_memory_is_refused)
{
	evc_coord *c = new_coord(NULL);
	evc_id id;

	seam_reset();
	seam_fail("alloc", "make_ring", 1, ENOMEM);
	REFUSED(EVC_RESOURCE_EXHAUSTED, evc_trace_start(c, 16));
	HAS(evc_last_error(), "16 events");
	REFUSED(EVC_NOT_FOUND, evc_trace_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_trace_write(c, 1, EVC_TRACE_JSON));
	OK(evc_hold_begin(c, "one", NULL, &id));
	OK(evc_hold_end(c, id));
	OK(evc_trace_start(c, 16));
	OK(evc_free(c));
	seam_reset();
}
END_TEST

/* Each allocation in its turn, until it needs no more of them. */
START_TEST(a_picture_without_memory_is_refused)
{
	evc_coord *c = new_coord(NULL), *s = NULL;
	int fd = open("/dev/null", O_WRONLY), nth;
	evc_status st;
	evc_id id[100];

	ck_assert_int_ge(fd, 0);
	OK(evc_trace_start(c, 16));
	OK(evc_scope_new(c, "scope", NULL, &s));
	OK(evc_scope_ready(s));
	/* More than the first room for those alive. */
	for (nth = 0; nth < 100; nth++)
		OK(evc_hold_begin(c, "one", NULL, &id[nth]));
	OK(evc_request_stop(c, 0, "stop"));
	for (nth = 1; nth < 100; nth++) {
		seam_reset();
		seam_fail("alloc", NULL, nth, ENOMEM);
		st = evc_trace_write(c, fd, EVC_TRACE_JSON);
		if (st == 0)
			break;
		ck_assert_int_eq(st, -EVC_RESOURCE_EXHAUSTED);
		HAS(evc_last_error(), "no memory");
	}
	ck_assert_int_gt(nth, 6);
	ck_assert_int_lt(nth, 100);
	seam_reset();
	OK(evc_trace_write(c, fd, EVC_TRACE_JSON));
	for (nth = 0; nth < 100; nth++)
		OK(evc_hold_end(c, id[nth]));
	OK(evc_join(c, NULL, NULL));
	FREE_ALL(s, c);
	close(fd);
	seam_reset();
}
END_TEST

/* A signal comes before anything was written: it goes on. */
START_TEST(a_write_that_is_interrupted_goes_on)
{
	evc_coord *c = new_coord(NULL);
	char *text;

	seam_reset();
	OK(evc_trace_start(c, 0));
	seam_fail("fd_put", "put_pieces", 1, EINTR);
	seam_fail("fd_put", "put_pieces", 1, EAGAIN);
	text = traced(c, EVC_TRACE_JSON);
	HAS(text, "\n]}\n");
	free(text);
	OK(evc_free(c));
	seam_reset();
}
END_TEST

START_TEST(a_write_that_fails_is_said)
{
	static const int err[] = { EIO, EBADF, EDQUOT, EPIPE, ENOSPC };
	evc_coord *c = new_coord(NULL);
	int fd = open("/dev/null", O_WRONLY);
	size_t i;

	ck_assert_int_ge(fd, 0);
	seam_reset();
	OK(evc_trace_start(c, 0));
	for (i = 0; i < sizeof(err) / sizeof(err[0]); i++) {
		seam_fail("fd_put", "put_pieces", 1, err[i]);
		REFUSED(EVC_UNAVAILABLE,
			evc_trace_write(c, fd, EVC_TRACE_JSON));
		HAS(evc_last_error(), strerror(err[i]));
		OK(evc_trace_write(c, fd, EVC_TRACE_JSON));
	}
	/* Full for ever: it gives up after a second. */
	seam_fail_all("fd_put", "put_pieces", 1, EAGAIN);
	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, fd, EVC_TRACE_JSON));
	seam_reset();
	OK(evc_free(c));
	close(fd);
}
END_TEST

API_MAIN("trace", a_start_without_memory_is_refused,
	 a_picture_without_memory_is_refused,
	 a_write_that_is_interrupted_goes_on, a_write_that_fails_is_said)
