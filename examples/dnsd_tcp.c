/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DNS over TCP: a loop on each thread, with a listening socket of its own, and
 * connections on which any number of queries follow each other, two bytes of
 * length before each.
 *
 * A connection ends in one way, whether its idle time is over or the stop has
 * come (conn_last): it answers what had arrived by then, reads the rest of a
 * query of which a part had, and is closed when its client has got all of it;
 * one that is idle is closed at once.  At the stop a loop first takes over the
 * clients that have connected already, and closes its listening socket.
 *
 * A client that is slow costs half of the budget at most: so long it may take
 * to send a query whose first byte has come, and to take an answer; after the
 * stop all that it still sends and takes has so long.  Then it is cut
 * (conn_cut), by its timer or as a late task.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dnsd.h"

#define IDLE 30.0    /* seconds without a query, then a client has to leave */
#define LOOK 0.01    /* seconds between looks whether all has arrived */
#define RETRY 0.02   /* seconds, when there is no descriptor to be had */
#define TURN 64      /* answers, before other connections get their turn */
#define MOST 1024    /* connections accepted in a row: more than a queue can
			hold */

struct conn {
	/* stop: */
	evc_task task;            /* first: the coordinator hands it back */
	/* :stop */
	struct tcp *tcp;
	int fd;
	int last;                 /* bytes to be read before the end; -1: the
				     connection is not about to end */
	struct sockaddr_in peer;
	ev_io io;
	ev_timer timer;
	ev_tstamp until;          /* then what goes on has taken too long */
	uint8_t *out;             /* an answer with its length, or NULL */
	size_t out_len, sent;
	size_t in_len;
	uint8_t in[2 + QUERY_MAX];
};

struct listener {
	/* stop: */
	evc_task task;            /* first, likewise */
	/* :stop */
	struct tcp *tcp;
	ev_io io;
	ev_timer timer;
};

/* After a step: the next one, wait for the loop, or the end. */
enum step { NEXT, WAIT, GONE };

static double patience;           /* seconds for a client that is slow */

/* ---- connections --------------------------------------------------------- */

static void
conn_free(struct conn *k)
{
	ev_io_stop(k->tcp->ev, &k->io);
	ev_timer_stop(k->tcp->ev, &k->timer);
	/* stop: */
	evc_task_end(&k->task);
	/* :stop */
	close(k->fd);
	free(k->out);
	free(k);
}

/* The connection is idle, or something begins: so long may that take. */
static void
conn_limit(struct conn *k)
{
	bool idle = k->out == NULL && k->in_len == 0 && k->last < 0;

	k->until = ev_now(k->tcp->ev) + (idle ? IDLE : patience);
}

/* Wait for that, or for some seconds to pass, but not for ever. */
static enum step
conn_wait(struct conn *k, int events, double seconds)
{
	struct ev_loop *ev = k->tcp->ev;
	double left = k->until - ev_now(ev);

	if (!ev_is_active(&k->io) ||
	    (k->io.events & (EV_READ | EV_WRITE)) != events) {
		ev_io_stop(ev, &k->io);
		ev_io_set(&k->io, k->fd, events);
		if (events != 0)
			ev_io_start(ev, &k->io);
	}
	ev_timer_stop(ev, &k->timer);
	ev_timer_set(&k->timer, fmax(0., fmin(seconds, left)), 0.);
	ev_timer_start(ev, &k->timer);
	return WAIT;
}

static bool
again(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static enum step
conn_write(struct conn *k)
{
	ssize_t n = send(k->fd, k->out + k->sent, k->out_len - k->sent,
			 MSG_NOSIGNAL);

	if (n < 0)
		return again() ? conn_wait(k, EV_WRITE, INFINITY) : GONE;
	k->sent += (size_t)n;
	if (k->sent < k->out_len)
		return NEXT;
	free(k->out);
	k->out = NULL;
	conn_limit(k);
	atomic_fetch_add_explicit(&k->tcp->answered, 1, memory_order_relaxed);
	return NEXT;
}

/* How long is the query that has begun, with its length?  0: it is none. */
static size_t
conn_query(const struct conn *k)
{
	size_t n;

	if (k->in_len < 2)
		return 2; /* at least; so much has to be read first */
	n = (size_t)k->in[0] << 8 | k->in[1];
	return n > 0 && n <= QUERY_MAX ? 2 + n : 0;
}

/* The first query in the buffer is whole: answer it. */
static enum step
conn_answer(struct conn *k, size_t query)
{
	struct zone *zone = zone_get(&k->tcp->server->zone);
	size_t n = dns_answer(zone, k->in + 2, query - 2, false, k->tcp->out);

	zone_put(zone);
	k->in_len -= query;
	memmove(k->in, k->in + query, k->in_len);
	if (n == 0)
		return GONE; /* that was no query */
	k->out = malloc(2 + n);
	if (k->out == NULL)
		return GONE;
	k->out[0] = (uint8_t)(n >> 8);
	k->out[1] = (uint8_t)n;
	memcpy(k->out + 2, ldns_buffer_begin(k->tcp->out), n);
	k->out_len = 2 + n;
	k->sent = 0;
	conn_limit(k);
	return NEXT;
}

/*
 * Nothing is to be answered any more.  A socket that is closed answers what
 * still comes by a reset, which could overtake an answer: so only when all has
 * arrived.
 */
static enum step
conn_close(struct conn *k)
{
	int under_way = 0;

	if (ioctl(k->fd, SIOCOUTQ, &under_way) < 0 || under_way == 0)
		return GONE;
	return conn_wait(k, 0, LOOK);
}

static enum step
conn_read(struct conn *k)
{
	size_t query = conn_query(k), room = sizeof(k->in) - k->in_len;
	ssize_t n;

	if (query == 0)
		return GONE;
	if (k->in_len >= query)
		return conn_answer(k, query);
	/* At the end: what had come before; then the rest of one query. */
	if (k->last == 0 && k->in_len > 0)
		k->last = (int)(query - k->in_len);
	if (k->last >= 0 && room > (size_t)k->last)
		room = (size_t)k->last;
	if (room == 0)
		return conn_close(k);
	n = recv(k->fd, k->in + k->in_len, room, 0);
	if (n < 0)
		return again() ? conn_wait(k, EV_READ, INFINITY) : GONE;
	if (n == 0)
		return GONE;
	k->in_len += (size_t)n;
	if (k->in_len == (size_t)n)
		conn_limit(k);
	if (k->last > 0)
		k->last -= (int)n;
	return NEXT;
}

/* Take steps: called when the socket or the timer has something to say. */
static void
conn_run(struct conn *k)
{
	enum step step = NEXT;

	for (int i = 0; i < TURN && step == NEXT; i++)
		step = k->out != NULL ? conn_write(k) : conn_read(k);
	if (step == NEXT)
		step = conn_wait(k, 0, 0.); /* the loop's next turn goes on */
	if (step == GONE)
		conn_free(k);
}

/* The end begins: nothing is read but what has arrived, and the rest of a
   query. */
static void
conn_last(evc_task *t, UNUSED void *arg)
{
	struct conn *k = (struct conn *)t;

	if (k->last < 0 && ioctl(k->fd, FIONREAD, &k->last) < 0)
		k->last = 0;
	conn_limit(k);
	conn_run(k);
}

/* The client was too slow. */
static void
conn_cut(evc_task *t, UNUSED void *arg)
{
	struct conn *k = (struct conn *)t;

	atomic_fetch_add_explicit(&k->tcp->cut, 1, memory_order_relaxed);
	conn_free(k);
}

/* Which client this is, for reports. */
static void
conn_describe(const evc_task *t, char *buf, size_t n, UNUSED void *arg)
{
	const struct conn *k = (const struct conn *)t;
	char host[INET_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET, &k->peer.sin_addr, host, sizeof(host));
	snprintf(buf, n, "%s:%u", host, (unsigned)ntohs(k->peer.sin_port));
}

static void
on_io(UNUSED struct ev_loop *ev, ev_io *w, UNUSED int events)
{
	conn_run(w->data);
}

static void
on_timer(struct ev_loop *ev, ev_timer *w, UNUSED int events)
{
	struct conn *k = w->data;

	if (ev_now(ev) < k->until)
		conn_run(k);
	else if (k->out == NULL && k->in_len == 0 && k->last < 0)
		conn_last(&k->task, NULL);
	else
		conn_cut(&k->task, NULL);
}

/* stop: */
static evc_task_class client = { "client", conn_last, .on_late = conn_cut,
	.flags = EVC_TELL_AFTER_STOP, .describe = conn_describe };
/* :stop */

void
tcp_patience(double seconds)
{
	patience = seconds;
	/* stop: */
	client.grace = seconds;
	/* :stop */
}

static void
conn_open(struct listener *l, int fd, const struct sockaddr_in *peer)
{
	struct conn *k = calloc(1, sizeof(*k));

	if (k == NULL) {
		close(fd);
		return;
	}
	k->tcp = l->tcp;
	k->fd = fd;
	k->last = -1;
	k->peer = *peer;
	conn_limit(k);
	ev_io_init(&k->io, on_io, fd, EV_READ);
	ev_timer_init(&k->timer, on_timer, 0., 0.);
	k->io.data = k->timer.data = k;
	/* stop: */
	if (evc_task_begin(evc_task_reactor(&l->task), &k->task, &client) < 0)
		/* :stop */
		conn_free(k);
	else
		conn_run(k);
}

/* ---- the listening socket ------------------------------------------------ */

/* Accept one.  WAIT: nobody is there.  GONE: there is no descriptor. */
static enum step
accept_one(struct listener *l)
{
	struct sockaddr_in peer = { .sin_family = AF_INET };
	socklen_t len = sizeof(peer);
	int fd = accept4(l->tcp->fd, (struct sockaddr *)&peer, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		conn_open(l, fd, &peer);
		return NEXT;
	}
	switch (errno) {
	case EAGAIN:
		return WAIT;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return GONE;
	default:
		return NEXT; /* of a client that has left, or a signal */
	}
}

static void
listener_run(evc_task *t, UNUSED void *arg)
{
	struct listener *l = (struct listener *)t;
	struct ev_loop *ev = l->tcp->ev;
	enum step step = NEXT;

	for (int i = 0; i < MOST && step == NEXT; i++)
		step = accept_one(l);
	ev_timer_stop(ev, &l->timer);
	if (step == GONE) {
		/* The socket stays readable: do not spin on it. */
		ev_io_stop(ev, &l->io);
		ev_timer_set(&l->timer, RETRY, 0.);
		ev_timer_start(ev, &l->timer);
		return;
	}
	ev_io_start(ev, &l->io);
	/* stop: */
	/* All who were in the queue are taken over: shut the door. */
	if (!evc_should_stop(evc_task_coord(t)))
		/* :stop */
		return;
	/* stop: */
	evc_task_end(&l->task);
	/* :stop */
	ev_io_stop(ev, &l->io);
	close(l->tcp->fd);
	l->tcp->fd = -1;
	free(l);
}

static void
on_accept(UNUSED struct ev_loop *ev, ev_io *w, UNUSED int events)
{
	listener_run(w->data, NULL);
}

static void
on_retry(UNUSED struct ev_loop *ev, ev_timer *w, UNUSED int events)
{
	listener_run(w->data, NULL);
}

/* stop: */
static const evc_task_class door = { "listener", .on_stop = listener_run };
/* :stop */

evc_status
tcp_setup(evc_reactor *r, void *arg)
{
	struct tcp *tcp = arg;
	struct listener *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return EVC_RESOURCE_EXHAUSTED;
	l->tcp = tcp;
	/* stop: */
	tcp->ev = evc_reactor_loop(r);
	if (evc_task_begin(r, &l->task, &door) < 0) {
		/* :stop */
		free(l);
		return EVC_CANCELLED;
	}
	ev_io_init(&l->io, on_accept, tcp->fd, EV_READ);
	ev_timer_init(&l->timer, on_retry, 0., 0.);
	l->io.data = l->timer.data = &l->task;
	ev_io_start(tcp->ev, &l->io);
	return 0;
}
