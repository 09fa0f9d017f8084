/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second half of the tests that TensorFlow's Coordinator has to pass
 * itself: what is reported to it, what the join makes of that, and what
 * becomes of it when the round is over.  Each keeps the name it has there,
 * and each runs without a loop (_i == 0) and with one (_i == 1).
 *
 * An exception there is a code with a text here.  "Full error info" (an
 * exc_info tuple) is evc_fail: code, errno, text, and the place in the source.
 * The plain form is evc_request_stop with a code.
 */
#define _GNU_SOURCE 1
#include "seeds.h"

#include <errno.h>
#include <string.h>

#define MY_CODE 17 /* the first code that is the application's own */

enum how { PLAIN, FULL, GUARDED, GUARDED_PLAIN };

/* A thread that reports something when its turn has come. */
struct reporter {
	evc_coord *c;
	struct t_gate *turns;
	unsigned turn;
	enum how how;
	evc_status code;
	const char *text;
	evc_status got;
};

static evc_status
report_error(evc_coord *c, void *arg)
{
	struct reporter *r = arg;

	return evc_fail(c, r->code, EIO, "%s", r->text);
}

/* The guard records a bare code, too; it has no text to go with it. */
static evc_status
fail_plainly(evc_coord *c, void *arg)
{
	struct reporter *r = arg;

	(void)c;
	return r->code;
}

static void *
report(void *arg)
{
	struct reporter *r = arg;

	gate_await(r->turns, r->turn);
	switch (r->how) {
	case PLAIN:
		r->got = evc_request_stop(r->c, r->code, r->text);
		break;
	case FULL:
		r->got = report_error(r->c, r);
		break;
	case GUARDED:
		r->got = evc_guard(r->c, r->text, report_error, r, NULL);
		break;
	case GUARDED_PLAIN:
		r->got = evc_guard(r->c, r->text, fail_plainly, r, NULL);
		break;
	}
	gate_step(r->turns);
	return NULL;
}

/* Two members fail, the second strictly after the first; then a join. */
static void
fail_in_order(evc_coord *c, enum how how, evc_verdict *v)
{
	struct t_gate turns = GATE_INIT;
	struct reporter r[2] = {
		{ c, &turns, 1, how, EVC_DATA_LOSS, "First", -1 },
		{ c, &turns, 2, how, EVC_UNAVAILABLE, "Too late", -1 }
	};
	pthread_t t[2];
	evc_join_opts o = { .threads = t, .n_threads = 2 };
	evc_reason second;
	int i;

	for (i = 0; i < 2; i++)
		t[i] = spawn(NULL, report, &r[i]);
	gate_step(&turns);
	ck_assert_int_eq(evc_join(c, &o, v), EVC_DATA_LOSS);
	for (i = 0; i < 2; i++)
		/* evc_fail gives the code back; the others say it is kept,
		   and the guard swallows it. */
		ck_assert_int_eq(r[i].got, how == FULL ? r[i].code : 0);
	ck_assert_int_eq(v->code, EVC_DATA_LOSS);
	ck_assert_uint_eq(v->n_ended, 2);
	ck_assert_uint_eq(v->n_stragglers, 0);
	/* There the second is dropped.  Here it is kept and counted, and only
	   the verdict is the first one's: a cure. */
	ck_assert_uint_eq(v->n_errors, 2);
	ck_assert_int_eq(evc_reason_get(c, 1, &second), 0);
	ck_assert_int_eq(second.code, EVC_UNAVAILABLE);
	ck_assert_int_eq(evc_reason_get(c, 2, &second), -EVC_NOT_FOUND);
}

START_TEST(P08_testJoinRaiseReportExcInfo)
{
	evc_verdict v;

	fail_in_order(begin(_i, NULL), FULL, &v);
	ck_assert_str_eq(v.error.text, "First");
	ck_assert_int_eq(v.error.err, EIO);
	ck_assert_str_eq(v.error.func, "report_error");
	ck_assert_int_gt(v.error.line, 0);
	ck_assert_uint_eq(v.error.kind, EVC_BY_ERROR);
	/* It was also the first request of all. */
	ck_assert_str_eq(v.stop.text, "First");
}
END_TEST

START_TEST(P09_testJoinRaiseReportException)
{
	evc_verdict v;

	fail_in_order(begin(_i, NULL), PLAIN, &v);
	ck_assert_str_eq(v.error.text, "First");
	ck_assert_int_eq(v.error.err, 0);
	ck_assert_str_eq(v.error.func, "report");
}
END_TEST

/* A member reports something that stops without being an error. */
static void
stop_cleanly(evc_coord *c, enum how how, evc_status code)
{
	struct t_gate turns = GATE_INIT;
	struct reporter r = { c, &turns, 0, how, code, "First", -1 };
	pthread_t t = spawn(NULL, report, &r);
	evc_join_opts o = { .threads = &t, .n_threads = 1 };
	evc_verdict v;

	ck_assert_int_eq(evc_join(c, &o, &v), 0);
	ck_assert(evc_should_stop(c));
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_uint_eq(v.n_ended, 1);
	/* It is no error, but it is the reason, and says so. */
	ck_assert_int_eq(v.stop.code, code);
	ck_assert_int_eq(evc_raise_requested(c, NULL), 0);
	ck_assert_int_eq(evc_clear_stop(c), 0);
}

START_TEST(P10_testJoinIgnoresOutOfRange)
{
	evc_coord *c = begin(_i, NULL);

	stop_cleanly(c, PLAIN, EVC_OUT_OF_RANGE);
	stop_cleanly(c, FULL, EVC_OUT_OF_RANGE);
	stop_cleanly(c, GUARDED, EVC_OUT_OF_RANGE);
	stop_cleanly(c, GUARDED_PLAIN, EVC_OUT_OF_RANGE);
}
END_TEST

START_TEST(P11_testJoinIgnoresMyExceptionType)
{
	static const evc_status mine[] = { MY_CODE };
	evc_config cfg = { .clean = mine, .n_clean = 1 };
	evc_coord *c = begin(_i, &cfg);

	stop_cleanly(c, PLAIN, MY_CODE);
	stop_cleanly(c, FULL, MY_CODE);
	stop_cleanly(c, GUARDED, MY_CODE);
	/* The list replaces the default, as there. */
	ck_assert_int_eq(evc_request_stop(c, EVC_OUT_OF_RANGE, "end"), 0);
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_OUT_OF_RANGE);
}
END_TEST

START_TEST(P12_testJoinRaiseReportExceptionUsingHandler)
{
	evc_verdict v;

	fail_in_order(begin(_i, NULL), GUARDED, &v);
	ck_assert_str_eq(v.error.text, "First");
	ck_assert_str_eq(v.stop.text, "First");
}
END_TEST

/* The same with results only: then the guard's name says who it was. */
START_TEST(P12_with_bare_results)
{
	evc_verdict v;

	fail_in_order(begin(_i, NULL), GUARDED_PLAIN, &v);
	ck_assert_str_eq(v.error.who, "First");
	ck_assert_int_eq(v.error.err, 0);
}
END_TEST

/* A member fails, a join gives back what it said. */
static void
fail_and_join(evc_coord *c, const char *text, unsigned round)
{
	struct t_gate turns = GATE_INIT;
	struct reporter r = { c, &turns, 0, FULL, EVC_INTERNAL, text, -1 };
	pthread_t t = spawn(NULL, report, &r);
	evc_join_opts o = { .threads = &t, .n_threads = 1 };
	evc_reason why;
	evc_verdict v;

	ck_assert_int_eq(evc_join(c, &o, &v), EVC_INTERNAL);
	ck_assert_str_eq(v.error.text, text);
	ck_assert_uint_eq(v.round, round);
	ck_assert_uint_eq(v.n_errors, 1);
	ck_assert_uint_eq(v.n_ended, 1);
	ck_assert_int_eq(evc_raise_requested(c, &why), EVC_INTERNAL);
	ck_assert_str_eq(why.text, text);
}

START_TEST(P13_testClearStopClearsExceptionToo)
{
	evc_coord *c = begin(_i, NULL);
	evc_reason why;

	fail_and_join(c, "First", 1);
	ck_assert_int_eq(evc_clear_stop(c), 0);
	ck_assert(!evc_should_stop(c));
	ck_assert_int_eq(evc_raise_requested(c, &why), 0);
	ck_assert_int_eq(evc_reason_get(c, 0, &why), -EVC_NOT_FOUND);
	fail_and_join(c, "Second", 2);
}
END_TEST

/* Joined with nobody to wait for, and with nobody having asked. */
static evc_coord *
begin_joined(int with_loop)
{
	evc_coord *c = begin(with_loop, NULL);
	evc_join_opts empty = { .n_threads = 0 };
	evc_verdict v;

	ck_assert_int_eq(evc_join(c, &empty, &v), 0);
	ck_assert_uint_eq(v.n_ended, 0);
	ck_assert(evc_joined(c));
	return c;
}

/* What was reported too late is nobody's verdict and stops nothing. */
static void
check_not_stopped(evc_coord *c)
{
	evc_verdict v;

	ck_assert(!evc_should_stop(c));
	ck_assert(evc_joined(c));
	ck_assert_int_eq(evc_join(c, NULL, &v), 0);
	ck_assert_int_eq(v.code, 0);
}

static void
join_after_clear(evc_coord *c)
{
	evc_verdict v;

	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_join(c, NULL, &v), EVC_DATA_LOSS);
	ck_assert_str_eq(v.error.text, "After clear");
	ck_assert_uint_eq(v.n_errors, 1);
}

START_TEST(P14_testRequestStopRaisesIfJoined)
{
	evc_coord *c = begin_joined(_i);

	ck_assert_int_eq(evc_request_stop(c, EVC_DATA_LOSS, "Too late"),
			 EVC_DATA_LOSS);
	check_not_stopped(c);
	ck_assert_int_eq(evc_clear_stop(c), 0);
	ck_assert(!evc_joined(c));
	ck_assert_int_eq(evc_request_stop(c, EVC_DATA_LOSS, "After clear"), 0);
	join_after_clear(c);
}
END_TEST

START_TEST(P15_testRequestStopRaisesIfJoined_ExcInfo)
{
	evc_coord *c = begin_joined(_i);
	struct reporter r = { c, NULL, 0, GUARDED, EVC_DATA_LOSS, "Too late",
			      -1 };

	/* evc_fail answers with the code at any time; the flag that stays down
	   shows that it came too late. */
	ck_assert_int_eq(evc_fail(c, EVC_DATA_LOSS, EIO, "Too %s", "late"),
			 EVC_DATA_LOSS);
	check_not_stopped(c);
	/* A guard hands back what it could not record. */
	ck_assert_int_eq(evc_guard(c, NULL, report_error, &r, NULL),
			 EVC_DATA_LOSS);
	ck_assert_int_eq(evc_guard(c, NULL, fail_plainly, &r, NULL),
			 EVC_DATA_LOSS);
	check_not_stopped(c);
	ck_assert_int_eq(evc_clear_stop(c), 0);
	ck_assert_int_eq(evc_fail(c, EVC_DATA_LOSS, EIO, "After %s", "clear"),
			 EVC_DATA_LOSS);
	join_after_clear(c);
}
END_TEST

T_MAIN("seed 001: errors and rounds", count_before, end_and_count,
       T_TIMES(P08_testJoinRaiseReportExcInfo, 2),
       T_TIMES(P09_testJoinRaiseReportException, 2),
       T_TIMES(P10_testJoinIgnoresOutOfRange, 2),
       T_TIMES(P11_testJoinIgnoresMyExceptionType, 2),
       T_TIMES(P12_testJoinRaiseReportExceptionUsingHandler, 2),
       T_TIMES(P12_with_bare_results, 2),
       T_TIMES(P13_testClearStopClearsExceptionToo, 2),
       T_TIMES(P14_testRequestStopRaisesIfJoined, 2),
       T_TIMES(P15_testRequestStopRaisesIfJoined_ExcInfo, 2))
