/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program leaves by the signal that has stopped it, and whoever waits for the
 * program sees that.
 */
#include "../../support/api_util.h"

#include <signal.h>
#include <sys/wait.h>

/* What a child that runs fn has as its status. */
static int
status_of(void (*fn)(int signo), int signo)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		/* libcheck has handlers of its own. */
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		fn(signo);
		_exit(7);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static bool
died_of(int status, int signo)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == signo;
}

/* A whole program that signo stops. */
static void
program(int signo)
{
	evc_verdict v = { 0 };
	evc_coord *c = NULL;
	evc_status st;

	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(evc_signals_start(c, NULL) == 0);
	CHILD(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL) == 0);
	if (signo != 0)
		raise(signo);
	else
		CHILD(evc_request_stop(c, 0, NULL) == 0);
	st = evc_join(c, NULL, &v);
	CHILD(v.stop.signo == signo);
	CHILD(evc_finish(c, st) == 0);
	evc_signals_raise(v.stop.signo);
}

START_TEST(it_is_seen_by_who_waits_for_the_program)
{
	ck_assert(died_of(status_of(program, SIGTERM), SIGTERM));
	ck_assert(died_of(status_of(program, SIGINT), SIGINT));
	/* Without a signal the call returns. */
	ck_assert_int_eq(status_of(program, 0), 7 << 8);
}
END_TEST

/* A member is late, so that evc_finish frees nothing. */
static void
late_program(int signo)
{
	evc_join_opts o = { .grace = EVC_NO_GRACE };
	struct sigaction now;
	evc_verdict v = { 0 };
	evc_coord *c = NULL;
	struct guest g = { 0 };
	evc_status st;

	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(evc_signals_start(c, NULL) == 0);
	CHILD(evc_dump_signal(c, SIGQUIT, 2, EVC_REPORT_TEXT) == 0);
	CHILD(evc_thread_start(c, "late", stay, &g, NULL, NULL) == 0);
	raise(signo);
	st = evc_join(c, &o, &v);
	CHILD(v.n_stragglers == 1);
	CHILD(evc_finish(c, st) == 124);
	CHILD(evc_should_stop(c));
	/* The handlers were given back, though c lives. */
	sigaction(SIGINT, NULL, &now);
	CHILD(now.sa_handler == SIG_DFL);
	sigaction(SIGQUIT, NULL, &now);
	CHILD(now.sa_handler == SIG_DFL);
	CHILD(evc_signals_stop(c) == -EVC_NOT_FOUND);
	CHILD(evc_signals_start(c, NULL) == 0);
	CHILD(evc_finish(c, st) == 124);
	evc_signals_raise(v.stop.signo);
}

START_TEST(handlers_are_given_back_though_members_are_late)
{
	ck_assert(died_of(status_of(late_program, SIGTERM), SIGTERM));
}
END_TEST

static void
blocked(int signo)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(signo, SIG_IGN);
	evc_signals_raise(signo);
}

static void *
raise_there(void *arg)
{
	evc_signals_raise(*(int *)arg);
	return NULL;
}

static void
on_a_thread(int signo)
{
	pthread_t t;

	CHILD(pthread_create(&t, NULL, raise_there, &signo) == 0);
	pthread_join(t, NULL);
}

/* A coordinator has the signals still. */
static void
while_owned(int signo)
{
	evc_coord *c = NULL;

	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(evc_signals_start(c, NULL) == 0);
	evc_signals_raise(signo);
}

START_TEST(blocked_ignored_on_a_thread_or_owned)
{
	ck_assert(died_of(status_of(blocked, SIGTERM), SIGTERM));
	ck_assert(died_of(status_of(blocked, SIGHUP), SIGHUP));
	ck_assert(died_of(status_of(on_a_thread, SIGINT), SIGINT));
	ck_assert(died_of(status_of(while_owned, SIGTERM), SIGTERM));
	ck_assert(died_of(status_of(evc_signals_raise, SIGKILL), SIGKILL));
	ck_assert(died_of(status_of(evc_signals_raise, SIGRTMIN + 1),
			  SIGRTMIN + 1));
}
END_TEST

START_TEST(where_the_signal_ends_nothing_the_status_says_it)
{
	/* As for process 1 of a container. */
	ck_assert_int_eq(status_of(evc_signals_raise, SIGCONT),
			 (128 + SIGCONT) << 8);
	ck_assert_int_eq(status_of(blocked, SIGCHLD), (128 + SIGCHLD) << 8);
}
END_TEST

START_TEST(what_is_no_signal_returns)
{
	ck_assert_int_eq(status_of(evc_signals_raise, 0), 7 << 8);
	ck_assert_int_eq(status_of(evc_signals_raise, -1), 7 << 8);
	ck_assert_int_eq(status_of(evc_signals_raise, 999), 7 << 8);
}
END_TEST

static int out[2];

static void
with_a_full_buffer(int signo)
{
	FILE *f = fdopen(out[1], "w");

	CHILD(f != NULL);
	fputs("not flushed", f);
	evc_signals_raise(signo);
}

START_TEST(nothing_is_flushed)
{
	char c;

	OK(pipe(out));
	ck_assert(died_of(status_of(with_a_full_buffer, SIGTERM), SIGTERM));
	close(out[1]);
	ck_assert_int_eq(read(out[0], &c, 1), 0);
	close(out[0]);
}
END_TEST

API_MAIN("raise", it_is_seen_by_who_waits_for_the_program,
	 handlers_are_given_back_though_members_are_late,
	 blocked_ignored_on_a_thread_or_owned,
	 where_the_signal_ends_nothing_the_status_says_it,
	 what_is_no_signal_returns, nothing_is_flushed)
