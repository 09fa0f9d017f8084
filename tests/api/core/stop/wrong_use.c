/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wrong use: every call refuses it with a code and a text, changes nothing,
 * and leaves the object usable.  What runs out (descriptors, threads) stands
 * in exhausted.c.
 */
#include "../../../support/api_util.h"

#include <ev.h>

static evc_coord *c;

static void
setup(void)
{
	c = new_coord(NULL);
}

/* As usable as before: nothing lives, nothing was asked for or recorded. */
static void
teardown(void)
{
	evc_verdict v;
	evc_reason r;

	ck_assert(!evc_should_stop(c));
	REFUSED(EVC_NOT_FOUND, evc_reason_get(c, 0, &r));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_free(c));
}

START_TEST(NULL_is_refused_by_every_call)
{
	static const evc_task_class cls = { .name = "task" };
	evc_member_info info;
	evc_reactor *r = NULL;
	evc_task t = { 0 };
	evc_reason why;
	evc_coord *made = NULL;
	struct ev_loop *loop = ev_loop_new(0);

	setup();
	REFUSED(EVC_INVALID_ARGUMENT, evc_new(NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_new(loop, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_request_stop(NULL, 0, "x"));
	REFUSED(EVC_INVALID_ARGUMENT, (evc_request_stop)(NULL, 0, "x"));
	REFUSED(EVC_INVALID_ARGUMENT, evc_fail(NULL, EVC_INTERNAL, 0, "x"));
	REFUSED(EVC_INVALID_ARGUMENT, evc_stop_fd(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_clear_stop(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_raise_requested(NULL, &why));
	REFUSED(EVC_INVALID_ARGUMENT, evc_reason_get(NULL, 0, &why));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_on_stop(NULL, "h", obey, NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_on_stop(c, "h", NULL, NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_thread_start(NULL, "t", obey, NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_thread_start(c, "t", NULL, NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_register_thread(NULL, "t", pthread_self(), NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_guard(NULL, "g", return_at_once, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_guard(c, "g", NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_hold_begin(NULL, "h", NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_hold_end(NULL, 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_remove(NULL, 1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_get(NULL, 1, &info));
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_each(NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_member_each(c, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_run(NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_join(NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_join_start(NULL, NULL, NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_signals_start(NULL, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_signals_stop(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_reactor_attach(NULL, "r", loop, &r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_reactor_attach(c, "r", NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_reactor_attach(c, "r", loop, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_reactor_run(NULL));
	OK(evc_reactor_detach(NULL));
	OK(evc_abandon(NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_task_begin(NULL, &t, &cls));
	evc_task_end(NULL);
	ck_assert_ptr_null(r);
	ck_assert_ptr_null(made);
	teardown();
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_config_that_makes_no_sense_makes_no_coordinator)
{
	static const evc_status clean_out[] = { 1000 }, clean_in[] = { 20 };
	char name[49];
	const evc_config wrong[] = { { .grace = NAN },
				     { .grace = -2 },
				     { .grace = -0.5 },
				     { .grace = -INFINITY },
				     { .max_reasons = 255 },
				     { .flags = 1u << 3 },
				     { .flags = 1u << 31 },
				     { .n_clean = 1 },
				     { .clean = clean_out, .n_clean = 1 },
				     { .clean = clean_in,
				       .n_clean = 1,
				       .flags = EVC_NO_CLEAN_CODES },
				     { .reserved_ = { 1 } },
				     { .reserved_ = { 0, 0, 0, 0, 0, 0, 0,
						      1 } } };
	int before = t_count_fds();
	evc_config right;
	size_t i;

	memset(name, 'n', 48);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		evc_coord *made = (evc_coord *)&before;
		evc_status st = evc_new(NULL, &wrong[i], &made);

		ck_assert_msg(st == -EVC_INVALID_ARGUMENT, "case %zu: %d", i,
			      st);
		ck_assert_str_ne(evc_last_error(), "");
		ck_assert_ptr_eq(made, (evc_coord *)&before);
	}
	ck_assert_int_eq(t_count_fds(), before);

	name[47] = '\0'; /* 47 bytes are allowed */
	memset(&right, 0, sizeof(right));
	right.name = name;
	right.max_reasons = 254;
	right.grace = INFINITY;
	c = new_coord_with(NULL, &right);
	teardown();
}
END_TEST

/* Every way to hand in member options. */
static evc_status
hand_in(int way, const char *name, const evc_member_opts *o, evc_id *id)
{
	switch (way) {
	case 0:
		return evc_thread_start(c, name, obey, NULL, o, id);
	case 1:
		return evc_hold_begin(c, name, o, id);
	case 2:
		return evc_on_stop(c, name, obey, NULL, o, id);
	case 3:
		return evc_register_thread(c, name, pthread_self(), o, id);
	default:
		return evc_guard(c, name, return_at_once, NULL, o);
	}
}

static void
nothing(void *arg)
{
	(void)arg;
}

START_TEST(member_options_that_make_no_sense_are_refused)
{
	const evc_member_opts wrong[] = {
		{ .grace = NAN },
		{ .grace = -2 },
		{ .grace = -INFINITY },
		{ .flags = 1u << 9 },
		{ .flags = 1u << 31 },
		{ .reserved_ = { 1 } },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } },
		/* beside what is right */
		{ .flags = 1u << 31 | EVC_KICK },
		{ .unblock = nothing, .flags = 1u << 31 },
		/* what is for loopers */
		{ .flags = EVC_OWN_THREAD },
		{ .flags = EVC_PAUSED },
		{ .flags = EVC_FLUSH },
		{ .missed = 1 },
		{ .start = obey },
		{ .stop = obey },
		{ .jitter = 0.5 }
	};

	setup();
	wrong_options_are_refused(hand_in, 5, wrong,
				  sizeof(wrong) / sizeof(wrong[0]));
	teardown();
}
END_TEST

/* A thread can be kicked; a hold and a hook have none of their own. */
START_TEST(KICK_is_for_threads)
{
	const evc_member_opts kick = { .flags = EVC_KICK };
	evc_id id = 77;

	setup();
	REFUSED(EVC_INVALID_ARGUMENT, hand_in(1, "hold", &kick, &id));
	REFUSED(EVC_INVALID_ARGUMENT, hand_in(2, "hook", &kick, &id));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_looper_start(c, "looper", 1, obey, NULL, &kick, &id));
	ck_assert_uint_eq(id, 77);
	teardown();
}
END_TEST

static void
no_verdict(evc_coord *unused, const evc_verdict *v, void *arg)
{
	(void)unused;
	(void)v;
	++*(int *)arg;
}

START_TEST(join_options_that_make_no_sense_are_refused)
{
	const evc_join_opts wrong[] = {
		{ .grace = NAN },
		{ .grace = -2 },
		{ .grace = -INFINITY },
		{ .flags = 1u << 3 },
		{ .flags = 1u << 31 },
		{ .n_threads = 1 },
		{ .reserved_ = { 1 } },
		{ .reserved_ = { 0, 0, 0, 0, 0, 0, 0, 1 } }
	};
	struct ev_loop *loop = ev_loop_new(0);
	int called = 0;
	size_t i;

	c = new_coord(loop);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		evc_verdict v = { .code = 77 };

		REFUSED(EVC_INVALID_ARGUMENT, evc_join(c, &wrong[i], &v));
		REFUSED(EVC_INVALID_ARGUMENT, evc_run(c, &wrong[i], &v));
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_join_start(c, no_verdict, &called, &wrong[i]));
		ck_assert_int_eq(v.code, 77);
	}
	ev_run(loop, EVRUN_NOWAIT);
	ck_assert_int_eq(called, 0);
	ck_assert(!evc_joined(c));
	teardown();
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_reactor_of_another_coordinator_is_refused)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *other = new_coord(loop);
	evc_member_opts mo = { .reactor = evc_home(other) };
	evc_join_opts jo = { .reactor = evc_home(other) };
	evc_id id = 77;

	setup();
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_on_stop(c, "h", obey, NULL, &mo, &id));
	ck_assert_int_lt(evc_join(c, &jo, NULL), 0);
	ck_assert_uint_eq(id, 77);
	teardown();
	OK(evc_free(other));
	ev_loop_destroy(loop);
}
END_TEST

static void *
refused_there(void *arg)
{
	char *text = arg;
	size_t before = strlen(evc_last_error());

	if (evc_hold_end(c, 4711) != -EVC_NOT_FOUND || before != 0)
		return "wrong";
	snprintf(text, 200, "%s", evc_last_error());
	return NULL;
}

START_TEST(the_text_of_a_refusal_is_each_threads_own)
{
	char here[200], there[200] = "";
	void *wrong;
	pthread_t t;

	setup();
	REFUSED(EVC_INVALID_ARGUMENT, evc_hold_begin(NULL, "h", NULL, NULL));
	snprintf(here, sizeof(here), "%s", evc_last_error());
	OK(pthread_create(&t, NULL, refused_there, there));
	OK(pthread_join(t, &wrong));
	ck_assert_ptr_null(wrong);
	ck_assert_str_ne(there, "");
	ck_assert_str_ne(there, here);
	ck_assert_str_eq(evc_last_error(), here);
	OK(evc_clear_stop(c)); /* what succeeds leaves it as it is */
	ck_assert_str_eq(evc_last_error(), here);
	teardown();
}
END_TEST

/* Refused under STRICT_SETUP: an error with the name of the function. */
static void
recorded(evc_status code, const char *func)
{
	evc_reason r;

	ck_assert(evc_should_stop(c));
	ck_assert_int_eq(evc_raise_requested(c, &r), code);
	ck_assert_str_eq(r.func, func);
	ck_assert_str_ne(r.text, "");
	ck_assert_int_eq(evc_join(c, NULL, NULL), code);
	OK(evc_clear_stop(c));
}

/* A call inside them is refused, and they succeed. */
START_TEST(what_succeeds_leaves_the_text_as_it_is)
{
	char buf[2000];
	evc_queue *q;

	setup();
	OK(evc_queue_new(c, "q", 4, NULL, &q));
	OK(evc_request_stop(c, 0, "the test"));
	REFUSED(EVC_INVALID_ARGUMENT, evc_hold_begin(NULL, "h", NULL, NULL));
	(void)evc_refuse(0, "this one");
	ck_assert_uint_gt(evc_explain(c, buf, sizeof(buf)), 0);
	ck_assert_uint_gt(evc_report(c, EVC_REPORT_TEXT, buf, sizeof(buf)), 0);
	OK(evc_queue_drain(q, 0));
	ck_assert_str_eq(evc_last_error(), "this one");
	OK(evc_queue_free(q));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(NULL_is_no_text)
{
	/* Without their attributes, by which a compiler would object. */
	evc_status (*refuse)(evc_status, const char *, ...) = evc_refuse;
	void (*say)(evc_coord *, int, const evc_reason *, const char *, ...) =
		evc_log;
	const char *volatile none = NULL;

	setup();
	ck_assert_int_eq(refuse(-EVC_NOT_FOUND, none), -EVC_NOT_FOUND);
	ck_assert_str_eq(evc_last_error(), "");
	say(c, EVC_LOG_INFO, NULL, none);
	evc_log_stderr(EVC_LOG_INFO, none, NULL, NULL);
	evc_log_syslog(EVC_LOG_INFO, none, NULL, NULL);
	REFUSED(EVC_INVALID_ARGUMENT, evc_may_wait(NULL, none));
	HAS(evc_last_error(), "evc_may_wait");
	teardown();
}
END_TEST

START_TEST(STRICT_SETUP_reports_what_is_refused)
{
	evc_config cfg = { .flags = EVC_STRICT_SETUP };
	evc_member_opts wrong = { .unblock = nothing, .jitter = 0.5 };
	evc_member_opts huge = { .stack = T_HUGE_STACK };

	c = new_coord_with(NULL, &cfg);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_thread_start(c, "t", NULL, NULL, NULL, NULL));
	recorded(EVC_INVALID_ARGUMENT, "evc_thread_start");
	REFUSED(EVC_RESOURCE_EXHAUSTED,
		evc_thread_start(c, "t", obey, NULL, &huge, NULL));
	recorded(EVC_RESOURCE_EXHAUSTED, "evc_thread_start");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_register_thread(c, "t", pthread_self(), &wrong, NULL));
	recorded(EVC_INVALID_ARGUMENT, "evc_register_thread");
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_on_stop(c, "h", NULL, NULL, NULL, NULL));
	recorded(EVC_INVALID_ARGUMENT, "evc_on_stop");

	/* what is refused only because of the stop is no error */
	OK(evc_request_stop(c, 0, NULL));
	REFUSED(EVC_CANCELLED,
		evc_thread_start(c, "t", obey, NULL, NULL, NULL));
	REFUSED(EVC_CANCELLED, evc_hold_begin(c, "h", NULL, NULL));
	OK(evc_raise_requested(c, NULL));
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(a_status_has_a_name)
{
	ck_assert_str_eq(evc_status_name(EVC_OK), "OK");
	ck_assert_str_eq(evc_status_name(EVC_DEADLINE_EXCEEDED),
			 "DEADLINE_EXCEEDED");
	ck_assert_str_eq(evc_status_name(EVC_UNAUTHENTICATED),
			 "UNAUTHENTICATED");
	ck_assert_str_eq(evc_status_name(-EVC_NOT_FOUND), "NOT_FOUND");
	ck_assert_str_eq(evc_status_name(17), "APPLICATION");
	ck_assert_str_eq(evc_status_name(255), "APPLICATION");
	ck_assert_str_eq(evc_status_name(256), "?");
	ck_assert_str_eq(evc_version(), EVC_VERSION_STRING);
}
END_TEST

API_MAIN("wrong_use", NULL_is_refused_by_every_call,
	 a_config_that_makes_no_sense_makes_no_coordinator,
	 member_options_that_make_no_sense_are_refused,
	 KICK_is_for_threads,
	 join_options_that_make_no_sense_are_refused,
	 a_reactor_of_another_coordinator_is_refused,
	 the_text_of_a_refusal_is_each_threads_own,
	 what_succeeds_leaves_the_text_as_it_is, NULL_is_no_text,
	 STRICT_SETUP_reports_what_is_refused, a_status_has_a_name)
