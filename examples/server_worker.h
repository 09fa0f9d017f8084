/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker: one ordinary blocking thread that hashes files on disk.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <ev.h>
#include <evcoord.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NAME_SIZE 128 /* of a file, with its 0 byte */

struct loop;

/* Hash one file; memory of whoever asks, untouched until it comes back. */
struct job {
	struct job *next;
	struct loop *loop;        /* where done() is to be called */
	void (*done)(void *arg);
	void *arg;
	char name[NAME_SIZE];
	int err;                  /* 0, or why the file could not be read */
	uint64_t size;
	unsigned long crc, adler;
};

struct worker {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job *head, **tail; /* guarded by lock */
};

/* On its way back to a loop. */
struct hashed {
	pthread_mutex_t lock;
	struct job *head;         /* guarded by lock */
	ev_async ring;
};

void worker_init(struct worker *w);
void worker_free(struct worker *w);

/* The thread's function; arg is the server. */
evc_status worker_thread(evc_coord *c, void *arg);

/* Ask for a hash, on the loop that wants it.  A job without done() says that
   one of the loops will ask for nothing any more. */
void worker_ask(struct worker *w, struct job *job);

/* The loop's end of it. */
void hashed_init(struct hashed *h);
void hashed_start(struct loop *loop);
void hashed_free(struct hashed *h);

#endif
