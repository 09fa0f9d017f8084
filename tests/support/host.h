/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop that is not libev's: bare epoll, level-triggered or edge-triggered.
 * Descriptors have a function that is called when they are readable; a function
 * may add and delete any descriptor, and may run the loop.  Timers are
 * timerfds.
 */
#ifndef TESTS_SUPPORT_HOST_H
#define TESTS_SUPPORT_HOST_H

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <evcoord.h>

#include "support.h"

#define HOST_UNUSED __attribute__((unused))

struct host_watch {
	void (*fn)(void *arg); /* NULL: the descriptor is not watched */
	void *arg;
	uint32_t serial; /* an event of an earlier watch is not called */
};

struct host {
	int epoll;
	bool edge; /* set before the first descriptor */
	struct host_watch *watch; /* by descriptor */
	int room;
	uint32_t serial;
	unsigned calls; /* functions called so far */
};

static HOST_UNUSED void
host_init(struct host *h)
{
	*h = (struct host){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
	ck_assert_int_ge(h->epoll, 0);
}

static HOST_UNUSED void
host_end(struct host *h)
{
	close(h->epoll);
	free(h->watch);
}

static HOST_UNUSED void
host_add(struct host *h, int fd, void (*fn)(void *arg), void *arg)
{
	struct epoll_event ev = { .events = EPOLLIN | (h->edge ? EPOLLET : 0) };

	if (fd >= h->room) {
		h->watch = realloc(h->watch,
				   (size_t)(2 * fd + 64) * sizeof(*h->watch));
		ck_assert_ptr_nonnull(h->watch);
		for (; h->room < 2 * fd + 64; h->room++)
			h->watch[h->room].fn = NULL;
	}
	h->watch[fd] = (struct host_watch){ fn, arg, ++h->serial };
	ev.data.u64 = (uint64_t)h->serial << 32 | (uint32_t)fd;
	ck_assert_int_eq(epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev), 0);
}

static HOST_UNUSED void
host_del(struct host *h, int fd)
{
	h->watch[fd].fn = NULL;
	ck_assert_int_eq(epoll_ctl(h->epoll, EPOLL_CTL_DEL, fd, NULL), 0);
}

/* Wait so many milliseconds at most, then call what is readable.  Returns how
   many functions were called. */
static HOST_UNUSED unsigned
host_once(struct host *h, int ms)
{
	struct epoll_event ev[64];
	unsigned before = h->calls;
	int i, n = epoll_wait(h->epoll, ev, 64, ms);

	ck_assert(n >= 0 || errno == EINTR);
	for (i = 0; i < n; i++) {
		struct host_watch w = h->watch[(uint32_t)ev[i].data.u64];

		if (w.fn == NULL || w.serial != ev[i].data.u64 >> 32)
			continue;
		h->calls++;
		w.fn(w.arg);
	}
	return h->calls - before;
}

/* Run the loop until the condition is true. */
#define HOST_UNTIL(h, cond) \
	do { \
		double host_until_ = t_now() + T_LIMIT; \
		while (!(cond)) { \
			ck_assert_msg(t_now() < host_until_, \
				      "never came true: %s", #cond); \
			host_once((h), 100); \
		} \
	} while (0)

static HOST_UNUSED bool
host_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Everything that is due now is done, and the loop does not spin: an iteration
   comes that has nothing to do. */
static HOST_UNUSED void
host_settle(struct host *h)
{
	double until = t_now() + T_LIMIT;

	while (host_once(h, 0) > 0)
		ck_assert_msg(t_now() < until, "the host spins");
}

/* ---- timers ---- */

struct host_timer {
	struct host *h;
	int fd;
	void (*fn)(void *arg);
	void *arg;
};

static HOST_UNUSED void
host_timer_fired(void *arg)
{
	struct host_timer *t = arg;
	uint64_t n;

	(void)!read(t->fd, &n, sizeof(n));
	t->fn(t->arg);
}

/* Call fn in so many seconds, once. */
static HOST_UNUSED void
host_timer_start(struct host *h, struct host_timer *t, double seconds,
		 void (*fn)(void *arg), void *arg)
{
	struct itimerspec at = {
		.it_value.tv_sec = (time_t)seconds,
		.it_value.tv_nsec =
			(long)((seconds - (double)(time_t)seconds) * 1e9) + 1,
	};

	*t = (struct host_timer){ h, timerfd_create(CLOCK_MONOTONIC,
						    TFD_CLOEXEC | TFD_NONBLOCK),
				  fn, arg };
	ck_assert_int_ge(t->fd, 0);
	ck_assert_int_eq(timerfd_settime(t->fd, 0, &at, NULL), 0);
	host_add(h, t->fd, host_timer_fired, t);
}

static HOST_UNUSED void
host_timer_stop(struct host_timer *t)
{
	host_del(t->h, t->fd);
	close(t->fd);
}

/* ---- a hosted reactor ---- */

struct hosted {
	struct host *h;
	evc_reactor *r;
	int fd;
	evc_status st;  /* of the last turn */
	unsigned turns;
};

static HOST_UNUSED void
hosted_turn(void *arg)
{
	struct hosted *t = arg;

	t->turns++;
	t->st = evc_reactor_turn(t->r);
}

static HOST_UNUSED void
hosted_init(struct hosted *t, struct host *h, evc_coord *c, const char *name)
{
	*t = (struct hosted){ .h = h };
	ck_assert_int_eq(evc_reactor_foreign(c, name, &t->fd, &t->r), 0);
	host_add(h, t->fd, hosted_turn, t);
}

#endif
