/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evc-shake-client - is any request cut while a server stops?
 *	evc-shake-client [-ak] [-c CONNECTIONS] [-t SECONDS] http://HOST:PORT/PATH
 * Each connection is a thread that asks again and again, until the server
 * refuses or SIGTERM comes; a request that has begun is finished before.  The
 * exit status is 1 if a reply was cut, or a request got no reply.
 * Called by: the shell, mostly as the load of evc-shake.
 * Locks: none; the threads share counters, which are atomics.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <evcoord/version.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REFUSED_MOST 5  /* times in a row: the server is gone */
#define PAUSE 2000000   /* nanoseconds after a refusal */
#define HEAD_MOST 16384 /* bytes of the head of a reply */

/* IDLE: a connection was closed before a request was sent, or a kept one before
   the reply, as a server may do. */
enum outcome { WHOLE, CUT, CLOSED, REFUSED, IDLE, OUTCOMES };

static atomic_ulong count[OUTCOMES]; /* threads -> main */
static atomic_bool stop;             /* the signal handler -> threads */
static atomic_bool connected;        /* once: the server was there */
static struct addrinfo *address;
static char request[2048];
static double limit = 10;
static bool keep, closed_is_good;

/* A connection, and what was read and not used yet. */
struct conn {
	int fd;                 /* -1: none */
	unsigned long replies;
	char buf[HEAD_MOST + 1];
	size_t n;
};

static _Noreturn void __attribute__((format(printf, 1, 2)))
fail(const char *fmt, ...)
{
	va_list ap;

	fputs("evc-shake-client: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

static void
on_signal(int signo)
{
	(void)signo;
	atomic_store(&stop, true);
}

/* A server that lets no more connections come does not answer at all. */
static bool
is_connected(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = -1;

	while (!atomic_load(&stop))
		if (poll(&p, 1, 20) > 0)
			break;
	return p.revents != 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error,
					    &size) == 0 && error == 0;
}

static bool
conn_open(struct conn *c)
{
	struct timeval t = {
		.tv_sec = (time_t)limit,
		.tv_usec = (suseconds_t)((limit - (double)(time_t)limit) * 1e6),
	};

	c->n = 0;
	c->replies = 0;
	c->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC |
		       SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		fail("socket: %s", strerror(errno));
	if (connect(c->fd, address->ai_addr, address->ai_addrlen) == 0 ||
	    (errno == EINPROGRESS && is_connected(c->fd))) {
		fcntl(c->fd, F_SETFL, 0);
		setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
		setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
		atomic_store(&connected, true);
		return true;
	}
	close(c->fd);
	c->fd = -1;
	return false;
}

static void
conn_close(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
}

/* More bytes: the number, 0 at the end, -1 after an error or a time-out. */
static ssize_t
conn_read(struct conn *c)
{
	ssize_t n;

	do {
		n = recv(c->fd, c->buf + c->n, HEAD_MOST - c->n, 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		c->n += (size_t)n;
	c->buf[c->n] = '\0';
	return n;
}

static void
conn_use(struct conn *c, size_t n)
{
	c->n -= n;
	memmove(c->buf, c->buf + n, c->n + 1);
}

/* Skip n bytes of a reply: true when all came. */
static bool
skip(struct conn *c, unsigned long long n)
{
	size_t part;

	for (;;) {
		part = c->n < n ? c->n : (size_t)n;
		conn_use(c, part);
		n -= part;
		if (n == 0)
			return true;
		if (conn_read(c) <= 0)
			return false;
	}
}

/* The end of the text up to `mark`, which is read for; 0: it does not come. */
static size_t
find(struct conn *c, const char *mark)
{
	const char *at;

	while ((at = strstr(c->buf, mark)) == NULL)
		if (c->n == HEAD_MOST || conn_read(c) <= 0)
			return 0;
	return (size_t)(at - c->buf) + strlen(mark);
}

static bool
skip_chunks(struct conn *c)
{
	unsigned long long size;
	size_t line;

	do {
		line = find(c, "\r\n");
		if (line == 0)
			return false;
		size = strtoull(c->buf, NULL, 16);
		conn_use(c, line);
		/* Trailers are not looked for. */
		if (!skip(c, size + 2))
			return false;
	} while (size > 0);
	return true;
}

/* The value of a header, or NULL. */
static const char *
header(const char *head, const char *name)
{
	const char *line = head;

	while ((line = strstr(line, "\r\n")) != NULL) {
		line += 2;
		if (strncasecmp(line, name, strlen(name)) == 0)
			return line + strlen(name);
	}
	return NULL;
}

/* The rest of a reply, whose head is in the buffer: true when all came. */
static bool
body(struct conn *c, size_t head, bool *last)
{
	const char *length, *chunked, *way;
	unsigned long long n = 0;
	bool chunks;
	ssize_t got;

	c->buf[head - 2] = '\0';
	length = header(c->buf, "content-length:");
	chunked = header(c->buf, "transfer-encoding:");
	way = header(c->buf, "connection:");
	*last = !keep || (way != NULL && strncasecmp(way + strspn(way, " "),
						     "close", 5) == 0);
	if (length != NULL)
		n = strtoull(length, NULL, 10);
	chunks = chunked != NULL;
	conn_use(c, head);
	if (chunks)
		return skip_chunks(c);
	if (length != NULL)
		return skip(c, n);
	*last = true;
	do {
		c->n = 0;
		got = conn_read(c);
	} while (got > 0);
	return got == 0;
}

static enum outcome
ask(struct conn *c)
{
	const char *p = request;
	size_t left = strlen(request), head;
	bool last = true, first = c->replies == 0;
	ssize_t n;

	n = recv(c->fd, c->buf, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		conn_close(c);
		return IDLE;
	}
	for (; left > 0; left -= (size_t)n, p += n) {
		n = send(c->fd, p, left, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			n = 0;
		/* A reply may have come before the close. */
		if (n < 0)
			break;
	}
	head = find(c, "\r\n\r\n");
	if (head == 0) {
		enum outcome o = c->n > 0 ? CUT : first ? CLOSED : IDLE;

		conn_close(c);
		return o;
	}
	c->replies++;
	if (!body(c, head, &last)) {
		conn_close(c);
		return CUT;
	}
	if (last)
		conn_close(c);
	return WHOLE;
}

static void *
client(void *arg)
{
	const struct timespec pause = { 0, PAUSE };
	struct conn *c = arg;
	unsigned refused = 0;

	while (!atomic_load(&stop) && refused < REFUSED_MOST) {
		if (c->fd < 0 && !conn_open(c)) {
			/* A server that never was there may come. */
			if (atomic_load(&connected) && !atomic_load(&stop)) {
				atomic_fetch_add(&count[REFUSED], 1);
				refused++;
			}
			nanosleep(&pause, NULL);
			continue;
		}
		refused = 0;
		atomic_fetch_add(&count[ask(c)], 1);
	}
	if (c->fd >= 0)
		conn_close(c);
	return NULL;
}

static void
read_url(const char *url)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char host[256], port[8] = "80", path[1024] = "/";
	int n = 0, error;

	if (sscanf(url, "http://%255[^:/]%n", host, &n) != 1)
		fail("%s: no http://HOST:PORT/PATH", url);
	if (url[n] == ':') {
		int more = 0;

		if (sscanf(url + n, ":%7[0-9]%n", port, &more) != 1)
			fail("%s: no port", url);
		n += more;
	}
	if (url[n] == '/')
		snprintf(path, sizeof path, "%s", url + n);
	else if (url[n] != '\0')
		fail("%s: no http://HOST:PORT/PATH", url);
	error = getaddrinfo(host, port, &hints, &address);
	if (error != 0)
		fail("%s: %s", host, gai_strerror(error));
	snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s:%s\r\n"
		 "User-Agent: evc-shake-client/" EVC_VERSION_STRING
		 "\r\n%s\r\n", path, host, port,
		 keep ? "" : "Connection: close\r\n");
}

static _Noreturn void
usage(FILE *f)
{
	fputs("usage: evc-shake-client [-ak] [-c CONNECTIONS] [-t SECONDS] "
	      "http://HOST:PORT/PATH\n"
	      "  -a   a connection that is closed before a reply is no fault\n"
	      "  -c   number of connections (4)\n"
	      "  -k   keeps connections for further requests\n"
	      "  -t   seconds for a reply (10)\n", f);
	exit(f == stderr ? 2 : 0);
}

static double
positive(const char *text, double most)
{
	char *end;
	double d = strtod(text, &end);

	if (end == text || *end != '\0' || !(d > 0 && d <= most))
		fail("%s: no number up to %g", text, most);
	return d;
}

static unsigned
read_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 }
	};
	unsigned n = 4;
	int opt;

	while ((opt = getopt_long(argc, argv, "ac:kt:", longs, NULL)) != -1) {
		switch (opt) {
		case 'a': closed_is_good = true; break;
		case 'c': n = (unsigned)positive(optarg, 1000); break;
		case 'k': keep = true; break;
		case 't': limit = positive(optarg, 3600); break;
		case 'h': usage(stdout);
		case 'V':
			puts("evc-shake-client " EVC_VERSION_STRING);
			exit(0);
		default: usage(stderr);
		}
	}
	if (argc - optind != 1 || n == 0)
		usage(stderr);
	read_url(argv[optind]);
	return n;
}

int
main(int argc, char **argv)
{
	const struct sigaction act = { .sa_handler = on_signal };
	unsigned n = read_options(argc, argv);
	pthread_t *thread = calloc(n, sizeof *thread);
	struct conn *conn = calloc(n, sizeof *conn);
	bool bad;

	if (thread == NULL || conn == NULL)
		fail("no memory");
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	for (unsigned i = 0; i < n; i++) {
		conn[i].fd = -1;
		if (pthread_create(&thread[i], NULL, client, &conn[i]) != 0)
			fail("no thread");
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	bad = count[CUT] > 0 || (count[CLOSED] > 0 && !closed_is_good);
	printf("%lu whole, %lu cut in the reply, %lu closed before a reply, "
	       "%lu closed without a request, %lu refused\n", count[WHOLE],
	       count[CUT], count[CLOSED], count[IDLE], count[REFUSED]);
	freeaddrinfo(address);
	free(thread);
	free(conn);
	return bad;
}
