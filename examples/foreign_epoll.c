/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * foreign_epoll - a program that stands on epoll alone.
 *
 *	foreign_epoll [RUN]
 *
 * A timer ticks a hundred times a second, and a thread works.  After RUN
 * seconds, or at a SIGTERM, both are to stop.  The descriptors of the stop and
 * of the join stand in the epoll set beside the timer; libev is not used.
 *
 * The loop turns all the time.  At its end the thread needs three more ticks:
 * a join that blocked the loop would wait for them in vain.
 */
#include <evcoord.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define TICKS_MORE 3

/* What an event is about: epoll_event.data. */
enum source { TIMER, STOP, JOIN };

static int tick_pipe[2]; /* a byte for each tick during the join */

static evc_status
work(evc_coord *c, void *arg)
{
	int left = TICKS_MORE;
	char byte;

	(void)arg;
	evc_wait_for_stop(c, INFINITY);
	while (left > 0) {
		ssize_t n = read(tick_pipe[0], &byte, 1);

		if (n == 1)
			printf("worker: %d ticks to go\n", --left);
		else if (n == 0 || errno != EINTR)
			return evc_fail(c, EVC_DATA_LOSS, errno, "no ticks");
	}
	return 0;
}

static _Noreturn void
die(const char *what)
{
	perror(what);
	fflush(stdout);
	_exit(EXIT_FAILURE); /* the thread may run */
}

/* fd < 0: it could not be had. */
static void
watch(int set, int fd, enum source what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = what };

	if (fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) < 0)
		die("foreign_epoll: epoll_ctl");
}

static int
timer_start(void)
{
	struct timespec often = { .tv_nsec = 10000000 };
	struct itimerspec spec = { often, often };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0 && timerfd_settime(fd, 0, &spec, NULL) < 0)
		die("foreign_epoll: timerfd_settime");
	return fd;
}

static void
on_tick(int timer, evc_coord *c, double *left, bool joining)
{
	uint64_t n;

	if (read(timer, &n, sizeof(n)) != (ssize_t)sizeof(n))
		return;
	*left -= (double)n / 100;
	if (joining) {
		if (write(tick_pipe[1], "", 1) != 1)
			die("foreign_epoll: write");
	} else if (*left <= 0) {
		evc_request_stop(c, 0, "the time is over");
	}
}

/* The loop: until the join has its verdict. */
static evc_status
loop(int set, int timer, evc_coord *c, double run, evc_verdict *ret_verdict)
{
	evc_status st = EVC_PENDING;
	bool joining = false; /* the stop was seen here */
	double wait = INFINITY;

	while (st == EVC_PENDING) {
		struct epoll_event e[8];
		int ms = wait < 3600 ? (int)ceil(wait * 1e3) : -1;
		int n = epoll_wait(set, e, 8, ms);

		for (int i = 0; i < n; i++) {
			if (e[i].data.u32 == TIMER)
				on_tick(timer, c, &run, joining);
			if (e[i].data.u32 != STOP)
				continue;
			/* It stays readable: seen once is enough. */
			epoll_ctl(set, EPOLL_CTL_DEL, evc_stop_fd(c), NULL);
			joining = true;
			printf("the stop was requested\n");
		}
		/* Looks, and never blocks; cheap enough for each turn. */
		if (joining)
			st = evc_join_step(c, NULL, &wait, ret_verdict);
	}
	return st;
}

int
main(int argc, char **argv)
{
	int set = epoll_create1(EPOLL_CLOEXEC), timer, status;
	double run = 2;
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	char *end = "";
	evc_verdict v;
	evc_coord *c;
	evc_status st;

	if (argc > 1)
		run = strtod(argv[1], &end);
	if (argc > 2 || *end || !(run >= 0 && run <= 86400)) {
		fputs("usage: foreign_epoll [RUN]\n", help ? stdout : stderr);
		return help ? 0 : 2;
	}
	if (set < 0 || pipe(tick_pipe) < 0)
		die("foreign_epoll");
	if (evc_new(NULL, NULL, &c) < 0 ||
	    evc_thread_start(c, "worker", work, NULL, NULL, NULL) < 0 ||
	    /* Last: a stop refuses what begins after it. */
	    evc_signals_start(c, NULL) < 0) {
		fprintf(stderr, "foreign_epoll: %s\n", evc_last_error());
		return EXIT_FAILURE;
	}
	timer = timer_start();
	watch(set, timer, TIMER);
	watch(set, evc_stop_fd(c), STOP);
	watch(set, evc_join_fd(c), JOIN);
	st = loop(set, timer, c, run, &v);
	if (st < 0) {
		/* Refused: nobody was waited for, so they still run. */
		fprintf(stderr, "foreign_epoll: %s\n", evc_last_error());
		fflush(stdout);
		_exit(EXIT_FAILURE);
	}

	printf("%s: %s, %u ended, %u late\n", v.stop.text, evc_status_name(st),
	       v.n_ended, v.n_stragglers);
	status = evc_finish(c, st);
	if (v.n_stragglers) {
		/* Somebody still runs: no return from main under it. */
		fflush(stdout);
		_exit(status);
	}
	return status;
}
