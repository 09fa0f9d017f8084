/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket on a loop: a function that is run, step by step, whenever the
 * socket, a timer or the stop gives it something to do.
 */
#ifndef SERVER_SOCK_H
#define SERVER_SOCK_H

#include <ev.h>
#include <evcoord.h>
#include <stdbool.h>

#define UNUSED __attribute__((unused))

struct loop;
struct sock;

/* After a step: the next one, wait for the loop, or the end. */
enum step { NEXT, WAIT, GONE };

struct sock {
	/* stop: */
	evc_task task;            /* first: the coordinator hands it back */
	/* :stop */
	struct loop *loop;
	int fd;
	ev_io io;
	ev_timer timer;
	enum step (*step)(struct sock *s);
	void (*gone)(struct sock *s); /* closes fd, may free s */
};

/* Put a zeroed s on the loop, with fd, step and gone set, as a task of that
   reactor.  False: refused. */
bool sock_start(struct sock *s, struct loop *loop, evc_reactor *reactor);

/* Take steps; t is that of a struct sock. */
void sock_run(evc_task *t, void *unused);

/* How a step ends that has to wait: for EV_READ, EV_WRITE or nothing, and,
   unless negative, for some seconds at most. */
enum step sock_wait(struct sock *s, int events, double seconds);

#endif
