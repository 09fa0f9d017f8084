/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks that are ended where they cannot be, or whose memory has gone while they
 * were in flight: they never end, and whoever waits for them hears why.
 */
#include "../../support/report_util.h"

static const evc_task_class cls = { .name = "upload" };
static const evc_join_opts none = { .grace = EVC_NO_GRACE };

static void *
end_elsewhere(void *arg)
{
	evc_task_end(arg);
	return evc_last_error()[0] != '\0' ? arg : NULL;
}

static void
is_named(evc_coord *c, const char *why)
{
	evc_verdict v;

	ck_assert_int_eq(evc_join(c, &none, &v), EVC_DEADLINE_EXCEEDED);
	HAS(v.error.text, why);
	HAS(whole(evc_explain, c), why);
	HAS(whole(report_text, c), why);
	REFUSED(EVC_FAILED_PRECONDITION, evc_clear_stop(c));
	HAS(evc_last_error(), why);
}

START_TEST(ended_on_another_thread)
{
	static const char why[] = "(evc_task_end on another thread)";
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_task t = { 0 };
	pthread_t other;
	void *refused;

	OK(evc_task_begin(evc_home(c), &t, &cls));
	ck_assert_ptr_null(strstr(whole(evc_explain, c), why));
	OK(pthread_create(&other, NULL, end_elsewhere, &t));
	OK(pthread_join(other, &refused));
	ck_assert_ptr_nonnull(refused);
	OK(evc_request_stop(c, 0, NULL));
	is_named(c, why);
	evc_task_end(&t);
	OK(evc_join(c, NULL, NULL));
	/* It is forgotten with the last one. */
	OK(evc_clear_stop(c));
	OK(evc_task_begin(evc_home(c), &t, &cls));
	ck_assert_ptr_null(strstr(whole(evc_explain, c), why));
	evc_task_end(&t);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

/* Which of three is overwritten; and are the others ended before the stop? */
START_TEST(overwritten_while_in_flight)
{
	static const char why[] = "(a task was freed or used again)";
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_task t[3];
	int i, which = _i % 3;
	bool before = _i >= 3;

	memset(t, 0, sizeof(t));
	for (i = 0; i < 3; i++)
		OK(evc_task_begin(evc_home(c), &t[i], &cls));
	memset(&t[which], 0, sizeof(t[which]));
	evc_task_end(&t[which]); /* to it, none that has begun */
	for (i = 0; i < 3 && before; i++)
		evc_task_end(&t[i]);
	OK(evc_request_stop(c, 0, NULL));
	is_named(c, why);
	for (i = 0; i < 3; i++)
		evc_task_end(&t[i]);
	is_named(c, why);
	/* With the loop it is over. */
	ev_loop_destroy(loop);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

T_MAIN("tasks_wrong", NULL, NULL,
       T_ONCE(ended_on_another_thread),
       T_TIMES(overwritten_while_in_flight, 6))
