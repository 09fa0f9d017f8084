/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker: one ordinary blocking thread that hashes files on disk.
 *
 * It must not end at the stop: connections that wait for a hash are to be
 * answered.  It ends when every loop has said goodbye, for with a loop its
 * last connection is gone; the coordinator waits for it like for any other
 * thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "server_answer.h"
#include "server_loop.h"

#define CHUNK 65536

void
worker_init(struct worker *w)
{
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->head = NULL;
	w->tail = &w->head;
}

void
worker_free(struct worker *w)
{
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
}

static void
hash_file(int folder, struct job *job)
{
	unsigned char *buf = malloc(CHUNK);
	off_t size;
	ssize_t n = -1;
	int fd;

	job->size = 0;
	job->crc = crc32(0, NULL, 0);
	job->adler = adler32(0, NULL, 0);
	fd = buf != NULL ? file_open(folder, job->name, &size) : -ENOMEM;
	if (fd < 0) {
		job->err = -fd;
	} else {
		while ((n = read(fd, buf, CHUNK)) > 0 ||
		       (n < 0 && errno == EINTR)) {
			if (n < 0)
				continue;
			job->crc = crc32(job->crc, buf, (uInt)n);
			job->adler = adler32(job->adler, buf, (uInt)n);
			job->size += (uint64_t)n;
		}
		job->err = n < 0 ? errno : 0;
		close(fd);
	}
	free(buf);
}

static void
give_back(struct job *job)
{
	struct hashed *h = &job->loop->hashed;

	/* Ring under the lock: once the loop has taken the job it may answer
	   it, end and be destroyed, and a ring after that would ring memory
	   that was freed. */
	pthread_mutex_lock(&h->lock);
	job->next = h->head;
	h->head = job;
	ev_async_send(job->loop->ev, &h->ring);
	pthread_mutex_unlock(&h->lock);
}

static struct job *
take(struct worker *w)
{
	struct job *job;

	pthread_mutex_lock(&w->lock);
	while (w->head == NULL)
		pthread_cond_wait(&w->wake, &w->lock);
	job = w->head;
	w->head = job->next;
	if (w->head == NULL)
		w->tail = &w->head;
	pthread_mutex_unlock(&w->lock);
	return job;
}

evc_status
worker_thread(UNUSED evc_coord *c, void *arg)
{
	struct server *s = arg;
	struct job *job;
	/* stop: */
	unsigned users = s->n_loops;
	/* :stop */

	for (;;) {
		job = take(&s->worker);
		/* stop: */
		if (job->done == NULL && --users == 0)
			return 0;
		/* :stop */
		if (job->done != NULL) {
			hash_file(s->folder, job);
			give_back(job);
		}
	}
}

void
worker_ask(struct worker *w, struct job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&w->lock);
	*w->tail = job;
	w->tail = &job->next;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

static void
on_ring(UNUSED struct ev_loop *ev, ev_async *ring, UNUSED int events)
{
	struct hashed *h = ring->data;
	struct job *job, *next;

	pthread_mutex_lock(&h->lock);
	job = h->head;
	h->head = NULL;
	pthread_mutex_unlock(&h->lock);
	for (; job != NULL; job = next) {
		next = job->next;
		job->done(job->arg);
	}
}

void
hashed_init(struct hashed *h)
{
	pthread_mutex_init(&h->lock, NULL);
	h->head = NULL;
	ev_async_init(&h->ring, on_ring);
	h->ring.data = h;
}

void
hashed_start(struct loop *loop)
{
	ev_async_start(loop->ev, &loop->hashed.ring);
}

void
hashed_free(struct hashed *h)
{
	pthread_mutex_destroy(&h->lock);
}
