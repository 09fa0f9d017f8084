/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal for stacks: which ones are refused, and that the coordinator's
 * threads let it through.
 */
#include "../../support/api_util.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static void
nothing(int signo)
{
	(void)signo;
}

/* First of all: where all tests are one process it stays chosen. */
START_TEST(refusals_and_a_second_time)
{
	struct sigaction sa = { .sa_handler = nothing };

	REFUSED(EVC_INVALID_ARGUMENT, evc_stack_signal(-1));
	REFUSED(EVC_INVALID_ARGUMENT, evc_stack_signal(SIGKILL));
	REFUSED(EVC_INVALID_ARGUMENT, evc_stack_signal(4711));
	sigaction(SIGUSR1, &sa, NULL);
	NEEDS_BACKTRACE();
	REFUSED(EVC_ALREADY_EXISTS, evc_stack_signal(SIGUSR1));
	HAS(evc_last_error(), "has a handler");
	OK(evc_stack_signal(SIGRTMIN + 3));
	OK(evc_stack_signal(SIGRTMIN + 3));
	OK(evc_stack_signal(0));
	REFUSED(EVC_ALREADY_EXISTS, evc_stack_signal(SIGRTMIN + 4));
	HAS(evc_last_error(), "was chosen before");
}
END_TEST

static evc_status
look(evc_coord *c, void *arg)
{
	(void)c;
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return 0;
}

/* Also when who starts them blocks it. */
START_TEST(threads_of_a_coordinator_let_it_through)
{
	evc_coord *c;
	evc_verdict v;
	sigset_t all, old, seen;

	STACKS_BY(SIGRTMIN + 3);
	OK(evc_new(NULL, NULL, &c));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	OK(evc_thread_start(c, "looks", look, &seen, NULL, NULL));
	OK(evc_join(c, NULL, &v));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	ck_assert_int_eq(sigismember(&seen, SIGRTMIN + 3), 0);
	ck_assert_int_eq(sigismember(&seen, SIGUSR2), 1);
	OK(evc_free(c));
}
END_TEST

/* ---- one thread ---- */

struct other {
	atomic_int tid, over;
};

static void *
wait_there(void *arg)
{
	struct other *o = arg;

	atomic_store(&o->tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&o->over))
		t_sleep(0.001);
	return NULL;
}

START_TEST(the_stack_of_one_thread)
{
	struct other o = { 0 };
	char text[8192], small[10];
	size_t n;
	pthread_t t;

	/* Its own, with the signal or without it. */
	n = evc_stack_of((int)syscall(SYS_gettid), text, sizeof(text));
	ck_assert_uint_eq(n, strlen(text));
	ck_assert_int_eq(strncmp(text, "kernel: R", 9), 0);
	if (HAS_BACKTRACE)
		HAS(text, "\nstack: ");
	ck_assert_int_eq(text[n - 1], '\n');
	STACKS_BY(SIGRTMIN + 3);
	OK(pthread_create(&t, NULL, wait_there, &o));
	UNTIL(atomic_load(&o.tid) != 0);
	UNTIL((evc_stack_of(o.tid, text, sizeof(text)),
	       strstr(text, "\nstack: ") != NULL &&
		       strstr(text, "not available") == NULL));
	/* As snprintf. */
	ck_assert_uint_gt(evc_stack_of(o.tid, small, sizeof(small)), 9);
	ck_assert_int_eq(strncmp(small, "kernel: ", 8), 0);
	ck_assert_uint_eq(strlen(small), 9);
	ck_assert_uint_gt(evc_stack_of(o.tid, NULL, 0), 9);
	atomic_store(&o.over, 1);
	OK(pthread_join(t, NULL));
	/* Gone, of another process, and none at all. */
	evc_stack_of(o.tid, text, sizeof(text));
	HAS(text, "kernel: not known");
	HAS(text, "stack: not available: it has ended");
	evc_stack_of(getppid(), text, sizeof(text));
	HAS(text, "stack: not available: it has ended");
	evc_stack_of(0, text, sizeof(text));
	HAS(text, "0 is no thread");
	evc_stack_of(-7, text, sizeof(text));
	HAS(text, "-7 is no thread");
}
END_TEST

API_MAIN("stack_signal", refusals_and_a_second_time,
	 threads_of_a_coordinator_let_it_through, the_stack_of_one_thread)
