/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kick signal: which one it is and what its handler is like.  It is chosen
 * once in a process, so each test is a process in which nobody has.
 */
#include "../support/rouse_util.h"

static void
own_handler(int signo)
{
	(void)signo;
}

static void
takes(int signo)
{
	struct sigaction sa;

	CHILD(evc_kick_signal(signo) == 0);
	CHILD(sigaction(signo, NULL, &sa) == 0);
	CHILD(sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN);
	CHILD((sa.sa_flags & SA_RESTART) == 0);
}

static void
choose(void)
{
	takes(SIGUSR1);
	CHILD(evc_kick_signal(SIGUSR1) == 0);
	CHILD(evc_kick_signal(SIGUSR2) == -EVC_ALREADY_EXISTS);
	CHILD(evc_last_error()[0] != '\0');
	takes(SIGUSR1);
}

START_TEST(a_free_signal_is_taken_once_for_all)
{
	in_fresh_process(choose);
}
END_TEST

static void
choose_taken(void)
{
	struct sigaction sa = { .sa_handler = own_handler }, now;

	CHILD(sigaction(SIGUSR1, &sa, NULL) == 0);
	sa.sa_handler = SIG_IGN;
	CHILD(sigaction(SIGUSR2, &sa, NULL) == 0);
	CHILD(evc_kick_signal(SIGUSR1) == -EVC_ALREADY_EXISTS);
	CHILD(evc_last_error()[0] != '\0');
	CHILD(evc_kick_signal(SIGUSR2) == -EVC_ALREADY_EXISTS);
	CHILD(sigaction(SIGUSR1, NULL, &now) == 0);
	CHILD(now.sa_handler == own_handler);
	CHILD(sigaction(SIGUSR2, NULL, &now) == 0);
	CHILD(now.sa_handler == SIG_IGN);
	takes(SIGRTMIN); /* a refusal has chosen nothing */
}

START_TEST(a_signal_that_is_used_or_ignored_is_refused)
{
	in_fresh_process(choose_taken);
}
END_TEST

static void
choose_wrong(void)
{
	static const int wrong[] = { 0,       -1,     SIGKILL, SIGSTOP,
				     SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
				     32,      33,     65,      1000 };
	struct sigaction sa;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (evc_kick_signal(wrong[i]) != -EVC_INVALID_ARGUMENT) {
			fprintf(stderr, "signal %d: not refused\n", wrong[i]);
			_exit(1);
		}
		CHILD(evc_last_error()[0] != '\0');
	}
	CHILD(sigaction(SIGSEGV, NULL, &sa) == 0);
	takes(SIGUSR2);
}

START_TEST(a_signal_that_cannot_be_it_is_refused)
{
	in_fresh_process(choose_wrong);
}
END_TEST

struct look {
	atomic_int in, open;
	sigset_t mask;
};

static evc_status
show_mask(evc_coord *c, void *arg)
{
	struct look *l = arg;

	pthread_sigmask(SIG_SETMASK, NULL, &l->mask);
	atomic_store(&l->in, 1);
	evc_wait_for_stop(c, INFINITY);
	return 0;
}

/* That one is taken by the first flag. */
static void
takes_by_default(int signo)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	struct look flagged = { 0 }, plain = { 0 };
	struct sigaction sa;
	evc_coord *c = NULL;

	CHILD(sigaction(signo, NULL, &sa) == 0 && sa.sa_handler == SIG_DFL);
	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(evc_thread_start(c, "plain", show_mask, &plain, NULL, NULL) ==
	      0);
	CHILD(evc_thread_start(c, "flagged", show_mask, &flagged, &kick,
			       NULL) == 0);
	takes(signo); /* it is that already */
	CHILD(evc_kick_signal(SIGUSR1) == -EVC_ALREADY_EXISTS);
	while (!atomic_load(&flagged.in) || !atomic_load(&plain.in))
		t_sleep(0.001);
	/* Open where it is meant, and nowhere else. */
	CHILD(!sigismember(&flagged.mask, signo));
	CHILD(sigismember(&flagged.mask, SIGUSR1));
	CHILD(sigismember(&flagged.mask, SIGTERM));
	CHILD(sigismember(&plain.mask, signo));
	CHILD(evc_request_stop(c, 0, NULL) == 0);
	CHILD(evc_join(c, NULL, NULL) == 0);
	CHILD(evc_free(c) == 0);
	/* It stays until the process ends. */
	CHILD(sigaction(signo, NULL, &sa) == 0);
	CHILD(sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN);
}

static void
use_urg(void)
{
	takes_by_default(SIGURG);
}

START_TEST(the_first_flag_takes_SIGURG)
{
	in_fresh_process(use_urg);
}
END_TEST

static void
use_highest(void)
{
	struct sigaction sa = { .sa_handler = own_handler };

	sigaction(SIGRTMAX, &sa, NULL); /* valgrind's, under valgrind */
	CHILD(sigaction(SIGURG, &sa, NULL) == 0);
	sa.sa_handler = SIG_IGN;
	CHILD(sigaction(SIGRTMAX - 1, &sa, NULL) == 0);
	takes_by_default(SIGRTMAX - 2);
	CHILD(sigaction(SIGURG, NULL, &sa) == 0);
	CHILD(sa.sa_handler == own_handler);
	CHILD(sigaction(SIGRTMAX - 1, NULL, &sa) == 0);
	CHILD(sa.sa_handler == SIG_IGN);
}

START_TEST(or_else_the_highest_that_is_free)
{
	in_fresh_process(use_highest);
}
END_TEST

static void
use_none(void)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	struct sigaction sa = { .sa_handler = own_handler };
	evc_coord *c = NULL;
	evc_id id = 77;
	int signo;

	for (signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		CHILD(sigaction(signo, &sa, NULL) == 0 || signo == SIGRTMAX);
	CHILD(sigaction(SIGURG, &sa, NULL) == 0);
	CHILD(evc_new(NULL, NULL, &c) == 0);
	CHILD(evc_thread_start(c, "flagged", obey, NULL, &kick, &id) ==
	      -EVC_RESOURCE_EXHAUSTED);
	CHILD(evc_last_error()[0] != '\0');
	CHILD(id == 77);
	CHILD(evc_kick_signal(SIGUSR1) == 0);
	CHILD(evc_thread_start(c, "flagged", obey, NULL, &kick, &id) == 0);
	CHILD(evc_request_stop(c, 0, NULL) == 0);
	CHILD(evc_join(c, NULL, NULL) == 0);
	CHILD(evc_free(c) == 0);
}

START_TEST(without_a_free_signal_the_flag_is_refused)
{
	in_fresh_process(use_none);
}
END_TEST

API_MAIN("kick_signal", a_free_signal_is_taken_once_for_all,
	 a_signal_that_is_used_or_ignored_is_refused,
	 a_signal_that_cannot_be_it_is_refused, the_first_flag_takes_SIGURG,
	 or_else_the_highest_that_is_free,
	 without_a_free_signal_the_flag_is_refused)
