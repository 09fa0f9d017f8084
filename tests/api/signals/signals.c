/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals: the first asks for the stop, the second cuts the grace, the third
 * leaves if that was asked for; handlers are given back as they were.
 */
#include "../../support/api_util.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>

START_TEST(the_first_signal_is_the_reason_of_a_clean_stop)
{
	evc_coord *c = new_coord(NULL);
	char number[16];
	evc_verdict v;

	OK(evc_signals_start(c, NULL));
	OK(evc_thread_start(c, "obeys", obey, NULL, NULL, NULL));
	snprintf(number, sizeof(number), "%d", (int)getpid());
	kill(getpid(), SIGTERM);
	UNTIL(evc_should_stop(c));
	OK(evc_join(c, NULL, &v));
	ck_assert_uint_eq(v.stop.kind, EVC_BY_SIGNAL);
	ck_assert_int_eq(v.stop.code, 0);
	HAS(v.stop.text, "TERM");
	HAS(v.stop.text, number); /* who sent it */
	ck_assert_uint_eq(v.n_errors, 0);
	OK(evc_free(c));
}
END_TEST

START_TEST(SIGINT_and_those_that_were_chosen_stop_too)
{
	evc_signals_opts opts = { .stop = { SIGUSR1, SIGUSR2 } };
	struct sigaction before, now;
	evc_coord *c = new_coord(NULL);

	OK(evc_signals_start(c, NULL));
	raise(SIGINT);
	ck_assert(evc_should_stop(c));
	OK(evc_signals_stop(c));
	OK(evc_clear_stop(c));

	sigaction(SIGTERM, NULL, &before);
	OK(evc_signals_start(c, &opts));
	sigaction(SIGTERM, NULL, &now);
	ck_assert(now.sa_handler == before.sa_handler); /* not chosen */
	raise(SIGUSR2);
	ck_assert(evc_should_stop(c));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_second_signal_cuts_the_grace_of_every_join)
{
	evc_signals_opts opts = { .short_grace = 0.05 };
	evc_coord *c = new_coord(NULL);
	struct joiner before, after;
	evc_id hold = 0;

	OK(evc_signals_start(c, &opts));
	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	raise(SIGTERM);
	join_begin(&before, c, INFINITY, 0);
	NOT_YET(atomic_load(&before.returned)); /* one is not enough */
	raise(SIGTERM);
	ck_assert_int_eq(join_end(&before), EVC_DEADLINE_EXCEEDED);
	HAS(before.v.error.text, "stuck");
	/* and of a join that begins later in this round */
	join_begin(&after, c, INFINITY, 0);
	ck_assert_int_eq(join_end(&after), EVC_DEADLINE_EXCEEDED);
	ck_assert_double_ge(after.seconds, 0.05);
	OK(evc_hold_end(c, hold));
	OK(evc_clear_stop(c));

	/* the next round begins with a first signal again */
	OK(evc_hold_begin(c, "slow", NULL, &hold));
	raise(SIGTERM);
	ck_assert(evc_should_stop(c));
	join_begin(&before, c, INFINITY, 0);
	NOT_YET(atomic_load(&before.returned));
	OK(evc_hold_end(c, hold));
	OK(join_end(&before));
	OK(evc_free(c));
}
END_TEST

START_TEST(the_second_signal_cuts_an_evented_join_too)
{
	evc_signals_opts opts = { .short_grace = EVC_NO_GRACE };
	evc_join_opts patient = { .grace = INFINITY };
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	evc_verdict v;
	evc_id hold = 0;

	OK(evc_signals_start(c, &opts));
	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	raise(SIGTERM);
	raise(SIGINT);
	ck_assert_int_eq(evc_run(c, &patient, &v), EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(v.stop.kind, EVC_BY_SIGNAL);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static void
stuck_until_stop(struct ev_loop *loop, ev_timer *w, int revents)
{
	(void)loop;
	(void)revents;
	raise(SIGTERM); /* in the midst of a callback that goes on */
	while (!evc_should_stop(w->data))
		t_sleep(0.001);
}

START_TEST(a_stuck_loop_is_stopped_all_the_same)
{
	struct ev_loop *loop = ev_loop_new(0);
	evc_coord *c = new_coord(loop);
	ev_timer t;

	OK(evc_signals_start(c, NULL));
	ev_timer_init(&t, stuck_until_stop, 0, 0);
	t.data = c;
	ev_timer_start(loop, &t);
	OK(evc_run(c, NULL, NULL));
	OK(evc_free(c));
	ev_loop_destroy(loop);
}
END_TEST

static atomic_int own_calls;

static void
own_handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	atomic_fetch_add(&own_calls, 1);
}

static void
restored_by(evc_status (*give_back)(evc_coord *))
{
	struct sigaction mine = { .sa_sigaction = own_handler }, now, old[2];
	evc_coord *c = new_coord(NULL);

	own_calls = 0;
	mine.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigemptyset(&mine.sa_mask);
	sigaddset(&mine.sa_mask, SIGWINCH);
	sigaction(SIGTERM, &mine, &old[0]);
	mine.sa_handler = SIG_IGN;
	mine.sa_flags = 0;
	sigaction(SIGINT, &mine, &old[1]);

	OK(evc_signals_start(c, NULL));
	raise(SIGTERM);
	ck_assert_int_eq(own_calls, 0);
	ck_assert(evc_should_stop(c));
	OK(give_back(c));

	sigaction(SIGTERM, NULL, &now);
	ck_assert(now.sa_sigaction == own_handler);
	ck_assert(now.sa_flags & SA_SIGINFO);
	ck_assert(now.sa_flags & SA_NODEFER);
	ck_assert(!(now.sa_flags & SA_RESTART));
	ck_assert_int_eq(sigismember(&now.sa_mask, SIGWINCH), 1);
	ck_assert_int_eq(sigismember(&now.sa_mask, SIGHUP), 0);
	raise(SIGTERM);
	ck_assert_int_eq(own_calls, 1);
	sigaction(SIGINT, NULL, &now);
	ck_assert(now.sa_handler == SIG_IGN);
	raise(SIGINT);
	if (give_back != evc_free) {
		REFUSED(EVC_NOT_FOUND, evc_signals_stop(c));
		OK(evc_free(c));
	}
	sigaction(SIGTERM, &old[0], NULL);
	sigaction(SIGINT, &old[1], NULL);
}

START_TEST(handlers_are_given_back_by_stop_and_by_free)
{
	restored_by(evc_signals_stop);
	restored_by(evc_free);
}
END_TEST

START_TEST(one_coordinator_in_a_process_at_a_time)
{
	evc_coord *c = new_coord(NULL), *d = new_coord(NULL);

	OK(evc_signals_start(c, NULL));
	REFUSED(EVC_ALREADY_EXISTS, evc_signals_start(d, NULL));
	REFUSED(EVC_ALREADY_EXISTS, evc_signals_start(c, NULL));
	REFUSED(EVC_NOT_FOUND, evc_signals_stop(d));
	raise(SIGTERM);
	ck_assert(evc_should_stop(c));
	ck_assert(!evc_should_stop(d));
	OK(evc_signals_stop(c));
	OK(evc_signals_start(d, NULL));
	raise(SIGTERM);
	ck_assert(evc_should_stop(d));
	OK(evc_free(d));
	OK(evc_signals_start(c, NULL));
	OK(evc_free(c));
}
END_TEST

START_TEST(wrong_options_change_no_handler)
{
	static const evc_signals_opts wrong[] = { { .stop = { SIGUSR1,
							      SIGKILL } },
						  { .stop = { SIGUSR1, 999 } },
						  { .stop = { SIGSEGV } },
						  { .stop = { SIGBUS } },
						  { .stop = { SIGFPE } },
						  { .stop = { SIGILL } },
						  { .stop = { SIGUSR1, -1 } },
						  { .short_grace = NAN },
						  { .short_grace = -2 },
						  { .flags = 1u << 30 },
						  { .reserved_ = { 0, 1 } } };
	struct sigaction before[2], now[2];
	evc_coord *c = new_coord(NULL);
	size_t i;

	sigaction(SIGUSR1, NULL, &before[0]);
	sigaction(SIGTERM, NULL, &before[1]);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		REFUSED(EVC_INVALID_ARGUMENT, evc_signals_start(c, &wrong[i]));
		sigaction(SIGUSR1, NULL, &now[0]);
		sigaction(SIGTERM, NULL, &now[1]);
		ck_assert(now[0].sa_handler == before[0].sa_handler);
		ck_assert(now[1].sa_handler == before[1].sa_handler);
		REFUSED(EVC_NOT_FOUND, evc_signals_stop(c));
	}
	OK(evc_signals_start(c, NULL)); /* nothing half done */
	OK(evc_free(c));
}
END_TEST

/* Three signals in a process of their own; what it wrote, how it ended. */
static int
three_signals(const evc_signals_opts *given, int fd)
{
	evc_signals_opts opts = *given;
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		evc_coord *c = NULL;

		opts.exit_fd = fd;
		if (evc_new(NULL, NULL, &c) < 0 ||
		    evc_signals_start(c, &opts) < 0)
			_exit(99);
		raise(SIGTERM);
		raise(SIGTERM);
		if (!evc_should_stop(c))
			_exit(98);
		raise(SIGTERM);
		_exit(7); /* the third did not leave */
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(the_third_leaves_only_when_switched_on)
{
	evc_signals_opts off = { 0 }, on = { .flags = EVC_SIGNALS_THIRD_EXITS };
	char line[256] = "";
	int fd[2];

	OK(pipe(fd));
	ck_assert_int_eq(three_signals(&off, fd[1]), 7);
	ck_assert(!readable(fd[0]));
	ck_assert_int_eq(three_signals(&on, fd[1]), 128 + SIGTERM);
	ck_assert(readable(fd[0]));
	ck_assert_int_gt(read(fd[0], line, sizeof(line) - 1), 0);
	ck_assert_int_eq(line[strlen(line) - 1], '\n');
	ck_assert_uint_gt(strlen(line), 10);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

/* Nobody reads what it says. */
START_TEST(the_third_leaves_with_a_full_pipe)
{
	evc_signals_opts on = { .flags = EVC_SIGNALS_THIRD_EXITS };
	int fd[2], blocking;

	OK(pipe(fd));
	blocking = fcntl(fd[1], F_GETFL);
	OK(fcntl(fd[1], F_SETFL, blocking | O_NONBLOCK));
	while (write(fd[1], "x", 1) == 1)
		;
	OK(fcntl(fd[1], F_SETFL, blocking));
	ck_assert_int_eq(three_signals(&on, fd[1]), 128 + SIGTERM);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

/* A stop by a signal, on a clock that the test moves. */
static void
grace_is(double configured, double budget, double expected)
{
	evc_escalation_opts escalation = { .budget = budget };
	evc_config cfg = { .grace = configured, .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct joiner j;
	evc_id hold = 0;

	OK(evc_escalation_set(c, &escalation));
	OK(evc_signals_start(c, NULL));
	OK(evc_hold_begin(c, "hold", NULL, &hold));
	raise(SIGTERM);
	join_begin(&j, c, 0, 0);
	scripted_advance(expected - 0.1);
	ck_assert(still_waits(&j));
	scripted_advance(0.2);
	RETURNS(&j);
	ck_assert_int_eq(join_end(&j), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}

START_TEST(a_stop_by_signal_has_8_seconds_unless_a_grace_is_configured)
{
	grace_is(0, 0, 8);
	grace_is(60, 0, 60);
}
END_TEST

/* Not 8 seconds for each: a service manager counts from the signal, too. */
START_TEST(the_8_seconds_are_those_of_the_stop_for_late_joins_too)
{
	evc_config cfg = { .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);
	struct joiner first, late;
	evc_id hold = 0;

	OK(evc_signals_start(c, NULL));
	OK(evc_hold_begin(c, "stuck", NULL, &hold));
	raise(SIGTERM);
	scripted_advance(5);
	join_begin(&first, c, 0, 0);
	scripted_advance(2.9);
	ck_assert(still_waits(&first));
	scripted_advance(0.2);
	RETURNS(&first);
	ck_assert_int_eq(join_end(&first), EVC_DEADLINE_EXCEEDED);
	join_begin(&late, c, 0, 0); /* nothing is left for this join */
	RETURNS(&late);
	ck_assert_int_eq(join_end(&late), EVC_DEADLINE_EXCEEDED);
	OK(evc_hold_end(c, hold));
	OK(evc_free(c));
}
END_TEST

START_TEST(or_a_budget)
{
	grace_is(0, 20, 20);
	grace_is(0, 2, 2);
	grace_is(10, 20, 10);
	grace_is(60, 20, 20);
}
END_TEST

API_MAIN("signals", the_first_signal_is_the_reason_of_a_clean_stop,
	 SIGINT_and_those_that_were_chosen_stop_too,
	 the_second_signal_cuts_the_grace_of_every_join,
	 the_second_signal_cuts_an_evented_join_too,
	 a_stuck_loop_is_stopped_all_the_same,
	 handlers_are_given_back_by_stop_and_by_free,
	 one_coordinator_in_a_process_at_a_time,
	 wrong_options_change_no_handler,
	 the_third_leaves_only_when_switched_on,
	 the_third_leaves_with_a_full_pipe,
	 a_stop_by_signal_has_8_seconds_unless_a_grace_is_configured,
	 the_8_seconds_are_those_of_the_stop_for_late_joins_too, or_a_budget)
