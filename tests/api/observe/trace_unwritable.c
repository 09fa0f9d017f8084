/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the timeline cannot be written: it is said, and nothing else happens.
 */
#include "../../support/trace_util.h"

#include <signal.h>
#include <sys/wait.h>

static evc_coord *
recorded(void)
{
	evc_coord *c = new_coord(NULL);
	char name[32];
	evc_id id;
	int i;

	OK(evc_trace_start(c, 0));
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "hold-%d", i);
		OK(evc_hold_begin(c, name, NULL, &id));
		OK(evc_hold_end(c, id));
	}
	return c;
}

START_TEST(a_descriptor_that_is_none)
{
	evc_coord *c = recorded();
	int fd = dup(1);

	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, -1, EVC_TRACE_JSON));
	close(fd);
	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, fd, EVC_TRACE_JSON));
	OK(evc_free(c));
}
END_TEST

START_TEST(one_that_is_open_for_reading_alone)
{
	evc_coord *c = recorded();
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, fd, EVC_TRACE_JSON));
	HAS(evc_last_error(), "descriptor");
	close(fd);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_full_device)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	evc_coord *c = recorded();

	if (fd < 0)
		T_SKIP("there is no /dev/full");
	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, fd, EVC_TRACE_JSON));
	HAS(evc_last_error(), strerror(ENOSPC));
	close(fd);
	OK(evc_free(c));
}
END_TEST

/* SIGPIPE would end the process: nobody has asked for that. */
START_TEST(a_pipe_without_a_reader)
{
	evc_coord *c = recorded();
	sigset_t before, after;
	int fds[2], signo;

	signal(SIGPIPE, SIG_DFL);
	OK(pipe(fds));
	close(fds[0]);
	OK(pthread_sigmask(SIG_BLOCK, NULL, &before));
	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, fds[1], EVC_TRACE_JSON));
	HAS(evc_last_error(), strerror(EPIPE));
	OK(pthread_sigmask(SIG_BLOCK, NULL, &after));
	for (signo = 1; signo < NSIG; signo++)
		ck_assert_int_eq(sigismember(&before, signo),
				 sigismember(&after, signo));
	ck_assert_int_eq(sigpending(&after), 0);
	ck_assert_int_eq(sigismember(&after, SIGPIPE), 0);
	close(fds[1]);
	OK(evc_free(c));
}
END_TEST

/* One that was pending is the program's, and stays. */
START_TEST(a_pending_sigpipe_stays)
{
	evc_coord *c = recorded();
	sigset_t set, old;
	int fds[2], signo = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	OK(pthread_sigmask(SIG_BLOCK, &set, &old));
	OK(pthread_kill(pthread_self(), SIGPIPE));
	OK(pipe(fds));
	close(fds[0]);
	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, fds[1], EVC_TRACE_JSON));
	OK(sigwait(&set, &signo));
	ck_assert_int_eq(signo, SIGPIPE);
	OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
	close(fds[1]);
	OK(evc_free(c));
}
END_TEST

START_TEST(a_full_pipe_that_does_not_block)
{
	evc_coord *c = recorded();
	int fds[2];

	OK(pipe2(fds, O_NONBLOCK | O_CLOEXEC));
	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, fds[1], EVC_TRACE_JSON));
	close(fds[0]);
	close(fds[1]);
	OK(evc_free(c));
}
END_TEST

/* Nobody reads: a second is all that it costs. */
START_TEST(a_full_pipe_that_blocks)
{
	evc_coord *c = recorded();
	int fds[2];

	OK(pipe2(fds, O_CLOEXEC));
	REFUSED(EVC_UNAVAILABLE, evc_trace_write(c, fds[1], EVC_TRACE_JSON));
	HAS(evc_last_error(), "takes nothing");
	close(fds[0]);
	close(fds[1]);
	OK(evc_free(c));
}
END_TEST

/* ---- a reader that takes its time ---- */

struct reader {
	int fd;
	size_t n;
	char *text;
};

static void *
read_slowly(void *arg)
{
	struct reader *r = arg;
	char buf[700];
	ssize_t n;

	while ((n = read(r->fd, buf, sizeof(buf))) > 0) {
		char *more = realloc(r->text, r->n + (size_t)n + 1);

		if (more == NULL)
			break;
		r->text = more;
		memcpy(r->text + r->n, buf, (size_t)n);
		r->n += (size_t)n;
		if (r->n % 16 == 0)
			t_sleep(0.001);
	}
	return NULL;
}

static void
wake(int signo)
{
	(void)signo;
}

static void *
disturb(void *arg)
{
	pthread_t t = *(pthread_t *)arg;
	int i;

	for (i = 0; i < 200; i++) {
		pthread_kill(t, SIGUSR2);
		t_sleep(0.0005);
	}
	return NULL;
}

/* Short writes, full pipes and signals in between: all of it arrives. */
START_TEST(a_slow_reader_gets_all_of_it)
{
	struct sigaction sa = { .sa_handler = wake };
	pthread_t me = pthread_self(), t, d;
	struct reader r = { 0 };
	evc_coord *c = recorded();
	int fds[2], flags = _i ? O_NONBLOCK : 0;
	const char *end = "]}\n";

	OK(sigaction(SIGUSR2, &sa, NULL));
	OK(pipe(fds));
	OK(fcntl(fds[1], F_SETFL, flags));
	r.fd = fds[0];
	OK(pthread_create(&t, NULL, read_slowly, &r));
	OK(pthread_create(&d, NULL, disturb, &me));
	OK(evc_trace_write(c, fds[1], EVC_TRACE_JSON));
	close(fds[1]);
	OK(pthread_join(t, NULL));
	OK(pthread_join(d, NULL));
	close(fds[0]);
	ck_assert_uint_gt(r.n, 10000);
	r.text[r.n] = '\0';
	ck_assert_str_eq(r.text + r.n - strlen(end), end);
	free(r.text);
	OK(evc_free(c));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("trace_unwritable");
	TCase *tc = tcase_create("trace_unwritable");

	tcase_add_test(tc, a_descriptor_that_is_none);
	tcase_add_test(tc, one_that_is_open_for_reading_alone);
	tcase_add_test(tc, a_full_device);
	tcase_add_test(tc, a_pipe_without_a_reader);
	tcase_add_test(tc, a_pending_sigpipe_stays);
	tcase_add_test(tc, a_full_pipe_that_does_not_block);
	tcase_add_test(tc, a_full_pipe_that_blocks);
	tcase_add_loop_test(tc, a_slow_reader_gets_all_of_it, 0, 2);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
