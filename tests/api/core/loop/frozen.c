/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that stands still for longer than its grace: nobody in it is called
 * late for that.
 */
#include "../../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

enum { BY_JOIN, BY_RUN, BY_CHILD, N_WAYS };

/* Ends a tenth of a second of its own after the stop. */
static evc_status
take_time(evc_coord *c, void *arg)
{
	int i;

	evc_wait_for_stop(c, INFINITY);
	if (write(*(int *)arg, "s", 1) != 1)
		return EVC_INTERNAL;
	for (i = 0; i < 10; i++)
		t_sleep(0.01);
	return 0;
}

/* The same, by another process. */
static pid_t
start_child(int fd)
{
	sigset_t set;
	pid_t pid;
	int signo, i;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	sigwait(&set, &signo);
	if (write(fd, "s", 1) != 1)
		_exit(1);
	for (i = 0; i < 10; i++)
		t_sleep(0.01);
	_exit(0);
}

/* In a process group of its own: what its join says. */
static void
be_frozen(int way, int fd)
{
	struct ev_loop *loop = way == BY_RUN ? ev_loop_new(0) : NULL;
	evc_member_opts own = { .grace = 1 };
	evc_join_opts o = { .grace = way == BY_CHILD ? 60 : 1 };
	evc_verdict v;
	evc_coord *c;
	evc_status st;
	pid_t pid;

	setpgid(0, 0);
	CHILD(evc_new(loop, NULL, &c) == 0);
	if (way == BY_CHILD) {
		pid = start_child(fd);
		CHILD(evc_child_add(c, "child", pid, &own, NULL) == 0);
	} else
		CHILD(evc_thread_start(c, "slow", take_time, &fd, NULL,
				       NULL) == 0);
	CHILD(evc_request_stop(c, 0, NULL) == 0);
	st = way == BY_RUN ? evc_run(c, &o, &v) : evc_join(c, &o, &v);
	if (st != 0)
		fprintf(stderr, "way %d: %s\n", way, v.error.text);
	_exit(st != 0);
}

START_TEST(who_stood_still_is_not_late)
{
	pid_t pid[N_WAYS];
	int way, status, fd[2];
	char byte;

	for (way = 0; way < N_WAYS; way++) {
		ck_assert_int_eq(pipe(fd), 0);
		pid[way] = fork();
		ck_assert_int_ge(pid[way], 0);
		if (pid[way] == 0)
			be_frozen(way, fd[1]);
		/* It is in the middle of its end. */
		ck_assert_int_eq(read(fd[0], &byte, 1), 1);
		OK(kill(-pid[way], SIGSTOP));
		close(fd[0]);
		close(fd[1]);
	}
	t_sleep(1.8);
	for (way = 0; way < N_WAYS; way++)
		OK(kill(-pid[way], SIGCONT));
	for (way = 0; way < N_WAYS; way++) {
		ck_assert_int_eq(waitpid(pid[way], &status, 0), pid[way]);
		ck_assert_msg(status == 0, "way %d: status %#x", way, status);
	}
}
END_TEST

/* A loop that is held up across the end is given the same, once. */
static void
hold_up(struct ev_loop *loop, ev_timer *t, int revents)
{
	(void)loop;
	(void)revents;
	t_sleep(*(double *)t->data);
}

START_TEST(an_end_is_put_off_once)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_join_opts o = { .grace = 0.4 };
	double nap = 0.7, start;
	evc_id id;
	evc_verdict v;
	ev_timer t;

	OK(evc_hold_begin(c, "stuck", NULL, &id));
	ev_timer_init(&t, hold_up, 0.05, 0.05);
	t.data = &nap;
	ev_timer_start(loop, &t);
	OK(evc_request_stop(c, 0, NULL));
	start = t_now();
	ck_assert_int_eq(evc_run(c, &o, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(t_now() - start, 1.0);
	ck_assert_double_lt(t_now() - start, T_LIMIT);
	OK(evc_hold_end(c, id));
	ev_timer_stop(loop, &t);
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

API_MAIN("frozen", who_stood_still_is_not_late, an_end_is_put_off_once)
