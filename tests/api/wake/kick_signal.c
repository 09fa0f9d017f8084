/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kick signal: which one it is and what its handler is like.  It is chosen
 * once in a process, so each test is a process in which nobody has.
 */
#include "../../support/rouse_util.h"

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

/* ---- the program makes something else of it ---- */

struct deaf {
	int fd[2];
	atomic_int tid;
};

static atomic_int lost_lines;

static void
count_lost(int level, const char *line, const evc_reason *r, void *arg)
{
	(void)r;
	(void)arg;
	if (level == EVC_LOG_WARNING && strstr(line, "kicks wake nobody"))
		atomic_fetch_add(&lost_lines, 1);
}

static evc_status
blocks_in_read(evc_coord *c, void *arg)
{
	struct deaf *d = arg;
	char byte;

	atomic_store(&d->tid, own_tid());
	while (read(d->fd[0], &byte, 1) < 0 && errno == EINTR &&
	       !evc_should_stop(c))
		;
	return 0;
}

static void
restarts(int signo)
{
	(void)signo;
}

/* Its disposition is set while a thread is there to be kicked by it. */
static evc_coord *
dispose(struct deaf *d, int signo, const struct sigaction *sa, unsigned flags)
{
	evc_member_opts kick = { .flags = EVC_KICK };
	evc_config cfg = { .log = count_lost, .flags = flags };
	evc_coord *c = NULL, *scope = NULL;

	CHILD(evc_kick_signal(signo) == 0);
	CHILD(pipe(d->fd) == 0);
	CHILD(evc_new(NULL, &cfg, &c) == 0);
	CHILD(evc_scope_new(c, "scope", NULL, &scope) == 0);
	CHILD(evc_scope_ready(scope) == 0);
	CHILD(evc_thread_start(scope, "deaf", blocks_in_read, d, &kick, NULL) ==
	      0);
	while (atomic_load(&d->tid) == 0)
		t_sleep(0.001);
	CHILD(sigaction(signo, sa, NULL) == 0);
	CHILD(evc_request_stop(c, 0, NULL) == 0);
	return c;
}

static void
lose(int signo, const struct sigaction *sa, const char *why)
{
	struct deaf d = { .tid = 0 };
	evc_coord *c = dispose(&d, signo, sa, 0);
	evc_join_opts brief = { .grace = 0.2 };
	char text[8192];

	CHILD(evc_join(c, &brief, NULL) == EVC_DEADLINE_EXCEEDED);
	CHILD(atomic_load(&lost_lines) == 1);
	CHILD(evc_report(c, EVC_REPORT_TEXT, text, sizeof(text)) > 0);
	CHILD(strstr(text, "kicks wake nobody") != NULL);
	CHILD(strstr(text, why) != NULL);
	CHILD(strstr(text, "kicked") == NULL);
	CHILD(close(d.fd[1]) == 0);
	CHILD(evc_join(c, NULL, NULL) == 0);
	CHILD(atomic_load(&lost_lines) == 1);
}

static void
lose_SIGURG_ignored(void)
{
	lose(SIGURG, &(struct sigaction){ .sa_handler = SIG_IGN }, "is ignored");
}

static void
lose_SIGURG_default(void)
{
	lose(SIGURG, &(struct sigaction){ .sa_handler = SIG_DFL },
	     "has its default action");
}

/* To be sent is to be killed. */
static void
lose_SIGUSR1_default(void)
{
	lose(SIGUSR1, &(struct sigaction){ .sa_handler = SIG_DFL },
	     "has its default action");
}

static void
lose_SIGUSR1_restarts(void)
{
	lose(SIGUSR1,
	     &(struct sigaction){ .sa_handler = restarts,
				  .sa_flags = SA_RESTART },
	     "has a handler with SA_RESTART");
}

START_TEST(what_the_program_makes_of_it_is_said)
{
	in_fresh_process(lose_SIGURG_ignored);
	in_fresh_process(lose_SIGURG_default);
	in_fresh_process(lose_SIGUSR1_default);
	in_fresh_process(lose_SIGUSR1_restarts);
}
END_TEST

/* A scope has the flag of what is above it. */
static void
have_it_again(void)
{
	struct sigaction sa = { .sa_handler = SIG_IGN };
	struct deaf d = { .tid = 0 };
	evc_coord *c = dispose(&d, SIGURG, &sa, EVC_KICK_RESTORE);

	CHILD(evc_join(c, NULL, NULL) == 0);
	CHILD(atomic_load(&lost_lines) == 0);
	CHILD(sigaction(SIGURG, NULL, &sa) == 0);
	CHILD(sa.sa_handler != SIG_IGN && sa.sa_handler != SIG_DFL);
}

START_TEST(or_it_is_set_again_for_who_asks)
{
	in_fresh_process(have_it_again);
}
END_TEST

API_MAIN("kick_signal", a_free_signal_is_taken_once_for_all,
	 a_signal_that_is_used_or_ignored_is_refused,
	 a_signal_that_cannot_be_it_is_refused, the_first_flag_takes_SIGURG,
	 or_else_the_highest_that_is_free,
	 without_a_free_signal_the_flag_is_refused,
	 what_the_program_makes_of_it_is_said, or_it_is_set_again_for_who_asks)
