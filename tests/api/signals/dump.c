/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_dump, to descriptors of all sorts, and evc_dump_signal: a signal of
 * choice has it written.
 */
#include "../../support/report_util.h"

#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What has arrived at a pipe so far; it does not block. */
struct sink {
	int fd[2];
	size_t n;
	char text[1 << 17];
};

static void
sink_open(struct sink *s)
{
	s->n = 0;
	s->text[0] = '\0';
	OK(pipe(s->fd));
	ck_assert_int_ge(fcntl(s->fd[0], F_SETFL, O_NONBLOCK), 0);
}

static const char *
sink_text(struct sink *s)
{
	ssize_t k;

	while ((k = read(s->fd[0], s->text + s->n,
			 sizeof(s->text) - 1 - s->n)) > 0)
		s->n += (size_t)k;
	s->text[s->n] = '\0';
	return s->text;
}

static void
sink_empty(struct sink *s)
{
	sink_text(s);
	s->n = 0;
	s->text[0] = '\0';
}

static void
sink_close(struct sink *s)
{
	close(s->fd[0]);
	close(s->fd[1]);
}

static struct sink a, b;

static evc_coord *
coord_named(const char *name)
{
	evc_config cfg = { .name = name };

	return new_coord_with(NULL, &cfg);
}

/* ---- evc_dump ---- */

START_TEST(each_format_is_what_its_function_tells)
{
	evc_config cfg = { .name = "still", .clock = scripted_clock };
	evc_coord *c = new_coord_with(NULL, &cfg);

	sink_open(&a);
	OK(evc_dump(c, a.fd[1], EVC_REPORT_TEXT));
	ck_assert_str_eq(sink_text(&a), report(c));
	sink_empty(&a);
	OK(evc_dump(c, a.fd[1], EVC_REPORT_METRICS));
	ck_assert_str_eq(sink_text(&a), whole(report_metrics, c));
	sink_empty(&a);
	OK(evc_dump(c, a.fd[1], EVC_REPORT_JSON));
	/* the time of day is another one */
	ck_assert_uint_eq(strlen(sink_text(&a)),
			  strlen(whole(report_json, c)));
	HAS(sink_text(&a), "{\"evcoord\":\"");
	HAS(sink_text(&a), "\"name\":\"still\"");
	sink_close(&a);
	OK(evc_free(c));
}
END_TEST

START_TEST(stacks_before_a_stop_when_asked_for)
{
	struct guest g = { 0 };
	evc_coord *c;

	if (t_under_qemu())
		T_SKIP("a signal's frame is the emulator's");
	STACKS_BY(0);
	c = new_coord(NULL);
	OK(evc_thread_start(c, "works", stay, &g, NULL, NULL));
	UNTIL(atomic_load(&g.in) == 1);
	sink_open(&a);
	OK(evc_dump(c, a.fd[1], EVC_REPORT_TEXT));
	ck_assert_ptr_null(strstr(sink_text(&a), "stack: "));
	sink_empty(&a);
	OK(evc_dump(c, a.fd[1], EVC_REPORT_TEXT | EVC_REPORT_STACKS));
	HAS(sink_text(&a), "     kernel: ");
	HAS(sink_text(&a), "     stack: ");
	sink_empty(&a);
	OK(evc_dump(c, a.fd[1], EVC_REPORT_JSON | EVC_REPORT_STACKS));
	HAS(sink_text(&a), "\"stack\":[\"");
	sink_close(&a);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
}
END_TEST

static evc_status
dump_own_stack(evc_coord *c, void *arg)
{
	return -evc_dump(c, *(int *)arg, EVC_REPORT_TEXT | EVC_REPORT_STACKS);
}

START_TEST(a_member_may_dump_itself)
{
	evc_coord *c;

	STACKS_BY(0);
	c = new_coord(NULL);
	sink_open(&a);
	OK(evc_thread_start(c, "itself", dump_own_stack, &a.fd[1], NULL,
			    NULL));
	OK(evc_join(c, NULL, NULL));
	HAS(sink_text(&a), "thread \"itself\"");
	HAS(sink_text(&a), "     stack: ");
	sink_close(&a);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_reader_that_is_gone_kills_nobody)
{
	evc_coord *c = new_coord(NULL);
	int fd[2];

	/* SIGPIPE would end this process */
	ck_assert(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	OK(pipe(fd));
	close(fd[0]);
	REFUSED(EVC_UNAVAILABLE, evc_dump(c, fd[1], EVC_REPORT_TEXT));
	close(fd[1]);
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	close(fd[0]);
	REFUSED(EVC_UNAVAILABLE, evc_dump(c, fd[1], EVC_REPORT_TEXT));
	close(fd[1]);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_reader_that_takes_nothing_is_given_up)
{
	evc_coord *c = new_coord(NULL);
	char page[4096] = { 0 };
	double start;
	int blocks;

	for (blocks = 0; blocks < 2; blocks++) {
		sink_open(&a);
		ck_assert_int_ge(fcntl(a.fd[1], F_SETFL, O_NONBLOCK), 0);
		while (write(a.fd[1], page, sizeof(page)) > 0)
			;
		ck_assert_int_ge(
			fcntl(a.fd[1], F_SETFL, blocks ? 0 : O_NONBLOCK), 0);
		start = t_now();
		REFUSED(EVC_UNAVAILABLE, evc_dump(c, a.fd[1], EVC_REPORT_TEXT));
		ck_assert_double_lt(t_now() - start, T_LIMIT);
		sink_close(&a);
	}
	OK(evc_free(c));
}
END_TEST

/* Reads, but not at once. */
static void *
read_late(void *arg)
{
	struct sink *s = arg;
	double until = t_now() + T_LIMIT;

	t_sleep(0.1);
	while (strstr(sink_text(s), "# END") == NULL && t_now() < until)
		t_sleep(0.001);
	return NULL;
}

START_TEST(a_slow_reader_gets_all_of_it)
{
	enum { MANY = 2000 };
	evc_coord *c = new_coord(NULL);
	static evc_id id[MANY];
	unsigned flags, lines, i;
	pthread_t t;

	for (i = 0; i < MANY; i++)
		OK(evc_hold_begin(c, "one of many", NULL, &id[i]));
	for (flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
		sink_open(&a);
		ck_assert_int_ge(fcntl(a.fd[1], F_SETFL, flags), 0);
		OK(pthread_create(&t, NULL, read_late, &a));
		/* more than a pipe has room for */
		OK(evc_dump(c, a.fd[1], EVC_REPORT_TEXT));
		ck_assert_int_eq(fcntl(a.fd[1], F_SETFL, 0), 0);
		ck_assert_int_eq(write(a.fd[1], "# END", 5), 5);
		OK(pthread_join(t, NULL));
		lines = times_in(a.text, "one of many");
		ck_assert_uint_eq(lines, MANY);
		ck_assert_uint_gt(a.n, 65536);
		sink_close(&a);
	}
	for (i = 0; i < MANY; i++)
		OK(evc_hold_end(c, id[i]));
	OK(evc_free(c));
}
END_TEST

START_TEST(wrong_dumps_are_refused)
{
	static const unsigned wrong[] = {
		0, 4, 5, 1 << 9, EVC_REPORT_STACKS,
		EVC_REPORT_METRICS | EVC_REPORT_STACKS,
		EVC_REPORT_TEXT | 1 << 9
	};
	evc_coord *c = new_coord(NULL);
	size_t i;
	int fd;

	sink_open(&a);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		REFUSED(EVC_INVALID_ARGUMENT, evc_dump(c, a.fd[1], wrong[i]));
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_dump_signal(c, SIGUSR1, a.fd[1], wrong[i]));
	}
	REFUSED(EVC_INVALID_ARGUMENT, evc_dump(c, -1, EVC_REPORT_TEXT));
	ck_assert_str_eq(sink_text(&a), "");
	fd = dup(a.fd[1]);
	close(fd);
	REFUSED(EVC_UNAVAILABLE, evc_dump(c, fd, EVC_REPORT_TEXT));
	REFUSED(EVC_UNAVAILABLE, evc_dump(c, a.fd[0], EVC_REPORT_TEXT));
	sink_close(&a);
	OK(evc_free(c));
}
END_TEST

/* ---- evc_dump_signal ---- */

START_TEST(a_signal_has_it_written)
{
	evc_coord *c = coord_named("signalled");

	sink_open(&a);
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	ck_assert_str_eq(sink_text(&a), "");
	OK(raise(SIGUSR1));
	UNTIL(strstr(sink_text(&a), "members:") != NULL);
	HAS(a.text, "coordinator \"signalled\"");
	/* and again, also while a stop stands and by a whole process */
	OK(evc_request_stop(c, 0, "for the dump"));
	sink_empty(&a);
	OK(kill(getpid(), SIGUSR1));
	UNTIL(strstr(sink_text(&a), "for the dump") != NULL);
	OK(evc_free(c));
	sink_close(&a);
}
END_TEST

START_TEST(it_is_written_while_a_member_is_stuck)
{
	struct guest g = { 0 };
	evc_coord *c = new_coord(NULL);

	OK(evc_thread_start(c, "stuck", stay, &g, NULL, NULL));
	sink_open(&a);
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_JSON));
	UNTIL(atomic_load(&g.in) == 1);
	OK(evc_request_stop(c, 0, NULL));
	OK(raise(SIGUSR1));
	UNTIL(strstr(sink_text(&a), "\"name\":\"stuck\"") != NULL);
	atomic_store(&g.open, 1);
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	sink_close(&a);
}
END_TEST

START_TEST(a_second_call_replaces_the_first)
{
	evc_coord *c = new_coord(NULL);
	struct sigaction now;

	sink_open(&a);
	sink_open(&b);
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	/* another descriptor and format */
	OK(evc_dump_signal(c, SIGUSR1, b.fd[1], EVC_REPORT_METRICS));
	OK(raise(SIGUSR1));
	UNTIL(strstr(sink_text(&b), "evcoord_stopping") != NULL);
	ck_assert_str_eq(sink_text(&a), "");
	/* another signal: the former one is as it was */
	OK(evc_dump_signal(c, SIGUSR2, a.fd[1], EVC_REPORT_TEXT));
	OK(sigaction(SIGUSR1, NULL, &now));
	ck_assert(now.sa_handler == SIG_DFL);
	sink_empty(&b);
	OK(raise(SIGUSR2));
	UNTIL(strstr(sink_text(&a), "members:") != NULL);
	ck_assert_str_eq(sink_text(&b), "");
	OK(evc_free(c));
	OK(sigaction(SIGUSR2, NULL, &now));
	ck_assert(now.sa_handler == SIG_DFL);
	sink_close(&a);
	sink_close(&b);
}
END_TEST

static atomic_int handled;

static void
count_signal(int signo)
{
	(void)signo;
	atomic_fetch_add(&handled, 1);
}

START_TEST(signal_0_ends_it_and_restores_the_handler)
{
	evc_coord *c = new_coord(NULL);

	sink_open(&a);
	ck_assert(signal(SIGUSR1, count_signal) != SIG_ERR);
	REFUSED(EVC_NOT_FOUND, evc_dump_signal(c, 0, 0, 0));
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	OK(raise(SIGUSR1));
	ck_assert_int_eq(handled, 0);
	UNTIL(strstr(sink_text(&a), "members:") != NULL);
	OK(evc_dump_signal(c, 0, 0, 0));
	REFUSED(EVC_NOT_FOUND, evc_dump_signal(c, 0, 0, 0));
	sink_empty(&a);
	OK(raise(SIGUSR1));
	ck_assert_int_eq(handled, 1);
	/* once more, and now c goes with it */
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	OK(evc_free(c));
	OK(raise(SIGUSR1));
	ck_assert_int_eq(handled, 2);
	ck_assert_str_eq(sink_text(&a), "");
	sink_close(&a);
}
END_TEST

START_TEST(a_handler_that_came_after_it_stays)
{
	evc_coord *c = new_coord(NULL);

	sink_open(&a);
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	ck_assert(signal(SIGUSR1, count_signal) != SIG_ERR);
	OK(evc_free(c));
	OK(raise(SIGUSR1));
	ck_assert_int_eq(handled, 1);
	sink_close(&a);
}
END_TEST

START_TEST(one_coordinator_has_it)
{
	evc_coord *c = coord_named("first"), *d = new_coord(NULL), *s = NULL;

	sink_open(&a);
	OK(evc_scope_new(c, "s", NULL, &s));
	REFUSED(EVC_FAILED_PRECONDITION,
		evc_dump_signal(s, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	OK(evc_free(s));
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	REFUSED(EVC_ALREADY_EXISTS,
		evc_dump_signal(d, SIGUSR2, a.fd[1], EVC_REPORT_TEXT));
	HAS(evc_last_error(), "first");
	REFUSED(EVC_NOT_FOUND, evc_dump_signal(d, 0, 0, 0));
	OK(evc_free(c));
	OK(evc_dump_signal(d, SIGUSR2, a.fd[1], EVC_REPORT_TEXT));
	OK(raise(SIGUSR2));
	UNTIL(strstr(sink_text(&a), "members:") != NULL);
	OK(evc_free(d));
	sink_close(&a);
}
END_TEST

START_TEST(signals_that_cannot_be_had_are_refused)
{
	const int wrong[] = { -1,     SIGKILL, SIGSTOP, SIGSEGV,      SIGFPE,
			      SIGILL, SIGBUS,  32,	SIGRTMAX + 1, 100000 };
	evc_signals_opts opts = { .stop = { SIGTERM, SIGUSR2 } };
	evc_coord *c = new_coord(NULL);
	int stack, kick;
	size_t i;

	sink_open(&a);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_dump_signal(c, wrong[i], a.fd[1], EVC_REPORT_TEXT));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_dump_signal(c, SIGUSR1, -1, EVC_REPORT_TEXT));
	/* one that asks for the stop */
	OK(evc_signals_start(c, &opts));
	REFUSED(EVC_ALREADY_EXISTS,
		evc_dump_signal(c, SIGUSR2, a.fd[1], EVC_REPORT_TEXT));
	OK(evc_signals_stop(c));
	/* and the other way round */
	OK(evc_dump_signal(c, SIGUSR2, a.fd[1], EVC_REPORT_TEXT));
	REFUSED(EVC_ALREADY_EXISTS, evc_signals_start(c, &opts));
	OK(evc_dump_signal(c, 0, 0, 0));
	OK(evc_signals_start(c, &opts));
	/* those of the library */
	stack = SIGRTMIN + 1;
	kick = SIGRTMIN + 2;
	OK(evc_kick_signal(kick));
	if (HAS_BACKTRACE) {
		OK(evc_stack_signal(stack));
		REFUSED(EVC_ALREADY_EXISTS,
			evc_dump_signal(c, stack, a.fd[1], EVC_REPORT_TEXT));
	}
	REFUSED(EVC_ALREADY_EXISTS,
		evc_dump_signal(c, kick, a.fd[1], EVC_REPORT_TEXT));
	ck_assert_str_eq(sink_text(&a), "");
	OK(evc_free(c));
	sink_close(&a);
}
END_TEST

START_TEST(a_reader_that_is_gone_is_survived)
{
	evc_coord *c = new_coord(NULL);

	ck_assert(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	sink_open(&a);
	sink_open(&b);
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	close(a.fd[0]);
	OK(raise(SIGUSR1));
	/* the helper lives on: it writes the next one */
	t_sleep(0.05);
	OK(evc_dump_signal(c, SIGUSR1, b.fd[1], EVC_REPORT_TEXT));
	OK(raise(SIGUSR1));
	UNTIL(strstr(sink_text(&b), "members:") != NULL);
	OK(evc_free(c));
	close(a.fd[1]);
	sink_close(&b);
}
END_TEST

START_TEST(a_fork_child_does_what_it_would_without_us)
{
	evc_coord *c;
	int status = 0;
	pid_t pid;

	if (t_under_tsan())
		T_SKIP("it delivers no signals in a fork child of threads");
	c = new_coord(NULL);
	sink_open(&a);
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	pid = fork();
	if (pid == 0) {
		raise(SIGUSR1);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGUSR1);
	ck_assert_str_eq(sink_text(&a), "");
	OK(evc_free(c));
	sink_close(&a);
}
END_TEST

/* Wait until the other threads sleep: a child gets the locks of its memory as
   they are, and the address sanitizer's nobody opens again. */
static void
until_others_sleep(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		if (atoi(e->d_name) != 0 && atoi(e->d_name) != own_tid())
			until_asleep(atoi(e->d_name));
	closedir(d);
}

START_TEST(a_fork_child_may_have_one_of_its_own)
{
	evc_coord *c;
	int status = -1;
	pid_t pid;

	if (t_under_qemu())
		T_SKIP("it makes no threads in a fork child of threads");
	if (t_under_tsan())
		T_SKIP("it allows no threads in a fork child of threads");
	c = new_coord(NULL);
	sink_open(&a);
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	until_others_sleep();
	pid = fork();
	if (pid == 0) {
		evc_coord *d = coord_named("of the child");

		CHILD(evc_dump_signal(d, SIGUSR1, a.fd[1], EVC_REPORT_TEXT) ==
		      0);
		CHILD(raise(SIGUSR1) == 0);
		UNTIL(strstr(sink_text(&a), "members:") != NULL);
		CHILD(strstr(a.text, "of the child") != NULL);
		CHILD(evc_free(d) == 0);
		CHILD(raise(SIGUSR1) == 0); /* what its parent had: death */
		_exit(1);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGUSR1);
	OK(evc_free(c));
	sink_close(&a);
}
END_TEST

/* On the helper thread, which cannot wait for itself. */
struct on_helper {
	int fd;
	atomic_int status, done;
};

static evc_status
move_on_helper(evc_coord *c, void *arg)
{
	struct on_helper *h = arg;

	atomic_store(&h->status,
		     evc_dump_signal(c, SIGUSR2, h->fd, EVC_REPORT_TEXT));
	atomic_store(&h->done, 1);
	return 0;
}

START_TEST(a_hook_on_the_helper_may_move_it)
{
	evc_coord *c = new_coord(NULL);
	struct on_helper h = { .fd = -1 };

	sink_open(&a);
	sink_open(&b);
	h.fd = b.fd[1];
	OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
	OK(evc_on_stop(c, "moves", move_on_helper, &h, NULL, NULL));
	OK(evc_request_stop(c, 0, NULL));
	UNTIL(atomic_load(&h.done));
	OK(h.status);
	OK(raise(SIGUSR2));
	UNTIL(strstr(sink_text(&b), "members:") != NULL);
	ck_assert_str_eq(sink_text(&a), "");
	OK(evc_join(c, NULL, NULL));
	OK(evc_free(c));
	sink_close(&a);
	sink_close(&b);
}
END_TEST

/* Signals from all sides while it is set and ended. */
static void *
send_signals(void *arg)
{
	atomic_int *leave = arg;

	while (!atomic_load(leave)) {
		kill(getpid(), SIGUSR1);
		t_sleep(0.0002);
	}
	return NULL;
}

START_TEST(it_comes_and_goes_under_signals)
{
	atomic_int leave = 0;
	evc_coord *c;
	pthread_t t;
	int i;

	/* what comes between is nobody's */
	ck_assert(signal(SIGUSR1, count_signal) != SIG_ERR);
	sink_open(&a);
	OK(pthread_create(&t, NULL, send_signals, &leave));
	for (i = 0; i < 50; i++) {
		c = new_coord(NULL);
		OK(evc_dump_signal(c, SIGUSR1, a.fd[1], EVC_REPORT_TEXT));
		sink_empty(&a);
		UNTIL(strstr(sink_text(&a), "members:") != NULL);
		if (i % 2 == 0)
			OK(evc_dump_signal(c, 0, 0, 0));
		OK(evc_free(c));
	}
	atomic_store(&leave, 1);
	OK(pthread_join(t, NULL));
	sink_close(&a);
}
END_TEST

API_MAIN("dump", each_format_is_what_its_function_tells,
	 stacks_before_a_stop_when_asked_for, a_member_may_dump_itself,
	 a_reader_that_is_gone_kills_nobody,
	 a_reader_that_takes_nothing_is_given_up, a_slow_reader_gets_all_of_it,
	 wrong_dumps_are_refused, a_signal_has_it_written,
	 it_is_written_while_a_member_is_stuck,
	 a_second_call_replaces_the_first,
	 signal_0_ends_it_and_restores_the_handler,
	 a_handler_that_came_after_it_stays, one_coordinator_has_it,
	 signals_that_cannot_be_had_are_refused,
	 a_reader_that_is_gone_is_survived,
	 a_fork_child_does_what_it_would_without_us,
	 a_fork_child_may_have_one_of_its_own, a_hook_on_the_helper_may_move_it,
	 it_comes_and_goes_under_signals)
