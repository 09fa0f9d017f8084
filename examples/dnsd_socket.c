/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets: one for each thread, all on one port of 127.0.0.1.  The kernel
 * deals what comes to them (SO_REUSEPORT).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dnsd.h"

#define QUEUE 511 /* connections that wait to be accepted */
#define TRIES 100 /* for a port that is free twice */

static void
flag(int fd, int level, int option)
{
	int on = 1;

	setsockopt(fd, level, option, &on, sizeof(on));
}

/* A socket on *port, or -1 and errno; 0 is replaced by the one it has got. */
static int
bound(int type, int *port, bool shared)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)*port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -1;
	if (shared)
		flag(fd, SOL_SOCKET, SO_REUSEPORT);
	if (bind(fd, (struct sockaddr *)&addr, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) < 0) {
		err = errno;
		close(fd);
		errno = err;
		return -1;
	}
	*port = ntohs(addr.sin_port);
	return fd;
}

static bool
open_on(struct server *s, int port)
{
	for (unsigned i = 0; i < s->n_udp; i++) {
		/* The first one must be alone: with SO_REUSEPORT it would
		   share the port with another server of the same user. */
		s->udp[i].fd = bound(SOCK_DGRAM, &port, i > 0);
		if (s->udp[i].fd < 0)
			return false;
		flag(s->udp[i].fd, SOL_SOCKET, SO_REUSEPORT);
	}
	for (unsigned i = 0; i < s->n_tcp; i++) {
		int fd = bound(SOCK_STREAM | SOCK_NONBLOCK, &port, true);

		s->tcp[i].fd = fd;
		if (fd < 0 || listen(fd, QUEUE) < 0)
			return false;
		/* Accepted sockets inherit it: no answer waits for the next
		   one. */
		flag(fd, IPPROTO_TCP, TCP_NODELAY);
	}
	s->port = port;
	return true;
}

static void
sockets_close(struct server *s)
{
	for (unsigned i = 0; i < s->n_udp; i++) {
		if (s->udp[i].fd >= 0)
			close(s->udp[i].fd);
		s->udp[i].fd = -1;
	}
	for (unsigned i = 0; i < s->n_tcp; i++) {
		if (s->tcp[i].fd >= 0)
			close(s->tcp[i].fd);
		s->tcp[i].fd = -1;
	}
}

bool
sockets_open(struct server *s, int port)
{
	int err, tries = 0;

	do {
		if (open_on(s, port))
			return true;
		err = errno;
		sockets_close(s);
		/* The port that was free for UDP may be taken for TCP. */
	} while (port == 0 && err == EADDRINUSE && ++tries < TRIES);
	errno = err;
	return false;
}
