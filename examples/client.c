/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client - loads the example server and checks every byte it answers.
 *
 *	client make FOLDER SIZE...
 *		writes the files: SIZE.bin with the content of pattern.h
 *	client load [-c CONNECTIONS] [-s SECONDS] [-h] PORT SIZE...
 *		asks for them, again and again, until SECONDS are over or the
 *		server accepts nobody any more; -h: sends many requests in
 *		two halves, with a pause between
 *
 * What can become of a request:
 *	answered    every byte came and is right
 *	not begun   the connection was refused, or it ended with no byte of an
 *	            answer; asked again on a new one while the server accepts.
 *	            That the server had really read nothing of it shows in its
 *	            own counts: all that it began, it answered.
 *	CUT         the connection ended, or nothing came, within the answer
 *	WRONG       the answer is complete and not what was asked for
 * Exit status: 0; 1 if anything was cut or wrong; 2 if there was no server.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "http.h"
#include "pattern.h"

#define SILENCE 60 /* seconds without a byte: the answer is given up */
#define MAX_SIZES 32

enum how { GET, HEAD, HASH };

struct file {
	uint64_t size;
	char hash[128];           /* what the server's worker must answer */
};

static struct file files[MAX_SIZES];
static unsigned n_files;
static int port;
static bool halves;
static struct timespec deadline;

/* One connection at a time, in a thread of its own. */
struct client {
	pthread_t thread;
	uint64_t random;
	int fd;                   /* -1: none */
	bool refused;             /* the server accepts nobody any more */

	/* the answer under way */
	const struct file *file;
	enum how how;
	http_message parser;
	bool complete, keep, wrong;
	uint64_t got;             /* bytes of its body */

	unsigned long connections, answered, closes, not_begun, cut, wrongs;
	uint64_t bytes;
};

static _Noreturn void
usage(int status)
{
	fputs("usage: client make FOLDER SIZE...\n"
	      "       client load [-c CONNECTIONS] [-s SECONDS] [-h] PORT "
	      "SIZE...\n", status == 0 ? stdout : stderr);
	exit(status);
}

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	exit(2);
}

static unsigned long
number(const char *text, unsigned long most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != 0 || n > most)
		usage(2);
	return n;
}

/* The next piece of a file's content. */
static size_t
piece(unsigned char *buf, size_t most, uint64_t size, uint64_t off)
{
	size_t n = size - off < most ? (size_t)(size - off) : most;

	pattern_fill(buf, n, size, off);
	return n;
}

static void
make(const char *folder, uint64_t size)
{
	unsigned char buf[65536];
	char path[4096];
	uint64_t off = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%" PRIu64 ".bin", folder, size);
	f = fopen(path, "wb");
	if (f == NULL)
		die(path);
	while (off < size) {
		size_t n = piece(buf, sizeof(buf), size, off);

		if (fwrite(buf, 1, n, f) != n)
			die(path);
		off += n;
	}
	if (fclose(f) != 0)
		die(path);
}

static void
know(struct file *f, uint64_t size)
{
	unsigned char buf[65536];
	unsigned long crc = crc32(0, NULL, 0), adler = adler32(0, NULL, 0);

	f->size = size;
	for (uint64_t off = 0; off < size; off += sizeof(buf)) {
		size_t n = piece(buf, sizeof(buf), size, off);

		crc = crc32(crc, buf, (uInt)n);
		adler = adler32(adler, buf, (uInt)n);
	}
	snprintf(f->hash, sizeof(f->hash),
		 "crc32 %08lx adler32 %08lx bytes %" PRIu64 "\n", crc, adler,
		 size);
}

static uint64_t
body_size(const struct client *c)
{
	return c->how == HASH ? strlen(c->file->hash) : c->file->size;
}

static int
on_headers_complete(http_message *p)
{
	struct client *c = p->data;

	if (p->status_code != 200 || p->content_length != body_size(c))
		c->wrong = true;
	return c->how == HEAD; /* 1: no body follows */
}

static int
on_body(http_message *p, const char *at, size_t n)
{
	struct client *c = p->data;
	uint64_t left = body_size(c) - c->got;

	if (n > left || c->how == HEAD)
		c->wrong = true;
	else if (c->how == HASH)
		c->wrong |= memcmp(at, c->file->hash + c->got, n) != 0;
	else if (!c->wrong)
		c->wrong = pattern_match((const unsigned char *)at, n,
					 c->file->size, c->got) != n;
	c->got += c->wrong ? 0 : n;
	return 0;
}

static int
on_message_complete(http_message *p)
{
	struct client *c = p->data;

	c->complete = true;
	c->keep = HTTP_IS_KEPT(p);
	if (c->how != HEAD && c->got != body_size(c))
		c->wrong = true;
	return HTTP_PAUSE(p);
}

static const http_calls settings = {
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

static bool
over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > deadline.tv_sec ||
	       (now.tv_sec == deadline.tv_sec &&
		now.tv_nsec >= deadline.tv_nsec);
}

/* False: the server accepts nobody any more. */
static bool
reach(struct client *c)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval silence = { .tv_sec = SILENCE };

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		die("socket");
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof(silence));
	if (connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		/* A reset: it was in the queue of a socket just closed. */
		if (errno != ECONNREFUSED && errno != ECONNRESET)
			die("connect");
		close(c->fd);
		c->fd = -1;
		return false;
	}
	c->connections++;
	return true;
}

static void
leave(struct client *c)
{
	close(c->fd);
	c->fd = -1;
}

/* Send it, in one piece or in two.  An error is not looked at: what becomes
   of the request is told by what is received, or not. */
static void
say(struct client *c, bool in_halves)
{
	static const struct timespec pause = { .tv_nsec = 20000000 };
	char text[256];
	size_t n, half;

	n = (size_t)snprintf(text, sizeof(text),
			     "%s /%s%" PRIu64 ".bin HTTP/1.1\r\n"
			     "Host: 127.0.0.1:%d\r\n\r\n",
			     c->how == HEAD ? "HEAD" : "GET",
			     c->how == HASH ? "hash/" : "", c->file->size,
			     port);
	half = in_halves ? 1 + c->random % (n - 1) : n;
	if (send(c->fd, text, half, MSG_NOSIGNAL) < 0 || half == n)
		return;
	nanosleep(&pause, NULL);
	send(c->fd, text + half, n - half, MSG_NOSIGNAL);
}

/* Receive the answer.  How many bytes came before it was complete, or before
   the connection was at its end. */
static uint64_t
hear(struct client *c, bool *ret_silent)
{
	char buf[65536];
	uint64_t sum = 0;
	ssize_t n;

	c->complete = c->keep = c->wrong = false;
	c->got = 0;
	http_begin(&c->parser, &settings, HTTP_RESPONSE, c);
	*ret_silent = false;
	while (!c->complete) {
		size_t used;
		int refused;

		n = recv(c->fd, buf, sizeof(buf), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			*ret_silent = n < 0 && errno == EAGAIN;
			break;
		}
		sum += (uint64_t)n;
		used = http_take(&c->parser, &settings, buf, (size_t)n,
				 &refused);
		/* Nothing was asked for that could follow. */
		if (c->complete ? used != (size_t)n : refused != 0) {
			c->wrong = c->complete = true;
			c->keep = false;
		}
	}
	return sum;
}

/* One request, until something has become of it.  False: not begun, and there
   is no server any more. */
static bool
ask(struct client *c)
{
	bool in_halves = halves && c->random % 4 == 0, silent;
	uint64_t heard;

	for (;;) {
		if (c->fd < 0 && !reach(c)) {
			c->refused = true;
			c->not_begun++;
			return false;
		}
		say(c, in_halves);
		heard = hear(c, &silent);
		c->bytes += heard;
		if (c->complete)
			break;
		leave(c);
		if (heard > 0 || silent) {
			c->cut++;
			fprintf(stderr, "client: CUT after %" PRIu64 " bytes "
				"of the answer for %" PRIu64 ".bin%s\n", heard,
				c->file->size, silent ? ": silence" : "");
			return true;
		}
		c->not_begun++;
	}
	c->wrongs += c->wrong;
	c->answered += !c->wrong;
	if (!c->keep) {
		c->closes++;
		leave(c);
	}
	return true;
}

static void *
run(void *arg)
{
	static const enum how hows[16] = { HEAD, HASH, HASH }; /* else GET */
	struct client *c = arg;

	c->fd = -1;
	while (!over() && !c->refused) {
		c->random = pattern_word(c->random, c->random >> 32);
		c->file = &files[(c->random >> 8) % n_files];
		c->how = hows[(c->random >> 16) % 16];
		ask(c);
	}
	if (c->fd >= 0)
		leave(c);
	return NULL;
}

static int
load(unsigned n)
{
	struct client *clients = calloc(n, sizeof(*clients));
	struct client sum = { .fd = -1 };

	if (clients == NULL)
		die("memory");
	for (unsigned i = 0; i < n; i++) {
		clients[i].random = i + 1;
		errno = pthread_create(&clients[i].thread, NULL, run,
				       &clients[i]);
		if (errno != 0)
			die("thread");
	}
	for (unsigned i = 0; i < n; i++) {
		struct client *c = &clients[i];

		pthread_join(c->thread, NULL);
		sum.connections += c->connections;
		sum.answered += c->answered;
		sum.closes += c->closes;
		sum.not_begun += c->not_begun;
		sum.cut += c->cut;
		sum.wrongs += c->wrongs;
		sum.bytes += c->bytes;
		sum.refused |= c->refused;
	}
	free(clients);
	printf("client: %lu answered, %lu not begun, %lu cut, %lu wrong; "
	       "%" PRIu64 " bytes, %lu connections, %lu told to close, %s\n",
	       sum.answered, sum.not_begun, sum.cut, sum.wrongs, sum.bytes,
	       sum.connections, sum.closes,
	       sum.refused ? "until the server accepted nobody" :
			     "until the time was over");
	if (sum.connections == 0) {
		fprintf(stderr, "client: nobody at port %d\n", port);
		return 2;
	}
	return sum.cut > 0 || sum.wrongs > 0;
}

int
main(int argc, char **argv)
{
	unsigned long connections = 8, seconds = 10;
	int opt;

	if (argc >= 4 && strcmp(argv[1], "make") == 0) {
		for (int i = 3; i < argc; i++)
			make(argv[2], number(argv[i], 1UL << 32));
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		usage(0);
	if (argc < 2 || strcmp(argv[1], "load") != 0)
		usage(2);
	argc--;
	argv++;
	while ((opt = getopt(argc, argv, "c:s:h")) != -1) {
		switch (opt) {
		case 'c':
			connections = number(optarg, 10000);
			break;
		case 's':
			seconds = number(optarg, 1000000);
			break;
		case 'h':
			halves = true;
			break;
		default:
			usage(2);
		}
	}
	if (argc - optind < 2 || argc - optind - 1 > MAX_SIZES ||
	    connections == 0)
		usage(2);
	port = (int)number(argv[optind++], 65535);
	while (optind < argc)
		know(&files[n_files++], number(argv[optind++], 1UL << 32));
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += (time_t)seconds;
	return load((unsigned)connections);
}
