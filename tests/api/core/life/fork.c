/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fork rule (L5): in a child of fork every call but the questions is
 * refused, nothing waits, and the parent is not disturbed.
 *
 * A child says on stderr what was not as it should be, and leaves with 1.
 * Pointers that a child no longer needs are volatile, so that they stand on
 * its stack, where a leak checker looks for them.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <sys/wait.h>

static void
child_was_right(pid_t pid)
{
	int status = 0;

	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "the child ended with %#x", (unsigned)status);
}

START_TEST(L5_every_call_but_the_questions_is_refused)
{
	static const evc_task_class cls = { .name = "task" };
	struct ev_loop *loop = ev_loop_new(0), *other = ev_loop_new(0);
	struct ev_loop *volatile third = ev_loop_new(0);
	evc_coord *volatile c = new_coord(loop);
	evc_reactor *r = NULL, *s = NULL;
	evc_member_info info;
	evc_task task = { 0 }, begun = { 0 };
	evc_verdict v;
	evc_id id = 0, hold = 0;
	int fd = evc_stop_fd(c);
	pid_t pid;

	OK(evc_reactor_attach(c, "other", other, &r));
	OK(evc_task_begin(evc_home(c), &begun, &cls));
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	pid = fork();
	if (pid == 0) {
		CHILD_REFUSED(evc_request_stop(c, 0, "child"));
		CHILD_REFUSED(evc_request_stop(c, EVC_INTERNAL, "child"));
		CHILD_REFUSED(evc_fail(c, EVC_INTERNAL, 0, "child"));
		CHILD(evc_last_error()[0] != '\0');
		CHILD_REFUSED(evc_stop_fd(c));
		CHILD_REFUSED(evc_clear_stop(c));
		CHILD_REFUSED(evc_on_stop(c, "h", obey, NULL, NULL, &id));
		CHILD_REFUSED(evc_thread_start(c, "t", obey, NULL, NULL, &id));
		CHILD_REFUSED(
			evc_register_thread(c, "t", pthread_self(), NULL, &id));
		CHILD_REFUSED(evc_guard(c, "g", return_at_once, NULL, NULL));
		CHILD_REFUSED(evc_hold_begin(c, "h", NULL, &id));
		CHILD_REFUSED(evc_hold_end(c, hold));
		CHILD_REFUSED(evc_task_begin(evc_home(c), &task, &cls));
		CHILD_REFUSED(evc_member_remove(c, hold));
		CHILD_REFUSED(evc_member_get(c, hold, &info));
		CHILD_REFUSED(evc_raise_requested(c, NULL));
		CHILD_REFUSED(evc_reason_get(c, 0, &v.stop));
		CHILD_REFUSED(evc_join(c, NULL, &v));
		CHILD_REFUSED(evc_run(c, NULL, &v));
		CHILD_REFUSED(evc_signals_start(c, NULL));
		CHILD_REFUSED(evc_reactor_run(r));
		CHILD_REFUSED(evc_reactor_detach(r));
		CHILD_REFUSED(evc_reactor_attach(c, "x", third, &s));
		CHILD_REFUSED(evc_free(c));
		CHILD(id == 0 && s == NULL);
		CHILD(!evc_should_stop(c));
		CHILD(!evc_joined(c));
		_exit(0);
	}
	child_was_right(pid);

	/* the parent knows nothing of it */
	ck_assert(!evc_should_stop(c));
	ck_assert(!readable(fd));
	OK(evc_member_get(c, hold, &info));
	evc_task_end(&begun);
	OK(evc_hold_end(c, hold));
	OK(evc_request_stop(c, 0, "parent"));
	ck_assert(readable(fd));
	OK(evc_run(c, NULL, &v));
	ck_assert_str_eq(v.stop.text, "parent");
	ck_assert_uint_eq(v.n_ended, 1);
	OK(evc_reactor_detach(r));
	OK(evc_free(c));
	ev_loop_destroy(loop);
	ev_loop_destroy(other);
	ev_loop_destroy(third);
}
END_TEST

START_TEST(L5_waits_answer_at_once)
{
	evc_coord *volatile c = new_coord(NULL);
	pid_t pid = fork();

	if (pid == 0) {
		alarm((unsigned)T_LIMIT); /* a wait would end here */
		CHILD(!evc_wait_for_stop(c, INFINITY));
		CHILD(!evc_wait_for_stop(c, 1e9));
		CHILD(!evc_wait_for_stop(c, 0));
		_exit(0);
	}
	child_was_right(pid);
	OK(evc_free(c));
}
END_TEST

START_TEST(L5_should_stop_keeps_the_value_of_the_fork)
{
	evc_coord *volatile c = new_coord(NULL), *volatile d = new_coord(NULL);
	int go[2];
	pid_t pid;
	char byte;

	OK(pipe(go));
	OK(evc_request_stop(c, EVC_INTERNAL, "before the fork"));
	pid = fork();
	if (pid == 0) {
		/* what the parent does later is not seen here */
		CHILD(read(go[0], &byte, 1) == 1);
		CHILD(evc_should_stop(c));
		CHILD(evc_wait_for_stop(c, INFINITY));
		CHILD(!evc_should_stop(d));
		_exit(0);
	}
	OK(evc_request_stop(d, 0, NULL));
	ck_assert_int_eq(evc_join(c, NULL, NULL), EVC_INTERNAL);
	OK(evc_clear_stop(c));
	ck_assert_int_eq(write(go[1], "x", 1), 1);
	child_was_right(pid);
	close(go[0]);
	close(go[1]);
	FREE_ALL(c, d);
}
END_TEST

/* Threads that wait, join and reap in the parent while children come and go. */
START_TEST(L5_the_parent_at_work_is_not_disturbed)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *volatile c = new_coord(loop);
	struct joiner j;
	struct guest g = { 0 };
	pthread_t t;
	pid_t pid;
	int i, fd = evc_stop_fd(c);

	for (i = 0; i < 4; i++)
		OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	OK(pthread_create(&t, NULL, stay_thread, &g));
	OK(evc_register_thread(c, "stays", t, NULL, NULL));
	join_begin(&j, c, 0, 0);
	for (i = 0; i < 10; i++) {
		pid = fork();
		if (pid == 0) {
			CHILD_REFUSED(evc_request_stop(c, 0, "child"));
			CHILD_REFUSED(evc_join(c, NULL, NULL));
			CHILD_REFUSED(evc_free(c));
			CHILD(!evc_should_stop(c));
			_exit(0);
		}
		child_was_right(pid);
	}
	ck_assert(!evc_should_stop(c));
	ck_assert(!readable(fd));
	ck_assert(!atomic_load(&j.returned));
	atomic_store(&g.open, 1);
	OK(evc_request_stop(c, 0, NULL));
	OK(join_end(&j));
	ck_assert_uint_eq(j.v.n_ended, 5);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

START_TEST(a_child_may_make_a_coordinator_of_its_own)
{
	evc_coord *volatile c = new_coord(NULL);
	pid_t pid = fork();

	if (pid == 0) {
		evc_coord *own = NULL;

		CHILD(evc_new(NULL, NULL, &own) == 0);
		CHILD(evc_request_stop(own, 0, NULL) == 0);
		CHILD(evc_join(own, NULL, NULL) == 0);
		CHILD(evc_free(own) == 0);
		CHILD_REFUSED(evc_free(c));
		_exit(0);
	}
	child_was_right(pid);
	OK(evc_free(c));
}
END_TEST

API_MAIN("fork", L5_every_call_but_the_questions_is_refused,
	 L5_waits_answer_at_once, L5_should_stop_keeps_the_value_of_the_fork,
	 L5_the_parent_at_work_is_not_disturbed,
	 a_child_may_make_a_coordinator_of_its_own)
