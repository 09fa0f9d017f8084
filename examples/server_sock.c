/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket on a loop: a function that is run, step by step, whenever the
 * socket, a timer or the stop gives it something to do.
 *
 * Each is a task of the coordinator, so a loop does not end before its
 * sockets have.  At the stop each is simply run once more: its next step sees
 * that a stop was asked for and decides whether it is to end now or later.
 */
#include "server_loop.h"

#define TURN 32 /* steps, before other sockets get their turn */

void
sock_run(struct sock *s)
{
	enum step step = NEXT;

	for (int i = 0; i < TURN && step == NEXT; i++)
		step = s->step(s);
	if (step == NEXT)
		sock_wait(s, 0, 0.); /* goes on in the loop's next turn */
	if (step != GONE)
		return;
	ev_io_stop(s->loop->ev, &s->io);
	ev_timer_stop(s->loop->ev, &s->timer);
	/* stop: */
	evc_task_end(&s->task);
	/* :stop */
	s->gone(s);
}

enum step
sock_wait(struct sock *s, int events, double seconds)
{
	struct ev_loop *ev = s->loop->ev;

	if (!ev_is_active(&s->io) ||
	    (s->io.events & (EV_READ | EV_WRITE)) != events) {
		ev_io_stop(ev, &s->io);
		ev_io_set(&s->io, s->fd, events);
		if (events != 0)
			ev_io_start(ev, &s->io);
	}
	ev_timer_stop(ev, &s->timer);
	if (seconds >= 0) {
		ev_timer_set(&s->timer, seconds, 0.);
		ev_timer_start(ev, &s->timer);
	}
	return WAIT;
}

static void
on_io(UNUSED struct ev_loop *ev, ev_io *w, UNUSED int events)
{
	sock_run(w->data);
}

static void
on_timer(UNUSED struct ev_loop *ev, ev_timer *w, UNUSED int events)
{
	sock_run(w->data);
}

/* stop: */
static void
on_stop(evc_task *t, UNUSED void *arg)
{
	sock_run((struct sock *)t);
}

static const evc_task_class task_class = { "socket", on_stop, NULL, EVC_LATE };
/* :stop */

bool
sock_start(struct sock *s, struct loop *loop)
{
	s->loop = loop;
	ev_io_init(&s->io, on_io, s->fd, 0);
	ev_timer_init(&s->timer, on_timer, 0., 0.);
	s->io.data = s->timer.data = s;
	/* stop: */
	return evc_task_begin(loop->reactor, &s->task, &task_class) == 0;
	/* :stop */
}
