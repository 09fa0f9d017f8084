/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepting: one listening socket that all loops watch.
 *
 * With SO_REUSEPORT each loop would have a queue of its own, and closing one
 * resets what the kernel has put there meanwhile.  Here there is one queue.
 * At the stop the kernel gets a filter that drops SYNs: no further connection
 * begins, its client tries again in a second.  All loops accept until the queue
 * is empty, and the socket is shut.
 *
 * What main's loop does here is the coordinator's own task: the connections are
 * told to stop only when it has ended.  Should they have all descriptors and
 * so be what it waits for, it has them told before.
 *
 * A connection of which the SYN has come before the filter, and the rest of the
 * handshake after the last accept(), is reset with no byte of a request read, as
 * if it had come a moment later and been refused.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server_loop.h"

#define QUEUE 511 /* connections that wait to be accepted */
#define RETRY 0.1 /* seconds, when there is no descriptor to be had */

int
listening_socket(int port, int *ret_port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int on = 1, fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* Accepted sockets inherit it: the end of an answer goes out at
	   once. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(fd, QUEUE) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) < 0) {
		close(fd);
		return -1;
	}
	*ret_port = ntohs(addr.sin_port);
	return fd;
}

/* From now on no connection begins; those in the queue stay. */
static void
refuse_more(int fd)
{
	/* Byte 13 of a TCP header has the flags, SYN is 2. */
	static struct sock_filter no_syn[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	};
	static const struct sock_fprog prog = { 4, no_syn };

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

/* What is in the queue, and then no more. */
static enum step
listener_last(struct sock *s)
{
	int fd;

	refuse_more(s->fd);
	while ((fd = accept4(s->fd, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		conn_open(s->loop, fd);
	/* EINVAL: another loop has shut the socket. */
	return errno == EAGAIN || errno == EINVAL ? GONE : NEXT;
}

static enum step
listener_step(struct sock *s)
{
	struct server *srv = s->loop->server;
	int fd;

	fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		conn_open(s->loop, fd);
	} else switch (errno) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		/* stop: */
		if (evc_should_stop(srv->coord))
			evc_request_stop(srv->part[CONNS], 0, "no descriptor");
		/* :stop */
		/* The socket stays readable: do not spin on it. */
		return sock_wait(s, 0, RETRY);
	case ECONNABORTED:
	case EINTR:
	case EPROTO:
		return NEXT;
	}
	/* Without fd nobody is waiting. */
	/* stop: */
	if (evc_should_stop(srv->coord))
		return listener_last(s);
	/* :stop */
	return fd >= 0 ? NEXT : sock_wait(s, EV_READ, -1);
}

static void
listener_gone(struct sock *s)
{
	shutdown(s->fd, SHUT_RD); /* no port any more; main closes it */
}

bool
listener_start(struct loop *loop, evc_reactor *reactor)
{
	struct sock *s = &loop->listener;

	s->fd = loop->server->listening;
	s->step = listener_step;
	s->gone = listener_gone;
	if (!sock_start(s, loop, reactor))
		return false;
	sock_run(&s->task, NULL);
	return true;
}
