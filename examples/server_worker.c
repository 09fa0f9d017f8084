/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two blocking threads: one hashes files on disk, one writes the access
 * log.  Each takes its work from a pipe that all loops write to.
 *
 * Neither has to know who may still ask.  They stand behind the connections in
 * the order of the stop: when it comes to one of them, nobody is left who could
 * write to its pipe, and an empty pipe is the end.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "server_answer.h"
#include "server_loop.h"

#define CHUNK 65536

bool
pipes_open(struct server *s)
{
	bool ok = pipe2(s->lines, O_CLOEXEC) == 0 &&
		  /* A loop must not wait for the hasher, which waits for the
		     disk: it says no instead. */
		  pipe2(s->jobs, O_CLOEXEC | O_NONBLOCK) == 0;

	for (unsigned i = 0; ok && i < s->n_loops; i++)
		ok = pipe2(s->loops[i].hashed, O_CLOEXEC) == 0;
	return ok;
}

void
pipes_close(struct server *s)
{
	for (int i = 0; i < 2; i++) {
		close(s->lines[i]);
		close(s->jobs[i]);
		for (unsigned l = 0; l < s->n_loops; l++)
			close(s->loops[l].hashed[i]);
	}
}

/* A pipe gives back whole what was written in so few bytes. */
static bool
send_job(int fd, struct job *job)
{
	return write(fd, &job, sizeof(job)) == (ssize_t)sizeof(job);
}

/* The next part of what a pipe brings; 0: it is empty, and the stop came. */
static ssize_t
take(evc_coord *c, int fd, void *buf, size_t n)
{
	struct pollfd p[2] = { { fd, POLLIN, 0 } };

	/* stop: */
	p[1] = (struct pollfd){ evc_stop_fd(c), POLLIN, 0 };
	/* :stop */
	while (poll(p, 2, -1) < 0)
		; /* interrupted */
	return p[0].revents != 0 ? read(fd, buf, n) : 0;
}

static void
hash_file(int folder, struct job *job)
{
	unsigned char *buf = malloc(CHUNK);
	off_t size;
	ssize_t n = 1;
	int fd;

	job->size = 0;
	job->crc = crc32(0, NULL, 0);
	job->adler = adler32(0, NULL, 0);
	fd = buf != NULL ? file_open(folder, job->name, &size) : -ENOMEM;
	if (fd < 0) {
		job->err = -fd;
	} else {
		while (!job->unwanted && ((n = read(fd, buf, CHUNK)) > 0 ||
					  (n < 0 && errno == EINTR))) {
			if (n < 0)
				continue;
			job->crc = crc32(job->crc, buf, (uInt)n);
			job->adler = adler32(job->adler, buf, (uInt)n);
			job->size += (uint64_t)n;
		}
		job->err = n < 0 ? errno : n > 0 ? ECANCELED : 0;
		close(fd);
	}
	free(buf);
}

evc_status
hash_thread(evc_coord *c, void *arg)
{
	struct server *s = arg;
	struct job *job;

	while (take(c, s->jobs[0], &job, sizeof(job)) > 0) {
		hash_file(s->folder, job);
		send_job(job->loop->hashed[1], job);
	}
	return 0;
}

bool
hash_ask(struct job *job)
{
	return send_job(job->loop->server->jobs[1], job);
}

static void
on_hashed(UNUSED struct ev_loop *ev, ev_io *w, UNUSED int events)
{
	struct job *job;

	if (read(w->fd, &job, sizeof(job)) > 0)
		job->done(job->arg);
}

void
hash_listen(struct loop *loop)
{
	ev_io_init(&loop->on_hashed, on_hashed, loop->hashed[0], EV_READ);
	ev_io_start(loop->ev, &loop->on_hashed);
}

evc_status
log_thread(evc_coord *c, void *arg)
{
	struct server *s = arg;
	char buf[CHUNK];
	ssize_t n;

	while ((n = take(c, s->lines[0], buf, sizeof(buf))) > 0)
		if (write(s->log, buf, (size_t)n) != n)
			perror("server: access log");
	return 0;
}

void
log_answer(struct server *s, const char *status, const char *path, size_t len)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "%.3s %.*s\n", status, (int)len,
			 path);

	if (write(s->lines[1], line, (size_t)n) != n)
		perror("server: access log");
}
