/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads_server - a thread for each connection, and main accepts.
 *
 *	threads_server [PORT]
 *
 * A client sends lines with a number of seconds, such as "0.3"; the server works
 * so long for each of them and answers "done 0.3".  PORT is one of 127.0.0.1; 0,
 * the default, is a free one, which the first line of the output names.
 *
 * At SIGINT or SIGTERM main accepts what the queue of the socket still holds, and
 * closes the socket.  Each connection answers the lines that have come, and ends;
 * main waits for all of them.  A connection for which no thread can be made is
 * closed, and that stops nothing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <evcoord.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The work for one line; false: the client is gone. */
static bool
answer(int fd, const char *line)
{
	double s = fmin(fmax(strtod(line, NULL), 0), 60);
	struct timespec t = { (time_t)s, (long)((s - floor(s)) * 1e9) };
	char text[80];
	int n;

	nanosleep(&t, NULL);
	n = snprintf(text, sizeof(text), "done %.60s\n", line);
	return send(fd, text, (size_t)n, MSG_NOSIGNAL) == n;
}

/* The lines that buf[0..have) holds; how much is left behind the last one. */
static size_t
answer_lines(int fd, char *buf, size_t have, bool *ret_gone)
{
	char *at = buf, *end;

	while (!*ret_gone && (end = memchr(at, '\n', have)) != NULL) {
		*end = '\0';
		*ret_gone = !answer(fd, at);
		have -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	memmove(buf, at, have);
	return have;
}

/* The thread of a connection.  After the stop, or half a minute without a line,
   it looks once more whether lines have come. */
static evc_status
serve(evc_coord *c, void *arg)
{
	int fd = (int)(intptr_t)arg;
	bool gone = false, last = false;
	size_t have = 0;
	char buf[512];

	while (!gone && !last && have < sizeof(buf)) {
		ssize_t n;

		last = evc_wait_fd(c, fd, EVC_READ, 30, NULL) < 0;
		n = recv(fd, buf + have, sizeof(buf) - have, MSG_DONTWAIT);
		if (n > 0)
			have = answer_lines(fd, buf, have + (size_t)n, &gone);
		else
			gone = !last;
	}
	/* A close while the client still sends would take the last answer from
	   it: wait for its end, 0.1 s at a time. */
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < 8 && recv(fd, buf, sizeof(buf), 0) > 0; i++)
		;
	close(fd);
	return 0;
}

/* One connection of the queue gets its thread; false: the queue is empty. */
static bool
take_one(evc_coord *c, int door)
{
	/* Also after the stop, and a refusal is not the end of the server. */
	static const evc_member_opts opts = {
		.stack = 256 << 10,
		.flags = EVC_MAY_BE_REFUSED | EVC_AFTER_STOP,
	};
	static const struct timeval to_send = { 1, 0 }, to_end = { 0, 100000 };
	int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return false;
	/* For clients that do not read, or do not end. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &to_send, sizeof(to_send));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &to_end, sizeof(to_end));
	if (evc_thread_start(c, "connection", serve, (void *)(intptr_t)fd, &opts,
			     NULL) < 0) {
		fprintf(stderr, "threads_server: %s\n", evc_last_error());
		close(fd);
	}
	return true;
}

static int
listen_on(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port) };
	socklen_t len = sizeof(at);
	const int yes = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, len) < 0 ||
	    listen(fd, SOMAXCONN) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		perror("threads_server");
		exit(EXIT_FAILURE);
	}
	printf("port %u\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

int
main(int argc, char **argv)
{
	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	evc_escalation_opts end = { .budget = 7, .at_end = EVC_AT_END_EXIT };
	evc_config cfg = { .flags = EVC_STRICT_SETUP };
	evc_verdict v = { 0 };
	char *rest = "";
	unsigned long port = argc > 1 ? strtoul(argv[1], &rest, 10) : 0;
	evc_coord *c;
	int door, st;

	if (argc > 2 || *rest || port > 65535) {
		fputs("usage: threads_server [PORT]\n", help ? stdout : stderr);
		return help ? 0 : 2;
	}
	evc_stack_signal(0); /* the report of a late thread has its stack */
	if (evc_new(NULL, &cfg, &c) < 0)
		return EXIT_FAILURE;
	evc_escalation_set(c, &end);
	/* No EVC_SIGNALS_AT_JOIN: main works before its join. */
	evc_signals_start(c, NULL);
	door = listen_on((uint16_t)port);
	while (evc_wait_fd(c, door, EVC_READ, INFINITY, NULL) == 0)
		if (!take_one(c, door))
			evc_sleep(c, 0.01); /* no descriptor is left, perhaps */
	while (take_one(c, door))
		;
	close(door);
	st = evc_finish(c, evc_join(c, NULL, &v));
	fprintf(stderr, "threads_server: %s; %u late, %.3f s\n", v.stop.text,
		v.n_stragglers, v.took);
	if (v.n_stragglers > 0)
		_exit(st);
	return st;
}
