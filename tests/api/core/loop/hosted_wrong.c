/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosted reactors in the wrong place, on the wrong thread, at the wrong time,
 * and with functions that do what they should not: each call is refused with a
 * clear status, and nothing breaks.
 */
#include "../../../support/api_util.h"
#include "../../../support/fork_util.h"
#include "../../../support/wait_util.h"
/* Last: its c would hide parameters of the others. */
#include "../../../support/hosted_util.h"

#include <ev.h>
#include <sys/wait.h>

static void
on_answer(evc_coord *of, const evc_verdict *v, void *arg)
{
	(void)of;
	(void)v;
	*(bool *)arg = true;
}

/* ---- wrong calls ---- */

START_TEST(wrong_arguments_are_refused)
{
	evc_reactor *r;
	int fd;

	ck_assert_int_eq(evc_reactor_foreign(NULL, NULL, &fd, &r),
			 -EVC_INVALID_ARGUMENT);
	REFUSED(EVC_INVALID_ARGUMENT, evc_reactor_foreign(c, NULL, NULL, &r));
	REFUSED(EVC_INVALID_ARGUMENT, evc_reactor_foreign(c, NULL, &fd, NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_reactor_turn(NULL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_reactor_host_runs(NULL, true));
}
END_TEST

static void *
turn_elsewhere(void *arg)
{
	*(evc_status *)arg = evc_reactor_turn(t.r);
	return NULL;
}

START_TEST(a_turn_of_another_reactor_is_refused)
{
	struct ev_loop *loop = (ev_loop_new)(0);
	struct hosted other;
	evc_reactor *r;
	pthread_t thread;
	evc_status st = 0;

	OK(pthread_create(&thread, NULL, turn_elsewhere, &st));
	OK(pthread_join(thread, NULL));
	ck_assert_int_eq(st, -EVC_FAILED_PRECONDITION);
	OK((evc_reactor_attach)(c, "libev", loop, &r));
	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_turn(r));
	OK((evc_reactor_detach)(r));
	(ev_loop_destroy)(loop);
	/* An event of a host may come after the end of its reactor. */
	hosted_init(&other, &h, c, "short");
	host_del(&h, other.fd);
	OK((evc_reactor_detach)(other.r));
	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_turn(other.r));
	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_host_runs(other.r, true));
}
END_TEST

static void
says_what_to_do(void)
{
	HAS(evc_last_error(), "(evc_glib_run ...), or evc_join_start with "
			      "EVC_JOIN_UNTIL_STOP");
}

START_TEST(calls_that_run_a_loop_say_what_to_do_instead)
{
	evc_reactor *r;
	int fd;

	REFUSED(EVC_FAILED_PRECONDITION, (evc_run)(c, NULL, NULL));
	says_what_to_do();
	REFUSED(EVC_FAILED_PRECONDITION, (evc_join)(c, NULL, NULL));
	says_what_to_do();
	REFUSED(EVC_FAILED_PRECONDITION, (evc_reactor_run)(t.r));
	says_what_to_do();
	OK(evc_reactor_foreign(c, "a name of more than forty-seven bytes, cut",
			       &fd, &r));
	REFUSED(EVC_FAILED_PRECONDITION, (evc_reactor_run)(r));
	says_what_to_do();
}
END_TEST

static void *
join_elsewhere(void *arg)
{
	*(evc_status *)arg = (evc_join)(c, NULL, NULL);
	return NULL;
}

START_TEST(another_thread_may_join)
{
	pthread_t thread;
	evc_status st = -1;

	OK(pthread_create(&thread, NULL, join_elsewhere, &st));
	OK(evc_request_stop(c, 0, NULL));
	host_settle(&h);
	OK(pthread_join(thread, NULL));
	ck_assert_int_eq(st, 0);
}
END_TEST

/* ---- detach ---- */

static void
on_task_stop(evc_task *task, void *arg)
{
	(void)arg;
	evc_task_end(task);
}

START_TEST(a_hosted_home_may_go_and_come_back)
{
	evc_task_class cls = { .on_stop = on_task_stop };
	evc_task task = { 0 };
	int fds = t_count_fds();

	OK(evc_task_begin(t.r, &task, &cls));
	REFUSED(EVC_FAILED_PRECONDITION, (evc_reactor_detach)(t.r));
	evc_task_end(&task);
	host_del(&h, t.fd);
	OK((evc_reactor_detach)(t.r));
	ck_assert_int_eq(t_count_fds(), fds - 3);
	ck_assert_ptr_null(evc_home(c));
	REFUSED(EVC_FAILED_PRECONDITION, evc_task_begin(evc_home(c), &task,
							 &cls));
	/* Without a hosted reactor this thread joins as any other. */
	OK(evc_request_stop(c, 0, NULL));
	OK((evc_join)(c, NULL, NULL));
	OK(evc_clear_stop(c));
	hosted_init(&t, &h, c, "again");
	ck_assert_ptr_eq(evc_home(c), t.r);
	OK(evc_task_begin(evc_home(c), &task, &cls));
	evc_task_end(&task);
}
END_TEST

/* The helper ends a drain that begins without a home; the next one is the
   home's, and when the home goes, the helper's again. */
START_TEST(a_drain_ends_whether_the_home_comes_or_goes)
{
	evc_id hold;
	int i;

	for (i = 0; i < 3; i++) {
		host_del(&h, t.fd);
		OK((evc_reactor_detach)(t.r));
		OK(evc_hold_begin(c, "hold", NULL, &hold));
		OK(evc_request_drain(c, i == 1 ? 0.05 : 20, NULL));
		let_come();
		hosted_init(&t, &h, c, "home");
		host_settle(&h);
		if (i != 1)
			OK(evc_hold_end(c, hold));
		HOST_UNTIL(&h, evc_should_stop(c));
		if (i == 1)
			OK(evc_hold_end(c, hold));
		host_settle(&h);
		OK(evc_clear_stop(c));
		host_settle(&h);
	}
}
END_TEST

/* ---- functions that do what they should not ---- */

static int n_called;

static evc_status
detach_inside(evc_coord *of, void *arg)
{
	(void)of;
	(void)arg;
	n_called++;
	REFUSED(EVC_FAILED_PRECONDITION, (evc_reactor_detach)(t.r));
	REFUSED(EVC_FAILED_PRECONDITION, (evc_join)(c, NULL, NULL));
	REFUSED(EVC_FAILED_PRECONDITION, evc_member_wait(c, 1, 1, NULL));
	return 0;
}

START_TEST(inside_a_turn_nothing_waits_and_nothing_is_detached)
{
	bool came = false;

	OK(evc_on_stop(c, NULL, detach_inside, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, on_answer, &came, NULL));
	HOST_UNTIL(&h, came);
	ck_assert_int_eq(n_called, 1);
}
END_TEST

static void
free_all(evc_coord *of, const evc_verdict *v, void *arg)
{
	(void)v;
	(void)arg;
	n_called++;
	host_del(&h, t.fd);
	OK((evc_free)(of));
	c = NULL;
}

START_TEST(the_answer_of_a_join_may_free_the_coordinator_inside_the_turn)
{
	int fds = t_count_fds();

	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, free_all, NULL, NULL));
	HOST_UNTIL(&h, c == NULL);
	ck_assert_int_eq(t.st, 0);
	REFUSED(EVC_FAILED_PRECONDITION, evc_reactor_turn(t.r));
	ck_assert_int_eq(t_settle_fds(fds - 3), fds - 3);
}
END_TEST

static void
free_in_a_nested_turn(evc_coord *of, const evc_verdict *v, void *arg)
{
	(void)v;
	(void)of;
	n_called++;
	OK(evc_join_start(c, free_all, arg, NULL));
	HOST_UNTIL(&h, c == NULL);
}

START_TEST(a_turn_inside_a_turn_may_free_the_coordinator)
{
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join_start(c, free_in_a_nested_turn, NULL, NULL));
	HOST_UNTIL(&h, c == NULL);
	ck_assert_int_eq(n_called, 2);
	host_settle(&h);
}
END_TEST

/* ---- fork children ---- */

static void
in_child(void)
{
	struct pollfd p = { .fd = t.fd, .events = POLLIN };
	evc_reactor *r;
	int fd;

	CHILD(evc_reactor_turn(t.r) == -EVC_FAILED_PRECONDITION);
	CHILD(evc_reactor_turn(t.r) == -EVC_FAILED_PRECONDITION);
	CHILD((evc_reactor_detach)(t.r) == -EVC_FAILED_PRECONDITION);
	CHILD(evc_reactor_foreign(c, "x", &fd, &r) == -EVC_FAILED_PRECONDITION);
	/* The ring is the parent's, and stays. */
	CHILD(poll(&p, 1, 0) == 1);
}

static evc_status
tick(evc_coord *of, void *arg)
{
	(void)of;
	++*(int *)arg;
	return 0;
}

START_TEST(a_fork_child_leaves_the_descriptors_of_its_parent_alone)
{
	int ticks = 0, status;
	pid_t pid;

	OK(evc_looper_start(c, "tick", 0.005, tick, &ticks, NULL, NULL));
	HOST_UNTIL(&h, ticks > 2);
	OK(evc_on_stop(c, NULL, tick, &ticks, NULL, NULL));
	ticks = 0;
	UNTIL(host_readable(t.fd));
	pid = fork();
	if (pid == 0) {
		in_child();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(host_readable(t.fd));
	HOST_UNTIL(&h, ticks > 2);
	OK(evc_request_stop(c, 0, NULL));
	host_settle(&h);
}
END_TEST

static pid_t forked;

static evc_status
fork_inside(evc_coord *of, void *arg)
{
	(void)of;
	(void)arg;
	if (forked == 0)
		forked = fork();
	n_called++;
	return 0;
}

START_TEST(a_fork_inside_a_turn_returns_to_the_child_with_a_status)
{
	int status;

	OK(evc_on_stop(c, NULL, fork_inside, NULL, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	HOST_UNTIL(&h, n_called == 1);
	if (forked == 0) {
		CHILD(t.st == -EVC_FAILED_PRECONDITION);
		CHILD_REFUSED(evc_reactor_turn(t.r));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(forked, &status, 0), forked);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(t.st, 0);
	host_settle(&h);
}
END_TEST

/* ---- nothing left ---- */

START_TEST(without_descriptors_there_is_no_reactor)
{
	struct rlimit few;
	evc_reactor *r;
	int fd, more, low;

	for (more = 0; more < 3; more++) {
		low = dup(0);
		close(low);
		getrlimit(RLIMIT_NOFILE, &usual_nofile);
		few = usual_nofile;
		few.rlim_cur = (rlim_t)(low + more);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		REFUSED(EVC_RESOURCE_EXHAUSTED,
			evc_reactor_foreign(c, "x", &fd, &r));
		give_descriptors();
		/* All that was taken was given back. */
		fd = dup(0);
		ck_assert_int_eq(fd, low);
		close(fd);
	}
	OK(evc_reactor_foreign(c, "x", &fd, &r));
}
END_TEST

/* ---- a loop that hangs, and one that has nothing to do ---- */

START_TEST(a_report_accuses_a_host_only_of_the_time_since_it_was_rung)
{
	static char text[1 << 16];
	const char *at;
	double since;

	host_settle(&h);
	/* The host is idle, which is no silence. */
	t_sleep(0.3);
	OK(evc_request_stop(c, 0, NULL));
	t_sleep(0.05);
	ck_assert_uint_lt(report_text(c, text, sizeof(text)), sizeof(text));
	HAS(text, "loop \"ui\"");
	HAS(text, "has not turned since the stop");
	at = strstr(text, ", for at least ");
	ck_assert_ptr_nonnull(at);
	since = atof(at + strlen(", for at least "));
	ck_assert_msg(since >= 0.03, "%s", at);
	/* Not the time of the idle host. */
	ck_assert_msg(since < 0.3 || t_now() - since < 0, "%s", at);
	host_settle(&h);
	ck_assert_uint_lt(report_text(c, text, sizeof(text)), sizeof(text));
	ck_assert_ptr_null(strstr(text, "has not turned"));
}
END_TEST

API_MAIN_WITH("hosted_wrong", set_up, tear_down, wrong_arguments_are_refused,
	      a_turn_of_another_reactor_is_refused,
	      calls_that_run_a_loop_say_what_to_do_instead,
	      another_thread_may_join, a_hosted_home_may_go_and_come_back,
	      a_drain_ends_whether_the_home_comes_or_goes,
	      inside_a_turn_nothing_waits_and_nothing_is_detached,
	      the_answer_of_a_join_may_free_the_coordinator_inside_the_turn,
	      a_turn_inside_a_turn_may_free_the_coordinator,
	      a_fork_child_leaves_the_descriptors_of_its_parent_alone,
	      a_fork_inside_a_turn_returns_to_the_child_with_a_status,
	      without_descriptors_there_is_no_reactor,
	      a_report_accuses_a_host_only_of_the_time_since_it_was_rung)
