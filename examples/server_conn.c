/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection: the HTTP/1.1 state machine.
 *
 *	IDLE -> READING -> [HASHING] -> WRITING -> IDLE or LINGER
 *	                      -> LEFT
 *
 * A request is begun when its first byte was read; from then on it is
 * answered, stop or no stop.  How a connection ends must not harm the answer
 * it carried last: what a client sends to a closed socket is answered by a
 * reset, and a reset can overtake the tail of an answer.  So
 *   - after an answer that said "Connection: close" the writing side is shut
 *     and what still comes in is thrown away until the client has closed, too:
 *     LINGER;
 *   - an idle connection, whose client was promised nothing, is closed when
 *     its time is over and all it was sent has arrived; until then it still
 *     answers.  No byte is read from it that would not be answered.  The stop
 *     says that the time is over.
 * Either is given up when the client has taken nothing for two seconds.
 * A client that does not send its request, or takes nothing of its answer, for
 * the server's patience is cut; from the stop on that is all it has in total,
 * and a hash that is not done by then is answered by 503.  A hash is given up,
 * too, when the client has left: it sends no more.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "server_answer.h"
#include "server_loop.h"

#define KEEP_ALIVE 60.0 /* seconds an idle connection is kept */
#define PATIENCE 2.0    /* seconds for a client that takes nothing any more */
#define HEAD_MOST (64u << 10) /* bytes of a request before its body */
#define LOOK 0.02       /* seconds between looks whether all has arrived, or
			   whether the client is there still */

enum state { IDLE, READING, HASHING, WRITING, LINGER, LEFT };

struct conn {
	struct sock sock;         /* first: sock's functions get only it */
	enum state state;
	http_message parser;
	bool complete;            /* the request was read to its end */
	bool keep;                /* the connection may outlive the answer */
	bool head_read, head_only;
	size_t head_len;          /* at least, while it is read */
	bool left;                /* the client, while its file was hashed */
	bool unread;              /* its body is not waited for */
	bool in_value, expects;   /* of headers: where we are, "Expect" */
	unsigned hosts;           /* headers "Host" */
	char field[8];            /* the beginning of a header's name */
	int refused;              /* status that answers it, or 0 */
	size_t path_len;
	char path[512];
	struct answer answer;
	struct job job;
	ev_tstamp idle_until;     /* the end of KEEP_ALIVE */
	int under_way;            /* bytes sent but not arrived, last look */
	ev_tstamp until;          /* the end of PATIENCE */
	ev_tstamp slow_until;     /* the end of the server's, in a request */
	ev_tstamp stop_until;     /* the same from the stop on, or 0 */
	size_t in_len;
	char in[8192];            /* read, not parsed yet */
};

static struct server *
server_of(const struct conn *c)
{
	return c->sock.loop->server;
}

/*
 * Has the client taken nothing for PATIENCE?  Sets under_way: what was sent
 * and has not arrived.
 */
static bool
conn_stuck(struct conn *c)
{
	ev_tstamp now = ev_now(c->sock.loop->ev);
	int under_way = 0;

	if (ioctl(c->sock.fd, SIOCOUTQ, &under_way) < 0)
		return true;
	if (under_way != c->under_way)
		c->until = now + PATIENCE;
	c->under_way = under_way;
	return now >= c->until || (c->stop_until > 0 && now >= c->stop_until);
}

static void
conn_progress(struct conn *c)
{
	c->slow_until = ev_now(c->sock.loop->ev) + server_of(c)->patience;
}

/* Seconds that a client has still, negative when it had them. */
static ev_tstamp
conn_left(const struct conn *c)
{
	ev_tstamp until = c->state == IDLE ? c->idle_until : c->slow_until;

	if (c->stop_until > 0 && c->stop_until < until)
		until = c->stop_until;
	return until - ev_now(c->sock.loop->ev);
}

/* Wait for a client with a request, as long as it may take. */
static enum step
conn_await(struct conn *c, int events)
{
	ev_tstamp left = conn_left(c);

	if (left > 0)
		return sock_wait(&c->sock, events, left);
	count_add(c->sock.loop, TOO_SLOW, 1);
	return GONE;
}

static int
on_url(http_message *p, const char *at, size_t len)
{
	struct conn *c = p->data;

	if (len >= sizeof(c->path) - c->path_len) {
		c->refused = 414;
		return 0;
	}
	memcpy(c->path + c->path_len, at, len);
	c->path_len += len;
	return 0;
}

/* A name and a value may each come in several pieces. */
static int
on_header_field(http_message *p, const char *at, size_t len)
{
	struct conn *c = p->data;
	size_t n;

	if (c->in_value)
		c->field[0] = 0;
	c->in_value = false;
	/* The parser lets blanks pass: "Host : x" is one Host to some. */
	if (memchr(at, ' ', len) != NULL)
		c->refused = 400;
	n = strlen(c->field);
	if (len > sizeof(c->field) - 1 - n)
		len = sizeof(c->field) - 1 - n;
	memcpy(c->field + n, at, len);
	c->field[n + len] = 0;
	return 0;
}

static int
on_header_value(http_message *p, UNUSED const char *at, UNUSED size_t len)
{
	struct conn *c = p->data;

	if (!c->in_value) {
		c->hosts += strcasecmp(c->field, "host") == 0;
		c->expects |= strcasecmp(c->field, "expect") == 0;
	}
	c->in_value = true;
	return 0;
}

static int
on_headers_complete(http_message *p)
{
	struct conn *c = p->data;

	c->head_read = true;
	c->head_only = p->method == HTTP_HEAD;
	if (c->refused != 0)
		return c->unread = true;
	if (p->http_major != 1 || p->http_minor > 1)
		c->refused = 505;
	else if (c->hosts > 1 || (c->hosts == 0 && p->http_minor == 1))
		c->refused = 400;
	else if (p->method != HTTP_GET && !c->head_only)
		c->refused = 405;
	/* A client that asks before it sends a body gets its answer at once:
	   no answer depends on a body. */
	c->unread = c->refused != 0 ||
		    (c->expects && p->flags & HTTP_BODY);
	return c->unread;
}

static int
on_message_complete(http_message *p)
{
	struct conn *c = p->data;

	c->complete = true;
	c->keep = c->refused == 0 && !c->unread && HTTP_IS_KEPT(p);
	/* Stop here: what follows belongs to the next request. */
	return HTTP_PAUSE(p);
}

static const http_calls settings = {
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_value = on_header_value,
	.on_headers_complete = on_headers_complete,
	.on_message_complete = on_message_complete,
};

static int
hex(char c)
{
	const char *digits = "0123456789abcdef", *at;

	at = c != 0 ? strchr(digits, c | ('A' <= c && c <= 'Z' ? 32 : 0)) : NULL;
	return at != NULL ? (int)(at - digits) : -1;
}

/* Takes the escapes out of a name of n bytes.  0, or the status that refuses
   it. */
static int
unescape(char name[static NAME_SIZE], const char *from, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		char byte = from[i];

		if (byte == '%') {
			int high = i + 2 < n ? hex(from[i + 1]) : -1;
			int low = i + 2 < n ? hex(from[i + 2]) : -1;

			if (high < 0 || low < 0)
				return 400;
			byte = (char)(high * 16 + low);
			i += 2;
		}
		if (len == NAME_SIZE - 1)
			return 404;
		name[len++] = byte;
	}
	name[len] = 0;
	/* Plain names only: nothing of another folder, nothing hidden. */
	return len == 0 || *name == '.' || memchr(name, '/', len) != NULL ||
	       memchr(name, 0, len) != NULL ? 404 : 0;
}

/* Finds the name of the file, for the job.  0, or the status that refuses it;
   "/hash/" goes first. */
static int
file_name(struct conn *c, bool *ret_hash)
{
	const char *name = c->path;
	size_t n;

	c->path[c->path_len] = 0;
	/* "http://host" may stand before the path. */
	if (strncasecmp(name, "http://", 7) == 0) {
		name += 7;
		if (strcspn(name, "/?#") == 0)
			return 400;
		name += strcspn(name, "/?#");
		if (*name != '/')
			return 404;
	}
	if (*name++ != '/')
		return 400;
	n = strcspn(name, "?#");
	*ret_hash = n > 5 && memcmp(name, "hash/", 5) == 0;
	if (*ret_hash) {
		name += 5;
		n -= 5;
	}
	return unescape(c->job.name, name, n);
}

/* The answer is about to be written: will there be another one? */
static void
conn_decide(struct conn *c)
{
	/* After the stop there is none, unless bytes of it were read. */
	c->keep &= c->in_len > 0 || c->stop_until <= 0;
	/* Whoever goes on and on has the stop's time like others. */
	if (c->stop_until > 0 && conn_left(c) <= 0)
		c->keep = false;
	if (!c->keep)
		c->in_len = 0;
	conn_progress(c);
	c->state = WRITING;
}

static void
conn_refuse(struct conn *c, int status)
{
	answer_text(&c->answer, status, c->keep, c->head_only,
		    status == 404 ? "no such file\n" : "refused\n");
}

static int
status_of(int err)
{
	switch (err) {
	case ECANCELED:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return 503;
	case EIO:
		return 500;
	default:
		return 404;
	}
}

/* Called by the loop when the hasher has done the job. */
static void
on_hashed(void *arg)
{
	struct conn *c = arg;
	char text[128];

	conn_decide(c);
	if (c->left) {
		c->state = LEFT;
	} else if (c->job.err != 0) {
		conn_refuse(c, status_of(c->job.err));
	} else {
		snprintf(text, sizeof(text),
			 "crc32 %08lx adler32 %08lx bytes %llu\n", c->job.crc,
			 c->job.adler, (unsigned long long)c->job.size);
		answer_text(&c->answer, 200, c->keep, c->head_only, text);
	}
	sock_run(&c->sock.task, NULL);
}

/* The request is complete: begin its answer. */
static void
conn_answer(struct conn *c)
{
	bool hash = false;
	off_t size;
	int file;

	if (c->refused == 0)
		c->refused = file_name(c, &hash);
	if (c->refused == 0 && hash) {
		c->job.loop = c->sock.loop;
		c->job.done = on_hashed;
		c->job.arg = c;
		c->job.unwanted = false;
		c->state = HASHING;
		if (hash_ask(&c->job))
			return;
		c->refused = 503;
	}
	conn_decide(c);
	if (c->refused != 0) {
		conn_refuse(c, c->refused);
		return;
	}
	file = file_open(server_of(c)->folder, c->job.name, &size);
	if (file < 0)
		conn_refuse(c, status_of(-file));
	else
		answer_file(&c->answer, c->keep, c->head_only, file, size);
}

static void
conn_parse(struct conn *c)
{
	int refused;
	size_t n = http_take(&c->parser, &settings, c->in, c->in_len, &refused);

	c->head_len += n;
	if (refused == 0 && !c->head_read && c->head_len > HEAD_MOST)
		refused = 431;
	if (!c->complete && refused != 0) {
		c->refused = refused;
		c->keep = false;
		c->complete = true;
	}
	c->in_len -= n;
	memmove(c->in, c->in + n, c->in_len);
	if (c->complete)
		conn_answer(c);
}

static void
conn_begin_request(struct conn *c)
{
	size_t skip = 0;

	/* Blank lines before a request are no part of it. */
	while (skip < c->in_len && (c->in[skip] == '\r' || c->in[skip] == '\n'))
		skip++;
	c->in_len -= skip;
	memmove(c->in, c->in + skip, c->in_len);
	if (c->in_len == 0)
		return;
	count_add(c->sock.loop, BEGUN, 1);
	http_begin(&c->parser, &settings, HTTP_REQUEST, c);
	c->complete = c->keep = c->left = false;
	c->head_read = c->head_only = false;
	c->head_len = 0;
	c->unread = c->in_value = c->expects = false;
	c->hosts = 0;
	c->field[0] = 0;
	c->refused = 0;
	c->path_len = 0;
	conn_progress(c);
	c->state = READING;
}

static enum step
step_idle(struct conn *c)
{
	ev_tstamp now = ev_now(c->sock.loop->ev);

	if (now < c->idle_until && c->stop_until <= 0)
		return sock_wait(&c->sock, EV_READ, c->idle_until - now);
	if (!conn_stuck(c) && c->under_way > 0)
		return sock_wait(&c->sock, EV_READ, LOOK);
	count_add(c->sock.loop, IDLE_CLOSED, 1);
	return GONE;
}

/* There is nothing to read, or no time for it. */
static enum step
step_read_none(struct conn *c)
{
	return c->state == IDLE ? step_idle(c) : conn_await(c, EV_READ);
}

static enum step
step_read(struct conn *c)
{
	ssize_t n;

	if (c->in_len == 0) {
		n = recv(c->sock.fd, c->in, sizeof(c->in), 0);
		if (n < 0 && errno == EINTR)
			return NEXT;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return step_read_none(c);
		if (n <= 0) {
			if (c->state == READING)
				count_add(c->sock.loop, ABORTED, 1);
			return GONE;
		}
		c->in_len = (size_t)n;
	}
	if (c->state == IDLE)
		conn_begin_request(c);
	if (c->state == READING)
		conn_parse(c);
	/* Whoever never stops sending has no more time than others. */
	if (c->state > READING || conn_left(c) > 0)
		return NEXT;
	return step_read_none(c);
}

/* For the client there is nothing to wait for: next comes a request. */
static void
conn_idle(struct conn *c)
{
	c->state = IDLE;
	c->under_way = -1;
	c->idle_until = ev_now(c->sock.loop->ev) + KEEP_ALIVE;
}

static enum step
step_write(struct conn *c)
{
	const struct answer *a = &c->answer;
	off_t before = a->off + (off_t)a->sent;

	switch (answer_send(&c->answer, c->sock.fd)) {
	case SENT_ALL:
		break;
	case SENT_SOME:
		if (a->off + (off_t)a->sent != before)
			conn_progress(c);
		return conn_await(c, EV_WRITE);
	case SENT_NO_CLIENT:
		count_add(c->sock.loop, ABORTED, 1);
		return GONE;
	case SENT_NO_FILE:
		count_add(c->sock.loop, SHRUNK, 1);
		return GONE;
	}
	count_add(c->sock.loop, ANSWERED, 1);
	log_answer(server_of(c), c->answer.text + strlen("HTTP/1.1 "), c->path,
		   c->path_len);
	conn_idle(c);
	if (!c->keep) {
		shutdown(c->sock.fd, SHUT_WR);
		c->state = LINGER;
	}
	return NEXT;
}

/* The hasher has the job.  Does anybody still wait for it? */
static enum step
step_hash(struct conn *c)
{
	struct pollfd p = { c->sock.fd, POLLRDHUP, 0 };

	c->left = poll(&p, 1, 0) > 0;
	if (c->left || (c->stop_until > 0 &&
			ev_now(c->sock.loop->ev) >= c->stop_until))
		c->job.unwanted = true;
	return sock_wait(&c->sock, 0, LOOK);
}

static enum step
step_linger(struct conn *c)
{
	ssize_t n = recv(c->sock.fd, c->in, sizeof(c->in), 0);

	if (n > 0)
		count_add(c->sock.loop, DISCARDED, (unsigned long)n);
	else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK &&
			    errno != EINTR))
		return GONE;
	if (conn_stuck(c))
		return GONE;
	return sock_wait(&c->sock, EV_READ,
			 c->until - ev_now(c->sock.loop->ev));
}

static enum step
conn_step(struct sock *s)
{
	struct conn *c = (struct conn *)s;

	/* stop: */
	if (c->stop_until <= 0 && evc_should_stop(server_of(c)->part[CONNS]))
		/* :stop */
		c->stop_until = ev_now(s->loop->ev) + server_of(c)->patience;
	switch (c->state) {
	case IDLE:
	case READING:
		return step_read(c);
	case HASHING:
		return step_hash(c);
	case WRITING:
		return step_write(c);
	case LINGER:
		return step_linger(c);
	case LEFT:
		count_add(s->loop, ABORTED, 1);
	}
	return GONE;
}

static void
conn_gone(struct sock *s)
{
	struct conn *c = (struct conn *)s;

	answer_free(&c->answer);
	close(s->fd);
	free(c);
}

void
conn_open(struct loop *loop, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		close(fd);
		return;
	}
	c->sock.fd = fd;
	c->sock.step = conn_step;
	c->sock.gone = conn_gone;
	c->answer.file = -1;
	if (!sock_start(&c->sock, loop, loop->reactor)) {
		conn_gone(&c->sock);
		return;
	}
	conn_idle(c);
	count_add(loop, CONNECTIONS, 1);
	sock_run(&c->sock.task, NULL);
}
