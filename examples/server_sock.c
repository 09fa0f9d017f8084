/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket on a loop: a function that is run, step by step, whenever the
 * socket, a timer or the stop gives it something to do.
 *
 * Each is a task of the coordinator, so a loop does not end before its
 * sockets have.  When the stop comes to it, it is simply run once more: its
 * next step sees that and decides whether it is to end now or later.
 */
#include "server_loop.h"

#define TURN 32 /* steps, before other sockets get their turn */

void
sock_run(evc_task *t, UNUSED void *unused)
{
	struct sock *s = (struct sock *)t;
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
	sock_run(w->data, NULL);
}

static void
on_timer(UNUSED struct ev_loop *ev, ev_timer *w, UNUSED int events)
{
	sock_run(w->data, NULL);
}

/* stop: */
static const evc_task_class cls = { "socket", sock_run, .flags = EVC_AFTER_STOP };
/* :stop */

bool
sock_start(struct sock *s, struct loop *loop, evc_reactor *reactor)
{
	s->loop = loop;
	ev_io_init(&s->io, on_io, s->fd, 0);
	ev_timer_init(&s->timer, on_timer, 0., 0.);
	s->io.data = s->timer.data = &s->task;
	/* stop: */
	return evc_task_begin(reactor, &s->task, &cls) == 0;
	/* :stop */
}
