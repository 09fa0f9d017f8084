/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal for stacks: which ones are refused, and that the coordinator's
 * threads let it through.
 */
#include "../../support/api_util.h"

#include <signal.h>

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

API_MAIN("stack_signal", refusals_and_a_second_time,
	 threads_of_a_coordinator_let_it_through)
