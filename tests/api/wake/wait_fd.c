/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc_wait_fd and evc_poll; what they have in common with the other waits
 * stands in waits.c.
 */
#include "../../support/wait_util.h"

#include <sys/socket.h>

static void
pair(int fd[2])
{
	OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		      fd));
}

static void
put(int fd)
{
	ck_assert_int_eq(write(fd, "x", 1), 1);
}

/* ---- evc_wait_fd ---- */

/* Of what was asked for, what is so. */
START_TEST(what_is_ready_is_said)
{
	static const double times[] = { -1, 0, 0.05, INFINITY };
	evc_coord *c = new_coord(NULL);
	unsigned got;
	size_t i;
	int fd[2];

	pair(fd);
	for (i = 0; i < 4; i++) {
		got = 77;
		OK(evc_wait_fd(c, fd[0], EVC_WRITE, times[i], &got));
		ck_assert_uint_eq(got, EVC_WRITE);
		OK(evc_wait_fd(c, fd[0], EVC_READ | EVC_WRITE, times[i],
			       &got));
		ck_assert_uint_eq(got, EVC_WRITE);
	}
	put(fd[1]);
	for (i = 0; i < 4; i++) {
		OK(evc_wait_fd(c, fd[0], EVC_READ | EVC_WRITE, times[i],
			       &got));
		ck_assert_uint_eq(got, EVC_READ | EVC_WRITE);
		OK(evc_wait_fd(c, fd[0], EVC_READ, times[i], &got));
		ck_assert_uint_eq(got, EVC_READ);
		OK(evc_wait_fd(c, fd[0], EVC_READ, times[i], NULL));
	}
	/* A stop wins, and says nothing of what is ready. */
	OK(evc_request_stop(c, 0, NULL));
	got = 77;
	for (i = 0; i < 4; i++)
		STOPPED(evc_wait_fd(c, fd[0], EVC_READ, times[i], &got));
	ck_assert_uint_eq(got, 77);
	OK(evc_free(c));
	close(fd[0]);
	close(fd[1]);
}
END_TEST

/* An end or an error is what was waited for, whichever that was. */
START_TEST(a_hang_up_or_an_error_is_what_was_waited_for)
{
	evc_coord *c = new_coord(NULL);
	unsigned got = 0;
	int fd[2];

	OK(pipe(fd));
	close(fd[1]);
	OK(evc_wait_fd(c, fd[0], EVC_READ, INFINITY, &got));
	ck_assert_uint_eq(got, EVC_READ);
	close(fd[0]);
	OK(pipe(fd));
	close(fd[0]);
	OK(evc_wait_fd(c, fd[1], EVC_WRITE, INFINITY, &got));
	ck_assert_uint_eq(got, EVC_WRITE);
	OK(evc_wait_fd(c, fd[1], EVC_READ, INFINITY, &got));
	ck_assert_uint_eq(got, EVC_READ);
	close(fd[1]);
	pair(fd);
	close(fd[1]);
	OK(evc_wait_fd(c, fd[0], EVC_READ | EVC_WRITE, INFINITY, &got));
	ck_assert_uint_eq(got, EVC_READ | EVC_WRITE);
	close(fd[0]);
	OK(evc_free(c));
}
END_TEST

START_TEST(what_cannot_be_waited_for_is_refused)
{
	static const unsigned none[] = { 0, 4, EVC_READ | 8, ~0u };
	evc_coord *c = new_coord(NULL);
	unsigned got = 77;
	size_t i;
	int fd[2];

	pair(fd);
	/* So that it does not take the number of the closed one. */
	ck_assert_int_ge(evc_stop_fd(c), 0);
	for (i = 0; i < 4; i++)
		REFUSED(EVC_INVALID_ARGUMENT,
			evc_wait_fd(c, fd[0], none[i], 0, &got));
	REFUSED(EVC_INVALID_ARGUMENT, evc_wait_fd(c, -1, EVC_READ, 0, &got));
	close(fd[0]);
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_wait_fd(c, fd[0], EVC_READ, 0, &got));
	REFUSED(EVC_INVALID_ARGUMENT,
		evc_wait_fd(c, fd[0], EVC_WRITE, INFINITY, &got));
	ck_assert_uint_eq(got, 77);
	/* It is usable as before. */
	OK(evc_wait_fd(c, fd[1], EVC_READ, INFINITY, &got));
	close(fd[1]);
	OK(evc_free(c));
}
END_TEST

struct reader {
	evc_coord *c;
	int fd;
	unsigned got;
	evc_status status;
	atomic_int tid, done;
};

static void *
reader_main(void *arg)
{
	struct reader *r = arg;

	atomic_store(&r->tid, own_tid());
	r->status = evc_wait_fd(r->c, r->fd, EVC_READ, INFINITY, &r->got);
	atomic_store(&r->done, 1);
	return NULL;
}

static void
wakes_at_data(evc_coord *c)
{
	struct reader r = { .c = c };
	pthread_t t;
	int fd[2];

	pair(fd);
	r.fd = fd[0];
	OK(pthread_create(&t, NULL, reader_main, &r));
	UNTIL(atomic_load(&r.tid) != 0);
	UNTIL(is_in_poll(atomic_load(&r.tid)));
	ck_assert(!atomic_load(&r.done));
	put(fd[1]);
	UNTIL(atomic_load(&r.done));
	OK(pthread_join(t, NULL));
	OK(r.status);
	ck_assert_uint_eq(r.got, EVC_READ);
	close(fd[0]);
	close(fd[1]);
}

START_TEST(what_becomes_ready_ends_the_wait)
{
	evc_coord *c = new_coord(NULL);
	int i;

	if (t_under_qemu())
		T_SKIP("/proc shows the calls of the emulator");
	for (i = 0; i < 20; i++)
		wakes_at_data(c);
	OK(evc_free(c));
}
END_TEST

/* The first wait makes the stop descriptor; a look needs none. */
START_TEST(one_descriptor_is_made_and_only_for_a_wait)
{
	evc_coord *c = new_coord(NULL);
	int fds, i, fd[2];
	unsigned got;

	pair(fd);
	fds = t_count_fds();
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(evc_wait_fd(c, fd[0], EVC_READ, 0, &got),
				 -EVC_DEADLINE_EXCEEDED);
	OK(evc_wait_fd(c, fd[0], EVC_WRITE, -1, &got));
	ck_assert_int_eq(t_count_fds(), fds);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(evc_wait_fd(c, fd[0], EVC_READ, 0.001, &got),
				 -EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(t_count_fds(), fds + 1);
	OK(evc_free(c));
	ck_assert_int_eq(t_count_fds(), fds);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

/* ---- no descriptor is left ---- */

/* The wait itself runs without one: a thread that looks every now and then. */
static void
begin_without(struct wait *w, int way, evc_coord *c)
{
	wait_make(w, way, c, INFINITY);
	take_descriptors();
	OK(pthread_create(&w->thread, NULL, wait_main, w));
	UNTIL(atomic_load(&w->tid) != 0);
	/* Without a descriptor nobody can look whether it sleeps. */
	t_sleep(0.5);
}

START_TEST(without_a_descriptor_a_stop_ends_it_too)
{
	struct wait w;
	int way, clear;

	for (way = BY_WAIT_FD; way <= BY_POLL; way++)
		for (clear = 0; clear < 2; clear++) {
			evc_coord *c = new_coord(NULL);

			begin_without(&w, way, c);
			ck_assert(!atomic_load(&w.done));
			OK(evc_request_stop(c, 0, NULL));
			if (clear)
				OK(evc_clear_stop(c));
			UNTIL(atomic_load(&w.done));
			give_descriptors();
			STOPPED(wait_end(&w));
			OK(evc_free(c));
		}
}
END_TEST

START_TEST(without_a_descriptor_data_and_time_end_it_too)
{
	evc_coord *c = new_coord(NULL);
	struct wait w;
	unsigned got = 0;
	evc_status ready, late;
	int fd[2];

	pair(fd);
	take_descriptors();
	ready = evc_wait_fd(c, fd[0], EVC_WRITE, INFINITY, &got);
	late = evc_wait_fd(c, fd[0], EVC_READ, 0.06, &got);
	give_descriptors();
	OK(ready);
	ck_assert_uint_eq(got, EVC_WRITE);
	ck_assert_int_eq(late, -EVC_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(evc_free(c), 0);

	c = new_coord(NULL);
	begin_without(&w, BY_WAIT_FD, c);
	ck_assert_int_eq(eventfd_write(w.fd, 1), 0);
	UNTIL(atomic_load(&w.done));
	give_descriptors();
	OK(pthread_join(w.thread, NULL));
	ck_assert_int_eq(w.status, 77); /* it has set its result */
	wait_drop(&w);
	OK(evc_free(c));
	close(fd[0]);
	close(fd[1]);
}
END_TEST

/* It sleeps as it should as soon as there is one. */
START_TEST(a_wait_without_a_descriptor_takes_one_when_it_can)
{
	evc_coord *c = new_coord(NULL);
	struct wait w;
	int fds;

	begin_without(&w, BY_WAIT_FD, c);
	give_descriptors();
	fds = t_count_fds();
	UNTIL(sleeps_on(atomic_load(&w.tid), 0.2));
	/* Made meanwhile, or between the two lines above. */
	ck_assert_int_ge(t_count_fds(), fds);
	ck_assert_int_le(t_count_fds(), fds + 1);
	fds = t_count_fds();
	ck_assert_int_ge(evc_stop_fd(c), 0);
	ck_assert_int_eq(t_count_fds(), fds);
	OK(evc_request_stop(c, 0, NULL));
	STOPPED(wait_end(&w));
	OK(evc_free(c));
}
END_TEST

/* ---- evc_poll ---- */

#define MANY 300

/* One of many is ready, wherever it stands; all are said. */
START_TEST(any_number_of_descriptors)
{
	static const size_t sizes[] = { 1, 2, 63, 64, 65, 66, MANY };
	static struct pollfd p[MANY];
	evc_coord *c = new_coord(NULL);
	size_t i, k, n, at;
	unsigned got;
	int quiet[2], loud[2];

	pair(quiet);
	pair(loud);
	put(loud[1]);
	for (k = 0; k < 7; k++)
		for (at = 0; at < 3; at++) {
			n = sizes[k];
			for (i = 0; i < n; i++)
				p[i] = (struct pollfd){ .fd = quiet[0],
							.events = POLLIN,
							.revents = 99 };
			ck_assert_int_eq(evc_poll(c, p, n, 0.001, &got),
					 -EVC_DEADLINE_EXCEEDED);
			for (i = 0; i < n; i++)
				ck_assert_int_eq(p[i].revents, 99);
			i = at == 0 ? 0 : at == 1 ? n / 2 : n - 1;
			p[i].fd = loud[0];
			OK(evc_poll(c, p, n, INFINITY, &got));
			ck_assert_uint_eq(got, 1);
			ck_assert_int_eq(p[i].revents, POLLIN);
			p[i].revents = 0;
			for (i = 0; i < n; i++)
				ck_assert_int_eq(p[i].revents, 0);
		}
	for (i = 0; i < MANY; i++)
		p[i] = (struct pollfd){ .fd = loud[0],
					.events = POLLIN | POLLOUT };
	OK(evc_poll(c, p, MANY, 0, &got));
	ck_assert_uint_eq(got, MANY);
	OK(evc_poll(c, p, MANY, INFINITY, NULL));
	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(p[i].revents, POLLIN | POLLOUT);
	OK(evc_free(c));
	close(quiet[0]);
	close(quiet[1]);
	close(loud[0]);
	close(loud[1]);
}
END_TEST

/* As poll(2) has it: a closed one says so, a negative one is left out. */
START_TEST(closed_and_negative_descriptors_are_those_of_poll)
{
	struct pollfd p[2] = { { .fd = -5, .events = POLLIN, .revents = 9 },
			       { .events = POLLIN } };
	evc_coord *c = new_coord(NULL);
	unsigned got = 0;
	int fd[2];

	pair(fd);
	ck_assert_int_ge(evc_stop_fd(c), 0);
	close(fd[0]);
	close(fd[1]);
	p[1].fd = fd[0];
	OK(evc_poll(c, p, 2, INFINITY, &got));
	ck_assert_uint_eq(got, 1);
	ck_assert_int_eq(p[0].revents, 0);
	ck_assert_int_eq(p[1].revents, POLLNVAL);
	got = 77;
	ck_assert_int_eq(evc_poll(c, p, 1, 0.001, &got),
			 -EVC_DEADLINE_EXCEEDED);
	ck_assert_int_eq(evc_poll(c, NULL, 0, 0.001, &got),
			 -EVC_DEADLINE_EXCEEDED);
	REFUSED(EVC_INVALID_ARGUMENT, evc_poll(c, NULL, 1, 0, &got));
	REFUSED(EVC_INVALID_ARGUMENT, evc_poll(c, p, SIZE_MAX, 0, &got));
	OK(evc_request_stop(c, 0, NULL));
	p[1].revents = 99;
	STOPPED(evc_poll(c, p, 2, INFINITY, &got));
	STOPPED(evc_poll(c, NULL, 0, 0, &got));
	ck_assert_int_eq(p[1].revents, 99);
	ck_assert_uint_eq(got, 77);
	OK(evc_free(c));
}
END_TEST

static evc_status
polls_all(evc_coord *c, void *arg)
{
	struct pollfd *p = arg;

	return evc_poll(c, p, (size_t)p[0].events, INFINITY, NULL);
}

/* poll(2) takes as many as there may be descriptors: then there is no room for
   the one of the stop.  One more is too many. */
START_TEST(as_many_as_poll_takes)
{
	enum { MOST = 40 };
	static struct pollfd p[MOST + 1];
	struct rlimit before, few;
	evc_coord *c = new_coord(NULL);
	evc_status more;
	evc_verdict v;
	int i, fd = evc_stop_fd(c);

	ck_assert_int_ge(fd, 0);
	for (i = 0; i <= MOST; i++)
		p[i].fd = -1;
	p[0].events = MOST; /* the number; of -1 nothing is asked */
	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_cur = MOST;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	if (poll(p, MOST + 1, 0) >= 0) {
		setrlimit(RLIMIT_NOFILE, &before);
		OK(evc_free(c));
		T_SKIP("this limit is not one for poll(2)"); /* valgrind's */
	}
	more = evc_poll(c, p, MOST + 1, INFINITY, NULL);
	OK(evc_thread_start(c, "polls", polls_all, p, NULL, NULL));
	t_sleep(0.06);
	OK(evc_request_stop(c, 0, NULL));
	OK(evc_join(c, NULL, &v));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_uint_eq(v.n_errors, 0);
	ck_assert_int_eq(more, -EVC_INVALID_ARGUMENT);
	OK(evc_free(c));
}
END_TEST

API_MAIN("wait_fd", what_is_ready_is_said,
	 a_hang_up_or_an_error_is_what_was_waited_for,
	 what_cannot_be_waited_for_is_refused, what_becomes_ready_ends_the_wait,
	 one_descriptor_is_made_and_only_for_a_wait,
	 without_a_descriptor_a_stop_ends_it_too,
	 without_a_descriptor_data_and_time_end_it_too,
	 a_wait_without_a_descriptor_takes_one_when_it_can,
	 any_number_of_descriptors,
	 closed_and_negative_descriptors_are_those_of_poll,
	 as_many_as_poll_takes)
